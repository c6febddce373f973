// Rules about statements, fused or not, and about where their variables lie.
#include "schedule/rule_report.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "schedule/accumulators.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/lane_product.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/legality.hpp"
#include "schedule/views.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

class StatementRules : RuleReport {
public:
    using RuleReport::RuleReport;

    std::vector<BrokenRule> run() {
        for (const Step& step : k_.steps)
            if (step.atom >= 0) check_atom(step);
        check_panel();
        check_fusions(k_.body);
        for (const ScheduledLoop& loop : k_.loops) check_fusions(loop.body);
        check_storage();
        return take();
    }

private:
    void check_atom(const Step& step) {
        const auto& compute = std::get<Compute>(*step.statement);
        const Atom& a = k_.atom(step);
        const std::string& name = k_.variable(compute.variable).name;
        const ScheduleField field = atom_of(step);
        const std::vector<AxisId> targets = target_axes(k_.variable(compute.variable));
        const int inner = k_.place(compute.variable).innermost;
        if (a.rows < 1 || a.vectors < 1)
            return report(field, "the block of {} has {} rows of {} vectors", name, a.rows, a.vectors);
        if (step.is_whole && a.vector_axis >= 0 && a.terms == 1)
            report(field, "{} computes integers, which fill no vectors", name);
        if (a.terms != 1) check_terms(step, field, name);
        if (a.vector_axis >= 0 && !a.across && (inner < 0 || targets[at(inner)] != a.vector_axis))
            report(field, "{} fills vectors along {}, along which its values do not lie beside each other", name,
                   axis_name(a.vector_axis));
        if (a.shared && !k_.in_blocks())
            report(field, "{} is shared by warps, and a CPU's thread computes alone", name);
        if (a.shared && !a.across)
            report(field, "{} is shared by warps, and only what is reduced across lanes can be", name);
        if (a.shared && k_.place(compute.variable).holding != MemorySpace::buffer && !k_.is_in_lanes(compute.variable))
            report(field, "{} is shared by warps, which meet in a buffer, and it is held as {}", name,
                   napkin::name(k_.place(compute.variable).holding));
        std::vector<AxisId> points = a.points, reduced = a.reduced;
        for (const AxisId axis : {a.vector_axis, a.row_axis})
            if (axis >= 0 && !k_.takes_blocks(axis, step.scope, k_.block_size(a, axis)))
                report(field,
                       "the subloop over {} has parts of {}, which blocks of {} do not cut without a remainder for {}",
                       axis_name(axis), k_.span(axis, step.scope).tile, k_.block_size(a, axis), name);
        if (a.row_axis >= 0 && a.rows > k_.extent(a.row_axis) && !k_.is_any(a.row_axis)) {
            Atom fitting = a;
            fitting.rows = static_cast<int>(k_.extent(a.row_axis));
            while (compute.reduce && fitting.rows > 1 && registers_of(fitting) > k_.unit.registers) --fitting.rows;
            report(field, "the block of {} has {} rows of {}, which has {} value{}", name, a.rows,
                   axis_name(a.row_axis), k_.extent(a.row_axis), k_.extent(a.row_axis) == 1 ? "" : "s");
            broken_.back().nearest = fmt::format("{} row{} fit{}", fitting.rows, fitting.rows == 1 ? "" : "s",
                                                 fitting.rows == 1 ? "s" : "");
            return;
        }
        if (a.vector_axis >= 0) (a.across ? reduced : points).push_back(a.vector_axis);
        if (a.row_axis >= 0) points.push_back(a.row_axis);
        check_axes(field, name, "points", points, targets);
        check_axes(field, name, "reduced axes", reduced, compute.reduce ? compute.reduce_axes : std::vector<AxisId>{});
        if (compute.reduce && (!step.is_whole || a.terms > 1) && registers_of(a) > k_.unit.registers) {
            const int operands = registers_of(a) - a.rows * a.vectors - 1;
            const auto plural = [](int n) { return n == 1 ? "" : "s"; };
            Atom fitting = a;
            int& fit = a.rows == 1 ? fitting.vectors : fitting.rows;
            while (fit > 1 && registers_of(fitting) > k_.unit.registers) --fit;
            if (a.rows == 1 && a.vector_axis >= 0 && a.vector_axis == k_.schedule.vector_axis)
                fit = std::min(fit, panels_that_hold());
            report(field,
                   "the block of {} takes {} registers of {}: {} row{} × {} vector{}, {} operand{} and a broadcast",
                   name, registers_of(a), k_.unit.registers, a.rows, plural(a.rows), a.vectors, plural(a.vectors),
                   operands, plural(operands));
            broken_.back().nearest = fmt::format("{} {}{} fit{}", fit, a.rows == 1 ? "vector" : "row", plural(fit),
                                                 fit == 1 ? "s" : "");
        }
        if (a.cut_axis >= 0 && (!compute.reduce || *compute.reduce != ReduceOp::sum || a.across || step.is_whole ||
                                a.cut < 1 || !contains(a.reduced, a.cut_axis)))
            report(field, "{} cannot be cut along {}: only sums are, along a loop of theirs", name, axis_name(a.cut_axis));
        else if (a.cut_axis >= 0 && a.cut >= k_.span(a.cut_axis, step.scope).tile)
            report(field, "{} is cut along {} into parts of {}, and its loop has {} values, which {}", name,
                   axis_name(a.cut_axis), a.cut, k_.span(a.cut_axis, step.scope).tile,
                   k_.span(a.cut_axis, step.scope).tile == 1
                       ? "nothing cuts"
                       : fmt::format("parts of at most {} cut", k_.span(a.cut_axis, step.scope).tile - 1));
    }

    void check_terms(const Step& step, const ScheduleField& field, const std::string& name) {
        const Atom& a = k_.atom(step);
        const auto product = lane_product(k_, step);
        if (!product || product->terms != a.terms)
            return report(field, "no instruction adds up {} products of {} in a lane", a.terms, name);
        if (const auto why = why_not_in_lanes(k_, *product, a); !why.empty())
            return report(field, "{} does not run with {} terms in a lane: {}", name, a.terms, why);
        if (a.follows || step.follower >= 0)
            report(field, "{} has {} terms in a lane, and shares its loops with another statement", name, a.terms);
        if (a.cut_axis >= 0 && product->is_integer)
            report(field, "{} is cut, and its sums of integers round nothing", name);
        if (a.cut_axis == product->axis && a.cut % a.terms != 0)
            report(field, "{} is cut along {} into parts of {}, and lanes have {} terms", name, axis_name(a.cut_axis),
                   a.cut, a.terms);
        for (const Read* r : {product->a, product->b})
            if (k_.place(r->variable()).holding != MemorySpace::buffer && !k_.is_packed(r->variable()))
                report(place_of(r->variable()), "{} is read with {} terms in a lane, and is held as {}",
                       k_.variable(r->variable()).name, a.terms, napkin::name(k_.place(r->variable()).holding));
    }

    void check_axes(const ScheduleField& field, const std::string& name, const char* what, std::vector<AxisId> have,
                    std::vector<AxisId> want) {
        sort(have);
        sort(want);
        if (have == want) return;
        const auto names = [&](const std::vector<AxisId>& axes) {
            return axes.empty() ? "none" : join(mapped<std::string>(axes, [&](AxisId a) { return axis_name(a); }), ", ");
        };
        report(field, "the loops of {} are not over its {}, which are {}: they are over {}", name, what, names(want),
               names(have));
    }

    void check_panel() {
        const AxisId axis = k_.schedule.vector_axis;
        if (axis < 0) return;
        const std::int64_t tile = k_.span(axis, 0).tile;
        int fitting = panels_that_hold();
        if (k_.schedule.panel_vectors <= fitting) return;
        // Registers must also hold a panel for each sum along the panels.
        for (const Step& step : k_.steps) {
            if (step.atom < 0 || step.is_whole || !std::get<Compute>(*step.statement).reduce) continue;
            Atom atom = k_.atom(step);
            if (atom.across || atom.vector_axis != axis) continue;
            if (!k_.schedule.rows.by_user && !atom.by_user) atom.rows = 1;
            for (atom.vectors = fitting; atom.vectors > 1 && registers_of(atom) > k_.unit.registers;) --atom.vectors;
            fitting = atom.vectors;
        }
        report({"vectors", ""}, "panels of {} vectors are longer than the {} values of {}",
               k_.schedule.panel_vectors.value, tile, axis_name(axis));
        broken_.back().nearest = fmt::format("{} vector{} fit{}", fitting, fitting == 1 ? "" : "s", fitting == 1 ? "s" : "");
    }
    /// Vectors that cover a tile of the panels' axis.
    [[nodiscard]] int panels_that_hold() const {
        const std::int64_t all = ceil_div(k_.span(k_.schedule.vector_axis, 0).tile, k_.lanes);
        return static_cast<int>(std::min<std::int64_t>(all, std::numeric_limits<int>::max()));
    }

    /// Fusing statements moves what stands between them to before them, and stores to behind them. Checks that this
    /// breaks no dependence.
    void check_order(const std::vector<Node>& nodes) {
        std::vector<StepId> order;
        for (const Node& node : nodes) {
            if (const StepId* s = std::get_if<StepId>(&node)) order.push_back(*s);
            if (const auto* run = std::get_if<FusedStatements>(&node)) append(order, run->steps);
        }
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t j = i + 1; j < order.size(); ++j)
                if (order[i] > order[j] && must_keep_order(k_, k_.step(order[i]), k_.step(order[j]))) {
                    const Step &early = k_.step(order[i]), &late = k_.step(order[j]);
                    report(early.atom >= 0  ? atom_of(early)
                           : late.atom >= 0 ? atom_of(late)
                                            : ScheduleField{},
                           "{} would run before {}, which it comes after, as a run's statements stand together",
                           k_.variable(variable_of(early)).name, k_.variable(variable_of(late)).name);
                }
    }

    void check_fusions(const std::vector<Node>& nodes) {
        if (any_of(nodes, [](const Node& node) { return std::holds_alternative<FusedStatements>(node); }))
            check_order(nodes);
        for (const Node& node : nodes) {
            const auto* run = std::get_if<FusedStatements>(&node);
            if (!run) continue;
            std::vector<StepId> members;
            const Step& first = k_.step(run->steps.front());
            if (!runs_.insert(k_.atom(first).run).second)
                report(atom_of(first), "{} is in run {}, which a loop or another list of statements ends before it",
                       k_.variable(std::get<Compute>(*first.statement).variable).name, k_.atom(first).run);
            for (const StepId s : run->steps) {
                const Step& step = k_.step(s);
                const Atom& a = k_.atom(step);
                const std::string& name = k_.variable(std::get<Compute>(*k_.step(s).statement).variable).name;
                if (a.across || a.vector_axis < 0 || a.vector_axis != k_.schedule.vector_axis ||
                    a.vectors != k_.schedule.panel_vectors)
                    report(atom_of(step), "{} is in a run, but does not go along its panels", name);
                if (a.vector_inner)
                    report(atom_of(step), "{} is in a run, whose loop over panels is around all others", name);
                if (!may_join(k_, members, k_.step(s)))
                    report(atom_of(step), "{} reads another panel of its run", name);
                if (a.follows && (members.empty() || !may_fuse_reduction(k_, k_.step(members.back()), step)))
                    report(atom_of(step), "{} cannot ride in the loops of the statement before it", name);
                members.push_back(s);
            }
        }
    }

    void check_storage() {
        const std::vector<bool> local = in_one_fusion(k_);
        const ByVariable<bool> in_lanes = may_lie_in_lanes(k_, true);
        for (std::size_t v = 0; v < k_.layouts.size(); ++v) {
            const auto id = VariableId::of(v);
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
            if (k_.is_in_lanes(id) && !in_lanes[id])
                report(place_of(id), "{} cannot lie in registers of all threads: some statement accesses it otherwise",
                       name);
            if (k_.is_in_accumulators(id) && !accumulating_step(k_, id))
                report(place_of(id),
                       "{} cannot stay in accumulators: they take a sum over a stream that is stored at its end, of "
                       "which each warp or thread has one register block",
                       name);
            if (k_.place(id).stages != 1 && !k_.is_operand(id))
                report(place_of(id), "{} has {} stages, and can have 1 alone: {}", name, k_.place(id).stages,
                       on_either("a CPU's loads are done when they return",
                                 "a block's loads are done before its warps go on, but those of operands"));
            if (k_.is_staged_out(id)) check_staging(id);
            if (!k_.is_held(id)) continue;
            if (l.offset < 0 || l.offset + l.count * k_.cell_values(k_.is_whole(id)) > k_.arena_values)
                report(place_of(id), "{} lies outside of the arena", name);
            for (std::size_t w = 0; w < v; ++w) check_apart(id, VariableId::of(w));
        }
    }

    void check_staging(VariableId id) {
        const auto boxes = k_.on_tensor_cores() ? staging_tiles_of(k_, id) : std::nullopt;
        const std::string& name = k_.variable(id).name;
        if (!boxes)
            return report(place_of(id), "{} cannot be stored in boxes of 16 rows and 128 bytes by bulk copies", name);
        if (boxes->count % k_.place(id).staging_tiles != 0)
            report(place_of(id),
                   "{} is stored in {} boxes of 128 bytes beside each other, of which {} at a time are no whole part",
                   name, boxes->count, k_.place(id).staging_tiles);
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

    std::set<int> runs_;  ///< numbers of the runs that are checked
};

}  // namespace

std::vector<BrokenRule> rules_of_statements(const ScheduledKernel& kernel) { return StatementRules(kernel).run(); }

}  // namespace napkin
