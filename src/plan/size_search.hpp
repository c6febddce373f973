#pragma once
// The sizes of one tiling strategy: a descent over the candidates of each size by simulated time. It ends with the
// least memory that takes no longer.
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "plan/candidate_estimates.hpp"
#include "plan/candidate_schedules.hpp"
#include "plan/overrides.hpp"

namespace napkin {

/// Times that differ by less count as equal.
inline constexpr double equal_times = 0.005;

/// Schedules of one kernel that are simulated.
struct SearchBudget {
    int simulated = 0;
    int for_strategy = 0;  ///< for one strategy
    int most = 0;          ///< that may have been simulated by the end of the current search
};

struct RatedSizes {
    double seconds = std::numeric_limits<double>::infinity(), core_seconds = 0;
    double bytes = 0;  ///< Estimate::bytes_of_one_stage
};
/// The best sizes of one tiling strategy, and what they were found among.
struct FoundSizes {
    TilingStrategy shape;
    std::vector<SearchedSize> dimensions;
    bool fits = true;
    std::map<Point, RatedSizes> rated;
    Point point;
};

class SizeSearch {
public:
    /// The references outlive it.
    SizeSearch(const CandidateSchedules& schedules, const Simulator& model, const Overrides& overrides,
               const PlanOptions& options, CandidateEstimates& estimates, SearchBudget& budget)
        : schedules_(schedules),
          model_(model),
          overrides_(overrides),
          options_(options),
          estimates_(estimates),
          budget_(budget) {}

    /// Finds the best sizes of the strategy. The error where overridden sizes do not fit, or none where `strict` asks.
    std::optional<Diagnostic> run(const TilingStrategy& shape, FoundSizes& found);
    /// Goes on from what was found before.
    void take(const FoundSizes& found);
    /// The neighbours of each size are simulated for the reasons in any case. Where one of them is faster, the search
    /// restarts there.
    Point from_neighbour(Point best);

    // What the plan and its reasons ask of the current strategy.
    [[nodiscard]] const TilingStrategy& shape() const { return shape_; }
    [[nodiscard]] const std::vector<SearchedSize>& dimensions() const { return dimensions_; }
    [[nodiscard]] bool any_fits() const { return fits_; }
    [[nodiscard]] KernelSchedule schedule_at(const Point& point) const;
    const Estimate& estimate_at(const Point& point, Asked asked = Asked::tiles);
    [[nodiscard]] double bytes_of(const Point& point) { return estimate_at(point).bytes; }
    /// Simulated time. Infinite where the tiles do not fit or are refused, and once the budget is spent.
    const RatedSizes& rate(const Point& point);
    /// Whether the compiler has not refused the candidate with stream-K.
    [[nodiscard]] bool may_use_stream_k(const KernelCandidate& whole) const;

private:
    [[nodiscard]] bool fits(const Point& point) { return estimates_.fits(estimate_at(point)); }
    [[nodiscard]] Point smallest() const { return Point(dimensions_.size(), 0); }
    [[nodiscard]] Point with_whole_streams() const;
    [[nodiscard]] AxisId row_axis() const;
    [[nodiscard]] Point with_whole_rows() const;
    [[nodiscard]] Point with_lines() const;
    [[nodiscard]] Point with_runs() const;
    [[nodiscard]] Point start();
    Point search(Point best);
    Point shrink(Point best);
    std::optional<Diagnostic> memory_error(const Point& point);
    [[nodiscard]] bool smallest_free_fits() const;

    const CandidateSchedules& schedules_;
    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    CandidateEstimates& estimates_;
    SearchBudget& budget_;
    TilingStrategy shape_;
    std::vector<SearchedSize> dimensions_;
    bool fits_ = true;
    std::map<Point, RatedSizes> rated_;
    /// of the current sizes, and what each has been asked for
    std::map<Point, std::pair<const Estimate*, Asked>> at_points_;
};

}  // namespace napkin
