#include "schedule/maxima.hpp"

#include <cmath>

#include "algebra/expr_walk.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Whether the condition says that m is -inf. Under `nearly` it may also say that m is infinite.
bool is_infinite(const Expr& condition, const Expr& m, Dominance how) {
    const auto* test = as<Binary>(condition);
    const auto* bound = test && test->op == BinaryOp::eq ? as<Constant>(test->b) : nullptr;
    if (!bound || !std::isinf(bound->value)) return false;
    if (equal(test->a, m)) return bound->value < 0 || how == Dominance::nearly;
    const auto* size = as<Unary>(test->a);
    return how == Dominance::nearly && size && size->op == UnaryOp::abs && equal(size->a, m);
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

bool Maxima::dominates(const Expr& m, const Expr& value, StepId reader, Dominance how) const {
    if (const auto* s = as<Select>(m)) {
        const auto* zero = as<Constant>(s->a);
        return zero && zero->value == 0 && is_infinite(s->condition, s->b, how) && dominates(s->b, value, reader, how);
    }
    const auto* r = as<Read>(m);
    const std::optional<StepId> step = r && is_read_in_place(*r) ? definition(r->variable()) : std::nullopt;
    if (!step || *step >= reader) return false;
    if (!compute(*step).reduce) return dominates(compute(*step).body, value, *step, how);
    return *compute(*step).reduce == ReduceOp::max && equal(compute(*step).body, value) && is_known_before(value, *step);
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
            maxima.dominates(difference->b, difference->a, reader, Dominance::exactly))
            out.push_back(u);
    });
    return out;
}

}  // namespace napkin
