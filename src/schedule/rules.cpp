#include "schedule/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedule/clocks.hpp"
#include "schedule/cluster.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/cut_groups.hpp"
#include "schedule/exponentials.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/lazy_maximum.hpp"
#include "schedule/ones_column.hpp"
#include "schedule/views.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

const Compute& compute_of(const ScheduledKernel& kernel, int step) {
    return std::get<Compute>(*kernel.step(step).statement);
}

/// Reads each element in the panel in which it is computed.
bool reads_in_panel(const ScheduledKernel& kernel, const Read& r) {
    const Variable& v = kernel.variable(r.array);
    const AxisId axis = kernel.schedule.vector_axis;
    for (std::size_t d = 0; d < r.indices.size(); ++d)
        if (v.dims[d].depends_on(axis) ? !(r.indices[d].is_axis(axis) && v.dims[d] == r.indices[d])
                                       : r.indices[d].depends_on(axis))
            return false;
    return true;
}

/// Collects for every variable the runs that touch it; -1 stands for everything outside of runs.
class RunUses {
public:
    explicit RunUses(const ScheduledKernel& kernel)
        : kernel_(kernel), runs_(kernel.layouts.size()), early_(kernel.layouts.size(), false) {
        walk(kernel.body);
        for (const ScheduledLoop& loop : kernel.loops) walk(loop.body);
    }
    /// It lives within one run, which defines each of its panels before it reads it.
    [[nodiscard]] bool in_one_run(std::size_t v) const {
        return runs_[v].size() == 1 && *runs_[v].begin() >= 0 && !early_[v];
    }

private:
    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const int* step = std::get_if<int>(&node)) touch(*step, -1);
            if (const auto* run = std::get_if<Run>(&node)) {
                std::set<VariableId> defined;
                for (const int s : run->steps) {
                    const auto& compute = std::get<Compute>(*kernel_.step(s).statement);
                    for (const Read* r : kernel_.step(s).reads)
                        if (!defined.contains(r->array)) early_[static_cast<std::size_t>(r->array)] = true;
                    defined.insert(compute.variable);
                    touch(s, next_run_);
                }
                ++next_run_;
            }
        }
    }

    void touch(int step, int run) {
        const auto use = [&](VariableId v) { runs_[static_cast<std::size_t>(v)].insert(run); };
        use(variable_of(kernel_.step(step)));
        for (const Read* r : kernel_.step(step).reads) use(r->array);
    }

    const ScheduledKernel& kernel_;
    std::vector<std::set<int>> runs_;
    std::vector<bool> early_;  ///< read before the run defines it
    int next_run_ = 0;
};

bool reads_variable(const Expr& e, VariableId variable) { return e && reads_array(e, variable); }

}  // namespace

bool may_join(const ScheduledKernel& kernel, const std::vector<int>& members, const Step& joining) {
    for (const int m : members) {
        for (const Read* r : joining.reads)
            if (compute_of(kernel, m).variable == r->array && !reads_in_panel(kernel, *r)) return false;
        for (const Read* r : kernel.step(m).reads)
            if (r->array == std::get<Compute>(*joining.statement).variable && !reads_in_panel(kernel, *r)) return false;
    }
    return true;
}

bool is_independent(const ScheduledKernel& kernel, const std::vector<int>& members, const Step& other) {
    const VariableId target = std::get<Compute>(*other.statement).variable;
    for (const int m : members) {
        const Compute& member = compute_of(kernel, m);
        if (member.variable == target) return false;
        for (const Read* r : kernel.step(m).reads)
            if (r->array == target) return false;
        for (const Read* r : other.reads)
            if (r->array == member.variable) return false;
    }
    return true;
}

bool may_follow(const ScheduledKernel& kernel, const Step& leader, const Step& after) {
    const auto& l = std::get<Compute>(*leader.statement);
    const auto& f = std::get<Compute>(*after.statement);
    const Atom &leading = kernel.atom(leader), &following = kernel.atom(after);
    if (leading.run < 0 || leading.run != following.run || leading.follows || leading.cut_axis >= 0) return false;
    if (!f.reduce || f.reduce_axes.size() != 1 || l.variable == f.variable || leader.scope != after.scope) return false;
    if (leader.is_whole || after.is_whole || following.cut_axis >= 0) return false;
    const AxisId axis = f.reduce_axes.front();
    const std::int64_t tile = kernel.span(axis, leader.scope).tile;
    if (tile < 2 || (leading.row_axis >= 0 && leading.row_axis != axis)) return false;

    std::vector<AxisId> points = target_axes(kernel.variable(f.variable)),
                        wanted = target_axes(kernel.variable(l.variable));
    points.push_back(axis);
    std::sort(points.begin(), points.end());
    std::sort(wanted.begin(), wanted.end());
    if (points != wanted) return false;

    if (reads_variable(l.body, f.variable) || reads_variable(l.carry, f.variable) ||
        reads_variable(f.body, f.variable) || reads_variable(f.carry, l.variable) || !reads_variable(f.body, l.variable))
        return false;
    bool at_the_point = true;
    visit(f.body, [&](const Expr& e) {
        const Read* r = as<Read>(e);
        if (r && r->array == l.variable) at_the_point &= r->indices == kernel.variable(l.variable).dims;
    });
    return at_the_point;
}

std::string why_not_in_place(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const Step *made = nullptr, *stored = nullptr;
    for (const Step& step : kernel.steps) {
        if (const auto* init = std::get_if<Init>(step.statement); init && init->variable == id)
            return "it grows from chunk to chunk";
        if (const auto* store = std::get_if<Store>(step.statement); store && store->variable == id) stored = &step;
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        for (const Read* r : step.reads)
            if (r->array == id) return "a statement reads it";
        if (compute->variable != id) continue;
        if (made) return "several statements make it";
        made = &step;
    }
    if (!made || !stored) return "it is not stored";
    if (made->scope != stored->scope) return "it is stored elsewhere than it is computed";
    if (contains(kernel.inputs, variable.array)) return "its array is loaded, too";
    if (variable.dims.empty()) return "it is a single value";
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
    const bool written = std::find(kernel.outputs.begin(), kernel.outputs.end(), variable.array) != kernel.outputs.end();
    const bool loaded = std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& s) {
        const auto* load = std::get_if<Load>(s.statement);
        return load && load->variable == id;
    });
    if (!loaded) return why_not_in_place(kernel, id).empty();
    if (is_only_looked_up(kernel, id)) return true;
    if (kernel.on_matrix_unit()) return may_be_read_by_threads(kernel, id);
    if (!variable.gathers.empty() && (kernel.in_blocks() || !lies_in_one_block(kernel, id))) return false;
    if (is_cut(kernel, variable) || written || last < 0) return false;
    if (std::any_of(variable.dims.begin(), variable.dims.end(), starts_late)) return false;
    return variable.memory_type == (kernel.is_double ? DType::f64 : DType::f32) && kernel.place(id).innermost == last;
}

/// A GPU's warps hide from each other what one of them waits for.
constexpr const char* of_a_cpu = "it is a CPU's cores whose caches are managed so";

std::string why_not_non_temporal(const ScheduledKernel& kernel, VariableId id) {
    if (kernel.in_blocks()) return of_a_cpu;
    if (!kernel.is_view(id)) return "it is not written in place";
    if (auto why = why_not_in_place(kernel, id); !why.empty()) return why;
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
    if (is_only_looked_up(kernel, id)) return "no statement computes with it";
    if (!variable.gathers.empty()) return "data decide where it lies";
    if (in.atom < 0 || kernel.atom(in).follows) return "the statement has no loops of its own";
    std::set<AxisId> points, wanted;
    bool moves = false;
    for (const Index& dim : variable.dims) {
        const AxisId axis = dim.single_axis();
        if (axis < 0) return "its indices are not plain axes";
        const Span& in_group = kernel.span(axis, 0);
        moves |= in_group.begins;
        if (in_group.tile > 1) wanted.insert(axis);
        const auto cut = [&](const Step& step) { return kernel.span(axis, step.scope).tile != in_group.tile; };
        if (cut(in) || std::any_of(loads.begin(), loads.end(), [&](const Step* s) { return cut(*s); }))
            return "a loop cuts it";
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

std::string_view why_no_rows_ahead(const ScheduledKernel& kernel, VariableId id, const Step& in) {
    if (kernel.in_blocks()) return of_a_cpu;
    const Variable& variable = kernel.variable(id);
    if (!contains(kernel.inputs, variable.array) || !kernel.is_view(id))
        return "it is not read where it lies in memory";
    if (!variable.gathers.empty()) return "data decide where it lies";
    if (in.atom < 0 || kernel.atom(in).follows) return "the statement has no loops of its own";
    const Atom& atom = kernel.atom(in);
    if (atom.rows == 1 || atom.reduced.empty() || atom.across)
        return "the statement does not reduce several rows at once";
    const AxisId inner = atom.reduced.back();
    if (kernel.span(inner, in.scope).tile == 1) return "its rows are single values";
    const bool reads = std::any_of(in.reads.begin(), in.reads.end(),
                                   [&](const Read* r) { return r->array == id && r->indices == variable.dims; });
    const bool has_rows = std::any_of(variable.dims.begin(), variable.dims.end(),
                                      [&](const Index& dim) { return dim.is_axis(atom.row_axis); });
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
    if (axis < 0 || inner < 0 || !variable.gathers.empty() || is_cut(kernel, variable) || kernel.is_whole(id))
        return false;
    if (!variable.dims[static_cast<std::size_t>(inner)].is_axis(axis) || variable.dims.size() < 2) return false;
    if (kernel.span(axis, kernel.layout(id).scope).tile <= kernel.panel()) return false;
    bool fits = false;
    for (const Step& step : kernel.steps) {
        if (const auto* store = std::get_if<Store>(step.statement); store && store->variable == id) return false;
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        if (compute->variable == id) return false;
        for (const Read* r : step.reads) {
            if (r->array != id) continue;
            const bool whole = kernel.span(axis, step.scope).tile == kernel.span(axis, kernel.layout(id).scope).tile;
            fits = kernel.atom(step).run >= 0 && r->indices == variable.dims && whole;
            if (!fits) return false;
        }
    }
    return fits;
}

std::vector<bool> in_one_run(const ScheduledKernel& kernel) {
    const RunUses uses(kernel);
    std::vector<bool> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) out.push_back(uses.in_one_run(v));
    return out;
}

int registers_of(const Atom& atom) { return atom.rows * atom.vectors + atom.vectors + 1; }

namespace {

/// What broken_rules() looks at, atom by atom and variable by variable.
class Rules {
public:
    explicit Rules(const ScheduledKernel& kernel)
        : k_(kernel), atoms_(atom_names(*kernel.kernel)), statements_(statement_names(*kernel.kernel)) {}

    std::vector<BrokenRule> run() {
        for (const Step& step : k_.steps)
            if (step.atom >= 0) check_atom(step);
        check_runs(k_.body);
        for (const ScheduledLoop& loop : k_.loops) check_runs(loop.body);
        check_places();
        check_matrix_unit();
        check_lazy_maximum();
        check_turns();
        check_column_parts();
        check_polynomials();
        check_prefetches();
        check_grid();
        check_cluster();
        check_parts();
        check_slots();
        if (k_.in_blocks() && broken_.empty())
            if (const std::string fault = out_of_order(k_); !fault.empty()) report(tensor(), "{}", fault);
        return std::move(broken_);
    }

private:
    template <class... Args>
    void report(const ScheduleField& field, fmt::format_string<Args...> format, Args&&... args) {
        broken_.push_back(
            {field, fmt::format("kernel {}: ", k_.kernel->name) + fmt::format(format, std::forward<Args>(args)...)});
    }
    // The fields that rules are about.
    [[nodiscard]] ScheduleField atom_of(const Step& step) const { return {"atom", atoms_.at(at(step.atom))}; }
    [[nodiscard]] ScheduleField place_of(VariableId id) const { return {"place", k_.variable(id).name}; }
    [[nodiscard]] ScheduleField slot_of(std::size_t step) const { return {"slot", statements_.at(step)}; }
    [[nodiscard]] ScheduleField tensor() const { return {"tensor", ""}; }
    [[nodiscard]] const char* on_either(const char* cpu, const char* gpu) const { return k_.in_blocks() ? gpu : cpu; }
    [[nodiscard]] const std::string& axis_name(AxisId axis) const { return k_.program->diagram.axis(axis).name; }

    void check_atom(const Step& step) {
        const auto& compute = std::get<Compute>(*step.statement);
        const Atom& a = k_.atom(step);
        const std::string& name = k_.variable(compute.variable).name;
        const ScheduleField field = atom_of(step);
        const std::vector<AxisId> targets = target_axes(k_.variable(compute.variable));
        const int inner = k_.place(compute.variable).innermost;
        if (a.rows < 1 || a.vectors < 1)
            return report(field, "the block of {} has {} rows of {} vectors", name, a.rows, a.vectors);
        if (step.is_whole && a.vector_axis >= 0) report(field, "{} computes integers, which fill no vectors", name);
        if (a.vector_axis >= 0 && !a.across && (inner < 0 || targets[static_cast<std::size_t>(inner)] != a.vector_axis))
            report(field, "{} fills vectors along {}, along which its values do not lie beside each other", name,
                   axis_name(a.vector_axis));
        if (a.shared && !k_.in_blocks())
            report(field, "{} is shared by warps, and a CPU's thread computes alone", name);
        if (a.shared && !a.across)
            report(field, "{} is shared by warps, and only what is reduced across lanes can be", name);
        if (a.shared && k_.place(compute.variable).holding != Holding::buffer)
            report(field, "{} is shared by warps, which meet in a buffer, and it is held as {}", name,
                   napkin::name(k_.place(compute.variable).holding));
        std::vector<AxisId> points = a.points, reduced = a.reduced;
        for (const AxisId axis : {a.vector_axis, a.row_axis})
            if (axis >= 0 && !k_.takes_blocks(axis, step.scope, k_.block_size(a, axis)))
                report(field,
                       "the subloop over {} has parts of {}, which blocks of {} do not cut without a remainder for {}",
                       axis_name(axis), k_.span(axis, step.scope).tile, k_.block_size(a, axis), name);
        if (a.vector_axis >= 0) (a.across ? reduced : points).push_back(a.vector_axis);
        if (a.row_axis >= 0) points.push_back(a.row_axis);
        check_axes(field, name, "points", points, targets);
        check_axes(field, name, "reduced axes", reduced, compute.reduce ? compute.reduce_axes : std::vector<AxisId>{});
        if (compute.reduce && !step.is_whole && registers_of(a) > k_.unit.registers)
            report(
                field,
                "the block of {} takes {} registers of {}: {} rows × {} vectors, {} operand{} and a broadcast; {} rows "
                "fit",
                name, registers_of(a), k_.unit.registers, a.rows, a.vectors, a.vectors, a.vectors == 1 ? "" : "s",
                std::max(1, (k_.unit.registers - 1) / a.vectors - 1));
        if (a.cut_axis >= 0 && (!compute.reduce || *compute.reduce != ReduceOp::sum || a.across || step.is_whole ||
                                a.cut < 1 || std::find(a.reduced.begin(), a.reduced.end(), a.cut_axis) == a.reduced.end()))
            report(field, "{} cannot be cut along {}: only sums are, along a loop of theirs", name, axis_name(a.cut_axis));
    }

    void check_axes(const ScheduleField& field, const std::string& name, const char* what, std::vector<AxisId> have,
                    std::vector<AxisId> want) {
        std::sort(have.begin(), have.end());
        std::sort(want.begin(), want.end());
        if (have != want) report(field, "the loops of {} are not over its {}", name, what);
    }

    void check_runs(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            const auto* run = std::get_if<Run>(&node);
            if (!run) continue;
            std::vector<int> members;
            for (const int s : run->steps) {
                const Step& step = k_.step(s);
                const Atom& a = k_.atom(step);
                const std::string& name = k_.variable(compute_of(k_, s).variable).name;
                if (a.across || a.vector_axis < 0 || a.vector_axis != k_.schedule.vector_axis ||
                    a.vectors != k_.schedule.panel_vectors)
                    report(atom_of(step), "{} is in a run, but does not go along its panels", name);
                if (!may_join(k_, members, k_.step(s)))
                    report(atom_of(step), "{} reads another panel of its run", name);
                if (a.follows && (members.empty() || !may_follow(k_, k_.step(members.back()), step)))
                    report(atom_of(step), "{} cannot ride in the loops of the statement before it", name);
                members.push_back(s);
            }
        }
    }

    void check_places() {
        const std::vector<bool> local = in_one_run(k_);
        for (std::size_t v = 0; v < k_.layouts.size(); ++v) {
            const auto id = static_cast<VariableId>(v);
            const Layout& l = k_.layout(id);
            const std::string& name = k_.variable(id).name;
            if (k_.is_view(id) && !may_be_view(k_, id)) {
                if (contains(k_.outputs, k_.variable(id).array))
                    report(place_of(id), "{} cannot be written where it goes in memory: {}", name, why_not_in_place(k_, id));
                else
                    report(place_of(id), "{} cannot be read where it lies in memory", name);
            }
            if (k_.place(id).non_temporal)
                if (const std::string why = why_not_non_temporal(k_, id); !why.empty())
                    report(place_of(id), "{} cannot be written past the caches: {}", name, why);
            if (k_.is_packed(id) && !may_be_packed(k_, id))
                report(place_of(id), "{} cannot lie in panels one after the other", name);
            if (k_.is_panel(id) && !local[v])
                report(place_of(id), "{} does not live within one run, and one panel of it is held", name);
            if (k_.place(id).stages != 1 && !k_.is_operand(id))
                report(place_of(id), "{} has {} stages: {}", name, k_.place(id).stages,
                       on_either("a CPU's loads are done when they return",
                                 "a block's loads are done before its warps go on, but those of operands"));
            if (k_.is_boxed(id)) check_boxes(id);
            if (!k_.is_held(id)) continue;
            if (l.offset < 0 || l.offset + l.count * k_.cell_values(k_.is_whole(id)) > k_.arena_values)
                report(place_of(id), "{} lies outside of the arena", name);
            for (std::size_t w = 0; w < v; ++w) check_apart(id, static_cast<VariableId>(w));
        }
    }

    void check_boxes(VariableId id) {
        const auto boxes = k_.on_matrix_unit() ? stored_boxes(k_, id) : std::nullopt;
        const std::string& name = k_.variable(id).name;
        if (!boxes)
            return report(place_of(id), "{} cannot be stored in boxes of 16 rows and 128 bytes by bulk copies", name);
        if (boxes->count % k_.place(id).boxes != 0)
            report(place_of(id),
                   "{} is stored in {} boxes of 128 bytes beside each other, of which {} at a time are no whole part",
                   name, boxes->count, k_.place(id).boxes);
    }

    void check_matrix_unit() {
        const MatrixRoles roles = k_.on_matrix_unit() ? matrix_roles(k_) : MatrixRoles{};
        if (!roles.refusal.empty()) return report(tensor(), "it cannot run on the matrix unit: {}", roles.refusal);
        for (const Step& step : k_.steps) {
            if (step.atom < 0) continue;
            const AtomKind kind = k_.on_matrix_unit() ? roles.atoms[static_cast<std::size_t>(step.atom)] : AtomKind::block;
            if (kind == AtomKind::fragment && k_.atom(step).kind == AtomKind::column)
                check_column(step);
            else if (k_.atom(step).kind != kind)
                report(atom_of(step), "{} is a {} atom, and can only be a {} one",
                       k_.variable(std::get<Compute>(*step.statement).variable).name, name(k_.atom(step).kind), name(kind));
        }
        std::map<int, int> stages;  // by scope
        for (std::size_t v = 0; v < k_.layouts.size(); ++v) {
            const auto id = static_cast<VariableId>(v);
            const auto role = k_.on_matrix_unit() ? roles.places[v] : std::nullopt;
            const bool is_apart = k_.is_in_registers(id) || k_.is_operand(id);
            if (role ? k_.place(id).holding != *role : is_apart)
                report(place_of(id), "{} is held as {}, and can only be {}", k_.variable(id).name,
                       name(k_.place(id).holding), role ? name(*role) : "elsewhere");
            if (!k_.is_operand(id)) continue;
            const int scope = k_.layout(id).scope, n = k_.place(id).stages;
            if (scope == 0 && n != 1 && (n != 2 || !k_.copying_role()))
                report(place_of(id),
                       "{} is loaded once a group, and has {} stages; a role may load it for the next group into a "
                       "second one",
                       k_.variable(id).name, n);
            if (const auto [first, is_new] = stages.try_emplace(scope, n); !is_new && first->second != n)
                report(place_of(id), "{} has {} stages beside another operand's {} in the same loop",
                       k_.variable(id).name, n, first->second);
        }
        if (spilled_registers(k_) > 0 && !may_spill(k_))
            report(tensor(), "its fragments take {} registers of {} of a thread", most_registers(k_), k_.unit.registers);
        if (k_.on_matrix_unit() && !k_.arena_in_core())
            report(tensor(), "its operands take more than a block's shared memory");
    }

    /// A sum that a product computes as a further column runs with it.
    void check_column(const Step& sum) {
        const std::string& name = k_.variable(variable_of(sum)).name;
        const auto found = product_beside(k_, sum);
        if (const auto* why = std::get_if<std::string>(&found))
            return report(atom_of(sum), "{} can be no column of ones beside a product: {}", name, *why);
        const Step& product = k_.step(std::get<int>(found));
        if (product.ahead != sum.ahead)
            report(slot_of(at(k_.number(sum))),
                   "{} is a column of the product {}, and runs {} turns ahead where that runs {}", name,
                   k_.variable(variable_of(product)).name, sum.ahead, product.ahead);
    }

    /// Products of a kernel are cut in as many parts, all of them.
    void check_column_parts() {
        std::int64_t parts = 1;
        for (const Atom& atom : k_.schedule.atoms) parts = std::max<std::int64_t>(parts, atom.parts);
        if (parts == 1) return;
        const auto found = columns_in_parts(k_, parts);
        for (const Step& step : k_.steps) {
            if (step.atom < 0) continue;
            const std::string& name = k_.variable(variable_of(step)).name;
            const int of_atom = k_.atom(step).parts;
            if (const auto* why = std::get_if<std::string>(&found); why && of_atom > 1)
                report(atom_of(step), "the columns of {} cannot be computed in {} parts: {}", name, of_atom, *why);
            else if (!why && (k_.atom(step).kind == AtomKind::matrix ? of_atom != parts : of_atom > 1))
                report(atom_of(step), "{} has {} parts of columns, where the loop's products, and they alone, have {}",
                       name, of_atom, parts);
        }
    }

    /// A thread computes as many exponentials of a row in every `of` of them.
    void check_polynomials() {
        for (const Step& step : k_.steps) {
            if (step.atom < 0 || k_.atom(step).polynomials == 0) continue;
            const Atom& atom = k_.atom(step);
            const std::string& name = k_.variable(variable_of(step)).name;
            const auto found = exponentials_of_row(k_, step);
            if (const auto* why = std::get_if<std::string>(&found)) {
                report(atom_of(step), "polynomials take the place of no exponential of {}: {}", name, *why);
            } else if (const std::int64_t n = std::get<std::int64_t>(found); n % atom.polynomials_of != 0) {
                report(
                    atom_of(step),
                    "a thread computes {} exponentials of each row of {}, of which every {} are no whole part; {} are",
                    n, name, atom.polynomials_of, nearest_divisor(n, atom.polynomials_of));
            } else if (atom.polynomials > atom.polynomials_of) {
                report(atom_of(step), "of every {} exponentials of {} no {} can be polynomials; {} can",
                       atom.polynomials_of, name, atom.polynomials, atom.polynomials_of);
            }
        }
    }

    void check_turns() {
        if (k_.schedule.turns.value > 0 && !turns_at_products(k_))
            report({"matrix", ""},
                   "there are no turns to take: two groups of four warps, beside a role, that begin a loop's turn with "
                   "several products");
    }

    void check_lazy_maximum() {
        if (k_.schedule.lazy.value == 0 || k_.lazy) return;
        report({"maximum", ""}, "its running maximum cannot lag: {}",
               k_.on_matrix_unit() ? std::get<std::string>(lazy_maximum(k_)) : "only one on a matrix unit may");
    }

    void check_parts() {
        const StreamParts& parts = k_.kernel->parts;
        const ScheduleField field{"split", parts.any() ? axis_name(parts.axis) : ""};
        const std::int64_t split = parts.any() ? k_.extent(parts.part) : 1;
        if (k_.schedule.split.value != split)
            report(field, "its stream is cut in {} part{}, where its program has {}", k_.schedule.split.value,
                   k_.schedule.split.value == 1 ? "" : "s", split);
        if (!parts.any()) return;
        const std::int64_t size = chunk_of(parts.axis, false, k_.sizes, k_.extents),
                           chunks = (k_.extent(parts.axis) + size - 1) / size;
        if (split > chunks)
            report(field, "its stream is cut in {} parts, but {} has {} chunk{} of {}: {} part{} fit", split,
                   axis_name(parts.axis), chunks, chunks == 1 ? "" : "s", size, chunks, chunks == 1 ? "" : "s");
    }

    /// A core, or a block of warps, runs one statement after the other, as they stand.
    void check_slots() {
        check_roles();
        for (const std::string& fault : slot_faults(k_)) report(slot_in(fault), "{}", fault);
        for (const auto& [statement, slot] : k_.schedule.slots)
            if ((slot.position != 0 || slot.ahead != 0) && !k_.copying_role())
                report(slot_of(at(statement)),
                       "{} has position {}, {} ahead: {} runs statements one after the other, as they stand",
                       statements_.at(at(statement)), slot.position, slot.ahead,
                       on_either("a CPU's core", "a GPU's block"));
    }

    /// Of the first statement with a position that the fault names.
    [[nodiscard]] ScheduleField slot_in(const std::string& fault) const {
        ScheduleField first{"slot", ""};
        std::size_t begin = fault.size();
        for (const auto& [statement, slot] : k_.schedule.slots) {
            if (slot.position == 0 && slot.ahead == 0) continue;
            const std::string word = " " + k_.variable(variable_of(k_.step(statement))).name, text = " " + fault;
            const std::size_t found = std::min(text.find(word + " "), text.find(word + ","));
            if (found < begin) begin = found, first = slot_of(at(statement));
        }
        return first;
    }

    /// Warps of a role ask for bulk copies of operands, and for all of them.
    void check_roles() {
        const std::vector<Role>& roles = k_.schedule.roles;
        if (!roles.empty() && !(k_.on_matrix_unit() && k_.has_bulk_copies()))
            return report({"role", roles[0].name}, "it has role {}: {}, and have no roles", roles[0].name,
                          on_either("a CPU's threads each run whole groups",
                                    "a block's warps all run every statement where no bulk copies bring operands"));
        if (roles.size() > 1)
            report({"role", roles[1].name}, "it has role {} beside role {}: one asks for copies", roles[1].name,
                   roles[0].name);
        if (!roles.empty() && (roles[0].workers % 4 != 0 || k_.schedule.warps.value % roles[0].workers != 0))
            report({"role", roles[0].name},
                   "role {} has {} warps, and not whole warpgroups of 4, of which {} warps are a multiple",
                   roles[0].name, roles[0].workers, k_.schedule.warps.value);
        for (std::size_t s = 0; s < k_.steps.size() && !roles.empty(); ++s) {
            const auto slot = k_.schedule.slots.find(static_cast<int>(s));
            const auto* load = std::get_if<Load>(k_.steps[s].statement);
            const bool copies = load && k_.is_operand(load->variable),
                       is_in_role = slot != k_.schedule.slots.end() && slot->second.role >= 0;
            if (copies != is_in_role)
                report(slot_of(s), "{} runs {} role {}, which asks for the copies of operands and does nothing else",
                       statements_.at(s), is_in_role ? "in" : "outside of", roles[0].name);
        }
    }

    void check_prefetches() {
        for (const Prefetch& p : k_.schedule.prefetches) {
            const auto in = std::find_if(k_.steps.begin(), k_.steps.end(),
                                         [&](const Step& s) { return s.atom == p.atom; });
            if (p.ahead.value == 0 || in == k_.steps.end()) continue;
            const std::string &name = k_.variable(p.variable).name,
                              &where = k_.variable(std::get<Compute>(*in->statement).variable).name;
            const bool is_blocks = p.fetched == Fetched::blocks;
            if (const std::string why = is_blocks ? std::string(why_no_rows_ahead(k_, p.variable, *in))
                                                  : why_not_prefetched(k_, p.variable, *in);
                !why.empty())
                report({"prefetch", name}, "{} cannot be fetched ahead in {}: {}", name, where, why);
            else if (const Atom& atom = k_.atom(*in); is_blocks && p.ahead.value * atom.rows >= k_.extent(atom.row_axis))
                report({"prefetch", name}, "{} is fetched {} blocks of {} rows ahead, and it has {} rows", name,
                       p.ahead.value, atom.rows, k_.extent(atom.row_axis));
            if (!is_blocks && p.ahead.value >= k_.num_groups())
                report({"prefetch", name}, "{} is fetched {} groups ahead, and there are {}", name, p.ahead.value,
                       k_.num_groups());
        }
    }

    /// Of blocks that do not all run at once each has one group, and shared memory for it.
    void check_grid() {
        const std::int64_t grid = k_.schedule.grid.value, at_once = k_.schedule.threads.value, groups = k_.num_groups();
        if (k_.takes_from_queue() && !(k_.copying_role() && k_.has_bulk_copies()))
            report({"groups", ""}, "a queue of groups needs a role that copies, which asks for the next one");
        else if (k_.takes_from_queue() && grid >= groups)
            report({"groups", ""}, "a grid of {} blocks has one for each of {} groups: none is left in a queue", grid,
                   groups);
        if (k_.cuts_groups())
            if (const auto cut = cut_groups(k_); const auto* why = std::get_if<std::string>(&cut))
                report({"groups", ""}, "no groups are cut: {}", *why);
        if (grid == 0) return;
        if (!k_.in_blocks())
            report({"grid", ""}, "it has a grid of {} blocks: a CPU's threads each run whole groups", grid);
        else if (grid > at_once && !k_.arena_in_core())
            report({"grid", ""}, "a grid of {} blocks is more than the {} that have an arena in memory", grid, at_once);
        else if (grid > at_once && grid < groups)
            report({"grid", ""},
                   "a grid of {} blocks: at most the {} that run at once take groups in turn, or each of {} groups has "
                   "one",
                   grid, at_once, groups);
    }

    void check_cluster() {
        if (const std::string why = why_no_cluster(k_); !why.empty())
            report({"cluster", axis_name(k_.schedule.cluster_axis)}, "{} blocks along {} are no cluster: {}",
                   k_.cluster_blocks(), axis_name(k_.schedule.cluster_axis), why);
    }

    void check_apart(VariableId a, VariableId b) {
        const Layout &x = k_.layout(a), &y = k_.layout(b);
        if (!k_.is_held(b) || x.over == b || y.over == a) return;
        const auto end = [&](VariableId id) {
            return k_.layout(id).offset + k_.layout(id).count * k_.cell_values(k_.is_whole(id));
        };
        if (k_.live_together(a, b) && x.offset < end(b) && y.offset < end(a))
            report(place_of(a), "{} and {} share memory while both live", k_.variable(a).name, k_.variable(b).name);
    }

    const ScheduledKernel& k_;
    const std::vector<std::string> atoms_, statements_;
    std::vector<BrokenRule> broken_;
};

}  // namespace

std::vector<BrokenRule> broken_rules(const ScheduledKernel& kernel) { return Rules(kernel).run(); }

std::vector<std::string> verify(const ScheduledKernel& kernel) {
    std::vector<std::string> messages;
    for (BrokenRule& rule : broken_rules(kernel)) messages.push_back(std::move(rule.message));
    return messages;
}

}  // namespace napkin
