#pragma once
// Diagrams taken through derivation, a random plan, the CPU emitter and the compiler, many in one translation unit, and
// compared with their definition in double precision.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check/probe.hpp"
#include "derive/derive.hpp"
#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "emit/cpu/emit.hpp"
#include "emit/cuda/emit.hpp"
#include "schedule/scheduled.hpp"
#include "tile/sizes.hpp"

namespace napkin::cpu_case {

struct Case {
    Diagram diagram;
    Extents extents;
    std::uint64_t seed = 0;  ///< of the inputs' values
    Derived derived;
    ScheduledProgram scheduled;
    SizedProgram program;
    cpu::CpuSource source;                       ///< on a CPU
    cuda::CudaSource gpu_source;                 ///< on a GPU
    std::vector<Probe> probes{Probe::normal};    ///< the kinds of the inputs' values, one run each
    std::map<std::string, double> scalars = {};  ///< inputs without axes that have this value in every run
    /// Where an input is infinite or NaN, a NaN of the definition leaves open what is made (check/agreement.hpp).
    bool nan_is_open = true;
    int num_parts = 0;                             ///< kernels that run one part of a stream in each group
    int num_in_place = 0;                          ///< results that are written where they go in memory
    int num_non_temporal = 0;                      ///< of these, past the caches
    int num_groups_ahead = 0, num_rows_ahead = 0;  ///< prefetches of tiles, and of blocks' rows
    int num_deferred = 0;                          ///< statements that run for the group before
    int num_on_matrix_unit = 0;                    ///< kernels that run products there
    int num_subloops = 0;                          ///< axes of kernels over which reductions are cut once more
};

/// Random schedules without atoms and places: which axes are grouped, streamed and cut by subloops and how far, the
/// vector axis, panel and rows.
std::vector<KernelSchedule> random_schedules(const Derived& derived, const Extents& extents, std::uint64_t seed);

/// The form with about half of the streams cut that can be, in any number of parts.
Derived with_random_parts(const Derived& derived, const Extents& extents, std::uint64_t seed);

/// Extents that fill vectors and leave remainders, most of them small.
Extents some_extents(const Diagram& diagram, std::uint64_t seed);

/// Vectors that the compiler knows.
struct Width {
    const char* name;
    int vector_bytes, vector_registers;
    std::vector<std::string> flags;  ///< of the compiler, to have them whatever the processor is
    bool runs_here;
    bool is_gpu = false;           ///< vectors are warps, and several of them run a group
    bool has_matrix_unit = false;  ///< with the instructions of Hopper's: what may run there does
};
/// The processor's own, and all the others of its kind.
const std::vector<Width>& widths();

/// A GPU's warps, with as much shared memory as any has had since 2020.
const Width& warps();
/// The same, with all of an SM's shared memory and its tensor cores.
const Width& warps_with_matrix_unit();

/// Derives, plans, expands and emits; entries are named after `name`. Throws std::runtime_error when a pass refuses the
/// diagram.
Case make_case(const Diagram& diagram, const Extents& extents, std::uint64_t seed, const std::string& name);
Case make_case(const Diagram& diagram, const Extents& extents, std::uint64_t seed, const std::string& name,
               const std::vector<KernelSchedule>& schedules, const Width& width = widths().front());

/// A case of the derived form, or of one whose streams are cut. Without schedules, random ones.
Case make_case(const Diagram& diagram, const Extents& extents, std::uint64_t seed, const std::string& name,
               const Derived& form, const std::vector<KernelSchedule>& schedules, const Width& width = widths().front());

/// The diagram, the plan and the source, for the message of a failing test.
std::string describe(const Case& c);

/// One line for each case that does not compute its definition: "" for those that do. All are compiled together, and
/// run where the processor has such vectors.
std::vector<std::string> failures(const std::vector<Case>& cases, const Width& width = widths().front());
/// The same on the GPU at hand. Throws where there is none.
std::vector<std::string> failures_on_gpu(const std::vector<Case>& cases);
/// The cases' kernels in one source.
cuda::CudaSource in_one_source(const std::vector<Case>& cases);

}  // namespace napkin::cpu_case
