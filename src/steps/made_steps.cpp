#include "steps/made_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "steps/choices.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// Those of the first product; 1: no instruction multiplies it.
std::int64_t rows_of_product(const Machine& machine, const std::vector<StatementWork>& work, std::int64_t threads) {
    for (const StatementWork& w : work) {
        if (!w.contraction) continue;
        const Instruction* i = instruction_for(machine, w.contraction->type);
        return i ? rows_of_instruction(*i, threads) : 1;
    }
    return 1;
}

/// As many rows for each warpgroup, where they are not so few that most threads would have none.
std::int64_t even_share(std::int64_t size, std::int64_t extent, std::int64_t threads) {
    if (size >= extent || size <= threads) return std::min(size, threads);
    constexpr std::int64_t least_used = 8;
    for (std::int64_t share = threads; share * least_used >= threads; --share)
        if (size % share == 0) return share;
    return threads;
}

/// What a stream loads, it loads while the chunk before is in use, unless the schedule says how many tiles it has.
void assign_stages(const StepChoices& choices, Assigned& assigned) {
    for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
        const auto* load = std::get_if<Load>(&s);
        if (load && !assigned.variables[load->variable].streamed.empty()) assigned.variables[load->variable].stages = 2;
    });
    for (const VariableId v : assigned.variables.ids())
        if (const auto hand = choices.stages.find(assigned.kernel.variables[v].name); hand != choices.stages.end())
            assigned.variables[v].stages = static_cast<int>(hand->second.value);
}

Result<KernelSteps> tables(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                           const std::vector<StatementWork>& work) {
    KernelSteps out;
    out.num_warpgroups = context.num_warpgroups(), out.warpgroup_threads = context.threads;
    out.sizes = sizes_of(context, assigned, choices);
    out.divisors = size_divisors(context, choices, assigned, work);
    if (const Status s = check_divisors(context, choices, out.divisors); !s) return s.errors();
    out.lives = variable_lives(context, choices, assigned);
    if (const Status s = configure(context, choices, assigned, out); !s) return s.errors();
    out.throughput = throughput(context, choices, assigned, work);
    return out;
}

/// The order of issue with the shortest steady state, where none is by hand: the program's own, where no other that
/// fits is faster.
void choose_order(MadeSteps& made) {
    if (!made.choices.issue.empty() || !made.choices.turns.empty()) return;
    const auto in_order = steady_clocks(made.context, made.choices, made.assigned, made.steps);
    if (!in_order || !(in_order->steady > 0)) return;
    // Less is no reason to do anything else.
    constexpr double gain = 1e-3;
    double best = in_order->steady;
    if (best * (1 - gain) <= in_order->least) {
        made.steps.order = fmt::format(
            "the program's, {:.4g} clocks a group: no order takes fewer than the busiest unit", best);
        return;
    }
    std::string chosen = "the program's";
    std::vector<std::string> tried{fmt::format("the program's {:.4g} clocks a group", best)};
    const StepChoices open = made.choices;
    const Assigned plain = made.assigned;
    for (IssueOrder& order : issue_orders(made.context, open, plain, made.steps)) {
        Assigned with = plain;
        assign_stages(order.choices, with);
        auto other = tables(made.context, order.choices, with, made.structure->work);
        if (!other) continue;
        const auto clocks = steady_clocks(made.context, order.choices, with, *other);
        if (!clocks) continue;
        tried.push_back(fmt::format("{} {:.4g}", order.what, clocks->steady));
        if (clocks->steady >= best * (1 - gain)) continue;
        best = clocks->steady, chosen = order.what;
        made.choices = std::move(order.choices), made.assigned = std::move(with), made.steps = std::move(other).value();
    }
    if (tried.size() > 1) made.steps.order = fmt::format("{}, the fastest: {}", chosen, join(tried, ", "));
}

}  // namespace

std::int64_t rows_of_instruction(const Instruction& i, std::int64_t threads) {
    return i.m.from * (i.threads > 1 ? std::max<std::int64_t>(1, threads / i.threads) : 1);
}

bool takes_too_much(const std::vector<Diagnostic>& errors) {
    return errors.front().code == "memory-exceeded" || errors.front().code == "too-many-threads";
}

StepContext StepMaker::context_of(const StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const {
    StepContext context{diagram_, machine_, extents_, sizes, {}, 128};
    share_among_warpgroups(context, choices, subject.kernel, subject.work);
    return context;
}

void StepMaker::share_among_warpgroups(StepContext& context, const StepChoices& choices, const Kernel& kernel,
                                       const std::vector<StatementWork>& work) const {
    // Four warps, one for each part of a core: those of an instruction that several warps run together.
    context.threads = 4 * static_cast<std::int64_t>(machine_.threads->warp_threads.value);
    AxisId rows = -1;
    const auto group_of = [&](AxisId axis) {
        return context.sizes.group[axis] > 0 ? context.sizes.group[axis] : extents_[axis];
    };
    for (const AxisId axis : kernel.group_axes)
        if (rows < 0 || group_of(axis) > group_of(rows)) rows = axis;
    const std::int64_t m = rows_of_product(machine_, work, context.threads);
    context.product_rows = m;
    for (const StatementWork& w : work) {
        if (!w.contraction) continue;
        for (const AxisId axis : w.contraction->m)
            if (contains(kernel.group_axes, axis)) rows = axis;
        break;
    }
    context.warpgroup.clear();
    for (const auto& [axis, share] : choices.warpgroup) context.warpgroup[axis] = share.value;
    if (!context.warpgroup.empty() || rows < 0) return;
    const std::int64_t size = group_of(rows);
    context.warpgroup[rows] = size % context.threads == 0 ? context.threads
                              : m > 1 && size % m == 0    ? m
                                                          : even_share(size, extents_[rows], context.threads);
}

Result<const StepStructure*> StepMaker::structure_of(StepSubject& subject, const StepChoices& choices) const {
    std::set<AxisId> cut;
    for (const auto& [axis, part] : choices.subloop) cut.insert(axis);
    if (const auto known = subject.structures.find(cut); known != subject.structures.end()) return &known->second;
    StepStructure out{cut, with_subloops_along(diagram_, with_numbers(subject.expanded, extents_), cut), {}, {}};
    out.work = statement_work(diagram_, out.in_parts);
    out.assigned = assign_levels(diagram_, out.in_parts, machine_);
    if (const Status s = check_names(choices, subject.items, out.assigned); !s) return s.errors();
    const StepContext no_sizes{diagram_, machine_, extents_, {}, {}, 128};
    if (const Status s = assign_precision(no_sizes, choices, out.assigned); !s) return s.errors();
    return &(subject.structures[cut] = std::move(out));
}

Result<MadeSteps> StepMaker::configured(StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const {
    MadeSteps out{{diagram_, machine_, extents_, sizes, {}, 128}, choices, nullptr, {}, {}, 0};
    // What may not be cut has no structure.
    if (const Status s = check_subloops(out.context, choices, subject.work); !s) return s.errors();
    const auto structure = structure_of(subject, choices);
    if (!structure) return structure.errors();
    out.structure = *structure, out.assigned = out.structure->assigned;
    assign_stages(choices, out.assigned);
    share_among_warpgroups(out.context, choices, subject.kernel, out.structure->work);
    if (const Status s = check_warpgroup(out.context, choices, subject.kernel); !s) return s.errors();
    if (const Status s = check_pieces(out.context, choices, out.assigned); !s) return s.errors();
    auto made = tables(out.context, choices, out.assigned, out.structure->work);
    if (!made) return made.errors();
    out.steps = std::move(made).value();
    out.steps.kernel = subject.kernel.name;
    return out;
}

void StepMaker::timed(const StepSubject& subject, MadeSteps& made) {
    choose_order(made);
    made.steps.kernel = subject.kernel.name;
    const auto clocks = steady_clocks(made.context, made.choices, made.assigned, made.steps);
    if (!clocks || !(made.steps.throughput.tensor_flop_per_s > 0)) return;
    made.stream_clocks = clocks->steady;
}

Result<MadeSteps> StepMaker::made_smaller(StepSubject& subject, const StepChoices& choices, TileSizes sizes,
                                          bool is_timed) const {
    // The largest that fits, where all spill.
    std::optional<MadeSteps> best;
    while (true) {
        auto made = configured(subject, choices, sizes);
        if (!made && !takes_too_much(made.errors()) && !best) return made;
        if (made && (!best || !made->spills())) best.emplace(std::move(made).value());
        StepContext context = context_of(subject, choices, sizes);
        const bool is_done = best && !best->spills();
        if (is_done || !shrink(context, choices)) {
            if (!best) return made;
            break;
        }
        sizes = context.sizes;
    }
    if (is_timed) timed(subject, *best);
    return std::move(*best);
}

Result<MadeSteps> StepMaker::made_with_divisors(StepSubject& subject, const StepChoices& choices,
                                                const TileSizes& sizes) const {
    auto made = made_smaller(subject, choices, sizes);
    if (made || made.errors().front().code != "broken-divisor") return made;
    StepChoices breaking = choices, keeping = choices;
    breaking.may_break_divisors = true;
    auto broken = made_smaller(subject, breaking, sizes);
    if (!broken) return made;
    TileSizes least = broken->context.sizes;
    for (const auto& [size, multiple] : broken->steps.divisors.merged()) {
        if (!is_broken(broken->context, size, multiple)) continue;
        const std::int64_t legal = std::min(multiple, extents_[size.axis]);
        if (size.letter == 's') least.stream[size.axis] = legal;
        if (size.letter == 'u') least.sub[size.axis] = legal, keeping.subloop[size.axis].value = legal;
        if (size.letter == 'g' || size.letter == 'w') least.group[size.axis] = legal;
        if (size.letter == 'w' && keeping.warpgroup.contains(size.axis)) keeping.warpgroup[size.axis].value = legal;
    }
    const auto kept = configured(subject, keeping, least);
    return kept || !takes_too_much(kept.errors()) ? std::move(made) : std::move(broken);
}

Result<MadeSteps> StepMaker::made_keeping_divisors(StepSubject& subject, const StepChoices& choices,
                                                   const TileSizes& sizes) const {
    auto made = made_with_divisors(subject, choices, sizes);
    if (!made) return made;
    for (const Legal legal : {Legal::nearest, Legal::least}) {
        const auto keeping = keeping_divisors(made->context, choices, made->steps.divisors, legal);
        if (!keeping) return made;
        auto other = made_with_divisors(subject, choices, *keeping);
        if (other && !keeping_divisors(other->context, choices, other->steps.divisors, legal)) return other;
    }
    return made;
}

}  // namespace napkin
