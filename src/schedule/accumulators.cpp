#include "schedule/accumulators.hpp"

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// The steps that access the variable, by what they do. Others do, or more than one of a kind: not `are_all`.
struct StepsOf {
    const Step *begins = nullptr, *adds = nullptr, *stores = nullptr;
    std::vector<const Step*> maps;
    bool are_all = true;
};

bool has_plain_dims(const Variable& variable) {
    return !variable.dims.empty() && all_of(variable.dims, [](const Index& dim) {
        return dim.single_axis() >= 0 && dim.is_axis(dim.single_axis());
    });
}

/// The axes along which tiles of the scope have several values.
std::vector<AxisId> wide_axes(const ScheduledKernel& kernel, ScopeId scope, std::vector<AxisId> axes) {
    std::erase_if(axes, [&](AxisId axis) { return kernel.span(axis, scope).tile == 1; });
    return axes;
}

/// Whether the map reads the variable at its own place alone.
bool maps_in_place(const ScheduledKernel& kernel, const Step& step, VariableId id) {
    const auto& compute = std::get<Compute>(*step.statement);
    const std::vector<Index>& dims = kernel.variable(id).dims;
    const auto axes_of = [&](VariableId v) { return wide_axes(kernel, step.scope, target_axes(kernel.variable(v))); };
    return !compute.reduce && !compute.carry && !step.is_whole && has_plain_dims(kernel.variable(id)) &&
           has_plain_dims(kernel.variable(compute.variable)) && axes_of(compute.variable) == axes_of(id) &&
           all_of(step.reads, [&](const Read* r) { return r->variable() != id || r->indices == dims; });
}

StepsOf steps_of(const ScheduledKernel& kernel, VariableId id) {
    StepsOf out;
    const auto take = [&](const Step*& one, const Step& step) {
        out.are_all &= one == nullptr;
        one = &step;
    };
    for (const Step& step : kernel.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute && variable_of(step) == id)
            std::holds_alternative<Init>(*step.statement)    ? take(out.begins, step)
            : std::holds_alternative<Store>(*step.statement) ? take(out.stores, step)
                                                             : void(out.are_all = false);
        else if (compute && compute->variable == id)
            take(out.adds, step);
        else if (reads(step, id) && maps_in_place(kernel, step, id))
            out.maps.push_back(&step);
        else if (reads(step, id))
            out.are_all = false;
    }
    out.are_all &= out.begins && out.adds && (out.stores || !out.maps.empty());
    return out;
}

/// Register blocks of the step's target.
std::int64_t num_blocks(const ScheduledKernel& kernel, const Step& step) {
    const Atom& atom = kernel.atom(step);
    std::int64_t blocks = 1;
    for (const AxisId axis : target_axes(kernel.variable(variable_of(step))))
        blocks = saturating_mul(blocks, ceil_div(kernel.span(axis, step.scope).tile, kernel.block_size(atom, axis)));
    return blocks;
}

/// Whether the loops of the block are those over its points alone: nothing else runs in them, and no sum is cut.
bool is_plain_block(const Atom& atom, const Step& step) {
    return atom.kind == AtomKind::block && !atom.across && !atom.shared && !atom.follows && atom.run < 0 &&
           atom.cut_axis < 0 && atom.terms == 1 && step.follower < 0 && step.deferred < 0 &&
           !step.is_tile_pipelined() && !step.is_whole;
}

/// The step that adds to the variable in accumulators. All maps are taken to go through its register blocks.
const Step* sum_in_accumulators(const ScheduledKernel& kernel, VariableId id, const StepsOf& of) {
    const Variable& variable = kernel.variable(id);
    if (!kernel.in_blocks() || kernel.on_tensor_cores() || kernel.is_whole(id) || !is_float(variable.memory_type) ||
        contains(kernel.inputs, variable.array) || !has_plain_dims(variable) || !of.are_all)
        return nullptr;
    const ScopeId scope = of.begins->scope;
    const auto is_behind = [&](const Step* step) { return step->scope == scope && !step->is_tile_pipelined(); };
    if (of.adds->scope == scope || of.adds->atom < 0 || (of.stores && !is_behind(of.stores)) || !all_of(of.maps, is_behind))
        return nullptr;
    const auto& compute = std::get<Compute>(*of.adds->statement);
    const Atom& atom = kernel.atom(*of.adds);
    if (!compute.reduce || !compute.carry || !adds_in_place(compute) || !is_plain_block(atom, *of.adds)) return nullptr;
    // Neighbouring lanes store neighbours.
    if (atom.vector_axis >= 0 && !variable.dims.back().is_axis(atom.vector_axis)) return nullptr;
    const bool is_whole_tile = all_of(variable.dims, [&](const Index& dim) {
        const AxisId axis = dim.single_axis();
        return !kernel.span(axis, of.adds->scope).is_part &&
               kernel.span(axis, of.adds->scope).tile == kernel.span(axis, scope).tile;
    });
    const std::int64_t workers = kernel.schedule.warps.value * (atom.vector_axis < 0 ? kernel.lanes : 1);
    return is_whole_tile && num_blocks(kernel, *of.adds) <= workers ? of.adds : nullptr;
}

}  // namespace

const Step* accumulating_step(const ScheduledKernel& kernel, VariableId id) {
    const StepsOf of = steps_of(kernel, id);
    const Step* const sum = sum_in_accumulators(kernel, id, of);
    if (!sum) return nullptr;
    const Atom& atom = kernel.atom(*sum);
    const auto goes_along = [&](const Step* map) {
        const Atom& own = kernel.atom(*map);
        return is_plain_block(own, *map) && own.vector_axis == atom.vector_axis && own.vectors == atom.vectors &&
               own.row_axis == atom.row_axis && own.rows == atom.rows && !own.vector_inner &&
               wide_axes(kernel, map->scope, own.points) == wide_axes(kernel, map->scope, atom.points);
    };
    return all_of(of.maps, goes_along) ? sum : nullptr;
}

const Step* followed_sum(const ScheduledKernel& kernel, const Step& map) {
    if (!kernel.in_blocks() || kernel.on_tensor_cores()) return nullptr;
    for (const Read* r : map.reads)
        if (maps_in_place(kernel, map, r->variable()))
            if (const Step* sum = sum_in_accumulators(kernel, r->variable(), steps_of(kernel, r->variable())))
                return sum;
    return nullptr;
}

}  // namespace napkin
