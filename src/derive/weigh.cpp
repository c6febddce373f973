#include "derive/weigh.hpp"

#include <cmath>

#include "algebra/expr_walk.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr double unknown_size = 1024;

bool is_operation(const Expr& e) { return as<Unary>(e) || as<Binary>(e) || as<Select>(e) || as<Cast>(e); }

/// A loop's axis, or -1. What does not vary with it is done once a chunk, which is little beside what is done once a
/// point.
void count(const Statement& s, const Diagram& diagram, AxisId loop_axis, AxisPolynomial& flops) {
    if (s.reduce && lies_at_an_end(*s.reduce, s.body)) return;
    std::vector<AxisId> points = diagram.array(s.target).axes;
    append(points, s.reduce_axes);
    sort(points);
    if (loop_axis >= 0 && !std::binary_search(points.begin(), points.end(), loop_axis)) return;
    for_each_postorder(s.body, [&](const Expr& node) {
        if (is_operation(node)) flops[free_axes(node)] += 1;
    });
    if (s.reduce) flops[points] += 1;
}

}  // namespace

Weight& Weight::operator+=(const Weight& other) {
    for (const auto& [axes, value] : other.flops) flops[axes] += value;
    for (const auto& [axes, value] : other.transfers) transfers[axes] += value;
    return *this;
}

Weight weigh(const KernelBuilder::Trial& trial) {
    Weight w;
    for (const Stage& stage : trial.kernel.stages) {
        const auto* loop = std::get_if<Loop>(&stage);
        for (const Statement& s : loop ? loop->body : std::get<Block>(stage).statements)
            count(s, *trial.diagram, loop ? loop->axis : AxisId(), w.flops);
    }
    for (const auto* list : {&trial.kernel.inputs, &trial.kernel.outputs}) {
        for (const ArrayId id : *list) {
            std::vector<AxisId> axes = trial.diagram->array(id).axes;
            sort(axes);
            w.transfers[axes] += 1;
        }
    }
    return w;
}

Size as_size(const AxisPolynomial& polynomial) {
    Size sum;
    for (const auto& [axes, value] : polynomial) {
        Size term(static_cast<std::int64_t>(value));
        for (const AxisId axis : axes) term *= axis_symbol(axis);
        sum += term;
    }
    return sum;
}

std::vector<double> nominal_sizes(const Diagram& diagram) {
    // Sizes are given in sizes of other axes, at most as many deep as there are axes; a cycle ends as unknown.
    std::vector<double> sizes(diagram.axes.size(), unknown_size);
    std::vector<bool> known(diagram.axes.size(), false);
    for (bool changed = true; changed;) {
        changed = false;
        for (const AxisId i : diagram.axes.ids()) {
            if (known[i] || !diagram.axes[i].size) continue;
            const auto value = diagram.axes[i].size->evaluate([&](Symbol symbol) -> std::optional<double> {
                const auto at = symbol.axis();
                if (known[at] || !diagram.axes[at].size) return sizes[at];
                return std::nullopt;
            });
            if (!value || !std::isfinite(*value)) continue;
            sizes[i] = std::max(1.0, *value);
            known[i] = changed = true;
        }
    }
    return sizes;
}

double at_sizes(const AxisPolynomial& polynomial, const std::vector<double>& sizes) {
    double sum = 0;
    for (const auto& [axes, value] : polynomial) {
        double term = value;
        for (const AxisId axis : axes) term *= sizes[at(axis)];
        sum += term;
    }
    return sum;
}

}  // namespace napkin
