#pragma once
// Where a body contributes to a reduction at all: the affine inequalities that masks (where(x <= q, …, -inf)) imply.
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"

namespace napkin {

/// Affine forms, each ≥ 0 at every point at which `body`, its reads being finite, differs from the identity of ⊕. May be empty.
std::vector<Affine> support(const Expr& body, ReduceOp op);

/// Those in both lists.
std::vector<Affine> common(const std::vector<Affine>& a, const std::vector<Affine>& b);

}  // namespace napkin
