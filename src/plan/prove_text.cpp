// The proof of a loop's order in words and numbers.
#include <fmt/format.h>

#include <algorithm>

#include "plan/prove.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string clocks_text(double clocks) { return fmt::format("{:.0f}", clocks); }

std::string body_text(const LoopProof& p) {
    std::vector<std::vector<std::string>> rows{{"statement", "own", "matrix", "latency", "beside", "registers"}};
    const ModuloBody& body = p.loop.body;
    for (std::size_t o = 0; o < body.operations.size(); ++o) {
        const ModuloOperation& op = body.operations[o];
        std::int64_t registers = 0;
        for (const ModuloValue& v : body.values)
            if (contains(v.writers, static_cast<int>(o))) registers += v.registers;
        rows.push_back({op.name, clocks_text(op.own), clocks_text(op.unit), clocks_text(op.latency),
                        clocks_text(op.latency_beside), fmt::format("{}", registers)});
    }
    return table(rows, {1, 2, 3, 4, 5}, "    ");
}

std::vector<std::string> order_row(const std::string& what, const LoopProof& p, const ProvenOrder& o) {
    return {what, clocks_text(o.interval), clocks_text(o.pace), fmt::format("{}", o.registers), order_text(p.loop, o.order)};
}

std::string bounds_text(const LoopProof& p) {
    const ModuloBounds& b = p.search.bounds;
    const ModuloBody& body = p.loop.body;
    std::vector<std::vector<std::string>> rows;
    rows.push_back({"interval", clocks_text(p.least_interval),
                    "units beside each other, and warpgroups at the longest of these paces"});
    for (const UnitBound& u : p.units)
        rows.push_back({"interval", clocks_text(u.clocks), fmt::format("{}: {}", u.unit, join(u.of, ", "))});
    rows.push_back({"pace", clocks_text(b.issue), "what the warpgroup computes itself, one statement after the other"});
    rows.push_back({"pace", clocks_text(b.unit), "its products, one after the other"});
    if (!b.cycle.empty())
        rows.push_back({"pace", clocks_text(b.recurrence), "recurrence: " + join(cycle_text(p), "; ")});
    if (b.copy >= 0) {
        const ModuloCopy& c = body.copies[at(b.copy)];
        rows.push_back({"pace", clocks_text(b.stages),
                        fmt::format("stages of {}: {} until it is there, and it is read, for {} of them", c.name,
                                    clocks_text(c.clocks), c.stages)});
    }
    rows.push_back(
        {"pace", clocks_text(b.measured), "of the products beside which threads compute no more is hidden (measured)"});
    return table(rows, {1}, "    ");
}

std::string loop_text(const LoopProof& p) {
    std::string out = fmt::format("\nkernel {}, loop over {} in chunks of {}\n", p.kernel, p.axis, p.chunk);
    if (!p.refusal.empty()) return out + fmt::format("  one order    {}\n", p.refusal);
    out += fmt::format("  clocks of a turn of one warpgroup that has its SM for itself; {:.0f} share one{}\n",
                       p.warpgroups, p.is_ping_pong ? " and take turns at the tensor cores" : "");
    out += body_text(p);
    out += "  no order has a shorter interval, or a faster pace, than\n" + bounds_text(p);
    std::vector<std::vector<std::string>> rows{{"", "interval", "pace", "registers", "order"}};
    rows.push_back(order_row("scheduled", p, p.scheduled));
    if (!p.is_scheduled_best()) rows.push_back(order_row("best", p, p.best));
    if (p.has_runner_up) rows.push_back(order_row("runner-up", p, p.runner_up));
    out += "  orders\n" + table(rows, {1, 2, 3}, "    ");
    return out + fmt::format("  proof        {}\n", proof_text(p));
}

}  // namespace

std::string order_text(const LoopBody& loop, const ModuloOrder& order) {
    const auto parts = mapped<std::string>(order.sequence, [&](int o) {
        return loop.body.operations[at(o)].name + (order.ahead[at(o)] > 0 ? "+" + std::to_string(order.ahead[at(o)]) : "");
    });
    return join(parts, ", ");
}

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

std::string to_string(const std::vector<LoopProof>& proofs) {
    std::string out;
    for (const LoopProof& p : proofs) out += loop_text(p);
    return out;
}

}  // namespace napkin
