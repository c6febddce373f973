#include "plan/candidate_estimates.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "lower/insert_barriers.hpp"
#include "plan/batch_invariant.hpp"
#include "plan/complete.hpp"
#include "plan/moves.hpp"
#include "schedule/fragment_registers.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Bytes of the core's memory, with one stage of everything.
double bytes_of_one_stage(const ScheduledKernel& kernel) {
    auto out = static_cast<double>(kernel.memory_bytes());
    for (const VariableId v : kernel.layouts.ids())
        if (const auto stages = static_cast<double>(kernel.schedule.places[v].stages); stages > 1)
            out -= (1 - 1 / stages) * static_cast<double>(kernel.layouts[v].count * kernel.value_bytes());
    return out;
}

/// Whether the schedule has neither tensor cores nor producer warps, so that no product has an order.
bool is_in_vectors(const KernelSchedule& schedule) { return schedule.mma_m < 0 && schedule.roles.empty(); }

}  // namespace

const Estimate& CandidateEstimates::of(KernelSchedule schedule, Asked asked) {
    std::unique_lock<std::mutex> asking;
    const bool in_vectors = is_in_vectors(schedule);
    if (in_vectors) asking = std::unique_lock(in_vectors_.asking);
    KernelEstimates& known = in_vectors ? in_vectors_ : known_;
    const auto [found, is_new] = known.candidates.try_emplace(searched_fields(schedule));
    Estimate& rating = found->second;
    if (!is_new && (rating.times || !wants_times(asked, rating))) return rating;
    if (is_new || (!rating.first->times && completed_of_ != rating.first))
        schedules_.begin(completed_, std::move(schedule)), completed_of_ = nullptr;
    if (is_new) rating.first = &first_alike(known, rating);
    Estimate& first = *rating.first;
    const auto complete = [&] {
        if (completed_of_ == &first) return;
        schedules_.complete(completed_, Completion::for_tiles);
        completed_of_ = &first;
    };
    if (is_new && &first == &rating) {
        complete();
        rating = {candidate_of(completed_),
                  static_cast<double>(completed_.memory_bytes()),
                  bytes_of_one_stage(completed_),
                  spilled_registers(completed_) > 0,
                  may_spill(completed_),
                  !keeps_order(options_, completed_),
                  {},
                  &rating};
    }
    if (!wants_times(asked, rating)) return rating;
    if (!first.times) complete(), first.times = times_of_completed();
    rating.times = first.times;
    return rating;
}

bool CandidateEstimates::fits(const Estimate& estimate) const {
    return estimate.bytes <= model_.usable_bytes() && (!estimate.spills || estimate.may_spill);
}

bool CandidateEstimates::is_refused(const KernelCandidate& candidate) const {
    return contains(options_.refused, candidate);
}

bool CandidateEstimates::wants_times(Asked asked, const Estimate& rating) const {
    if (asked == Asked::times_of_fitting) return fits(rating) && !is_refused(rating.candidate);
    return asked == Asked::times;
}

/// The first known candidate that is completed as the kernel is, which has its atoms. Else that is the kernel's own
/// `rating`. Where it is another one, the rating becomes the same but for its times.
Estimate& CandidateEstimates::first_alike(KernelEstimates& known, Estimate& rating) {
    const KernelSchedule& schedule = completed_.schedule;
    SearchedFields fields = searched_fields(schedule);
    fields.vector_axis = -1, fields.panel_vectors = 1;
    std::vector<FirstEstimate>& others = known.first[std::move(fields)];
    ChosenAtoms atoms = chosen_atoms(completed_);
    const auto found = find_if(others, [&](const FirstEstimate& other) { return other.atoms == atoms; });
    if (found == others.end()) {
        others.push_back({std::move(atoms), &rating});
        return rating;
    }
    rating = *found->estimate;
    rating.times.reset();
    rating.candidate.vector_axis = schedule.vector_axis, rating.candidate.panel_vectors = schedule.panel_vectors;
    return *found->estimate;
}

/// The times of the completed kernel, of which nothing is left.
EstimatedTimes CandidateEstimates::times_of_completed() {
    completed_of_ = nullptr;
    if (!completed_.on_tensor_cores()) insert_barriers(completed_);
    const auto moved = [&](Simulation from, bool is_candidate) {
        for (const ScheduleMove& move : schedule_moves())
            if (move.is_candidate == is_candidate)
                from = time_after(move, completed_, model_, schedules_.threads(), std::move(from), candidate_walk_limit);
        return from;
    };
    const Simulation time = moved(time_before_moves(completed_, model_, schedules_.threads(), candidate_walk_limit), false),
                     cut = moved(time, true);
    const auto loads = std::find_if(time.busy.begin(), time.busy.end(), [](const Busy& b) { return b.what == "loads"; });
    return {time.seconds, time.core_seconds,
            time.waves,   loads == time.busy.end() ? std::numeric_limits<double>::infinity() : loads->seconds,
            cut.seconds,  cut.core_seconds};
}

}  // namespace napkin
