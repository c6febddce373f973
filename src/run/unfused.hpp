#pragma once
// The baseline of fused kernels, for any processor: the diagram as it stands, with every equation a kernel of its own.
// It says which of these are matrix multiplies, which a library carries out.
#include <cstddef>
#include <map>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "run/contraction.hpp"
#include "support/result.hpp"

namespace napkin {

struct Unfused {
    Derived derived;
    std::map<std::size_t, Gemm> multiplies;  ///< by kernel
};

/// No schedule of the diagram holds for it. Errors: those of derive.
Result<Unfused> unfused(Diagram diagram, const Extents& extents);

}  // namespace napkin
