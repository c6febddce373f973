#include "plan/plan_form.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "lower/rules.hpp"
#include "plan/estimates.hpp"
#include "plan/kernel_chooser.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// The overrides for one kernel: those for all kernels, and those for this one alone, checked by the same rules.
Result<Overrides> with_own(const Overrides& hand, const Derived& derived, const Kernel& kernel, const Extents& extents,
                           const std::vector<ScheduleItem>& items) {
    Derived alone = derived;
    alone.kernels = {kernel};
    std::vector<ScheduleItem> own;
    for (const ScheduleItem& item : items)
        if (item.kernel == kernel.name) own.push_back(item);
    auto checked = checked_overrides(alone, extents, own);
    if (!checked) return checked.errors();
    Overrides out = hand;
    // An override for all kernels applies to those that have the axis.
    const AxisId vectors = out.axis(ChoiceKind::vector);
    if (vectors >= 0 && !contains(axes_of(derived.diagram, kernel), vectors)) out.drop(ChoiceKind::vector);
    out.take_over(*checked);
    return out;
}

/// Where an error about the field is reported: at the last item about it, else the last about anything of its name,
/// else the first about the kernel.
SourceRange range_of(const ScheduleField& field, const std::string& kernel, const std::vector<ScheduleItem>& items) {
    // The vectors and rows of a register block follow from the kernel's.
    constexpr std::array of_blocks{ChoiceKind::vectors, ChoiceKind::rows, ChoiceKind::vector};
    SourceRange of_field, of_name, of_block, first;
    for (const ScheduleItem& item : items) {
        if (!item.kernel.empty() && item.kernel != kernel) continue;
        if (!first.source) first = item.range;
        const bool is_named = field.name.empty() || item.axis == field.name;
        if (is_named && name(item.kind) == field.kind) of_field = item.range;
        if (is_named && !field.name.empty()) of_name = item.range;
        if (field.kind == "atom" && contains(of_blocks, item.kind)) of_block = item.range;
    }
    for (const SourceRange& range : {of_field, of_name, of_block})
        if (range.source) return range;
    return first;
}

/// The error of a broken rule, at the item about the field that breaks it.
Diagnostic broken(const BrokenRule& rule, const std::string& kernel, const std::vector<ScheduleItem>& items) {
    return Diagnostic{.code = "broken-schedule",
                      .range = range_of(rule.field, kernel, items),
                      .message = rule.message,
                      .expected = "a schedule that keeps the rules; 'napkin plan' prints one",
                      .hint = rule.nearest,
                      .exit_code = ExitCode::bad_input};
}

/// The error where the schedule lacks the overridden vector axis. An axis of which tiles have a single value fills no
/// vector.
std::optional<Diagnostic> no_vectors(const Derived& derived, const Overrides& hand, const KernelPlan& plan) {
    const ScheduledKernel& k = plan.scheduled;
    const AxisId wanted = hand.axis(ChoiceKind::vector);
    if (wanted < 0 || k.schedule.vector_axis == wanted) return std::nullopt;
    std::vector<std::string> longer;
    for (const AxisId axis : axes_of(derived.diagram, derived.kernels[plan.whole]))
        if (k.span(axis, 0).tile > 1) longer.push_back(derived.diagram.axis(axis).name);
    const std::string& axis = derived.diagram.axis(wanted).name;
    return Diagnostic{
        "no-vector-axis",
        hand.line(ChoiceKind::vector)->range,
        fmt::format("kernel {} has a single value of {} in a tile, which fills no vectors", k.schedule.kernel, axis),
        longer.empty() ? "vector none" : fmt::format("one of {}, or none", join(longer, ", ")),
        fmt::format("groups of several values of {} fill vectors along it, where it has several", axis),
        {},
        ExitCode::bad_input};
}

/// The error where some part would have no K block.
std::optional<Diagnostic> too_many_parts(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                         const Overrides& hand) {
    const Overrides::Lines& lines = hand.of(ChoiceKind::stream);
    const auto item = lines.find(kernel.parts.axis);
    if (!kernel.parts.any() || item == lines.end()) return std::nullopt;
    const std::int64_t parts = extents[kernel.parts.part], extent = extents[kernel.parts.axis],
                       chunks = ceil_div(extent, *item->second.value);
    if (parts <= chunks) return std::nullopt;
    const std::string& axis = derived.diagram.axis(kernel.parts.axis).name;
    return Diagnostic{"too-many-parts",
                      item->second.range,
                      fmt::format("split {} = {}, but {} has {} chunk{} of {}", axis, parts, axis, chunks,
                                  chunks == 1 ? "" : "s", *item->second.value),
                      fmt::format("split {} = 1 … {}, a chunk for every part", axis, chunks),
                      fmt::format("the nearest legal number is {}, or chunks of at most {}", chunks, extent / parts),
                      {},
                      ExitCode::bad_input};
}

/// Whether the line fixes no more than sizes and threads. These alone break no rule, as the search takes none that do.
bool is_of_sizes(const ScheduleItem& item) {
    constexpr ChoiceKind kinds[] = {ChoiceKind::group,   ChoiceKind::stream, ChoiceKind::subloop,   ChoiceKind::split,
                                    ChoiceKind::threads, ChoiceKind::warps,  ChoiceKind::blocks,    ChoiceKind::vector,
                                    ChoiceKind::rows,    ChoiceKind::mma_m,  ChoiceKind::warpgroup, ChoiceKind::form,
                                    ChoiceKind::machine, ChoiceKind::kernel};
    return item.clauses.empty() && (contains(kinds, item.kind) || is_of_views(item) || is_of_steps(item));
}

/// Plans every kernel of the form by itself.
Result<Plan> plan_kernels(const Derived& derived, const Extents& extents, const Machine& machine, const Overrides& hand,
                          const std::vector<ScheduleItem>& items, const PlanOptions& options) {
    Plan plan;
    plan.machine = machine.description.empty() ? machine.name : fmt::format("{} ({})", machine.name, machine.description);
    const auto make = [&] { return tiles_of(derived, extents, items); };
    const auto program = options.known_tiles ? options.known_tiles->program(options.cut, make)
                                             : std::make_shared<const TileProgram>(make());
    const auto text = [&](std::size_t k) -> std::string {
        if (!options.ratings) return "";
        const auto make_text = [&] { return text_of(with_whole_axes(*program, extents), k, derived.kernels[k]); };
        return options.known_tiles ? options.known_tiles->text(options.cut, k, make_text) : make_text();
    };
    const auto given = schedule_overrides(items, *program);
    if (!given) return given.errors();
    const bool sets_statements = options.file ||
                                 any_of(items, [](const ScheduleItem& item) { return !is_of_sizes(item); });
    // The rules judge waits, too.
    PlanOptions for_kernels = options;
    if (sets_statements) for_kernels.completion = Completion::whole;
    std::vector<Diagnostic> errors;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        if (!options.only.empty() && !contains(options.only, k)) continue;
        const auto of_kernel = with_own(hand, derived, derived.kernels[k], extents, items);
        if (!of_kernel) return of_kernel.errors();
        if (auto error = too_many_parts(derived, derived.kernels[k], extents, *of_kernel)) return *error;
        const std::string of_tiles = text(k);
        const Simulator model(derived, derived.kernels[k], program->kernels[k], extents, machine,
                              options.ratings ? &options.ratings->counts_of(of_tiles) : nullptr);
        auto chosen = choose_kernel(program, k, model, *of_kernel, for_kernels, (*given)[k], of_tiles);
        if (!chosen) {
            append(errors, chosen.errors());
            continue;
        }
        chosen->whole = k;
        if (chosen->is_bound) {
            plan.kernels.push_back(std::move(chosen).value());
            continue;
        }
        if (const auto error = no_vectors(derived, *of_kernel, *chosen)) {
            errors.push_back(*error);
            continue;
        }
        if (sets_statements)
            for (const BrokenRule& rule : broken_rules(chosen->scheduled))
                errors.push_back(broken(rule, derived.kernels[k].name, items));
        plan.kernels.push_back(std::move(chosen).value());
    }
    if (!errors.empty()) return errors;
    return plan;
}

/// The plan of every kernel, whole or with its stream in parts. `hand` are the overrides for all kernels, `items` all
/// of them, `parts` those of streams.
Result<Plan> plan_whole_or_in_parts(const Derived& derived, const Extents& extents, const Machine& machine,
                                    const Overrides& hand, const std::vector<ScheduleItem>& items,
                                    const std::vector<std::optional<Choice>>& parts, const PlanOptions& options) {
    const std::int64_t cores = hand.value(ChoiceKind::threads, machine.num_cores());
    return plan_in_parts(derived, extents, machine, cores, parts, options,
                         [&](const Derived& form, const Extents& sizes, const PlanOptions& how) {
                             return plan_kernels(form, sizes, machine, hand, items, how);
                         });
}

/// The most vectors below the override for which there is a plan. With fewer of them the search may take another axis,
/// where a further rule holds. 0: there is none, or there is not exactly one override of vectors.
std::int64_t nearest_vectors(const Derived& derived, const Extents& extents, const Machine& machine,
                             std::vector<ScheduleItem> items, const std::vector<std::optional<Choice>>& parts,
                             PlanOptions options) {
    constexpr std::int64_t most_tried = 64;
    const auto vectors = find_if(items, [](const ScheduleItem& item) { return item.kind == ChoiceKind::vectors; });
    if (vectors == items.end() || count_if(items, [](const ScheduleItem& i) { return i.kind == ChoiceKind::vectors; }) > 1)
        return 0;
    // Known estimates are of candidates with other overrides.
    options.ratings = nullptr;
    PlanOptions quick = options;
    quick.quick = true;
    for (std::int64_t n = std::min(*vectors->value - 1, most_tried); n > 0; --n) {
        vectors->value = n;
        const auto hand = checked_overrides(derived, extents, of_all_kernels(items));
        if (!hand) continue;
        const auto is_planned = [&](const PlanOptions& how) {
            return plan_whole_or_in_parts(derived, extents, machine, *hand, items, parts, how).ok();
        };
        if (is_planned(quick) && is_planned(options)) return n;
    }
    return 0;
}

}  // namespace

Result<Plan> plan_form(const Derived& derived, const Extents& extents, const Machine& machine,
                       const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    internal_check(extents.size() == derived.diagram.axes.size(), "plan: the extents are those of another diagram");
    auto said = kernel_overrides(derived, by_user, options.file);
    if (!said) return said.errors();
    std::vector<ScheduleItem> items = std::move(said).value();
    const auto hand = checked_overrides(derived, extents, of_all_kernels(items));
    if (!hand) return hand.errors();
    for (const ScheduleItem& item : items)
        if (machine.kind == MachineKind::cpu && (item.kind == ChoiceKind::warps || item.kind == ChoiceKind::blocks))
            return Diagnostic{
                fmt::format("no-{}", name(item.kind)),
                item.range,
                fmt::format("{} has no {}: each thread of a CPU runs whole groups", machine.name, name(item.kind)),
                "a GPU",
                fmt::format("leave '{}' out, or use 'threads'", name(item.kind)),
                {},
                ExitCode::bad_input};
    auto parts = parts_by_user(derived, extents, items);
    if (!parts) return parts.errors();
    for (std::size_t k = 0; k < options.parts.size(); ++k)
        if (!(*parts)[k]) (*parts)[k] = options.parts[k];
    // The number of parts would follow from that of the tiles.
    for (std::optional<Choice>& number : *parts)
        if (options.is_batch_invariant && !number) number = Choice{1, "", false};
    // Splits are settled here. They are dropped because a merge may have the name of the kernel that was cut.
    const std::vector<std::string> names = names_of(derived.kernels);
    std::erase_if(items, [&](const ScheduleItem& item) {
        return item.kind == ChoiceKind::split && (item.kernel.empty() || contains(names, item.kernel));
    });
    auto plan = plan_whole_or_in_parts(derived, extents, machine, *hand, items, *parts, options);
    if (plan || options.quick) return plan;
    std::vector<Diagnostic> errors = plan.errors();
    if (const std::int64_t fitting = nearest_vectors(derived, extents, machine, items, *parts, options); fitting > 0)
        for (Diagnostic& error : errors) error.hint = fmt::format("the nearest legal number of vectors is {}", fitting);
    return errors;
}

}  // namespace napkin
