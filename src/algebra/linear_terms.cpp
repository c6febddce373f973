#include "algebra/linear_terms.hpp"

#include "support/ranges.hpp"

namespace napkin {

void LinearTerms::add(const Expr& e, std::int64_t factor) {
    const auto number_of = [](const Expr& x) { return as<Constant>(x); };
    const auto value_of = [](const Constant& c) { return static_cast<std::int64_t>(c.value) + c.correction; };
    const auto* n = as<Binary>(e);
    if (n && (n->op == BinaryOp::add || n->op == BinaryOp::sub)) {
        add(n->a, factor);
        add(n->b, n->op == BinaryOp::add ? factor : -factor);
    } else if (n && n->op == BinaryOp::mul && number_of(n->a)) {
        add(n->b, factor * value_of(*number_of(n->a)));
    } else if (n && n->op == BinaryOp::mul && number_of(n->b)) {
        add(n->a, factor * value_of(*number_of(n->b)));
    } else if (const auto* minus = as<Unary>(e); minus && minus->op == UnaryOp::neg) {
        add(minus->a, -factor);
    } else if (const auto* number = number_of(e)) {
        constant_ += factor * value_of(*number);
    } else {
        const auto at = find_if(terms_, [&](const auto& term) { return equal(term.first, e); });
        cancelled_ = cancelled_ || (at != terms_.end() && (at->second > 0) != (factor > 0));
        if (at == terms_.end())
            terms_.emplace_back(e, factor);
        else
            at->second += factor;
    }
}

Expr LinearTerms::part(bool positive) const {
    Expr out;
    const auto take = [&](const Expr& e) { out = out ? binary(BinaryOp::add, out, e) : e; };
    for (const auto& [e, factor] : terms_) {
        if (factor == 0 || (factor > 0) != positive) continue;
        const std::int64_t times = positive ? factor : -factor;
        take(times == 1 ? e : binary(BinaryOp::mul, integer_constant(times), e));
    }
    if (constant_ != 0 && (constant_ > 0) == positive) take(integer_constant(positive ? constant_ : -constant_));
    return out ? out : integer_constant(0);
}

bool LinearTerms::is_zero() const {
    return constant_ == 0 && all_of(terms_, [](const auto& term) { return term.second == 0; });
}

Expr without_cancelled_terms(const Expr& sum) {
    LinearTerms terms;
    terms.add(sum, 1);
    if (!terms.has_cancelled()) return sum;
    const Expr more = terms.part(true), less = terms.part(false);
    const auto* nothing = as<Constant>(less);
    return nothing && nothing->value == 0 ? more : binary(BinaryOp::sub, more, less);
}

Expr without_common_terms(const Expr& comparison) {
    const Binary& n = *as<Binary>(comparison);
    LinearTerms terms;
    terms.add(n.a, 1);
    terms.add(n.b, -1);
    return terms.has_cancelled() ? binary(n.op, terms.part(true), terms.part(false)) : comparison;
}

}  // namespace napkin
