#pragma once
// Statements of a CTA without tensor cores that read and write arrays where they lie in memory (MemorySpace::global).
//
// A thread computes a run of neighbours of the result, which lie beside each other in memory. It stores them by one
// access. What a run reads beside each other it loads by one access, too. Neither takes shared memory or a barrier. A
// run is a register block of rows of an atom without vectors. A sum over a stream goes by runs of what it reads.
#include "schedule/scheduled.hpp"

namespace napkin {

/// The most values of a run: two accesses of f32, or one of 16-bit values.
constexpr std::int64_t longest_run = 8;
/// The most terms of a reduction whose values threads read in memory, as those of a window. They find them in L1.
constexpr std::int64_t most_terms_of_run = 128;

/// Where the statement could go by runs: the axis along which its result lies in memory, and a run's values. Nothing:
/// it could not.
struct ThreadRun {
    AxisId axis = -1;
    std::int64_t values = 1;
};
std::optional<ThreadRun> thread_run(const ScheduledKernel& kernel, const Step& step);

/// Whether the statement goes by runs. Pre: the atoms are chosen.
bool goes_by_runs(const ScheduledKernel& kernel, const Step& step);

/// How a read goes on along a run of `values` that begins at a multiple of it.
enum class RunStep : std::uint8_t {
    same,    ///< it is one value
    beside,  ///< the values lie beside each other in memory
    each,    ///< each value has a place of its own
    across   ///< the values lie in different rows of an array
};
RunStep run_step(const ScheduledKernel& kernel, const Read& r, const ThreadRun& run, ScopeId scope);
/// Whether the read begins at a multiple of the run's values along its last dimension. Pre: so does the run.
bool begins_at_multiple(const Read& r, const ThreadRun& run);

/// Whether a statement by runs computes the variable. Pre: the atoms are chosen.
bool is_written_by_runs(const ScheduledKernel& kernel, VariableId id);
/// Whether threads read runs of it that go across its innermost dimension. Then it is better off in shared memory, in
/// rows of an odd length, whose values of a column lie in different banks. Pre: the atoms are chosen.
bool is_read_across_runs(const ScheduledKernel& kernel, VariableId id);
/// Whether all that read the variable are statements by runs, which find it in memory. Pre: the atoms are chosen.
bool may_be_read_by_runs(const ScheduledKernel& kernel, VariableId id);

}  // namespace napkin
