#include "napkin/machine_view.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "machine/figures.hpp"
#include "machine/peaks.hpp"
#include "machine/possible.hpp"
#include "report/print.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

using report::Json;
using report::Section;
using report::Value;

Value rate(double value, const char* what) {
    const bool tera = value >= 1e12;
    return {value, fmt::format("{:.4g} {}{}/s", value / (tera ? 1e12 : 1e9), tera ? "T" : "G", what)};
}

/// A figure with its source; nothing where it is not known.
Value shown(const Figure& figure, Dimension dimension = Dimension::number) {
    if (!figure.known()) return report::shown("");
    // A whole number is one in JSON too.
    const bool whole = figure.value == std::floor(figure.value) && std::abs(figure.value) < 9e15;
    return {whole ? Json(static_cast<std::int64_t>(figure.value)) : Json(figure.value),
            dimension == Dimension::bytes_per_s ? rate(figure.value, "B").text : quantity_text(figure.value, dimension),
            figure.source};
}

template <class Owner>
Value shown(const FigureKey<Owner>& key, const Owner& owner) {
    Value out = shown(owner.*key.figure, key.dimension);
    if (!out.text.empty() && std::string_view(key.with_unit).ends_with("_clocks")) out.text += " clocks";
    return out;
}

Value source_of(const Figure& figure) { return figure.known() ? report::data(figure.source) : report::shown(""); }

/// "fma_latency" as words.
std::string label_of(std::string key) {
    std::replace(key.begin(), key.end(), '_', ' ');
    return key;
}

template <class Owner>
Json sources_of(std::span<const FigureKey<Owner>> keys, const Owner& owner) {
    Json out = Json::object();
    for (const FigureKey<Owner>& k : keys)
        if ((owner.*k.figure).known()) out[k.with_unit] = (owner.*k.figure).source;
    return out;
}

template <class Owner>
void add_figures(Section& out, std::span<const FigureKey<Owner>> keys, const Owner& owner,
                 std::vector<report::Figure> rows = {}) {
    for (const FigureKey<Owner>& k : keys) rows.push_back({k.with_unit, label_of(k.key), shown(k, owner)});
    out.rows(std::move(rows));
    out.data("sources", sources_of(keys, owner));
}

report::Table levels(const Machine& m) {
    using report::words;
    using Of = const Level&;
    std::vector<report::ColumnOf<Level>> columns = {
        {"name", "level", [](Of l) { return Value{l.name, l.name + (l.caches ? " (cache)" : "")}; }},
        {"cache", "", [](Of l) { return report::data(l.caches); }},
        {"bandwidth_bytes_per_s", "rate into one",
         [](Of l) { return shown(l.bandwidth_bytes_per_s, Dimension::bytes_per_s); }},
        {"total_bandwidth_bytes_per_s", "into all",
         [](Of l) { return l.bandwidth_bytes_per_s.known() ? rate(total_bandwidth(l), "B") : report::shown(""); }}};
    for (const FigureKey<Level>& k : level_figures())
        columns.push_back({k.with_unit, label_of(k.key), [k](Of l) { return shown(k, l); }});
    std::set<std::int64_t> runs;
    for (const Level& level : m.levels)
        for (const auto& [lines, share] : level.runs) runs.insert(lines);
    for (const std::int64_t lines : runs)
        columns.push_back({"", fmt::format("of runs of {} line{}", lines, lines == 1 ? "" : "s"), [lines](Of l) {
                               const auto found = l.runs.find(lines);
                               return found == l.runs.end() ? report::shown("") : shown(found->second);
                           }});
    columns.push_back({"share_of_runs", "", [](Of l) {
                           Json out = Json::object();
                           for (const auto& [lines, share] : l.runs) {
                               out[std::to_string(lines)] = shown(share).data;
                               out["sources"][std::to_string(lines)] = share.source;
                           }
                           return out.empty() ? report::shown("") : report::data(out);
                       }});
    columns.push_back({"sources", "", [](Of l) {
                           Json out = sources_of(level_figures(), l);
                           if (l.bandwidth_bytes_per_s.known())
                               out["bandwidth_bytes_per_s"] = l.bandwidth_bytes_per_s.source;
                           return report::data(out);
                       }});
    return report::table_of<Level>("levels", "Levels", m.levels, columns);
}

/// A figure that a thing has by a key, such as the type of operands.
template <class Thing, class Key>
struct FigureOf {
    const Thing& thing;
    Key key;
    const Figure& figure;
};
template <class Thing, class Key>
std::vector<FigureOf<Thing, Key>> figures_of(const std::vector<Thing>& things, std::map<Key, Figure> Thing::* figures) {
    std::vector<FigureOf<Thing, Key>> out;
    for (const Thing& thing : things)
        for (const auto& [key, figure] : thing.*figures) out.push_back({thing, key, figure});
    return out;
}

report::Table units(const Machine& m) {
    using Of = const FigureOf<Unit, DType>&;
    return report::table_of<FigureOf<Unit, DType>>(
        "units", "Units, operations a clock of one core and peak of all", figures_of(m.units, &Unit::per_clock),
        {{"name", "unit", [](Of o) { return report::words(o.thing.name); }},
         {"type", "type", [](Of o) { return report::words(name(o.key)); }},
         {"per_clock", "a clock", [](Of o) { return shown(o.figure); }},
         {"peak_per_s", "peak",
          [&](Of o) {
              const bool flops = o.thing.name == "tensor" || o.thing.name == "fma";
              return rate(peak_per_s(m, o.thing.name, o.key), flops ? "FLOP" : "op");
          }},
         {"sustained_share", "sustained share", [](Of o) { return shown(o.thing.sustained); }},
         {"source", "", [](Of o) { return report::data(o.figure.source); }},
         {"sustained_source", "", [](Of o) { return source_of(o.thing.sustained); }}});
}

void add_ridges(Section& out, const Machine& m) {
    report::Table shown{
        "", "Ridge points, FLOP/byte: below, the pipe binds; above, the unit", {{"", "unit"}, {"", "type"}}, {}};
    for (std::size_t l = 1; l < m.levels.size(); ++l)
        shown.columns.push_back({"", m.levels[l - 1].name + "→" + m.levels[l].name});
    Json list = Json::array();
    for (const Ridge& ridge : ridges(m)) {
        const std::string type(name(ridge.type));
        if (shown.rows.empty() || shown.rows.back()[0].text != ridge.unit || shown.rows.back()[1].text != type)
            shown.rows.push_back({report::words(ridge.unit), report::words(type)});
        shown.rows.back().resize(ridge.level + 1);
        shown.rows.back().push_back(report::number(ridge.flop_per_byte));
        list.push_back({{"unit", ridge.unit},
                        {"type", type},
                        {"from", m.levels[ridge.level - 1].name},
                        {"level", m.levels[ridge.level].name},
                        {"flop_per_byte", ridge.flop_per_byte},
                        {"formula", ridge.formula}});
    }
    out.table(std::move(shown));
    out.data("ridges", std::move(list));
}

report::Table cross_transfers(const Machine& m) {
    using Of = const FigureOf<CrossTransfer, std::int64_t>&;
    return report::table_of<FigureOf<CrossTransfer, std::int64_t>>(
        "cross_transfers", "Links among the instances of a level: cross transfer",
        figures_of(m.cross_transfers, &CrossTransfer::bandwidth_bytes_per_s),
        {{"name", "link", [](Of o) { return report::words(o.thing.name); }},
         {"level", "of level", [](Of o) { return report::words(o.thing.level); }},
         {"joined", "joined", [](Of o) { return report::whole(o.key); }},
         {"bandwidth_bytes_per_s", "one receives", [](Of o) { return shown(o.figure, Dimension::bytes_per_s); }},
         {"", "all receive",
          [&](Of o) {
              const auto level = find_if(m.levels, [&](const Level& l) { return l.name == o.thing.level; });
              return rate(o.figure.value * (level == m.levels.end() ? 1 : level->instances.value), "B");
          }},
         {"source", "", [](Of o) { return report::data(o.figure.source); }}});
}

Value range(const IntegerRange& range) {
    return {{{"from", range.from}, {"to", range.to}, {"step", range.step}},
            range.from == range.to ? std::to_string(range.from)
                                   : fmt::format("{}..{} by {}", range.from, range.to, range.step)};
}

/// Operand types of the same accumulators together.
Value accumulators(const Instruction& i) {
    std::vector<std::pair<std::string, std::string>> in;  // the accumulators, and whose they are
    Value out{Json::object(), "", ""};
    for (const auto& [type, list] : i.accumulators) {
        std::vector<std::string> types;
        for (const Accumulator& a : list) {
            types.emplace_back(name(a.type));
            Json& entry = out.data[std::string(name(type))].emplace_back(Json{{"type", name(a.type)}});
            if (!a.bits.known()) continue;
            types.back() += fmt::format(" that keeps {} bits", a.bits.value);
            entry["bits"] = shown(a.bits).data, entry["sources"]["bits"] = out.source = a.bits.source;
        }
        const std::string text = join(types, " or ");
        const auto known = find_if(in, [&](const auto& other) { return other.first == text; });
        if (known == in.end())
            in.emplace_back(text, name(type));
        else
            known->second += ", " + std::string(name(type));
    }
    out.text = join(mapped<std::string>(in, [](const auto& one) { return one.second + " in " + one.first; }), "; ");
    return out;
}

report::Table instructions(const Machine& m) {
    using report::words;
    using Of = const Instruction&;
    return report::table_of<Instruction>(
        "instructions", "Matrix instructions", m.instructions,
        {{"name", "instruction", [](Of i) { return words(i.name); }},
         {"unit", "unit", [](Of i) { return words(i.unit); }},
         {"threads", "threads", [](Of i) { return report::whole(i.threads); }},
         {"m", "m", [](Of i) { return range(i.m); }},
         {"n", "n", [](Of i) { return range(i.n); }},
         {"k", "k",
          [](Of i) {
              Value out{Json::object(), "", i.source};
              for (const auto& [type, size] : i.k) {
                  out.data[std::string(name(type))] = size;
                  out.text += fmt::format("{}{} {}", out.text.empty() ? "" : ", ", name(type), size);
              }
              return out;
          }},
         {"accumulators", "adds", accumulators},
         {"overhead_clocks", "clocks more when waited for",
          [](Of i) { return i.overhead_clocks.value > 0 ? shown(i.overhead_clocks) : report::data(0); }},
         {"sustained_share", "of its unit's rate", [](Of i) { return shown(i.sustained); }},
         {"registers", "D",
          [](Of i) {
              Value out = report::shown("");
              for (const auto& [key, layout] : {std::pair{"a", &i.a}, {"b", &i.b}, {"d", &i.d}})
                  if (*layout) {
                      if (out.data.is_discarded()) out.data = Json::object();
                      out.data[key] = layouts::to_string(**layout);
                  }
              if (i.d) out.text = layouts::to_string(*i.d);
              return out;
          }},
         {"source", "", [](Of i) { return report::data(i.source); }},
         {"overhead_source", "",
          [&](Of i) { return i.overhead_clocks.value > 0 ? source_of(i.overhead_clocks) : report::shown(""); }},
         {"sustained_source", "", [](Of i) { return source_of(i.sustained); }}});
}

report::Table copies(const Machine& m) {
    using report::words;
    using Of = const CopyInstruction&;
    return report::table_of<CopyInstruction>(
        "copies", "Copies", m.copies,
        {{"name", "copy", [](Of c) { return words(c.name); }},
         {"from", "from", [](Of c) { return words(c.from); }},
         {"to", "to", [](Of c) { return words(c.to); }},
         {"threads", "threads", [](Of c) { return report::whole(c.threads); }},
         {"bytes", "bytes",
          [](Of c) { return c.box > 0 ? report::data(c.bytes) : Value{c.bytes, std::to_string(c.bytes), c.source}; }},
         {"dimensions", "dimensions", [](Of c) { return c.box > 0 ? report::whole(c.dimensions) : report::shown(""); }},
         {"box", "of up to",
          [](Of c) { return c.box > 0 ? Value{c.box, std::to_string(c.box), c.source} : report::shown(""); }},
         {"latency_clocks", "clocks", [](Of c) { return shown(c.latency_clocks); }},
         {"cached_latency_clocks", "of what a cache has", [](Of c) { return shown(c.cached_latency_clocks); }},
         {"source", "", [](Of c) { return report::data(c.source); }},
         {"sources", "", [](Of c) {
              Json out = Json::object();
              if (c.latency_clocks.known()) out["latency_clocks"] = c.latency_clocks.source;
              if (c.cached_latency_clocks.known()) out["cached_latency_clocks"] = c.cached_latency_clocks.source;
              return out.empty() ? report::shown("") : report::data(out);
          }}});
}

/// The peaks that tell machines apart: the tensor cores' in 16 and 8 bits, and multiply-adds in f32.
std::string peaks_text(const Machine& machine) {
    std::vector<std::string> parts;
    for (const auto& [unit, type] : {std::pair{"tensor", DType::f16}, {"tensor", DType::e4m3}, {"fma", DType::f32}})
        if (const double peak = peak_per_s(machine, unit, type); peak > 0)
            parts.push_back(fmt::format("{} {}", name(type), rate(peak, "FLOP").text));
    return join(parts, ", ");
}

std::string kind_of(const Machine& m) { return m.kind == MachineKind::gpu ? "gpu" : "cpu"; }

}  // namespace

Section machine_report(const Machine& m) {
    Section out{"", m.name + "  " + m.description, 2, {}}, all;
    out.data("name", m.name), out.data("description", m.description);
    add_figures(out, machine_figures(), m, {{"kind", "kind", report::words(kind_of(m))}});
    all.add(std::move(out));
    all.table(levels(m));
    all.table(units(m));
    add_ridges(all, m);
    all.table(cross_transfers(m));
    for (const std::string& word : slow_links(m)) all.text("  note: " + word);
    all.data("notes", slow_links(m));
    all.table(instructions(m));
    all.table(copies(m));
    if (m.threads) {
        Section threads{"threads", "Limits of threads", 2, {}};
        add_figures(threads, thread_figures(), *m.threads);
        all.add(std::move(threads));
    }
    return all;
}

Section machines_report(const std::vector<Machine>& machines) {
    using report::shown;
    Section out;
    report::Table table{"", "", std::vector<report::Column>(6), {}};
    Json list = Json::array();
    for (const Machine& m : machines) {
        list.push_back(to_json(machine_report(m)));
        std::vector<std::string> levels;
        for (const Level& level : m.levels)
            levels.push_back(level.name + " " + quantity_text(level.capacity_bytes.value, Dimension::bytes));
        table.rows.push_back({shown(m.name),
                              shown(kind_of(m)),
                              {m.num_cores(), fmt::format("{} core{}", m.num_cores(), m.num_cores() == 1 ? "" : "s")},
                              shown(join(levels, ", ")),
                              shown(peaks_text(m)),
                              m.power_watts.known()
                                  ? Value{m.power_watts.value, quantity_text(m.power_watts.value, Dimension::watts)}
                                  : shown("")});
    }
    out.table(std::move(table));
    out.data("machines", std::move(list));
    return out;
}

Section occupancy_report(const Machine& machine, const BlockShape& block, const Occupancy& o) {
    const ThreadLimits& limits = *machine.threads;
    const auto memory = [](double bytes) { return quantity_text(bytes, Dimension::bytes); };
    Section out{"",
                fmt::format("{}: {} block{} of {} threads a core: {} of {} warps, occupancy {:.3g}%, limited by {}",
                            machine.name, o.blocks, o.blocks == 1 ? "" : "s", block.threads, o.active_warps,
                            limits.warps_a_core.value, 100 * o.occupancy, name(o.limit)),
                2,
                {}};
    for (const auto& [path, value] :
         std::initializer_list<std::pair<const char*, Json>>{{"machine", machine.name},
                                                             {"threads", block.threads},
                                                             {"registers_a_thread", block.registers_a_thread},
                                                             {"memory_bytes", block.bytes},
                                                             {"warps_a_block", o.warps_a_block},
                                                             {"blocks", o.blocks},
                                                             {"active_warps", o.active_warps},
                                                             {"occupancy", o.occupancy},
                                                             {"limit", name(o.limit)}})
        out.data(path, value);
    const auto allowed = [&](OccupancyLimit limit, const std::string& why) -> report::Figure {
        const std::int64_t blocks = o.allowed[at(limit)];
        return {fmt::format("blocks_allowed/{}", name(limit)),
                std::string(name(limit)),
                {blocks < 0 ? Json() : Json(blocks), blocks < 0 ? "any" : fmt::format("{} blocks", blocks)},
                why};
    };
    out.rows({allowed(OccupancyLimit::blocks, ""),
              allowed(OccupancyLimit::warps, fmt::format("{} warps a block", o.warps_a_block)),
              allowed(OccupancyLimit::registers, fmt::format("{} registers a thread", block.registers_a_thread)),
              allowed(OccupancyLimit::memory,
                      fmt::format("{} a block and {} reserved", memory(static_cast<double>(block.bytes)),
                                  memory(limits.reserved_bytes.value)))});
    return out;
}

}  // namespace napkin::cli
