#pragma once
// What a kernel costs on a machine: the sizes with the least time, the transfers of every level (Eq. 5), the time of every unit, and what
// binds. Units and pipes run beside each other, so the longest of them is the time, plus latency and launch; a core that waits for
// the last groups of a launch is counted (wave quantization).
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/levels.hpp"
#include "cost/optimum.hpp"
#include "cost/search.hpp"
#include "cost/symbolic_work.hpp"

namespace napkin {

struct MachineCostOptions {
    LevelOptions levels;
    std::map<AxisId, std::int64_t> group, stream;  ///< sizes by hand
    bool planned = false;                          ///< those are a plan's, which knows what it holds
    bool quick = false;                            ///< the time alone, for comparing partitions
};

/// Transfers into one level.
struct LevelLoad {
    ModelLevel level;
    std::map<AxisId, std::int64_t> group;  ///< sizes of the level's groups
    double memory_bytes = 0;               ///< that they take
    double transfers_bytes = 0;            ///< over the launch
    double seconds = 0;
};

/// A unit of all cores.
struct UnitLoad {
    std::string pipe;  ///< operations of one pipe queue up: "tensor", "special", "arithmetic"; "core" on a CPU
    UnitRate rate;
    double operations = 0;  ///< over the launch
    double seconds = 0;     ///< with every core busy
};

struct Ceiling {
    std::string what;
    double seconds = 0;
    std::string into;  ///< the level of a pipe that moves data; empty: something else
};

struct KernelOnMachine {
    std::string kernel;
    Divisors divisors;
    std::map<AxisId, std::int64_t> group, stream;  ///< sizes of the core's groups
    double num_groups = 1, splits = 1;  ///< splits: parts of the stream that cores share and merge, when groups are too few
    double memory_bytes = 0, core_bytes = 0;  ///< M of the sizes, and what a core has
    double wave = 1;                          ///< time with cores that wait / time with all cores busy
    double run_fraction = 1;                  ///< of the chunks, those that are not skipped
    std::vector<LevelLoad> levels;
    std::vector<UnitLoad> units;
    std::vector<Ceiling> ceilings;  ///< longest first
    double latency_s = 0, launch_s = 0;
    double seconds = 0;
    std::string bound_by;
    double margin = 1;  ///< the longest ceiling over the next
    double flops = 0;
    [[nodiscard]] double memory_transfers_bytes() const;  ///< through the outermost pipe that moves data
};

/// Errors: memory-exceeded (no tile fits: M of the smallest, what a core has, at which equation), bad-cluster, bad-devices.
Result<KernelOnMachine> cost_on_machine(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                        const Machine& machine, const MachineCostOptions& options = {});

/// Σ over the kernels; infinity where one does not fit its core, or their arrays the memory. For choosing a partition.
double quick_seconds(const Derived& derived, const Extents& extents, const Machine& machine);

}  // namespace napkin
