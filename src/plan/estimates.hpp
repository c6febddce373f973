#pragma once
// What searches find out of the candidate schedules of one question, kept for those that ask it again: with a larger
// budget, of parts of the stream, or with candidates refused. A rating follows from the schedule alone and not from the
// search, so that what is kept changes no result.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/candidate_schedules.hpp"
#include "plan/plan.hpp"
#include "tile/exact.hpp"

namespace napkin {

/// What of a candidate's schedule is searched; all else of it follows, or is by hand.
struct SearchedFields {
    AxisId vector_axis = -1, mma_m_axis = -1;
    int panel_vectors = 1;
    /// Each with its size, and whether that is by hand: only such tiles may exceed the registers.
    std::vector<std::tuple<AxisId, std::int64_t, bool>> group, stream;
    /// Written out, since vectors have no three-way comparison in the library that the core is compiled to WebAssembly
    /// with.
    friend bool operator<(const SearchedFields& a, const SearchedFields& b) {
        return std::tie(a.vector_axis, a.mma_m_axis, a.panel_vectors, a.group, a.stream) <
               std::tie(b.vector_axis, b.mma_m_axis, b.panel_vectors, b.group, b.stream);
    }
};
SearchedFields searched_fields(const KernelSchedule& schedule);

/// The times of one candidate, by simulation.
struct EstimatedTimes {
    double seconds = 0, core_seconds = 0;
    double waves = 1;
    double load_seconds = 0;  ///< of those in which the core loads
    /// with groups that are cut, where that is faster; else the same
    double stream_k_seconds = 0, stream_k_core_seconds = 0;
};

/// One candidate. `times` are there once some search has asked for them.
struct Estimate {
    KernelCandidate candidate;
    double bytes = 0;               ///< of the core's memory
    double bytes_of_one_stage = 0;  ///< without those stages of operands that only take what is left of it
    bool spills = false;            ///< its tiles exceed a thread's registers
    bool may_spill = false;         ///< and what is by hand leaves it no others
    std::optional<EstimatedTimes> times = {};
};

/// The candidates of one kernel in blocks of one shape.
struct KernelEstimates {
    /// held by the one search that reads and extends them: of candidates for which no order of products matters, for
    /// one rating at a time
    std::mutex asking;
    std::map<SearchedFields, Estimate> candidates;
    /// Those made for their time alone (PlanOptions::quick), and whether their groups may be cut.
    std::map<std::pair<SearchedFields, bool>, KernelPlan> estimated_plans;
    std::optional<std::vector<TilingStrategy>> on_tensor_cores;  ///< CandidateSchedules::on_tensor_cores
};

/// Those of all kernels of the forms of one diagram on one machine with one set of choices by hand.
class Estimates {
public:
    /// The ratings of the kernel that `question` tells from all others, and of its blocks. Whoever reads them holds
    /// their mutex.
    KernelEstimates& of(const std::string& question);
    /// Counts of the kernel with that text (text_of), in blocks of all shapes.
    KnownCounts& counts_of(const std::string& text);
    /// How many candidates have their times. Pre: no search is under way.
    [[nodiscard]] std::size_t num_simulated() const;

private:
    std::mutex mutex_;
    std::map<std::string, KernelEstimates> kernels_;
    std::map<std::string, KnownCounts> counts_;
};

}  // namespace napkin
