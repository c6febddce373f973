#include "schedule/k_block_ranges.hpp"

#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

std::vector<const Read*> reads_of(const MaskForm& form) {
    std::vector<const Read*> out;
    for (const Expr* e : {&form.plus, &form.minus})
        if (*e) out.push_back(as<Read>(*e));
    return out;
}

/// The axes on which the form depends.
std::vector<AxisId> axes_of(const MaskForm& form) {
    std::vector<AxisId> out;
    const auto add = [&](AxisId axis) {
        if (!contains(out, axis)) out.push_back(axis);
    };
    for (const auto& [axis, factor] : form.affine.terms) add(axis);
    for (const Read* r : reads_of(form))
        for (const Index& index : r->indices)
            for (const AxisId axis : index.axes()) add(axis);
    return out;
}

}  // namespace

bool KBlockRanges::tell_rows_apart(AxisId rows_axis) const {
    return any_of(forms, [&](const MaskForm& form) { return contains(axes_of(form), rows_axis); });
}

std::optional<KBlockRanges> k_block_ranges(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const AxisId stream = loop.loop->axis, rows = kernel.schedule.mma_m;
    if (kernel.loops.size() != 1 || !kernel.on_tensor_cores() || !kernel.arena_in_core() || loop.loop->is_sub ||
        !is_repeated(kernel, loop))
        return std::nullopt;
    const auto is_grouped = [&](AxisId axis) { return contains(kernel.kernel->group_axes, axis); };
    KBlockRanges out;
    for (const MaskForm& form : loop.loop->masks) {
        const std::vector<AxisId> axes = axes_of(form);
        const std::vector<const Read*> reads = reads_of(form);
        const bool is_known = all_of(reads, [&](const Read* r) { return contains(kernel.inputs, r->array); });
        if (!is_known || !contains(axes, stream) ||
            !all_of(axes, [&](AxisId axis) { return axis == stream || is_grouped(axis); }))
            continue;
        out.forms.push_back(form);
        for (const AxisId axis : axes)
            if (axis != stream && axis != rows && !contains(out.others, axis)) out.others.push_back(axis);
    }
    if (out.forms.empty()) return std::nullopt;
    sort(out.others);
    const std::int64_t tile = kernel.span(rows, 0).tile, warps_together = kernel.unit.matrix.warps_together(),
                       of_warpgroup = warps_together * kernel.fragments().rows;
    const bool by_warpgroup = kernel.producer_role() && kernel.schedule.warps.value % warps_together == 0 &&
                              tile == kernel.fragment_rows();
    out.rows = by_warpgroup ? of_warpgroup : tile;
    out.tiles = kernel.num_tiles(rows) * (tile / out.rows);
    out.count = out.tiles;
    for (const AxisId axis : out.others) out.count *= kernel.num_tiles(axis);
    return out;
}

std::vector<MaskForm> bounds_of_tile(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    std::vector<MaskForm> out;
    const AxisId stream = loop.loop->axis;
    if (loop.loop->is_sub || !is_repeated(kernel, loop) || k_block_ranges(kernel, loop)) return out;
    const auto is_whole = [&](AxisId axis) {
        return contains(kernel.kernel->group_axes, axis) ||
               none_of(kernel.loops, [&](const ScheduledLoop& other) { return other.loop->axis == axis; });
    };
    const auto is_of_tile = [&](const Read* r) {
        return contains(kernel.inputs, r->array) && !depends_on(r->indices, stream) &&
               none_of(r->indices, [](const Index& index) { return index.is_gathered(); });
    };
    for (const MaskForm& form : loop.loop->masks) {
        const std::vector<const Read*> reads = reads_of(form);
        const bool is_bound = !reads.empty() && form.sizes.empty() && form.affine.coefficient(stream) != 0 &&
                              all_of(reads, is_of_tile) &&
                              all_of(axes_of(form), [&](AxisId axis) { return axis == stream || is_whole(axis); });
        if (is_bound) out.push_back(form);
    }
    return out;
}

bool is_bounded_by_data(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    return k_block_ranges(kernel, loop) || !bounds_of_tile(kernel, loop).empty();
}

std::int64_t k_block_ranges_bytes(const ScheduledKernel& kernel) {
    std::int64_t bytes = 0;
    for (const ScheduledLoop& loop : kernel.loops)
        if (const auto ranges = k_block_ranges(kernel, loop)) bytes += ranges->count * k_block_range_bytes;
    return bytes;
}

}  // namespace napkin
