#include "lower/shapes.hpp"

#include "schedule/accumulators.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

VariableShape shape_of(const ScheduledKernel& kernel, VariableId id) {
    VariableShape out;
    if (!kernel.variable(id).gathers.empty()) out.gathered = gathered_copy(kernel, id);
    if (kernel.is_in_accumulators(id)) out.added_by = kernel.number(*accumulating_step(kernel, id));
    if (kernel.is_in_lanes(id)) out.lanes = lane_tile(kernel, id), out.passes_by_rounds = passes_by_rounds(kernel, id);
    if (!kernel.on_tensor_cores()) return out;
    out.has_rows = has_rows(kernel, id), out.columns = column_axis(kernel, id);
    if (kernel.is_in_registers(id)) {
        out.registers = fragment_registers(kernel, id), out.register_type = register_type(kernel, id);
        out.is_kept_by_threads = is_kept_by_threads(kernel, id);
        out.is_rounded_ahead = is_rounded_ahead(kernel, id);
    }
    if (kernel.is_read_by_threads(id)) out.is_read_by_rows = is_read_by_rows(kernel, id);
    if (out.is_read_by_rows) out.row_values = row_values(kernel, id);
    if (kernel.lies_as_operand(id)) out.tile = operand_tile(kernel, id);
    if (kernel.is_operand(id)) out.part = cluster_part(kernel, id), out.window = window_copy(kernel, id);
    if (kernel.is_staged_out(id)) out.staging = staging_tiles_of(kernel, id);
    return out;
}

/// Whether the product's operands are released an iteration later.
bool outlasts_iteration(const ScheduledKernel& kernel, const MmaProduct& product) {
    return any_of(kernel.loops, [&](const ScheduledLoop& l) {
        return any_of(l.body, [&](const Node& node) {
            const auto* settle = std::get_if<WaitGroup>(&node);
            return settle && any_of(settle->frees, [&](const Release& freed) {
                       return freed.ahead < 0 && freed.operand == product.b->variable();
                   });
        });
    });
}

StepShape shape_of(const ScheduledKernel& kernel, const Step& step) {
    StepShape out;
    out.lanes = lanes_of(kernel, step);
    if (goes_by_runs(kernel, step)) {
        const ThreadRun run{kernel.atom(step).row_axis, kernel.atom(step).rows};
        for (const Read* r : step.reads)
            if (run_step(kernel, *r, run, step.scope) == RunStep::beside) {
                out.beside.push_back(r);
                if (begins_at_multiple(*r, run)) out.aligned.push_back(r);
            }
    }
    if (!kernel.on_tensor_cores()) return out;
    out.iterations_ahead = iterations_read_ahead(kernel, step);
    if (step.atom < 0 || kernel.atom(step).kind == AtomKind::block || kernel.atom(step).kind == AtomKind::tile)
        return out;
    out.columns = columns_of_statement(kernel, step);
    if (kernel.atom(step).kind == AtomKind::mma) {
        out.product = mma_product(kernel, step), out.by_warp = product_by_warp(kernel, step);
        out.outlasts_iteration = out.product && outlasts_iteration(kernel, *out.product);
    }
    const auto add = [](std::vector<const Read*>& to, const Read* r) {
        if (none_of(to, [&](const Read* other) { return other->array == r->array; })) to.push_back(r);
    };
    for (const Read* r : step.reads) {
        if (is_read_in_runs(kernel, step, *r)) add(out.in_runs, r);
        if (is_fetched_with_group(kernel, step, *r)) add(out.fetched, r);
    }
    if (!out.in_runs.empty()) out.runs_together = runs_together(kernel, step);
    return out;
}

LoopShape shape_of(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    if (!kernel.on_tensor_cores()) return {std::nullopt, bounds_of_tile(kernel, loop)};
    return {k_block_ranges(kernel, loop), bounds_of_tile(kernel, loop), unrolled_iterations(kernel, loop),
            have_own_k_blocks(kernel, loop)};
}

}  // namespace

KernelShapes shapes_of(const ScheduledKernel& kernel) {
    KernelShapes out;
    for (const VariableId v : kernel.layouts.ids()) out.variables.push_back(shape_of(kernel, v));
    for (const Step& step : kernel.steps) out.steps.push_back(shape_of(kernel, step));
    for (const ScheduledLoop& loop : kernel.loops) out.loops.push_back(shape_of(kernel, loop));
    if (!kernel.on_tensor_cores()) return out;
    out.stream_k = chosen_stream_k(kernel);
    if (out.stream_k) {
        out.stream_k_words_bytes = stream_k_words_bytes(kernel, *out.stream_k);
        out.stream_k_bytes = stream_k_bytes(kernel, *out.stream_k);
    }
    out.range_bytes = k_block_ranges_bytes(kernel);
    out.num_barriers = num_barriers(kernel), out.barrier_bytes = barrier_bytes(kernel);
    out.staging_bytes = staging_bytes(kernel), out.run_columns = run_columns(kernel);
    return out;
}

}  // namespace napkin::lower
