#pragma once
// Where a body contributes to a reduction at all: the inequalities that masks (where(x <= q, …, -inf)) imply.
#include <functional>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"
#include "algebra/value_class.hpp"
#include "diagram/guards.hpp"

namespace napkin {

using ValuesOf = std::function<ValueClass(const Expr&)>;

/// Forms, each ≥ 0 at every point at which `body` differs from the identity of ⊕. Points where it is NaN count, except
/// for a masked 0 that is multiplied by an infinity or divided by 0. Pre: `values` gives the kinds of values of a part
/// of `body`. The list may be empty.
std::vector<MaskForm> support(const Expr& body, ReduceOp op, const ValuesOf& values);

/// Those in both lists.
std::vector<MaskForm> common(const std::vector<MaskForm>& a, const std::vector<MaskForm>& b);

}  // namespace napkin
