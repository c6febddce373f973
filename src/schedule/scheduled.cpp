#include "schedule/scheduled.hpp"

#include <cmath>
#include <limits>

#include "schedule/group_order.hpp"
#include "schedule/integer_values.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// An axis that is cut into tiles of the size; 0: not cut. An axis without values has empty tiles. Where any extent may
/// come, tiles have the whole size even if that exceeds the extent at hand. What is planned at an extent that they do
/// not divide has one text for all extents. So do tiles of an axis of one value that gives an instruction its columns.
Span span_of(std::int64_t size, std::int64_t extent, const Choice* any, bool is_longer = false) {
    if (extent == 0) return {0, 0, false, false};
    if (size > 0 && is_longer) return {size, size, true, true};
    if (size > 0 && any) return {size, size, true, extent % size != 0 || any->value % size != 0};
    const std::int64_t tile = size > 0 ? std::min(size, extent) : extent;
    return {tile, tile, tile < extent, extent % tile != 0};
}

/// Makes steps and loops of a list of statements. Free is left out: lifetimes follow from the order of execution.
class Flattening {
public:
    explicit Flattening(ScheduledKernel& kernel) : kernel_(kernel) {}

    std::vector<Node> run(const std::vector<TileStatement>& statements, ScopeId scope) {
        std::vector<Node> out;
        for (const TileStatement& s : statements) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                out.emplace_back(add_loop(**loop, scope));
                continue;
            }
            if (std::holds_alternative<Free>(s)) continue;
            define(s, scope);
            out.emplace_back(kernel_.steps.next());
            Step step{.statement = &s, .scope = scope};
            if (const auto* compute = std::get_if<Compute>(&s))
                step.atom = num_atoms_, ++num_atoms_, step.reads = reads_of(*compute);
            kernel_.steps.push_back(std::move(step));
        }
        return out;
    }

private:
    LoopId add_loop(const TileLoop& loop, ScopeId scope) {
        const LoopId ref = kernel_.loops.next();
        kernel_.loops.push_back({&loop, ScopeId::of(ref + 1), scope});
        std::vector<Node> body = run(loop.body, kernel_.loop(ref).scope);
        kernel_.loops[ref].body = std::move(body);
        return ref;
    }

    void define(const TileStatement& s, ScopeId scope) {
        const auto at = [&](VariableId v) {
            Layout& layout = kernel_.layouts[v];
            if (layout.scope < 0) layout.scope = scope;
        };
        const auto use = [](std::vector<ArrayId>& list, ArrayId a) {
            if (!contains(list, a)) list.push_back(a);
        };
        if (const auto* load = std::get_if<Load>(&s)) {
            at(load->variable), use(kernel_.inputs, kernel_.variable(load->variable).array);
            std::optional<ScopeId>& first = kernel_.variable_facts[load->variable].load_scope;
            if (!first) first = scope;
        }
        if (const auto* store = std::get_if<Store>(&s)) use(kernel_.outputs, kernel_.variable(store->variable).array);
        if (const auto* init = std::get_if<Init>(&s)) at(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) at(compute->variable);
    }

    ScheduledKernel& kernel_;
    AtomId num_atoms_ = 0;
};

/// The remaining facts of a variable. Pre: the steps and the scope of its load are there.
void complete(VariableFacts& facts, const ScheduledKernel& kernel, VariableId id, bool is_whole) {
    const Variable& variable = kernel.variable(id);
    facts.is_whole = is_whole;
    for (std::size_t d = 0; d < variable.dims.size(); ++d) facts.is_cut |= is_cut(kernel, variable, d);
    facts.is_only_gathered = facts.load_scope && variable.gathers.empty() && none_of(kernel.steps, [&](const Step& step) {
                                 return reads(step, id) ||
                                        (variable_of(step) == id && !std::holds_alternative<Load>(*step.statement));
                             });
    if (variable.gathers.empty()) return;
    const Expr gathered = read(id, variable.gathers);
    facts.source = box_of(kernel.program->diagram, *kernel.kernel, *as<Read>(gathered)).source;
}

/// Notes that a statement accesses `block` values of the axis at a time, at these indices of the variable. The
/// variable's own axes may be others.
void touch(ScheduledKernel& kernel, VariableId id, const std::vector<Index>& indices, AxisId axis, std::int64_t block) {
    const std::vector<Index>& dims = kernel.variable(id).dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (!indices[d].depends_on(axis)) continue;
        const auto add = [&, &blocks = kernel.layouts[id].blocks](AxisId own) {
            if (!contains(blocks, std::pair(own, block))) blocks.emplace_back(own, block);
        };
        if (dims[d].depends_on(axis))
            add(axis);
        else
            for (const AxisId own : dims[d].axes()) add(own);
    }
}

/// Pads buffers and loops to whole register blocks.
void pad(ScheduledKernel& kernel) {
    const auto pad_axis = [&](AxisId axis, std::int64_t block) {
        for (Scope& scope : kernel.scopes) {
            Span& span = scope[axis];
            span.padded = std::max(span.padded, round_up(span.tile, block));
        }
    };
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        const Atom& atom = kernel.atom(step);
        for (const AxisId axis : {atom.vector_axis, atom.row_axis}) {
            if (axis < 0) continue;
            const std::int64_t block = kernel.block_size(atom, axis);
            pad_axis(axis, block);
            if (block == 1) continue;
            const VariableId target = std::get<Compute>(*step.statement).variable;
            touch(kernel, target, kernel.variable(target).dims, axis, block);
            for (const Read* r : step.reads) touch(kernel, r->variable(), r->indices, axis, block);
        }
    }
}

/// Fuses the statements of each run. What is loaded or computed between them comes before them, what is stored comes
/// after them. A loop ends a run. If the run goes on behind the loop, that is another run of the same number, which the
/// rules refuse.
std::vector<Node> with_fusions(ScheduledKernel& kernel, const std::vector<Node>& nodes) {
    const auto run_of = [&](const Node& node) {
        const StepId* s = std::get_if<StepId>(&node);
        return s && kernel.step(*s).atom >= 0 ? kernel.atom(kernel.step(*s)).run : -1;
    };
    std::vector<Node> out;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const int id = run_of(nodes[i]);
        if (id < 0) {
            out.push_back(nodes[i]);
            continue;
        }
        std::size_t last = i;
        for (std::size_t k = i; k < nodes.size() && std::holds_alternative<StepId>(nodes[k]); ++k)
            if (run_of(nodes[k]) == id) last = k;
        FusedStatements run;
        std::vector<Node> after;
        for (; i <= last; ++i) {
            if (run_of(nodes[i]) == id) {
                run.steps.push_back(std::get<StepId>(nodes[i]));
                continue;
            }
            const Step& other = kernel.step(std::get<StepId>(nodes[i]));
            (std::holds_alternative<Store>(*other.statement) ? after : out).push_back(nodes[i]);
        }
        --i;
        for (std::size_t k = 1; k < run.steps.size(); ++k)
            if (kernel.atom(kernel.step(run.steps[k])).follows) kernel.steps[run.steps[k - 1]].follower = run.steps[k];
        out.emplace_back(std::move(run));
        append(out, after);
    }
    return out;
}

}  // namespace

std::vector<AxisId> target_axes(const Variable& variable) {
    std::vector<AxisId> axes;
    axes.reserve(variable.dims.size());
    for (const Index& d : variable.dims) {
        internal_check(d.single_axis() >= 0, "schedule: a computed variable has a dimension that is not an axis");
        axes.push_back(d.single_axis());
    }
    return axes;
}

bool carries(const Variable& variable, AxisId axis) {
    return any_of(variable.dims, [&](const Index& d) { return d.depends_on(axis); });
}

VariableId variable_of(const Step& step) {
    const TileStatement& s = *step.statement;
    if (const auto* load = std::get_if<Load>(&s)) return load->variable;
    if (const auto* store = std::get_if<Store>(&s)) return store->variable;
    if (const auto* init = std::get_if<Init>(&s)) return init->variable;
    return std::get<Compute>(s).variable;
}

bool reads(const Step& step, VariableId variable) {
    return any_of(step.reads, [&](const Read* r) { return r->variable() == variable; });
}

bool adds_in_place(const Compute& compute) {
    const auto* kept = compute.carry ? as<Read>(compute.carry) : nullptr;
    return kept && kept->variable() == compute.variable;
}

std::vector<const Read*> reads_of(const Compute& compute) {
    std::vector<const Read*> out;
    const auto take = [&](const Expr& e) {
        if (const Read* r = as<Read>(e)) out.push_back(r);
    };
    visit(compute.body, take);
    if (compute.carry) visit(compute.carry, take);
    return out;
}

std::int64_t total_terms(const ScheduledKernel& kernel, const Compute& compute) {
    std::int64_t terms = 1;
    for (const AxisId a : compute.reduce_axes)
        terms = std::min(terms, std::int64_t{1} << 20) * std::min(kernel.extent(a), std::int64_t{1} << 20);
    return terms;
}

std::optional<std::int64_t> step_in_vector(const ScheduledKernel& kernel, const Index& index, AxisId axis) {
    if (!index.depends_on(axis)) return 0;
    if (index.affine()) return index.affine()->coefficient(axis);
    const auto* b = as<Binary>(index.value());
    const auto* of = b ? as<AxisIndex>(b->a) : nullptr;
    const auto* by = b ? as<Constant>(b->b) : nullptr;
    if (kernel.unit.warp_threads > 0 || !of || of->axis != axis || !by || std::fmod(by->value, kernel.lanes) != 0)
        return std::nullopt;
    const bool is_aligned = all_of(
        kernel.scopes, [&](const Scope& scope) { return !scope[axis].begins || scope[axis].tile % kernel.lanes == 0; });
    if (!is_aligned || (b->op != BinaryOp::floor_div && b->op != BinaryOp::mod)) return std::nullopt;
    return b->op == BinaryOp::mod ? 1 : 0;
}

LaneStep lane_step(const ScheduledKernel& kernel, const Read& r, AxisId axis) {
    std::int64_t step = 0;
    for (std::size_t d = 0; d < r.indices.size(); ++d) {
        const auto along = step_in_vector(kernel, r.indices[d], axis);
        if (!along || (*along != 0 && static_cast<int>(d) != kernel.place(r.variable()).innermost))
            return LaneStep::far;
        step += *along;
    }
    return step == 0 ? LaneStep::same : step == 1 ? LaneStep::near : LaneStep::far;
}

std::int64_t ScheduledKernel::num_groups() const { return napkin::num_groups(group_order); }

std::int64_t ScheduledKernel::num_sections() const {
    std::int64_t n = 1;
    if (has_uneven_groups())
        for (auto axis = group_order.begin(); !axis->is_uneven; ++axis) n *= axis->tiles;
    return n;
}

std::int64_t ScheduledKernel::num_blocks() const {
    // the most CTAs along a grid's first dimension: CUDA's technical specifications
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    const std::int64_t joined = cluster_blocks();
    if (schedule.threads.value > 1 && has_block_a_group()) return std::min(num_groups(), most / joined * joined);
    const std::int64_t asked = schedule.grid.value > 0 ? schedule.grid.value : num_groups();
    return std::max(std::min({schedule.threads.value, asked, num_groups(), most}) / joined, std::int64_t{1}) * joined;
}

std::int64_t ScheduledKernel::block_size(const Atom& atom, AxisId axis) const {
    if (axis == atom.vector_axis) return static_cast<std::int64_t>(lanes) * atom.vectors;
    return axis == atom.row_axis ? atom.rows : 1;
}

std::int64_t ScheduledKernel::reach(VariableId id, AxisId axis, std::int64_t count) const {
    std::int64_t most = count;
    for (const auto& [along, block] : layout(id).blocks)
        if (along == axis) most = std::max(most, round_up(count, block));
    return most;
}

bool runs_a_part(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    return !loop.loop->is_sub && kernel.kernel->parts.cut(loop.loop->axis);
}

Iterations iterations_of(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    const std::int64_t extent = kernel.extent(loop.loop->axis), tile = kernel.span(loop.loop->axis, loop.scope).tile;
    const bool is_empty_part = runs_a_part(kernel, loop) && kernel.program->diagram.axis(loop.loop->axis).is_any;
    return {is_empty_part || !loop.loop->support.empty() || !loop.loop->masks.empty() ? 0 : 1, (extent + tile - 1) / tile};
}

Iterations possible_iterations(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    Iterations out = iterations_of(kernel, loop);
    if (kernel.is_any(loop.loop->axis)) out.most = std::numeric_limits<std::int32_t>::max();
    return out;
}

std::int64_t possible_groups(const ScheduledKernel& kernel) {
    const bool any = any_of(kernel.kernel->group_axes, [&](AxisId axis) { return kernel.is_any(axis); });
    return any ? std::numeric_limits<std::int32_t>::max() : kernel.num_groups();
}

bool is_repeated(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    return !loop.loop->support.empty() || kernel.span(loop.loop->axis, loop.scope).begins || runs_a_part(kernel, loop);
}

SharedInstructions::SharedInstructions(std::vector<Instruction> all) {
    const auto first = find_if(all, [](const Instruction& i) { return i.tile.has_value(); });
    if (first == all.end()) return;
    const RegisterTile tile = *first->tile;
    std::erase_if(all, [&](const Instruction& i) { return i.tile != tile; });
    all_ = std::make_shared<const std::vector<Instruction>>(std::move(all));
}

std::int64_t SharedInstructions::warps_together() const {
    std::int64_t most = 1;
    for (const Instruction& i : *this) most = std::max(most, i.threads / i.d->mode(0).size());
    return most;
}

ScheduledKernel unscheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                            const Extents& extents, const VectorUnit& unit) {
    ScheduledKernel out;
    out.program = program;
    out.kernel = &program->kernels[kernel];
    out.extents = extents;
    out.unit = unit;
    out.layouts.resize(out.kernel->variables.size());
    out.variable_facts.resize(out.kernel->variables.size());
    for (const Variable& v : out.kernel->variables)
        out.is_double |= v.memory_type == DType::f64 || program->diagram.array(v.array).type == DType::f64;
    out.lanes = unit.warp_threads > 0 ? unit.warp_threads : unit.bytes / static_cast<int>(out.value_bytes());
    out.body = Flattening(out).run(out.kernel->body, 0);
    for (Layout& l : out.layouts) l.scope = std::max(l.scope, ScopeId(0));
    IntegerValues values(out);
    for (Step& step : out.steps)
        if (const auto* compute = std::get_if<Compute>(step.statement)) {
            step.is_whole = values.needs_integers(*compute);
            out.variable_facts[compute->variable].is_long |= values.may_be_long(*compute);
        }
    for (const VariableId v : out.variable_facts.ids()) complete(out.variable_facts[v], out, v, values.variables()[v]);
    return out;
}

ScheduledKernel with_sizes(ScheduledKernel unscheduled, KernelSchedule schedule) {
    add_sizes(unscheduled, std::move(schedule));
    return unscheduled;
}

void add_sizes(ScheduledKernel& out, KernelSchedule schedule) {
    out.schedule = std::move(schedule);
    const auto tile_of = [&](AxisId axis, std::int64_t size) {
        return out.is_any(axis) ? size : std::min(size, out.extent(axis));
    };
    const std::size_t num_axes = out.extents.size();
    out.sizes = {std::vector<std::int64_t>(num_axes), std::vector<std::int64_t>(num_axes)};
    for (const AxisId axis : out.kernel->group_axes)
        if (const auto found = out.schedule.group.find(axis); found != out.schedule.group.end())
            out.sizes.group[axis] = tile_of(axis, found->second.value);
    if (out.kernel->parts.any()) out.sizes.group[out.kernel->parts.part] = 1;
    out.sizes.sub.assign(num_axes, 0);
    for (const auto& [axis, choice] : out.schedule.subloop) out.sizes.sub[axis] = tile_of(axis, choice.value);
    for (const auto& [axis, choice] : out.schedule.stream) out.sizes.stream[axis] = tile_of(axis, choice.value);
    const auto any_of_axis = [&](AxisId axis) {
        const auto found = out.schedule.any.find(axis);
        return found == out.schedule.any.end() ? nullptr : &found->second;
    };
    Scope group(num_axes);
    for (const AxisId a : group.ids()) {
        const auto found = out.schedule.group.find(a);
        const bool is_longer = out.on_tensor_cores() && a != out.schedule.mma_m && found != out.schedule.group.end() &&
                               found->second.value > 1 && out.extents[a] == 1;
        group[a] = span_of(is_longer ? found->second.value : out.sizes.group[a], out.extents[a], any_of_axis(a), is_longer);
    }
    out.scopes = {std::move(group)};
    for (const ScheduledLoop& l : out.loops) {
        Scope inner = out.scope(l.outer_scope);
        Span& span = inner[l.loop->axis];
        span = span_of(k_block_of(*l.loop, out.sizes, out.extents), out.extent(l.loop->axis), any_of_axis(l.loop->axis));
        span.is_part = l.loop->is_sub && span.begins;
        out.scopes.push_back(std::move(inner));
    }
    out.group_order = group_order(out);
    // A vector axis of one value fills no vector: then each statement chooses its own.
    if (out.schedule.vector_axis >= 0 && out.span(out.schedule.vector_axis, 0).tile < 2)
        out.schedule.vector_axis.value = -1;
}

void apply_atoms(ScheduledKernel& kernel) {
    pad(kernel);
    if (any_of(kernel.schedule.atoms, [](const Atom& atom) { return atom.run >= 0; })) {
        kernel.body = with_fusions(kernel, kernel.body);
        for (ScheduledLoop& loop : kernel.loops) loop.body = with_fusions(kernel, loop.body);
    }
    const auto step_of = [&](int atom) { return find_if(kernel.steps, [&](const Step& s) { return s.atom == atom; }); };
    for (const TilePipelining& d : kernel.schedule.tile_pipelining)
        if (d.groups.value > 0 && d.in != d.atom) {
            const auto deferred = step_of(d.atom), in = step_of(d.in);
            in->deferred = kernel.number(*deferred), deferred->pipelined_into = kernel.number(*in);
        }
}

}  // namespace napkin
