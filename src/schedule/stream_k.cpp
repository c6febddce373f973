#include "schedule/stream_k.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/expr_walk.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "support/ids.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// Positions among K blocks, times CTAs, are 32-bit integers where a CTA computes its range. A tile's number has one
/// bit beside it, which says that the CTA has a part of the tile.
constexpr std::int64_t most_positions = (std::int64_t{1} << 31) - 1, most_groups = std::int64_t{1} << 30;

/// Why what follows the loop cannot run in the warps of one part alone.
std::string why_not_by_warps(const ScheduledKernel& k, std::size_t behind) {
    for (std::size_t n = behind; n < k.body.size(); ++n) {
        if (std::holds_alternative<WaitGroup>(k.body[n])) continue;
        const StepId* number = std::get_if<StepId>(&k.body[n]);
        if (!number) return "its groups run another loop behind the stream";
        const Step& step = k.step(*number);
        const std::string& name = k.variable(variable_of(step)).name;
        if (step.atom >= 0 && k.atom(step).kind != AtomKind::fragment)
            return fmt::format("several warps together compute {} behind the stream", name);
        if (step.synchronizes || step.synchronizes_inside)
            return fmt::format("warps wait for each other before {} behind the stream", name);
        if (k.loads_operand(step)) return fmt::format("{} is copied behind the stream", name);
    }
    return "";
}

/// Why threads cannot merge the states each for itself.
std::string why_no_merge_of_threads(const ScheduledKernel& k) {
    for (const StateMerge& merge : k.kernel->merges) {
        if (!k.is_in_registers(merge.state))
            return fmt::format("its running {} is not held by threads", k.variable(merge.state).name);
        std::string other;
        visit(merge.given, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r || !is_in_part(r->variable())) return;
            const VariableId of = variable_in_part(r->variable());
            if (of != merge.state && column_axis(k, of) >= 0) other = k.variable(of).name;
        });
        if (!other.empty())
            return fmt::format("{} is merged by all columns of {}", k.variable(merge.state).name, other);
    }
    return "";
}

}  // namespace

std::int64_t StreamK::most_k_blocks() const {
    std::int64_t most = 0;
    for (std::int64_t block = 0; block < blocks; ++block) most = std::max(most, begin(block + 1) - begin(block));
    return rounds * chunks + most;
}

std::int64_t StreamK::num_split_tiles() const {
    std::int64_t n = 0;
    for (std::int64_t block = 1; block < blocks; ++block) n += begin(block) % chunks != 0 ? 1 : 0;
    return n;
}

std::variant<StreamK, std::string> stream_k(const ScheduledKernel& kernel) {
    const TileKernel& tiles = *kernel.kernel;
    if (!kernel.in_blocks() || !kernel.on_tensor_cores())
        return "only states in the registers of the tensor cores' threads are cut";
    if (!kernel.producer_role() || !kernel.has_bulk_copies()) return "no role copies ahead of the group at hand";
    if (!tiles.why_no_merge.empty()) return tiles.why_no_merge;
    StreamK cut;
    std::size_t behind = 0;
    for (std::size_t n = 0; n < kernel.body.size(); ++n)
        if (const auto* loop = std::get_if<LoopId>(&kernel.body[n])) {
            if (cut.loop >= 0) return "its groups run several loops";
            cut.loop = *loop, behind = n + 1;
        }
    if (cut.loop < 0) return "its groups run no loop";
    const ScheduledLoop& loop = kernel.loops[cut.loop];
    if (loop.loop->is_sub || kernel.loops.size() > 1) return "its groups run a loop in a loop";
    if (!loop.loop->support.empty() || is_bounded_by_data(kernel, loop))
        return "masks say how many chunks a group runs";
    if (kernel.has_block_a_group()) return "each group has a block of its own";
    if (std::string why = why_not_by_warps(kernel, behind); !why.empty()) return why;
    if (std::string why = why_no_merge_of_threads(kernel); !why.empty()) return why;

    const std::int64_t groups = kernel.num_groups(), tile = kernel.span(loop.loop->axis, loop.scope).tile;
    cut.blocks = kernel.num_blocks(), cut.chunks = ceil_div(kernel.extent(loop.loop->axis), tile);
    // Where any size may come, a kernel also takes those that leave nothing to split.
    const bool takes_any = possible_groups(kernel) != groups || kernel.is_any(loop.loop->axis);
    if (groups < cut.blocks || (groups % cut.blocks == 0 && !takes_any))
        return fmt::format("{} group{} for {} block{} leave no round unfinished", groups, groups == 1 ? "" : "s",
                           cut.blocks, cut.blocks == 1 ? "" : "s");
    cut.rounds = groups / cut.blocks - 1, cut.groups = groups - cut.rounds * cut.blocks;
    if (cut.chunks < 2 && !takes_any)
        return fmt::format("the stream of {} is one chunk", kernel.program->diagram.axis(loop.loop->axis).name);
    if (cut.groups * cut.chunks > most_positions / (cut.blocks + 1) || cut.chunks > most_positions / tile ||
        groups > most_groups)
        return fmt::format("{} groups of {} chunks are too many to count", cut.groups, cut.chunks);
    for (const StateMerge& merge : tiles.merges) cut.registers += fragment_registers(kernel, merge.state);
    return cut;
}

std::optional<StreamK> chosen_stream_k(const ScheduledKernel& kernel) {
    if (!kernel.uses_stream_k()) return std::nullopt;
    const auto found = stream_k(kernel);
    const auto* cut = std::get_if<StreamK>(&found);
    return cut ? std::optional(*cut) : std::nullopt;
}

std::int64_t stream_k_words_bytes(const ScheduledKernel& kernel, const StreamK& cut) {
    return round_up(cut.groups * kernel.schedule.warps.value * 4, stream_k_alignment);
}

std::int64_t stream_k_bytes(const ScheduledKernel& kernel, const StreamK& cut) {
    return stream_k_words_bytes(kernel, cut) +
           cut.groups * kernel.schedule.warps.value * cut.registers * kernel.unit.warp_threads * 4;
}

std::int64_t stream_k_values(const ScheduledKernel& kernel, const StreamK& cut) {
    return cut.num_split_tiles() * kernel.schedule.warps.value * cut.registers * kernel.unit.warp_threads;
}

}  // namespace napkin
