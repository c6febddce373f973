#include "tile/strip.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "algebra/expr_walk.hpp"

namespace napkin {
namespace {

template <class F>
void each(std::int64_t count, double* to, const double* a, F f) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a[i]);
}

template <class F>
void each(std::int64_t count, double* to, const double* a, const double* b, F f) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
}

void run_unary(UnaryOp op, std::int64_t count, double* to, const double* a) {
    switch (op) {
        case UnaryOp::neg: return each(count, to, a, [](double x) { return -x; });
        case UnaryOp::exp: return each(count, to, a, [](double x) { return std::exp(x); });
        default: return each(count, to, a, [op](double x) { return apply(op, x); });
    }
}

void run_binary(BinaryOp op, std::int64_t count, double* to, const double* a, const double* b) {
    switch (op) {
        case BinaryOp::add: return each(count, to, a, b, [](double x, double y) { return x + y; });
        case BinaryOp::sub: return each(count, to, a, b, [](double x, double y) { return x - y; });
        case BinaryOp::mul: return each(count, to, a, b, [](double x, double y) { return x * y; });
        case BinaryOp::div: return each(count, to, a, b, [](double x, double y) { return x / y; });
        default: return each(count, to, a, b, [op](double x, double y) { return apply(op, x, y); });
    }
}

}  // namespace

StripProgram::StripProgram(const Expr& e, AxisId strip_axis, const std::vector<std::int64_t>& extents)
    : strip_axis_(strip_axis) {
    std::unordered_map<Expr, int, ExprHash, ExprEqual> done;
    for_each_postorder(e, [&](const Expr& node) {
        if (done.contains(node)) return;
        // In double precision a number format only says that a value is whole, or not (diagram/evaluate.hpp, Precision::exact).
        if (const auto* c = as<Cast>(node); c && is_float(c->type)) {
            done[node] = done.at(c->a);
            return;
        }
        int operands[3] = {-1, -1, -1}, num_operands = 0;
        for_each_child(*node, [&](const Expr& child) { operands[num_operands++] = done.at(child); });
        Step step{Kind::constant, 0, operands[0], operands[1], operands[2], 0};
        if (const auto* constant = as<Constant>(node)) step.value = constant->value;
        if (const auto* size = as<AxisSize>(node))
            step.value = static_cast<double>(extents[static_cast<std::size_t>(size->axis)]);
        if (const auto* index = as<AxisIndex>(node)) step.kind = Kind::axis_index, step.a = index->axis;
        if (const auto* r = as<Read>(node)) {
            step.kind = Kind::leaf, step.a = static_cast<int>(reads_.size());
            reads_.push_back(*r);
        }
        if (const auto* u = as<Unary>(node)) step.kind = Kind::unary, step.op = static_cast<std::uint8_t>(u->op);
        if (const auto* b = as<Binary>(node)) step.kind = Kind::binary, step.op = static_cast<std::uint8_t>(b->op);
        if (as<Select>(node)) step.kind = Kind::select;
        if (const auto* c = as<Cast>(node)) step.kind = Kind::cast, step.op = static_cast<std::uint8_t>(c->type);
        done[node] = static_cast<int>(steps_.size());
        steps_.push_back(step);
    });

    result_ = done.at(e);
    storage_.resize(steps_.size() * max_points);
    results_.resize(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
        results_[s] = storage_.data() + s * max_points;
        if (steps_[s].kind == Kind::constant)
            std::fill_n(storage_.data() + s * max_points, max_points, steps_[s].value);
    }
}

const double* StripProgram::run(const std::vector<StripRead>& leaves, const std::vector<std::int64_t>& point,
                                std::int64_t count) {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
        const Step& step = steps_[s];
        double* to = storage_.data() + s * max_points;
        const auto operand = [&](int i) { return results_[static_cast<std::size_t>(i)]; };
        switch (step.kind) {
            case Kind::constant: break;
            case Kind::axis_index: {
                const auto first = static_cast<double>(point[static_cast<std::size_t>(step.a)]);
                const double increment = step.a == strip_axis_ ? 1 : 0;
                for (std::int64_t i = 0; i < count; ++i) to[i] = first + increment * static_cast<double>(i);
                break;
            }
            case Kind::leaf: {
                const StripRead& leaf = leaves[static_cast<std::size_t>(step.a)];
                if (leaf.stride == 1)
                    results_[s] = leaf.first;
                else {
                    for (std::int64_t i = 0; i < count; ++i) to[i] = leaf.first[i * leaf.stride];
                    results_[s] = to;
                }
                break;
            }
            case Kind::unary: run_unary(static_cast<UnaryOp>(step.op), count, to, operand(step.a)); break;
            case Kind::binary:
                run_binary(static_cast<BinaryOp>(step.op), count, to, operand(step.a), operand(step.b));
                break;
            case Kind::select: {
                const double *condition = operand(step.a), *a = operand(step.b), *b = operand(step.c);
                for (std::int64_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? a[i] : b[i];
                break;
            }
            case Kind::cast:
                each(count, to, operand(step.a), [&](double x) { return round_to(static_cast<DType>(step.op), x); });
                break;
        }
    }
    return results_[static_cast<std::size_t>(result_)];
}

}  // namespace napkin
