#include "plan/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cost/transfers.hpp"
#include "plan/by_hand.hpp"
#include "plan/shape.hpp"

namespace napkin {
namespace {
double rounded(double value, int digits) {
    if (!(value > 0) || !std::isfinite(value)) return value;
    // Through text, so that the plan's text gives the same number back.
    return std::stod(fmt::format("{:.{}g}", value, digits));
}

std::string size_text(double bytes) {
    if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
    if (bytes < 1024 * 1024) return fmt::format("{:.3g} KiB", bytes / 1024);
    return fmt::format("{:.3g} MiB", bytes / (1024 * 1024));
}

std::string percent(double ratio) {
    const double change = (ratio - 1) * 100;
    if (std::abs(change) < 0.1) return "the same time";
    return fmt::format("{:.2g}% {}", std::abs(change), change > 0 ? "slower" : "faster");
}

/// One size to be chosen: of a group or of a chunk.
struct Dimension {
    AxisId axis = -1;
    bool stream = false;
    std::vector<std::int64_t> sizes;  ///< candidates, ascending
    bool by_hand = false;
};

/// Powers of two and small multiples of the unit up to the extent, and the extent itself.
std::vector<std::int64_t> candidate_sizes(std::int64_t extent, std::int64_t unit) {
    std::vector<std::int64_t> sizes{extent};
    for (std::int64_t s = 1; s < extent; s *= 2) {
        if (unit == 1 || s < unit) sizes.push_back(s);
        if (s > extent / unit) continue;
        sizes.push_back(s * unit);
        if (unit > 1 && s >= 2 && s <= extent / unit / 3 * 2) sizes.push_back(s * unit / 2 * 3);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

/// Times that differ by less are alike.
constexpr double tolerance = 0.005;

/// Tiles that are walked to count the chunks of one candidate.
constexpr std::int64_t walk_limit = 64;

/// A point of the search: an index into each dimension's sizes.
using Point = std::vector<std::size_t>;

class KernelChooser {
public:
    KernelChooser(const KernelModel& model, const HandChoices& hand, const PlanOptions& options)
        : model_(model), hand_(hand), options_(options) {}

    Result<KernelPlan> run() {
        threads_ = hand_.threads ? *hand_.threads->value : model_.machine().num_cores();
        ShapeByHand by_hand;
        if (hand_.vector) by_hand.axis = hand_.vector_axis;
        if (hand_.rows) by_hand.rows = hand_.rows->value;
        if (hand_.vectors) by_hand.vectors = hand_.vectors->value;
        const std::vector<ShapeChoice> shapes = shape_candidates(model_, by_hand);
        std::optional<Found> best;
        for (const ShapeChoice& shape : shapes) {
            Found found;
            if (auto error = search_shape(shape, found)) return *error;
            // Reductions across the lanes must be worth it.
            const double margin = best && best->shape.vertical && !shape.vertical ? 0.9 : 1;
            if (!best || found.seconds < best->seconds * margin) best = std::move(found);
        }
        if (shapes.size() > 1) best->shape.axis_reason += fmt::format("; fastest of {} axes", shapes.size());
        take(*best);
        return plan_of(best->point);
    }

private:
    [[nodiscard]] std::int64_t extent(AxisId axis) const { return model_.extents()[at(axis)]; }
    [[nodiscard]] std::string axis_name(AxisId axis) const { return model_.derived().diagram.axis(axis).name; }

    struct Rated {
        double seconds = std::numeric_limits<double>::infinity();
        double core_seconds = 0;
        double memory = 0;  ///< values
    };

    /// The best sizes for one way to fill vectors, with what they were found among.
    struct Found {
        ShapeChoice shape;
        std::vector<Dimension> dimensions;
        bool fits = true, cut_recompute = false;
        std::map<Point, Rated> rated;
        Point point;
        double seconds = 0;
    };

    void take(const Found& found) {
        shape_ = found.shape, dimensions_ = found.dimensions, rated_ = found.rated;
        fits_ = found.fits, cut_recompute_ = found.cut_recompute;
    }

    std::optional<Diagnostic> search_shape(const ShapeChoice& shape, Found& found) {
        take({shape, {}, true, false, {}, {}, 0});
        const Kernel& kernel = model_.kernel();
        for (const AxisId axis : kernel.group_axes)
            if (!contains(kernel.recompute_axes, axis) || hand_.group.contains(axis)) add_group(axis);
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) add_stream(loop->axis);
        if (!fits(smallest())) {
            // Only now the axes whose grouping repeats work are cut.
            for (const AxisId axis : kernel.recompute_axes)
                if (!hand_.group.contains(axis)) add_group(axis), cut_recompute_ = true;
        }
        Point best = smallest();
        fits_ = fits(best);
        if (!fits_) {
            if (auto error = memory_error(best)) return error;
        } else {
            best = search_with_batches_at_one();
        }
        const double seconds = model_.predict(sizes_of(best), shape_.shape, threads_, walk_limit).seconds;
        found = {shape_, dimensions_, fits_, cut_recompute_, rated_, best, seconds};
        return std::nullopt;
    }

    void add_group(AxisId axis) {
        Dimension d{axis, false, {}, false};
        if (const auto found = hand_.group.find(axis); found != hand_.group.end()) {
            d.sizes = {*found->second.value};
            d.by_hand = true;
        } else {
            d.sizes = candidate_sizes(
                extent(axis), axis == shape_.shape.axis ? shape_.shape.vectors * model_.lanes() : unit_of(axis));
            if (axis == shape_.shape.axis && !contains(model_.kernel().recompute_axes, axis))
                drop_parts_of_panels(d.sizes);
        }
        dimensions_.push_back(std::move(d));
    }

    void add_stream(AxisId axis) {
        for (const Dimension& d : dimensions_)
            if (d.stream && d.axis == axis) return;
        Dimension d{axis, true, {}, false};
        if (const auto found = hand_.stream.find(axis); found != hand_.stream.end()) {
            d.sizes = {*found->second.value};
            d.by_hand = true;
        } else {
            d.sizes = candidate_sizes(extent(axis), unit_of(axis));
        }
        dimensions_.push_back(std::move(d));
    }

    /// Rows of register blocks run along axes of reductions' targets: whole blocks of them are preferred.
    [[nodiscard]] std::int64_t unit_of(AxisId axis) const {
        const std::int64_t rows = shape_.shape.rows;
        for (const StatementWork& s : model_.work())
            if (!s.reduce_axes.empty() && contains(s.target_axes, axis) && extent(axis) >= rows) return rows;
        return 1;
    }

    /// A part of a panel costs a whole one: it is worth something only where memory is short.
    void drop_parts_of_panels(std::vector<std::int64_t>& sizes) const {
        const std::int64_t panel = shape_.shape.vectors * model_.lanes();
        std::vector<std::int64_t> whole;
        for (const std::int64_t s : sizes)
            if (s >= panel || s == extent(shape_.shape.axis)) whole.push_back(s);
        if (!whole.empty()) sizes = whole;
    }

    [[nodiscard]] TileSizes sizes_of(const Point& point) const {
        const std::size_t n = model_.extents().size();
        TileSizes sizes{std::vector<std::int64_t>(n), std::vector<std::int64_t>(n)};
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            (dimensions_[i].stream ? sizes.stream : sizes.group)[at(dimensions_[i].axis)] = dimensions_[i].sizes[point[i]];
        return sizes;
    }

    [[nodiscard]] double bytes_of(const Point& point) const {
        return static_cast<double>(model_.memory(sizes_of(point))) * static_cast<double>(model_.value_bytes());
    }
    [[nodiscard]] bool fits(const Point& point) const { return bytes_of(point) <= model_.usable_bytes(); }
    [[nodiscard]] Point smallest() const { return Point(dimensions_.size(), 0); }

    /// Predicted time; infinite where the tiles do not fit.
    const Rated& rate(const Point& point) {
        const auto [found, added] = rated_.try_emplace(point);
        if (added) {
            const double limit = model_.usable_bytes() / static_cast<double>(model_.value_bytes());
            const Prediction p = model_.predict(sizes_of(point), shape_.shape, threads_, walk_limit, limit);
            found->second = {p.seconds, p.core_seconds, p.memory};
        }
        return found->second;
    }

    /// Grouping axes that everything in memory carries saves no transfers: their groups stay at 1 where that costs nothing.
    Point search_with_batches_at_one() {
        const Point free = shrink(search(smallest()));
        std::vector<Dimension> kept = dimensions_;
        for (Dimension& d : dimensions_)
            if (!d.stream && d.axis != shape_.shape.axis && model_.carried_by_all_memory(d.axis)) d.sizes.resize(1);
        const Point tight = shrink(search(smallest()));
        const bool good = rate(tight).seconds <= rate(free).seconds * (1 + 2 * tolerance);
        dimensions_ = std::move(kept);  // a size's index is the same in both
        return good ? tight : free;
    }

    /// Descent from the smallest tiles: one size at a time over all its candidates, then two at a time in opposite directions, since
    /// at the memory's limit one can grow only where the other shrinks.
    Point search(Point best) {
        for (bool improved = true; improved;) {
            improved = false;
            const auto consider = [&](const Point& point) {
                if (rate(point).seconds < rate(best).seconds * (1 - 1e-6)) best = point, improved = true;
            };
            for (std::size_t i = 0; i < dimensions_.size(); ++i)
                for (std::size_t k = 0; k < dimensions_[i].sizes.size(); ++k) {
                    Point point = best;
                    point[i] = k;
                    consider(point);
                }
            for (std::size_t i = 0; i < dimensions_.size(); ++i)
                for (std::size_t j = 0; j < dimensions_.size(); ++j) {
                    Point point = best;
                    if (i == j || point[i] == 0 || point[j] + 1 >= dimensions_[j].sizes.size()) continue;
                    --point[i], ++point[j];
                    consider(point);
                }
        }
        return best;
    }

    /// The least memory within the tolerance of the best time: what saves no time is not taken from the cache. Where the cores wait for
    /// memory anyway their own time may grow a little, but not at will.
    Point shrink(Point best) {
        const double limit = rate(best).seconds * (1 + tolerance),
                     core_limit = rate(best).core_seconds * (1 + 10 * tolerance);
        for (bool improved = true; improved;) {
            improved = false;
            Point smallest_found = best;
            for (std::size_t i = 0; i < dimensions_.size(); ++i)
                for (std::size_t k = 0; k < best[i]; ++k) {
                    Point point = best;
                    point[i] = k;
                    const Rated& r = rate(point);
                    if (r.seconds <= limit && r.core_seconds <= core_limit && r.memory < rate(smallest_found).memory)
                        smallest_found = point;
                }
            if (smallest_found != best) best = smallest_found, improved = true;
        }
        return best;
    }

    /// What to say when the smallest tiles do not fit: an error where the user fixed a size or wants none of it.
    std::optional<Diagnostic> memory_error(const Point& point) {
        const double need = bytes_of(point), have = model_.usable_bytes();
        const auto describe = [&](const ScheduleItem& item, std::int64_t nearest) {
            Diagnostic d;
            d.code = "memory-exceeded";
            d.range = item.range;
            d.message = fmt::format("{} {} = {} needs {} of a core's {} even with the smallest other tiles", item.kind,
                                    item.axis, *item.value, size_text(need), model_.level_name());
            d.expected = fmt::format("at most {} (three quarters of {})", size_text(have), model_.level_name());
            d.hint = nearest > 0 ? fmt::format("the nearest size that fits is {}", nearest)
                                 : "no size of this axis alone fits";
            return d;
        };
        // The size by hand whose shrinking alone makes the tiles fit, or the largest of them.
        std::optional<Diagnostic> first;
        for (std::size_t i = 0; i < dimensions_.size(); ++i) {
            if (!dimensions_[i].by_hand) continue;
            const auto& items = dimensions_[i].stream ? hand_.stream : hand_.group;
            std::int64_t low = 0, high = dimensions_[i].sizes[0];  // low fits (0: unknown), high does not
            while (low + 1 < high) {
                const std::int64_t middle = low + (high - low) / 2;
                const std::int64_t kept = std::exchange(dimensions_[i].sizes[0], middle);
                (fits(point) ? low : high) = middle;
                dimensions_[i].sizes[0] = kept;
            }
            if (low > 0) return describe(items.at(dimensions_[i].axis), low);
            if (!first) first = describe(items.at(dimensions_[i].axis), 0);
        }
        if (first && !options_.strict && !smallest_free_fits()) return std::nullopt;  // nothing fits anyway
        if (first) return first;
        if (!options_.strict) return std::nullopt;
        Diagnostic d;
        d.code = "memory-exceeded";
        d.range = model_.derived().diagram.range;
        d.message = fmt::format("kernel {} does not fit a core at any tile size: it needs {}", model_.kernel().name,
                                size_text(need));
        d.expected = fmt::format("at most {} (three quarters of {})", size_text(have), model_.level_name());
        return d;
    }

    /// Would the tiles fit with every size at 1?
    [[nodiscard]] bool smallest_free_fits() const {
        TileSizes sizes = sizes_of(smallest());
        for (auto* list : {&sizes.group, &sizes.stream})
            for (std::int64_t& s : *list) s = std::min<std::int64_t>(s, 1);
        return static_cast<double>(model_.memory(sizes)) * static_cast<double>(model_.value_bytes()) <=
               model_.usable_bytes();
    }

    /// How the time would change at half and at twice the size.
    std::string sensitivity(const Point& best, std::size_t i) {
        const Dimension& d = dimensions_[i];
        const std::int64_t size = d.sizes[best[i]];
        std::vector<std::string> parts;
        const auto neighbour = [&](std::int64_t wanted, const char* what) {
            // The candidate nearest to the wanted size, on its side.
            std::size_t nearest = best[i];
            for (std::size_t k = 0; k < d.sizes.size(); ++k)
                if ((d.sizes[k] < size) == (wanted < size) && k != best[i] &&
                    (nearest == best[i] || std::abs(d.sizes[k] - wanted) < std::abs(d.sizes[nearest] - wanted)))
                    nearest = k;
            if (nearest == best[i]) return;
            Point point = best;
            point[i] = nearest;
            const double bytes = bytes_of(point);
            const std::string at_size = d.sizes[nearest] == wanted ? what : fmt::format("{}", d.sizes[nearest]);
            if (bytes > model_.usable_bytes())
                parts.push_back(fmt::format("{} exceeds {}", at_size, model_.level_name()));
            else
                parts.push_back(fmt::format("{} is {}", at_size, percent(rate(point).seconds / rate(best).seconds)));
        };
        neighbour(size / 2, "half");
        neighbour(size * 2, "double");
        std::string text;
        for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
        return text;
    }

    [[nodiscard]] std::string memory_text(const Point& point) const {
        return fmt::format("M takes {} of {} in {}", size_text(bytes_of(point)), size_text(model_.usable_bytes()),
                           model_.level_name());
    }
    [[nodiscard]] std::string nothing_fits() const {
        return fmt::format("the smallest: no tile fits {} of {}", size_text(model_.usable_bytes()), model_.level_name());
    }

    std::string group_reason(const Point& best, std::size_t i) {
        const Dimension& d = dimensions_[i];
        const std::int64_t size = d.sizes[best[i]];
        if (d.by_hand) return memory_text(best);
        if (!fits_) return nothing_fits();
        std::string text;
        const std::int64_t panel = shape_.shape.vectors * model_.lanes();
        if (cut_recompute_ && contains(model_.kernel().recompute_axes, d.axis))
            text = "repeats work, but the whole axis does not fit";
        else if (size == extent(d.axis))
            text = "the whole axis";
        else if (d.axis == shape_.shape.axis && size % panel == 0)
            text = fmt::format("{} panel{} of {}×{} lanes", size / panel, size == panel ? "" : "s",
                               shape_.shape.vectors, model_.lanes());
        std::string more = d.sizes.size() > 1 ? sensitivity(best, i) : "";
        if (!more.empty() && !model_.carried_by_all_memory(d.axis)) more += transfers_text(best);
        return text + (text.empty() || more.empty() ? "" : "; ") + more;
    }

    /// How busy transfers keep the pipe into the core's memory: why fewer of them would not help, or would.
    std::string transfers_text(const Point& best) {
        const Prediction p = model_.predict(sizes_of(best), shape_.shape, threads_, walk_limit);
        for (const Busy& b : p.busy)
            if (b.what == model_.core_pipe())
                return fmt::format("; {} {:.2g}% busy", b.what, 100 * b.seconds / p.seconds);
        return "";
    }

    std::string stream_reason(const Point& best, std::size_t i) {
        const Dimension& d = dimensions_[i];
        const std::int64_t size = d.sizes[best[i]], chunks = (extent(d.axis) + size - 1) / size;
        if (d.by_hand) return memory_text(best);
        if (!fits_) return nothing_fits();
        const std::string text = chunks == 1 ? "the whole axis" : fmt::format("{} chunks", chunks);
        const std::string more = d.sizes.size() > 1 ? sensitivity(best, i) : "";
        return text + (more.empty() ? "" : "; ") + more;
    }

    Result<KernelPlan> plan_of(const Point& best) {
        KernelPlan plan;
        plan.kernel = model_.kernel().name;
        for (std::size_t i = 0; i < dimensions_.size(); ++i) {
            const Dimension& d = dimensions_[i];
            const std::string reason = d.stream ? stream_reason(best, i) : group_reason(best, i);
            (d.stream ? plan.stream : plan.group)[axis_name(d.axis)] = {d.sizes[best[i]], reason, d.by_hand};
        }
        const TileSizes sizes = sizes_of(best);
        Prediction p = model_.predict(sizes, shape_.shape, threads_);
        plan.threads = thread_choice(sizes, p);

        const VectorShape& shape = shape_.shape;
        plan.vector_axis = shape.axis < 0 ? "" : axis_name(shape.axis);
        plan.vector_axis_reason = hand_.vector ? "by hand" : shape_.axis_reason;
        plan.block_rows = {shape.rows, shape_.rows_reason, hand_.rows.has_value()};
        plan.block_vectors = {shape.vectors, shape_.vectors_reason, hand_.vectors.has_value()};
        plan.transfers_values = p.transfers;
        plan.memory_values = p.memory;
        plan.predicted_seconds = rounded(p.seconds, 3);
        plan.bound_by = p.busy.front().what;
        return plan;
    }

    /// All cores, or one where handing out the work takes longer than it saves.
    Choice thread_choice(const TileSizes& sizes, Prediction& p) {
        const std::int64_t groups = p.groups;
        if (hand_.threads) return {threads_, fmt::format("{} groups", groups), true};
        if (threads_ == 1) return {1, "the machine's only core", false};
        const Prediction alone = model_.predict(sizes, shape_.shape, 1);
        if (alone.seconds <= p.seconds) {
            const bool single = groups == 1;
            p = alone;
            return {1, single ? "one group" : "starting more takes longer than the work", false};
        }
        const std::int64_t used = std::min(threads_, groups);
        const std::int64_t waves = (groups + used - 1) / used;
        return {used,
                fmt::format("{} groups, {} a core: {:.3g}% of the cores' time", groups, waves,
                            100.0 * static_cast<double>(groups) / static_cast<double>(waves * used)),
                false};
    }

    const KernelModel& model_;
    const HandChoices& hand_;
    const PlanOptions& options_;
    ShapeChoice shape_;
    std::int64_t threads_ = 1;
    std::vector<Dimension> dimensions_;
    bool fits_ = true, cut_recompute_ = false;
    std::map<Point, Rated> rated_;
};

}  // namespace

Result<Plan> choose_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                         const std::vector<ScheduleItem>& by_hand, const PlanOptions& options) {
    internal_check(extents.size() == derived.diagram.axes.size(), "plan: the extents are those of another diagram");
    std::vector<ScheduleItem> items = derived.source.schedule.empty() ? derived.diagram.schedule : derived.source.schedule;
    items.insert(items.end(), by_hand.begin(), by_hand.end());
    const auto hand = hand_choices(derived, extents, items);
    if (!hand) return hand.errors();

    Plan plan;
    plan.machine = machine.description.empty() ? machine.name : fmt::format("{} ({})", machine.name, machine.description);
    std::vector<Diagnostic> errors;
    for (const Kernel& kernel : derived.kernels) {
        const KernelModel model(derived, kernel, extents, machine);
        auto chosen = KernelChooser(model, *hand, options).run();
        if (chosen)
            plan.kernels.push_back(std::move(chosen).value());
        else
            errors.insert(errors.end(), chosen.errors().begin(), chosen.errors().end());
    }
    if (!errors.empty()) return errors;
    return plan;
}

PlanTime predict(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
                 const KernelPlan& plan) {
    const KernelModel model(derived, kernel, extents, machine);
    const auto axis = derived.diagram.find_axis(plan.vector_axis);
    const Prediction p = model.predict(tile_sizes(derived, kernel, extents, plan),
                                       {axis.value_or(-1), plan.block_rows.value, plan.block_vectors.value},
                                       plan.threads.value);
    PlanTime time{p.seconds, {}};
    for (const Busy& b : p.busy) time.busy.emplace_back(b.what, b.seconds);
    return time;
}

}  // namespace napkin
