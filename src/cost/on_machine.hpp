#pragma once
// What a kernel costs on a machine: the sizes with the least expected time, the transfers of every level (Eq. 5), the
// time of every unit, and what binds. Two times, always named:
//  - the bound: no schedule of the kernel is faster at the machine's nominal rates. The busiest unit with every core
//    busy and the fewest
//    operations, or what has to enter and leave the machine's memory once;
//  - the expected time of these sizes: the busiest unit or pipe at the rates that programs sustain, with the cores that
//    wait for the last
//    groups (wave quantization) and the instructions' own overheads; then the starts of groups, latency and launch.
// Accumulators lie apart from what is loaded (cost/accumulators.hpp).
#include <limits>
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
    const TileKernel* tiles = nullptr;             ///< the kernel's, cut by subloops; null: its expansion
    std::map<AxisId, std::int64_t> sub;            ///< sizes of the subloops
    bool planned = false;                          ///< those are a plan's, which knows what it holds
    bool whole = false;                            ///< the stream is not split, though cores be idle
    bool quick = false;                            ///< the time alone, for comparing partitions
    double special_overhead = 0;  ///< of special functions, beside their operations, as a share of their time
};

/// Transfers into one level.
struct LevelLoad {
    ModelLevel level;
    std::map<AxisId, std::int64_t> group;  ///< sizes of the level's groups
    double memory_bytes = 0;               ///< that they take, accumulators included where they lie in it or below
    double transfers_bytes = 0;            ///< over the launch
    double seconds = 0;                    ///< at the nominal rate
    double expected_s = 0;                 ///< at the sustained rate
};

/// A unit of all cores.
struct UnitLoad {
    std::string pipe;  ///< operations of one pipe queue up: "tensor", "special", "arithmetic"; "core" on a CPU
    UnitRate rate;
    double operations = 0;  ///< over the launch
    double seconds = 0;     ///< at the nominal rate, with every core busy
    double expected_s = 0;  ///< at the sustained rate, with `overhead_s`
    double overhead_s = 0;  ///< of it, beside the operations: waits for instructions, the special functions' overhead
};

struct Ceiling {
    std::string what;
    double seconds = 0;  ///< expected
    std::string into;    ///< the level of a pipe that moves data; empty: something else
};

struct KernelOnMachine {
    std::string kernel;
    Divisors divisors;
    std::map<AxisId, std::int64_t> group, stream, sub;  ///< sizes of the core's groups, chunks and parts of statements
    /// splits: parts of the stream that cores share and merge, when groups are too few
    double num_groups = 1, splits = 1;
    double memory_bytes = 0, core_bytes = 0;  ///< M of the sizes in the core's memory, and what a core has
    /// the same of accumulators that have a place of their own; else 0
    double accumulator_bytes = 0, accumulator_capacity = 0;
    double wave = 1;          ///< time with cores that wait / time with all cores busy
    double run_fraction = 1;  ///< of the chunks, those that are not skipped
    std::vector<LevelLoad> levels;
    std::vector<UnitLoad> units;
    std::vector<Ceiling> ceilings;  ///< longest first
    double latency_s = 0, launch_s = 0;
    double starts_s = 0;  ///< of groups that no other group's work hides
    double bound_s = 0;   ///< 0 where only the expected time was asked for
    double seconds = 0;   ///< expected
    std::string bound_by;
    double margin = 1;  ///< the longest ceiling over the next
    double flops = 0;
    [[nodiscard]] double memory_transfers_bytes() const;  ///< through the outermost pipe that moves data
};

/// Errors: memory-exceeded (no tile fits: M of the smallest, what a core has, at which equation), bad-cluster,
/// bad-devices.
Result<KernelOnMachine> cost_on_machine(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                        const Machine& machine, const MachineCostOptions& options = {});

}  // namespace napkin
