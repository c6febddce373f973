#include "check/eliminate.hpp"

#include <algorithm>
#include <set>

#include "diagram/product.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// It must take so many times fewer points.
constexpr double worth_eliminating = 4;

struct Factor {
    Expr e;
    std::set<AxisId> axes;
};

double points_of(const std::set<AxisId>& axes, const Extents& extents) {
    return product<double>(axes, [&](AxisId axis) { return static_cast<double>(extents[axis]); });
}

/// The axes of all factors that have the axis.
std::set<AxisId> axes_with(const std::vector<Factor>& factors, AxisId axis) {
    std::set<AxisId> all;
    for (const Factor& factor : factors)
        if (factor.axes.contains(axis)) all.insert(factor.axes.begin(), factor.axes.end());
    return all;
}

Expr product_of(const std::vector<Factor>& factors) {
    Expr all;
    for (const Factor& factor : factors) all = all ? binary(BinaryOp::mul, all, factor.e) : factor.e;
    return all ? all : constant(1);
}

}  // namespace

std::optional<Diagram> with_axes_eliminated(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    const double written = count_points(diagram, equation, extents);
    if (written <= most_terms_as_written || !is_product_of_arrays(equation)) return std::nullopt;
    std::vector<Factor> factors;
    for (const Expr& e : factors_of(equation.body)) {
        const std::vector<AxisId> axes = free_axes(e);
        factors.push_back({e, {axes.begin(), axes.end()}});
    }
    Diagram out = diagram;
    out.equations.clear();
    double points = 0;
    std::vector<AxisId> open = equation.reduce_axes;
    while (!open.empty()) {
        const AxisId next = *std::min_element(open.begin(), open.end(), [&](AxisId a, AxisId b) {
            return points_of(axes_with(factors, a), extents) < points_of(axes_with(factors, b), extents);
        });
        std::erase(open, next);
        std::vector<Factor> having, others;
        for (Factor& factor : factors) (factor.axes.contains(next) ? having : others).push_back(std::move(factor));
        std::set<AxisId> axes{next};
        for (const Factor& factor : having) axes.insert(factor.axes.begin(), factor.axes.end());
        points += points_of(axes, extents);
        axes.erase(next);
        const ArrayId sum = add_array(out, "part", {axes.begin(), axes.end()}, DType::f64, ArrayRole::temporary);
        out.equations.push_back({sum, ReduceOp::sum, {next}, product_of(having), equation.range});
        factors = std::move(others);
        factors.push_back({read_self(out, sum), std::move(axes)});
    }
    out.equations.push_back({equation.target, {}, {}, product_of(factors), equation.range});
    points += count_points(out, out.equations.back(), extents);
    if (points * worth_eliminating > written) return std::nullopt;
    return out;
}

Diagram with_all_eliminated(Diagram diagram, const Extents& extents) {
    std::vector<Equation> equations;
    for (const Equation& equation : std::exchange(diagram.equations, {})) {
        auto parts = with_axes_eliminated(diagram, equation, extents);
        if (!parts) {
            equations.push_back(equation);
            continue;
        }
        for (auto a = ArrayId::of(diagram.arrays.size()); at(a) < parts->arrays.size(); ++a)
            parts->arrays[a].type = diagram.array(equation.target).type;
        append(equations, parts->equations);
        diagram.arrays = std::move(parts->arrays);
    }
    diagram.equations = std::move(equations);
    return diagram;
}

}  // namespace napkin
