#pragma once
// What was accumulated, moved to where the running results are now: the actions of law.hpp that act at every step.
#include <functional>

#include "derive/factor.hpp"

namespace napkin {

/// `own` is the accumulated value before the step; `at` gives an expression in running results before (old) or after
/// the step, `old` the value of another state before the step.
Expr carried(const Correction& correction, ReduceOp op, const Expr& own,
             const std::function<Expr(const Expr&, bool old)>& at, const std::function<Expr(ArrayId)>& old);

/// b^(s·(R′ − R)), by which what was accumulated under the reference follows it.
Expr correction_of(const Reference& reference, const std::function<Expr(const Expr&, bool old)>& at);

/// n over k.
double binomial(int n, int k);

/// e, but 1 where it is 0: the denominator of a reciprocal that is kept, before the first value.
Expr nonzero(const Expr& e);

}  // namespace napkin
