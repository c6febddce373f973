#include "napkin/machine_view.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "machine/figures.hpp"
#include "machine/peaks.hpp"
#include "machine/possible.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

std::string per_s_text(double value, const char* what) {
    if (value >= 1e12) return fmt::format("{:.4g} T{}/s", value / 1e12, what);
    return fmt::format("{:.4g} G{}/s", value / 1e9, what);
}

std::string range_text(const IntegerRange& range) {
    return range.from == range.to ? std::to_string(range.from)
                                  : fmt::format("{}..{} by {}", range.from, range.to, range.step);
}

using Rows = std::vector<std::vector<std::string>>;

class View {
public:
    View(const Machine& machine, bool color) : m_(machine), color_(color) {}

    std::string run() {
        std::string out = fmt::format("{}  {}\n", bold(m_.name, color_), m_.description);
        out += table(core(), {}, "  ");
        out += section("Levels", levels(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
        out += section("Units, operations a clock of one core and peak of all", units(), {2, 3});
        out += section("Ridge points, FLOP/byte: below, the pipe binds; above, the unit", ridge_points(), ridge_columns());
        out += section("Links among the instances of a level: cross transfer", cross_transfers(), {2, 3, 4});
        for (const std::string& word : slow_links(m_)) out += "  note: " + word + "\n";
        out += section("Matrix instructions", instructions(), {});
        out += section("Copies", copies(), {});
        out += section("Limits of threads", threads(), {});
        out += "\n" + bold("Sources", color_) + "\n";
        for (std::size_t i = 0; i < sources_.size(); ++i)
            out += fmt::format("{:>4} {}\n", fmt::format("[{}]", i + 1), sources_[i]);
        return out;
    }

private:
    std::string section(const std::string& title, const Rows& rows, const std::vector<std::size_t>& to_right) const {
        return rows.empty() ? "" : "\n" + bold(title, color_) + "\n" + table(rows, to_right, "  ");
    }
    std::string mark(const std::string& source) {
        if (source.empty()) return "";
        const auto found = find(sources_, source);
        const auto index = found - sources_.begin();
        if (found == sources_.end()) sources_.push_back(source);
        return fmt::format(" [{}]", index + 1);
    }
    std::string shown(const Figure& figure, Dimension dimension) {
        return quantity_text(figure.value, dimension) + mark(figure.source);
    }

    std::string share(const Figure& figure) {
        return figure.known() ? fmt::format("{:.3g}{}", figure.value, mark(figure.source)) : "";
    }

    /// Shares of the rate by the lines of a run.
    std::string runs(const Level& level) {
        std::vector<std::string> out;
        for (const auto& [lines, figure] : level.runs) out.push_back(fmt::format("{}: {}", lines, share(figure)));
        return join(out, ", ");
    }

    Rows core() {
        Rows rows;
        rows.push_back({"kind", m_.kind == MachineKind::gpu ? "gpu" : "cpu"});
        for (const FigureKey<Machine>& k : machine_figures()) {
            const Figure& figure = m_.*k.figure;
            if (!figure.known()) continue;
            std::string what = k.key;
            std::replace(what.begin(), what.end(), '_', ' ');
            const bool clocks = std::string_view(k.with_unit).ends_with("_clocks");
            rows.push_back(
                {what, quantity_text(figure.value, k.dimension) + (clocks ? " clocks" : "") + mark(figure.source)});
        }
        return rows;
    }

    Rows levels() {
        const bool cpu = m_.kind == MachineKind::cpu;
        Rows rows{{"", "capacity", "instances", "rate into one", "into all", "latency"}};
        if (cpu)
            rows[0].insert(rows[0].end(),
                           {"into one core alone", "copies", "copies of one core", "of runs by their lines"});
        else
            rows[0].insert(rows[0].end(), {"sustained share", "into one core", "for cores together",
                                           "of runs by their lines", "reread from it"});
        for (std::size_t l = 0; l < m_.levels.size(); ++l) {
            const Level& level = m_.levels[l];
            const Figure& rate = level.bandwidth_bytes_per_s;
            rows.push_back(
                {level.name + (level.caches ? " (cache)" : ""), shown(level.capacity_bytes, Dimension::bytes),
                 shown(level.instances, Dimension::number), l == 0 ? "" : per_s_text(rate.value, "B") + mark(rate.source),
                 l == 0 ? "" : per_s_text(total_bandwidth(level), "B"), shown(level.latency_s, Dimension::seconds)});
            if (!cpu)
                rows.back().insert(
                    rows.back().end(),
                    {share(level.sustained),
                     level.core_bandwidth_bytes_per_s.known() ? per_s_text(level.core_bandwidth_bytes_per_s.value, "B") +
                                                                    mark(level.core_bandwidth_bytes_per_s.source)
                                                              : "",
                     level.merging_cores.known() ? shown(level.merging_cores, Dimension::number) : "", runs(level),
                     level.reread_bytes.known() ? shown(level.reread_bytes, Dimension::bytes) : ""});
            if (!cpu || l == 0) continue;
            for (const Figure* f : {&level.core_bandwidth_bytes_per_s, &level.copy_bandwidth_bytes_per_s,
                                    &level.core_copy_bandwidth_bytes_per_s})
                rows.back().push_back(per_s_text(f->value, "B") + mark(f->source));
            rows.back().push_back(runs(level));
        }
        return rows;
    }

    Rows units() {
        Rows rows;
        for (const Unit& unit : m_.units)
            for (const auto& [type, rate] : unit.per_clock) {
                const bool flops = unit.name == "tensor" || unit.name == "fma";
                const double peak = peak_per_s(m_, unit.name, type);
                rows.push_back({unit.name, std::string(name(type)), fmt::format("{}{}", rate.value, mark(rate.source)),
                                flops ? flops_text(peak) : per_s_text(peak, "op")});
                if (unit.sustained.known()) rows.back().push_back(share(unit.sustained) + " of it sustained");
            }
        return rows;
    }

    [[nodiscard]] Rows ridge_points() const {
        Rows rows;
        std::vector<std::string> head{"", ""};
        for (std::size_t l = 1; l < m_.levels.size(); ++l)
            head.push_back(m_.levels[l - 1].name + "→" + m_.levels[l].name);
        for (const Ridge& ridge : ridges(m_)) {
            const std::string type(name(ridge.type));
            if (rows.empty()) rows.push_back(head);
            if (rows.back()[0] != ridge.unit || rows.back()[1] != type) rows.push_back({ridge.unit, type});
            rows.back().resize(ridge.level + 1);
            rows.back().push_back(fmt::format("{:.3g}", ridge.flop_per_byte));
        }
        return rows;
    }
    [[nodiscard]] std::vector<std::size_t> ridge_columns() const {
        std::vector<std::size_t> out;
        for (std::size_t l = 1; l < m_.levels.size(); ++l) out.push_back(l + 1);
        return out;
    }

    Rows cross_transfers() {
        Rows rows;
        for (const CrossTransfer& cross : m_.cross_transfers)
            for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s) {
                if (rows.empty()) rows.push_back({"", "of level", "joined", "one receives", "all receive"});
                double instances = 1;
                for (const Level& level : m_.levels)
                    if (level.name == cross.level) instances = level.instances.value;
                rows.push_back({cross.name, cross.level, std::to_string(joined),
                                per_s_text(rate.value, "B") + mark(rate.source),
                                per_s_text(rate.value * instances, "B")});
            }
        return rows;
    }

    /// Operand types of the same accumulators together.
    std::string accumulators(const Instruction& i) {
        std::vector<std::pair<std::string, std::string>> in;  // the accumulators, and whose they are
        for (const auto& [type, list] : i.accumulators) {
            std::vector<std::string> types;
            for (const Accumulator& a : list)
                types.push_back(!a.bits.known() ? std::string(name(a.type))
                                                : fmt::format("{} that keeps {} bits{}", name(a.type), a.bits.value,
                                                              mark(a.bits.source)));
            const std::string text = join(types, " or ");
            const auto known = find_if(in, [&](const auto& other) { return other.first == text; });
            if (known == in.end())
                in.emplace_back(text, name(type));
            else
                known->second += ", " + std::string(name(type));
        }
        std::vector<std::string> out;
        for (const auto& [text, of] : in) out.push_back(of + " in " + text);
        return join(out, "; ");
    }

    Rows instructions() {
        Rows rows;
        for (const Instruction& i : m_.instructions) {
            std::vector<std::string> k;
            for (const auto& [type, size] : i.k) k.push_back(fmt::format("{} {}", name(type), size));
            rows.push_back(
                {i.name, i.unit, fmt::format("{} thread{}", i.threads, i.threads == 1 ? "" : "s"), "m " + range_text(i.m),
                 "n " + range_text(i.n), "k " + join(k, ", ") + mark(i.source), "adds " + accumulators(i),
                 i.overhead_clocks.value > 0 ? fmt::format("{} clocks more when waited for{}", i.overhead_clocks.value,
                                                           mark(i.overhead_clocks.source))
                 : i.sustained.known() ? fmt::format("{:.3g}% of what its unit sustains{}", 100 * i.sustained.value,
                                                     mark(i.sustained.source))
                                       : "",
                 i.d ? "D " + layouts::to_string(*i.d) : ""});
        }
        return rows;
    }

    Rows copies() {
        Rows rows;
        for (const CopyInstruction& c : m_.copies) {
            // In the order in which they are read: the parts of a sum may be made in any.
            const std::string bytes = (c.box > 0 ? fmt::format("boxes of up to {} dimensions of {}", c.dimensions, c.box)
                                                 : fmt::format("{} bytes each", c.bytes)) +
                                      mark(c.source);
            std::string latency;
            if (const Figure& f = c.latency_clocks; f.known())
                latency += fmt::format("{} clocks{}", f.value, mark(f.source));
            if (const Figure& f = c.cached_latency_clocks; f.known())
                latency += fmt::format(", of what a cache has {}{}", f.value, mark(f.source));
            rows.push_back({c.name, c.from == c.to ? "among " + c.from : c.from + " to " + c.to,
                            fmt::format("{} thread{}", c.threads, c.threads == 1 ? "" : "s"), bytes, latency});
        }
        return rows;
    }

    /// What a line says, and the sources of the figures in it.
    std::vector<std::string> limit(const char* what, std::string says, const std::vector<Figure>& of) {
        std::set<std::string> marked;
        for (const Figure& figure : of)
            if (marked.insert(figure.source).second) says += mark(figure.source);
        return {what, std::move(says)};
    }

    Rows threads() {
        if (!m_.threads) return {};
        const ThreadLimits& t = *m_.threads;
        const auto memory = [](const Figure& figure) { return quantity_text(figure.value, Dimension::bytes); };
        return {limit("a warp", fmt::format("{} threads", t.warp_threads.value), {t.warp_threads}),
                limit("a core",
                      fmt::format("{} warps, {} blocks, {} registers", t.warps_a_core.value, t.blocks_a_core.value,
                                  t.registers_a_core.value),
                      {t.warps_a_core, t.blocks_a_core, t.registers_a_core}),
                limit("a block",
                      fmt::format("{} threads, {} of {} beside {} reserved", t.threads_a_block.value,
                                  memory(t.block_bytes), m_.levels[core_memory_level(m_)].name, memory(t.reserved_bytes)),
                      {t.threads_a_block, t.block_bytes, t.reserved_bytes}),
                limit("a thread",
                      fmt::format("{} registers, handed to its warp in units of {}", t.registers_a_thread.value,
                                  t.register_unit.value),
                      {t.registers_a_thread, t.register_unit})};
    }

    const Machine& m_;
    bool color_;
    std::vector<std::string> sources_;
};

/// Figures by name, with their sources in an object beside them.
void put(Json& object, const std::string& key, const Figure& figure) {
    // A whole number is one in JSON too.
    const bool whole = figure.value == std::floor(figure.value) && std::abs(figure.value) < 9e15;
    Json sources = object.contains("sources") ? object["sources"] : Json::object();
    object.erase("sources");
    object[key] = whole ? Json(static_cast<std::int64_t>(figure.value)) : Json(figure.value);
    sources[key] = figure.source;
    object["sources"] = std::move(sources);
}
template <class Owner>
void put_all(Json& object, std::span<const FigureKey<Owner>> keys, const Owner& owner) {
    for (const FigureKey<Owner>& k : keys)
        if ((owner.*k.figure).known()) put(object, k.with_unit, owner.*k.figure);
}

Json level_json(const Level& level, bool first) {
    Json out = {{"name", level.name}, {"cache", level.caches}};
    put_all(out, level_figures(), level);
    if (!first) {
        put(out, "bandwidth_bytes_per_s", level.bandwidth_bytes_per_s);
        out["total_bandwidth_bytes_per_s"] = total_bandwidth(level);
    }
    if (!level.runs.empty()) out["share_of_runs"] = Json::object();
    for (const auto& [lines, share] : level.runs) put(out["share_of_runs"], std::to_string(lines), share);
    return out;
}

Json range_json(const IntegerRange& range) { return {{"from", range.from}, {"to", range.to}, {"step", range.step}}; }

}  // namespace

std::string flops_text(double flop_per_s) { return per_s_text(flop_per_s, "FLOP"); }

std::string peaks_text(const Machine& machine) {
    std::vector<std::string> parts;
    for (const DType type : {DType::f16, DType::e4m3})
        if (const double peak = peak_per_s(machine, "tensor", type); peak > 0)
            parts.push_back(fmt::format("{} {}", name(type), flops_text(peak)));
    if (const double peak = peak_per_s(machine, "fma", DType::f32); peak > 0)
        parts.push_back(fmt::format("f32 {}", flops_text(peak)));
    return join(parts, ", ");
}

std::string machine_text(const Machine& machine, bool color) { return View(machine, color).run(); }

Json machine_json(const Machine& m) {
    Json out = {{"name", m.name}, {"description", m.description}, {"kind", m.kind == MachineKind::gpu ? "gpu" : "cpu"}};
    put_all(out, machine_figures(), m);
    out["levels"] = Json::array();
    for (std::size_t l = 0; l < m.levels.size(); ++l) out["levels"].push_back(level_json(m.levels[l], l == 0));
    out["units"] = Json::array();
    for (const Unit& unit : m.units)
        for (const auto& [type, rate] : unit.per_clock) {
            out["units"].push_back({{"name", unit.name},
                                    {"type", name(type)},
                                    {"per_clock", rate.value},
                                    {"peak_per_s", peak_per_s(m, unit.name, type)},
                                    {"source", rate.source}});
            if (!unit.sustained.known()) continue;
            out["units"].back()["sustained_share"] = unit.sustained.value;
            out["units"].back()["sustained_source"] = unit.sustained.source;
        }
    out["ridges"] = Json::array();
    for (const Ridge& ridge : ridges(m))
        out["ridges"].push_back({{"unit", ridge.unit},
                                 {"type", name(ridge.type)},
                                 {"from", m.levels[ridge.level - 1].name},
                                 {"level", m.levels[ridge.level].name},
                                 {"flop_per_byte", ridge.flop_per_byte},
                                 {"formula", ridge.formula}});
    out["notes"] = slow_links(m);
    out["cross_transfers"] = Json::array();
    for (const CrossTransfer& cross : m.cross_transfers)
        for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s)
            out["cross_transfers"].push_back({{"name", cross.name},
                                              {"level", cross.level},
                                              {"joined", joined},
                                              {"bandwidth_bytes_per_s", rate.value},
                                              {"source", rate.source}});
    out["instructions"] = Json::array();
    for (const Instruction& i : m.instructions) {
        Json k = Json::object();
        for (const auto& [type, size] : i.k) k[std::string(name(type))] = size;
        Json accumulators = Json::object();
        for (const auto& [type, list] : i.accumulators)
            for (const Accumulator& a : list) {
                Json& out_of = accumulators[std::string(name(type))];
                out_of.push_back({{"type", name(a.type)}});
                if (a.bits.known()) put(out_of.back(), "bits", a.bits);
            }
        out["instructions"].push_back({{"name", i.name},
                                       {"unit", i.unit},
                                       {"threads", i.threads},
                                       {"m", range_json(i.m)},
                                       {"n", range_json(i.n)},
                                       {"k", k},
                                       {"accumulators", accumulators},
                                       {"overhead_clocks", i.overhead_clocks.value},
                                       {"source", i.source}});
        for (const auto& [key, layout] : {std::pair{"a", &i.a}, {"b", &i.b}, {"d", &i.d}})
            if (*layout) out["instructions"].back()["registers"][key] = layouts::to_string(**layout);
        if (i.overhead_clocks.value > 0) out["instructions"].back()["overhead_source"] = i.overhead_clocks.source;
        if (i.sustained.known())
            out["instructions"].back()["sustained_share"] = i.sustained.value,
            out["instructions"].back()["sustained_source"] = i.sustained.source;
    }
    out["copies"] = Json::array();
    for (const CopyInstruction& c : m.copies) {
        out["copies"].push_back(
            {{"name", c.name}, {"from", c.from}, {"to", c.to}, {"threads", c.threads}, {"bytes", c.bytes}, {"source", c.source}});
        if (c.box > 0) out["copies"].back()["dimensions"] = c.dimensions, out["copies"].back()["box"] = c.box;
        if (c.latency_clocks.known()) put(out["copies"].back(), "latency_clocks", c.latency_clocks);
        if (c.cached_latency_clocks.known())
            put(out["copies"].back(), "cached_latency_clocks", c.cached_latency_clocks);
    }
    if (m.threads) put_all(out["threads"] = Json::object(), thread_figures(), *m.threads);
    return out;
}

std::string occupancy_text(const Machine& machine, const BlockShape& block, const Occupancy& o) {
    const ThreadLimits& limits = *machine.threads;
    std::string out = fmt::format(
        "{}: {} block{} of {} threads a core: {} of {} warps, occupancy {:.3g}%, limited by {}\n", machine.name,
        o.blocks, o.blocks == 1 ? "" : "s", block.threads, o.active_warps, limits.warps_a_core.value, 100 * o.occupancy,
        name(o.limit));
    const auto memory = [](double bytes) { return quantity_text(bytes, Dimension::bytes); };
    const auto allowed = [&](OccupancyLimit limit, const std::string& why) -> std::vector<std::string> {
        const std::int64_t blocks = o.allowed[at(limit)];
        return {std::string(name(limit)), blocks < 0 ? "any" : std::to_string(blocks), why};
    };
    out += table(
        {{"", "blocks", ""},
         allowed(OccupancyLimit::blocks, ""),
         allowed(OccupancyLimit::warps, fmt::format("{} warps a block", o.warps_a_block)),
         allowed(OccupancyLimit::registers, fmt::format("{} registers a thread", block.registers_a_thread)),
         allowed(OccupancyLimit::memory, fmt::format("{} a block and {} reserved", memory(static_cast<double>(block.bytes)),
                                                     memory(limits.reserved_bytes.value)))},
        {1}, "  ");
    return out;
}

Json occupancy_json(const BlockShape& block, const Occupancy& o) {
    Json allowed = Json::object();
    for (const OccupancyLimit limit :
         {OccupancyLimit::blocks, OccupancyLimit::warps, OccupancyLimit::registers, OccupancyLimit::memory}) {
        const std::int64_t blocks = o.allowed[at(limit)];
        allowed[std::string(name(limit))] = blocks < 0 ? Json() : Json(blocks);
    }
    return {{"threads", block.threads},    {"registers_a_thread", block.registers_a_thread},
            {"memory_bytes", block.bytes}, {"warps_a_block", o.warps_a_block},
            {"blocks", o.blocks},          {"active_warps", o.active_warps},
            {"occupancy", o.occupancy},    {"limit", name(o.limit)},
            {"blocks_allowed", allowed}};
}

}  // namespace napkin::cli
