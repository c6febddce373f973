#include "cost/least.hpp"

#include <cmath>

#include "diagram/symbol_names.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

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

Misfit misfit_of(const LeastTransfers& least, const SymbolValues& value, double memory) {
    const Optimum& letters = least.letters;
    if (!letters.closed) return Misfit::not_closed;
    if (!least.formula) return Misfit::no_value;
    if (*least.formula * same < least.compulsory) return Misfit::compulsory;
    if (!groups_fit(letters, value)) return Misfit::group;
    if (!conditions_hold(letters, value, memory)) return Misfit::condition;
    if (!least.numeric.fits || *least.formula > same * least.numeric.transfers) return Misfit::not_least;
    return least.numeric.transfers > most_rounding * *least.formula ? Misfit::rounding : Misfit::none;
}

}  // namespace

LeastTransfers least_transfers(std::vector<Derived> forms, const Extents& extents, double memory) {
    constexpr double less = 1 - 1e-9;
    LeastTransfers out;
    std::optional<std::size_t> best;
    bool skips = false, counts_padding = false;
    for (std::size_t i = 0; i < forms.size(); ++i) {
        std::vector<std::vector<Size>> known;
        // A run holds beside each other what its statements load one after the other, so that none of the ways always
        // needs least.
        for (const HeldTiles held :
             {HeldTiles::point_by_point, HeldTiles::row_by_row, HeldTiles::rows_of_a_load, HeldTiles::whole}) {
            const Kernel& kernel = forms[i].kernels.front();
            KernelCost cost = symbolic_cost(forms[i], kernel, kernel.group_axes, Measure::values, held);
            auto columns = mapped<Size>(cost.memory, [](const MemoryColumn& column) { return column.size; });
            if (contains(known, columns)) continue;
            known.push_back(std::move(columns));
            SearchOptions options;
            options.memory = memory;
            options.open_streams = true;
            SearchResult found = search_sizes(SizedCost(cost, extents), options);
            const bool is_less = best && (found.fits != out.numeric.fits ? found.fits
                                          : found.fits ? found.transfers < less * out.numeric.transfers
                                                       : found.memory < out.numeric.memory);
            skips |= cost.may_skip, counts_padding |= cost.counts_padding;
            if (best && !is_less) continue;
            best = i, out.held = held, out.cost = std::move(cost), out.numeric = std::move(found);
        }
    }
    internal_check(best.has_value(), "least transfers of no form");
    // A form that skips iterations may move less than the figures say, and than this one.
    out.cost.may_skip = skips, out.cost.counts_padding = counts_padding;
    out.form = std::move(forms[*best]);
    const Kernel& kernel = out.form.kernels.front();
    out.grouped = symbolic_cost(out.form, kernel, default_grouped(kernel), Measure::values, out.held);
    out.letters = optimum(out.grouped);
    const SizedCost sized(out.cost, extents);
    SizedCost::Sizes whole;
    for (std::size_t i = 0; i < sized.num_sizes(); ++i) whole.push_back(sized.extent(i));
    out.compulsory = sized.transfers(whole);
    const auto value = [&](Symbol symbol) { return symbol == memory_symbol ? memory : axis_values(extents)(symbol); };
    if (out.letters.closed) out.formula = out.letters.value(out.letters.transfers, value);
    out.mismatch = misfit_of(out, value, memory);
    return out;
}

std::string reason(Misfit mismatch, const std::string& memory) {
    switch (mismatch) {
        case Misfit::none: return "";
        case Misfit::not_closed: return "there is no formula";
        case Misfit::no_value: return "it has no value at these sizes";
        case Misfit::group: return "a group size of it is below 1 or above its axis";
        case Misfit::condition: return memory + " is below what it takes";
        case Misfit::compulsory: return "it is below the compulsory transfers";
        case Misfit::not_least: return "other group sizes move less";
        case Misfit::rounding: return memory + " is too small for it: whole tiles move more";
    }
    return "";
}

std::string why_upper_bound(const KernelCost& cost) {
    if (cost.may_skip && cost.counts_padding) return "iterations that are skipped and padding count";
    if (cost.may_skip) return "iterations that are skipped count";
    return cost.counts_padding ? "padding counts as read" : "";
}

}  // namespace napkin
