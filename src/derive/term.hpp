#pragma once
// One separable term of a sum, and the small algebra of terms. Null expressions stand for the neutral value throughout:
// 1 as a factor, 0 as an addend.
#include <string>
#include <utility>
#include <vector>

#include "derive/factor.hpp"

namespace napkin {

/// A(x) + B(ν), a factor of a term that is not multiplied out yet.
struct Shifted {
    Expr a, b;
};

/// where(masks, body · Π (A + B), 0), reduced over the stream, then where(guards, · tail, 0).
struct Term {
    Expr body;         ///< in the stream and in references
    Conditions masks;  ///< of the stream
    /// The factor of the body that the masks make 0, as written: the other factors count there, infinite ones too.
    /// Null: the masks are of all of the body.
    Expr masked_factor;
    std::vector<Shifted> shifted;
    std::vector<Reference> references;
    std::vector<Selection> selections;
    Expr tail;                 ///< without the stream
    Conditions guards;         ///< without the stream
    Conditions undefined;      ///< where the definition is NaN, but the guarded body is not
    Conditions vanishing;      ///< where a factor of the tail is 0, though rounding may have made the body infinite
    bool masked_tail = false;  ///< the tail stood under a mask: where nothing was selected it does not count
    /// what the masks leave out is another term: all that this one is multiplied with stands under them
    bool is_branch = false;
};
using Terms = std::vector<Term>;

Expr times(const Expr& a, const Expr& b);
Expr over(const Expr& a, const Expr& b);
Expr plus(const Expr& a, const Expr& b);
Expr minus(const Expr& a, const Expr& b);
Expr negated(const Expr& a);
inline Expr or_one(const Expr& a) { return a ? a : constant(1); }
inline Expr or_zero(const Expr& a) { return a ? a : constant(0); }

/// e where all conditions hold, else 0.
Expr masked(const Conditions& masks, const Expr& e);
/// b^e; exp(e) where the base is null, exp2(e) where it is 2.
Expr exponential(const Expr& base, const Expr& e);

/// e = Σ sign·part, and e = Π part^±1: nested sums, differences and negations, products and quotients, in order.
struct Part {
    int sign = 1;
    Expr e;
};
/// At most `limit` parts; the rest stays whole.
std::vector<Part> addends(const Expr& e, std::size_t limit = 256);
/// A negation is a factor -1.
std::vector<Part> factors(const Expr& e, std::size_t limit = 256);

/// The conditions under which `after`, which is `before` up to the laws of the reals, has lost a value that is not
/// finite. The definition is NaN there. They come from terms that have cancelled and need not be finite, and from
/// conditions under which NaN was written.
Conditions lost(const Expr& before, const Expr& after, const Stream& stream);

/// where(c, e, nan) as e: for proofs, which hold only where everything is defined.
Expr where_defined(const Expr& e);

}  // namespace napkin
