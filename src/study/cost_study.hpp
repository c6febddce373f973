#pragma once
// One question to the model, asked in process: a diagram, sizes, a machine → everything that `napkin cost` says.
// report.hpp prints it.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/on_machine.hpp"
#include "machine/rate_sources.hpp"
#include "run/pipeline.hpp"

namespace napkin {

struct CostQuery {
    std::shared_ptr<const Source> source;
    PipelineOptions pipeline;  ///< diagram, sizes, schedule, fuse, machine, types
    LevelOptions levels = {};
    std::optional<double> memory_values = {};  ///< M for H*; a core's of the machine where it is left out
    double special_overhead = 0;  ///< of special functions, beside their operations, as a share of their time
    bool closed_form = false;     ///< the sizes and the time of the closed form, although there is a plan
    bool explain = false;         ///< the derivation in the text
};

/// Figures of a whole launch, all kernels together; enough for sweeps and comparisons.
struct CostSummary {
    std::string machine;
    double seconds = 0, bound_s = 0;  ///< of the plan, and what no schedule of these kernels is faster than
    /// Why there is no plan: `seconds` is then what a closed form estimates. Empty: there is one.
    std::string no_plan;
    /// Tensor core instructions of the machine that no emitted kernel uses. The bound is theirs, and the time is not.
    std::string unused_instructions;
    double flops = 0, transfers_bytes = 0;      ///< between memory and the level below it
    std::string bound_by;                       ///< of the kernel that takes longest
    std::optional<double> energy_j, price_usd;  ///< of one run, where the machine's file says watts and price
    RateSources rates;                          ///< what the machine's rates rest on
    std::size_t num_kernels = 0;
    double peak_flops_per_s = 0;  ///< of the fastest unit in use that multiplies and adds
    /// of all arrays that lie in memory: inputs, outputs, what one kernel leaves for another
    double footprint_bytes = 0;
    double memory_bytes = 0;  ///< what the machine has for them, all devices together
    [[nodiscard]] double flop_per_byte() const { return flops / transfers_bytes; }
    [[nodiscard]] double peak_share() const { return peak_flops_per_s > 0 ? flops / seconds / peak_flops_per_s : 0; }
};

struct CostStudy {
    /// Up to sizes, or up to the plan where there is one. The derived form is then the plan's, whose streams may be cut
    /// into parts.
    Compilation compilation;
    std::vector<TileKernel> tiles;         ///< of the derived form's kernels, cut by the subloops of its schedule
    std::vector<KernelOnMachine> kernels;  ///< empty when sizes are missing
    std::optional<CostSummary> summary;
    std::optional<double> memory_values;  ///< M for H*, where sizes are known
    double special_overhead = 0;
    bool explain = false;
};

/// The numbers alone. Errors: of the passes; missing-size; memory-exceeded, bad-cluster, bad-devices.
Result<CostSummary> cost_summary(const CostQuery& query);

/// All of it. Sizes that are missing are an error only where sizes, a machine or M are named: letters need none.
Result<CostStudy> study_cost(const CostQuery& query);

}  // namespace napkin
