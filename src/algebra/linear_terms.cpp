#include "algebra/linear_terms.hpp"

#include <utility>
#include <vector>

#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Terms with their factors, in the order in which they stand first.
class Terms {
public:
    void add(const Expr& e, std::int64_t factor) {
        if (const auto* n = as<Binary>(e); n && (n->op == BinaryOp::add || n->op == BinaryOp::sub)) {
            add(n->a, factor);
            add(n->b, n->op == BinaryOp::add ? factor : -factor);
        } else if (const auto* minus = as<Unary>(e); minus && minus->op == UnaryOp::neg) {
            add(minus->a, -factor);
        } else if (const auto* number = as<Constant>(e)) {
            constant_ += factor * (static_cast<std::int64_t>(number->value) + number->correction);
        } else {
            const auto at = find_if(terms_, [&](const auto& term) { return equal(term.first, e); });
            cancelled_ = cancelled_ || (at != terms_.end() && (at->second > 0) != (factor > 0));
            if (at == terms_.end())
                terms_.emplace_back(e, factor);
            else
                at->second += factor;
        }
    }
    [[nodiscard]] bool has_cancelled() const { return cancelled_; }

    /// The terms whose factors have the sign, as a sum; 0 where there are none.
    [[nodiscard]] Expr part(bool positive) const {
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

private:
    std::vector<std::pair<Expr, std::int64_t>> terms_;
    std::int64_t constant_ = 0;
    bool cancelled_ = false;
};

bool is_zero(const Expr& e) { return as<Constant>(e) && as<Constant>(e)->value == 0; }

}  // namespace

Expr without_cancelled_terms(const Expr& sum) {
    Terms terms;
    terms.add(sum, 1);
    if (!terms.has_cancelled()) return sum;
    const Expr more = terms.part(true), less = terms.part(false);
    return is_zero(less) ? more : binary(BinaryOp::sub, more, less);
}

Expr without_common_terms(const Expr& comparison) {
    const Binary& n = *as<Binary>(comparison);
    Terms terms;
    terms.add(n.a, 1);
    terms.add(n.b, -1);
    return terms.has_cancelled() ? binary(n.op, terms.part(true), terms.part(false)) : comparison;
}

}  // namespace napkin
