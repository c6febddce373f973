// What a kernel costs on a machine as JSON.
#include <algorithm>

#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "support/json.hpp"

namespace napkin {
namespace {

using nlohmann::json;

json formula_json(const Formula& f) {
    return {{"what", f.what},   {"formula", f.formula}, {"figures", f.figures},
            {"value", f.value}, {"unit", f.unit},       {"rule", f.rule}};
}

json sizes_json(const Derived& derived, const std::map<AxisId, std::int64_t>& sizes) {
    json out = json::object();
    for (const auto& [axis, size] : sizes) out[derived.diagram.axis(axis).name] = size;
    return out;
}

}  // namespace

nlohmann::json machine_json(const Derived& derived, const MachineFigures& figures) {
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
        out["divisors"].push_back({{"axis", derived.diagram.axis(d.axis).name}, {"value", d.value}, {"cause", d.cause}});
    out["levels"] = json::array();
    for (const LevelLoad& load : cost.levels) {
        json why = json::array();
        for (const Formula& f : load.level.why) why.push_back(formula_json(f));
        // A weight below zero (Theorem 3, A.2.3) is no rate, and its product with H no time.
        const bool is_pipe = load.level.seconds_per_byte > 0;
        const auto of_pipe = [&](double value) { return is_pipe ? json(value) : json(); };
        out["levels"].push_back({{"name", load.level.name},
                                 {"rule", citation(load.level.rule)},
                                 {"memory_bytes", load.level.memory_bytes},
                                 {"weight_s_per_byte", load.level.seconds_per_byte},
                                 {"bytes_per_s", of_pipe(1 / load.level.seconds_per_byte)},
                                 {"transfers_bytes", load.transfers_bytes},
                                 {"seconds", of_pipe(load.seconds)},
                                 {"expected_s", of_pipe(load.expected_s)},
                                 {"group", sizes_json(derived, load.group)},
                                 {"flop_per_byte", cost.flops / load.transfers_bytes},
                                 {"ridge_flop_per_byte", of_pipe(ridge_flop_per_byte(cost, load))},
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
    if (!limits.io.empty() && figures.fewest_values) limit["io_gap"] = *figures.fewest_values / limits.io[0].values;
    return out;
}

}  // namespace napkin
