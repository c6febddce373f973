#pragma once
// What kernels on a GPU are measured against: the diagram evaluated as it stands, one equation after the other, every
// array in memory in its own type. Contractions are multiplies of cuBLASLt; every other equation is a kernel of our
// own, planned as any other.
#include <memory>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "run/gpu/kernel.hpp"
#include "support/result.hpp"

namespace napkin::gpu {

struct GpuBaseline {
    std::shared_ptr<GpuKernel> kernel;  ///< all of it: launches of the library stand in the places of kernels
    std::string library;                ///< "cuBLASLt 13.0.2", "" where it multiplies nothing
    int multiplies = 0;                 ///< equations that are matrix multiplies
    std::vector<std::string> own;       ///< of these, the ones that the library does not take, and why: a clause each
    std::int64_t extra_bytes = 0;       ///< of intermediates, and of what the library works in
};

/// Errors: no-cublaslt where there is something to multiply; those of GpuKernel::load.
Result<GpuBaseline> gpu_baseline(const Diagram& diagram, const Extents& extents, const Machine& machine);

}  // namespace napkin::gpu
