// What a kernel costs on a machine as aligned text.

#include <fmt/format.h>

#include <cmath>

#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string rate_text(double bytes_per_s) {
    return bytes_per_s >= 1e12 ? fmt::format("{:.3g} TB/s", bytes_per_s / 1e12)
                               : fmt::format("{:.3g} GB/s", bytes_per_s / 1e9);
}
std::string unit_text(const UnitRate& rate) { return fmt::format("{} {}", rate.unit, name(rate.type)); }

std::string signed_seconds_text(double seconds) {
    return seconds < 0 ? "-" + seconds_text(-seconds) : seconds_text(seconds);
}

/// A formula's value in its unit.
std::string value_text(const Formula& f) {
    if (f.unit == "B") return bytes_text(f.value);
    if (f.unit == "s/B") return fmt::format("{:.4g} s/TB", f.value * 1e12);
    if (f.unit == "s") return signed_seconds_text(f.value);
    return operations_text(f.value) + (f.unit.empty() ? "" : " " + f.unit);
}

std::string sizes_text(const SymbolNames& names, SymbolKind kind, const std::map<AxisId, std::int64_t>& sizes) {
    std::vector<std::string> parts;
    for (const auto& [axis, size] : sizes) parts.push_back(fmt::format("{} = {}", names(Symbol{kind, axis}), size));
    return join(parts, ", ");
}

/// What the group's and the stream's sizes are, and why.
std::string choice_text(const Derived& derived, const MachineFigures& figures, const SymbolNames& names) {
    const KernelOnMachine& cost = *figures.cost;
    std::string out = fmt::format("  on {}", figures.machine->name);
    for (const std::string& part :
         {sizes_text(names, SymbolKind::group, cost.group), sizes_text(names, SymbolKind::stream, cost.stream)})
        if (!part.empty()) out += "   " + part;
    out += fmt::format("   M {} of {}", bytes_text(cost.memory_bytes), bytes_text(cost.core_bytes));
    out += fmt::format("   {} groups on {} cores", count_text(cost.num_groups), figures.machine->num_cores());
    if (cost.splits > 1) out += fmt::format(", the stream split in {} and merged", cost.splits);
    if (cost.run_fraction < 1) out += fmt::format(", {:.3g}% of the chunks run", 100 * cost.run_fraction);
    out += "\n";
    for (const auto* sizes : {&cost.group, &cost.stream})
        for (const auto& [axis, size] : *sizes)
            if (const std::string causes = cost.divisors.causes(axis); !causes.empty())
                out += fmt::format("    {} is a multiple of {}: {}\n", derived.diagram.axis(axis).name,
                                   cost.divisors.of(axis), causes);
    return out;
}

std::string levels_text(const KernelOnMachine& cost) {
    std::vector<std::vector<std::string>> rows{
        {"level", "rule", "M", "H", "rate", "time", "expected", "FLOP/B", "ridge"}};
    for (const LevelLoad& load : cost.levels) {
        // A weight below zero takes off what other levels count twice (Theorem 3, A.2.3): it is no rate, and its
        // product with H no time.
        const bool is_pipe = load.level.seconds_per_byte > 0;
        const auto of_pipe = [&](const std::string& text) { return is_pipe ? text : std::string("-"); };
        rows.push_back({load.level.name, std::string(citation(load.level.rule)), bytes_text(load.level.memory_bytes),
                        bytes_text(load.transfers_bytes), of_pipe(rate_text(1 / load.level.seconds_per_byte)),
                        of_pipe(seconds_text(load.seconds)), of_pipe(seconds_text(load.expected_s)),
                        fmt::format("{:.3g}", cost.flops / load.transfers_bytes),
                        of_pipe(fmt::format("{:.3g}", ridge_flop_per_byte(cost, load)))});
    }
    return table(rows, {2, 3, 4, 5, 6, 7, 8}, "    ");
}

std::string units_text(const KernelOnMachine& cost) {
    std::vector<std::vector<std::string>> rows{{"unit", "operations", "a clock", "time", "expected"}};
    for (const UnitLoad& unit : cost.units)
        rows.push_back(
            {unit_text(unit.rate), operations_text(unit.operations), fmt::format("{:.4g}", unit.rate.per_clock),
             seconds_text(unit.seconds),
             seconds_text(unit.expected_s) +
                 (unit.overhead_s > 0 ? fmt::format(" ({} beside the operations)", seconds_text(unit.overhead_s)) : "")});
    return table(rows, {1, 2, 3}, "    ");
}

std::string time_text(const KernelOnMachine& cost) {
    std::string out = fmt::format("    bound {}, expected {}, bound by {}", seconds_text(cost.bound_s),
                                  seconds_text(cost.seconds), cost.bound_by);
    if (cost.ceilings.size() > 1 && cost.margin > 1 && cost.bound_by == cost.ceilings[0].what)
        out += fmt::format(" ({:.3g}× {})", cost.margin, cost.ceilings[1].what);
    if (cost.wave > 1.005)
        out += fmt::format(", cores wait for the last groups {:.3g}% of it", 100 * (1 - 1 / cost.wave));
    out += fmt::format(", latency {}, launch {}", seconds_text(cost.latency_s), seconds_text(cost.launch_s));
    out += cost.starts_s > 0 ? fmt::format(", starts of groups {}\n", seconds_text(cost.starts_s)) : "\n";
    return out;
}

std::string bounds_text(const MachineFigures& figures, const SymbolNames& names) {
    const Bounds& limits = figures.limits;
    std::string out;
    for (const GroupBound& bound : limits.groups) {
        const auto letters = mapped<std::string>(bound.axes, [&](AxisId axis) { return names(group_symbol(axis)); });
        out += fmt::format("    {} ≥ {:.4g} keeps {} from binding (B.0.1)\n", join(letters, "·"), bound.at_least,
                           bound.level);
    }
    for (const TermBound& bound : limits.terms) {
        const bool asks_for_most = none_of(limits.terms, [&](const TermBound& other) {
            return other.level == bound.level && other.symbol == bound.symbol && other.at_least > bound.at_least;
        });
        if (asks_for_most)
            out += fmt::format("    {} ≥ {} for {}: {} of H*/K (B.1)\n",
                               bound.symbol == memory_symbol ? "M_" + bound.level : names(bound.symbol),
                               operations_text(bound.at_least), bound.level, to_string(bound.term, names));
    }
    if (limits.io.empty()) return out;
    out += fmt::format("    lower bound {} values ({})", count_text(std::round(limits.io[0].values)), limits.io[0].formula);
    if (figures.fewest_values) {
        const bool is_bound = !figures.why_fewest_is_a_bound.empty();
        out += fmt::format("; the fewest {}{}, {}{:.3g} times it", is_bound ? "≤ " : "",
                           count_text(std::round(*figures.fewest_values)), is_bound ? "at most " : "",
                           *figures.fewest_values / limits.io[0].values);
    }
    return out + "\n";
}

/// All formulas of the derivation, numbers put in.
std::vector<Formula> formulas_of(const MachineFigures& figures) {
    std::vector<Formula> out;
    for (const LevelLoad& load : figures.cost->levels) {
        append(out, load.level.why);
        out.push_back({(load.level.seconds_per_byte < 0 ? "ΔT_" : "T_") + load.level.name, "Ḣ⁻¹·H",
                       fmt::format("{:.4g} s/TB · {}", load.level.seconds_per_byte * 1e12, bytes_text(load.transfers_bytes)),
                       load.seconds, "s", "Eq. 5"});
    }
    append(out, figures.levels.derivation);
    for (const GroupBound& bound : figures.limits.groups) out.push_back(bound.formula);
    for (const TermBound& bound : figures.limits.terms) out.push_back(bound.formula);
    for (const LinkSaving& saving : figures.links)
        for (const LinkSaving::Choice& choice : saving.choices)
            out.push_back({fmt::format("ΔT({} = {}, {})", saving.link, choice.link.size, saving.from),
                           "(Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c))·(H*(M_c) − H*(N·M_c))",
                           fmt::format("{:.4g} s/TB·({} − {}), link {}", choice.link.saved_seconds_per_byte * 1e12,
                                       bytes_text(choice.alone_bytes), bytes_text(choice.joined_bytes),
                                       rate_text(choice.link.bytes_per_s)),
                           choice.saved_s, "s", "Theorem 3"});
    return out;
}

std::string derivation_text(const MachineFigures& figures) {
    std::vector<std::vector<std::string>> lines;
    for (const Formula& f : formulas_of(figures)) {
        const bool no_value = f.value == 0 && f.unit.empty();
        lines.push_back({f.what, "= " + f.formula, f.figures.empty() ? "" : (no_value ? "  " : "= ") + f.figures,
                         no_value ? "" : "= " + value_text(f), f.rule});
    }
    std::string out = "  derivation\n" + table(lines, {}, "    ");
    if (figures.iteration.empty()) return out;
    std::vector<std::vector<std::string>> steps{{"one chunk, one row", "unit", "operations", "a clock", "clocks"}};
    for (const IterationRow& row : figures.iteration)
        steps.push_back({row.statement, fmt::format("{} {}", row.unit, name(row.type)), fmt::format("{:.6g}", row.operations),
                         fmt::format("{:.4g}", row.per_clock), fmt::format("{:.4g}", row.clocks())});
    return out + table(steps, {2, 3, 4}, "    ");
}

}  // namespace

std::string operations_text(double value) {
    for (const auto& [factor, unit] : {std::pair{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
        if (value >= factor) return fmt::format("{:.3g}{}", value / factor, unit);
    return fmt::format("{:.3g}", value);
}

std::string machine_text(const Derived& derived, const MachineFigures& figures, bool explain) {
    const KernelOnMachine& cost = *figures.cost;
    const SymbolNames names = symbol_names(derived.diagram);
    std::string out = choice_text(derived, figures, names) + levels_text(cost) + units_text(cost);
    if (cost.accumulator_capacity > 0)
        out += fmt::format("    accumulators {} of {}\n", bytes_text(cost.accumulator_bytes),
                           bytes_text(cost.accumulator_capacity));
    out += time_text(cost) + bounds_text(figures, names);
    for (const LinkSaving& saving : figures.links) {
        if (saving.advised_s() > 0)
            out += fmt::format("    {} of {} beside {}: saves up to {} of the {} of transfers (Theorem 3)\n",
                               saving.link, saving.best, saving.from, seconds_text(saving.advised_s()),
                               seconds_text(saving.relieved_s));
    }
    return explain ? out + derivation_text(figures) : out;
}

}  // namespace napkin
