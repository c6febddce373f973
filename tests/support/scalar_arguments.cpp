#include "support/scalar_arguments.hpp"

#include <cmath>

#include "algebra/expr_walk.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

class ScalarsForConstants {
public:
    explicit ScalarsForConstants(const Diagram& diagram)
        : out_(diagram), extents_(bind_sizes(diagram).value()), given_(diagram), kinds_(kinds_of(given_)) {}

    WithScalarArguments run() {
        for (Equation& e : out_.equations) e.body = without_numbers(e.body);
        return {print(out_), values_};
    }

private:
    [[nodiscard]] static bool is_fixed(const Expr& e) { return free_axes(e).empty() && read_arrays(e).empty(); }
    [[nodiscard]] static bool takes_numbers(BinaryOp op) {
        return op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul || op == BinaryOp::div ||
               op == BinaryOp::min || op == BinaryOp::max;
    }

    Expr without_numbers(const Expr& e) {
        if (as<Read>(e) || is_fixed(e)) return e;
        if (const auto* s = as<Select>(e)) return select(s->condition, without_numbers(s->a), without_numbers(s->b));
        const auto* b = as<Binary>(e);
        if (b && b->op == BinaryOp::pow) return binary(b->op, without_numbers(b->a), b->b);
        if (b && takes_numbers(b->op)) return binary(b->op, operand(b->a, b->b), operand(b->b, b->a));
        if (b) return e;
        std::vector<Expr> parts;
        for (const Expr& child : children(e)) parts.push_back(without_numbers(child));
        return with_children(e, std::move(parts));
    }
    Expr operand(const Expr& e, const Expr& other) {
        if (!is_fixed(e)) return without_numbers(e);
        const double value = evaluate_at(e, kinds_, given_, extents_, {}, std::vector<std::int64_t>(extents_.size(), 0)).as_real();
        if (kinds_(other) != Kind::real || !std::isfinite(value) || value == 0) return e;
        const ArrayId id = add_array(out_, "scalar", {}, DType::f32, ArrayRole::input);
        out_.inputs.push_back(id);
        values_[out_.array(id).name] = static_cast<float>(value);
        return read(id, {});
    }

    Diagram out_;
    Extents extents_;
    const Diagram& given_;
    Kinds kinds_;
    std::map<std::string, double> values_;
};

}  // namespace

WithScalarArguments with_scalar_arguments(const Diagram& diagram) { return ScalarsForConstants(diagram).run(); }

}  // namespace napkin
