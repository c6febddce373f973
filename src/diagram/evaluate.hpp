#pragma once
// The meaning of a diagram: evaluation equation by equation. In double precision it is the reference that everything else is
// compared with; with rounding after every equation it is the plain low-precision evaluation of the verdict's rule.
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Row-major values of every array, indexed by ArrayId; arrays that are not given yet are empty.
using Values = std::vector<std::vector<double>>;

enum class Precision {
    exact,  ///< double throughout: casts and targets of a float type do not round (of i32 they truncate)
    stored,  ///< each equation computes and accumulates in float (double when an array of it is f64), casts round, and its result is
    ///< rounded to the target's type once
};

/// Evaluates all equations. `values` holds the inputs (already representable in their types); on return every array.
/// Pre: bind_sizes succeeded for `extents` and the diagram verifies. Throws InternalError otherwise.
void evaluate(const Diagram& diagram, const Extents& extents, Values& values, Precision precision = Precision::exact);

/// Evaluates one expression at a point (coordinate of every axis) in exact precision.
double evaluate_at(const Expr& e, const Diagram& diagram, const Extents& extents, const Values& values,
                   const std::vector<std::int64_t>& point);

/// Deterministic N(0,1) inputs for a seed, rounded to each input's type (i32: uniform small integers).
Values random_inputs(const Diagram& diagram, const Extents& extents, std::uint64_t seed);

}  // namespace napkin
