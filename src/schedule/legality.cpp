#include "schedule/legality.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/thread_runs.hpp"
#include "schedule/views.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

const Compute& compute_of(const ScheduledKernel& kernel, StepId step) {
    return std::get<Compute>(*kernel.step(step).statement);
}

/// Whether the read takes each element in the panel in which it is computed.
bool reads_in_panel(const ScheduledKernel& kernel, const Read& r) {
    const Variable& v = kernel.variable(r.variable());
    const AxisId axis = kernel.schedule.vector_axis;
    for (std::size_t d = 0; d < r.indices.size(); ++d)
        if (v.dims[d].depends_on(axis) ? !(r.indices[d].is_axis(axis) && v.dims[d] == r.indices[d])
                                       : r.indices[d].depends_on(axis))
            return false;
    return true;
}

/// Finds for every variable the fused statements that access it.
class FusionUses {
public:
    explicit FusionUses(const ScheduledKernel& kernel)
        : kernel_(kernel), runs_(kernel.layouts.size(), untouched), early_(kernel.layouts.size(), false) {
        walk(kernel.body);
        for (const ScheduledLoop& loop : kernel.loops) walk(loop.body);
    }
    /// Only one set of fused statements accesses it, and defines each of its panels before it reads it.
    [[nodiscard]] bool in_one_fusion(std::size_t v) const { return runs_[v] >= 0 && !early_[v]; }

private:
    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const StepId* step = std::get_if<StepId>(&node)) touch(*step, elsewhere);
            if (const auto* run = std::get_if<FusedStatements>(&node)) {
                std::vector<VariableId> defined;
                for (const StepId s : run->steps) {
                    const auto& compute = std::get<Compute>(*kernel_.step(s).statement);
                    for (const Read* r : kernel_.step(s).reads)
                        if (!contains(defined, r->variable())) early_[at(r->variable())] = true;
                    defined.push_back(compute.variable);
                    touch(s, next_run_);
                }
                ++next_run_;
            }
        }
    }

    void touch(StepId step, int run) {
        const auto use = [&](VariableId v) {
            int& only = runs_[at(v)];
            only = only == untouched || only == run ? run : elsewhere;
        };
        use(variable_of(kernel_.step(step)));
        for (const Read* r : kernel_.step(step).reads) use(r->variable());
    }

    /// Accessed by nothing; outside fused statements, or by several sets of them.
    static constexpr int untouched = -2, elsewhere = -1;
    const ScheduledKernel& kernel_;
    std::vector<int> runs_;
    std::vector<bool> early_;  ///< read before its fused statements define it
    int next_run_ = 0;
};

}  // namespace

bool may_join(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& joining) {
    for (const StepId m : members) {
        for (const Read* r : joining.reads)
            if (compute_of(kernel, m).variable == r->variable() && !reads_in_panel(kernel, *r)) return false;
        for (const Read* r : kernel.step(m).reads)
            if (r->variable() == std::get<Compute>(*joining.statement).variable && !reads_in_panel(kernel, *r))
                return false;
    }
    return true;
}

bool is_independent(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& other) {
    const VariableId target = std::get<Compute>(*other.statement).variable;
    for (const StepId m : members) {
        const Compute& member = compute_of(kernel, m);
        if (member.variable == target) return false;
        for (const Read* r : kernel.step(m).reads)
            if (r->variable() == target) return false;
        for (const Read* r : other.reads)
            if (r->variable() == member.variable) return false;
    }
    return true;
}

bool looks_up(const ScheduledKernel& k, const Step& step, VariableId id) {
    const auto* load = std::get_if<Load>(step.statement);
    if (!load) return false;
    const std::vector<Index>& gathers = k.variable(load->variable).gathers;
    return std::any_of(gathers.begin(), gathers.end(),
                       [&](const Index& i) { return i.is_gathered() && reads_variable(*i.expression(), id); });
}

bool must_keep_order(const ScheduledKernel& k, const Step& a, const Step& b) {
    const auto one = [&](const Step& writer, const Step& other) {
        const VariableId v = variable_of(writer), w = variable_of(other);
        // A store writes to memory and only reads its tile. It keeps its order with loads of the same array.
        if (std::holds_alternative<Store>(*writer.statement))
            return std::holds_alternative<Load>(*other.statement) && k.variable(w).array == k.variable(v).array;
        if (k.is_operand(v) || k.is_read_by_threads(v)) return false;
        return w == v || reads(other, v) || looks_up(k, other, v);
    };
    return one(a, b) || one(b, a);
}

bool may_fuse_reduction(const ScheduledKernel& kernel, const Step& leader, const Step& after) {
    const auto& l = std::get<Compute>(*leader.statement);
    const auto& f = std::get<Compute>(*after.statement);
    const Atom &leading = kernel.atom(leader), &following = kernel.atom(after);
    if (leading.run < 0 || leading.run != following.run || leading.follows || leading.cut_axis >= 0) return false;
    if (!f.reduce || f.reduce_axes.size() != 1 || l.variable == f.variable || leader.scope != after.scope) return false;
    if (leader.is_whole || after.is_whole || following.cut_axis >= 0) return false;
    if (leading.terms > 1 || following.terms > 1) return false;
    const AxisId axis = f.reduce_axes.front();
    const std::int64_t tile = kernel.span(axis, leader.scope).tile;
    if (tile < 2 || (leading.row_axis >= 0 && leading.row_axis != axis)) return false;

    std::vector<AxisId> points = target_axes(kernel.variable(f.variable)),
                        wanted = target_axes(kernel.variable(l.variable));
    points.push_back(axis);
    sort(points);
    sort(wanted);
    if (points != wanted) return false;

    if (reads_variable(l.body, f.variable) || reads_variable(l.carry, f.variable) ||
        reads_variable(f.body, f.variable) || reads_variable(f.carry, l.variable) || !reads_variable(f.body, l.variable))
        return false;
    bool at_the_point = true;
    visit(f.body, [&](const Expr& e) {
        const Read* r = as<Read>(e);
        if (r && r->variable() == l.variable) at_the_point &= r->indices == kernel.variable(l.variable).dims;
    });
    return at_the_point;
}

std::string_view why_not_in_place(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const Step *made = nullptr, *stored = nullptr;
    for (const Step& step : kernel.steps) {
        if (const auto* init = std::get_if<Init>(step.statement); init && init->variable == id)
            return "it grows from chunk to chunk";
        if (const auto* store = std::get_if<Store>(step.statement); store && store->variable == id) stored = &step;
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        for (const Read* r : step.reads)
            if (r->variable() == id) return "a statement reads it";
        if (compute->variable != id) continue;
        if (made) return "several statements make it";
        made = &step;
    }
    if (!made || !stored) return "it is not stored";
    if (made->scope != stored->scope) return "it is stored elsewhere than it is computed";
    if (contains(kernel.inputs, variable.array)) return "its array is loaded, too";
    if (variable.dims.empty()) return "it is a single value";
    if (is_written_by_runs(kernel, id)) return "";
    if (variable.memory_type != (kernel.is_double ? DType::f64 : DType::f32) || kernel.is_whole(id) || made->is_whole)
        return "memory has it in another type";
    if (kernel.place(id).innermost + 1 != static_cast<int>(variable.dims.size()))
        return "its neighbours in memory do not lie beside each other at the core";
    const Atom& atom = kernel.atom(*made);
    if (atom.cut_axis >= 0) return "its sum is cut into parts";
    return atom.follows ? "it rides in another statement's loops" : "";
}

bool may_be_view(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const int last = static_cast<int>(variable.dims.size()) - 1;
    const bool written = contains(kernel.outputs, variable.array);
    if (!kernel.facts(id).load_scope) return written && why_not_in_place(kernel, id).empty();
    if (kernel.facts(id).is_only_gathered) return true;
    if (kernel.on_tensor_cores()) return may_be_read_by_threads(kernel, id);
    if (may_be_read_by_runs(kernel, id)) return true;
    if (!variable.gathers.empty() && (kernel.in_blocks() || !lies_in_one_block(kernel, id))) return false;
    if (kernel.facts(id).is_cut || written || last < 0) return false;
    if (any_of(variable.dims, starts_late)) return false;
    return variable.memory_type == (kernel.is_double ? DType::f64 : DType::f32) && kernel.place(id).innermost == last;
}

/// A GPU hides what one warp waits for behind its other warps.
constexpr const char* of_a_cpu = "it is a CPU's cores whose caches are managed so";

std::string why_not_non_temporal(const ScheduledKernel& kernel, VariableId id) {
    if (kernel.in_blocks()) return of_a_cpu;
    if (!kernel.is_view(id)) return "it is not written in place";
    if (const auto why = why_not_in_place(kernel, id); !why.empty()) return std::string(why);
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && std::get<Compute>(*step.statement).variable == id)
            if (const Atom& atom = kernel.atom(step); atom.vector_axis < 0 || atom.across)
                return "it is written value by value";
    return "";
}

std::string why_not_prefetched(const ScheduledKernel& kernel, VariableId id, const Step& in) {
    if (kernel.in_blocks()) return of_a_cpu;
    const Variable& variable = kernel.variable(id);
    const std::vector<const Step*> loads = [&] {
        std::vector<const Step*> found;
        for (const Step& step : kernel.steps)
            if (const auto* load = std::get_if<Load>(step.statement); load && load->variable == id)
                found.push_back(&step);
        return found;
    }();
    if (loads.empty() || !kernel.is_view(id)) return "it is not read where it lies in memory";
    if (kernel.facts(id).is_only_gathered) return "no statement computes with it";
    if (!variable.gathers.empty()) return "data decide where it lies";
    if (in.atom < 0 || kernel.atom(in).follows || in.is_tile_pipelined())
        return "the statement has no loops of its own";
    std::set<AxisId> points, wanted;
    bool moves = false;
    for (const Index& dim : variable.dims) {
        const AxisId axis = dim.single_axis();
        if (axis < 0) return "its indices are not plain axes";
        const Span& in_group = kernel.span(axis, 0);
        moves |= in_group.begins;
        if (in_group.tile > 1) wanted.insert(axis);
        // A loop over K blocks of any number cuts it even where there is one.
        const auto cut = [&](const Step& step) {
            const Span& span = kernel.span(axis, step.scope);
            return span.tile != in_group.tile || span.begins != in_group.begins;
        };
        if (cut(in) || any_of(loads, [&](const Step* s) { return cut(*s); })) return "a loop cuts it";
    }
    if (!moves) return "every group reads the same tile";
    const Atom& atom = kernel.atom(in);
    const auto take = [&](AxisId axis) {
        if (axis >= 0 && kernel.span(axis, in.scope).tile > 1) points.insert(axis);
    };
    for (const AxisId axis : atom.points) take(axis);
    for (const AxisId axis : atom.reduced) take(axis);
    take(atom.vector_axis), take(atom.row_axis);
    if (points != wanted || atom.vector_axis < 0 || variable.dims.back().single_axis() != atom.vector_axis)
        return "the statement's vectors do not go over its points";
    return "";
}

namespace {

/// The two run the same blocks in the same loops.
bool have_same_loops(const Atom& a, const Atom& b) {
    return a.kind == AtomKind::block && b.kind == AtomKind::block && a.vector_axis == b.vector_axis &&
           a.across == b.across && a.vectors == b.vectors && a.row_axis == b.row_axis && a.rows == b.rows &&
           a.vector_inner == b.vector_inner && a.points == b.points;
}

/// Every output tile loads the same tile of the variable.
bool is_same_in_all_groups(const ScheduledKernel& kernel, const Variable& variable) {
    return variable.gathers.empty() && all_of(variable.dims, [&](const Index& dim) {
               return dim.affine() && none_of(dim.axes(), [&](AxisId axis) { return kernel.span(axis, 0).begins; });
           });
}

/// Why what the read finds is gone when the next output tile comes to the point of the statement `in`; empty: it is
/// still there.
std::string why_gone(const ScheduledKernel& kernel, const Read& read, const Step& in) {
    const Variable& variable = kernel.variable(read.variable());
    if (any_of(read.indices, [](const Index& index) { return index.single_axis() < 0; }))
        return fmt::format("it reads {} at indices that are not plain axes", variable.name);
    // What is loaded still lies in memory, or is loaded again.
    if (kernel.facts(read.variable()).load_scope) {
        if (contains(kernel.outputs, variable.array))
            return fmt::format("it reads {}, whose array is written, too", variable.name);
        const bool is_there = kernel.is_view(read.variable()) && !kernel.layout(read.variable()).may_overrun &&
                              variable.gathers.empty();
        return is_there || is_same_in_all_groups(kernel, variable)
                   ? ""
                   : fmt::format("it reads {}, whose tile is another one then", variable.name);
    }
    if (kernel.place(read.variable()).holding != MemorySpace::buffer)
        return fmt::format("it reads {}, which has no tile of its own", variable.name);
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 ? variable_of(step) != read.variable() || std::holds_alternative<Store>(*step.statement)
                          : std::get<Compute>(*step.statement).variable != read.variable())
            continue;
        const bool at_the_point = &step == &in && read.indices == variable.dims;
        if (&step <= &in && !at_the_point)
            return fmt::format("it reads {}, which is overwritten before", variable.name);
    }
    return "";
}

}  // namespace

std::string why_not_tile_pipelined(const ScheduledKernel& kernel, const Step& deferred, const Step& in) {
    if (kernel.in_blocks()) return of_a_cpu;
    if (deferred.atom < 0 || in.atom < 0 || &in >= &deferred) return "the other one does not compute before it";
    const auto &compute = std::get<Compute>(*deferred.statement), &other = std::get<Compute>(*in.statement);
    if (!kernel.loops.empty() || kernel.kernel->parts.any()) return "a group has loops";
    if (!kernel.is_view(compute.variable) || kernel.layout(compute.variable).may_overrun)
        return "its result is not written in place";
    if (const auto why = why_not_in_place(kernel, compute.variable); !why.empty())
        return fmt::format("its result is not written in place: {}", why);
    if (compute.reduce || other.reduce || other.carry) return "only maps share loops so";
    const Atom &own = kernel.atom(deferred), &of_other = kernel.atom(in);
    if (own.run >= 0 || of_other.run >= 0 || deferred.is_whole || in.is_whole || !have_same_loops(own, of_other) ||
        kernel.is_view(other.variable))
        return "the two do not run the same blocks in the same loops";
    const std::vector<AxisId> axes = target_axes(kernel.variable(compute.variable));
    if (any_of(axes, [&](AxisId axis) { return kernel.span(axis, 0).ragged || kernel.is_any(axis); }))
        return "some groups have fewer points than others";
    bool knows_place = false;
    visit(compute.body, [&](const Expr& e) {
        const AxisIndex* index = as<AxisIndex>(e);
        knows_place |= index && kernel.span(index->axis, 0).begins;
    });
    if (knows_place || compute.carry) return "it computes with where its group stands";
    for (const Read* r : deferred.reads)
        if (std::string why = why_gone(kernel, *r, in); !why.empty()) return why;
    return kernel.prefetches_in(deferred).empty() ? "" : "tiles are fetched ahead in its own loops";
}

std::string_view why_no_rows_ahead(const ScheduledKernel& kernel, VariableId id, const Step& in) {
    if (kernel.in_blocks()) return of_a_cpu;
    const Variable& variable = kernel.variable(id);
    if (!contains(kernel.inputs, variable.array) || !kernel.is_view(id))
        return "it is not read where it lies in memory";
    if (!variable.gathers.empty()) return "data decide where it lies";
    if (in.atom < 0 || kernel.atom(in).follows || in.is_tile_pipelined())
        return "the statement has no loops of its own";
    const Atom& atom = kernel.atom(in);
    if (atom.rows == 1 || atom.reduced.empty() || atom.across)
        return "the statement does not reduce several rows at once";
    const AxisId inner = atom.reduced.back();
    if (kernel.span(inner, in.scope).tile == 1) return "its rows are single values";
    const bool reads = any_of(in.reads, [&](const Read* r) { return r->variable() == id && r->indices == variable.dims; });
    const bool has_rows = any_of(variable.dims, [&](const Index& dim) { return dim.is_axis(atom.row_axis); });
    if (!reads || !has_rows || !variable.dims.back().is_axis(inner) || carries(variable, atom.vector_axis))
        return "the statement's rows are not the tile's";
    return "";
}

bool rows_share_pages(const ScheduledKernel& kernel, VariableId id, const Step& in) {
    if (!why_no_rows_ahead(kernel, id, in).empty()) return false;
    const Variable& variable = kernel.variable(id);
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
        if (variable.dims[d].is_axis(kernel.atom(in).row_axis))
            return kernel.layout(id).strides[d] * kernel.value_bytes() < page_bytes;
    return false;
}

bool may_be_packed(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const AxisId axis = kernel.schedule.vector_axis;
    const int inner = kernel.place(id).innermost;
    if (axis < 0 || inner < 0 || !variable.gathers.empty() || kernel.facts(id).is_cut || kernel.is_whole(id))
        return false;
    if (!variable.dims[at(inner)].is_axis(axis) || variable.dims.size() < 2) return false;
    // A diagonal such as D[q, q] goes from row to row as well as from panel to panel.
    if (count_if(variable.dims, [&](const Index& dim) { return dim.depends_on(axis); }) != 1) return false;
    if (kernel.span(axis, kernel.layout(id).scope).tile <= kernel.panel()) return false;
    bool fits = false;
    for (const Step& step : kernel.steps) {
        if (const auto* store = std::get_if<Store>(step.statement); store && store->variable == id) return false;
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        if (compute->variable == id) return false;
        for (const Read* r : step.reads) {
            if (r->variable() != id) continue;
            const bool whole = kernel.span(axis, step.scope).tile == kernel.span(axis, kernel.layout(id).scope).tile;
            fits = kernel.atom(step).run >= 0 && r->indices == variable.dims && whole;
            if (!fits) return false;
        }
    }
    return fits;
}

std::vector<bool> in_one_fusion(const ScheduledKernel& kernel) {
    const FusionUses uses(kernel);
    std::vector<bool> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) out.push_back(uses.in_one_fusion(v));
    return out;
}

int registers_of(const Atom& atom) {
    const int operands = atom.across && atom.rows == 1 ? 1 : atom.vectors;
    return atom.rows * atom.vectors + operands + 1;
}

}  // namespace napkin
