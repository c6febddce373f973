#include "cost/machine_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "machine/peaks.hpp"
#include "machine/quantity.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using nlohmann::json;

std::string axis_name(const Derived& derived, AxisId axis) { return derived.diagram.axis(axis).name; }

std::string rate_text(double bytes_per_s) {
    return bytes_per_s >= 1e12 ? fmt::format("{:.3g} TB/s", bytes_per_s / 1e12)
                               : fmt::format("{:.3g} GB/s", bytes_per_s / 1e9);
}
std::string operations_text(double value) {
    for (const auto& [factor, unit] : {std::pair{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
        if (value >= factor) return fmt::format("{:.3g}{}", value / factor, unit);
    return fmt::format("{:.3g}", value);
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

json formula_json(const Formula& f) {
    return {{"what", f.what},   {"formula", f.formula}, {"figures", f.figures},
            {"value", f.value}, {"unit", f.unit},       {"rule", f.rule}};
}

json sizes_json(const Derived& derived, const std::map<AxisId, std::int64_t>& sizes) {
    json out = json::object();
    for (const auto& [axis, size] : sizes) out[axis_name(derived, axis)] = size;
    return out;
}

std::string sizes_text(const SymbolNames& names, SymbolKind kind, const std::map<AxisId, std::int64_t>& sizes) {
    std::vector<std::string> parts;
    for (const auto& [axis, size] : sizes) parts.push_back(fmt::format("{} = {}", names(Symbol{kind, axis}), size));
    return join(parts, ", ");
}

/// FLOP a byte at which the units take as long as the level's pipes, for the mix of operations at hand.
double ridge_of(const KernelOnMachine& cost, const LevelLoad& load) {
    std::map<std::string, double> pipes;
    for (const UnitLoad& unit : cost.units) pipes[unit.pipe] += unit.seconds;
    double longest = 0;
    for (const auto& [pipe, seconds] : pipes) longest = std::max(longest, seconds);
    return longest > 0 && load.level.seconds_per_byte > 0 ? cost.flops * load.level.seconds_per_byte / longest : 0;
}

}  // namespace

std::vector<IterationRow> iteration_rows(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                         const Machine& machine, const KernelOnMachine& cost) {
    std::vector<IterationRow> rows;
    for (const UnitWork& work : unit_work(derived, kernel, default_grouped(kernel), machine)) {
        const auto operations = work.of_a_row.evaluate([&](Symbol symbol) -> std::optional<double> {
            const auto axis = symbol.axis();
            if (symbol.kind == SymbolKind::stream) return static_cast<double>(cost.stream.at(axis));
            return axis_values(extents)(symbol);
        });
        if (!operations || *operations == 0) continue;
        rows.push_back({work.statement, work.rate.unit, work.rate.type, *operations * work.flops_each(),
                        work.rate.per_clock * work.flops_each()});
    }
    return rows;
}

Overlap overlap(const std::vector<IterationRow>& rows, double overhead) {
    Overlap out;
    std::map<std::string, double> contractions;
    for (const IterationRow& row : rows) {
        if (row.unit == "tensor") {
            out.tensor_clocks += row.clocks();
            contractions[row.statement] += row.clocks();
        } else if (row.unit == "exp" || row.unit == "log" || row.unit == "tanh") {
            out.special_clocks += row.clocks();
        }
    }
    double longest = 0;
    for (const auto& [statement, clocks] : contractions) longest = std::max(longest, clocks);
    const double special = out.special_clocks * (1 + overhead);
    out.between_groups = std::max(out.tensor_clocks, special);
    out.within_group = out.tensor_clocks + std::max(0.0, special - longest);
    return out;
}

double LinkSaving::advised_s() const {
    const auto choice = std::find_if(choices.begin(), choices.end(), [&](const Choice& c) { return c.link.size == best; });
    return binds && choice != choices.end() ? std::min(choice->saved_s, relieved_s) : 0;
}

std::vector<LinkSaving> link_savings(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                     const Machine& machine, const KernelOnMachine& on_machine) {
    std::vector<LinkSaving> out;
    const KernelCost cost = symbolic_cost(derived, kernel, default_grouped(kernel), Measure::bytes,
                                          HeldTiles::point_by_point);
    const double memory = bytes_a_core(machine, core_memory_level(machine));
    const SizedCost sized(cost, extents);
    OptimumSolver solver(cost);
    std::map<double, double> known;
    const auto transfers_at = [&](double m) {
        if (const auto at = known.find(m); at != known.end()) return at->second;
        const auto of_symbol = [&](Symbol symbol) { return symbol == memory_symbol ? m : axis_values(extents)(symbol); };
        const Optimum best = solver.at(of_symbol);
        SearchOptions options;
        options.memory = m;
        const double transfers = best.closed ? *best.value(best.transfers, of_symbol)
                                             : search_sizes(sized, options).transfers;
        return known[m] = transfers;
    };
    const double alone = transfers_at(memory);
    for (const LinkOption& option : core_links(machine)) {
        LinkSaving saving{option.link, option.from, {}, 1};
        // The pipe from a level is that into the next one.
        const auto above = std::find_if(machine.levels.begin(), machine.levels.end(),
                                        [&](const Level& level) { return level.name == option.from; });
        const std::string into = std::next(above)->name;
        const auto load = std::find_if(on_machine.levels.begin(), on_machine.levels.end(),
                                       [&](const LevelLoad& l) { return l.level.name == into; });
        saving.relieved_s = load == on_machine.levels.end() ? 0 : load->expected_s;
        saving.binds = !on_machine.ceilings.empty() && on_machine.ceilings[0].into == into;
        double most = 0;
        for (const LinkChoice& choice : option.choices) {
            const double joined = transfers_at(static_cast<double>(choice.size) * memory);
            const double saved = choice.saved_seconds_per_byte * (alone - joined);
            if (saved > most) most = saved, saving.best = choice.size;
            saving.choices.push_back({choice, alone, joined, saved});
        }
        out.push_back(std::move(saving));
    }
    return out;
}

std::string machine_text(const Derived& derived, const MachineFigures& figures, bool explain) {
    const Machine& machine = *figures.machine;
    const KernelOnMachine& cost = *figures.cost;
    const Bounds& limits = figures.limits;
    const SymbolNames names = symbol_names(derived.diagram);
    std::string out = fmt::format("  on {}", machine.name);
    for (const std::string& part :
         {sizes_text(names, SymbolKind::group, cost.group), sizes_text(names, SymbolKind::stream, cost.stream)})
        if (!part.empty()) out += "   " + part;
    out += fmt::format("   M {} of {}", bytes_text(cost.memory_bytes), bytes_text(cost.core_bytes));
    out += fmt::format("   {} groups on {} cores", count_text(cost.num_groups), machine.num_cores());
    if (cost.splits > 1) out += fmt::format(", the stream split in {} and merged", cost.splits);
    if (cost.run_fraction < 1) out += fmt::format(", {:.3g}% of the chunks run", 100 * cost.run_fraction);
    out += "\n";
    for (const auto* sizes : {&cost.group, &cost.stream})
        for (const auto& [axis, size] : *sizes)
            if (const std::string causes = cost.divisors.causes(axis); !causes.empty())
                out += fmt::format("    {} is a multiple of {}: {}\n", axis_name(derived, axis), cost.divisors.of(axis),
                                   causes);

    std::vector<std::vector<std::string>> table_rows{
        {"level", "rule", "M", "H", "rate", "time", "expected", "FLOP/B", "ridge"}};
    for (const LevelLoad& load : cost.levels)
        table_rows.push_back(
            {load.level.name, std::string(citation(load.level.rule)), bytes_text(load.level.memory_bytes),
             bytes_text(load.transfers_bytes),
             (load.level.seconds_per_byte < 0 ? "-" : "") + rate_text(1 / std::abs(load.level.seconds_per_byte)),
             signed_seconds_text(load.seconds), signed_seconds_text(load.expected_s),
             fmt::format("{:.3g}", cost.flops / load.transfers_bytes), fmt::format("{:.3g}", ridge_of(cost, load))});
    out += table(table_rows, {2, 3, 4, 5, 6, 7, 8}, "    ");
    std::vector<std::vector<std::string>> unit_rows{{"unit", "operations", "a clock", "time", "expected"}};
    for (const UnitLoad& unit : cost.units)
        unit_rows.push_back(
            {unit_text(unit.rate), operations_text(unit.operations), fmt::format("{:.4g}", unit.rate.per_clock),
             seconds_text(unit.seconds),
             seconds_text(unit.expected_s) +
                 (unit.overhead_s > 0 ? fmt::format(" ({} beside the operations)", seconds_text(unit.overhead_s)) : "")});
    out += table(unit_rows, {1, 2, 3}, "    ");
    if (cost.accumulator_capacity > 0)
        out += fmt::format("    accumulators {} of {}\n", bytes_text(cost.accumulator_bytes),
                           bytes_text(cost.accumulator_capacity));
    out += fmt::format("    bound {}, expected {}, bound by {}", seconds_text(cost.bound_s), seconds_text(cost.seconds),
                       cost.bound_by);
    if (cost.ceilings.size() > 1 && cost.margin > 1)
        out += fmt::format(" ({:.3g}× {})", cost.margin, cost.ceilings[1].what);
    if (cost.wave > 1.005)
        out += fmt::format(", cores wait for the last groups {:.3g}% of it", 100 * (1 - 1 / cost.wave));
    out += fmt::format(", latency {}, launch {}", seconds_text(cost.latency_s), seconds_text(cost.launch_s));
    out += cost.starts_s > 0 ? fmt::format(", starts of groups {}\n", seconds_text(cost.starts_s)) : "\n";

    for (const GroupBound& bound : limits.groups) {
        std::vector<std::string> letters;
        for (const AxisId axis : bound.axes) letters.push_back(names(group_symbol(axis)));
        out += fmt::format("    {} ≥ {:.4g} keeps {} from binding (B.0.1)\n", join(letters, "·"), bound.at_least,
                           bound.level);
    }
    for (const TermBound& bound : limits.terms) {
        const bool asks_for_most = std::none_of(limits.terms.begin(), limits.terms.end(), [&](const TermBound& other) {
            return other.level == bound.level && other.symbol == bound.symbol && other.at_least > bound.at_least;
        });
        if (asks_for_most)
            out += fmt::format("    {} ≥ {} for {}: {} of H*/K (B.1)\n",
                               bound.symbol == memory_symbol ? "M_" + bound.level : names(bound.symbol),
                               operations_text(bound.at_least), bound.level, to_string(bound.term, names));
    }
    if (!limits.io.empty())
        out += fmt::format("    lower bound {} values ({}); the fewest {}, {:.3g} times it\n",
                           count_text(std::round(limits.io[0].values)), limits.io[0].formula,
                           count_text(std::round(figures.fewest_values)), figures.fewest_values / limits.io[0].values);
    for (const LinkSaving& saving : figures.links) {
        if (saving.advised_s() > 0)
            out += fmt::format("    {} of {} beside {}: saves up to {} of the {} of transfers (Theorem 3)\n",
                               saving.link, saving.best, saving.from, seconds_text(saving.advised_s()),
                               seconds_text(saving.relieved_s));
    }
    if (!explain) return out;
    out += "  derivation\n";
    std::vector<std::vector<std::string>> lines;
    const auto add = [&](const Formula& f) {
        const bool no_value = f.value == 0 && f.unit.empty();
        lines.push_back({f.what, "= " + f.formula, f.figures.empty() ? "" : (no_value ? "  " : "= ") + f.figures,
                         no_value ? "" : "= " + value_text(f), f.rule});
    };
    for (const LevelLoad& load : cost.levels) {
        for (const Formula& f : load.level.why) add(f);
        add({"T_" + load.level.name, "Ḣ⁻¹·H",
             fmt::format("{:.4g} s/TB · {}", load.level.seconds_per_byte * 1e12, bytes_text(load.transfers_bytes)),
             load.seconds, "s", "Eq. 5"});
    }
    for (const Formula& f : figures.levels.derivation) add(f);
    for (const GroupBound& bound : limits.groups) add(bound.formula);
    for (const TermBound& bound : limits.terms) add(bound.formula);
    for (const LinkSaving& saving : figures.links)
        for (const LinkSaving::Choice& choice : saving.choices)
            add({fmt::format("ΔT({} = {}, {})", saving.link, choice.link.size, saving.from),
                 "(Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c))·(H*(M_c) − H*(N·M_c))",
                 fmt::format("{:.4g} s/TB·({} − {}), link {}", choice.link.saved_seconds_per_byte * 1e12,
                             bytes_text(choice.alone_bytes), bytes_text(choice.joined_bytes),
                             rate_text(choice.link.bytes_per_s)),
                 choice.saved_s, "s", "Theorem 3"});
    out += table(lines, {}, "    ");
    if (!figures.iteration.empty()) {
        std::vector<std::vector<std::string>> steps{{"one chunk, one row", "unit", "operations", "a clock", "clocks"}};
        for (const IterationRow& row : figures.iteration)
            steps.push_back({row.statement, fmt::format("{} {}", row.unit, name(row.type)),
                             fmt::format("{:.6g}", row.operations), fmt::format("{:.4g}", row.per_clock),
                             fmt::format("{:.4g}", row.clocks())});
        out += table(steps, {2, 3, 4}, "    ");
    }
    return out;
}

json machine_json(const Derived& derived, const MachineFigures& figures) {
    const Machine& machine = *figures.machine;
    const KernelOnMachine& cost = *figures.cost;
    const Bounds& limits = figures.limits;
    json out;
    out["sizes"] = {{"group", sizes_json(derived, cost.group)},
                    {"stream", sizes_json(derived, cost.stream)},
                    {"groups", cost.num_groups},
                    {"splits", cost.splits},
                    {"memory_bytes", cost.memory_bytes},
                    {"core_bytes", cost.core_bytes},
                    {"accumulator_bytes", cost.accumulator_bytes},
                    {"accumulator_capacity_bytes", cost.accumulator_capacity}};
    out["divisors"] = json::array();
    for (const Divisor& d : cost.divisors.constraints)
        out["divisors"].push_back({{"axis", axis_name(derived, d.axis)}, {"value", d.value}, {"cause", d.cause}});
    out["levels"] = json::array();
    for (const LevelLoad& load : cost.levels) {
        json why = json::array();
        for (const Formula& f : load.level.why) why.push_back(formula_json(f));
        out["levels"].push_back({{"name", load.level.name},
                                 {"rule", citation(load.level.rule)},
                                 {"memory_bytes", load.level.memory_bytes},
                                 {"bytes_per_s", 1 / load.level.seconds_per_byte},
                                 {"transfers_bytes", load.transfers_bytes},
                                 {"seconds", load.seconds},
                                 {"expected_s", load.expected_s},
                                 {"group", sizes_json(derived, load.group)},
                                 {"flop_per_byte", cost.flops / load.transfers_bytes},
                                 {"ridge_flop_per_byte", ridge_of(cost, load)},
                                 {"derivation", why}});
    }
    json& form = out["multi_level"] = {{"closed", figures.levels.best.closed}};
    if (figures.levels.best.closed) {
        const SymbolNames names = names_in(figures.levels.best, derived.diagram);
        form["transfers"] = to_string(figures.levels.best.transfers, names);
        form["seconds"] = figures.levels.seconds;
        form["transfers_bytes"] = figures.levels.bytes;
        form["terms"] = json::array();
        for (const LevelTerm& term : figures.levels.terms)
            form["terms"].push_back({{"alpha", to_string(term.term.alpha, names)},
                                     {"beta", to_string(term.term.beta)},
                                     {"alpha_value", term.alpha},
                                     {"seconds", term.seconds()},
                                     {"half_the_bytes", term.halved}});
    } else {
        form["why_numeric"] = why_numeric(figures.levels.best, derived.diagram);
    }
    form["derivation"] = json::array();
    for (const Formula& f : figures.levels.derivation) form["derivation"].push_back(formula_json(f));
    out["units"] = json::array();
    for (const UnitLoad& unit : cost.units)
        out["units"].push_back({{"unit", unit.rate.unit},
                                {"type", std::string(name(unit.rate.type))},
                                {"operations", unit.operations},
                                {"per_clock", unit.rate.per_clock},
                                {"seconds", unit.seconds},
                                {"expected_s", unit.expected_s},
                                {"overhead_s", unit.overhead_s}});
    out["ceilings"] = json::array();
    for (const Ceiling& ceiling : cost.ceilings)
        out["ceilings"].push_back({{"what", ceiling.what}, {"seconds", ceiling.seconds}});
    out["time"] = {{"bound_s", cost.bound_s},   {"starts_s", cost.starts_s}, {"seconds", cost.seconds},
                   {"bound_by", cost.bound_by}, {"margin", cost.margin},     {"latency_s", cost.latency_s},
                   {"launch_s", cost.launch_s}, {"wave", cost.wave},         {"run_fraction", cost.run_fraction}};
    out["cross_transfer"] = json::array();
    for (const LinkSaving& saving : figures.links) {
        json choices = json::array();
        for (const LinkSaving::Choice& choice : saving.choices)
            choices.push_back(
                {{"size", choice.link.size}, {"bytes_per_s", choice.link.bytes_per_s}, {"saving_seconds", choice.saved_s}});
        out["cross_transfer"].push_back({{"name", saving.link},
                                         {"from", saving.from},
                                         {"best", saving.best},
                                         {"relieved_seconds", saving.relieved_s},
                                         {"advised_saving_seconds", saving.advised_s()},
                                         {"choices", choices}});
    }
    out["iteration"] = json::array();
    double tensor = 0, tensor_operations = 0;
    for (const IterationRow& row : figures.iteration) {
        out["iteration"].push_back({{"statement", row.statement},
                                    {"unit", row.unit},
                                    {"type", std::string(name(row.type))},
                                    {"operations", row.operations},
                                    {"per_clock", row.per_clock},
                                    {"clocks", row.clocks()}});
        if (row.unit == "tensor") tensor += row.clocks(), tensor_operations += row.operations;
    }
    const Overlap beside = overlap(figures.iteration, figures.special_overhead);
    out["overlap"] = {{"tensor_clocks", beside.tensor_clocks},
                      {"special_clocks", beside.special_clocks},
                      {"overhead", figures.special_overhead},
                      {"between_groups_clocks", beside.between_groups},
                      {"within_group_clocks", beside.within_group},
                      {"tensor_flop_per_s",
                       tensor > 0 ? tensor_operations / tensor * machine.cores.value * machine.clock_hz.value : 0.0}};
    json& limit = out["bounds"] = json::object();
    limit["group_at_least"] = json::object();
    limit["memory_at_least"] = json::object();
    limit["axis_at_least"] = json::object();
    limit["derivation"] = json::array();
    for (const GroupBound& bound : limits.groups) {
        limit["group_at_least"][bound.level] = bound.at_least;
        limit["derivation"].push_back(formula_json(bound.formula));
    }
    for (const TermBound& bound : limits.terms) {
        if (bound.symbol == memory_symbol) {
            // Several terms with M: the one that asks for most.
            json& least = limit["memory_at_least"][bound.level];
            least = std::max(least.is_null() ? 0.0 : least.get<double>(), bound.at_least);
        } else {
            limit["axis_at_least"][bound.level][symbol_names(derived.diagram)(bound.symbol)] = bound.at_least;
        }
        limit["derivation"].push_back(formula_json(bound.formula));
    }
    limit["io"] = json::array();
    for (const IoBound& bound : limits.io)
        limit["io"].push_back({{"formula", bound.formula}, {"source", bound.source}, {"values", bound.values}});
    if (!limits.io.empty()) limit["io_gap"] = figures.fewest_values / limits.io[0].values;
    return out;
}

}  // namespace napkin
