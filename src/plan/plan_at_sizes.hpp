#pragma once
// The plan of a kernel at the sizes that a search has found, with the reasons of its fields.
#include <string>

#include "plan/size_search.hpp"

namespace napkin {

class PlanAtSizes {
public:
    /// The references outlive it. `known` keeps the plans of estimates.
    PlanAtSizes(const CandidateSchedules& schedules, const Simulator& model, const Overrides& overrides,
                const PlanOptions& options, KernelEstimates& known, SizeSearch& sizes, SearchBudget& budget)
        : schedules_(schedules),
          model_(model),
          overrides_(overrides),
          options_(options),
          known_(known),
          sizes_(sizes),
          budget_(budget) {}

    KernelPlan run(const Point& best);

private:
    [[nodiscard]] std::int64_t extent(AxisId axis) const { return model_.extents()[axis]; }
    std::string sensitivity(const Point& best, std::size_t i);
    std::string reason(const Point& best, std::size_t i);
    KernelPlan with_tiles_ahead(const Point& best);
    KernelPlan anew(const Point& best);
    Choice thread_choice(KernelPlan& plan) const;

    const CandidateSchedules& schedules_;
    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    KernelEstimates& known_;
    SizeSearch& sizes_;
    SearchBudget& budget_;
};

}  // namespace napkin
