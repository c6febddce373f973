#pragma once
// Layouts: functions from an index to a place, written shape:stride, as ((2,2),8):((1,16),2).
//
// A mode is a number of elements with a stride, or a tuple of modes. Let the leaves be n_0:d_0, n_1:d_1, … from left to
// right. An index i is split into digits i_k = (i / (n_0·…·n_{k-1})) mod n_k, the first fastest (colexicographic
// order). The layout sends it to Σ i_k·d_k (seed 001, §3.1; CuTe's layout algebra). Parentheses do not change the
// function. They say what belongs together: the modes of a tuple may be asked for by a coordinate of their own. The
// value is an address in memory, a position in registers, or a thread and its register (fragment.hpp). In each case a
// mode maps one digit of the index to one digit of the value.
//
// A layout is a function on [0, size) and nowhere else. What an operation cannot write as a layout is an error that
// names the mode and the divisibility that it breaks.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace napkin::layouts {

/// An index, or a tuple of coordinates: Coordinate{1, {2, 3}}.
class Coordinate {
public:
    Coordinate(std::int64_t index) : index_(index) {}
    Coordinate(std::initializer_list<Coordinate> parts) : parts_(parts) {}
    explicit Coordinate(std::vector<Coordinate> parts) : parts_(std::move(parts)) {}

    [[nodiscard]] bool is_index() const { return parts_.empty(); }
    [[nodiscard]] std::int64_t index() const { return index_; }
    [[nodiscard]] const std::vector<Coordinate>& parts() const { return parts_; }
    friend bool operator==(const Coordinate&, const Coordinate&) = default;

private:
    std::int64_t index_ = 0;
    std::vector<Coordinate> parts_;
};

/// One digit: so many elements, each so far from the one before.
struct Leaf {
    std::int64_t size = 1, stride = 0;
    friend bool operator==(const Leaf&, const Leaf&) = default;
};

class Layout {
public:
    /// size:stride. Pre: size ≥ 1, stride ≥ 0.
    Layout(std::int64_t size, std::int64_t stride);
    /// A tuple. Pre: not empty.
    explicit Layout(std::vector<Layout> modes);

    [[nodiscard]] bool is_leaf() const { return modes_.empty(); }
    [[nodiscard]] Leaf leaf() const { return leaf_; }  ///< pre: is_leaf()
    /// The modes of a tuple; a leaf is its own one mode.
    [[nodiscard]] std::span<const Layout> modes() const;
    [[nodiscard]] const Layout& mode(std::size_t i) const;
    [[nodiscard]] std::vector<Leaf> leaves() const;  ///< from left to right

    [[nodiscard]] std::size_t rank() const { return modes().size(); }
    [[nodiscard]] std::size_t depth() const;  ///< 0 for a leaf, else one more than the deepest mode
    [[nodiscard]] std::int64_t size() const;  ///< elements, at most 2^62
    /// One more than the largest value, at most 2^62.
    [[nodiscard]] std::int64_t cosize() const;

    /// The value at an index. Pre: 0 ≤ index < size().
    std::int64_t operator()(std::int64_t index) const;
    /// The value at a coordinate: an index of the mode, or a tuple with a coordinate for each of its modes. Pre: it
    /// fits.
    std::int64_t operator()(const Coordinate& at) const;
    /// The coordinate of an index down to the leaves. Pre: 0 ≤ index < size().
    [[nodiscard]] Coordinate coordinate(std::int64_t index) const;

    friend bool operator==(const Layout&, const Layout&) = default;

private:
    Leaf leaf_;
    std::vector<Layout> modes_;
};

/// The layout as text, and back. The text's shape and stride are nested alike; sizes are at least 1, strides at least
/// 0, and neither the size nor the cosize is above 2^62.
std::string to_string(const Layout& layout);
Result<Layout> parse_layout(std::string_view text);

/// The same function in the fewest modes, without nesting: modes of one element go, n:d and m:(n·d) become (n·m):d.
Layout coalesce(const Layout& layout);
/// The same for each mode by itself; the rank stays.
Layout coalesce_modes(const Layout& layout);

/// The layout R with R(c) = outer(inner(c)) for every coordinate c of the inner layout. R has the inner layout's modes,
/// and a leaf of it may become a tuple.
/// Errors:
/// - the inner layout reaches outside of the outer one;
/// - a stride neither divides a size of the (coalesced) outer layout nor is a multiple of it;
/// - a size is not a multiple of the steps after which its stride leaves a mode of the outer layout;
/// - several modes together carry from one mode of the outer layout to the next. Without this check, composing leaf by
///   leaf would be wrong, even if each leaf divides (seed 001, §4.1, footnote 15).
Result<Layout> composition(const Layout& outer, const Layout& inner);

/// The layout C whose values fill the gaps of `layout`: every number below `size` is layout(i) + C(j) for one pair (i,
/// j). Errors: the layout takes a value twice or overlaps itself; a stride is not a multiple of what the smaller
/// strides fill. It is also an error if `size` is not a multiple of what the layout fills.
Result<Layout> complement(const Layout& layout, std::int64_t size);

/// The layout B with layout(B(i)) = i for all i below size(B). It is as long as the values 0, 1, 2, … follow from the
/// modes, and 1:0 at least.
Layout right_inverse(const Layout& layout);
/// B with B(layout(i)) = i. Its size is at least the layout's cosize. Errors: those of `complement`; the layout takes
/// no value twice.
Result<Layout> left_inverse(const Layout& layout);

/// One term of a layout as arithmetic on the index: (index / divisor) % size · stride. The last digit needs no
/// remainder.
struct Term {
    std::int64_t divisor = 1, size = 1, stride = 0;
    bool last = false;
    friend bool operator==(const Term&, const Term&) = default;
};
/// The fewest terms whose sum is the layout's value; none for a layout that is 0 everywhere.
std::vector<Term> terms(const Layout& layout);
/// That sum in C++ over whole numbers: "t % 4 * 2 + t / 4 * 16".
std::string expression(const Layout& layout, std::string_view index);

/// What the strides below `reach` leave free: the modes of a complement, and what both fill together. For complement
/// and product.
struct FreeModes {
    std::vector<Leaf> leaves;
    std::int64_t reach = 1;
};
Result<FreeModes> free_modes(const Layout& layout);

/// A leaf where there is one, a tuple where there are several, 1:0 where there are none.
Layout from_leaves(const std::vector<Leaf>& leaves);

/// A user's mistake with layouts, which has no place in a text.
Diagnostic layout_error(std::string code, std::string message, std::string expected);

}  // namespace napkin::layouts
