#pragma once
// Identity is by id, a position in the list that owns the things; names are for people.
#include <algorithm>
#include <cstddef>

namespace napkin {

/// The place of an id in a container indexed by it.
constexpr std::size_t at(int id) { return static_cast<std::size_t>(id); }

template <class Range, class Value>
constexpr bool contains(const Range& range, const Value& value) {
    return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

}  // namespace napkin
