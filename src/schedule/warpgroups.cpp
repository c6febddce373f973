#include "schedule/warpgroups.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "schedule/fragments.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {
/// Groups for which the prelude has barriers to pass turns by, behind those by which the warps of a group agree.
constexpr std::int64_t most_in_turn = 4;

/// Nothing that it computes or reads lies where all threads of the block have it, but operands' tiles: no step needs all warps to wait for each
/// other, which groups that run other chunks cannot do.
bool is_without_tiles_of_all(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const auto is_own = [&](VariableId id) { return kernel.is_operand(id) || !kernel.is_held(id); };
    return std::none_of(loop.body.begin(), loop.body.end(),
                        [](const Node& n) { return std::holds_alternative<LoopRef>(n); }) &&
           std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
               return step.scope != loop.scope ||
                      (is_own(variable_of(step)) && std::all_of(step.reads.begin(), step.reads.end(),
                                                                [&](const Read* r) { return is_own(r->array); }));
           });
}
/// Of the last tile of rows, the groups of four warps whose rows all lie past the end.
std::int64_t groups_past_the_end(const ScheduledKernel& kernel) {
    const AxisId rows = kernel.schedule.tensor_axis;
    const std::int64_t tile = kernel.span(rows, 0).tile, left = kernel.extent(rows) % tile,
                       of_group = warps_together * fragment_rows;
    return left == 0 ? 0 : kernel.schedule.warps.value / warps_together - (left + of_group - 1) / of_group;
}

}  // namespace

bool have_own_chunks(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    if (!kernel.on_matrix_unit() || !kernel.copying_role() || kernel.schedule.warps.value <= warps_together)
        return false;
    if (kernel.operand_loads(loop.scope).empty() || !is_repeated(kernel, loop) || !is_without_tiles_of_all(kernel, loop))
        return false;
    const auto is_owed = [&](const std::vector<Node>& nodes) {
        return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
            const auto* settle = std::get_if<Settle>(&node);
            return settle && std::any_of(settle->frees.begin(), settle->frees.end(),
                                         [](const Freed& freed) { return freed.ahead < 0; });
        });
    };
    if (is_owed(loop.body) || is_owed(loop.epilogue) || is_owed(kernel.body)) return false;
    return groups_past_the_end(kernel) > 0 ||
           std::any_of(loop.loop->support.begin(), loop.loop->support.end(), [&](const Affine& form) {
               return form.coefficient(kernel.schedule.tensor_axis) != 0 && form.coefficient(loop.loop->axis) != 0;
           });
}

double share_of_others_chunks(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    if (!have_own_chunks(kernel, loop)) return 0;
    const std::int64_t groups = kernel.schedule.warps.value / warps_together, rows = warps_together * fragment_rows,
                       tile = kernel.span(loop.loop->axis, loop.scope).tile;
    const Turns turns = turns_of(kernel, loop);
    double others = 0;
    for (const Affine& form : loop.loop->support) {
        const double along = static_cast<double>(std::abs(form.coefficient(kernel.schedule.tensor_axis))) /
                             static_cast<double>(std::max<std::int64_t>(1, std::abs(form.coefficient(loop.loop->axis))));
        for (std::int64_t g = 0; g < groups; ++g)
            others += std::floor(along * static_cast<double>(g * rows) / static_cast<double>(tile));
    }
    const double all = std::max(1.0, static_cast<double>(turns.least + turns.most) / 2);
    // Where masks leave groups unlike numbers of chunks, the last tile's is taken for the most.
    const double tiles = std::ceil(static_cast<double>(kernel.extent(kernel.schedule.tensor_axis)) /
                                   static_cast<double>(kernel.span(kernel.schedule.tensor_axis, 0).tile));
    others += static_cast<double>(groups_past_the_end(kernel) * turns.most) / tiles;
    return std::min(0.9, others / static_cast<double>(groups) / all);
}

std::optional<TurnsAtProducts> turns_at_products(const ScheduledKernel& kernel) {
    const std::int64_t groups = kernel.schedule.warps.value / warps_together;
    if (!kernel.on_matrix_unit() || !kernel.copying_role() || groups < 2 || groups > most_in_turn || kernel.loops.size() != 1)
        return std::nullopt;
    const ScheduledLoop& loop = kernel.loops.front();
    if (loop.prologue.empty()) return std::nullopt;
    TurnsAtProducts out{.loop = 0, .groups = groups};
    bool are_done = false;
    int products = 0;
    for (const Node& node : loop.body) {
        const int* s = std::get_if<int>(&node);
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
        const auto as_factor = kernel.atom(step).kind == AtomKind::matrix ? matrix_product(kernel, step) : std::nullopt;
        const bool multiplies = as_factor && as_factor->a_in_registers && as_factor->a->array == id;
        if (multiplies && product) return false;
        if (multiplies)
            product = &step;
        else if (variable_of(step) == id ? computed != nullptr : reads(step, id) && as_factor)
            return false;
        else if (variable_of(step) == id)
            computed = &step;
    }
    if (!computed || !product || computed->scope != product->scope || product->ahead >= computed->ahead) return false;
    return std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
        return step.atom < 0 || &step == product || !reads(step, id) ||
               (step.ahead == computed->ahead && step.scope == computed->scope);
    });
}

}  // namespace napkin
