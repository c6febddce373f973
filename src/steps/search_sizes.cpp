#include "steps/search_sizes.hpp"

#include <numeric>
#include <set>
#include <utility>

#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Other sizes of what is open, and parts of what contractions accumulate where all is: warpgroups of the axis that
/// they share, whole multiples of the chunk's divisors.
std::vector<std::pair<TileSizes, StepChoices>> alternatives(const StepSubject& subject, const MadeSteps& made) {
    const Overrides& hand = subject.hand;
    const Extents& extents = made.context.extents;
    const Kernel& kernel = subject.kernel;
    std::vector<std::pair<TileSizes, StepChoices>> out;
    if (made.context.warpgroup.size() != 1 || !(made.steps.throughput.tensor_flop_per_s > 0)) return out;
    const AxisId rows = made.context.warpgroup.begin()->first;
    const StepChoices& choices = made.choices;
    // Warpgroups with a row for each thread, or with those of an instruction.
    const std::int64_t threads = made.context.threads;
    std::set<std::int64_t> shares{threads};
    for (const Instruction& i : made.context.machine.instructions) shares.insert(rows_of_instruction(i, threads));
    std::set<std::int64_t> groups{made.context.sizes.group[rows]};
    if (!hand.fixes(ChoiceKind::group, rows) && contains(kernel.group_axes, rows))
        for (const std::int64_t share : shares)
            for (std::int64_t n = 1; n <= 4; ++n)
                if (share > 1 && n * share <= extents[rows]) groups.insert(n * share);
    AxisId stream = -1;
    for (const TileStatement& s : made.assigned.kernel.body)
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s); loop && !(*loop)->is_sub && stream < 0)
            stream = (*loop)->axis;
    std::set<std::int64_t> chunks;
    if (stream >= 0) chunks.insert(made.context.sizes.stream[stream]);
    if (stream >= 0 && !hand.fixes(ChoiceKind::stream, stream)) {
        std::int64_t unit = 1;
        for (const auto& [size, multiple] : made.steps.divisors.merged())
            if (size.axis == stream && size.letter == 's') unit = std::lcm(unit, multiple);
        constexpr std::int64_t longest = 256;
        for (std::int64_t chunk = unit; chunk <= std::min(longest, extents[stream]); chunk *= 2) chunks.insert(chunk);
    }
    // A subloop by hand, or sizes, say how contractions are cut; else they may be.
    std::vector<AxisId> columns;
    if (!hand.fixes(ChoiceKind::group) && !hand.fixes(ChoiceKind::stream) && choices.subloop.empty())
        for (const StatementWork& w : made.structure->work)
            if (w.contraction && w.carries)
                for (const AxisId axis : w.contraction->n)
                    if (made.context.cut(axis, {}, {}, false).letter == 0 && axis != stream && !contains(columns, axis))
                        columns.push_back(axis);
    StepChoices open = choices;
    open.issue.clear(), open.turns.clear();
    for (const auto& [variable, stages] : choices.stages)
        if (!stages.range.source) open.stages.erase(variable);
    if (!subject.order_is_open) open = choices;
    // In a group by hand every thread has a row, where there are so many.
    const bool may_be_narrow = choices.warpgroup.empty() && !hand.fixes(ChoiceKind::group, rows);
    const auto add = [&](const TileSizes& sizes, const StepChoices& with) {
        if (sizes != made.context.sizes) out.emplace_back(sizes, with);
        for (const std::int64_t share : shares) {
            if (!may_be_narrow || share <= 1 || share >= threads || sizes.group[rows] % threads != 0) continue;
            StepChoices narrow = with;
            narrow.warpgroup[rows] = {share, {}};
            out.emplace_back(sizes, std::move(narrow));
        }
    };
    for (const std::int64_t part : {std::int64_t{0}, std::int64_t{32}, std::int64_t{64}})
        for (const std::int64_t group : groups)
            for (const std::int64_t chunk : chunks) {
                std::pair<TileSizes, StepChoices> other{made.context.sizes, open};
                other.first.group[rows] = group;
                if (stream >= 0) other.first.stream[stream] = chunk;
                bool cuts = part == 0;
                for (const AxisId axis : columns)
                    if (part > 0 && part < extents[axis] && extents[axis] % part == 0)
                        other.first.sub[axis] = part, other.second.subloop[axis] = {part, {}}, cuts = true;
                if (cuts) add(other.first, other.second);
            }
    return out;
}

}  // namespace

std::unique_ptr<MadeSteps> fastest(const StepMaker& maker, StepSubject& subject, const StepChoices& given,
                                   std::unique_ptr<MadeSteps> best) {
    static constexpr double gain = 1e-3;
    const auto breaks = [&](const MadeSteps& m) {
        return keeping_divisors(m.context, given, m.steps.divisors, Legal::nearest).has_value();
    };
    // Less is no reason to do anything else. Where pipes above the core take as long, the core has more time to
    // spare.
    const auto is_faster = [](double seconds, double core_seconds, const MadeSteps& than) {
        if (seconds < than.seconds * (1 - gain)) return true;
        return seconds < than.seconds * (1 + gain) && core_seconds < than.core_seconds * (1 - gain);
    };
    struct Other {
        double seconds = 0, core_seconds = 0;  ///< no fewer
        std::unique_ptr<MadeSteps> made;
    };
    std::vector<Other> others;
    if (!(best->seconds > 0)) return best;
    for (const auto& [sizes, choices] : alternatives(subject, *best)) {
        auto other = maker.configured(subject, choices, sizes);
        if (!other || (breaks(*other) && !breaks(*best)) || (other->spills() && !best->spills())) continue;
        const double clocks = least_clocks(other->context, choices, other->assigned, other->steps);
        const SteadyState least = steady_state(other->context, other->assigned, other->steps, clocks);
        others.push_back({least.seconds, least.core_seconds, std::make_unique<MadeSteps>(std::move(other).value())});
    }
    stable_sort(others, [](const Other& a, const Other& b) {
        return std::pair{a.seconds, a.core_seconds} < std::pair{b.seconds, b.core_seconds};
    });
    for (Other& other : others) {
        const bool spills_less = best->spills() && !other.made->spills();
        if ((other.made->spills() && !best->spills()) ||
            (!spills_less && !is_faster(other.seconds, other.core_seconds, *best)))
            continue;
        StepMaker::timed(subject, *other.made);
        if (other.made->seconds > 0 && (spills_less || is_faster(other.made->seconds, other.made->core_seconds, *best)))
            best = std::move(other.made);
    }
    return best;
}

}  // namespace napkin
