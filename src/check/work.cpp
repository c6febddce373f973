#include "check/work.hpp"

#include <algorithm>

#include "algebra/expr_walk.hpp"
#include "check/eliminate.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// What beginning a row costs each node, what compiling an expression costs it, and what a tile costs its statement, as
/// so many operations.
constexpr double operations_a_row = 8, operations_to_compile = 300, operations_a_tile = 100;

double num_nodes(const Expr& e) {
    double nodes = 0;
    for_each_postorder(e, [&](const Expr&) { ++nodes; });
    return nodes;
}

/// At so many points in rows of a length.
double operations_of(const Expr& e, double points, double row) {
    return num_nodes(e) * (points * (1 + operations_a_row / row) + operations_to_compile);
}

}  // namespace

double evaluation_operations(const Diagram& diagram, const Extents& extents) {
    return sum<double>(diagram.equations, [&](const Equation& equation) {
        if (const auto parts = with_axes_eliminated(diagram, equation, extents))
            return evaluation_operations(*parts, extents);
        double points = 1, row = 1;
        for (const AxisId axis : diagram.array(equation.target).axes) points *= static_cast<double>(extents[axis]);
        const std::vector<AxisId>& target = diagram.array(equation.target).axes;
        if (!equation.reduce && !target.empty()) row = static_cast<double>(extents[target.back()]);
        for (const AxisId axis : equation.reduce_axes) {
            points *= static_cast<double>(extents[axis]);
            row = std::max(row, static_cast<double>(extents[axis]));
        }
        return operations_of(equation.body, points, row);
    });
}

double evaluation_operations(const Derived& derived, const Extents& extents, const PartitionSizes& sizes) {
    double total = 0;
    for (const Kernel& kernel : derived.kernels) {
        // Tiles along every axis, and values in one, with those of the loop at hand.
        std::vector<double> tiles(extents.size(), 1), values(extents.begin(), extents.end());
        const auto cut = [&](AxisId axis, std::int64_t size) {
            if (size <= 0) return;
            values[at(axis)] = static_cast<double>(std::min(size, extents[axis]));
            tiles[at(axis)] = static_cast<double>((extents[axis] + size - 1) / size);
        };
        for (const AxisId axis : kernel.group_axes) cut(axis, axis == kernel.parts.part ? 1 : sizes.group[at(axis)]);
        for (const Stage& stage : kernel.stages) {
            const auto whole_tiles = tiles, whole_values = values;
            if (const auto* loop = std::get_if<Loop>(&stage)) cut(loop->axis, sizes.stream[at(loop->axis)]);
            const double num_tiles = product<double>(tiles, [](double n) { return n; });
            for (const Statement& s : statements_of(stage)) {
                double points = num_tiles, row = 1;
                for (const auto* axes : {&derived.diagram.array(s.target).axes, &s.reduce_axes})
                    for (const AxisId axis : *axes) points *= values[at(axis)], row = std::max(row, values[at(axis)]);
                total += operations_of(s.body, points, row) + num_tiles * operations_a_tile;
            }
            tiles = whole_tiles, values = whole_values;
        }
    }
    return total;
}

}  // namespace napkin
