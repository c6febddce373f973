// Puts a kernel on the machine's matrix unit: which statements are products of its instruction, which run on fragments beside them, where
// every variable lies then.
#include <algorithm>
#include <set>

#include "plan/complete.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Stages of an operand, at most: more hide no latency that four do not.
constexpr std::int64_t most_stages = 4;

class FragmentChoice {
public:
    explicit FragmentChoice(ScheduledKernel& kernel) : kernel_(kernel), row_(kernel.schedule.tensor_axis) {}

    /// Whether every statement has its place on the unit; the schedule's atoms and places are only then changed.
    bool run() {
        const Span& rows = kernel_.span(row_, 0);
        const std::int64_t held = kernel_.schedule.warps.value * fragment_rows;
        if (rows.tile > held || (rows.tile < held && rows.begins)) return false;
        find_loops();
        atoms_.resize(kernel_.schedule.atoms.size());
        places_ = kernel_.schedule.places;
        std::vector<bool> computed(kernel_.layouts.size(), false);
        for (const Step& step : kernel_.steps) {
            if (const auto* c = std::get_if<Compute>(step.statement)) computed[at(c->variable)] = true;
            if (const auto* i = std::get_if<Init>(step.statement)) computed[at(i->variable)] = true;
        }
        bool multiplies = false;
        for (const Step& step : kernel_.steps) {
            if (step.atom < 0) continue;
            const auto product = matrix_product(kernel_, step);
            if (!product) continue;
            multiplies = true;
            atoms_[at(step.atom)] = scalar_loops(step, AtomKind::matrix);
            for (const Read* r : {product->a, product->b})
                if (!computed[at(r->array)]) operands_.insert(r->array);
        }
        if (!multiplies) return false;
        for (const Step& step : kernel_.steps) {
            if (step.atom < 0) continue;
            if (atoms_[at(step.atom)].kind != AtomKind::matrix) {
                if (!runs_on_fragments(step, computed)) return false;
                atoms_[at(step.atom)] = scalar_loops(step, AtomKind::fragment);
            } else if (!reads_fragments(step, computed)) {
                return false;
            }
        }
        for (const Step& step : kernel_.steps)
            if (const auto* load = std::get_if<Load>(step.statement);
                load && operands_.contains(load->variable) && !may_be_copied_ahead(step.scope))
                return false;
        for (std::size_t v = 0; v < computed.size(); ++v) {
            const bool is_operand = operands_.contains(static_cast<VariableId>(v));
            if (!computed[v] && !is_operand) continue;
            if (computed[v] && !has_fragments(static_cast<VariableId>(v))) return false;
            places_[v].holding = is_operand ? Holding::operand : Holding::registers;
            if (is_operand) places_[v].innermost = static_cast<int>(kernel_.kernel->variables[v].dims.size()) - 1;
        }
        kernel_.schedule.atoms = atoms_;
        kernel_.schedule.places = places_;
        return true;
    }

private:
    void find_loops() {
        for (const ScheduledLoop& loop : kernel_.loops) {
            const bool is_outermost = std::any_of(kernel_.body.begin(), kernel_.body.end(), [&](const Node& node) {
                const auto* ref = std::get_if<LoopRef>(&node);
                return ref && &kernel_.loop(*ref) == &loop;
            });
            if (is_outermost && !loop.loop->is_sub) streams_.insert(loop.scope);
        }
    }
    [[nodiscard]] bool may_be_copied_ahead(int scope) const { return scope == 0 || streams_.contains(scope); }
    [[nodiscard]] bool is_wide(AxisId axis, int scope) const { return kernel_.span(axis, scope).tile > 1; }

    /// One value a row, or one for each of its columns along one axis.
    [[nodiscard]] bool has_fragments(VariableId id) const {
        const Variable& variable = kernel_.variable(id);
        if (kernel_.is_whole(id) || !carries(variable, row_)) return false;
        int columns = 0;
        for (const Index& dim : variable.dims) {
            const AxisId axis = dim.single_axis();
            if (axis < 0) return false;
            if (axis != row_ && is_wide(axis, kernel_.layout(id).scope)) ++columns;
        }
        return columns <= 1;
    }

    /// What is read from registers has the axes under which it was computed.
    [[nodiscard]] bool reads_fragments(const Step& step, const std::vector<bool>& computed) const {
        return std::all_of(step.reads.begin(), step.reads.end(), [&](const Read* r) {
            if (!computed[at(r->array)]) return true;
            return r->indices == kernel_.variable(r->array).dims && has_fragments(r->array) &&
                   kernel_.layout(r->array).scope <= step.scope;
        });
    }

    /// A map, or a reduction along the columns; there is one axis of columns.
    [[nodiscard]] bool runs_on_fragments(const Step& step, const std::vector<bool>& computed) const {
        const auto& compute = std::get<Compute>(*step.statement);
        if (step.is_whole || kernel_.is_double || !has_fragments(compute.variable) || !reads_fragments(step, computed)) return false;
        std::set<AxisId> columns;
        const auto add = [&](AxisId axis) {
            if (axis >= 0 && axis != row_ && is_wide(axis, step.scope)) columns.insert(axis);
        };
        for (const Index& dim : kernel_.variable(compute.variable).dims) add(dim.single_axis());
        for (const AxisId axis : compute.reduce_axes) {
            if (axis == row_) return false;
            add(axis);
        }
        for (const Read* r : step.reads) {
            if (operands_.contains(r->array)) return false;
            for (const Index& index : r->indices) {
                if (!index.affine()) return false;
                for (const AxisId axis : index.axes()) add(axis);
            }
        }
        return columns.size() <= 1;
    }

    [[nodiscard]] Atom scalar_loops(const Step& step, AtomKind kind) const {
        const auto& compute = std::get<Compute>(*step.statement);
        Atom atom;
        atom.kind = kind;
        atom.points = target_axes(kernel_.variable(compute.variable));
        atom.reduced = compute.reduce_axes;
        return atom;
    }

    ScheduledKernel& kernel_;
    AxisId row_;
    std::vector<Atom> atoms_;
    std::vector<Place> places_;
    std::set<VariableId> operands_;
    std::set<int> streams_;  ///< scopes of loops that no other one is around
};

}  // namespace

bool choose_fragments(ScheduledKernel& kernel) { return FragmentChoice(kernel).run(); }

void choose_stages(ScheduledKernel& kernel) {
    std::int64_t staged = 0, others = 0;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) {
        const auto id = static_cast<VariableId>(v);
        if (kernel.is_operand(id)) {
            (kernel.layouts[v].scope > 0 ? staged : others) += operand_tile(kernel, id)->bytes;
        } else if (!kernel.is_in_registers(id)) {
            shape(kernel, id);
            others += kernel.layouts[v].count * kernel.value_bytes();
        }
    }
    std::int64_t chunks = 1;
    for (const ScheduledLoop& loop : kernel.loops) chunks = std::max(chunks, turns_of(kernel, loop).most);
    const std::int64_t fit = staged == 0 ? 1 : (kernel.unit.share_bytes - others - operand_alignment) / staged;
    const auto stages = static_cast<int>(std::clamp<std::int64_t>(std::min(fit, chunks), 1, most_stages));
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (kernel.is_operand(static_cast<VariableId>(v)) && kernel.layouts[v].scope > 0 && !kernel.schedule.places[v].by_hand)
            kernel.schedule.places[v].stages = stages;
}

}  // namespace napkin
