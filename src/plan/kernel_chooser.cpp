#include "plan/kernel_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cost/compulsory.hpp"
#include "plan/candidate_estimates.hpp"
#include "plan/candidate_schedules.hpp"
#include "plan/complete.hpp"
#include "plan/estimates.hpp"
#include "plan/grid.hpp"
#include "plan/reasons.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// Times that differ by less count as equal.
constexpr double tolerance = 0.005;
/// Schedules of one kernel that are simulated for one vector axis.
constexpr int most_simulated = 64;
/// Most kernels of a form of which each may have that many. Kernels of a longer form share the total of so many, so
/// that no form takes long to plan.
constexpr std::size_t most_kernels_in_full = 16;
/// The fewest that each of them has.
constexpr int least_simulated = 16;
/// Vector axes that are searched where small tiles do not tell them apart: the fastest ones there.
constexpr std::size_t most_axes = 6;
/// Reductions across the lanes must be faster by this factor.
constexpr double hysteresis_across_lanes = 0.9;
/// On the tensor cores, tiles of ordinary size may rank two axes M wrongly that differ by up to this factor. For 8192³,
/// the axis that is 12% slower on them is predicted 9% faster in the end.
constexpr double little_in_rows = 0.8;
/// Strategies whose ordinary tiles take so many times those of the fastest are left out once anything fits.
constexpr double far_slower = 1.5;
/// The second-best axis may be the faster one at other sizes if its ordinary tiles take less than so many times the
/// best one's.
constexpr double worth_searching = 2;

/// How often the search restarts from half or twice a size. That must be faster by more than the model is off in the
/// median (bench/results, predictions). If the model finds two sizes within 7%, the one that fills less of the cache
/// was measured as the faster one. Those were attention_fp8 and attention_bf16 on two cores of a Xeon of which other
/// work took a quarter, 2026-11-28.
constexpr int most_restarts = 4;
constexpr double hysteresis_of_restarts = 0.1;

/// Tiles that are fetched ahead into the first cache must be faster than the larger ones of the search by this share.
constexpr double worth_smaller_tiles = 0.01;

/// Schedules that are simulated for each kernel where the form has so many.
int simulated_of_each(std::size_t kernels) {
    if (kernels <= most_kernels_in_full) return most_simulated;
    return std::max(least_simulated, static_cast<int>(most_simulated * most_kernels_in_full / kernels));
}

class KernelChooser {
public:
    KernelChooser(const CandidateSchedules& schedules, const Simulator& model, const Overrides& hand,
                  const PlanOptions& options, KernelEstimates& known, KernelEstimates& in_vectors)
        : schedules_(schedules),
          model_(model),
          overrides_(hand),
          options_(options),
          known_(known),
          in_vectors_(in_vectors),
          estimates_(schedules, model, options, known, in_vectors) {
        const int in_full = simulated_of_each(model.derived().kernels.size());
        budget_ = most_ = options.quick ? in_full / 4 : in_full;
    }

    Result<KernelPlan> run() {
        const std::vector<VectorAxis> axes = schedules_.vectors();
        if (!known_.on_tensor_cores) known_.on_tensor_cores = schedules_.on_tensor_cores();
        const std::vector<TilingStrategy>& tensors = *known_.on_tensor_cores;
        if (tensors.empty())
            if (auto error = schedules_.why_no_mma()) return *error;
        if (const double least = least_seconds_of_all(); least > options_.useless) return bound_of(least);
        // Tiles of ordinary size show whether an axis is far slower.
        std::vector<EstimatedStrategy> shapes;
        for (const TilingStrategy& shape : tensors) shapes.push_back(rated_on_ordinary_tiles(shape));
        // Beside the tensor cores most are, and the time of their multiply-adds alone shows it.
        double least = std::numeric_limits<double>::infinity();
        for (const EstimatedStrategy& shape : shapes) least = std::min(least, shape.seconds);
        if (!overrides_.tensor || tensors.empty())
            for (const VectorAxis& axis : axes) {
                const double bound = tensors.empty() ? 0 : least_seconds_in_panels(axis);
                const bool is_left_out = hysteresis_across_lanes * bound > far_slower * least * (1 + tolerance);
                shapes.push_back(
                    is_left_out
                        ? EstimatedStrategy{.shape = schedules_.in_panels(axis, 3), .seconds = bound, .is_bound = true}
                        : rated_in_panels(axis, 3));
                simulated_ += is_left_out ? 1 : 0;
            }
        const auto is_before = [](const EstimatedStrategy& a, const EstimatedStrategy& b) {
            return a.seconds * (a.shape.axis.vertical ? hysteresis_across_lanes : 1) <
                   b.seconds * (b.shape.axis.vertical ? hysteresis_across_lanes : 1);
        };
        std::stable_sort(shapes.begin(), shapes.end(), is_before);
        // Small tiles may rank the best two wrongly, as where a row is read in segments that are too short for the
        // memory. So a full plan searches both.
        const auto is_runner_up = [&](std::size_t s) {
            return s == 1 && s < shapes.size() && !options_.quick && tensors.empty() &&
                   shapes[s].seconds < worth_searching * shapes.front().seconds;
        };
        std::optional<Found> best;
        std::optional<Diagnostic> refused;
        // Tiles of ordinary size say little on a GPU, where a block takes whole rows if it can: every axis is searched.
        const bool searches_all = options_.warps.value > 0 && tensors.empty();
        for (std::size_t s = 0; s < shapes.size(); ++s) {
            // What fits no core's memory gives way to anything that does.
            const bool fits = best && best->fits && !std::isinf(best->rated.at(best->point).seconds);
            if (!fits && shapes[s].is_bound) {
                // Strategies with only a bound are simulated after all. They have been counted.
                const int counted = simulated_;
                for (std::size_t left = s; left < shapes.size(); ++left)
                    if (shapes[left].is_bound) shapes[left] = rated_in_panels(shapes[left].shape.axis, 3);
                simulated_ = counted;
                std::stable_sort(shapes.begin() + static_cast<std::ptrdiff_t>(s), shapes.end(), is_before);
            }
            const auto& [shape, seconds, loads, is_bound] = shapes[s];
            // Tiles of ordinary size say little about which axis of a product is the axis M.
            const bool is_even = fits && shape.tensor >= 0 && best->shape.tensor >= 0 &&
                                 little_in_rows * seconds < shapes.front().seconds;
            if (searches_all && best && s >= most_axes) break;
            if (searches_all || is_even)
                most_ = simulated_ + budget_;
            else if (fits && (seconds > far_slower * shapes.front().seconds || simulated_ >= budget_ / 2) &&
                     !is_runner_up(s))
                break;
            else if (is_runner_up(1))
                most_ = s == 0 ? budget_ - budget_ / 4 : budget_;
            Found found;
            // Overridden sizes that do not fit beside one vector axis may fit beside another.
            if (auto error = search_shape(shape.tensor < 0 ? best_panel(shape.axis) : shape, found)) {
                if (!refused) refused = std::move(error);
                continue;
            }
            const double margin = fits && best->shape.axis.vertical && !shape.axis.vertical ? hysteresis_across_lanes : 1;
            const bool faster = best && found.rated.at(found.point).seconds < margin * best->rated.at(best->point).seconds;
            if (!best || (found.fits && !fits) || (found.fits == fits && faster)) best = std::move(found);
        }
        if (!best) return *refused;
        if (!options_.refused.empty() && std::isinf(best->rated.at(best->point).seconds)) {
            // Everything that may be chosen is refused, so the fastest of it is taken.
            PlanOptions open = options_;
            open.refused.clear();
            return KernelChooser(schedules_, model_, overrides_, open, known_, in_vectors_).run();
        }
        if (axes.size() > 1) best->shape.axis.reason += fmt::format("; fastest of {} axes", axes.size());
        if (searches_all && shapes.size() > most_axes)
            best->shape.axis.reason += fmt::format(", {} of which are searched", most_axes);
        const std::size_t kernels = model_.derived().kernels.size();
        if (kernels > most_kernels_in_full)
            best->shape.axis.reason += fmt::format(
                "; {} and not {} schedules are simulated for each: the form has {} kernels", simulated_of_each(kernels),
                most_simulated, kernels);
        take(*best);
        return plan_of(options_.quick || !fits_ ? best->point : from_neighbour(best->point));
    }

private:
    struct EstimatedStrategy {
        TilingStrategy shape;
        double seconds = std::numeric_limits<double>::infinity();  ///< on ordinary tiles
        double loads = std::numeric_limits<double>::infinity();    ///< in which the core loads
        bool is_bound = false;                                     ///< whether `seconds` is only a lower bound
    };
    struct Rated {
        double seconds = std::numeric_limits<double>::infinity(), core_seconds = 0;
        double bytes = 0;  ///< Estimate::bytes_of_one_stage
    };
    /// The best sizes of one tiling strategy, and what they were found among.
    struct Found {
        TilingStrategy shape;
        std::vector<SearchedSize> dimensions;
        bool fits = true;
        std::map<Point, Rated> rated;
        Point point;
    };

    [[nodiscard]] std::int64_t extent(AxisId axis) const { return model_.extents()[axis]; }

    void take(const Found& found) {
        shape_ = found.shape, dimensions_ = found.dimensions, rated_ = found.rated, fits_ = found.fits;
        at_points_.clear();
    }

    [[nodiscard]] KernelSchedule schedule_at(const Point& point) const {
        return schedules_.at_sizes(shape_, dimensions_, point);
    }

    const Estimate& estimate_at(const Point& point, Asked asked = Asked::tiles) {
        auto& [rating, answered] = at_points_[point];
        if (!rating || answered < asked) rating = &estimates_.of(schedule_at(point), asked), answered = asked;
        return *rating;
    }

    // ---- the shape

    EstimatedStrategy rated_on_ordinary_tiles(const TilingStrategy& shape) {
        EstimatedStrategy rated{shape};
        const EstimatedTimes& times = *estimates_.of(schedules_.ordinary(shape), Asked::times).times;
        // How many groups each core gets depends on the sizes, which are chosen later.
        rated.seconds = times.seconds / times.waves;
        rated.loads = times.load_seconds / times.waves;
        ++simulated_;
        return rated;
    }

    EstimatedStrategy rated_in_panels(const VectorAxis& axis, int vectors) {
        const TilingStrategy shape = schedules_.in_panels(axis, vectors);
        const auto known = in_panels_.find({axis.axis, shape.vectors});
        if (known != in_panels_.end()) return known->second;
        return in_panels_[{axis.axis, shape.vectors}] = rated_on_ordinary_tiles(shape);
    }

    /// Lower bound of the seconds of every candidate. 0 where an override of statements, clusters or the tile scheduler
    /// leaves it open.
    [[nodiscard]] double least_seconds_of_all() const {
        const KernelSchedule any = schedules_.ordinary(schedules_.in_panels(schedules_.vectors().front(), 1));
        if (overrides_.cluster || overrides_.dealing || !any.roles.empty() || !any.atoms.empty()) return 0;
        return least_seconds(model_.derived(), model_.kernel(), model_.work(), model_.extents(), model_.machine(),
                             known_.on_tensor_cores->empty() ? ComputedBy::cores : ComputedBy::tensor_cores);
    }
    [[nodiscard]] KernelPlan bound_of(double seconds) const {
        KernelPlan out{.scheduled = schedules_.without_schedule(), .is_bound = true};
        out.time.seconds = seconds;
        return out;
    }

    /// Lower bound of rated_in_panels, for blocks that wait for nothing: the seconds in which all cores do the
    /// multiply-adds. 0 where overrides, or masks, leave them open.
    double least_seconds_in_panels(const VectorAxis& axis) const {
        const Machine& machine = model_.machine();
        const KernelSchedule schedule = schedules_.ordinary(schedules_.in_panels(axis, 3));
        if (machine.kind != MachineKind::gpu || overrides_.cluster || overrides_.dealing || !schedule.roles.empty() ||
            !schedule.atoms.empty() || any_of(model_.live().loops, [](const CoreLoop& l) { return !l.support.empty(); }))
            return 0;
        double clocks = 0, groups = 1;
        for (const StatementWork& work : model_.work())
            for (const OpCount& op : work.ops)
                if (op.kind == OpKind::fma) {
                    double points = static_cast<double>(op.count);
                    for (const AxisId a : op.axes) points *= static_cast<double>(extent(a));
                    clocks += points / static_cast<double>(model_.lanes()) * model_.fma_clocks();
                }
        for (const auto& [a, size] : schedule.group)
            groups *= static_cast<double>(ceil_div(extent(a), std::min(size.value, extent(a))));
        const StreamParts& parts = model_.kernel().parts;
        if (parts.any()) groups *= static_cast<double>(extent(parts.part));
        // Most waves. The estimate leaves out what rounds of groups leave idle.
        const auto threads = static_cast<double>(std::max(schedules_.threads(), machine.num_cores()));
        const double waves = (groups + threads) / groups;
        return clocks / (machine.clock_hz.value * machine.cores.value) / waves;
    }

    /// The fewest vectors within 1% of the fastest: wide panels make wide tiles, which need memory and waste lanes at
    /// ragged ends. A panel that is as fast and loads a tenth less is better, too. It leaves room beside the arithmetic
    /// for what no model sees.
    TilingStrategy best_panel(const VectorAxis& axis) {
        EstimatedStrategy best = rated_in_panels(axis, 1);
        const std::int64_t lanes = model_.lanes(), by_registers = (schedules_.unit().registers - 1) / 2;
        const std::int64_t wanted = axis.axis < 0 ? 4 : std::min<std::int64_t>(6, (extent(axis.axis) + lanes - 1) / lanes);
        for (int vectors = 2; !overrides_.vectors && vectors <= std::min(wanted, by_registers); ++vectors) {
            const EstimatedStrategy rated = rated_in_panels(axis, vectors);
            const bool is_lighter = rated.seconds < best.seconds * (1 + tolerance) && rated.loads < best.loads * 0.9;
            if (rated.seconds < best.seconds * 0.99 || is_lighter) best = rated;
        }
        // Panels of whole lines, where they are as fast: a prefetch is issued once a line.
        const int line = schedules_.unit().line_bytes / schedules_.unit().bytes;
        if (!overrides_.vectors && best.shape.vectors < line && line <= std::min(wanted, by_registers))
            if (EstimatedStrategy rated = rated_in_panels(axis, line); rated.seconds < best.seconds * (1 + tolerance))
                best = rated;
        return best.shape;
    }

    // ---- the sizes

    std::optional<Diagnostic> search_shape(const TilingStrategy& shape, Found& found) {
        take({shape, schedules_.sizes(shape), true, {}, {}});
        // Axes whose grouping repeats work are cut only where nothing else fits.
        if (!fits(smallest()))
            for (SearchedSize& size : schedules_.repeating_sizes(shape))
                dimensions_.push_back(std::move(size)), at_points_.clear();
        Point best = smallest();
        fits_ = fits(best);
        if (!fits_) {
            if (auto error = memory_error(best)) return error;
            Rated& rated = rated_[best];
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
            std::optional<Point> least;
            for (const Point& from : starts)
                if (const Point found_from = search(from); !least || rate(found_from).seconds < rate(*least).seconds)
                    least = found_from;
            best = shrink(*least);
        }
        found = {shape_, dimensions_, fits_, rated_, best};
        return std::nullopt;
    }

    [[nodiscard]] double bytes_of(const Point& point) { return estimate_at(point).bytes; }
    [[nodiscard]] bool fits(const Point& point) { return estimates_.fits(estimate_at(point)); }
    [[nodiscard]] Point smallest() const { return Point(dimensions_.size(), 0); }

    /// The smallest groups that have all of their streams at once.
    [[nodiscard]] Point with_whole_streams() const {
        Point point = smallest();
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            if (dimensions_[i].stream) point[i] = dimensions_[i].sizes.size() - 1;
        return point;
    }

    /// Tiles of ordinary size, or the largest below that fit.
    [[nodiscard]] Point start() {
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

    /// Whether the compiler has not refused the candidate with stream-K.
    [[nodiscard]] bool may_use_stream_k(const KernelCandidate& whole) const {
        if (options_.refused.empty()) return true;
        KernelCandidate candidate = whole;
        candidate.uses_stream_k = true;
        return !estimates_.is_refused(candidate);
    }

    /// Simulated time. Infinite where the tiles do not fit or are refused, and once the budget is spent.
    const Rated& rate(const Point& point) {
        const auto [found, added] = rated_.try_emplace(point);
        if (!added || simulated_ >= most_) return found->second;
        const Estimate& rating = estimate_at(point, Asked::times_of_fitting);
        found->second.bytes = rating.bytes_of_one_stage;
        if (!estimates_.fits(rating) || estimates_.is_refused(rating.candidate)) return found->second;
        ++simulated_;
        const EstimatedTimes& times = *rating.times;
        const bool cuts = may_use_stream_k(rating.candidate);
        found->second.seconds = cuts ? times.stream_k_seconds : times.seconds;
        found->second.core_seconds = cuts ? times.stream_k_core_seconds : times.core_seconds;
        return found->second;
    }

    /// Descent. Each size goes one step up or down, then two at a time in opposite directions: at the memory's limit
    /// one can grow only where the other shrinks.
    Point search(Point best) {
        for (bool improved = true; improved && simulated_ < most_;) {
            improved = false;
            const auto consider = [&](const Point& point) {
                if (rate(point).seconds >= rate(best).seconds * (1 - 1e-6)) return false;
                best = point;
                return improved = true;
            };
            for (std::size_t i = 0; i < dimensions_.size(); ++i)
                for (const int direction : {1, -1})
                    while (true) {
                        Point point = best;
                        if (direction < 0 ? point[i] == 0 : point[i] + 1 >= dimensions_[i].sizes.size()) break;
                        point[i] += static_cast<std::size_t>(direction);
                        if (!consider(point)) break;
                    }
            for (std::size_t i = 0; i < dimensions_.size() && !improved; ++i)
                for (std::size_t j = 0; j < dimensions_.size(); ++j) {
                    Point point = best;
                    if (i == j || point[i] == 0 || point[j] + 1 >= dimensions_[j].sizes.size()) continue;
                    --point[i], ++point[j];
                    consider(point);
                }
        }
        return best;
    }

    /// The candidate nearest to the wanted size of a dimension, on that side of the current size. None where the
    /// current size is the last one there.
    [[nodiscard]] std::optional<Point> beside(const Point& point, std::size_t i, std::int64_t wanted) const {
        const std::vector<std::int64_t>& sizes = dimensions_[i].sizes;
        const std::int64_t size = sizes[point[i]];
        std::optional<std::size_t> nearest;
        for (std::size_t k = 0; k < sizes.size(); ++k)
            if (k != point[i] && (sizes[k] < size) == (wanted < size) &&
                (!nearest || std::abs(sizes[k] - wanted) < std::abs(sizes[*nearest] - wanted)))
                nearest = k;
        if (!nearest) return std::nullopt;
        Point out = point;
        out[i] = *nearest;
        return out;
    }

    /// The descent goes by single steps, and a size that leaves a ragged last tile or few groups for a core may lie
    /// between two better ones. Half and twice each size are simulated for the reasons in any case. Where one of them
    /// is faster, the search restarts there.
    Point from_neighbour(Point best) {
        for (int turn = 0; turn < most_restarts; ++turn) {
            Point least = best;
            const auto seconds_of = [&](const Point& point) {
                Rated& rated = rated_[point];
                const Estimate& rating = estimate_at(point);
                if (!std::isinf(rated.seconds) || !estimates_.fits(rating) || estimates_.is_refused(rating.candidate))
                    return rated.seconds;
                rated_.erase(point);
                most_ = std::max(most_, simulated_ + 1);
                return rate(point).seconds;
            };
            for (std::size_t i = 0; i < dimensions_.size(); ++i) {
                const std::int64_t size = dimensions_[i].sizes[best[i]];
                for (const std::int64_t wanted : {size / 2, 2 * size})
                    if (const auto point = beside(best, i, wanted);
                        point && seconds_of(*point) < seconds_of(least) * (1 - hysteresis_of_restarts))
                        least = *point;
            }
            if (least == best) break;
            most_ = std::max(most_, simulated_ + budget_ / 4);
            best = shrink(search(least));
        }
        return best;
    }

    /// The least memory within the tolerance of the best time. What saves no time is not taken from the cache. Operands
    /// have more stages in its place, so that more copies are under way and less is waited for at once. Where the cores
    /// wait for memory anyway, their own time may grow a little, but not at will.
    Point shrink(Point best) {
        const double limit = rate(best).seconds * (1 + tolerance),
                     core_limit = rate(best).core_seconds * (1 + 10 * tolerance);
        for (bool improved = true; improved;) {
            improved = false;
            for (std::size_t i = 0; i < dimensions_.size(); ++i) {
                Point point = best;
                if (point[i] == 0) continue;
                --point[i];
                const Rated& r = rate(point);
                if (r.seconds <= limit && r.core_seconds <= core_limit && r.bytes < rate(best).bytes)
                    best = point, improved = true;
            }
        }
        return best;
    }

    /// What to say when the smallest tiles do not fit: an error where the user fixed a size, or where `strict` asks for
    /// it.
    std::optional<Diagnostic> memory_error(const Point& point) {
        const double need = bytes_of(point);
        // The overridden size whose shrinking alone makes the tiles fit, or the first overridden size.
        std::optional<Diagnostic> first;
        for (std::size_t i = 0; i < dimensions_.size(); ++i) {
            if (!dimensions_[i].by_user) continue;
            const auto& items = dimensions_[i].stream ? overrides_.stream : overrides_.group;
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
    [[nodiscard]] bool smallest_free_fits() const {
        KernelSchedule schedule = schedule_at(smallest());
        for (auto* sizes : {&schedule.group, &schedule.stream})
            for (auto& [axis, choice] : *sizes) choice.value = 1;
        return static_cast<double>(schedules_.completed(std::move(schedule)).memory_bytes()) <= model_.usable_bytes();
    }

    // ---- why

    /// How the time would change at half and at twice the size.
    std::string sensitivity(const Point& best, std::size_t i) {
        const SearchedSize& d = dimensions_[i];
        const std::int64_t size = d.sizes[best[i]];
        std::vector<std::string> parts;
        const auto neighbour = [&](std::int64_t wanted, const char* what) {
            const auto point = beside(best, i, wanted);
            if (!point) return;
            const Estimate& rating = estimate_at(*point);
            const std::int64_t nearest = d.sizes[(*point)[i]];
            const std::string at_size = nearest == wanted ? what : fmt::format("{}", nearest);
            if (rating.spills)
                parts.push_back(fmt::format("{} exceeds the registers", at_size));
            else if (rating.bytes > model_.usable_bytes())
                parts.push_back(fmt::format("{} exceeds {}", at_size, model_.level_name()));
            else
                parts.push_back(
                    fmt::format("{} is {}", at_size,
                                time_change(estimate_at(*point, Asked::times).times->seconds / rate(best).seconds)));
        };
        neighbour(size / 2, "half");
        neighbour(size * 2, "double");
        return join(parts, ", ");
    }

    std::string reason(const Point& best, std::size_t i) {
        const SearchedSize& d = dimensions_[i];
        if (d.by_user) return memory_text(bytes_of(best), model_);
        if (!fits_) return nothing_fits_text(model_);
        const bool cuts_recompute = !d.stream && contains(model_.kernel().recompute_axes, d.axis);
        const std::string text = size_text({d.sizes[best[i]], extent(d.axis), d.stream, cuts_recompute,
                                            d.axis == shape_.axis.axis ? shape_.vectors : 0, model_.lanes()});
        const std::string more = d.sizes.size() > 1 ? sensitivity(best, i) : "";
        return text + (text.empty() || more.empty() ? "" : "; ") + more;
    }

    Result<KernelPlan> plan_of(const Point& best) {
        if (!options_.quick) return plan_with_tiles_ahead(best);
        if (options_.completion == Completion::whole) return plan_anew(best);
        const auto [found, is_new] = known_.estimated_plans.try_emplace(
            {searched_fields(schedule_at(best)), may_use_stream_k(estimate_at(best).candidate)});
        if (is_new) found->second = plan_anew(best);
        return found->second;
    }
    /// The search sees no prefetches. With them, tiles that the first cache holds beside the next ones may be faster
    /// than larger ones.
    KernelPlan plan_with_tiles_ahead(const Point& best) {
        KernelPlan plan = plan_anew(best);
        const Machine& machine = model_.machine();
        if (machine.kind != MachineKind::cpu || !plan.scheduled.loops.empty()) return plan;
        const double first_cache = bytes_a_core(machine, machine.levels.size() - 1);
        Point smaller = best;
        while (bytes_of(smaller) > first_cache) {
            const auto largest = std::max_element(smaller.begin(), smaller.end());
            if (largest == smaller.end() || *largest == 0) return plan;
            --*largest;
        }
        if (smaller == best) return plan;
        KernelPlan other = plan_anew(smaller);
        if (other.schedule().prefetches.empty() || !(other.time.seconds < (1 - worth_smaller_tiles) * plan.time.seconds))
            return plan;
        KernelSchedule& schedule = other.scheduled.schedule;
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            if (smaller[i] != best[i])
                (dimensions_[i].stream ? schedule.stream : schedule.group).at(dimensions_[i].axis).reason = fmt::format(
                    "fetched ahead, it fits {} with the group at hand; {} is {}", machine.levels.back().name,
                    dimensions_[i].sizes[best[i]], time_change(plan.time.seconds / other.time.seconds));
        return other;
    }
    KernelPlan plan_anew(const Point& best) {
        KernelSchedule schedule = schedule_at(best);
        for (std::size_t i = 0; i < dimensions_.size() && !options_.quick; ++i)
            (dimensions_[i].stream ? schedule.stream : schedule.group).at(dimensions_[i].axis).reason = reason(best, i);
        KernelPlan plan;
        plan.scheduled = schedules_.completed(std::move(schedule), options_.completion);
        const auto choose_ahead = [&](ScheduledKernel& kernel, std::int64_t threads) {
            simulated_ += choose_prefetches(kernel, model_, threads, candidate_walk_limit);
            simulated_ += choose_tile_pipelining(kernel, model_, threads, candidate_walk_limit);
            choose_caches(kernel, model_.machine());
        };
        std::optional<ScheduledKernel> with_nothing_ahead;
        if (!options_.quick) with_nothing_ahead = plan.scheduled, choose_ahead(plan.scheduled, schedules_.threads());
        plan.time = choose_grid(plan.scheduled, model_, schedules_.threads());
        if (may_use_stream_k(candidate_of(plan.scheduled)))
            plan.time = choose_stream_k(plan.scheduled, model_, schedules_.threads(), std::move(plan.time));
        Choice threads = thread_choice(plan);
        if (with_nothing_ahead && threads.value == 1 && schedules_.threads() > 1 && !plan.scheduled.in_blocks()) {
            // A single thread has other groups to come, and more time for each.
            choose_ahead(*with_nothing_ahead, 1);
            plan.scheduled = std::move(*with_nothing_ahead);
            plan.time = model_.run(plan.scheduled, 1);
        }
        plan.scheduled.schedule.threads = std::move(threads);
        if (options_.quick) return plan;
        const TileCounter counter(model_.derived().diagram, model_.live(), model_.extents(), plan.scheduled.sizes);
        plan.memory_values = static_cast<double>(counter.peak_memory());
        return plan;
    }

    /// All cores, or one where handing out the work takes longer than it saves.
    Choice thread_choice(KernelPlan& plan) const {
        const std::int64_t groups = plan.time.groups;
        if (overrides_.threads) return {schedules_.threads(), fmt::format("{} groups", groups), true};
        if (schedules_.threads() == 1) return {1, "the machine's only core", false};
        Simulation alone = model_.run(plan.scheduled, 1);
        if (alone.seconds <= plan.time.seconds) {
            plan.time = std::move(alone);
            if (!overrides_.grid) plan.scheduled.schedule.grid = {0, "", false};
            if (!overrides_.dealing && plan.scheduled.uses_stream_k()) plan.scheduled.schedule.dealing = {};
            return {1, groups == 1 ? "one group" : "starting more takes longer than the work", false};
        }
        const std::int64_t used = std::min(schedules_.threads(), groups);
        if (plan.scheduled.has_uneven_groups()) return {used, uneven_groups_text(groups, plan.time.waves), false};
        if (plan.scheduled.uses_stream_k())
            return {used,
                    fmt::format("{} groups, {:.1f} a core", groups, static_cast<double>(groups) / static_cast<double>(used)),
                    false};
        return {used, groups_text(groups, used), false};
    }

    const CandidateSchedules& schedules_;
    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    KernelEstimates &known_, &in_vectors_;
    CandidateEstimates estimates_;
    int simulated_ = 0, budget_ = most_simulated;
    int most_ = most_simulated;  ///< schedules that may have been simulated by the end of the current search
    TilingStrategy shape_;
    std::vector<SearchedSize> dimensions_;
    bool fits_ = true;
    std::map<Point, Rated> rated_;
    /// of the current sizes, and what each has been asked for
    std::map<Point, std::pair<const Estimate*, Asked>> at_points_;
    std::map<std::pair<AxisId, int>, EstimatedStrategy> in_panels_;  ///< by vector axis and vectors
};

}  // namespace

Result<KernelPlan> choose_kernel(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                                 const Simulator& model, const Overrides& hand, const PlanOptions& options,
                                 KernelSchedule given, const std::string& text) {
    const CandidateSchedules schedules(program, kernel, model, hand, options, std::move(given));
    if (!options.ratings) {
        KernelEstimates own, in_vectors;
        return KernelChooser(schedules, model, hand, options, own, in_vectors).run();
    }
    const VectorUnit& unit = schedules.unit();
    const std::string question = fmt::format("{} + {} warps, {} blocks of {} B\n{}", options.warps.value,
                                             options.producer_warps, unit.blocks_a_core, unit.share_bytes, text);
    KernelEstimates& known = options.ratings->of(
        fmt::format("products {}, {}", static_cast<int>(options.products), question));
    const std::lock_guard lock(known.asking);
    return KernelChooser(schedules, model, hand, options, known, options.ratings->of(question)).run();
}

}  // namespace napkin
