#include "steps/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {

std::string row_names(const ConfigurationRow& row) {
    std::vector<std::string> places;
    for (const std::vector<std::string>& place : row.places) places.push_back(join(place, ", "));
    return join(places, "; ");
}

namespace {

using report::Json;
using report::Section;
using report::Value;

/// As the paper's tables print: at most two places behind the point.
std::string two_places(double x) {
    std::string text = fmt::format("{:.2f}", x);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}
Value figure(double x) { return {x, two_places(x)}; }
Value kb(double bytes) { return {bytes, two_places(bytes / 1024)}; }

void add_steps(Section& out, const KernelSteps& k) {
    for (std::size_t i = 0; i < k.steps.size(); ++i) {
        const PaperStep& step = k.steps[i];
        using Change = const StepChange&;
        Section part{"steps/[]", fmt::format("{}. {}", i + 1, step.name), 1, {}}, changes{"", "", 2, {}}, found = changes;
        changes.table(report::table_of<StepChange>("changes", "", step.changes,
                                                   {{"what", "", [](Change c) { return report::words(c.what); }},
                                                    {"why", "", [](Change c) { return report::words(c.why); }}}));
        const bool failed = !step.fault.empty(), holds = !failed && step.unkept.empty();
        found.line({{"validation",
                     failed  ? "FAILS:"
                     : holds ? "holds:"
                             : "does not hold:",
                     report::words(step.validation)},
                    {"", "", report::shown(failed ? step.fault : step.unkept)},
                    {"fault", "", report::data(step.fault)},
                    {"unkept", "", report::data(step.unkept)}},
                   ": ");
        part.data("name", step.name);
        part.add(std::move(changes));
        part.line({{"program", "", report::data(step.program)}});
        part.text(step.program);
        part.add(std::move(found));
        out.add(std::move(part));
    }
}

report::Table configuration_table(const KernelSteps& k) {
    using Row = const ConfigurationRow&;
    static constexpr std::string_view held_names[] = {"memory", "fragments", "threads"};
    const auto of_bytes = [](std::int64_t bytes, int stages) -> Value {
        return {bytes, bytes == 0 ? "" : std::to_string(bytes) + (stages > 1 ? fmt::format(" (×{})", stages) : "")};
    };
    return report::table_of<ConfigurationRow>(
        "configuration", "Table 1: configuration", k.configuration,
        {{"variable", "variable", [](Row r) { return Value{r.places.front().front(), row_names(r)}; }},
         {"places", "", [](Row r) { return report::data(r.places); }},
         {"size", "size", [](Row r) { return report::words(r.size); }},
         {"values", "", [](Row r) { return report::data(r.values); }},
         {"type", "type", [](Row r) { return report::words(name(r.type)); }},
         {"held", "level",
          [&](Row r) {
              return Value{held_names[at(r.at)], r.at == HeldAt::memory      ? k.budgets[0].level
                                                 : r.at == HeldAt::fragments ? "registers, fragments"
                                                                             : "registers"};
          }},
         {"stages", "", [](Row r) { return report::data(r.stages); }},
         {"block_bytes", "M_TB bytes", [&](Row r) { return of_bytes(r.block_bytes, r.stages); }},
         {"warpgroup_bytes", "M_WG bytes", [&](Row r) { return of_bytes(r.warpgroup_bytes, r.stages); }}});
}

report::Table budget_table(const KernelSteps& k) {
    using Budget = const LevelBudget&;
    return report::table_of<LevelBudget>(
        "budgets", fmt::format("Table 2: budgets, in KB; excess at N = {}", k.num_warpgroups), k.budgets,
        {{"level", "level", [](Budget b) { return report::words(b.level); }},
         {"", "of", [](Budget b) { return report::shown(b.what); }},
         {"capacity_bytes", "M_max", [](Budget b) { return kb(b.capacity_bytes); }},
         {"block_bytes", "M_TB", [](Budget b) { return kb(b.block_bytes); }},
         {"warpgroup_bytes", "M_WG", [](Budget b) { return kb(b.warpgroup_bytes); }},
         {"warpgroups", "N_max", [](Budget b) { return Value{b.fit(), b.fit_text()}; }},
         {"excess_block_bytes", "excess a block", [](Budget b) { return kb(b.excess_block); }},
         {"excess_warpgroup_bytes", "a warpgroup", [](Budget b) { return kb(b.excess_warpgroup); }},
         {"excess_thread_bytes", "a thread",
          [](Budget b) { return Value{b.excess_thread, fmt::format("{:.0f} B", b.excess_thread)}; }}});
}

report::Table throughput_table(const KernelSteps& k) {
    using Row = const ThroughputRow&;
    return report::table_of<ThroughputRow>(
        "rows", "Table 3: throughput, for one row and chunk", k.throughput.rows,
        {{"statement", "operation", [](Row r) { return report::words(r.statement); }},
         {"unit", "unit", [](Row r) { return Value{r.unit, fmt::format("{} {}", r.unit, name(r.type))}; }},
         {"type", "", [](Row r) { return report::data(name(r.type)); }},
         {"operations", "operations", [](Row r) { return figure(r.operations); }},
         {"per_clock", "a clock", [](Row r) { return figure(r.per_clock); }},
         {"clocks", "clocks", [](Row r) { return figure(r.clocks()); }}});
}

void add_registers(Section& out, const RegisterEstimate& r) {
    const bool spills = r.total() > r.limit;
    out.line({{"registers/total", "registers a thread:", figure(r.total())},
              {"registers/accumulators", "=", {r.accumulators, two_places(r.accumulators) + " of accumulators"}},
              {"registers/values", "+", {r.values, two_places(r.values) + " of values"}},
              {"registers/addresses", "+", {r.addresses, two_places(r.addresses) + " of addresses,"}},
              {"registers/limit", "of", {r.limit, two_places(r.limit) + ":"}},
              {"registers/limit_source", "", report::words(r.limit_reason)}},
             " ");
    out.line({{"registers/addresses_source", "addresses are", report::words(r.addresses_reason)}});
    out.line({{"registers/spills",
               "",
               {spills,
                spills ? fmt::format("it will spill: {:.0f} registers more than there are", std::ceil(r.total() - r.limit))
                       : two_places(std::floor(r.limit - r.total())) + " left for what the assembler needs besides"}}});
}

void add_throughput(Section& out, const StepReport& steps, const Throughput& t) {
    using Unit = const UnitTotal&;
    if (!t.units.empty()) out.text("\n");
    out.table(report::table_of<UnitTotal>(
        "units", "", t.units,
        {{"unit", "unit", [](Unit u) { return report::words(u.unit); }},
         {"operations", "operations", [](Unit u) { return figure(u.operations); }},
         {"clocks", "clocks", [](Unit u) { return figure(u.clocks); }},
         {"", "room for overhead",
          [&](Unit u) { return u.clocks > 0 ? report::percent(t.lower_bound() / u.clocks - 1) : report::shown(""); }},
         {"clocks_with_overhead", "clocks with overhead",
          [](Unit u) { return u.overhead.share > 0 ? figure(u.with_overhead()) : report::data(u.with_overhead()); }},
         {"overhead", "overhead",
          [](Unit u) {
              return u.overhead.share > 0 ? report::percent(u.overhead.share) : report::data(u.overhead.share);
          }},
         {"overhead_source", "of", [](Unit u) { return report::words(u.overhead.source); }}}));
    const auto busy = [&](double clocks) -> Value {
        const bool says = t.overlap.special_clocks > 0 && t.overlap.tensor_clocks > 0;
        return {clocks, says ? fmt::format("{} clocks, the tensor cores busy {:.1f}% of them", two_places(clocks),
                                           100 * t.overlap.tensor_clocks / clocks)
                             : ""};
    };
    out.line(
        {{"lower_bound_clocks",
          "lower bound",
          {t.lower_bound(),
           t.units.empty() ? "" : fmt::format("{} clocks, of {}", two_places(t.lower_bound()), t.units.front().unit)}}});
    out.line({{"tensor_flop_per_s",
               "ideal throughput",
               {t.tensor_flop_per_s, t.tensor_flop_per_s > 0
                                         ? fmt::format("{:.2f} PFLOP/s on {}", t.tensor_flop_per_s / 1e15, steps.machine)
                                         : ""}}});
    out.line({{"overlap/tensor_clocks", "", report::data(t.overlap.tensor_clocks)},
              {"overlap/special_clocks", "", report::data(t.overlap.special_clocks)},
              {"overlap/between_groups", "warpgroups beside each other, with overheads:", busy(t.overlap.between_groups)}});
    out.line({{"overlap/within_group", "each by itself:", busy(t.overlap.within_group)}});
    Json floors = Json::object();
    for (const RowFloor& f : t.floors) {
        floors[f.level] = f.rows;
        out.text(
            fmt::format("{:.1f} rows a block keep {} from binding (B.0.1): {:.0f} B a chunk beside {} clocks a row",
                        f.rows, f.level, f.bytes, two_places(f.clocks)));
    }
    out.data("rows_at_least", std::move(floors));
}

std::vector<std::string> sizes_of(const StepReport& steps, const KernelSteps& k, const char* format) {
    std::vector<std::string> out;
    for (const CutSize& size : k.sizes)
        out.push_back(fmt::format(fmt::runtime(format), to_string(size, steps.axes), size.size));
    return out;
}

Section kernel_report(const StepReport& steps, const KernelSteps& k) {
    Section out{
        "kernels/[]",
        fmt::format("kernel {}   {}   {} warpgroup{} of {} threads", k.kernel, join(sizes_of(steps, k, "{} = {}"), ", "),
                    k.num_warpgroups, k.num_warpgroups == 1 ? "" : "s", k.warpgroup_threads),
        2,
        {}};
    out.data("name", k.kernel), out.data("warpgroups", k.num_warpgroups);
    out.data("warpgroup_threads", k.warpgroup_threads);
    for (const CutSize& size : k.sizes) out.data("sizes/" + to_string(size, steps.axes), size.size);
    add_steps(out, k);
    out.list("divisors", k.divisors.constraints, [&](const SizeDivisor& d) {
        return Json{{"size", to_string(d.size, steps.axes)}, {"value", d.value}, {"cause", d.cause}};
    });
    out.add(tables_report(steps, k));
    out.data("instructions", k.instructions);
    if (!k.order.empty()) out.text("\n");
    out.line({{"order_of_issue", "order of issue:", report::words(k.order)}});
    out.data("charts", Json::array());
    for (const StreamChart& chart : k.charts) out.add(report_of(chart, steps.axes[at(chart.stream)]));
    const SteadyState& steady = k.steady;
    if (steady.seconds > 0) out.text("\n");
    out.line({{"steady_state/seconds",
               "all groups in their steady state:",
               {steady.seconds, steady.seconds > 0 ? seconds_text(steady.seconds) : ""}},
              {"steady_state/tensor_flop_per_s",
               "",
               {steady.tensor_flop_per_s,
                steady.seconds > 0 ? fmt::format("{:.0f} TFLOP/s", steady.tensor_flop_per_s / 1e12) : ""}},
              {"steady_state/bound_by", "bound by", {steady.bound_by, steady.seconds > 0 ? steady.bound_by : ""}}});
    if (steady.seconds > 0)
        out.text(fmt::format("{:.0f} groups of {:.4g} clocks on {:.0f} cores; heads, tails and the launch come on top",
                             steady.groups, steady.group_clocks, steady.cores));
    out.data("steady_state/group_clocks", steady.group_clocks), out.data("steady_state/groups", steady.groups);
    Section schedule{"", "schedule, as --schedule reads it", 2, {}};
    schedule.text(k.schedule);
    out.add(std::move(schedule));
    out.data("schedule", k.schedule);
    return out;
}

/// Machines with the fastest plan first; those without a plan, or without steps, behind them.
std::vector<std::size_t> by_time(const std::vector<StepsOnMachine>& machines) {
    std::vector<std::size_t> order(machines.size());
    iota(order, std::size_t{0});
    const auto seconds = [&](std::size_t m) {
        const double none = std::numeric_limits<double>::infinity();
        return machines[m].report ? machines[m].report->expected_s.value_or(none) : none;
    };
    stable_sort(order, [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
    return order;
}

}  // namespace

Section tables_report(const StepReport& steps, const KernelSteps& k) {
    Section out, registers{"", "", 2, {}}, throughput{"throughput", "", 0, {}}, rates = registers;
    out.table(configuration_table(k)), out.table(budget_table(k));
    add_registers(registers, k.registers);
    out.add(std::move(registers));
    throughput.table(throughput_table(k));
    add_throughput(rates, steps, k.throughput);
    throughput.add(std::move(rates));
    out.add(std::move(throughput));
    return out;
}

Section report_of(const StepReport& steps) {
    Section out;
    out.text(fmt::format("steps of {} on {}{}", steps.diagram, steps.machine,
                         steps.expected_s         ? ": the plan takes " + seconds_text(*steps.expected_s)
                         : !steps.no_plan.empty() ? ", of the paper's hierarchy: " + steps.no_plan
                                                  : ""));
    out.data("diagram", steps.diagram), out.data("machine", steps.machine), out.data("kernels", Json::array());
    if (steps.expected_s) out.data("seconds", *steps.expected_s);
    if (!steps.no_plan.empty()) out.data("no_plan", steps.no_plan);
    for (const KernelSteps& k : steps.kernels) out.add(kernel_report(steps, k));
    return out;
}

Section report_of(const std::vector<StepsOnMachine>& machines) {
    Section out;
    const auto first = find_if(machines, [](const StepsOnMachine& m) { return m.report.has_value(); });
    if (first != machines.end())
        out.text(fmt::format("steps of {} on {} machines\n\n", first->report->diagram, machines.size()));
    report::Table table{"", "", {}, {}};
    for (const char* head : {"machine", "plan", "kernel", "steady state", "TFLOP/s", "bound by", "products", "sizes",
                             "warpgroups", "registers", "rates"})
        table.columns.push_back({"", head});
    std::string left_out;
    for (const std::size_t m : by_time(machines)) {
        const StepsOnMachine& of = machines[m];
        if (!of.report) {
            left_out += fmt::format("{} has no steps: {}\n", of.machine, of.why.message);
            continue;
        }
        for (const KernelSteps& k : of.report->kernels) {
            std::vector<std::string> sizes;
            for (const CutSize& size : k.sizes)
                if (size.letter != 't')
                    sizes.push_back(fmt::format("{} {}", to_string(size, of.report->axes), size.size));
            const bool has_chart = k.steady.seconds > 0;
            const std::string spills = k.registers.total() > k.registers.limit ? ", spills" : "";
            table.rows.push_back(
                {report::words(of.machine),
                 of.report->expected_s ? report::seconds(*of.report->expected_s) : report::shown(),
                 report::words(k.kernel), has_chart ? report::seconds(k.steady.seconds) : report::shown(),
                 has_chart ? Value{k.steady.tensor_flop_per_s, fmt::format("{:.0f}", k.steady.tensor_flop_per_s / 1e12)}
                           : report::shown(),
                 has_chart ? report::words(k.steady.bound_by) : report::shown(),
                 k.instructions.empty() ? report::shown() : report::words(join(k.instructions, ", ")),
                 report::words(join(sizes, ", ")), report::whole(k.num_warpgroups),
                 report::words(
                     fmt::format("{} of {}{}", two_places(k.registers.total()), two_places(k.registers.limit), spills)),
                 report::words(of.rates.text())});
        }
    }
    out.table(std::move(table));
    out.text(
        left_out +
        "\nthe plan has all kernels with heads, tails and launches; the steady state is that of all groups of one");
    out.list("machines", machines, [](const StepsOnMachine& of) {
        Json entry{{"machine", of.machine}, {"rates", of.rates.text()}};
        entry.update(of.report ? to_json(report_of(*of.report)) : Json{{"error", of.why.message}});
        return entry;
    });
    return out;
}

}  // namespace napkin
