#include "cost/least.hpp"

#include <cmath>

#include "diagram/symbol_names.hpp"

namespace napkin {
namespace {
/// A formula is one for large sizes: integer ones may take this much more.
constexpr double most_rounding = 4.0 / 3, same = 1.01;

/// Whether every product of group sizes lies between 1 and the product of its axes.
bool groups_fit(const Optimum& letters, const SymbolValues& value) {
    for (const GroupEquation& group : letters.groups) {
        const auto size = letters.value(group.value, value);
        double least = 1, most = 1;
        for (const auto& [symbol, exponent] : group.product) {
            const double whole = std::pow(*value(axis_symbol(symbol.axis())), exponent.to_double());
            (exponent > Rational(0) ? most : least) *= whole;
        }
        if (!size || *size > most * same || *size * same < least) return false;
    }
    return true;
}

bool conditions_hold(const Optimum& letters, const SymbolValues& value, double memory) {
    // A condition's group sizes are those of the optimum.
    const auto with_groups = [&](Symbol symbol) -> std::optional<double> {
        for (const GroupEquation& group : letters.groups)
            if (group.product == Monomial{{symbol, Rational(1)}}) return letters.value(group.value, value);
        return value(symbol);
    };
    for (const OptimumCondition& condition : letters.where) {
        const auto small = letters.value(condition.small, with_groups);
        if (small && *small > memory * same) return false;
    }
    return true;
}

Misfit misfit_of(const LeastTransfers& least, const Optimum& letters, const SymbolValues& value, double memory) {
    if (!letters.closed) return Misfit::not_closed;
    if (!least.formula) return Misfit::no_value;
    if (*least.formula * same < least.compulsory) return Misfit::compulsory;
    if (!groups_fit(letters, value)) return Misfit::group;
    if (!conditions_hold(letters, value, memory)) return Misfit::condition;
    if (!least.numeric.fits || *least.formula > same * least.numeric.transfers) return Misfit::not_least;
    return least.numeric.transfers > most_rounding * *least.formula ? Misfit::rounding : Misfit::none;
}

}  // namespace

LeastTransfers least_transfers(const Derived& derived, const Kernel& kernel, const Extents& extents, double memory,
                               const Optimum& letters) {
    LeastTransfers out;
    out.cost = symbolic_cost(derived, kernel, kernel.group_axes, Measure::values, HeldTiles::point_by_point);
    const SizedCost sized(out.cost, extents);
    SearchOptions options;
    options.memory = memory;
    out.numeric = search_sizes(sized, options);
    SizedCost::Sizes whole;
    for (std::size_t i = 0; i < sized.num_sizes(); ++i) whole.push_back(sized.extent(i));
    out.compulsory = sized.transfers(whole);
    const auto value = [&](Symbol symbol) { return symbol == memory_symbol ? memory : axis_values(extents)(symbol); };
    if (letters.closed) out.formula = letters.value(letters.transfers, value);
    out.misfit = misfit_of(out, letters, value, memory);
    return out;
}

std::string reason(Misfit misfit) {
    switch (misfit) {
        case Misfit::none: return "";
        case Misfit::not_closed: return "there is no formula";
        case Misfit::no_value: return "it has no value at these sizes";
        case Misfit::group: return "a group size of it is below 1 or above its axis";
        case Misfit::condition: return "M is below what it takes";
        case Misfit::compulsory: return "it is below the compulsory transfers";
        case Misfit::not_least: return "other group sizes move less";
        case Misfit::rounding: return "M is too small for it: whole tiles move more";
    }
    return "";
}

}  // namespace napkin
