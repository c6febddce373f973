#include "plan/kernel_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "machine/block_machine.hpp"
#include "plan/axes.hpp"
#include "plan/candidates.hpp"
#include "plan/complete.hpp"
#include "plan/reasons.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// One size to be chosen: of a group or of a chunk.
struct SearchedSize {
    AxisId axis = -1;
    bool stream = false;
    std::vector<std::int64_t> sizes;  ///< candidates, ascending
    bool by_hand = false;
};

/// Times that differ by less are alike.
constexpr double tolerance = 0.005;
/// Tiles that are walked to count the chunks of one candidate.
constexpr std::int64_t walk_limit = 64;
/// Schedules of one kernel that are simulated.
constexpr int most_simulated = 64;
/// Reductions across the lanes must be worth it.
constexpr double worth_crossing = 0.9;
/// Sizes that tiles have before any are chosen, where the axes are that long.
constexpr std::int64_t ordinary_group = 64, ordinary_stream = 128;

/// A point of the search: an index into each dimension's sizes.
using Point = std::vector<std::size_t>;

class KernelChooser {
public:
    KernelChooser(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Simulator& model,
                  const HandChoices& hand, const PlanOptions& options, KernelSchedule given)
        : program_(program), index_(kernel), model_(model), hand_(hand), options_(options), given_(std::move(given)) {
        unit_.bytes = static_cast<int>(model.machine().vector_bits.value) / 8;
        unit_.registers = static_cast<int>(model.machine().vector_registers.value);
        unit_.line_bytes = static_cast<int>(model.machine().line_bytes.value);
        if (model.machine().kind == MachineKind::gpu) {
            unit_.warp_threads = static_cast<int>(model.lanes());
            unit_.blocks_a_core = static_cast<int>(std::lround(blocks_a_core(model.machine())));
            unit_.block_bytes = static_cast<std::int64_t>(model.machine().threads->block_bytes.value);
            unit_.share_bytes = static_cast<std::int64_t>(model.usable_bytes());
            unit_.block_registers = static_cast<std::int64_t>(model.machine().threads->registers_a_core.value);
            unit_.matrix = model.machine().instructions;
            unit_.bulk_dimensions = static_cast<int>(model.machine().threads->bulk_copy_dimensions.value);
        }
        budget_ = most_ = options.quick ? most_simulated / 4 : most_simulated;
        threads_ = hand.threads ? *hand.threads->value : model.machine().num_cores();
    }

    Result<KernelPlan> run() {
        std::vector<VectorAxis> axes = vector_axes(model_);
        if (hand_.vector) axes = {{hand_.vector_axis, "by hand", true}};
        const std::vector<AxisId> tensors = tensor_axes();
        if (hand_.tensor && tensors.empty() && hand_.tensor_axis >= 0 && is_meant(*hand_.tensor)) return no_tensor();
        // Whether an axis is far slower shows on tiles of ordinary size.
        std::vector<Shape> shapes;
        for (const AxisId axis : tensors) shapes.push_back(rated_on_matrix_unit(axis));
        if (!hand_.tensor || tensors.empty())
            for (const VectorAxis& axis : axes) shapes.push_back(rated_on_ordinary_tiles(axis, 3));
        std::stable_sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) {
            return a.seconds * (a.axis.vertical ? worth_crossing : 1) < b.seconds * (b.axis.vertical ? worth_crossing : 1);
        });
        std::optional<Found> best;
        std::optional<Diagnostic> refused;
        // Tiles of ordinary size say little of a GPU, where a block takes whole rows if it can: every axis is searched.
        const bool searches_all = options_.warps.value > 0 && tensors.empty();
        for (const Shape& shape : shapes) {
            // What fits no core's memory gives place to anything that does.
            const bool fits = best && best->fits && !std::isinf(best->rated.at(best->point).seconds);
            if (searches_all)
                most_ = simulated_ + budget_;
            else if (fits && (shape.seconds > 1.5 * shapes.front().seconds || simulated_ >= budget_ / 2))
                break;
            Found found;
            // Sizes by hand that do not fit beside one vector axis may fit beside another.
            if (auto error = search_shape(shape.tensor < 0 ? best_panel(shape.axis) : shape, found)) {
                if (!refused) refused = std::move(error);
                continue;
            }
            const double margin = fits && best->shape.axis.vertical && !shape.axis.vertical ? worth_crossing : 1;
            const bool faster = best && found.rated.at(found.point).seconds < margin * best->rated.at(best->point).seconds;
            if (!best || (found.fits && !fits) || (found.fits == fits && faster)) best = std::move(found);
        }
        if (!best) return *refused;
        if (!options_.refused.empty() && std::isinf(best->rated.at(best->point).seconds)) {
            // Everything that may be chosen is refused: the fastest of it.
            PlanOptions open = options_;
            open.refused.clear();
            return KernelChooser(program_, index_, model_, hand_, open, given_).run();
        }
        if (axes.size() > 1) best->shape.axis.reason += fmt::format("; fastest of {} axes", axes.size());
        take(*best);
        return plan_of(best->point);
    }

private:
    struct Shape {
        VectorAxis axis;
        int vectors = 1;
        AxisId tensor = -1;  ///< along which warps share the rows of the matrix unit's tiles; -1: it is not used
        double seconds = std::numeric_limits<double>::infinity();  ///< on ordinary tiles
        double loads = std::numeric_limits<double>::infinity();    ///< seconds of those in which the core loads
    };
    struct Rated {
        double seconds = std::numeric_limits<double>::infinity(), core_seconds = 0, bytes = 0;
    };
    /// The best sizes for one way to fill vectors, with what they were found among.
    struct Found {
        Shape shape;
        std::vector<SearchedSize> dimensions;
        bool fits = true, cut_recompute = false;
        std::map<Point, Rated> rated;
        Point point;
    };

    [[nodiscard]] std::int64_t extent(AxisId axis) const { return model_.extents()[at(axis)]; }
    [[nodiscard]] std::string axis_name(AxisId axis) const { return model_.derived().diagram.axis(axis).name; }
    [[nodiscard]] std::int64_t panel() const { return shape_.vectors * model_.lanes(); }

    /// Of the kernel's stream; 1: it runs whole.
    [[nodiscard]] std::int64_t num_parts() const {
        const StreamParts& parts = model_.kernel().parts;
        return parts.any() ? extent(parts.part) : 1;
    }
    /// The longest chunk of a streamed axis of which every part has one.
    [[nodiscard]] std::int64_t longest_chunk(AxisId axis) const {
        return model_.kernel().parts.cut(axis) ? std::max<std::int64_t>(1, extent(axis) / num_parts()) : extent(axis);
    }

    void take(const Found& found) {
        shape_ = found.shape, dimensions_ = found.dimensions, rated_ = found.rated;
        fits_ = found.fits, cut_recompute_ = found.cut_recompute;
    }

    // ---- schedules

    [[nodiscard]] KernelSchedule schedule_of(const Shape& shape) const {
        KernelSchedule s;
        s.atoms = given_.atoms, s.places = given_.places, s.prefetches = given_.prefetches;
        s.kernel = model_.kernel().name;
        s.vector_axis = shape.axis.axis, s.vector_axis_reason = shape.axis.reason, s.panel_vectors = shape.vectors;
        s.tensor_axis = shape.tensor;
        if (shape.tensor >= 0) s.tensor_axis_reason = fmt::format("{} rows a warp", fragment_rows);
        s.threads = {threads_, "", hand_.threads.has_value()};
        s.warps = options_.warps;
        s.split.value = num_parts();
        s.roles = given_.roles, s.slots = given_.slots;
        if (s.roles.empty() && shape.tensor >= 0 && options_.copying_warps > 0)
            s.roles = {{"copies", options_.copying_warps, "asks for tiles as stages are free", false}};
        for (const CoreLoop& loop : model_.live().loops)
            if (loop.is_sub) s.subloop[loop.axis] = {*hand_.subloop.at(loop.axis).value, "", true};
        s.rows = {hand_.rows ? *hand_.rows->value : unit_.registers, "", hand_.rows.has_value()};
        return s;
    }

    [[nodiscard]] KernelSchedule schedule_at(const Point& point) const {
        KernelSchedule s = schedule_of(shape_);
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            (dimensions_[i].stream ? s.stream : s.group)[dimensions_[i].axis] = {dimensions_[i].sizes[point[i]], "",
                                                                                 dimensions_[i].by_hand};
        return s;
    }

    [[nodiscard]] ScheduledKernel completed(KernelSchedule schedule, Completion completion = Completion::for_rating) const {
        ScheduledKernel k = complete(program_, index_, model_.extents(), std::move(schedule), unit_, completion,
                                     options_.products);
        choose_non_temporal(k, model_.machine());
        fetch_rows_ahead(k);
        return k;
    }

    // ---- the panel

    /// Sizes on which shapes are compared before the sizes are known; those by hand are what they are.
    [[nodiscard]] KernelSchedule ordinary(const Shape& shape) const {
        KernelSchedule s = schedule_of(shape);
        for (const AxisId axis : model_.kernel().group_axes) {
            if (has_subloop(axis) || axis == model_.kernel().parts.part) continue;
            if (const auto found = hand_.group.find(axis); found != hand_.group.end()) {
                s.group[axis] = {*found->second.value, "", true};
            } else if (!contains(model_.kernel().recompute_axes, axis)) {
                const bool batch = model_.carried_by_all_memory(axis) && axis != shape.axis.axis && axis != shape.tensor;
                // Whole panels: shapes are compared by what they do, and not by what they waste at the end of a tile.
                const std::int64_t wanted = axis == shape.tensor ? rows_of_warps()
                                            : axis == shape.axis.axis
                                                ? round_up(ordinary_group, shape.vectors * model_.lanes())
                                            : batch ? 1
                                                    : ordinary_group;
                s.group[axis] = {std::min(extent(axis), wanted), "", false};
            }
        }
        for (const Stage& stage : model_.kernel().stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) {
                const auto found = hand_.stream.find(loop->axis);
                s.stream[loop->axis] = {found != hand_.stream.end() ? *found->second.value
                                                                    : std::min(longest_chunk(loop->axis), ordinary_stream),
                                        "", false};
            }
        return s;
    }

    Shape rated_on_ordinary_tiles(const VectorAxis& axis, int vectors) {
        Shape shape{axis, hand_.vectors ? static_cast<int>(*hand_.vectors->value) : vectors};
        const auto [known, is_new] = ordinary_.try_emplace({axis.axis, shape.vectors});
        if (!is_new) return known->second;
        const Simulation time = model_.run(completed(ordinary(shape)), threads_, walk_limit);
        // How many groups each core gets is a matter of the sizes, which are chosen later.
        shape.seconds = time.seconds / time.waves;
        const auto loads = std::find_if(time.busy.begin(), time.busy.end(),
                                        [](const Busy& b) { return b.what == "loads"; });
        if (loads != time.busy.end()) shape.loads = loads->seconds / time.waves;
        ++simulated_;
        return known->second = shape;
    }

    /// Rows that the block's warps have on the matrix unit.
    [[nodiscard]] std::int64_t rows_of_warps() const { return options_.warps.value * fragment_rows; }

    /// Grouped axes of which a product of the matrix unit may take its rows.
    [[nodiscard]] std::vector<AxisId> tensor_axes() const {
        std::vector<AxisId> axes;
        if (options_.warps.value == 0 || unit_.matrix.empty()) return axes;
        if (hand_.tensor ? hand_.tensor_axis < 0 : hand_.vector || hand_.vectors) return axes;
        for (const AxisId axis : model_.kernel().group_axes) {
            if (hand_.tensor && axis != hand_.tensor_axis) continue;
            const auto by_hand = hand_.group.find(axis);
            if (by_hand != hand_.group.end() && *by_hand->second.value != std::min(rows_of_warps(), extent(axis)))
                continue;
            Shape shape;
            shape.tensor = axis;
            if (completed(ordinary(shape)).on_matrix_unit()) axes.push_back(axis);
        }
        return axes;
    }

    /// Said of this kernel alone, or of a program that has no other.
    [[nodiscard]] bool is_meant(const ScheduleItem& item) const {
        return !item.kernel.empty() || program_->kernels.size() == 1;
    }

    [[nodiscard]] Diagnostic no_tensor() const {
        Shape shape;
        shape.tensor = hand_.tensor_axis;
        KernelSchedule wanted = ordinary(shape);
        std::string why = fmt::format("{} has none", model_.machine().name);
        if (options_.warps.value > 0 && !unit_.matrix.empty()) {
            ScheduledKernel k = flattened(program_, index_, model_.extents(), std::move(wanted), unit_);
            choose_orders(k);
            why = matrix_roles(k).refusal;
        }
        return {"no-tensor",
                hand_.tensor->range,
                fmt::format("kernel {} does not run on a matrix unit: {}", model_.kernel().name, why),
                "a kernel with a product of 16-bit or 8-bit tiles that the machine's instructions take",
                "leave 'tensor' out",
                {},
                ExitCode::bad_input};
    }

    Shape rated_on_matrix_unit(AxisId axis) {
        Shape shape;
        shape.axis.reason = "none: threads have their own values";
        shape.tensor = axis;
        const Simulation time = model_.run(completed(ordinary(shape)), threads_, walk_limit);
        shape.seconds = time.seconds / time.waves;
        ++simulated_;
        return shape;
    }

    /// The fewest vectors within 1% of the fastest: wide panels make wide tiles, which need memory and waste lanes at ragged ends. What is
    /// as fast and loads a tenth less is better, too: it leaves room beside the arithmetic for what no model sees.
    Shape best_panel(const VectorAxis& axis) {
        Shape best = rated_on_ordinary_tiles(axis, 1);
        const std::int64_t lanes = model_.lanes(), by_registers = (unit_.registers - 1) / 2;
        const std::int64_t wanted = axis.axis < 0 ? 4 : std::min<std::int64_t>(6, (extent(axis.axis) + lanes - 1) / lanes);
        for (int vectors = 2; !hand_.vectors && vectors <= std::min(wanted, by_registers); ++vectors) {
            const Shape shape = rated_on_ordinary_tiles(axis, vectors);
            const bool is_lighter = shape.seconds < best.seconds * (1 + tolerance) && shape.loads < best.loads * 0.9;
            if (shape.seconds < best.seconds * 0.99 || is_lighter) best = shape;
        }
        return best;
    }

    // ---- the sizes

    std::optional<Diagnostic> search_shape(const Shape& shape, Found& found) {
        take({shape, {}, true, false, {}, {}});
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
            const ScheduledKernel k = completed(schedule_at(best));
            Rated& rated = rated_[best];
            if (!is_refused(k)) rated.seconds = model_.run(k, threads_, walk_limit).seconds;
        } else {
            // From ordinary tiles and from the smallest: a cache that holds what all cores work on makes two valleys.
            std::vector<Point> starts{start(), best};
            // A block that has a whole stream at a time loads once what chunks would load again in every pass over it. Without a matrix unit
            // that is where the search begins: it may not get to the others.
            if (const Point whole = with_whole_streams(); options_.warps.value > 0 && fits(whole))
                starts.insert(shape.tensor < 0 ? starts.begin() : starts.end(), whole);
            std::optional<Point> least;
            for (const Point& from : starts)
                if (const Point found_from = search(from); !least || rate(found_from).seconds < rate(*least).seconds)
                    least = found_from;
            best = shrink(*least);
        }
        found = {shape_, dimensions_, fits_, cut_recompute_, rated_, best};
        return std::nullopt;
    }

    /// Subloops cut the whole axis.
    [[nodiscard]] bool has_subloop(AxisId axis) const {
        const auto& loops = model_.live().loops;
        return std::any_of(loops.begin(), loops.end(), [&](const CoreLoop& l) { return l.is_sub && l.axis == axis; });
    }

    void add_group(AxisId axis) {
        if (has_subloop(axis) || axis == model_.kernel().parts.part) return;
        SearchedSize d{axis, false, {}, false};
        if (const auto found = hand_.group.find(axis); found != hand_.group.end()) {
            d.sizes = {*found->second.value};
            d.by_hand = true;
        } else if (axis == shape_.tensor) {
            d.sizes = {std::min(extent(axis), rows_of_warps())};
        } else {
            d.sizes = candidate_sizes(extent(axis), axis == shape_.axis.axis ? panel() : 1);
            if (axis == shape_.axis.axis && !contains(model_.kernel().recompute_axes, axis))
                // A part of a panel is worth something only where memory is short.
                d.sizes = without_parts_of_panels(d.sizes, panel(), extent(axis));
        }
        dimensions_.push_back(std::move(d));
    }

    void add_stream(AxisId axis) {
        for (const SearchedSize& d : dimensions_)
            if (d.stream && d.axis == axis) return;
        SearchedSize d{axis, true, {}, false};
        if (const auto found = hand_.stream.find(axis); found != hand_.stream.end()) {
            d.sizes = {*found->second.value};
            d.by_hand = true;
        } else {
            d.sizes = candidate_sizes(longest_chunk(axis), 1);
        }
        dimensions_.push_back(std::move(d));
    }

    [[nodiscard]] double bytes_of(const Point& point) const {
        return static_cast<double>(completed(schedule_at(point)).memory_bytes());
    }
    [[nodiscard]] bool fits(const Point& point) const {
        const ScheduledKernel k = completed(schedule_at(point));
        return static_cast<double>(k.memory_bytes()) <= model_.usable_bytes() && most_registers(k) <= unit_.registers;
    }
    [[nodiscard]] Point smallest() const { return Point(dimensions_.size(), 0); }

    /// The smallest groups that have all of their streams at once.
    [[nodiscard]] Point with_whole_streams() const {
        Point point = smallest();
        for (std::size_t i = 0; i < dimensions_.size(); ++i)
            if (dimensions_[i].stream) point[i] = dimensions_[i].sizes.size() - 1;
        return point;
    }

    /// Tiles of ordinary size, or the largest below that fit.
    [[nodiscard]] Point start() const {
        const KernelSchedule wanted = ordinary(shape_);
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

    [[nodiscard]] bool is_refused(const ScheduledKernel& k) const {
        return !options_.refused.empty() && contains(options_.refused, candidate_of(k));
    }

    /// Simulated time; infinite where the tiles do not fit or are refused, and once enough were simulated.
    const Rated& rate(const Point& point) {
        const auto [found, added] = rated_.try_emplace(point);
        if (!added || simulated_ >= most_) return found->second;
        const ScheduledKernel k = completed(schedule_at(point));
        found->second.bytes = static_cast<double>(k.memory_bytes());
        if (found->second.bytes > model_.usable_bytes() || most_registers(k) > unit_.registers || is_refused(k))
            return found->second;
        ++simulated_;
        const Simulation s = model_.run(k, threads_, walk_limit);
        found->second.seconds = s.seconds, found->second.core_seconds = s.core_seconds;
        return found->second;
    }

    /// Descent: each size one step up or down, then two at a time in opposite directions, since at the memory's limit one can grow only where
    /// the other shrinks.
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

    /// The least memory within the tolerance of the best time: what saves no time is not taken from the cache. Where the cores wait for
    /// memory anyway their own time may grow a little, but not at will.
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

    /// What to say when the smallest tiles do not fit: an error where the user fixed a size or wants none of it.
    std::optional<Diagnostic> memory_error(const Point& point) {
        const double need = bytes_of(point);
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
            if (low > 0) return size_exceeds_memory(items.at(dimensions_[i].axis), need, low, model_);
            if (!first) first = size_exceeds_memory(items.at(dimensions_[i].axis), need, 0, model_);
        }
        if (first && !options_.strict && !smallest_free_fits()) return std::nullopt;  // nothing fits anyway
        if (first) return first;
        if (!options_.strict) return std::nullopt;
        return kernel_exceeds_memory(need, model_);
    }

    /// Would the tiles fit with every size at 1?
    [[nodiscard]] bool smallest_free_fits() const {
        KernelSchedule schedule = schedule_at(smallest());
        for (auto* sizes : {&schedule.group, &schedule.stream})
            for (auto& [axis, choice] : *sizes) choice.value = 1;
        return static_cast<double>(completed(std::move(schedule)).memory_bytes()) <= model_.usable_bytes();
    }

    // ---- why

    /// How the time would change at half and at twice the size.
    std::string sensitivity(const Point& best, std::size_t i) {
        const SearchedSize& d = dimensions_[i];
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
            const ScheduledKernel k = completed(schedule_at(point));
            const std::string at_size = d.sizes[nearest] == wanted ? what : fmt::format("{}", d.sizes[nearest]);
            if (most_registers(k) > unit_.registers)
                parts.push_back(fmt::format("{} exceeds the registers", at_size));
            else if (static_cast<double>(k.memory_bytes()) > model_.usable_bytes())
                parts.push_back(fmt::format("{} exceeds {}", at_size, model_.level_name()));
            else
                parts.push_back(fmt::format(
                    "{} is {}", at_size, time_change(model_.run(k, threads_, walk_limit).seconds / rate(best).seconds)));
        };
        neighbour(size / 2, "half");
        neighbour(size * 2, "double");
        return join(parts, ", ");
    }

    std::string reason(const Point& best, std::size_t i) {
        const SearchedSize& d = dimensions_[i];
        if (d.by_hand) return memory_text(bytes_of(best), model_);
        if (!fits_) return nothing_fits_text(model_);
        const bool cuts_recompute = cut_recompute_ && !d.stream && contains(model_.kernel().recompute_axes, d.axis);
        const std::string text = size_text({d.sizes[best[i]], extent(d.axis), d.stream, cuts_recompute,
                                            d.axis == shape_.axis.axis ? shape_.vectors : 0, model_.lanes()});
        const std::string more = d.sizes.size() > 1 ? sensitivity(best, i) : "";
        return text + (text.empty() || more.empty() ? "" : "; ") + more;
    }

    Result<KernelPlan> plan_of(const Point& best) {
        KernelSchedule schedule = schedule_at(best);
        for (std::size_t i = 0; i < dimensions_.size() && !options_.quick; ++i)
            (dimensions_[i].stream ? schedule.stream : schedule.group).at(dimensions_[i].axis).reason = reason(best, i);
        KernelPlan plan;
        plan.scheduled = completed(std::move(schedule), Completion::whole);
        if (!options_.quick) simulated_ += choose_prefetches(plan.scheduled, model_, threads_, walk_limit);
        plan.time = model_.run(plan.scheduled, threads_);
        plan.scheduled.schedule.threads = thread_choice(plan);
        const TileCounter counter(model_.derived().diagram, model_.live(), model_.extents(), plan.scheduled.sizes);
        plan.memory_values = static_cast<double>(counter.peak_memory());
        return plan;
    }

    /// All cores, or one where handing out the work takes longer than it saves.
    Choice thread_choice(KernelPlan& plan) const {
        const std::int64_t groups = plan.time.groups;
        if (hand_.threads) return {threads_, fmt::format("{} groups", groups), true};
        if (threads_ == 1) return {1, "the machine's only core", false};
        Simulation alone = model_.run(plan.scheduled, 1);
        if (alone.seconds <= plan.time.seconds) {
            plan.time = std::move(alone);
            return {1, groups == 1 ? "one group" : "starting more takes longer than the work", false};
        }
        const std::int64_t used = std::min(threads_, groups);
        if (plan.scheduled.has_uneven_groups()) return {used, uneven_groups_text(groups, plan.time.waves), false};
        return {used, groups_text(groups, used), false};
    }

    const std::shared_ptr<const TileProgram>& program_;
    std::size_t index_;
    const Simulator& model_;
    const HandChoices& hand_;
    const PlanOptions& options_;
    KernelSchedule given_;  ///< by a file
    VectorUnit unit_;
    std::int64_t threads_ = 1;
    int simulated_ = 0, budget_ = most_simulated;
    int most_ = most_simulated;  ///< schedules that may have been simulated by the end of the search at hand
    Shape shape_;
    std::vector<SearchedSize> dimensions_;
    bool fits_ = true, cut_recompute_ = false;
    std::map<Point, Rated> rated_;
    std::map<std::pair<AxisId, int>, Shape> ordinary_;  ///< on ordinary tiles, by vector axis and vectors
};

}  // namespace

Result<KernelPlan> choose_kernel(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                                 const Simulator& model, const HandChoices& hand, const PlanOptions& options,
                                 KernelSchedule given) {
    return KernelChooser(program, kernel, model, hand, options, std::move(given)).run();
}

}  // namespace napkin
