#include "cost/machine_figures.hpp"

#include <map>

#include "cost/optimum.hpp"
#include "cost/search.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ranges.hpp"

namespace napkin {

double ridge_flop_per_byte(const KernelOnMachine& cost, const LevelLoad& load) {
    std::map<std::string, double> pipes;
    for (const UnitLoad& unit : cost.units) pipes[unit.pipe] += unit.seconds;
    double longest = 0;
    for (const auto& [pipe, seconds] : pipes) longest = std::max(longest, seconds);
    return longest > 0 && load.level.seconds_per_byte > 0 ? cost.flops * load.level.seconds_per_byte / longest : 0;
}

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
    const auto choice = find_if(choices, [&](const Choice& c) { return c.link.size == best; });
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
        options.open_streams = true;
        const double transfers = best.closed ? *best.value(best.transfers, of_symbol)
                                             : search_sizes(sized, options).transfers;
        return known[m] = transfers;
    };
    const double alone = transfers_at(memory);
    for (const LinkOption& option : core_links(machine)) {
        LinkSaving saving{option.link, option.from, {}, 1};
        // The pipe from a level is that into the next one.
        const auto above = find_if(machine.levels, [&](const Level& level) { return level.name == option.from; });
        const std::string into = std::next(above)->name;
        const auto load = find_if(on_machine.levels, [&](const LevelLoad& l) { return l.level.name == into; });
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

}  // namespace napkin
