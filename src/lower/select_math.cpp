#include "lower/select_math.hpp"

#include <cmath>
#include <numbers>
#include <utility>

#include "algebra/power.hpp"
#include "schedule/error_function.hpp"
#include "schedule/integer_values.hpp"
#include "schedule/maxima.hpp"
#include "schedule/quotients.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

const Expr& operand_of(const Binary& product, int number) { return number == 0 ? product.a : product.b; }

bool is_power_of_two(double value) {
    int exponent = 0;
    return std::abs(std::frexp(value, &exponent)) == 0.5;
}

/// Whether the statement's result is stored in a narrow type, which hides the last digits of f32, and nothing else uses
/// it. A quotient under a floor needs these digits.
bool is_rounded_at_once(const ScheduledKernel& kernel, const Step& step) {
    const DType type = kernel.variable(variable_of(step)).memory_type;
    return is_result_alone(kernel, step) && is_float(type) && bytes(type) <= 2;
}

class Selection {
public:
    Selection(const ScheduledKernel& kernel, IntegerValues& integers) : kernel_(kernel), integers_(integers) {}
    /// `columns`: the axis along fragments; -1: there is none.
    Selection(const ScheduledKernel& kernel, IntegerValues& integers, const Step& step, AxisId columns)
        : kernel_(kernel),
          integers_(integers),
          scope_(step.scope),
          columns_(columns),
          is_whole_(step.is_whole),
          near_error_(near_error_function(kernel, step)),
          nonpositive_(nonpositive_exponentials(kernel, step)),
          common_divisor_(common_divisor(kernel, step)),
          is_rounded_at_once_(is_rounded_at_once(kernel, step)) {}

    void add_choices(PointMath& point) const {
        for (const Expr& root : {point.value, point.carry})
            if (root)
                visit(root, [&](const Expr& e) {
                    MathChoice choice = at(e, e == point.value);
                    if (choice.form != MathForm::plain && choice_at(point.choices, e).form == MathForm::plain)
                        point.choices.push_back(std::move(choice));
                });
    }

private:
    [[nodiscard]] MathChoice at(const Expr& e, bool is_value) const {
        if (read_arrays(e).empty() && free_axes(e).empty()) return {e};  // a number
        if (auto sum = sum_with_column(e)) return {.node = e, .form = MathForm::own_column, .sum = std::move(sum)};
        if (const auto* u = as<Unary>(e)) return at_unary(e, *u);
        const auto* b = as<Binary>(e);
        if (!b) return {e};
        if (b->op == BinaryOp::div) return {e, quotient(*b, is_value)};
        const auto exponent = b->op == BinaryOp::pow ? constant_value(kernel_, b->b) : std::nullopt;
        if (exponent && power_steps(*exponent)) return {e, MathForm::products, *exponent};
        if (b->op == BinaryOp::mul && has_powers_of_two()) return product(e, *b);
        const bool is_of_two = b->op == BinaryOp::pow && constant_value(kernel_, b->a) == 2.0;
        return {e, is_of_two ? MathForm::power_of_two : MathForm::plain};
    }

    [[nodiscard]] MathChoice at_unary(const Expr& e, const Unary& u) const {
        if (&u == near_error_) return {e, MathForm::near_error};
        if (u.op != UnaryOp::exp) return {e};
        if (has_powers_of_two()) return exponential(e, u);
        if (!contains(nonpositive_, &u)) return {e};
        const auto* difference = as<Binary>(u.a);
        return {.node = e,
                .form = MathForm::nonpositive,
                .rounds_first = is_rounded_before(difference->a),
                .rounds_second = is_rounded_before(difference->b)};
    }
    [[nodiscard]] bool has_powers_of_two() const { return kernel_.in_blocks() && !kernel_.is_double; }

    /// Where the argument is a·c − b, c is scaled beforehand. One fused operation is then left for a value that differs
    /// from point to point. This overflows only where the exponential would. With |c·log2 e| <= 1 the scaled product is
    /// no larger than a is, and what nearly cancels it is no larger either. The bounds of check/bounded.cpp rely on it.
    [[nodiscard]] MathChoice exponential(const Expr& e, const Unary& u) const {
        const auto* difference = as<Binary>(u.a);
        const auto* product = difference && difference->op == BinaryOp::sub ? as<Binary>(difference->a) : nullptr;
        if (product && product->op == BinaryOp::mul)
            for (const int a : {0, 1})
                if (const auto c = constant_value(kernel_, operand_of(*product, 1 - a));
                    c && std::abs(*c * std::numbers::log2e) <= 1)
                    return {e, MathForm::power_of_two, *c, a};
        return {e, MathForm::power_of_two};
    }

    /// A factor that is neither tiny nor huge: its logarithm beside the argument costs no digits.
    [[nodiscard]] MathChoice product(const Expr& e, const Binary& b) const {
        for (const int x : {0, 1}) {
            const auto* exp = as<Unary>(operand_of(b, x));
            if (!exp || exp->op != UnaryOp::exp) continue;
            if (const auto c = constant_value(kernel_, operand_of(b, 1 - x)); c && *c >= 0x1p-32 && *c <= 0x1p32)
                return {e, MathForm::power_of_two, *c, x};
        }
        return {e};
    }

    [[nodiscard]] MathForm quotient(const Binary& b, bool is_value) const {
        if (common_divisor_ && is_value) return MathForm::reciprocal;
        if (!kernel_.in_blocks()) return MathForm::plain;
        if (const auto c = constant_value(kernel_, b.b); c && is_power_of_two(*c)) return MathForm::exact_quotient;
        return is_value && is_rounded_at_once_ ? MathForm::near_quotient : MathForm::plain;
    }

    /// A sum in which the column stands once, or the difference of what is compared.
    [[nodiscard]] std::optional<Affine> sum_with_column(const Expr& e) const {
        if (columns_ < 0 || kernel_.span(columns_, scope_).tile == 1) return std::nullopt;
        const auto* b = as<Binary>(e);
        std::optional<Affine> sum;
        if (b && b->op >= BinaryOp::lt && b->op <= BinaryOp::ge) {
            const auto x = small_sum(b->a), y = small_sum(b->b);
            if (x && y) sum = *x - *y;
        } else if (!is_whole_ && (as<AxisIndex>(e) || (b && (b->op == BinaryOp::add || b->op == BinaryOp::sub)))) {
            sum = small_sum(e);
        }
        return sum && std::abs(sum->coefficient(columns_)) == 1 ? sum : std::nullopt;
    }
    /// The expression as a sum of small integers, with numbers for sizes; none where it is no such sum.
    [[nodiscard]] std::optional<Affine> small_sum(const Expr& e) const {
        if (!integers_.is_small(e)) return std::nullopt;
        return affine_form(e, &kernel_.extents);
    }

    const ScheduledKernel& kernel_;
    IntegerValues& integers_;
    ScopeId scope_ = {};
    AxisId columns_ = -1;
    bool is_whole_ = false;  ///< it computes integers
    const Unary* near_error_ = nullptr;
    std::vector<const Unary*> nonpositive_;
    std::optional<CommonDivisor> common_divisor_;
    bool is_rounded_at_once_ = false;
};

/// An extremum of c·e with c > 0 is c times that of e, to the last bit: multiplying and rounding keep the order.
void take_factor_out(const ScheduledKernel& kernel, ReduceOp op, PointMath& point) {
    const auto* product = as<Binary>(point.value);
    if ((op != ReduceOp::max && op != ReduceOp::min) || !product || product->op != BinaryOp::mul) return;
    for (const int e : {0, 1})
        if (const auto c = constant_value(kernel, operand_of(*product, 1 - e));
            c && *c > 0 && std::isfinite(*c) && !constant_value(kernel, operand_of(*product, e))) {
            point.factor = operand_of(*product, 1 - e);
            point.value = Expr(operand_of(*product, e));
            return;
        }
}

StatementMath of_statement(const ScheduledKernel& kernel, IntegerValues& integers, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    const AtomKind kind = kernel.atom(step).kind;
    const AxisId columns = kind == AtomKind::block || kind == AtomKind::tile ? AxisId(-1)
                                                                             : columns_of_statement(kernel, step);
    StatementMath out;
    out.reduces_columns = kind == AtomKind::fragment && compute.reduce && columns >= 0 &&
                          column_axis(kernel, compute.variable) < 0;
    const Selection selection(kernel, integers, step, columns);
    const auto point = [&](const Expr& body, const Expr& carry) {
        PointMath p{body, carry};
        if (kind == AtomKind::mma) p = {carry};
        // A single term needs no loop: the value itself is the reduction.
        if (kind == AtomKind::fragment && carry && !out.reduces_columns)
            p = {binary(pairwise(*compute.reduce), carry, body)};
        if (out.reduces_columns)
            take_factor_out(kernel, *compute.reduce, p);
        else if (p.value)
            p.value = with_row_factors_together(kernel, p.value, step.scope, columns).expression;
        selection.add_choices(p);
        return p;
    };
    out.any = point(compute.body, compute.carry);
    if (kind == AtomKind::fragment) out.within = unmasked(kernel, step);
    if (out.within) {
        out.unmasked = point(out.within->body, out.within->carry);
        out.unmasked->has_whole_columns = out.within->whole >= 0;
    }
    return out;
}

}  // namespace

const MathChoice& choice_at(const MathChoices& choices, const Expr& node) {
    static const MathChoice plain;
    const auto it = find_if(choices, [&](const MathChoice& c) { return c.node == node; });
    return it == choices.end() ? plain : *it;
}

KernelMath select_math(const ScheduledKernel& kernel) {
    KernelMath out;
    IntegerValues integers(kernel);
    for (const Step& step : kernel.steps)
        if (step.atom >= 0) out.statements.emplace(step.statement, of_statement(kernel, integers, step));
    for (const StateMerge& merge : kernel.kernel->merges) {
        PointMath point{merge.given};
        Selection(kernel, integers).add_choices(point);
        out.merges.push_back(std::move(point.choices));
    }
    return out;
}

}  // namespace napkin::lower
