// What a kernel costs on a machine, as a part of its report.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/optimum_text.hpp"
#include "cost/report.hpp"
#include "diagram/symbol_names.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Json;
using report::Section;
using report::Value;

Value rate(double bytes_per_s) {
    return {bytes_per_s, bytes_per_s >= 1e12 ? fmt::format("{:.3g} TB/s", bytes_per_s / 1e12)
                                             : fmt::format("{:.3g} GB/s", bytes_per_s / 1e9)};
}

/// A formula's value in its unit.
std::string value_text(const Formula& f) {
    if (f.unit == "B") return bytes_text(f.value);
    if (f.unit == "s/B") return fmt::format("{:.4g} s/TB", f.value * 1e12);
    if (f.unit == "s") return report::seconds(f.value).text;
    return report::operations(f.value).text + (f.unit.empty() ? "" : " " + f.unit);
}

Json list_json(const std::vector<Formula>& formulas) {
    Json out = Json::array();
    for (const Formula& f : formulas)
        out.push_back({{"what", f.what},
                       {"formula", f.formula},
                       {"figures", f.figures},
                       {"value", f.value},
                       {"unit", f.unit},
                       {"rule", f.rule}});
    return out;
}

Json sizes_json(const Derived& derived, const std::map<AxisId, std::int64_t>& sizes) {
    Json out = Json::object();
    for (const auto& [axis, size] : sizes) out[derived.diagram.axis(axis).name] = size;
    return out;
}

/// What the group's and the stream's sizes are, and why.
void add_choice(Section& out, const Derived& derived, const MachineFigures& figures, const SymbolNames& names) {
    const KernelOnMachine& cost = *figures.cost;
    const auto sizes = [&](SymbolKind kind, const std::map<AxisId, std::int64_t>& of) -> Value {
        std::vector<std::string> parts;
        for (const auto& [axis, size] : of) parts.push_back(fmt::format("{} = {}", names(Symbol{kind, axis}), size));
        return {sizes_json(derived, of), join(parts, ", ")};
    };
    std::string groups = fmt::format("{} groups on {} cores", count_text(cost.num_groups), figures.machine->num_cores());
    if (cost.splits > 1) groups += fmt::format(", the stream split in {} and merged", cost.splits);
    if (cost.run_fraction < 1) groups += fmt::format(", {:.3g}% of the chunks run", 100 * cost.run_fraction);
    out.line({{"", "on", report::shown(figures.machine->name)},
              {"sizes/group", "", sizes(SymbolKind::group, cost.group)},
              {"sizes/stream", "", sizes(SymbolKind::stream, cost.stream)},
              {"sizes/memory_bytes",
               "M",
               {cost.memory_bytes, fmt::format("{} of {}", bytes_text(cost.memory_bytes), bytes_text(cost.core_bytes))}},
              {"sizes/groups", "", {cost.num_groups, groups}},
              {"sizes/splits", "", report::data(cost.splits)},
              {"sizes/core_bytes", "", report::data(cost.core_bytes)}},
             "   ");
    for (const auto* of : {&cost.group, &cost.stream})
        for (const auto& [axis, size] : *of)
            if (const std::string causes = cost.divisors.causes(axis); !causes.empty())
                out.text(fmt::format("  {} is a multiple of {}: {}", derived.diagram.axis(axis).name,
                                     cost.divisors.of(axis), causes));
    out.list("divisors", cost.divisors.constraints, [&](const Divisor& d) {
        return Json{{"axis", derived.diagram.axis(d.axis).name}, {"value", d.value}, {"cause", d.cause}};
    });
}

report::Table levels(const Derived& derived, const KernelOnMachine& cost) {
    // A weight below zero takes off what other levels count twice (Theorem 3, A.2.3): it is no rate, and its product
    // with H no time.
    using Load = const LevelLoad&;
    const auto of_pipe = [](Load load, const Value& value) {
        return load.level.seconds_per_byte > 0 ? value : Value{nullptr, "–"};
    };
    return report::table_of<LevelLoad>(
        "levels", "", cost.levels,
        {{"name", "level", [](Load l) { return report::words(l.level.name); }},
         {"rule", "rule", [](Load l) { return report::words(citation(l.level.rule)); }},
         {"memory_bytes", "M", [](Load l) { return report::bytes(l.level.memory_bytes); }},
         {"transfers_bytes", "H", [](Load l) { return report::bytes(l.transfers_bytes); }},
         {"weight_s_per_byte", "", [](Load l) { return report::data(l.level.seconds_per_byte); }},
         {"bytes_per_s", "rate", [&](Load l) { return of_pipe(l, rate(1 / l.level.seconds_per_byte)); }},
         {"seconds", "time", [&](Load l) { return of_pipe(l, report::seconds(l.seconds)); }},
         {"expected_s", "expected", [&](Load l) { return of_pipe(l, report::seconds(l.expected_s)); }},
         {"flop_per_byte", "FLOP/B", [&](Load l) { return report::number(cost.flops / l.transfers_bytes); }},
         {"ridge_flop_per_byte", "ridge",
          [&](Load l) { return of_pipe(l, report::number(ridge_flop_per_byte(cost, l))); }},
         {"group", "", [&](Load l) { return report::data(sizes_json(derived, l.group)); }},
         {"derivation", "", [](Load l) { return report::data(list_json(l.level.why)); }}});
}

report::Table units(const KernelOnMachine& cost) {
    using Load = const UnitLoad&;
    return report::table_of<UnitLoad>(
        "units", "", cost.units,
        {{"", "unit", [](Load u) { return report::shown(fmt::format("{} {}", u.rate.unit, name(u.rate.type))); }},
         {"unit", "", [](Load u) { return report::data(u.rate.unit); }},
         {"type", "", [](Load u) { return report::data(name(u.rate.type)); }},
         {"operations", "operations", [](Load u) { return report::operations(u.operations); }},
         {"per_clock", "a clock", [](Load u) { return report::number(u.rate.per_clock, 4); }},
         {"seconds", "time", [](Load u) { return report::seconds(u.seconds); }},
         {"expected_s", "expected", [](Load u) { return report::seconds(u.expected_s); }},
         {"overhead_s", "beside the operations",
          [](Load u) { return u.overhead_s > 0 ? report::seconds(u.overhead_s) : report::data(u.overhead_s); }}});
}

void add_time(Section& out, const KernelOnMachine& cost) {
    out.line({{"sizes/accumulator_bytes",
               "accumulators",
               {cost.accumulator_bytes,
                cost.accumulator_capacity > 0
                    ? fmt::format("{} of {}", bytes_text(cost.accumulator_bytes), bytes_text(cost.accumulator_capacity))
                    : ""}},
              {"sizes/accumulator_capacity_bytes", "", report::data(cost.accumulator_capacity)}});
    out.list("ceilings", cost.ceilings, [](const Ceiling& c) { return Json{{"what", c.what}, {"seconds", c.seconds}}; });
    const bool has_next = cost.ceilings.size() > 1 && cost.margin > 1 && cost.bound_by == cost.ceilings[0].what;
    const std::string next = has_next ? fmt::format(" ({:.3g}× {})", cost.margin, cost.ceilings[1].what) : "",
                      waits = cost.wave > 1.005 ? fmt::format("{:.3g}% of it", 100 * (1 - 1 / cost.wave)) : "";
    out.line({{"time/bound_s", "bound", report::seconds(cost.bound_s)},
              {"time/seconds", "expected", report::seconds(cost.seconds)},
              {"time/bound_by", "bound by", {cost.bound_by, cost.bound_by + next}},
              {"time/margin", "", report::data(cost.margin)},
              {"time/wave", "cores wait for the last groups", {cost.wave, waits}},
              {"time/latency_s", "latency", report::seconds(cost.latency_s)},
              {"time/launch_s", "launch", report::seconds(cost.launch_s)},
              {"time/starts_s", "starts of groups",
               cost.starts_s > 0 ? report::seconds(cost.starts_s) : report::data(cost.starts_s)},
              {"time/run_fraction", "", report::data(cost.run_fraction)}});
}

void add_bounds(Section& out, const MachineFigures& figures, const SymbolNames& names) {
    const Bounds& limits = figures.limits;
    Json of_groups = Json::object(), of_memory = Json::object(), of_axes = Json::object();
    std::vector<Formula> formulas;
    for (const GroupBound& bound : limits.groups) {
        const auto letters = mapped<std::string>(bound.axes, [&](AxisId axis) { return names(group_symbol(axis)); });
        out.text(fmt::format("{} ≥ {:.4g} keeps {} from binding (B.0.1)", join(letters, "·"), bound.at_least, bound.level));
        of_groups[bound.level] = bound.at_least;
        formulas.push_back(bound.formula);
    }
    for (const TermBound& bound : limits.terms) {
        const bool is_memory = bound.symbol == memory_symbol;
        const std::string letter = names(bound.symbol);
        // Several terms with one letter: the one that asks for most.
        const bool asks_for_most = none_of(limits.terms, [&](const TermBound& other) {
            return other.level == bound.level && other.symbol == bound.symbol && other.at_least > bound.at_least;
        });
        if (asks_for_most)
            out.text(fmt::format("{} ≥ {} for {}: {} of H*/K (B.1)", is_memory ? "M_" + bound.level : letter,
                                 report::operations(bound.at_least).text, bound.level, to_string(bound.term, names)));
        if (!is_memory)
            of_axes[bound.level][letter] = bound.at_least;
        else if (asks_for_most)
            of_memory[bound.level] = bound.at_least;
        formulas.push_back(bound.formula);
    }
    out.list("bounds/io", limits.io, [](const IoBound& bound) {
        return Json{{"formula", bound.formula}, {"source", bound.source}, {"values", bound.values}};
    });
    if (!limits.io.empty()) {
        const double least = limits.io[0].values;
        std::string text = fmt::format("lower bound {} values ({})", count_text(std::round(least)), limits.io[0].formula);
        if (const auto& fewest = figures.fewest_values) {
            const bool is_bound = !figures.why_fewest_is_a_bound.empty();
            text += fmt::format("; the fewest {}{}, {}{:.3g} times it", is_bound ? "≤ " : "",
                                count_text(std::round(*fewest)), is_bound ? "at most " : "", *fewest / least);
            out.data("bounds/io_gap", *fewest / least);
        }
        out.text(text);
    }
    out.data("bounds/group_at_least", std::move(of_groups)), out.data("bounds/memory_at_least", std::move(of_memory));
    out.data("bounds/axis_at_least", std::move(of_axes));
    out.data("bounds/derivation", list_json(formulas));
}

void add_links(Section& out, const MachineFigures& figures) {
    Json links = Json::array();
    for (const LinkSaving& saving : figures.links) {
        Json choices = Json::array();
        for (const LinkSaving::Choice& c : saving.choices)
            choices.push_back({{"size", c.link.size}, {"bytes_per_s", c.link.bytes_per_s}, {"saving_seconds", c.saved_s}});
        links.push_back({{"name", saving.link},
                         {"from", saving.from},
                         {"best", saving.best},
                         {"relieved_seconds", saving.relieved_s},
                         {"advised_saving_seconds", saving.advised_s()},
                         {"choices", std::move(choices)}});
        if (saving.advised_s() > 0)
            out.text(fmt::format("{} of {} beside {}: saves up to {} of the {} of transfers (Theorem 3)", saving.link,
                                 saving.best, saving.from, seconds_text(saving.advised_s()),
                                 seconds_text(saving.relieved_s)));
    }
    out.data("cross_transfer", std::move(links));
}

/// The closed form over all levels, or why there is none; and what overlaps in a chunk.
void add_for_programs(Section& out, const Derived& derived, const MachineFigures& figures) {
    const MultiLevel& levels = figures.levels;
    Json closed = {{"closed", levels.best.closed}};
    if (levels.best.closed) {
        const SymbolNames names = names_in(levels.best, derived.diagram);
        Json terms = Json::array();
        for (const LevelTerm& term : levels.terms)
            terms.push_back({{"alpha", to_string(term.term.alpha, names)},
                             {"beta", to_string(term.term.beta)},
                             {"alpha_value", term.alpha},
                             {"seconds", term.seconds()},
                             {"half_the_bytes", term.halved}});
        closed["transfers"] = to_string(levels.best.transfers, names);
        closed["seconds"] = levels.seconds, closed["transfers_bytes"] = levels.bytes, closed["terms"] = std::move(terms);
    } else {
        closed["why_numeric"] = why_numeric(levels.best, derived.diagram);
    }
    closed["derivation"] = list_json(levels.derivation);
    out.data("multi_level", std::move(closed));
    double tensor = 0, tensor_operations = 0;
    for (const IterationRow& row : figures.iteration)
        if (row.unit == "tensor") tensor += row.clocks(), tensor_operations += row.operations;
    const Overlap beside = overlap(figures.iteration, figures.special_overhead);
    const Machine& machine = *figures.machine;
    out.data("overlap", {{"tensor_clocks", beside.tensor_clocks},
                         {"special_clocks", beside.special_clocks},
                         {"overhead", figures.special_overhead},
                         {"between_groups_clocks", beside.between_groups},
                         {"within_group_clocks", beside.within_group},
                         {"tensor_flop_per_s",
                          tensor > 0 ? tensor_operations / tensor * machine.cores.value * machine.clock_hz.value : 0.0}});
}

/// All formulas of the derivation, numbers put in.
report::Table derivation(const MachineFigures& figures) {
    std::vector<Formula> all;
    for (const LevelLoad& load : figures.cost->levels) {
        append(all, load.level.why);
        all.push_back({(load.level.seconds_per_byte < 0 ? "ΔT_" : "T_") + load.level.name, "Ḣ⁻¹·H",
                       fmt::format("{:.4g} s/TB · {}", load.level.seconds_per_byte * 1e12, bytes_text(load.transfers_bytes)),
                       load.seconds, "s", "Eq. 5"});
    }
    append(all, figures.levels.derivation);
    for (const GroupBound& bound : figures.limits.groups) all.push_back(bound.formula);
    for (const TermBound& bound : figures.limits.terms) all.push_back(bound.formula);
    for (const LinkSaving& saving : figures.links)
        for (const LinkSaving::Choice& choice : saving.choices)
            all.push_back({fmt::format("ΔT({} = {}, {})", saving.link, choice.link.size, saving.from),
                           "(Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c))·(H*(M_c) − H*(N·M_c))",
                           fmt::format("{:.4g} s/TB·({} − {}), link {}", choice.link.saved_seconds_per_byte * 1e12,
                                       bytes_text(choice.alone_bytes), bytes_text(choice.joined_bytes),
                                       rate(choice.link.bytes_per_s).text),
                           choice.saved_s, "s", "Theorem 3"});
    report::Table out{"", "derivation", std::vector<report::Column>(5), {}};
    for (const Formula& f : all) {
        const bool no_value = f.value == 0 && f.unit.empty();
        out.rows.push_back({report::shown(f.what), report::shown("= " + f.formula),
                            report::shown(f.figures.empty() ? "" : (no_value ? "  " : "= ") + f.figures),
                            report::shown(no_value ? "" : "= " + value_text(f)), report::shown(f.rule)});
    }
    return out;
}

report::Table iteration(const MachineFigures& figures) {
    using Row = const IterationRow&;
    return report::table_of<IterationRow>(
        "iteration", "", figures.iteration,
        {{"statement", "one chunk, one row", [](Row r) { return report::words(r.statement); }},
         {"unit", "unit", [](Row r) { return Value{r.unit, fmt::format("{} {}", r.unit, name(r.type))}; }},
         {"type", "", [](Row r) { return report::data(name(r.type)); }},
         {"operations", "operations", [](Row r) { return report::number(r.operations, 6); }},
         {"per_clock", "a clock", [](Row r) { return report::number(r.per_clock, 4); }},
         {"clocks", "clocks", [](Row r) { return report::number(r.clocks(), 4); }}});
}

}  // namespace

void add_machine(Section& out, const Derived& derived, const MachineFigures& figures, bool explain) {
    const SymbolNames names = symbol_names(derived.diagram);
    add_choice(out, derived, figures, names);
    Section inner{"", "", 2, {}};
    inner.table(levels(derived, *figures.cost));
    inner.table(units(*figures.cost));
    add_time(inner, *figures.cost);
    add_bounds(inner, figures, names);
    add_links(inner, figures);
    add_for_programs(inner, derived, figures);
    if (explain) inner.table(derivation(figures));
    inner.table(explain ? iteration(figures) : for_programs(iteration(figures)));
    out.add(std::move(inner));
}

}  // namespace napkin
