#pragma once
// What `napkin run` measures: the fused kernels beside the same diagram evaluated equation by equation, the counts
// beside the model.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/pipeline.hpp"
#include "run/tensor.hpp"
#include "tile/counts.hpp"

namespace napkin {

struct RunOptions {
    std::uint64_t seed = 0;                                 ///< of the inputs that are not given: N(0, 1)
    int threads = 0;                                        ///< of both evaluations; 0: as planned
    bool baseline = true;                                   ///< measure equation by equation too
    bool multiply_rate = false;                             ///< measure OpenBLAS' own sgemm beside them
    bool cold = false;                                      ///< each run finds its arrays in memory, not in the caches
    double seconds = 2;                                     ///< about how long to measure
    std::function<void(const std::string&)> progress = {};  ///< told what goes on; may be null
};

struct RunReport {
    std::vector<Counts> counted;  ///< by kernel
    /// by kernel: the formulas in letters, with the sizes put in
    std::vector<double> predicted_transfers, predicted_memory;
    double predicted_seconds = 0;
    // Medians over runs that alternate.
    double kernel_seconds = 0;
    std::optional<double> baseline_seconds;
    std::optional<double> multiply_flops_per_s;  ///< of OpenBLAS' sgemm at 2048³, when asked for
    int repetitions = 0, threads = 1;
    double compile_seconds = 0;  ///< of the compiler, 0 when the kernel came from the cache
    bool from_cache = false;
    std::vector<std::string> warnings;      ///< of compiling, for the user's eyes
    int baseline_multiplies = 0;            ///< equations of the baseline that are matrix multiplies
    std::string blas;                       ///< what carries them out; "" when that is kernels of our own
    std::vector<std::string> baseline_own;  ///< the multiplies that no library takes, and why: a clause each
    std::string baseline_left_out;          ///< why there is no baseline time though one was asked for
    double flops = 0;        ///< 2 × the multiplications of all contractions that contribute to the outputs
    double dense_flops = 0;  ///< the same with what masks take out again: what equation by equation computes
    std::string device;      ///< the GPU that ran the kernels; empty: the processor
    std::int64_t kernel_extra_bytes = 0, baseline_extra_bytes = 0;

    /// How much faster than the baseline the kernels are. None where no baseline ran, or an unfair one: multiplies by
    /// no library.
    [[nodiscard]] std::optional<double> speedup() const {
        if (!baseline_seconds || (baseline_multiplies > 0 && blas.empty())) return std::nullopt;
        return *baseline_seconds / kernel_seconds;
    }
};

/// Sizes that the given inputs' shapes say, by axis. Errors: unknown-input (nearest name), input-rank, input-sizes (two
/// inputs, or an input and --set, disagree: both sizes), input-type.
Result<std::map<std::string, std::int64_t>> sizes_of_inputs(const Diagram& diagram,
                                                            const std::map<std::string, Tensor>& inputs,
                                                            const std::map<std::string, std::int64_t>& overrides);

/// Every input of the diagram: those given, rounded to the diagram's type, and random numbers for the rest.
Result<std::vector<Tensor>> all_inputs(const Diagram& diagram, const Extents& extents,
                                       const std::map<std::string, Tensor>& given, std::uint64_t seed);

/// Runs and measures. `outputs` receives the results in the diagram's order. Errors: too-little-memory.
Result<RunReport> run_and_report(const Compilation& compilation, const std::vector<Tensor>& inputs,
                                 const RunOptions& options, std::vector<Tensor>& outputs);

/// 2 × the multiplications of the diagram's contractions at points where a mask does not take them out again: points of
/// a streamed loop outside its support do not count.
double useful_flops(const Compilation& compilation);

}  // namespace napkin
