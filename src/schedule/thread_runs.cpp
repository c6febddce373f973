#include "schedule/thread_runs.hpp"

#include <algorithm>
#include <bit>

#include "machine/block_machine.hpp"
#include "schedule/accumulators.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// How an index goes on along a run, and whether it is a multiple of the run's values where the run begins.
struct IndexInRun {
    std::optional<std::int64_t> step;  ///< none: not evenly
    bool is_multiple = false;
};

class Along {
public:
    Along(AxisId axis, std::int64_t values) : axis_(axis), values_(values) {}

    [[nodiscard]] IndexInRun of(const Expr& e) const {
        if (const auto* index = as<AxisIndex>(e))
            return index->axis == axis_ ? IndexInRun{1, true} : IndexInRun{0, false};
        if (const auto* number = as<Constant>(e))
            return {0, std::fmod(number->value, static_cast<double>(values_)) == 0};
        const auto* b = as<Binary>(e);
        if (!b) return {depends_on_axis(e, axis_) ? std::nullopt : std::optional<std::int64_t>(0), false};
        const IndexInRun x = of(b->a), y = of(b->b);
        switch (b->op) {
            case BinaryOp::add:
            case BinaryOp::sub:
                if (!x.step || !y.step) return {};
                return {b->op == BinaryOp::add ? *x.step + *y.step : *x.step - *y.step, x.is_multiple && y.is_multiple};
            case BinaryOp::mul: {
                if (!x.step || !y.step || (*x.step != 0 && *y.step != 0)) return {};
                const auto* factor = as<Constant>(*x.step == 0 ? b->a : b->b);
                if (!factor && (*x.step != 0 || *y.step != 0)) return {};
                return {factor ? (*x.step + *y.step) * static_cast<std::int64_t>(factor->value) : 0,
                        x.is_multiple || y.is_multiple};
            }
            case BinaryOp::floor_div:
            case BinaryOp::mod: return quotient(b->op, x, b->b);
            default: return {depends_on_axis(e, axis_) ? std::nullopt : std::optional<std::int64_t>(0), false};
        }
    }

private:
    /// A run that begins at a multiple of its length does not cross a multiple of a multiple of that.
    [[nodiscard]] IndexInRun quotient(BinaryOp op, const IndexInRun& x, const Expr& by) const {
        if (x.step == 0) return {0, false};
        const auto* divisor = as<Constant>(by);
        if (!x.step || *x.step != 1 || !x.is_multiple || !divisor || divisor->value < 1 ||
            std::fmod(divisor->value, static_cast<double>(values_)) != 0)
            return {};
        return op == BinaryOp::mod ? IndexInRun{1, true} : IndexInRun{0, false};
    }

    AxisId axis_;
    std::int64_t values_;
};

/// The array's values are real numbers, which the statement's own arithmetic holds.
bool has_real_numbers(const ScheduledKernel& kernel, VariableId id) {
    const DType type = kernel.variable(id).memory_type;
    return is_float(type) && !kernel.is_whole(id) && bytes(type) <= kernel.value_bytes();
}

/// The step that stores what the statement alone computes and what no statement reads. Null: there is none.
const Step* only_store(const ScheduledKernel& kernel, const Step& made) {
    const VariableId id = variable_of(made);
    const Step* stored = nullptr;
    for (const Step& step : kernel.steps) {
        if (reads(step, id)) return nullptr;
        if (&step == &made || variable_of(step) != id) continue;
        if (!std::holds_alternative<Store>(*step.statement) || stored) return nullptr;
        stored = &step;
    }
    return stored;
}

std::int64_t terms_of(const ScheduledKernel& kernel, const Step& step) {
    std::int64_t terms = 1;
    for (const AxisId a : std::get<Compute>(*step.statement).reduce_axes)
        terms = saturating_mul(terms, kernel.span(a, step.scope).tile);
    return terms;
}

/// Whether the result goes to memory as a run, which nothing else computes or reads.
bool stores_runs(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    return step.scope == 0 && !compute.carry && !contains(kernel.inputs, kernel.variable(compute.variable).array) &&
           only_store(kernel, step);
}

/// Whether the statement adds up what the iterations of a stream read. Its result stays where the stream holds it.
bool is_sum_of_stream(const Step& step) { return step.scope != 0 && std::get<Compute>(*step.statement).reduce; }

/// Bytes of the narrowest values that lie beside each other in memory along the axis, in rows of whole runs. 0: there
/// are none.
std::int64_t fewest_bytes(const ScheduledKernel& kernel, const Step& step, AxisId axis) {
    std::int64_t fewest = 0;
    for (const Read* r : step.reads) {
        const Variable& v = kernel.variable(r->variable());
        if (!kernel.facts(r->variable()).load_scope || !v.gathers.empty() || !has_real_numbers(kernel, r->variable()) ||
            run_step(kernel, *r, {axis, 1}, step.scope) != RunStep::beside)
            continue;
        const std::int64_t of_value = bytes(v.memory_type), row = kernel.extent(v.limits.back());
        const std::int64_t access = std::max<std::int64_t>(1, kernel.unit.copies.vector_bytes);
        if (!kernel.is_any(v.limits.back()) && row * of_value % access != 0) continue;
        fewest = fewest == 0 ? of_value : std::min(fewest, of_value);
    }
    return fewest;
}

/// Registers of a thread for a run's results, for what it loads before it computes, and for all else: addresses,
/// strides and counters. The last are estimated from two kernels that NVRTC 13 compiles.
std::int64_t registers_of_run(const ScheduledKernel& kernel, const Step& step, const ThreadRun& run) {
    constexpr std::int64_t of_addresses = 24, iterations_of_window = 2;
    const std::int64_t of_value = kernel.value_bytes() / 4;
    const bool reduces = std::get<Compute>(*step.statement).reduce.has_value();
    std::int64_t loaded = 0;
    for (const Read* r : step.reads) {
        if (r->variable() == variable_of(step)) continue;  // what it adds to is read at its end
        const RunStep how = run_step(kernel, *r, run, step.scope);
        const std::int64_t bytes_of_run = run.values * bytes(kernel.variable(r->variable()).memory_type);
        loaded += how == RunStep::same     ? of_value
                  : how == RunStep::beside ? ceil_div(bytes_of_run, 4)
                                           : run.values * of_value;
    }
    return of_addresses + run.values * of_value + loaded * (reduces ? iterations_of_window : 1);
}

}  // namespace

std::optional<ThreadRun> thread_run(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    const Variable& target = kernel.variable(compute.variable);
    if (!kernel.in_blocks() || kernel.on_tensor_cores() || kernel.schedule.vector_axis >= 0) return std::nullopt;
    const bool to_memory = stores_runs(kernel, step);
    if (const Step* sum = to_memory && !compute.reduce ? followed_sum(kernel, step) : nullptr) {
        const Atom& atom = kernel.atom(*sum);
        return goes_by_runs(kernel, *sum) ? std::optional(ThreadRun{atom.row_axis, atom.rows}) : std::nullopt;
    }
    if (!(to_memory || is_sum_of_stream(step)) || target.dims.empty() || !has_real_numbers(kernel, compute.variable) ||
        terms_of(kernel, step) > most_terms_of_run)
        return std::nullopt;
    const AxisId axis = target.dims.back().single_axis();
    if (axis < 0 || !target.dims.back().is_axis(axis)) return std::nullopt;
    const Span& span = kernel.span(axis, step.scope);
    const std::int64_t bytes_of_value = to_memory ? bytes(target.memory_type) : fewest_bytes(kernel, step, axis);
    if (bytes_of_value == 0) return std::nullopt;
    const std::int64_t most = std::min<std::int64_t>(longest_run, kernel.unit.copies.vector_bytes / bytes_of_value);
    if (most < 2 || span.tile < most || (span.begins && span.tile % most != 0)) return std::nullopt;
    const ThreadRun run{axis, most};
    // What a reduction reads again and again in several rows is better off in shared memory.
    if (compute.reduce &&
        any_of(step.reads, [&](const Read* r) { return run_step(kernel, *r, run, step.scope) == RunStep::across; }))
        return std::nullopt;
    if (static_cast<double>(registers_of_run(kernel, step, run)) > kernel.unit.registers / share_of_registers)
        return std::nullopt;
    return run;
}

bool goes_by_runs(const ScheduledKernel& kernel, const Step& step) {
    if (step.atom < 0 || !kernel.in_blocks()) return false;
    const Atom& atom = kernel.atom(step);
    if (atom.kind != AtomKind::block || atom.vector_axis >= 0 || atom.follows || atom.run >= 0 || atom.cut_axis >= 0)
        return false;
    const auto run = thread_run(kernel, step);
    return run && atom.row_axis == run->axis && atom.rows == run->values;
}

RunStep run_step(const ScheduledKernel& kernel, const Read& r, const ThreadRun& run, ScopeId scope) {
    const Span& span = kernel.span(run.axis, scope);
    const bool begins_at_multiples = !span.begins || span.tile % run.values == 0;
    const Along along(run.axis, begins_at_multiples ? run.values : 1);
    RunStep out = RunStep::same;
    for (std::size_t d = 0; d < r.indices.size(); ++d) {
        const auto step = along.of(r.indices[d].value()).step;
        if (step == 0) continue;
        const bool is_last = d + 1 == r.indices.size();
        if (step && !is_last) return RunStep::across;
        out = step == 1 && out == RunStep::same ? RunStep::beside : RunStep::each;
    }
    return out;
}

bool begins_at_multiple(const Read& r, const ThreadRun& run) {
    return !r.indices.empty() && Along(run.axis, run.values).of(r.indices.back().value()).is_multiple;
}

bool is_written_by_runs(const ScheduledKernel& kernel, VariableId id) {
    return any_of(kernel.steps, [&](const Step& step) {
        return std::holds_alternative<Compute>(*step.statement) && variable_of(step) == id &&
               goes_by_runs(kernel, step) && stores_runs(kernel, step);
    });
}

bool is_read_across_runs(const ScheduledKernel& kernel, VariableId id) {
    const int inner = kernel.place(id).innermost;
    return inner >= 0 && any_of(kernel.steps, [&](const Step& step) {
               if (!reads(step, id) || !goes_by_runs(kernel, step)) return false;
               const AxisId axis = kernel.atom(step).row_axis;
               return any_of(step.reads, [&](const Read* r) {
                   return r->variable() == id && depends_on(r->indices, axis) && !r->indices[at(inner)].depends_on(axis);
               });
           });
}

bool may_be_read_by_runs(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    if (!kernel.facts(id).load_scope || !variable.gathers.empty() || variable.dims.empty() ||
        !has_real_numbers(kernel, id) || contains(kernel.outputs, variable.array))
        return false;
    return all_of(kernel.steps, [&](const Step& step) {
        if (!reads(step, id)) return true;
        if (!goes_by_runs(kernel, step)) return false;
        const ThreadRun run{kernel.atom(step).row_axis, kernel.atom(step).rows};
        return all_of(step.reads, [&](const Read* r) {
            return r->variable() != id || run_step(kernel, *r, run, step.scope) != RunStep::across;
        });
    });
}

}  // namespace napkin
