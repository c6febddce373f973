#include "derive/carry.hpp"

#include "derive/law.hpp"
#include "derive/term.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

// The old R′ is infinite while nothing has arrived. The factor is then 0, not undefined, since the new one is finite.
Expr correction_of(const Reference& reference, const std::function<Expr(const Expr&, bool)>& at) {
    const Expr before = at(reference.value, true), now = at(reference.guarded, false);
    const Expr moved = simplify(reference.is_max ? binary(BinaryOp::sub, before, now) : binary(BinaryOp::sub, now, before));
    return exponential(reference.base, times(moved, reference.scale));
}

double binomial(int n, int k) {
    double value = 1;
    for (int i = 0; i < k; ++i) value = value * (n - i) / (i + 1);
    return value;
}

Expr nonzero(const Expr& e) { return select(binary(BinaryOp::eq, e, constant(0)), constant(1), e); }

Expr carried(const Correction& correction, ReduceOp op, const Expr& own,
             const std::function<Expr(const Expr&, bool old)>& at, const std::function<Expr(ArrayId)>& old) {
    Expr delta;
    for (const auto& r : correction.references) {
        const Expr factor = correction_of(r, at);
        delta = delta ? binary(BinaryOp::mul, delta, factor) : factor;
    }
    // A reference over more points than count here may be infinite or NaN while nothing has counted.
    const bool is_of_more = any_of(correction.references, [](const Reference& r) { return r.is_of_more; });
    const auto followed = [&](const Expr& e) {
        if (!delta) return e;
        const Expr moved = binary(BinaryOp::mul, e, delta);
        return is_of_more ? select(binary(BinaryOp::eq, e, constant(0)), constant(0), moved) : moved;
    };
    Expr value = followed(own);
    if (const auto& m = correction.moment) {
        // Σ w·Π(A − r)^p = Σ_j Π C(p, j)·(r′ − r)^(p − j)·Σ w·Π(A − r′)^j. The exponential's correction comes first:
        // where it is 0, what a far reference has left behind is 0 before it meets the distance.
        for (const auto& [powers, state] : m->lower) {
            Expr term = followed(old(state));
            double ways = 1;
            for (std::size_t g = 0; g < powers.size(); ++g) {
                ways *= binomial(m->powers[g], powers[g]);
                const Expr& r = m->origins[g];
                const Expr shift = binary(BinaryOp::sub, at(r, true), at(r, false));
                for (int k = powers[g]; k < m->powers[g]; ++k) term = binary(BinaryOp::mul, term, shift);
            }
            if (ways != 1) term = binary(BinaryOp::mul, constant(ways), term);
            if (m->is_masked) term = select(binary(BinaryOp::eq, old(state), constant(0)), constant(0), term);
            value = binary(BinaryOp::add, value, term);
        }
    }
    if (correction.kept) {
        // κ(ν)/κ(ν′) of a kept reciprocal 1/z is z′/z, z being 0 only before the first value.
        const auto* quotient = as<Binary>(correction.kept);
        internal_check(quotient && quotient->op == BinaryOp::div, "a kept factor is a reciprocal");
        value = binary(BinaryOp::mul, value, binary(BinaryOp::div, at(quotient->b, true), nonzero(at(quotient->b, false))));
    }
    // An extremum that saw nothing yet is infinite, and stays so: infinity times a correction of 0 would be undefined.
    if (!correction.references.empty() && (op == ReduceOp::max || op == ReduceOp::min)) {
        const Expr nothing = constant(*law(op, Action::multiply).absorbing);
        value = select(binary(BinaryOp::eq, own, nothing), own, value);
    }
    for (const auto& s : correction.selections) {
        const Expr before = at(s.extremum, true);
        Expr stays = binary(BinaryOp::eq, before, at(s.extremum, false));
        if (s.or_nan) stays = binary(BinaryOp::logical_or, stays, binary(BinaryOp::ne, before, before));
        value = select(stays, value, s.nothing);
    }
    return value;
}

}  // namespace napkin
