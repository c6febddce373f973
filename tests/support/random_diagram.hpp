#pragma once
// Random well-formed diagrams for the property tests, and how a failing one is made small.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct RandomDiagramOptions {
    int max_axes = 6;
    int max_inputs = 4;  ///< a recipe that lacks an operand may add one more
    int max_equations = 9;
    bool masks = true;         ///< where() with comparisons of indices, -inf where a row keeps a value
    bool affine_reads = true;  ///< X[i + w], X[2*i + w], X[i + 1], X[x] of an array over q
    bool casts = true;         ///< to f32
    /// Reductions over an axis that the body does not depend on: well formed, though the language refuses to read them.
    bool loose_reductions = true;
    std::vector<DType> types{DType::f32};  ///< each array has one of them
};

/// The same seed gives the same diagram everywhere, and it verifies. Its values stay below about 10^4 for N(0, 1)
/// inputs and extents up to about 20. Expressions are continuous in every computed value, so rounding errors stay small
/// (comparisons are of indices alone). An array that is -inf where it is masked may be an output now and then.
Diagram random_diagram(std::uint64_t seed, const RandomDiagramOptions& options = {});

/// Small ragged extents: 1 to 11 for every axis without a size of its own; bind_sizes gives the others.
Extents random_extents(const Diagram& diagram, std::uint64_t seed);

/// Well-formed diagrams that are smaller than this one, those that drop most first.
std::vector<Diagram> shrink(const Diagram& diagram);

/// The smallest diagram that greedy shrinking reaches while `fails` stays true. Pre: fails(diagram).
Diagram reduce_failure(const Diagram& diagram, const std::function<bool(const Diagram&)>& fails);

/// The diagram as text for the message of a failing test: signature, sizes, equations.
std::string describe(const Diagram& diagram);

}  // namespace napkin
