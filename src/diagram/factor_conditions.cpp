#include "diagram/factor_conditions.hpp"

#include <cmath>
#include <set>
#include <utility>

#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Arrays that have values of inputs alone. Nothing of them overflows, so that 0 times one of them is 0.
class Copies {
public:
    explicit Copies(const Diagram& diagram) {
        for (const ArrayId id : diagram.inputs) arrays_.insert(id);
        for (const Equation& e : diagram.equations)
            if (!e.reduce && is_copy(e.body)) arrays_.insert(e.target);
    }
    [[nodiscard]] bool is_copy(const Expr& e) const {
        if (const auto* r = as<Read>(e)) return arrays_.contains(r->array);
        if (const auto* s = as<Select>(e)) return is_copy(s->a) && is_copy(s->b);
        if (const auto* u = as<Unary>(e)) return u->op == UnaryOp::neg && is_copy(u->a);
        const auto* c = as<Constant>(e);
        return (c && std::isfinite(c->value)) || as<AxisIndex>(e) || as<AxisSize>(e);
    }

private:
    std::set<ArrayId> arrays_;
};

/// A product and the parts of the conditions around it.
struct MaskedProduct {
    std::vector<Expr> factors, conditions;
};

MaskedProduct masked_product(const Expr& body) {
    MaskedProduct out;
    Expr inner = body;
    while (const Select* select = zero_elsewhere(inner))
        append(out.conditions, conditions_in(select->condition)), inner = select->a;
    out.factors = factors_of(inner);
    return out;
}

/// Whether the expression has all axes of the condition, and there are some.
bool has_axes_of(const Expr& e, const Expr& condition) {
    const std::vector<AxisId> axes = free_axes(condition);
    return !axes.empty() && all_of(axes, [&](AxisId axis) { return depends_on_axis(e, axis); });
}

Expr all_hold(const std::vector<Expr>& conditions) {
    Expr all;
    for (const Expr& condition : conditions) all = both_hold(all, condition);
    return all;
}

Expr where(const std::vector<Expr>& conditions, const Expr& value) {
    return conditions.empty() ? value : select(all_hold(conditions), value, constant(0));
}

/// Whether an index may leave its dimension, as far as sizes in letters say. An e + 1 may not leave a size(e) + 1.
bool may_leave(const Diagram& d, const Index& index, AxisId dimension) {
    const Affine* form = index.affine();
    if (index.is_axis(dimension)) return false;
    if (!form || form->constant < 0 || !form->sizes.empty()) return true;
    Size last(form->constant);
    for (const auto& [axis, factor] : form->terms) {
        if (factor < 0) return true;
        last += Size(factor) * (Size(axis_symbol(axis)) - Size(1));
    }
    const auto& size = d.axis(dimension).size;
    const auto behind = size ? (*size - Size(1) - last).as_constant() : std::nullopt;
    return !behind || *behind < Rational(0);
}

/// The body with its conditions at factors, or as it is.
Expr with_parts_at_factors(const Diagram& d, const Copies& copies, const Equation& e) {
    const Expr& body = e.body;
    const MaskedProduct masked = masked_product(body);
    const std::vector<Expr>& factors = masked.factors;
    const std::vector<Expr>& conditions = masked.conditions;
    const auto reads = [](const Expr& factor) { return !read_arrays(factor).empty(); };
    // Parts that keep each other's reads inside stay together.
    const MayLeave leaves = [&](const Index& index, AxisId dimension) { return may_leave(d, index, dimension); };
    const bool are_plain = none_of(conditions, [&](const Expr& condition) {
        return guard_of_reads(d, condition, all_hold(conditions), leaves) != nullptr;
    });
    if (conditions.empty() || count_if(factors, reads) < 2 || !are_plain) return body;
    std::vector<std::vector<Expr>> at_factor(factors.size());
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const Expr guard = guard_of_reads(d, factors[i], all_hold(conditions), leaves);
        if (guard) at_factor[i] = conditions_in(guard);
        if (!all_of(at_factor[i], [&](const Expr& part) { return has_axes_of(factors[i], part); })) return body;
    }
    std::vector<Expr> rest;
    for (const Expr& condition : conditions) {
        if (any_of(at_factor, [&](const auto& parts) { return contains(parts, condition); })) continue;
        const auto has_summed_axis_of = [&](const Expr& f) {
            return any_of(e.reduce_axes, [&](AxisId a) { return depends_on_axis(f, a) && depends_on_axis(condition, a); });
        };
        // What lies behind a length that is data may be anything, as in a cache that is not full.
        const bool reads_data = !read_arrays(condition).empty();
        bool is_at_factor = false;
        for (std::size_t i = 0; i < factors.size() && (reads_data || !is_at_factor); ++i)
            if (has_axes_of(factors[i], condition) || (reads_data && has_summed_axis_of(factors[i])))
                at_factor[i].push_back(condition), is_at_factor = true;
        if (is_at_factor) continue;
        const auto factor = find_if(factors, has_summed_axis_of);
        (factor == factors.end() ? rest : at_factor[static_cast<std::size_t>(factor - factors.begin())]).push_back(condition);
    }
    // A factor stands without a condition that it stood under.
    for (std::size_t i = 0; i < factors.size(); ++i)
        if (at_factor[i].size() + rest.size() < conditions.size() && !copies.is_copy(factors[i])) return body;
    Expr out;
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const Expr factor = where(at_factor[i], factors[i]);
        out = out ? binary(BinaryOp::mul, out, factor) : factor;
    }
    return where(rest, out);
}

}  // namespace

Diagram with_conditions_at_factors(Diagram diagram) {
    const Copies copies(diagram);
    for (Equation& e : diagram.equations)
        if (e.reduce == ReduceOp::sum) e.body = with_parts_at_factors(diagram, copies, e);
    return diagram;
}

}  // namespace napkin
