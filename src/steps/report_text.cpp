#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "steps/report.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// As the paper's tables print: at most two places behind the point.
std::string two_places(double x) {
    std::string text = fmt::format("{:.2f}", x);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}
std::string kb(double bytes) { return two_places(bytes / 1024); }

std::string_view level_name(HeldAt at, const KernelSteps& k) {
    return at == HeldAt::memory      ? std::string_view(k.budgets[0].level)
           : at == HeldAt::fragments ? "registers, fragments"
                                     : "registers";
}

std::string indented(const std::string& text, const std::string& by) {
    std::string out;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        out += by + text.substr(begin, end - begin) + "\n";
    }
    return out;
}

std::string steps_text(const KernelSteps& k) {
    std::string out;
    for (std::size_t i = 0; i < k.steps.size(); ++i) {
        const PaperStep& step = k.steps[i];
        out += fmt::format("\n  {}. {}\n", i + 1, step.name);
        std::vector<std::vector<std::string>> rows;
        for (const StepChange& change : step.changes) rows.push_back({change.what, change.why});
        out += table(rows, {}, "     ");
        out += indented(step.program, "   ");
        const std::string& found = step.fault.empty() ? step.unkept : step.fault;
        out += fmt::format("     {}: {}{}\n",
                           found.empty()        ? "holds"
                           : step.fault.empty() ? "does not hold"
                                                : "FAILS",
                           step.validation, found.empty() ? "" : ": " + found);
    }
    return out;
}

/// "P_M; P_M_old, delta": places, each with who takes it in turn.
std::string places_text(const ConfigurationRow& row) {
    std::vector<std::string> places;
    for (const auto& place : row.places) places.push_back(join(place, ", "));
    return join(places, "; ");
}

std::string configuration_text(const KernelSteps& k) {
    std::vector<std::vector<std::string>> rows{{"variable", "size", "type", "level", "M_TB bytes", "M_WG bytes"}};
    const auto bytes_of = [](std::int64_t bytes, int stages) {
        return bytes == 0 ? std::string() : std::to_string(bytes) + (stages > 1 ? fmt::format(" (×{})", stages) : "");
    };
    for (const ConfigurationRow& r : k.configuration)
        rows.push_back({places_text(r), r.size, std::string(name(r.type)), std::string(level_name(r.at, k)),
                        bytes_of(r.block_bytes, r.stages), bytes_of(r.warpgroup_bytes, r.stages)});
    for (const LevelBudget& b : k.budgets)
        rows.push_back({b.what, "", "", b.level, kb(b.block_bytes) + " KB", kb(b.warpgroup_bytes) + " KB"});
    std::string out = "\n  configuration (Table 1)\n" + table(rows, {4, 5}, "     ");
    rows = {{"KB", "M_max", "M_TB", "M_WG", "N_max", fmt::format("excess at N = {}: a block", k.num_warpgroups),
             "a warpgroup", "a thread"}};
    for (const LevelBudget& b : k.budgets)
        rows.push_back({b.level, kb(b.capacity_bytes), kb(b.block_bytes), kb(b.warpgroup_bytes), b.fit_text(),
                        kb(b.excess_block), kb(b.excess_warpgroup), fmt::format("{:.0f} B", b.excess_thread)});
    out += "\n  budgets (Table 2)\n" + table(rows, {1, 2, 3, 4, 5, 6, 7}, "     ");
    const RegisterEstimate& r = k.registers;
    out += fmt::format("     registers a thread: {} = {} of accumulators + {} of values + {} of addresses, of {}: {}\n",
                       two_places(r.total()), two_places(r.accumulators), two_places(r.values), two_places(r.addresses),
                       two_places(r.limit), r.limit_reason);
    out += fmt::format("     addresses are {}\n", r.addresses_reason);
    out += r.total() > r.limit
               ? fmt::format("     it will spill: {:.0f} registers more than there are\n", std::ceil(r.total() - r.limit))
               : fmt::format("     {} left for what the assembler needs besides\n",
                             two_places(std::floor(r.limit - r.total())));
    return out;
}

std::string throughput_text(const StepReport& report, const KernelSteps& k) {
    const Throughput& t = k.throughput;
    if (t.rows.empty()) return "";
    std::vector<std::vector<std::string>> rows{{"operation", "unit", "operations", "a clock", "clocks"}};
    for (const ThroughputRow& r : t.rows)
        rows.push_back({r.statement, fmt::format("{} {}", r.unit, name(r.type)), two_places(r.operations),
                        two_places(r.per_clock), two_places(r.clocks())});
    std::string out = "\n  throughput (Table 3), for one row and chunk\n" + table(rows, {2, 3, 4}, "     ");
    rows = {{"unit", "operations", "clocks", "room for overhead"}};
    for (const UnitTotal& u : t.units) {
        rows.push_back({u.unit, two_places(u.operations), two_places(u.clocks),
                        u.clocks > 0 ? fmt::format("{:.0f}%", 100 * (t.lower_bound() / u.clocks - 1)) : ""});
        if (u.overhead.share > 0)
            rows.back().push_back(fmt::format("{} clocks with {:.0f}% overhead: {}", two_places(u.with_overhead()),
                                              100 * u.overhead.share, u.overhead.source));
    }
    for (auto& row : rows) row.resize(5);
    if (all_of(rows, [](const auto& row) { return row[4].empty(); }))
        for (auto& row : rows) row.pop_back();
    out += "\n" + table(rows, {1, 2, 3}, "     ");
    out += fmt::format("     lower bound {} clocks, of {}\n", two_places(t.lower_bound()), t.units.front().unit);
    if (t.tensor_flop_per_s > 0)
        out += fmt::format("     ideal throughput {:.2f} PFLOP/s on {}\n", t.tensor_flop_per_s / 1e15, report.machine);
    const auto busy = [&](double clocks) {
        return fmt::format("{} clocks, the tensor cores busy {:.1f}% of them", two_places(clocks),
                           100 * t.overlap.tensor_clocks / clocks);
    };
    if (t.overlap.special_clocks > 0 && t.overlap.tensor_clocks > 0) {
        out += fmt::format("     warpgroups beside each other, with overheads: {}\n", busy(t.overlap.between_groups));
        out += fmt::format("     each by itself: {}\n", busy(t.overlap.within_group));
    }
    for (const RowFloor& f : t.floors)
        out += fmt::format(
            "     {:.1f} rows a block keep {} from binding (B.0.1): {:.0f} B a chunk beside {} clocks a row\n", f.rows,
            f.level, f.bytes, two_places(f.clocks));
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

std::string to_string(const StepReport& report) {
    std::string out = fmt::format("steps of {} on {}{}\n", report.diagram, report.machine,
                                  report.expected_s         ? ": the plan takes " + seconds_text(*report.expected_s)
                                  : !report.no_plan.empty() ? ", of the paper's hierarchy: " + report.no_plan
                                                            : "");
    for (const KernelSteps& k : report.kernels) {
        std::vector<std::string> sizes;
        for (const CutSize& size : k.sizes)
            sizes.push_back(fmt::format("{} = {}", to_string(size, report.axes), size.size));
        out += fmt::format("\nkernel {}   {}   {} warpgroup{} of {} threads\n", k.kernel, join(sizes, ", "),
                           k.num_warpgroups, k.num_warpgroups == 1 ? "" : "s", k.warpgroup_threads);
        out += steps_text(k) + configuration_text(k) + throughput_text(report, k);
        if (!k.order.empty()) out += fmt::format("\n  order of issue: {}\n", k.order);
        for (const StreamChart& chart : k.charts) out += to_string(chart, report.axes[at(chart.stream)]);
        if (k.steady.seconds > 0)
            out += fmt::format(
                "\n  all groups in their steady state: {}, {:.0f} TFLOP/s, bound by {}: {:.0f} groups of {:.4g} clocks "
                "on {:.0f} cores; "
                "heads, tails and the launch come on top\n",
                seconds_text(k.steady.seconds), k.steady.tensor_flop_per_s / 1e12, k.steady.bound_by, k.steady.groups,
                k.steady.group_clocks, k.steady.cores);
        out += "\n  schedule, as --schedule reads it\n" + indented(k.schedule, "     ");
    }
    return out;
}

std::string to_string(const std::vector<StepsOnMachine>& machines) {
    std::vector<std::vector<std::string>> rows{{"machine", "plan", "kernel", "steady state", "TFLOP/s", "bound by",
                                                "products", "sizes", "warpgroups", "registers", "rates"}};
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
            rows.push_back(
                {of.machine, of.report->expected_s ? seconds_text(*of.report->expected_s) : "–", k.kernel,
                 has_chart ? seconds_text(k.steady.seconds) : "–",
                 has_chart ? fmt::format("{:.0f}", k.steady.tensor_flop_per_s / 1e12) : "–",
                 has_chart ? k.steady.bound_by : "–", k.instructions.empty() ? "–" : join(k.instructions, ", "),
                 join(sizes, ", "), std::to_string(k.num_warpgroups),
                 fmt::format("{} of {}{}", two_places(k.registers.total()), two_places(k.registers.limit), spills),
                 of.rates.text()});
        }
    }
    const auto first = find_if(machines, [](const StepsOnMachine& m) { return m.report.has_value(); });
    std::string out = first == machines.end()
                          ? ""
                          : fmt::format("steps of {} on {} machines\n\n", first->report->diagram, machines.size());
    out += rows.size() > 1 ? table(rows, {1, 3, 4, 8}) : "";
    return out + left_out +
           "\nthe plan has all kernels with heads, tails and launches; the steady state is that of all groups of one\n";
}

}  // namespace napkin
