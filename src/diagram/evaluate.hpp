#pragma once
// The meaning of a diagram: evaluation equation by equation. In double precision it is the reference that everything
// else is compared with; with rounding after every equation it is the plain low-precision evaluation of the verdict's
// rule.
#include <vector>

#include "algebra/number.hpp"
#include "diagram/column.hpp"
#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// The values of every array; arrays that are not given yet are empty.
using Values = ByArray<Column>;

enum class Precision {
    exact,  ///< double throughout: casts and targets of a float type do not round; integers are exact either way
    /// each equation computes and accumulates in float (double when an array of it is f64), casts round, and its result
    /// is
    stored,
    ///< rounded to the target's type once
};

/// Evaluates all equations. `values` holds the inputs (already representable in their types); on return every array, an
/// integer one as integers. What is reduced is integer where the body is: then it is summed modulo 2^64, which its
/// target wraps to its own width. Pre: bind_sizes succeeded for `extents` and the diagram verifies. Throws
/// InternalError otherwise.
void evaluate(const Diagram& diagram, const Extents& extents, Values& values, Precision precision = Precision::exact);

/// Evaluates one expression at a point (coordinate of every axis) in exact precision. Only the taken side of a Select
/// is evaluated.
Number evaluate_at(const Expr& e, Kinds& kinds, const Diagram& diagram, const Extents& extents, const Values& values,
                   const std::vector<std::int64_t>& point);

/// The kinds of the diagram's expressions. Refers to the diagram.
Kinds kinds_of(const Diagram& diagram);

/// The kind in which a reduction of values of the body's kind accumulates: truth values and whole constants are
/// whatever the target is.
Kind accumulated_kind(Kind body, DType target);

/// Deterministic N(0,1) inputs for a seed, rounded to each input's type (integers: uniform and small, and where they
/// index arrays within bounds).
Values random_inputs(const Diagram& diagram, const Extents& extents, std::uint64_t seed);

}  // namespace napkin
