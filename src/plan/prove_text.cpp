// The proof of a loop's order in words and numbers.
#include <fmt/format.h>

#include <algorithm>

#include "plan/prove.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Json;
using report::shown;
using report::Value;

std::string clocks_text(double clocks) { return fmt::format("{:.0f}", clocks); }
Value clocks(double value) { return {value, clocks_text(value)}; }

report::Table statements(const ModuloBody& body) {
    using Of = const ModuloOperation&;
    const auto registers = [&](Of o) {
        const auto writer = static_cast<int>(&o - body.operations.data());
        return report::whole(sum<std::int64_t>(
            body.values, [&](const ModuloValue& v) { return contains(v.writers, writer) ? v.registers : 0; }));
    };
    return report::table_of<ModuloOperation>(
        "statements", "", body.operations,
        {{"name", "statement", [](Of o) { return report::words(o.name); }},
         {"own_clocks", "own", [](Of o) { return clocks(o.own); }},
         {"matrix_clocks", "matrix", [](Of o) { return clocks(o.unit); }},
         {"latency_clocks", "latency", [](Of o) { return clocks(o.latency); }},
         {"latency_beside_clocks", "beside", [](Of o) { return clocks(o.latency_beside); }},
         {"", "registers", registers}});
}

report::Section bounds(const LoopProof& p) {
    const ModuloBounds& b = p.search.bounds;
    report::Section out{"", "", 2, {}};
    report::Table table{"", "", std::vector<report::Column>(3), {}};
    const auto add = [&](const std::string& path, double value, const std::string& of) {
        const std::string what = path.starts_with("pace") ? "pace" : "interval";
        if (!of.empty()) table.rows.push_back({shown(what), clocks(value), shown(of)});
        if (!path.empty()) out.data(path, value);
    };
    add("least_interval_clocks", p.least_interval,
        "units beside each other, and warpgroups at the longest of these paces");
    for (const UnitBound& u : p.units) {
        add("", u.clocks, fmt::format("{}: {}", u.unit, join(u.of, ", ")));
        out.data("interval_bounds/[]", {{"unit", u.unit}, {"clocks", u.clocks}, {"of", u.of}});
    }
    add("pace_bounds/issue", b.issue, "what the warpgroup computes itself, one statement after the other");
    add("pace_bounds/matrix", b.unit, "its products, one after the other");
    const std::vector<std::string> cycle = cycle_text(p);
    add("pace_bounds/recurrence/clocks", b.recurrence, cycle.empty() ? "" : "recurrence: " + join(cycle, "; "));
    out.data("pace_bounds/recurrence/cycle", cycle);
    const ModuloCopy copy = b.copy < 0 ? ModuloCopy{} : p.loop.body.copies[at(b.copy)];
    add("pace_bounds/stages/clocks", b.stages,
        b.copy < 0 ? ""
                   : fmt::format("stages of {}: {} until it is there, and it is read, for {} of them", copy.name,
                                 clocks_text(copy.clocks), copy.stages));
    out.data("pace_bounds/stages/of", copy.name);
    add("pace_bounds/measured", b.measured, "of the products beside which threads compute no more is hidden (measured)");
    out.table(std::move(table));
    return out;
}

/// With stage offsets: "S+1, O_acc, P_M+1, …"
std::string order_text(const LoopBody& loop, const ModuloOrder& order) {
    const auto parts = mapped<std::string>(order.sequence, [&](int o) {
        return loop.body.operations[at(o)].name + (order.ahead[at(o)] > 0 ? "+" + std::to_string(order.ahead[at(o)]) : "");
    });
    return join(parts, ", ");
}

report::Section orders(const LoopProof& p) {
    report::Section out{"", "", 2, {}};
    report::Table table{"", "", {{"", " "}, {"", "interval"}, {"", "pace"}, {"", "registers"}, {"", "order"}}, {}};
    const auto add = [&](const char* path, const char* label, const ProvenOrder& o) {
        const auto order = mapped<Json>(o.order.sequence, [&](int s) {
            return Json{{"statement", p.loop.body.operations[at(s)].name}, {"ahead", o.order.ahead[at(s)]}};
        });
        out.data(path,
                 {{"interval_clocks", o.interval}, {"pace_clocks", o.pace}, {"registers", o.registers}, {"order", order}});
        if (*label)
            table.rows.push_back({shown(label), clocks(o.interval), clocks(o.pace), report::whole(o.registers),
                                  shown(order_text(p.loop, o.order))});
    };
    add("scheduled", "scheduled", p.scheduled);
    add("best", p.is_scheduled_best() ? "" : "best", p.best);
    if (p.has_runner_up) add("runner_up", "runner-up", p.runner_up);
    out.table(std::move(table));
    return out;
}

}  // namespace

std::vector<std::string> cycle_text(const LoopProof& proof) {
    std::vector<std::string> out;
    for (const int e : proof.search.bounds.cycle) {
        const ModuloDependence& d = proof.loop.body.dependences[at(e)];
        const auto& names = proof.loop.body.operations;
        out.push_back(fmt::format("{} after {}{} ({})", names[at(d.to)].name, names[at(d.from)].name,
                                  d.distance > 0 ? " of the turn before" : "", d.why));
    }
    return out;
}

std::string proof_text(const LoopProof& p) {
    const ModuloSearch& s = p.search;
    const std::string counted = fmt::format(
        "{} orders were timed to their end and {} broken off, which no end makes better{}", s.looked_at, s.cut,
        s.over_registers > 0 ? fmt::format(" ({} take more than {} registers)", s.over_registers, p.loop.body.registers)
                             : "");
    std::string out;
    if (s.best.order.sequence.empty())
        out = fmt::format("no order has the registers: {}", counted);
    else if (s.best.pace <= s.bounds.pace() * (1 + 1e-9))
        out = fmt::format("the best pace is that of a bound, {} clocks: none is faster; {}",
                          clocks_text(s.bounds.pace()), counted);
    else if (s.is_exhaustive)
        out = fmt::format("no bound is as long, and all orders were excluded: {}", counted);
    else
        out = fmt::format("not proven: the search ended after {}, and no order is faster than {} clocks", counted,
                          clocks_text(s.bounds.pace()));
    if (!s.is_exhaustive && s.is_proven()) out += "; one of the same pace may have fewer registers";
    if (!p.is_scheduled_best() && !s.best.order.sequence.empty())
        out += fmt::format("; the scheduled one takes {:.1f}% longer and {} registers for {}",
                           100 * (p.scheduled.interval / p.best.interval - 1), p.scheduled.registers, p.best.registers);
    return out;
}

report::Section report_of(const LoopProof& p) {
    report::Section out{
        "proofs/[]", fmt::format("kernel {}, loop over {} in chunks of {}", p.kernel, p.axis, p.chunk), 2, {}};
    out.data("kernel", p.kernel), out.data("axis", p.axis), out.data("chunk", p.chunk);
    if (!p.refusal.empty()) {
        out.line({{"one_order", "one order   ", report::words(p.refusal)}});
        return out;
    }
    out.line(
        {{"warpgroups",
          "",
          {p.warpgroups, fmt::format("clocks of a turn of one warpgroup that has its SM for itself; {:.0f} share one{}",
                                     p.warpgroups, p.is_ping_pong ? " and take turns at the tensor cores" : "")}}});
    out.data("turns", p.is_ping_pong);
    out.add({"", "", 2, {statements(p.loop.body)}});
    out.text("no order has a shorter interval, or a faster pace, than");
    out.add(bounds(p));
    out.text("orders");
    out.add(orders(p));
    out.data("kernel_registers", p.kernel_registers);
    out.data("proof", {{"is_proven", p.search.is_proven()},
                       {"is_exhaustive", p.search.is_exhaustive},
                       {"timed", p.search.looked_at},
                       {"left", p.search.cut},
                       {"over_registers", p.search.over_registers},
                       {"is_scheduled_best", p.is_scheduled_best()}});
    out.line({{"proof/text", "proof       ", report::words(proof_text(p))}});
    return out;
}

}  // namespace napkin
