#pragma once
// Identity is by id, a position in the list that owns the things; names are for people. Ids of different lists are
// different types, so that an axis cannot stand where an array is meant.
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "support/ranges.hpp"

namespace napkin {

/// The place of a thing in the list of its kind; a negative one is that of none. `Kind` is only a name that keeps ids
/// of different kinds apart. Numbers in the source become ids by themselves, others by `of`, so that what is computed
/// says which kind it is meant to be.
template <class Kind>
class Id {
public:
    constexpr Id() = default;
    consteval Id(int place) : place_(place) {}
    static constexpr Id of(std::integral auto place) {
        Id id;
        id.place_ = static_cast<int>(place);
        return id;
    }
    [[nodiscard]] constexpr int place() const { return place_; }
    constexpr operator int() const { return place_; }
    constexpr Id& operator++() {
        ++place_;
        return *this;
    }
    friend constexpr bool operator==(Id a, Id b) { return a.place_ == b.place_; }
    friend constexpr auto operator<=>(Id a, Id b) { return a.place_ <=> b.place_; }
    friend constexpr bool operator==(Id a, std::integral auto b) { return std::cmp_equal(a.place_, b); }
    friend constexpr auto operator<=>(Id a, std::integral auto b) {
        return static_cast<std::int64_t>(a.place_) <=> static_cast<std::int64_t>(b);
    }
    template <class Other>
        requires(!std::same_as<Kind, Other>)
    friend bool operator==(Id, Id<Other>) = delete;

private:
    int place_ = -1;
};

using AxisId = Id<struct AxisKind>;          ///< in Diagram::axes
using ArrayId = Id<struct ArrayKind>;        ///< in Diagram::arrays
using VariableId = Id<struct VariableKind>;  ///< in TileKernel::variables
using StepId = Id<struct StepIdKind>;        ///< of a statement that runs, in ScheduledKernel::steps
using ScopeId = Id<struct ScopeIdKind>;      ///< of a level of loops, in ScheduledKernel::scopes: 0 is the group
using LoopId = Id<struct LoopIdKind>;        ///< in ScheduledKernel::loops
using AtomId = Id<struct AtomIdKind>;        ///< in KernelSchedule::atoms

/// The ids of a list, in order, without a list of their own.
template <class Id>
class IdRange {
public:
    class Iterator {
    public:
        using value_type = Id;
        using reference = Id;
        using pointer = void;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        constexpr explicit Iterator(Id id) : id_(id) {}
        constexpr Id operator*() const { return id_; }
        constexpr Iterator& operator++() {
            ++id_;
            return *this;
        }
        constexpr Iterator operator++(int) { return Iterator(std::exchange(id_, Id::of(id_.place() + 1))); }
        friend constexpr bool operator==(Iterator a, Iterator b) { return a.id_ == b.id_; }

    private:
        Id id_;
    };
    constexpr explicit IdRange(std::size_t size) : end_(Id::of(size)) {}
    [[nodiscard]] constexpr Iterator begin() const { return Iterator(Id::of(0)); }
    [[nodiscard]] constexpr Iterator end() const { return Iterator(end_); }

private:
    Id end_;
};

/// What there is of each thing, by its id.
template <class Id, class T>
class By : public std::vector<T> {
public:
    using std::vector<T>::vector;
    By(std::vector<T> values) : std::vector<T>(std::move(values)) {}

    decltype(auto) operator[](Id id) { return std::vector<T>::operator[](static_cast<std::size_t>(id.place())); }
    decltype(auto) operator[](Id id) const { return std::vector<T>::operator[](static_cast<std::size_t>(id.place())); }
    decltype(auto) at(Id id) { return std::vector<T>::at(static_cast<std::size_t>(id.place())); }
    decltype(auto) at(Id id) const { return std::vector<T>::at(static_cast<std::size_t>(id.place())); }

    /// Every id that is there at the call, in order.
    [[nodiscard]] IdRange<Id> ids() const { return IdRange<Id>(this->size()); }
    /// That of what is added next.
    [[nodiscard]] Id next() const { return Id::of(this->size()); }
};
template <class T>
using ByAxis = By<AxisId, T>;
template <class T>
using ByArray = By<ArrayId, T>;
template <class T>
using ByVariable = By<VariableId, T>;

/// The place of an id, or of an enumerator, in a container indexed by it.
constexpr std::size_t at(auto id) { return static_cast<std::size_t>(id); }

}  // namespace napkin

template <class Kind>
struct std::hash<napkin::Id<Kind>> {
    std::size_t operator()(napkin::Id<Kind> id) const noexcept { return std::hash<int>()(id); }
};
