#include "schedule/warpgroups.hpp"

#include <cmath>
#include <cstdlib>

#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// Most warpgroups in ping-pong: the prelude has barriers for so many, behind those that synchronize the warps of a
/// warpgroup.
constexpr std::int64_t most_groups_in_rounds = 4;
/// fraction_of_skipped_blocks counts the K blocks of at most so many row tiles, evenly spread.
constexpr std::int64_t most_tiles_walked = 1024;

/// The loop accesses nothing that all threads of the CTA share, except the tiles of operands. So no step needs a
/// barrier of all warps, which warpgroups with different K blocks cannot pass.
bool is_without_tiles_of_all(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const auto is_own = [&](VariableId id) { return kernel.is_operand(id) || !kernel.is_held(id); };
    return none_of(loop.body, [](const Node& n) { return std::holds_alternative<LoopId>(n); }) &&
           all_of(kernel.steps, [&](const Step& step) {
               return step.scope != loop.scope || (is_own(variable_of(step)) && all_of(step.reads, [&](const Read* r) {
                                                       return is_own(r->variable());
                                                   }));
           });
}
/// The warpgroups whose rows in the last row tile all lie past the end.
std::int64_t groups_past_the_end(const ScheduledKernel& kernel) {
    const AxisId rows = kernel.schedule.mma_m;
    const std::int64_t tile = kernel.span(rows, 0).tile, left = kernel.extent(rows) % tile,
                       warps_together = kernel.unit.matrix.warps_together(),
                       of_group = warps_together * kernel.fragments().rows;
    return left == 0 ? 0 : kernel.schedule.warps.value / warps_together - (left + of_group - 1) / of_group;
}

/// K blocks of the loop that contribute to rows `begin` to `end` of the M axis, wherever the output tile stands along
/// other axes.
std::int64_t k_blocks_for_rows(const ScheduledKernel& kernel, const ScheduledLoop& loop, std::int64_t begin,
                               std::int64_t end) {
    const AxisId rows = kernel.schedule.mma_m, stream = loop.loop->axis;
    const std::int64_t tile = kernel.span(stream, loop.scope).tile;
    std::int64_t first = 0, last = kernel.extent(stream);
    for (const Affine& form : loop.loop->support) {
        std::int64_t highest = form.constant;
        for (const auto& [axis, factor] : form.terms)
            if (axis == rows)
                highest += factor * (factor > 0 ? end - 1 : begin);
            else if (axis != stream && factor > 0)
                highest += factor * (kernel.extent(axis) - 1);
        const std::int64_t of_stream = form.coefficient(stream);
        if (of_stream < 0) last = std::min(last, floor_div(highest, -of_stream) + 1);
        if (of_stream > 0) first = std::max(first, -floor_div(highest, of_stream) / tile * tile);
        if (of_stream == 0 && highest < 0) last = 0;
    }
    return std::max<std::int64_t>(0, (last - first + tile - 1) / tile);
}
}  // namespace

bool have_own_k_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    if (!kernel.on_tensor_cores() || !kernel.producer_role() ||
        kernel.schedule.warps.value <= kernel.unit.matrix.warps_together())
        return false;
    if (kernel.operand_loads(loop.scope).empty() || !is_repeated(kernel, loop) || !is_without_tiles_of_all(kernel, loop))
        return false;
    const auto is_release_deferred = [&](const std::vector<Node>& nodes) {
        return any_of(nodes, [](const Node& node) {
            const auto* settle = std::get_if<WaitGroup>(&node);
            return settle && any_of(settle->frees, [](const Release& freed) { return freed.ahead < 0; });
        });
    };
    if (is_release_deferred(loop.body) || is_release_deferred(loop.epilogue) || is_release_deferred(kernel.body))
        return false;
    const auto ranges = k_block_ranges(kernel, loop);
    return kernel.is_any(kernel.schedule.mma_m) || groups_past_the_end(kernel) > 0 ||
           (ranges && ranges->tell_rows_apart(kernel.schedule.mma_m)) ||
           any_of(loop.loop->support, [&](const Affine& form) {
               return form.coefficient(kernel.schedule.mma_m) != 0 && form.coefficient(loop.loop->axis) != 0;
           });
}

double fraction_of_skipped_blocks(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    if (!have_own_k_blocks(kernel, loop)) return 0;
    const AxisId rows = kernel.schedule.mma_m;
    const std::int64_t warps_together = kernel.unit.matrix.warps_together(),
                       groups = kernel.schedule.warps.value / warps_together,
                       of_group = warps_together * kernel.fragments().rows, tile = kernel.span(rows, 0).tile,
                       extent = kernel.extent(rows), tiles = (extent + tile - 1) / tile,
                       step = 1 + (tiles - 1) / most_tiles_walked;
    double own = 0, all = 0;
    for (std::int64_t t = 0; t < tiles; t += step) {
        const std::int64_t begin = t * tile;
        all += static_cast<double>(groups * k_blocks_for_rows(kernel, loop, begin, std::min(extent, begin + tile)));
        for (std::int64_t first = begin; first < std::min(extent, begin + groups * of_group); first += of_group)
            own += static_cast<double>(k_blocks_for_rows(kernel, loop, first, std::min(extent, first + of_group)));
    }
    return all > 0 ? 1 - own / all : 0;
}

std::optional<PingPong> ping_pong(const ScheduledKernel& kernel) {
    const std::int64_t groups = kernel.schedule.warps.value / kernel.unit.matrix.warps_together();
    if (!kernel.on_tensor_cores() || !kernel.producer_role() || groups < 2 || groups > most_groups_in_rounds ||
        kernel.loops.size() != 1)
        return std::nullopt;
    const ScheduledLoop& loop = kernel.loops.front();
    if (loop.prologue.empty()) return std::nullopt;
    PingPong out{.loop = 0, .groups = groups};
    bool are_done = false;
    int products = 0;
    for (const Node& node : loop.body) {
        const StepId* s = std::get_if<StepId>(&node);
        if (!s || kernel.step(*s).atom < 0) continue;
        if (!runs_beside(kernel, kernel.step(*s))) {
            are_done = true;
            continue;
        }
        if (are_done) return std::nullopt;
        if (products++ == 0) out.first = *s;
        out.last = *s;
    }
    return products > 1 ? std::optional(out) : std::nullopt;
}

bool is_rounded_ahead(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.is_in_registers(id)) return false;
    const Step *computed = nullptr, *product = nullptr;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        const auto as_factor = kernel.atom(step).kind == AtomKind::mma ? mma_product(kernel, step) : std::nullopt;
        const bool multiplies = as_factor && as_factor->a_in_registers && as_factor->a->variable() == id;
        if (multiplies && product) return false;
        if (multiplies)
            product = &step;
        else if (variable_of(step) == id ? computed != nullptr : reads(step, id) && as_factor)
            return false;
        else if (variable_of(step) == id)
            computed = &step;
    }
    if (!computed || !product || computed->scope != product->scope || product->ahead >= computed->ahead) return false;
    return all_of(kernel.steps, [&](const Step& step) {
        return step.atom < 0 || &step == product || !reads(step, id) ||
               (step.ahead == computed->ahead && step.scope == computed->scope);
    });
}

}  // namespace napkin
