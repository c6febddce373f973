#include "plan/kernel_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cost/compulsory.hpp"
#include "plan/batch_invariant.hpp"
#include "plan/candidate_estimates.hpp"
#include "plan/candidate_schedules.hpp"
#include "plan/complete.hpp"
#include "plan/estimates.hpp"
#include "plan/plan_at_sizes.hpp"
#include "plan/size_search.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// Schedules of one kernel that are simulated for one vector axis.
constexpr int most_simulated = 64;
/// Most kernels of a form of which each may have that many. Kernels of a longer form share the total of so many, so
/// that no form takes long to plan.
constexpr std::size_t most_kernels_in_full = 64;
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
          estimates_(schedules, model, options, known, in_vectors),
          sizes_(schedules, model, hand, options, estimates_, budget_) {
        const int in_full = simulated_of_each(model.derived().kernels.size());
        budget_.for_strategy = budget_.most = options.quick ? in_full / 4 : in_full;
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
        const bool is_settled = overrides_.fixes(ChoiceKind::mma_m) || schedules_.keeps_tensor_cores();
        if (!is_settled || tensors.empty())
            for (const VectorAxis& axis : axes) {
                const double bound = tensors.empty() ? 0 : least_seconds_in_panels(axis);
                const bool is_left_out = hysteresis_across_lanes * bound > far_slower * least * (1 + equal_times);
                shapes.push_back(
                    is_left_out
                        ? EstimatedStrategy{.shape = schedules_.in_panels(axis, 3), .seconds = bound, .is_bound = true}
                        : rated_in_panels(axis, 3));
                budget_.simulated += is_left_out ? 1 : 0;
                // Ordinary tiles of many axes make fewer groups than there are cores, and say nothing of the time.
                if (!tensors.empty())
                    shapes.back().seconds = std::max(shapes.back().seconds, seconds_of_multiply_adds());
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
        std::optional<FoundSizes> best;
        std::optional<Diagnostic> refused;
        // Tiles of ordinary size say little on a GPU, where a block takes whole rows if it can: every axis is searched.
        const bool searches_all = options_.warps.value > 0 && tensors.empty();
        for (std::size_t s = 0; s < shapes.size(); ++s) {
            // What fits no core's memory gives way to anything that does.
            const bool fits = is_fitting(best);
            if (!fits && shapes[s].is_bound) {
                // Strategies with only a bound are simulated after all. They have been counted.
                const int counted = budget_.simulated;
                for (std::size_t left = s; left < shapes.size(); ++left)
                    if (shapes[left].is_bound) shapes[left] = rated_in_panels(shapes[left].shape.axis, 3);
                budget_.simulated = counted;
                std::stable_sort(shapes.begin() + static_cast<std::ptrdiff_t>(s), shapes.end(), is_before);
            }
            const auto& [shape, seconds, loads, is_bound] = shapes[s];
            // Tiles of ordinary size say little about which axis of a product is the axis M.
            const bool is_even = fits && shape.tensor >= 0 && best->shape.tensor >= 0 &&
                                 little_in_rows * seconds < shapes.front().seconds;
            // They say little about tensor cores beside panels, too.
            const bool is_first_on_them = fits && shape.tensor >= 0 && best->shape.tensor < 0 &&
                                          seconds <= far_slower * shapes.front().seconds;
            if (searches_all && best && s >= most_axes) break;
            if (searches_all || is_even || is_first_on_them)
                budget_.most = budget_.simulated + budget_.for_strategy;
            else if (fits &&
                     (seconds > far_slower * shapes.front().seconds || budget_.simulated >= budget_.for_strategy / 2) &&
                     !is_runner_up(s))
                break;
            else if (is_runner_up(1))
                budget_.most = budget_.for_strategy - (s == 0 ? budget_.for_strategy / 4 : 0);
            const TilingStrategy first = shape.tensor < 0 ? best_panel(shape.axis) : shape;
            consider(first, best, refused);
            if (const int even = searches_all ? even_panel(first) : 0; even > 0) {
                budget_.most = budget_.simulated + budget_.for_strategy;
                consider(schedules_.in_panels(first.axis, even), best, refused);
            }
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
        sizes_.take(*best);
        return PlanAtSizes(schedules_, model_, overrides_, options_, known_, sizes_, budget_)
            .run(options_.quick || !best->fits ? best->point : sizes_.from_neighbour(best->point));
    }

private:
    struct EstimatedStrategy {
        TilingStrategy shape;
        double seconds = std::numeric_limits<double>::infinity();  ///< on ordinary tiles
        double loads = std::numeric_limits<double>::infinity();    ///< in which the core loads
        bool is_bound = false;                                     ///< whether `seconds` is only a lower bound
    };

    [[nodiscard]] std::int64_t extent(AxisId axis) const { return model_.extents()[axis]; }
    /// Whether something is found that fits, and that nothing speaks against.
    static bool is_fitting(const std::optional<FoundSizes>& found) {
        return found && found->fits && !std::isinf(found->rated.at(found->point).seconds);
    }

    /// Searches the sizes of a strategy, and keeps them where they are the best. Overridden sizes that do not fit
    /// beside one vector axis may fit beside another: the first error is kept.
    void consider(const TilingStrategy& shape, std::optional<FoundSizes>& best, std::optional<Diagnostic>& refused) {
        FoundSizes found;
        if (auto error = sizes_.run(shape, found)) {
            if (!refused) refused = std::move(error);
            return;
        }
        const bool fits = is_fitting(best);
        const double margin = fits && best->shape.axis.vertical && !shape.axis.vertical ? hysteresis_across_lanes : 1;
        const bool faster = best && found.rated.at(found.point).seconds < margin * best->rated.at(best->point).seconds;
        if (!best || (found.fits && !fits) || (found.fits == fits && faster)) best = std::move(found);
    }

    EstimatedStrategy rated_on_ordinary_tiles(const TilingStrategy& shape) {
        EstimatedStrategy rated{shape};
        const EstimatedTimes& times = *estimates_.of(schedules_.ordinary(shape), Asked::times).times;
        // How many groups each core gets depends on the sizes, which are chosen later.
        rated.seconds = times.seconds / times.waves;
        rated.loads = times.load_seconds / times.waves;
        ++budget_.simulated;
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
        if (overrides_.fixes(ChoiceKind::cluster) || overrides_.fixes(ChoiceKind::scheduler) || !any.roles.empty() ||
            !any.atoms.empty())
            return 0;
        return least_seconds(model_.derived(), model_.kernel(), model_.work(), model_.extents(), model_.machine(),
                             known_.on_tensor_cores->empty() ? ComputedBy::cores : ComputedBy::tensor_cores);
    }
    [[nodiscard]] KernelPlan bound_of(double seconds) const {
        KernelPlan out{.scheduled = schedules_.without_schedule(), .is_bound = true};
        out.time.seconds = seconds;
        return out;
    }

    /// In which all cores do the multiply-adds without tensor cores. 0: masks leave some out.
    double seconds_of_multiply_adds() const {
        const Machine& machine = model_.machine();
        if (any_of(model_.live().loops, [](const CoreLoop& l) { return !l.support.empty(); })) return 0;
        double clocks = 0;
        for (const StatementWork& work : model_.work())
            for (const OpCount& op : work.ops)
                if (op.kind == OpKind::fma) {
                    double points = static_cast<double>(op.count);
                    for (const AxisId a : op.axes) points *= static_cast<double>(extent(a));
                    clocks += points / static_cast<double>(model_.lanes()) * model_.fma_clocks();
                }
        return clocks / (machine.clock_hz.value * machine.cores.value);
    }

    /// Lower bound of rated_in_panels, for blocks that wait for nothing. 0 where overrides leave it open.
    double least_seconds_in_panels(const VectorAxis& axis) const {
        const Machine& machine = model_.machine();
        const KernelSchedule schedule = schedules_.ordinary(schedules_.in_panels(axis, 3));
        if (machine.kind != MachineKind::gpu || overrides_.fixes(ChoiceKind::cluster) ||
            overrides_.fixes(ChoiceKind::scheduler) || !schedule.roles.empty() || !schedule.atoms.empty())
            return 0;
        double groups = 1;
        for (const auto& [a, size] : schedule.group)
            groups *= static_cast<double>(ceil_div(extent(a), std::min(size.value, extent(a))));
        const StreamParts& parts = model_.kernel().parts;
        if (parts.any()) groups *= static_cast<double>(extent(parts.part));
        // Most waves. The estimate leaves out what rounds of groups leave idle.
        const auto threads = static_cast<double>(std::max(schedules_.threads(), machine.num_cores()));
        const double waves = (groups + threads) / groups;
        return seconds_of_multiply_adds() / waves;
    }

    /// The fewest vectors within 1% of the fastest: wide panels make wide tiles, which need memory and waste lanes at
    /// ragged ends. A panel that is as fast and loads a tenth less is better, too. It leaves room beside the arithmetic
    /// for what no model sees.
    TilingStrategy best_panel(const VectorAxis& axis) {
        EstimatedStrategy best = rated_in_panels(axis, 1);
        const std::int64_t lanes = model_.lanes(), by_registers = (schedules_.unit().registers - 1) / 2;
        const std::int64_t wanted = axis.axis < 0 ? 4 : std::min<std::int64_t>(6, (extent(axis.axis) + lanes - 1) / lanes);
        for (int vectors = 2; !overrides_.fixes(ChoiceKind::vectors) && vectors <= std::min(wanted, by_registers);
             ++vectors) {
            const EstimatedStrategy rated = rated_in_panels(axis, vectors);
            const bool is_lighter = rated.seconds < best.seconds * (1 + equal_times) && rated.loads < best.loads * 0.9;
            if (rated.seconds < best.seconds * 0.99 || is_lighter) best = rated;
        }
        // Panels of whole lines, where they are as fast: a prefetch is issued once a line.
        const int line = schedules_.unit().line_bytes / schedules_.unit().bytes;
        if (!overrides_.fixes(ChoiceKind::vectors) && best.shape.vectors < line && line <= std::min(wanted, by_registers))
            if (EstimatedStrategy rated = rated_in_panels(axis, line); rated.seconds < best.seconds * (1 + equal_times))
                best = rated;
        return best.shape;
    }

    /// The widest narrower panel that cuts the axis without a rest, where this one leaves a rest. Ordinary tiles do not
    /// show which of the two has the faster tiles. 0: there is none.
    [[nodiscard]] int even_panel(const TilingStrategy& in) const {
        if (in.tensor >= 0 || in.axis.axis < 0 || overrides_.fixes(ChoiceKind::vectors)) return 0;
        int even = in.vectors;
        while (even > 0 && extent(in.axis.axis) % (even * model_.lanes()) != 0) --even;
        return even == in.vectors ? 0 : even;
    }

    const CandidateSchedules& schedules_;
    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    KernelEstimates &known_, &in_vectors_;
    CandidateEstimates estimates_;
    SearchBudget budget_;
    SizeSearch sizes_;
    std::map<std::pair<AxisId, int>, EstimatedStrategy> in_panels_;  ///< by vector axis and vectors
};

}  // namespace

Result<KernelPlan> choose_kernel(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                                 const Simulator& model, const Overrides& hand, const PlanOptions& options,
                                 KernelSchedule given, const std::string& text) {
    const CandidateSchedules schedules(program, kernel, model, hand, options, std::move(given));
    const auto checked = [&](Result<KernelPlan> plan) -> Result<KernelPlan> {
        if (plan && !plan->is_bound && options.is_batch_invariant) {
            Chosen<RescaleMode>& rescaling = plan->scheduled.schedule.rescaling;
            rescaling.by_user = hand.fixes(ChoiceKind::rescaling);
            if (!plan->scheduled.on_tensor_cores()) rescaling = {};
            if (const auto fault = order_fault(options, plan->scheduled)) return *fault;
        }
        return plan;
    };
    if (!options.ratings) {
        KernelEstimates own, in_vectors;
        return checked(KernelChooser(schedules, model, hand, options, own, in_vectors).run());
    }
    const VectorUnit& unit = schedules.unit();
    const std::string question = fmt::format("{} + {} warps, {} blocks of {} B\n{}", options.warps.value,
                                             options.producer_warps, unit.blocks_a_core, unit.share_bytes, text);
    KernelEstimates& known = options.ratings->of(
        fmt::format("products {}, {}", static_cast<int>(options.products), question));
    const std::lock_guard lock(known.asking);
    return checked(KernelChooser(schedules, model, hand, options, known, options.ratings->of(question)).run());
}

}  // namespace napkin
