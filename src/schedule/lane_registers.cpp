#include "schedule/lane_registers.hpp"

#include <algorithm>
#include <optional>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// The one axis along which the variable's tile has several values; -1: there is none. Nothing: there are several, or
/// an index is no plain axis.
std::optional<AxisId> wide_axis(const ScheduledKernel& kernel, VariableId id) {
    AxisId wide = -1;
    for (const Index& dim : kernel.variable(id).dims) {
        const AxisId axis = dim.single_axis();
        if (axis < 0 || !dim.is_axis(axis)) return std::nullopt;
        if (kernel.span(axis, kernel.layout(id).scope).tile == 1) continue;
        if (wide >= 0) return std::nullopt;
        wide = axis;
    }
    return wide;
}

/// Whether the atom has no loops but those over its vectors.
bool is_one_row(const ScheduledKernel& kernel, const Step& step) {
    const Atom& atom = kernel.atom(step);
    const auto is_single = [&](AxisId axis) { return kernel.span(axis, step.scope).tile == 1; };
    return atom.kind == AtomKind::block && atom.rows == 1 && atom.run < 0 && !atom.follows && atom.cut_axis < 0 &&
           step.follower < 0 && step.deferred < 0 && !step.is_tile_pipelined() && !step.is_whole &&
           all_of(atom.points, is_single) && all_of(atom.reduced, is_single);
}

bool has_coordinate(const Expr& e, AxisId axis) {
    bool found = false;
    visit(e, [&](const Expr& node) {
        if (const auto* coordinate = as<AxisIndex>(node)) found |= coordinate->axis == axis;
    });
    return found;
}

std::vector<VariableId> accessed(const Step& step) {
    std::vector<VariableId> out{variable_of(step)};
    for (const Read* r : step.reads)
        if (!contains(out, r->variable())) out.push_back(r->variable());
    return out;
}

/// Vectors of the first statement along the axis, which all have in common; 0: there is none.
int vectors_along(const ScheduledKernel& kernel, AxisId axis) {
    const auto first = find_if(
        kernel.steps, [&](const Step& step) { return step.atom >= 0 && kernel.atom(step).vector_axis == axis; });
    return first == kernel.steps.end() ? 0 : kernel.atom(*first).vectors;
}

class Eligible {
public:
    Eligible(const ScheduledKernel& kernel, bool held_alone) : kernel_(kernel), held_alone_(held_alone) {}

    ByVariable<bool> run() {
        for (const VariableId v : kernel_.layouts.ids()) {
            wide_.push_back(wide_axis(kernel_, v));
            out_.push_back(is_plain(v));
        }
        exclude_indices();
        for (bool changed = true; changed;) {
            changed = false;
            for (const Step& step : kernel_.steps)
                for (const VariableId v : accessed(step))
                    if (out_[v] && !takes(step, v)) out_[v] = false, changed = true;
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] bool is_plain(VariableId v) const {
        const VariableFacts& facts = kernel_.facts(v);
        const Place& place = kernel_.place(v);
        return kernel_.in_blocks() && !kernel_.on_tensor_cores() && wide_[v] && is_contiguous(v) && !facts.is_whole &&
               !facts.is_cut && !facts.is_only_gathered && (!held_alone_ || kernel_.is_in_lanes(v)) &&
               kernel_.variable(v).gathers.empty() && (!place.by_user || place.holding == MemorySpace::lanes) &&
               is_float(kernel_.variable(v).memory_type);
    }
    /// Neighbours lie beside each other in memory, too. Else a tile in shared memory is better, as for a transpose.
    [[nodiscard]] bool is_contiguous(VariableId v) const {
        return *wide_[v] < 0 || kernel_.variable(v).dims.back().is_axis(*wide_[v]);
    }
    /// What data look up by is read by other threads than those that have it.
    void exclude_indices() {
        for (const VariableId v : kernel_.layouts.ids())
            for (const Index& index : kernel_.variable(v).gathers)
                for (const VariableId by : read_variables(index.value())) out_[by] = false;
    }
    [[nodiscard]] bool takes(const Step& step, VariableId v) const {
        const AxisId axis = *wide_[v];
        const auto* compute = std::get_if<Compute>(step.statement);
        const bool is_here = step.scope == kernel_.layout(v).scope;
        if (!compute) return axis < 0 ? true : is_here && !std::holds_alternative<Init>(*step.statement);
        if (axis < 0) return compute->variable != v || is_for_all_threads(step);
        return is_here && goes_along(step, axis) && (compute->variable != v || !compute->reduce);
    }
    /// Whether every thread may have the statement's one result.
    [[nodiscard]] bool is_for_all_threads(const Step& step) const {
        const Atom& atom = kernel_.atom(step);
        return is_one_row(kernel_, step) && (atom.vector_axis < 0 || (atom.across && atom.shared));
    }
    /// Whether the statement goes through the axis in vectors, in rounds of all threads, and accesses each value with a
    /// wide axis only in the thread that has it.
    [[nodiscard]] bool goes_along(const Step& step, AxisId axis) const {
        const Atom& atom = kernel_.atom(step);
        const auto& compute = std::get<Compute>(*step.statement);
        if (!is_one_row(kernel_, step) || atom.vector_axis != axis || (atom.across && !atom.shared)) return false;
        if (compute.reduce && !atom.across) return false;
        if (kernel_.span(axis, step.scope).is_part || atom.vectors != vectors_along(kernel_, axis)) return false;
        if (has_coordinate(compute.body, axis) || (compute.carry && has_coordinate(compute.carry, axis))) return false;
        for (const Read* r : step.reads) {
            const VariableId v = r->variable();
            if (!out_[v] && any_of(r->indices, [&](const Index& i) { return i.depends_on(axis); })) return false;
            if (out_[v] && *wide_[v] >= 0 && r->indices != kernel_.variable(v).dims) return false;
        }
        const VariableId target = compute.variable;
        return atom.across || (out_[target] && *wide_[target] == axis);
    }

    const ScheduledKernel& kernel_;
    bool held_alone_;
    ByVariable<std::optional<AxisId>> wide_;
    ByVariable<bool> out_;
};

}  // namespace

LaneTile lane_tile(const ScheduledKernel& kernel, VariableId id) {
    LaneTile out{wide_axis(kernel, id).value_or(AxisId(-1))};
    if (out.axis < 0) return out;
    out.vectors = std::max(1, vectors_along(kernel, out.axis));
    out.values_a_round = out.vectors * kernel.lanes * kernel.schedule.warps.value;
    out.rounds = ceil_div(kernel.span(out.axis, kernel.layout(id).scope).tile, out.values_a_round);
    return out;
}

std::optional<LaneTile> lanes_of(const ScheduledKernel& kernel, const Step& step) {
    for (const VariableId v : accessed(step))
        if (kernel.is_in_lanes(v))
            if (const LaneTile tile = lane_tile(kernel, v); tile.axis >= 0) return tile;
    return std::nullopt;
}

ByVariable<bool> may_lie_in_lanes(const ScheduledKernel& kernel, bool held_alone) {
    return Eligible(kernel, held_alone).run();
}

bool passes_by_rounds(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.is_in_lanes(id) || lane_tile(kernel, id).axis < 0) return false;
    // What the kernel both reads and writes keeps its order.
    const ArrayId array = kernel.variable(id).array;
    if (contains(kernel.inputs, array) && contains(kernel.outputs, array)) return false;
    std::vector<const Step*> touching;
    for (const Step& step : kernel.steps)
        if (variable_of(step) == id || reads(step, id)) touching.push_back(&step);
    if (touching.size() != 2) return false;
    const auto is_map = [&](const Step& step) { return step.atom >= 0 && !kernel.atom(step).across; };
    return (std::holds_alternative<Load>(*touching[0]->statement) && is_map(*touching[1])) ||
           (is_map(*touching[0]) && std::holds_alternative<Store>(*touching[1]->statement));
}

std::int64_t lane_registers(const ScheduledKernel& kernel) {
    const std::int64_t of_value = kernel.value_bytes() / 4;
    std::vector<std::int64_t> held(kernel.steps.size());
    for (const VariableId v : kernel.layouts.ids()) {
        if (!kernel.is_in_lanes(v)) continue;
        const auto touches = [&](const Step& step) { return variable_of(step) == v || reads(step, v); };
        const auto first = find_if(kernel.steps, touches);
        auto last = std::find_if(kernel.steps.rbegin(), kernel.steps.rend(), touches).base();
        // A map takes the registers of what it reads last, round by round.
        if (const Step& reader = *(last - 1); last - first > 1 && reader.atom >= 0 && !kernel.atom(reader).across &&
                                              variable_of(reader) != v && lanes_of(kernel, reader))
            --last;
        const LaneTile tile = lane_tile(kernel, v);
        const std::int64_t values = passes_by_rounds(kernel, v) ? tile.vectors : tile.values();
        for (auto step = first; step < last; ++step) held[at(step - kernel.steps.begin())] += values * of_value;
    }
    return held.empty() ? 0 : *max_element(held);
}

}  // namespace napkin
