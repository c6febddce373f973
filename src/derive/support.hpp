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

/// Forms, each ≥ 0 at every point at which `body` differs from the identity of ⊕: also where it is NaN, but for a
/// masked 0 that is multiplied by an infinity or divided by 0. `values`: the kinds of values of a part of it. May be
/// empty.
std::vector<MaskForm> support(const Expr& body, ReduceOp op, const ValuesOf& values);

/// Those in both lists.
std::vector<MaskForm> common(const std::vector<MaskForm>& a, const std::vector<MaskForm>& b);

}  // namespace napkin
