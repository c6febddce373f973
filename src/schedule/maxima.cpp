#include "schedule/maxima.hpp"

#include <cmath>
#include <tuple>

#include "algebra/expr_walk.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Whether the condition says that m is the identity of `op`: -inf of a maximum. Under `nearly` it may also say that m
/// is infinite.
bool is_infinite(ReduceOp op, const Expr& condition, const Expr& m, Bounding how) {
    const auto* test = as<Binary>(condition);
    const auto* bound = test && test->op == BinaryOp::eq ? as<Constant>(test->b) : nullptr;
    if (!bound || !std::isinf(bound->value)) return false;
    if (equal(test->a, m)) return bound->value == identity(op) || how == Bounding::nearly;
    const auto* size = as<Unary>(test->a);
    return how == Bounding::nearly && size && size->op == UnaryOp::abs && equal(size->a, m);
}

/// A variable's value, its product with a number or with another variable's value, or a select between such values.
bool is_rounded_once(const Expr& value) {
    if (const auto* s = as<Select>(value)) return is_rounded_once(s->a) && is_rounded_once(s->b);
    if (as<Constant>(value)) return true;
    const auto* product = as<Binary>(value);
    if (!product || product->op != BinaryOp::mul) return as<Read>(value);
    const auto is_factor = [](const Expr& e) { return as<Read>(e) || (read_arrays(e).empty() && free_axes(e).empty()); };
    return is_factor(product->a) && is_factor(product->b);
}

}  // namespace

const Compute& Maxima::compute(StepId step) const { return std::get<Compute>(*kernel_.steps[step].statement); }

std::optional<StepId> Maxima::definition(VariableId id) const {
    std::optional<StepId> found;
    for (const StepId s : kernel_.steps.ids()) {
        const auto* compute = std::get_if<Compute>(kernel_.steps[s].statement);
        if (!compute || compute->variable != id) continue;
        if (found) return std::nullopt;
        found = s;
    }
    return found;
}

/// Whether every step that computes something that the expression reads stands before the given one.
bool Maxima::is_known_before(const Expr& e, StepId step) const {
    const std::vector<VariableId> read = read_variables(e);
    for (const StepId s : kernel_.steps.ids())
        if (const auto* compute = std::get_if<Compute>(kernel_.steps[s].statement);
            s >= step && compute && contains(read, compute->variable))
            return false;
    return true;
}

/// Whether the read is at the point at hand: each dimension by its own axis.
bool Maxima::is_read_in_place(const Read& r) const {
    const Variable& v = kernel_.variable(r.variable());
    if (r.indices.size() != v.dims.size()) return false;
    for (std::size_t d = 0; d < v.dims.size(); ++d)
        if (!(r.indices[d] == v.dims[d])) return false;
    return true;
}

bool Maxima::is_at_most_zero(const Expr& exponent, StepId reader, Bounding how) const {
    const auto* b = as<Binary>(exponent);
    if (!b) return false;
    if (b->op == BinaryOp::sub)
        return dominates(ReduceOp::max, b->b, b->a, reader, how) || dominates(ReduceOp::min, b->a, b->b, reader, how);
    const auto is_positive = [&](const Expr& e) { return constant_value(kernel_, e).value_or(0) > 0; };
    return b->op == BinaryOp::mul && ((is_positive(b->a) && is_at_most_zero(b->b, reader, how)) ||
                                      (is_positive(b->b) && is_at_most_zero(b->a, reader, how)));
}

bool Maxima::dominates(ReduceOp op, const Expr& m, const Expr& value, StepId reader, Bounding how) const {
    if (const auto* s = as<Select>(m)) {
        const auto* zero = as<Constant>(s->a);
        return zero && zero->value == 0 && is_infinite(op, s->condition, s->b, how) &&
               dominates(op, s->b, value, reader, how);
    }
    // A positive factor keeps the order, also where products are rounded.
    const auto *scaled = as<Binary>(m), *other = as<Binary>(value);
    if (scaled && other && scaled->op == BinaryOp::mul && other->op == BinaryOp::mul)
        for (const auto& [factor, of_m, with, of_value] :
             {std::tuple{scaled->a, scaled->b, other->a, other->b}, std::tuple{scaled->b, scaled->a, other->b, other->a}})
            if (equal(factor, with) && constant_value(kernel_, factor).value_or(0) > 0)
                return dominates(op, of_m, of_value, reader, how);
    const auto* r = as<Read>(m);
    const std::optional<StepId> step = r && is_read_in_place(*r) ? definition(r->variable()) : std::nullopt;
    if (!step || *step >= reader) return false;
    if (!compute(*step).reduce) return dominates(op, compute(*step).body, value, *step, how);
    return *compute(*step).reduce == op && equal(compute(*step).body, value) && is_known_before(value, *step);
}

bool is_rounded_before(const Expr& side) {
    if (const auto* s = as<Select>(side)) return is_rounded_before(s->a) || is_rounded_before(s->b);
    return as<Binary>(side);
}

std::vector<const Unary*> nonpositive_exponentials(const ScheduledKernel& kernel, const Step& step) {
    std::vector<const Unary*> out;
    if (kernel.in_blocks() || kernel.is_double) return out;
    const auto reader = StepId::of(find_if(kernel.steps, [&](const Step& s) { return s.statement == step.statement; }) -
                                   kernel.steps.begin());
    const Maxima maxima(kernel);
    for_each_postorder(std::get<Compute>(*step.statement).body, [&](const Expr& e) {
        const auto* u = as<Unary>(e);
        const auto* difference = u && u->op == UnaryOp::exp ? as<Binary>(u->a) : nullptr;
        if (difference && difference->op == BinaryOp::sub && is_rounded_once(difference->a) &&
            is_rounded_once(difference->b) && maxima.is_at_most_zero(u->a, reader, Bounding::exactly))
            out.push_back(u);
    });
    return out;
}

}  // namespace napkin
