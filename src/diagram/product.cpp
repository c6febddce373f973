#include "diagram/product.hpp"

#include "support/ids.hpp"

namespace napkin {

const Binary* as_product(const Expr& e) {
    const auto* widened = as<Cast>(e);
    const auto* b = as<Binary>(widened && widened->type == DType::i64 ? widened->a : e);
    return b && b->op == BinaryOp::mul ? b : nullptr;
}

std::vector<Expr> factors_of(const Expr& e) {
    const auto* b = as<Binary>(e);
    if (!b || b->op != BinaryOp::mul) return {e};
    std::vector<Expr> factors = factors_of(b->a);
    for (Expr& factor : factors_of(b->b)) factors.push_back(std::move(factor));
    return factors;
}

double count_points(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    double points = 1;
    for (const auto* axes : {&diagram.array(equation.target).axes, &equation.reduce_axes})
        for (const AxisId axis : *axes) points *= static_cast<double>(extents[axis]);
    return points;
}

bool is_product_of_arrays(const Equation& equation) {
    if (equation.reduce != ReduceOp::sum) return false;
    int arrays = 0;
    for (const Expr& factor : factors_of(equation.body)) {
        const bool is_read = as<Read>(factor) != nullptr;
        arrays += is_read;
        if (!is_read && !(read_arrays(factor).empty() && free_axes(factor).empty())) return false;
    }
    return arrays >= 3;
}

std::optional<ProductAxes> product_axes(const std::vector<AxisId>& first, const std::vector<AxisId>& second,
                                        const std::vector<AxisId>& target, const std::vector<AxisId>& summed) {
    ProductAxes axes;
    for (const AxisId axis : summed) {
        if (!contains(first, axis) || !contains(second, axis)) return std::nullopt;
        axes.k.push_back(axis);
    }
    for (const AxisId axis : target) {
        const bool a = contains(first, axis), b = contains(second, axis);
        (a && b ? axes.batch : a ? axes.m : b ? axes.n : axes.loose).push_back(axis);
    }
    return axes;
}

}  // namespace napkin
