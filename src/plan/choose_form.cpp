#include "plan/choose_form.hpp"

#include <cstddef>
#include <limits>

#include "plan/choose.hpp"
#include "plan/kernel_times.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"

namespace napkin {

namespace {

/// Threads that compare forms: with each of them more forms are costed before it is known what is enough against them.
constexpr std::size_t forms_at_a_time = 2;

/// By how much the whole fold's time of a quick search may exceed that of the form that is the fastest by such searches, and be the lesser one of whole searches:
/// the one of one new token against a cache (examples/decode.nk) finds 8.3 ms where the whole search finds 6.3 (two cores of an Intel server, 2026-11-27).
constexpr double near_the_least = 1.25;

bool has_what_is_named(const Derived& alone, const Extents& extents, const std::vector<ScheduleItem>& by_hand) {
    std::vector<ScheduleItem> named;
    for (const ScheduleItem& item : by_hand)
        if (!item.clauses.empty() &&
            any_of(alone.kernels, [&](const Kernel& kernel) { return kernel.name == item.kernel; }))
            named.push_back(item);
    return named.empty() || schedules_by_hand(named, tiles_of(alone, extents, {})).ok();
}

/// A product of computed values with loaded ones of fewer bytes.
bool rounds_a_factor(const TileKernel& kernel, const std::vector<TileStatement>& statements) {
    return any_of(statements, [&](const TileStatement& s) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s))
            return rounds_a_factor(kernel, (*loop)->body);
        const auto* compute = std::get_if<Compute>(&s);
        const auto* product = compute && compute->reduce == ReduceOp::sum ? as<Binary>(compute->body) : nullptr;
        if (!product || product->op != BinaryOp::mul) return false;
        const Read *a = as<Read>(product->a), *b = as<Read>(product->b);
        const auto type = [&](const Read* r) { return kernel.variables[at(r->array)].memory_type; };
        return a && b && bytes(type(a)) != bytes(type(b)) && std::min(bytes(type(a)), bytes(type(b))) <= 2;
    });
}
bool rounds_a_factor(const TileProgram& program) {
    return any_of(program.kernels, [](const TileKernel& kernel) { return rounds_a_factor(kernel, kernel.body); });
}

/// Of two forms, by a plan of each.
Derived faster_planned(const Derived& first, Derived second, const Extents& extents, const Machine& machine,
                       const std::vector<ScheduleItem>& by_hand, const PlanOptions& options) {
    const auto one = choose_plan(first, extents, machine, by_hand, options),
               other = choose_plan(second, extents, machine, by_hand, options);
    return one && (!other || one->seconds() < other->seconds()) ? first : second;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_hand, const std::shared_ptr<Ratings>& ratings) {
    KernelTimes known(by_hand.empty() ? ratings : nullptr);
    const auto quick = [&](const Derived& form, double enough) {
        if (!has_what_is_named(form, extents, by_hand)) return std::numeric_limits<double>::infinity();
        return quick_seconds(form, extents, machine, known, enough);
    };
    Derived least = with_least_cost(derived, quick, forms_at_a_time);
    if (machine.kind == MachineKind::gpu || names_of(least.kernels) == names_of(derived.kernels)) return least;
    // A quick search finds less of a long fold's schedules than of its parts'.
    constexpr double no_limit = std::numeric_limits<double>::infinity();
    if (quick(derived, no_limit) > near_the_least * quick(least, no_limit)) return least;
    return faster_planned(derived, std::move(least), extents, machine, by_hand, {.ratings = known.ratings()});
}

Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_hand, const std::shared_ptr<Ratings>& ratings) {
    Derived least = choose_form(derived, extents, machine, by_hand, ratings);
    // The model of forms takes each product in the widest type of what it reads, where a kernel on a matrix unit rounds what it computes.
    if (machine.kind != MachineKind::gpu || names_of(least.kernels) == names_of(derived.kernels) ||
        !rounds_a_factor(expand(derived)))
        return least;
    return faster_planned(derived, std::move(least), extents, machine, by_hand,
                          {.quick = true, .completion = Completion::for_rating});
}

}  // namespace napkin
