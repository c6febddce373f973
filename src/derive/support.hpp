#pragma once
// Where a body contributes to a reduction at all: the affine inequalities that masks (where(x <= q, …, -inf)) imply.
#include <functional>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"
#include "algebra/value_class.hpp"

namespace napkin {

using ValuesOf = std::function<ValueClass(const Expr&)>;

/// Affine forms, each ≥ 0 at every point at which `body` differs from the identity of ⊕: also where it is NaN, but for a masked 0 that is
/// multiplied by an infinity or divided by 0. `values`: the kinds of values of a part of it. May be empty.
std::vector<Affine> support(const Expr& body, ReduceOp op, const ValuesOf& values);

/// Those in both lists.
std::vector<Affine> common(const std::vector<Affine>& a, const std::vector<Affine>& b);

}  // namespace napkin
