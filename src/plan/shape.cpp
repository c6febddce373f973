#include "plan/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace napkin {
namespace {
bool reduces(const KernelModel& model) {
    return std::any_of(model.work().begin(), model.work().end(),
                       [](const StatementWork& s) { return !s.reduce_axes.empty(); });
}

/// Tiles of ordinary size, on which shapes are compared before the sizes are known.
TileSizes ordinary_sizes(const KernelModel& model, const VectorShape& shape) {
    const Extents& extents = model.extents();
    TileSizes sizes{std::vector<std::int64_t>(extents.size()), std::vector<std::int64_t>(extents.size())};
    for (const AxisId axis : model.kernel().group_axes) {
        const bool whole = contains(model.kernel().recompute_axes, axis);
        const bool batch = model.carried_by_all_memory(axis) && reduces(model);
        const std::int64_t wanted = axis == shape.axis ? shape.vectors * model.lanes() : batch ? 1 : 64;
        sizes.group[at(axis)] = whole && axis != shape.axis ? 0 : std::min(extents[at(axis)], wanted);
    }
    for (const Stage& stage : model.kernel().stages)
        if (const auto* loop = std::get_if<Loop>(&stage))
            sizes.stream[at(loop->axis)] = std::min<std::int64_t>(extents[at(loop->axis)], 128);
    return sizes;
}

std::vector<std::int64_t> tile_of(const KernelModel& model, const TileSizes& sizes, const StatementWork& s) {
    std::vector<std::int64_t> tile = model.extents();
    for (std::size_t a = 0; a < tile.size(); ++a)
        if (sizes.group[a] > 0) tile[a] = sizes.group[a];
    if (s.in_loop) {
        const AxisId axis = std::get<Loop>(model.kernel().stages[at(s.stage)]).axis;
        tile[at(axis)] = sizes.stream[at(axis)];
    }
    return tile;
}

/// Clocks of all statements on ordinary tiles, for the whole vector axis: partial panels cost whole ones. Statements outside of loops
/// run once where those inside run for every chunk.
double clocks_of(const KernelModel& model, const VectorShape& shape) {
    const TileSizes sizes = ordinary_sizes(model, shape);
    double clocks = 0;
    for (const StatementWork& s : model.work()) {
        const std::vector<std::int64_t> tile = tile_of(model, sizes, s);
        double times = 1;
        if (s.in_loop) {
            const AxisId axis = std::get<Loop>(model.kernel().stages[at(s.stage)]).axis;
            times = std::ceil(static_cast<double>(model.extents()[at(axis)]) / static_cast<double>(tile[at(axis)]));
        }
        clocks += times * model.statement_clocks(s, tile, model.fitted(shape, sizes));
    }
    if (shape.axis < 0) return clocks;
    const auto extent = static_cast<double>(model.extents()[at(shape.axis)]);
    const double tile = sizes.group[at(shape.axis)] > 0 ? static_cast<double>(sizes.group[at(shape.axis)]) : extent;
    return clocks * std::ceil(extent / tile);
}

/// The narrowest block within 1% of the fastest, and the lowest within 0.5% of that: a wide one makes wide tiles, which need memory
/// and waste lanes at ragged ends.
VectorShape best_block(const KernelModel& model, AxisId axis, const ShapeByHand& by_hand) {
    if (!reduces(model)) return {axis, by_hand.rows.value_or(1), by_hand.vectors.value_or(1)};
    const auto registers = static_cast<std::int64_t>(model.machine().vector_registers.value);
    const std::int64_t usable = registers - registers / 8, lanes = model.lanes();
    const std::int64_t most_vectors = axis < 0 ? std::min<std::int64_t>(usable, 8)
                                               : std::min(usable, (model.extents()[at(axis)] + lanes - 1) / lanes);
    std::vector<std::pair<double, VectorShape>> fastest;  // for each number of vectors
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t vectors = by_hand.vectors.value_or(1); vectors <= by_hand.vectors.value_or(most_vectors); ++vectors) {
        std::pair<double, VectorShape> best{std::numeric_limits<double>::infinity(), {axis, 1, vectors}};
        for (std::int64_t rows = by_hand.rows.value_or(1);
             by_hand.rows ? rows == *by_hand.rows : rows * vectors + vectors + 1 <= usable; ++rows) {
            const VectorShape shape{axis, rows, vectors};
            const double clocks = clocks_of(model, shape);
            if (clocks < best.first * 0.995) best = {clocks, shape};
        }
        least = std::min(least, best.first);
        fastest.push_back(best);
    }
    for (const auto& [clocks, shape] : fastest)
        if (clocks <= 1.01 * least) return shape;
    return fastest.front().second;
}

/// The targets of the statements that do at least a tenth of the work.
std::vector<const StatementWork*> heavy_statements(const KernelModel& model) {
    const VectorShape scalar;
    const TileSizes sizes = ordinary_sizes(model, scalar);
    std::vector<double> clocks;
    double total = 0;
    for (const StatementWork& s : model.work()) {
        clocks.push_back(model.statement_clocks(s, tile_of(model, sizes, s), scalar));
        total += clocks.back();
    }
    std::vector<const StatementWork*> heavy;
    for (std::size_t i = 0; i < clocks.size(); ++i)
        if (clocks[i] * 10 >= total) heavy.push_back(&model.work()[i]);
    return heavy;
}

void describe_block(const KernelModel& model, const std::vector<const StatementWork*>& heavy, ShapeChoice& choice) {
    if (!reduces(model)) {
        choice.rows_reason = choice.vectors_reason = "nothing is reduced";
        return;
    }
    const VectorShape& shape = choice.shape;
    choice.rows_reason = fmt::format("{}×{} accumulators, {} operand{} and a broadcast in {} registers", shape.rows,
                                     shape.vectors, shape.vectors, shape.vectors == 1 ? "" : "s",
                                     model.machine().vector_registers.value);
    const StatementWork* heaviest = nullptr;
    for (const StatementWork* s : heavy)
        if (!s->reduce_axes.empty() && (!heaviest || s->operands.size() > heaviest->operands.size())) heaviest = s;
    if (heaviest)
        choice.vectors_reason = fmt::format(
            "{:.3g} loads for {} accumulations in {}", model.block_loads(*heaviest, shape),
            model.block_accumulators(*heaviest, shape), model.derived().diagram.array(heaviest->target).name);
}

}  // namespace

std::vector<ShapeChoice> shape_candidates(const KernelModel& model, const ShapeByHand& by_hand) {
    const Diagram& diagram = model.derived().diagram;
    const Kernel& kernel = model.kernel();
    const std::int64_t lanes = model.lanes();
    const auto extent = [&](AxisId axis) { return model.extents()[at(axis)]; };

    std::set<ArrayId> states;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage))
            for (const auto& [state, value] : loop->init) states.insert(state);
    const std::vector<const StatementWork*> heavy = heavy_statements(model);
    const auto everywhere = [&](AxisId axis) {
        // A state without any grouped axis, such as a count, is one value for all lanes.
        const auto state_fits = [&](ArrayId state) {
            const std::vector<AxisId>& axes = diagram.array(state).axes;
            return contains(axes, axis) ||
                   std::none_of(axes.begin(), axes.end(), [&](AxisId a) { return contains(kernel.group_axes, a); });
        };
        return std::all_of(states.begin(), states.end(), state_fits) &&
               std::all_of(heavy.begin(), heavy.end(),
                           [&](const StatementWork* s) { return contains(s->target_axes, axis); });
    };

    // Axes that keep reductions vertical; last axes of what is computed or loaded, a whole vector of them, or failing that half a one;
    // and none at all, where every statement goes its own way.
    std::set<AxisId> vertical, last;
    if (by_hand.axis) {
        (*by_hand.axis >= 0 && everywhere(*by_hand.axis) ? vertical : last) = {*by_hand.axis};
    } else {
        for (const AxisId axis : kernel.group_axes)
            if (!contains(kernel.recompute_axes, axis) && extent(axis) >= lanes && everywhere(axis))
                vertical.insert(axis);
        std::set<AxisId> ends;
        for (const StatementWork& s : model.work())
            if (!s.target_axes.empty()) ends.insert(s.target_axes.back());
        for (const CoreVariable& v : model.live().variables)
            if (v.loaded && !v.dims.empty() && v.dims.back().single_axis() >= 0)
                ends.insert(v.dims.back().single_axis());
        for (std::int64_t least = lanes; last.empty() && least >= std::max<std::int64_t>(2, lanes / 2); least -= lanes / 2)
            for (const AxisId axis : ends)
                if (extent(axis) >= least && !vertical.contains(axis)) last.insert(axis);
        last.insert(-1);
    }

    std::vector<ShapeChoice> choices;
    double least = std::numeric_limits<double>::infinity();
    for (const bool keeps_vertical : {true, false})
        for (const AxisId axis : keeps_vertical ? vertical : last) {
            ShapeChoice choice{best_block(model, axis, by_hand), keeps_vertical, "", "", ""};
            if (axis < 0)
                choice.axis_reason = "every statement along its own last or reduced axis";
            else if (keeps_vertical)
                choice.axis_reason = states.empty() ? "carried by all heavy statements"
                                                    : "carried by every state: reductions stay vertical";
            else
                choice.axis_reason = "the last axis of what is computed or loaded";
            describe_block(model, heavy, choice);
            // Whether an axis is far slower shows on tiles of ordinary size, where these fit.
            const TileSizes sizes = ordinary_sizes(model, choice.shape);
            const Prediction p = model.predict(sizes, choice.shape, model.machine().num_cores(), 64);
            if (p.memory * static_cast<double>(model.value_bytes()) <= model.usable_bytes()) {
                if (!keeps_vertical && p.seconds > 1.5 * least) continue;
                least = std::min(least, p.seconds);
            }
            choices.push_back(std::move(choice));
        }
    return choices;
}

}  // namespace napkin
