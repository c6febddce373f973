#pragma once
// What kernels on a CPU are measured against: the diagram evaluated as it stands, one equation after the other, every
// array materialised. Contractions are OpenBLAS' matrix multiply; every other equation is a kernel of our own, planned
// as any other. Numbers of floating point are f32, or f64 when an array of the diagram is.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "run/kernel.hpp"
#include "support/result.hpp"

namespace napkin {

struct BaselineOptions {
    int threads = 0;       ///< 0: one for each of the machine's cores
    bool use_blas = true;  ///< false: contractions are kernels of our own, too
};

struct Baseline {
    std::shared_ptr<const CpuKernel> kernel;  ///< all of it: calls of the library stand between kernels
    DType type = DType::f32;                  ///< of all its arrays of floating point
    int multiplies = 0;                       ///< equations that are matrix multiplies
    std::string blas;                         ///< the library's name, "" when kernels of our own multiply

    /// Errors: those of the compiler; too-little-memory when the intermediates do not fit what is free.
    static Result<Baseline> build(const Diagram& diagram, const Extents& extents, const Machine& machine,
                                  const BaselineOptions& options = {});
    /// The type in which the baseline takes such an array of the diagram.
    [[nodiscard]] DType taken_as(DType of_diagram) const { return is_float(of_diagram) ? type : of_diagram; }
};

/// Bytes that the intermediates of an evaluation take at most: each array lives from the equation that makes it to the
/// last that reads it, and memory is used again.
std::int64_t baseline_extra_bytes(const Diagram& diagram, const Extents& extents);

}  // namespace napkin
