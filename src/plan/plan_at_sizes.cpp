#include "plan/plan_at_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/complete.hpp"
#include "plan/moves.hpp"
#include "plan/reasons.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// Tiles that are fetched ahead into the first cache must be faster than the larger ones of the search by this share.
constexpr double worth_smaller_tiles = 0.01;

}  // namespace

/// How the time would change at the neighbours of the size.
std::string PlanAtSizes::sensitivity(const Point& best, std::size_t i) {
    const SearchedSize& d = sizes_.dimensions()[i];
    const std::int64_t size = d.sizes[best[i]];
    std::vector<std::string> parts;
    for (const SizeMove& move : size_neighbours()) {
        const AtSizes at{sizes_.dimensions(), best, i};
        if (!move.when(at)) continue;
        const Point point = move.apply(at);
        const Estimate& rating = sizes_.estimate_at(point);
        const std::int64_t nearest = d.sizes[point[i]];
        const std::string at_size = nearest == size / 2 || nearest == 2 * size ? std::string(move.name)
                                                                               : fmt::format("{}", nearest);
        if (rating.spills)
            parts.push_back(fmt::format("{} exceeds the registers", at_size));
        else if (rating.bytes > model_.usable_bytes())
            parts.push_back(fmt::format("{} exceeds {}", at_size, model_.level_name()));
        else
            parts.push_back(fmt::format(
                "{} is {}", at_size,
                time_change(sizes_.estimate_at(point, Asked::times).times->seconds / sizes_.rate(best).seconds)));
    }
    return join(parts, ", ");
}

std::string PlanAtSizes::reason(const Point& best, std::size_t i) {
    const SearchedSize& d = sizes_.dimensions()[i];
    if (d.by_user) return memory_text(sizes_.bytes_of(best), model_);
    if (!sizes_.any_fits()) return nothing_fits_text(model_);
    const bool cuts_recompute = !d.stream && contains(model_.kernel().recompute_axes, d.axis);
    const std::string text = size_text({d.sizes[best[i]], extent(d.axis), d.stream, cuts_recompute,
                                        d.axis == sizes_.shape().axis.axis ? sizes_.shape().vectors : 0, model_.lanes()});
    const std::string more = d.sizes.size() > 1 ? sensitivity(best, i) : "";
    return text + (text.empty() || more.empty() ? "" : "; ") + more;
}

KernelPlan PlanAtSizes::run(const Point& best) {
    if (!options_.quick) return with_tiles_ahead(best);
    if (options_.completion == Completion::whole) return anew(best);
    const auto [found, is_new] = known_.estimated_plans.try_emplace(
        {searched_fields(sizes_.schedule_at(best)), sizes_.may_use_stream_k(sizes_.estimate_at(best).candidate)});
    if (is_new) found->second = anew(best);
    return found->second;
}
/// The search sees no prefetches. With them, tiles that the first cache holds beside the next ones may be faster
/// than larger ones.
KernelPlan PlanAtSizes::with_tiles_ahead(const Point& best) {
    KernelPlan plan = anew(best);
    const Machine& machine = model_.machine();
    if (machine.kind != MachineKind::cpu || !plan.scheduled.loops.empty()) return plan;
    const double first_cache = bytes_a_core(machine, machine.levels.size() - 1);
    Point smaller = best;
    while (sizes_.bytes_of(smaller) > first_cache) {
        const auto largest = std::max_element(smaller.begin(), smaller.end());
        if (largest == smaller.end() || *largest == 0) return plan;
        --*largest;
    }
    if (smaller == best) return plan;
    KernelPlan other = anew(smaller);
    if (other.schedule().prefetches.empty() || !(other.time.seconds < (1 - worth_smaller_tiles) * plan.time.seconds))
        return plan;
    KernelSchedule& schedule = other.scheduled.schedule;
    for (std::size_t i = 0; i < sizes_.dimensions().size(); ++i)
        if (smaller[i] != best[i])
            (sizes_.dimensions()[i].stream ? schedule.stream : schedule.group).at(sizes_.dimensions()[i].axis).reason = fmt::format(
                "fetched ahead, it fits {} with the group at hand; {} is {}", machine.levels.back().name,
                sizes_.dimensions()[i].sizes[best[i]], time_change(plan.time.seconds / other.time.seconds));
    return other;
}
KernelPlan PlanAtSizes::anew(const Point& best) {
    KernelSchedule schedule = sizes_.schedule_at(best);
    for (std::size_t i = 0; i < sizes_.dimensions().size() && !options_.quick; ++i)
        (sizes_.dimensions()[i].stream ? schedule.stream : schedule.group).at(sizes_.dimensions()[i].axis).reason = reason(
            best, i);
    KernelPlan plan;
    plan.scheduled = schedules_.completed(std::move(schedule), options_.completion);
    const auto choose_ahead = [&](ScheduledKernel& kernel, std::int64_t threads) {
        budget_.simulated += choose_prefetches(kernel, model_, threads, candidate_walk_limit);
        budget_.simulated += choose_tile_pipelining(kernel, model_, threads, candidate_walk_limit);
        choose_caches(kernel, model_.machine());
    };
    std::optional<ScheduledKernel> with_nothing_ahead;
    if (!options_.quick) with_nothing_ahead = plan.scheduled, choose_ahead(plan.scheduled, schedules_.threads());
    plan.time = time_before_moves(plan.scheduled, model_, schedules_.threads());
    for (const ScheduleMove& move : schedule_moves())
        if (!move.is_candidate || sizes_.may_use_stream_k(candidate_of(plan.scheduled)))
            plan.time = time_after(move, plan.scheduled, model_, schedules_.threads(), std::move(plan.time));
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
Choice PlanAtSizes::thread_choice(KernelPlan& plan) const {
    const std::int64_t groups = plan.time.groups;
    if (overrides_.fixes(ChoiceKind::threads)) return {schedules_.threads(), fmt::format("{} groups", groups), true};
    if (schedules_.threads() == 1) return {1, "the machine's only core", false};
    Simulation alone = model_.run(plan.scheduled, 1);
    if (alone.seconds <= plan.time.seconds) {
        plan.time = std::move(alone);
        if (!overrides_.fixes(ChoiceKind::grid)) plan.scheduled.schedule.grid = {0, "", false};
        if (!overrides_.fixes(ChoiceKind::scheduler) && plan.scheduled.uses_stream_k())
            plan.scheduled.schedule.scheduler = {};
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

}  // namespace napkin
