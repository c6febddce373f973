#pragma once
// What a bound takes from the program that runs: where it rounds, how wide it computes, how deep it sums. Everything
// else about a bound follows from the definition, so that no rewrite vouches for itself.
#include <cstdint>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "tile/reduction_tree.hpp"

namespace napkin {

struct Execution {
    DType working = DType::f32;       ///< the coarsest type that a kernel computes and accumulates in
    std::vector<std::int64_t> depth;  ///< by equation: roundings that a term of its reduction goes through, 0 for a map
    /// by equation: relative error with which factors of its terms are rounded; 0: as they are
    std::vector<double> factor_unit;
    ByArray<std::optional<DType>> kept;  ///< the type in which the array lies in memory between kernels
};

/// The diagram as it stands, one equation after the other, each sum one term after the other.
Execution plain_execution(const Diagram& diagram, const Extents& extents);

/// The execution of the program. `diagram` is the definition that it was derived from, `extents` its sizes. Equations
/// are summed as the trees of the reductions over their axes say. `trees` are those of a schedule, by kernel and
/// Compute. Kernels without them take those of the program as it stands.
Execution execution_of(const Diagram& diagram, const Extents& extents, const SizedProgram& program,
                       std::vector<std::vector<ReductionTree>> trees = {});

}  // namespace napkin
