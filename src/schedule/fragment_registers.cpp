#include "schedule/fragment_registers.hpp"

#include <algorithm>

#include "machine/block_machine.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::int64_t fragment_registers(const ScheduledKernel& kernel, VariableId id) {
    const AxisId axis = column_axis(kernel, id);
    const RegisterTile& tile = kernel.fragments();
    const std::int64_t rows = has_rows(kernel, id) ? tile.rows_a_thread : 1;
    if (axis < 0) return rows;
    const bool is_one_part = kernel.column_parts && kernel.column_parts->is_passing(id);
    return (is_one_part ? kernel.column_parts->columns : columns_of(kernel, axis, kernel.layout(id).scope)) /
           tile.columns * tile.columns_a_thread * rows;
}

bool is_kept_by_threads(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.is_in_registers(id) || column_axis(kernel, id) >= 0) return false;
    // An inner loop ends more than once, and its sums would be reduced among threads again.
    if (kernel.loops.size() != 1) return false;
    const Step* sum = nullptr;
    for (const Step& step : kernel.steps) {
        const auto* init = std::get_if<Init>(step.statement);
        if (init && init->variable == id && (init->value != 0 || step.scope != 0)) return false;
        if (step.atom < 0 || variable_of(step) != id) continue;
        if (sum) return false;
        sum = &step;
    }
    if (!sum || sum->scope == 0 || kernel.atom(*sum).kind != AtomKind::fragment) return false;
    const auto& compute = std::get<Compute>(*sum->statement);
    if (compute.reduce != ReduceOp::sum || !compute.carry || reads_variable(compute.body, id)) return false;
    const auto* factors = as<Binary>(compute.carry);
    const auto is_own = [&](const Expr& e) {
        const auto* r = as<Read>(e);
        return r && r->variable() == id;
    };
    const bool follows = is_own(compute.carry) || (factors && factors->op == BinaryOp::mul && is_own(factors->a) &&
                                                   !reads_variable(factors->b, id));
    const bool has_columns = any_of(compute.reduce_axes, [&](AxisId axis) {
        return axis != kernel.schedule.mma_m && kernel.span(axis, sum->scope).tile > 1;
    });
    return follows && has_columns && none_of(kernel.steps, [&](const Step& step) {
               return step.scope != 0 && step.atom >= 0 && &step != sum && reads(step, id);
           });
}

std::int64_t most_registers(const ScheduledKernel& kernel) {
    std::int64_t most = 0;
    const bool has_products_ahead = any_of(kernel.steps, [](const Step& step) { return step.ahead != 0; });
    std::vector<bool> rounded;
    for (const VariableId v : kernel.layouts.ids())
        rounded.push_back(has_products_ahead && is_rounded_ahead(kernel, v));
    const auto is_rounded = [&](VariableId id, int position) {
        const auto& lives = kernel.layout(id).lives;
        return rounded[at(id)] && lives.size() > 1 && lives.front().has(position);
    };
    for (const Step& step : kernel.steps) {
        std::int64_t held = 0;
        for (const VariableId id : kernel.layouts.ids()) {
            if (!kernel.is_in_registers(id)) continue;
            // In a step on fragments, what dies gives its registers to the result, value by value.
            const auto& lives = kernel.layouts[id].lives;
            if (any_of(lives, [&](const Life& l) {
                    return l.has(step.position) &&
                           !(l.first == step.position && step.atom >= 0 && kernel.atom(step).kind == AtomKind::fragment);
                }))
                held += fragment_registers(kernel, id) / (is_rounded(id, step.position) ? 2 : 1);
        }
        if (step.atom >= 0 && kernel.atom(step).kind == AtomKind::mma)
            // A factor that lives on is rounded into registers of its own. One that dies here is rounded in place.
            if (const auto product = mma_product(kernel, step); product && product->a_in_registers) {
                const auto& lives = kernel.layout(product->a->variable()).lives;
                if (!rounded[at(product->a->array)] &&
                    none_of(lives, [&](const Life& l) { return l.last == step.position; }))
                    held += fragment_registers(kernel, product->a->variable()) / 2;
            }
        most = std::max(most, held);
    }
    return most;
}

std::int64_t spilled_registers(const ScheduledKernel& kernel) {
    return kernel.on_tensor_cores() ? std::max<std::int64_t>(0, most_registers(kernel) - kernel.unit.registers) : 0;
}

bool may_spill(const ScheduledKernel& kernel) {
    const KernelSchedule& s = kernel.schedule;
    const auto group = s.group.find(s.mma_m);
    return group != s.group.end() && group->second.by_user && s.warps.by_user &&
           all_of(s.stream, [](const auto& chunk) { return chunk.second.by_user; });
}

}  // namespace napkin
