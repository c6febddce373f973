// What a kernel costs on a machine as JSON.
#include <algorithm>

#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "support/json.hpp"

namespace napkin {
namespace {

using nlohmann::json;

/// What `one` says of each of them.
json list_json(const auto& things, auto one) {
    json out = json::array();
    for (const auto& thing : things) out.push_back(one(thing));
    return out;
}

json formula_json(const Formula& f) {
    return {{"what", f.what},   {"formula", f.formula}, {"figures", f.figures},
            {"value", f.value}, {"unit", f.unit},       {"rule", f.rule}};
}

json sizes_json(const Derived& derived, const std::map<AxisId, std::int64_t>& sizes) {
    json out = json::object();
    for (const auto& [axis, size] : sizes) out[derived.diagram.axis(axis).name] = size;
    return out;
}

json level_json(const Derived& derived, const KernelOnMachine& cost, const LevelLoad& load) {
    // A weight below zero (Theorem 3, A.2.3) is no rate, and its product with H no time.
    const bool is_pipe = load.level.seconds_per_byte > 0;
    const auto of_pipe = [&](double value) { return is_pipe ? json(value) : json(); };
    return {{"name", load.level.name},
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
            {"derivation", list_json(load.level.why, formula_json)}};
}

/// The closed form over all levels, or why there is none.
json multi_level_json(const Derived& derived, const MultiLevel& levels) {
    json out;
    out["closed"] = levels.best.closed;
    if (levels.best.closed) {
        const SymbolNames names = names_in(levels.best, derived.diagram);
        out["transfers"] = to_string(levels.best.transfers, names);
        out["seconds"] = levels.seconds;
        out["transfers_bytes"] = levels.bytes;
        out["terms"] = list_json(levels.terms, [&](const LevelTerm& term) {
            return json{{"alpha", to_string(term.term.alpha, names)},
                        {"beta", to_string(term.term.beta)},
                        {"alpha_value", term.alpha},
                        {"seconds", term.seconds()},
                        {"half_the_bytes", term.halved}};
        });
    } else {
        out["why_numeric"] = why_numeric(levels.best, derived.diagram);
    }
    out["derivation"] = list_json(levels.derivation, formula_json);
    return out;
}

json unit_json(const UnitLoad& unit) {
    return {{"unit", unit.rate.unit},        {"type", std::string(name(unit.rate.type))},
            {"operations", unit.operations}, {"per_clock", unit.rate.per_clock},
            {"seconds", unit.seconds},       {"expected_s", unit.expected_s},
            {"overhead_s", unit.overhead_s}};
}

json link_json(const LinkSaving& saving) {
    const auto choice_json = [](const LinkSaving::Choice& choice) {
        return json{
            {"size", choice.link.size}, {"bytes_per_s", choice.link.bytes_per_s}, {"saving_seconds", choice.saved_s}};
    };
    return {{"name", saving.link},
            {"from", saving.from},
            {"best", saving.best},
            {"relieved_seconds", saving.relieved_s},
            {"advised_saving_seconds", saving.advised_s()},
            {"choices", list_json(saving.choices, choice_json)}};
}

json row_json(const IterationRow& row) {
    return {{"statement", row.statement},   {"unit", row.unit},           {"type", std::string(name(row.type))},
            {"operations", row.operations}, {"per_clock", row.per_clock}, {"clocks", row.clocks()}};
}

json overlap_json(const MachineFigures& figures) {
    double tensor = 0, tensor_operations = 0;
    for (const IterationRow& row : figures.iteration)
        if (row.unit == "tensor") tensor += row.clocks(), tensor_operations += row.operations;
    const Overlap beside = overlap(figures.iteration, figures.special_overhead);
    const Machine& machine = *figures.machine;
    return {{"tensor_clocks", beside.tensor_clocks},
            {"special_clocks", beside.special_clocks},
            {"overhead", figures.special_overhead},
            {"between_groups_clocks", beside.between_groups},
            {"within_group_clocks", beside.within_group},
            {"tensor_flop_per_s",
             tensor > 0 ? tensor_operations / tensor * machine.cores.value * machine.clock_hz.value : 0.0}};
}

json bounds_json(const Derived& derived, const MachineFigures& figures) {
    const Bounds& limits = figures.limits;
    json out = {{"group_at_least", json::object()},
                {"memory_at_least", json::object()},
                {"axis_at_least", json::object()},
                {"derivation", json::array()}};
    for (const GroupBound& bound : limits.groups) {
        out["group_at_least"][bound.level] = bound.at_least;
        out["derivation"].push_back(formula_json(bound.formula));
    }
    for (const TermBound& bound : limits.terms) {
        if (bound.symbol == memory_symbol) {
            // Several terms with M: the one that asks for most.
            json& least = out["memory_at_least"][bound.level];
            least = std::max(least.is_null() ? 0.0 : least.get<double>(), bound.at_least);
        } else {
            out["axis_at_least"][bound.level][symbol_names(derived.diagram)(bound.symbol)] = bound.at_least;
        }
        out["derivation"].push_back(formula_json(bound.formula));
    }
    out["io"] = list_json(limits.io, [](const IoBound& bound) {
        return json{{"formula", bound.formula}, {"source", bound.source}, {"values", bound.values}};
    });
    if (!limits.io.empty() && figures.fewest_values) out["io_gap"] = *figures.fewest_values / limits.io[0].values;
    return out;
}

}  // namespace

nlohmann::json machine_json(const Derived& derived, const MachineFigures& figures) {
    const KernelOnMachine& cost = *figures.cost;
    json out;
    out["sizes"] = {{"group", sizes_json(derived, cost.group)},
                    {"stream", sizes_json(derived, cost.stream)},
                    {"groups", cost.num_groups},
                    {"splits", cost.splits},
                    {"memory_bytes", cost.memory_bytes},
                    {"core_bytes", cost.core_bytes},
                    {"accumulator_bytes", cost.accumulator_bytes},
                    {"accumulator_capacity_bytes", cost.accumulator_capacity}};
    out["divisors"] = list_json(cost.divisors.constraints, [&](const Divisor& d) {
        return json{{"axis", derived.diagram.axis(d.axis).name}, {"value", d.value}, {"cause", d.cause}};
    });
    out["levels"] = list_json(cost.levels, [&](const LevelLoad& load) { return level_json(derived, cost, load); });
    out["multi_level"] = multi_level_json(derived, figures.levels);
    out["units"] = list_json(cost.units, unit_json);
    out["ceilings"] = list_json(
        cost.ceilings, [](const Ceiling& ceiling) { return json{{"what", ceiling.what}, {"seconds", ceiling.seconds}}; });
    out["time"] = {{"bound_s", cost.bound_s},   {"starts_s", cost.starts_s}, {"seconds", cost.seconds},
                   {"bound_by", cost.bound_by}, {"margin", cost.margin},     {"latency_s", cost.latency_s},
                   {"launch_s", cost.launch_s}, {"wave", cost.wave},         {"run_fraction", cost.run_fraction}};
    out["cross_transfer"] = list_json(figures.links, link_json);
    out["iteration"] = list_json(figures.iteration, row_json);
    out["overlap"] = overlap_json(figures);
    out["bounds"] = bounds_json(derived, figures);
    return out;
}

}  // namespace napkin
