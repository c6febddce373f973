#pragma once
// What searches find out of the candidate schedules of one question. It is kept for searches that ask it again: with a
// larger budget, for parts of the stream, or with candidates refused. An estimate follows from the schedule alone and
// not from the search, so that what is kept changes no result.
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
#include "plan/complete.hpp"
#include "plan/plan.hpp"
#include "tile/exact.hpp"

namespace napkin {

/// The searched fields of a candidate's schedule. All else of it follows, or is an override.
struct SearchedFields {
    AxisId vector_axis = -1, mma_m_axis = -1;
    int panel_vectors = 1;
    /// Each axis with its size, and whether that is an override: only overridden tiles may exceed the registers.
    std::vector<std::tuple<AxisId, std::int64_t, bool>> group, stream;
    /// Written out, since vectors have no three-way comparison in the library with which the core is compiled to
    /// WebAssembly.
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
    double load_seconds = 0;  ///< in which the core loads
    /// with stream-K, where that is faster; else the same
    double stream_k_seconds = 0, stream_k_core_seconds = 0;
};

/// One candidate. Its `times` are there once some search has asked for them.
struct Estimate {
    KernelCandidate candidate;
    double bytes = 0;               ///< of the core's memory
    double bytes_of_one_stage = 0;  ///< with one stage of everything: further stages only take what is left
    bool spills = false;            ///< its tiles exceed a thread's registers
    bool may_spill = false;         ///< and overrides leave it no other tiles
    bool is_other_order = false;    ///< it adds up in another order than the one that is kept
    std::optional<EstimatedTimes> times = {};
    /// The first candidate that is completed alike. All but the `candidate` is the same for both.
    Estimate* first = nullptr;
};

/// The first candidate with the sizes and the atoms.
struct FirstEstimate {
    ChosenAtoms atoms;
    Estimate* estimate = nullptr;
};

/// The candidates of one kernel in blocks of one shape.
struct KernelEstimates {
    /// held by the one search that reads and extends them; where no order of products matters, for one estimate at a
    /// time
    std::mutex asking;
    std::map<SearchedFields, Estimate> candidates;
    /// Candidates that are completed differently, by their fields without the vectors.
    std::map<SearchedFields, std::vector<FirstEstimate>> first;
    /// Plans made for their time alone (PlanOptions::quick), and whether they may use stream-K.
    std::map<std::pair<SearchedFields, bool>, KernelPlan> estimated_plans;
    std::optional<std::vector<TilingStrategy>> on_tensor_cores;  ///< CandidateSchedules::on_tensor_cores
};

/// Estimates for all kernels of the forms of one diagram on one machine with one set of overrides.
class Estimates {
public:
    /// The estimates of the kernel and the blocks that `question` tells from all others. Whoever reads them holds their
    /// mutex.
    KernelEstimates& of(const std::string& question);
    /// Counts of the kernel with that text (text_of), in blocks of all shapes.
    KnownCounts& counts_of(const std::string& text);
    /// Number of candidates that have their times. Pre: no search is under way.
    [[nodiscard]] std::size_t num_simulated() const;

private:
    std::mutex mutex_;
    std::map<std::string, KernelEstimates> kernels_;
    std::map<std::string, KnownCounts> counts_;
};

}  // namespace napkin
