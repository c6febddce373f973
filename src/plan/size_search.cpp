#include "plan/size_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/moves.hpp"
#include "plan/reasons.hpp"
#include "schedule/thread_runs.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// How often the search restarts from a neighbour.
constexpr int most_restarts = 4;

}  // namespace

void SizeSearch::take(const FoundSizes& found) {
    shape_ = found.shape, dimensions_ = found.dimensions, rated_ = found.rated, fits_ = found.fits;
    at_points_.clear();
}

KernelSchedule SizeSearch::schedule_at(const Point& point) const {
    return schedules_.at_sizes(shape_, dimensions_, point);
}

const Estimate& SizeSearch::estimate_at(const Point& point, Asked asked) {
    auto& [rating, answered] = at_points_[point];
    if (!rating || answered < asked) rating = &estimates_.of(schedule_at(point), asked), answered = asked;
    return *rating;
}

std::optional<Diagnostic> SizeSearch::run(const TilingStrategy& shape, FoundSizes& found) {
    take({shape, schedules_.sizes(shape), true, {}, {}});
    // Axes whose grouping repeats work are cut only where nothing else fits.
    if (!fits(smallest()))
        for (SearchedSize& size : schedules_.repeating_sizes(shape))
            dimensions_.push_back(std::move(size)), at_points_.clear();
    Point best = smallest();
    fits_ = fits(best);
    if (!fits_) {
        if (auto error = memory_error(best)) return error;
        RatedSizes& rated = rated_[best];
        if (const Estimate& smallest_tiles = estimate_at(best, Asked::times);
            !estimates_.is_refused(smallest_tiles.candidate))
            rated.seconds = smallest_tiles.times->seconds;
    } else {
        // From ordinary tiles and from the smallest: a cache that holds what all cores work on makes two valleys.
        std::vector<Point> starts{start(), best};
        // A block that has a whole stream at a time loads once what K blocks would load again in every pass over
        // it. Without tensor cores the search begins there, as it may not get to the other starts.
        if (const Point whole = with_whole_streams(); options_.warps.value > 0 && fits(whole))
            starts.insert(shape.tensor < 0 ? starts.begin() : starts.end(), whole);
        // Rows of maps that threads hold have one dimension, and no step leads to them from tiles that have two. Nor
        // does one lead to runs of a row from single values.
        const bool is_of_maps = none_of(dimensions_, [](const SearchedSize& d) { return d.stream; });
        if (const Point row = with_whole_rows(); is_of_maps && row_axis() >= 0 && options_.warps.value > 0 && fits(row))
            starts.insert(starts.begin(), row);
        // Where each array is accessed in whole lines, no step leads there from tiles that have lines of one array.
        if (const Point lines = with_lines(); is_of_maps && shape.axis.axis < 0 && options_.warps.value > 0 && fits(lines))
            starts.insert(starts.begin(), lines);
        // Sums over a stream go by runs where each thread has one, and no step leads there from tiles of a few threads.
        if (const Point runs = with_runs();
            !is_of_maps && shape.axis.axis < 0 && row_axis() >= 0 && options_.warps.value > 0 && fits(runs))
            starts.insert(starts.begin(), runs);
        std::optional<Point> least;
        for (const Point& from : starts)
            if (const Point found_from = search(from); !least || rate(found_from).seconds < rate(*least).seconds)
                least = found_from;
        best = shrink(*least);
    }
    found = {shape_, dimensions_, fits_, rated_, best};
    return std::nullopt;
}

/// The smallest groups that have all of their streams at once.
Point SizeSearch::with_whole_streams() const {
    Point point = smallest();
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
        if (dimensions_[i].stream) point[i] = dimensions_[i].sizes.size() - 1;
    return point;
}

/// The axis of the panels, or without them that of neighbours of a result in memory. -1: there is none.
AxisId SizeSearch::row_axis() const {
    if (shape_.axis.axis >= 0) return shape_.axis.axis;
    const ScheduledKernel& kernel = schedules_.without_schedule();
    const auto stored = find_if(kernel.steps, [](const Step& s) { return std::holds_alternative<Store>(*s.statement); });
    if (stored == kernel.steps.end()) return -1;
    const std::vector<Index>& dims = kernel.variable(variable_of(*stored)).dims;
    return dims.empty() ? AxisId() : dims.back().single_axis();
}

/// The smallest tiles that have the whole axis of rows.
Point SizeSearch::with_whole_rows() const {
    const AxisId axis = row_axis();
    Point point = smallest();
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
        if (dimensions_[i].axis == axis) point[i] = dimensions_[i].sizes.size() - 1;
    return point;
}

/// The smallest tiles that have a line of every array which is loaded or stored.
Point SizeSearch::with_lines() const {
    const ScheduledKernel& kernel = schedules_.without_schedule();
    Point point = smallest();
    for (const Variable& v : kernel.kernel->variables) {
        if (v.dims.empty()) continue;
        const std::int64_t line = kernel.unit.line_bytes / bytes(v.memory_type);
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            while (v.dims.back().depends_on(dimensions_[i].axis) && point[i] + 1 < dimensions_[i].sizes.size() &&
                   dimensions_[i].sizes[point[i]] < line)
                ++point[i];
    }
    return point;
}

/// The smallest tiles in which each thread has a run of neighbours of the result in memory, with streams of ordinary
/// size.
Point SizeSearch::with_runs() const {
    const AxisId axis = row_axis();
    const std::int64_t values = options_.warps.value * schedules_.without_schedule().lanes * longest_run;
    const KernelSchedule wanted = schedules_.ordinary(shape_);
    Point point = smallest();
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const SearchedSize& d = dimensions_[i];
        const auto ordinary = d.stream ? wanted.stream.find(d.axis) : wanted.stream.end();
        const std::int64_t least = d.stream         ? (ordinary == wanted.stream.end() ? 1 : ordinary->second.value)
                                   : d.axis == axis ? values
                                                    : 1;
        while (point[i] + 1 < d.sizes.size() && d.sizes[point[i]] < least) ++point[i];
    }
    return point;
}

/// Tiles of ordinary size, or the largest below that fit.
Point SizeSearch::start() {
    const KernelSchedule wanted = schedules_.ordinary(shape_);
    Point point = smallest();
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const SearchedSize& d = dimensions_[i];
        const auto& sizes = d.stream ? wanted.stream : wanted.group;
        const auto found = sizes.find(d.axis);
        if (found == sizes.end()) continue;
        while (point[i] + 1 < d.sizes.size() && d.sizes[point[i] + 1] <= found->second.value) ++point[i];
    }
    while (!fits(point)) {
        const auto largest = std::max_element(point.begin(), point.end());
        if (*largest == 0) break;
        --*largest;
    }
    return point;
}

bool SizeSearch::may_use_stream_k(const KernelCandidate& whole) const {
    if (options_.is_batch_invariant) return false;
    if (options_.refused.empty()) return true;
    KernelCandidate candidate = whole;
    candidate.uses_stream_k = true;
    return !estimates_.is_refused(candidate);
}

const RatedSizes& SizeSearch::rate(const Point& point) {
    const auto [found, added] = rated_.try_emplace(point);
    if (!added || budget_.simulated >= budget_.most) return found->second;
    const Estimate& rating = estimate_at(point, Asked::times_of_fitting);
    found->second.bytes = rating.bytes_of_one_stage;
    if (!estimates_.fits(rating) || estimates_.is_refused(rating.candidate) || rating.is_other_order)
        return found->second;
    ++budget_.simulated;
    const EstimatedTimes& times = *rating.times;
    const bool cuts = may_use_stream_k(rating.candidate);
    found->second.seconds = cuts ? times.stream_k_seconds : times.seconds;
    found->second.core_seconds = cuts ? times.stream_k_core_seconds : times.core_seconds;
    return found->second;
}

/// Descent: steps of each size, then exchanges of two.
Point SizeSearch::search(Point best) {
    for (bool improved = true; improved && budget_.simulated < budget_.most;) {
        improved = false;
        const auto takes = [&](const SizeMove& move, std::size_t i, std::size_t j) {
            const AtSizes at{dimensions_, best, i, j};
            if (!move.when(at)) return false;
            Point point = move.apply(at);
            if (rate(point).seconds >= rate(best).seconds * move.worth) return false;
            best = std::move(point);
            return improved = true;
        };
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            for (const SizeMove& step : size_steps())
                while (takes(step, i, i)) {
                }
        for (const SizeMove& exchange : size_exchanges())
            for (std::size_t i = 0; i < dimensions_.size() && !improved; ++i)
                for (std::size_t j = 0; j < dimensions_.size(); ++j) takes(exchange, i, j);
    }
    return best;
}

Point SizeSearch::from_neighbour(Point best) {
    for (int turn = 0; turn < most_restarts; ++turn) {
        Point least = best;
        const auto seconds_of = [&](const Point& point) {
            RatedSizes& rated = rated_[point];
            const Estimate& rating = estimate_at(point);
            if (!std::isinf(rated.seconds) || !estimates_.fits(rating) || estimates_.is_refused(rating.candidate))
                return rated.seconds;
            rated_.erase(point);
            budget_.most = std::max(budget_.most, budget_.simulated + 1);
            return rate(point).seconds;
        };
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            for (const SizeMove& move : size_neighbours()) {
                const AtSizes at{dimensions_, best, i};
                if (!move.when(at)) continue;
                Point point = move.apply(at);
                if (seconds_of(point) < seconds_of(least) * move.worth) least = std::move(point);
            }
        if (least == best) break;
        budget_.most = std::max(budget_.most, budget_.simulated + budget_.for_strategy / 4);
        best = shrink(search(least));
    }
    return best;
}

/// The least memory within the equal_times of the best time. What saves no time is not taken from the cache. Operands
/// have more stages in its place, so that more copies are under way and less is waited for at once. Where the cores
/// wait for memory anyway, their own time may grow a little, but not at will.
Point SizeSearch::shrink(Point best) {
    const double limit = rate(best).seconds * (1 + equal_times),
                 core_limit = rate(best).core_seconds * (1 + 10 * equal_times);
    for (bool improved = true; improved;) {
        improved = false;
        for (std::size_t i = 0; i < dimensions_.size(); ++i) {
            Point point = best;
            if (point[i] == 0) continue;
            --point[i];
            const RatedSizes& r = rate(point);
            if (r.seconds <= limit && r.core_seconds <= core_limit && r.bytes < rate(best).bytes)
                best = point, improved = true;
        }
    }
    return best;
}

/// What to say when the smallest tiles do not fit: an error where the user fixed a size, or where `strict` asks for
/// it.
std::optional<Diagnostic> SizeSearch::memory_error(const Point& point) {
    const double need = bytes_of(point);
    // The overridden size whose shrinking alone makes the tiles fit, or the first overridden size.
    std::optional<Diagnostic> first;
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        if (!dimensions_[i].by_user) continue;
        const auto& items = overrides_.of(dimensions_[i].stream ? ChoiceKind::stream : ChoiceKind::group);
        std::int64_t low = 0, high = dimensions_[i].sizes[0];  // low fits (0: unknown), high does not
        while (low + 1 < high) {
            const std::int64_t middle = low + (high - low) / 2;
            const std::int64_t kept = std::exchange(dimensions_[i].sizes[0], middle);
            at_points_.clear();
            (fits(point) ? low : high) = middle;
            dimensions_[i].sizes[0] = kept;
            at_points_.clear();
        }
        if (low > 0) return size_exceeds_memory(items.at(dimensions_[i].axis), need, low, model_);
        if (!first) first = size_exceeds_memory(items.at(dimensions_[i].axis), need, 0, model_);
    }
    if (first && !options_.strict && !smallest_free_fits()) return std::nullopt;  // nothing fits anyway
    if (first) return first;
    if (!options_.strict) return std::nullopt;
    return kernel_exceeds_memory(need, model_);
}

/// Whether the tiles would fit with every size at 1.
bool SizeSearch::smallest_free_fits() const {
    KernelSchedule schedule = schedule_at(smallest());
    for (auto* sizes : {&schedule.group, &schedule.stream})
        for (auto& [axis, choice] : *sizes) choice.value = 1;
    return static_cast<double>(schedules_.completed(std::move(schedule)).memory_bytes()) <= model_.usable_bytes();
}

}  // namespace napkin
