#include "algebra/shared_operand.hpp"

#include <fmt/format.h>

#include <bit>

#include "algebra/fragment.hpp"
#include "algebra/layout_tile.hpp"

namespace napkin::layouts {
namespace {

Diagnostic operand_error(std::string message, std::string expected) {
    return layout_error("layout-operand", std::move(message), std::move(expected));
}

/// The byte counts that a descriptor's fields hold: 14 bits of units of 16 (PTX ISA, "Matrix Descriptor Format").
constexpr std::int64_t largest_field = 0x3FFF * unit_bytes;

int log2_of(std::int64_t power) { return std::countr_zero(static_cast<std::uint64_t>(power)); }

bool is_box(std::int64_t bytes) {
    return bytes >= unit_bytes && bytes <= line_bytes && std::has_single_bit(static_cast<std::uint64_t>(bytes));
}

/// The stride of every `run`-th element of a mode, whose runs lie `within` apart; nothing where there is one run.
Result<std::int64_t> stride_of_runs(const Layout& mode, std::int64_t run, std::int64_t within, const std::string& name) {
    const std::int64_t size = mode.size();
    if (size % run != 0)
        return operand_error(fmt::format("{} has {} elements", name, size), fmt::format("a multiple of {}", run));
    const auto parts = composition(mode, Layout({Layout(run, 1), Layout(size / run, run)}));
    if (!parts) return parts.errors();
    const Layout inner = coalesce(parts->mode(0)), outer = coalesce(parts->mode(1));
    if (inner != Layout(run, within))
        return operand_error(
            fmt::format("{} of the tile, {}, has runs of {} at {}", name, to_string(mode), run, to_string(inner)),
            to_string(Layout(run, within)));
    if (!outer.is_leaf())
        return operand_error(fmt::format("{} of the tile, {}, has its runs of {} at uneven steps, {}", name,
                                         to_string(mode), run, to_string(outer)),
                             "one stride between them");
    return outer.leaf().stride;
}

}  // namespace

Swizzle box_swizzle(std::int64_t box_bytes) {
    internal_check(is_box(box_bytes), "a box of 16, 32, 64 or 128 bytes");
    if (box_bytes == unit_bytes) return {};
    return {log2_of(box_bytes / unit_bytes), log2_of(unit_bytes), log2_of(line_bytes / unit_bytes)};
}

Result<Swizzled> shared_operand(std::int64_t mn, std::int64_t k, std::int64_t element_bytes, Major major,
                                std::int64_t box_bytes) {
    if (!is_box(box_bytes))
        return operand_error(fmt::format("a box of {} bytes", box_bytes), "16, 32, 64 or 128 bytes");
    const std::int64_t width = box_bytes / element_bytes;
    const Swizzle swizzle = of_elements(box_swizzle(box_bytes), element_bytes);
    // The atom is as high as a core matrix; atoms stack along the other direction first, as a box does.
    const Layout along(width, 1), across(core_rows, width);
    const bool k_major = major == Major::k;
    const auto tile = tile_to_shape(k_major ? Layout({across, along}) : Layout({along, across}), {mn, k},
                                    k_major ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1, 0});
    if (!tile) return tile.errors();
    return Swizzled{swizzle, *tile};
}

std::uint64_t MatrixDescriptor::bits(std::int64_t address) const {
    constexpr int leading_at = 16, stride_at = 32, swizzle_at = 62;  // PTX ISA, "Matrix Descriptor Format"
    const auto units = [](std::int64_t bytes) {
        internal_check(bytes >= 0 && bytes <= largest_field && bytes % unit_bytes == 0,
                       "a number that a descriptor cannot hold");
        return static_cast<std::uint64_t>(bytes / unit_bytes);
    };
    // 128 bytes are 1, 64 are 2, 32 are 3, none is 0.
    const int mode = box_bytes == unit_bytes ? 0 : 1 + log2_of(line_bytes / box_bytes);
    return units(address) | units(leading_bytes) << leading_at | units(stride_bytes) << stride_at |
           static_cast<std::uint64_t>(mode) << swizzle_at;
}

Result<MatrixDescriptor> wgmma_descriptor(const Swizzled& tile, std::int64_t element_bytes, Major major) {
    internal_check(tile.layout.rank() == 2, "an operand has rows and k");
    if (major == Major::mn && core_row_bytes / element_bytes != core_rows)
        return operand_error(fmt::format("rows together in memory, of elements of {} bytes", element_bytes),
                             "elements of 2 bytes, or k together");
    const std::int64_t box = unit_bytes << tile.swizzle.bits;
    if (!is_box(box) || tile.swizzle != of_elements(box_swizzle(box), element_bytes))
        return operand_error(fmt::format("{} in elements of {} bytes", to_string(tile), element_bytes),
                             "a swizzle of 16-byte units by lines of 128 bytes, over boxes of 16, 32, 64 or 128 bytes");
    const std::int64_t k = instruction_k_bytes / element_bytes;
    if (tile.layout.mode(1).size() % k != 0)
        return operand_error(fmt::format("k of {} elements", tile.layout.mode(1).size()),
                             fmt::format("a multiple of {}", k));
    const auto slice = composition(tile.layout.mode(1), Layout(k, 1));
    if (!slice) return slice.errors();
    const std::int64_t width = box / element_bytes, unit = unit_bytes / element_bytes;
    const bool swizzled = box > unit_bytes, k_major = major == Major::k;
    // Along the contiguous direction wgmma steps from unit to unit by itself as long as they lie in one box.
    const Layout& together = k_major ? *slice : tile.layout.mode(0);
    const Layout& other = k_major ? tile.layout.mode(0) : *slice;
    const std::string together_name = k_major ? "k" : "mn", other_name = k_major ? "mn" : "k";
    const bool box_at_once = swizzled && !k_major;
    const auto along = stride_of_runs(together, box_at_once ? width : unit, 1, together_name);
    if (!along) return along.errors();
    const auto across = stride_of_runs(other, core_rows, width, other_name);
    if (!across) return across.errors();
    const bool leading_is_fixed = swizzled && k_major;
    if (leading_is_fixed && *along != unit)
        return operand_error(
            fmt::format("k of the tile, {}, steps by {} elements from unit to unit", to_string(*slice), *along),
            fmt::format("{}, all of the instruction's k within one box", unit));
    // The stride offset goes from core matrix to core matrix across; but without a swizzle and with mn together it goes
    // along mn, and the leading offset along k.
    const bool exchanged = !swizzled && !k_major;
    const std::int64_t leading = exchanged ? *across : *along, stride = exchanged ? *along : *across;
    MatrixDescriptor out{leading_is_fixed ? unit_bytes : leading * element_bytes, stride * element_bytes, box};
    for (std::int64_t* bytes : {&out.leading_bytes, &out.stride_bytes}) {
        if (*bytes == 0) *bytes = unit_bytes;  // there is one box, or one core matrix
        if (*bytes % unit_bytes != 0 || *bytes > largest_field)
            return operand_error(fmt::format("a step of {} bytes in {}", *bytes, to_string(tile)),
                                 fmt::format("a multiple of {} up to {}", unit_bytes, largest_field));
    }
    return out;
}

}  // namespace napkin::layouts
