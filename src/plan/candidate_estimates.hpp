#pragma once
// The estimates of a kernel's candidates in blocks of one shape. Each candidate is completed once and simulated once,
// and so are all that are completed alike.
#include <cstdint>

#include "plan/candidate_schedules.hpp"
#include "plan/choose.hpp"
#include "plan/estimates.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

/// Tiles that are walked to count the K blocks of one candidate.
inline constexpr std::int64_t candidate_walk_limit = 64;

/// What an estimate is to have beside what its tiles take.
enum class Asked : std::uint8_t { tiles, times_of_fitting, times };

class CandidateEstimates {
public:
    /// `known` and `in_vectors` keep the estimates: those of kernels whose products have an order, and all others.
    CandidateEstimates(const CandidateSchedules& schedules, const Simulator& model, const PlanOptions& options,
                       KernelEstimates& known, KernelEstimates& in_vectors)
        : schedules_(schedules), model_(model), options_(options), known_(known), in_vectors_(in_vectors) {}

    /// The estimate of the schedule, which is completed where nobody has asked for it yet. It has times where these are
    /// asked for.
    const Estimate& of(KernelSchedule schedule, Asked asked);
    /// Its tiles fit in the core's memory and registers.
    [[nodiscard]] bool fits(const Estimate& estimate) const;
    /// The compiler has refused it.
    [[nodiscard]] bool is_refused(const KernelCandidate& candidate) const;

private:
    [[nodiscard]] bool wants_times(Asked asked, const Estimate& rating) const;
    Estimate& first_alike(KernelEstimates& known, Estimate& rating);
    EstimatedTimes times_of_completed();

    const CandidateSchedules& schedules_;
    const Simulator& model_;
    const PlanOptions& options_;
    KernelEstimates &known_, &in_vectors_;
    ScheduledKernel completed_;               ///< the last candidate that was completed
    const Estimate* completed_of_ = nullptr;  ///< and its estimate
};

}  // namespace napkin
