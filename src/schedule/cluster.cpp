#include "schedule/cluster.hpp"

#include <fmt/format.h>

#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// A part's rows are a multiple of the rows of a swizzle pattern.
constexpr std::int64_t pattern_rows = operand_alignment / operand_row_bytes;

/// The part of the operand's tile that each of so many CTAs copies, whichever axis they lie along.
std::optional<ClusterPart> part_of(const ScheduledKernel& kernel, VariableId id, std::int64_t blocks) {
    const auto tile = kernel.is_operand(id) ? operand_tile(kernel, id) : std::nullopt;
    if (!tile) return std::nullopt;
    if (tile->panels % blocks == 0) return ClusterPart{tile->rows, tile->panels / blocks, false};
    if (tile->rows % (pattern_rows * blocks) == 0) return ClusterPart{tile->rows / blocks, tile->panels, true};
    return std::nullopt;
}

bool shares(const ScheduledKernel& kernel, AxisId axis, std::int64_t blocks) {
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (const auto id = VariableId::of(v);
            kernel.is_operand(id) && !carries(kernel.variable(id), axis) && part_of(kernel, id, blocks))
            return true;
    return false;
}

/// Whether some CTA tile runs other K blocks of a stream than its neighbours along the axis. Then the CTAs of a cluster
/// do not keep step, or read different operand tiles.
bool differ_in_k_blocks(const ScheduledKernel& kernel, AxisId axis) {
    if (kernel.kernel->parts.any() && axis == kernel.kernel->parts.part) return true;
    return any_of(kernel.loops, [&](const ScheduledLoop& loop) {
        const bool by_data = is_bounded_by_data(kernel, loop);
        return by_data || any_of(loop.loop->support, [&](const Affine& form) { return form.coefficient(axis) != 0; });
    });
}

/// The divisor of `of`, from `among` or 1, that is nearest to `wanted`.
std::int64_t nearest_number_of_blocks(std::int64_t of, std::int64_t wanted, const std::vector<std::int64_t>& among) {
    std::int64_t best = 1;
    for (const std::int64_t n : among)
        if (of % n == 0 && std::abs(n - wanted) < std::abs(best - wanted)) best = n;
    return best;
}

}  // namespace

std::optional<ClusterPart> cluster_part(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.in_cluster() || carries(kernel.variable(id), kernel.schedule.cluster.value.axis)) return std::nullopt;
    return part_of(kernel, id, kernel.cluster_blocks());
}

std::vector<AxisId> axes_to_share(const ScheduledKernel& kernel, std::int64_t blocks) {
    std::vector<AxisId> out;
    for (const auto& [axis, size] : groups_of(*kernel.kernel, kernel.sizes))
        if (kernel.num_tiles(axis) % blocks == 0 && shares(kernel, axis, blocks) && !differ_in_k_blocks(kernel, axis))
            out.push_back(axis);
    return out;
}

std::string why_no_cluster(const ScheduledKernel& kernel) {
    if (!kernel.in_cluster()) return "";
    const AxisId axis = kernel.schedule.cluster.value.axis;
    const std::int64_t blocks = kernel.cluster_blocks();
    const std::vector<std::int64_t>& joined = kernel.unit.copies.clusters;
    const auto axis_name = [&](AxisId a) { return kernel.program->diagram.axis(a).name; };
    if (!kernel.in_blocks()) return "a CPU's threads each copy for themselves";
    if (joined.empty()) return "the machine's file has no links between the memories of its cores";
    if (!contains(joined, blocks)) {
        std::vector<std::string> names;
        for (const std::int64_t n : joined) names.push_back(std::to_string(n));
        return fmt::format("the machine joins {} blocks", join(names, " or "));
    }
    if (!kernel.on_tensor_cores() || !kernel.producer_role() || !kernel.has_bulk_copies())
        return "no role asks for bulk copies of operands, which alone go to several blocks";
    if (kernel.uses_stream_k()) return "groups of its last rounds are cut, so that its blocks do not keep step";
    if (kernel.is_dynamic()) return "its blocks take groups from a queue, each the next one as it is done";
    if (kernel.has_uneven_groups() || differ_in_k_blocks(kernel, axis))
        return "its groups run different chunks, so that its blocks do not keep step";
    if (const std::int64_t tiles = kernel.num_tiles(axis); tiles % blocks != 0)
        return fmt::format("{} has {} group{} of {}, no multiple of {}; the nearest number is {}", axis_name(axis),
                           tiles, tiles == 1 ? "" : "s", kernel.span(axis, 0).tile, blocks,
                           nearest_number_of_blocks(tiles, blocks, joined));
    if (!shares(kernel, axis, blocks)) {
        std::vector<std::string> names;
        for (const AxisId other : axes_to_share(kernel, blocks)) names.push_back(axis_name(other));
        return fmt::format("every operand depends on {} or has no whole part for each block{}", axis_name(axis),
                           names.empty() ? "" : "; along " + join(names, " or ") + " one is shared");
    }
    if (const std::int64_t grid = kernel.schedule.grid.value; grid % blocks != 0)
        return fmt::format("a grid of {} blocks is no multiple of {}; the nearest is {}", grid, blocks,
                           std::max(blocks, grid / blocks * blocks));
    if (const Choice& threads = kernel.schedule.threads; threads.by_user && threads.value % blocks != 0)
        return fmt::format("{} blocks at a time are no multiple of {}; the nearest number is {}", threads.value, blocks,
                           std::max(blocks, threads.value / blocks * blocks));
    return "";
}

}  // namespace napkin
