#include "algebra/layout.hpp"

#include <fmt/format.h>

#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::layouts {
namespace {

void append_leaves(const Layout& layout, std::vector<Leaf>& out) {
    if (layout.is_leaf()) {
        out.push_back(layout.leaf());
        return;
    }
    for (const Layout& mode : layout.modes()) append_leaves(mode, out);
}

/// The value of the index's digits in this mode; the index goes on with the digits after it.
std::int64_t take(const Layout& layout, std::int64_t& index) {
    if (layout.is_leaf()) {
        const auto [size, stride] = layout.leaf();
        const std::int64_t digit = index % size;
        index /= size;
        return digit * stride;
    }
    return sum<std::int64_t>(layout.modes(), [&](const Layout& mode) { return take(mode, index); });
}

/// The leaves that move, by ascending stride.
std::vector<Leaf> by_stride(const Layout& layout) {
    std::vector<Leaf> out = layout.leaves();
    std::erase_if(out, [](const Leaf& l) { return l.size == 1; });
    stable_sort(out, [](const Leaf& a, const Leaf& b) { return a.stride < b.stride; });
    return out;
}

}  // namespace

Layout::Layout(std::int64_t size, std::int64_t stride) : leaf_{size, stride} {
    internal_check(size >= 1 && stride >= 0, "a layout's size is at least 1 and its stride at least 0");
}

Layout::Layout(std::vector<Layout> modes) : modes_(std::move(modes)) {
    internal_check(!modes_.empty(), "a layout's tuple has a mode");
}

std::span<const Layout> Layout::modes() const {
    return is_leaf() ? std::span<const Layout>(this, 1) : std::span<const Layout>(modes_);
}

const Layout& Layout::mode(std::size_t i) const {
    internal_check(i < rank(), "a layout has no such mode");
    return modes()[i];
}

std::vector<Leaf> Layout::leaves() const {
    std::vector<Leaf> out;
    append_leaves(*this, out);
    return out;
}

std::size_t Layout::depth() const {
    std::size_t deepest = 0;
    for (const Layout& mode : modes_) deepest = std::max(deepest, mode.depth() + 1);
    return deepest;
}

std::int64_t Layout::size() const {
    if (is_leaf()) return leaf_.size;
    std::int64_t product = 1;
    for (const Layout& mode : modes_) product = saturating_mul(product, mode.size());
    return product;
}

std::int64_t Layout::cosize() const {
    std::int64_t largest = 0;
    for (const Leaf& l : leaves()) largest = saturating_add(largest, saturating_mul(l.size - 1, l.stride));
    return saturating_add(largest, 1);
}

std::int64_t Layout::operator()(std::int64_t index) const {
    internal_check(index >= 0 && index < size(), "an index outside of a layout");
    return take(*this, index);
}

std::int64_t Layout::operator()(const Coordinate& at) const {
    if (at.is_index()) return (*this)(at.index());
    internal_check(!is_leaf() && at.parts().size() == rank(), "a coordinate that does not fit its layout");
    std::int64_t value = 0;
    for (std::size_t i = 0; i < modes_.size(); ++i) value += modes_[i](at.parts()[i]);
    return value;
}

Coordinate Layout::coordinate(std::int64_t index) const {
    internal_check(index >= 0 && index < size(), "an index outside of a layout");
    if (is_leaf()) return index;
    std::vector<Coordinate> parts;
    for (const Layout& mode : modes_) {
        parts.push_back(mode.coordinate(index % mode.size()));
        index /= mode.size();
    }
    return Coordinate(std::move(parts));
}

Layout from_leaves(const std::vector<Leaf>& leaves) {
    if (leaves.empty()) return {1, 0};
    if (leaves.size() == 1) return {leaves[0].size, leaves[0].stride};
    std::vector<Layout> modes;
    for (const Leaf& l : leaves) modes.emplace_back(l.size, l.stride);
    return Layout(std::move(modes));
}

Diagnostic layout_error(std::string code, std::string message, std::string expected) {
    return Diagnostic{.code = std::move(code), .message = std::move(message), .expected = std::move(expected)};
}

Layout coalesce(const Layout& layout) {
    std::vector<Leaf> out;
    for (const Leaf& l : layout.leaves()) {
        if (l.size == 1) continue;
        if (!out.empty() && saturating_mul(out.back().size, out.back().stride) == l.stride) {
            out.back().size = saturating_mul(out.back().size, l.size);
        } else {
            out.push_back(l);
        }
    }
    return from_leaves(out);
}

Layout coalesce_modes(const Layout& layout) {
    if (layout.is_leaf()) return layout;
    std::vector<Layout> modes;
    for (const Layout& mode : layout.modes()) modes.push_back(coalesce(mode));
    return Layout(std::move(modes));
}

Result<FreeModes> free_modes(const Layout& layout) {
    FreeModes free;
    for (const Leaf& l : by_stride(layout)) {
        if (l.stride == 0)
            return layout_error(
                "layout-repeats",
                fmt::format("{} takes its values several times: its mode {}:0 does not move", to_string(layout), l.size),
                "a layout that takes no value twice");
        if (l.stride % free.reach != 0)
            return layout_error(
                "layout-overlaps",
                fmt::format("stride {} of the mode {}:{} of {} is not a multiple of {}, what the smaller strides fill",
                            l.stride, l.size, l.stride, to_string(layout), free.reach),
                "modes each of which fills a whole number of times what those of smaller strides do");
        if (l.stride > free.reach) free.leaves.push_back({l.stride / free.reach, free.reach});
        free.reach = saturating_mul(l.size, l.stride);
    }
    return free;
}

Result<Layout> complement(const Layout& layout, std::int64_t size) {
    internal_check(size >= 1, "a complement within no elements");
    auto free = free_modes(layout);
    if (!free) return free.errors();
    if (size % free->reach != 0)
        return layout_error("layout-complement",
                            fmt::format("{} elements are not a multiple of the {} that {} fills with its gaps", size,
                                        free->reach, to_string(layout)),
                            fmt::format("a multiple of {}", free->reach));
    if (size > free->reach) free->leaves.push_back({size / free->reach, free->reach});
    return from_leaves(free->leaves);
}

Layout right_inverse(const Layout& layout) {
    struct Digit {
        std::int64_t size, stride, place;
    };
    std::vector<Digit> digits;
    std::int64_t place = 1;
    for (const Leaf& l : layout.leaves()) {
        if (l.size > 1) digits.push_back({l.size, l.stride, place});
        place = saturating_mul(place, l.size);
    }
    stable_sort(digits, [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
    std::vector<Leaf> out;
    std::int64_t reached = 1;
    for (const Digit& d : digits) {
        if (d.stride < reached) continue;
        if (d.stride > reached) break;
        out.push_back({d.size, d.place});
        reached = saturating_mul(reached, d.size);
    }
    return coalesce(from_leaves(out));
}

Result<Layout> left_inverse(const Layout& layout) {
    const auto free = free_modes(layout);
    if (!free) return free.errors();
    // With its gaps filled the layout is a bijection, whose right inverse is its left inverse too.
    return right_inverse(Layout({layout, from_leaves(free->leaves)}));
}

std::vector<Term> terms(const Layout& layout) {
    std::vector<Term> out;
    const std::int64_t size = layout.size();
    std::int64_t divisor = 1;
    for (const Leaf& l : coalesce(layout).leaves()) {
        const std::int64_t next = saturating_mul(divisor, l.size);
        if (l.stride > 0 && l.size > 1) out.push_back({divisor, l.size, l.stride, next == size});
        divisor = next;
    }
    return out;
}

}  // namespace napkin::layouts
