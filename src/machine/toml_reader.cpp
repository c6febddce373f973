// machines/*.toml → Machine: the machine, its levels and units. Every figure is checked for its unit, its source and
// for being possible; all errors of a file are collected.
#include <fmt/format.h>

#include <set>

#include "machine/figure_reader.hpp"
#include "machine/possible.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// As machine.hpp describes them.
const std::vector<std::string> unit_names{"tensor", "fma",   "simple",    "div",   "sqrt",   "exp",
                                          "log",    "tanh",  "erf",       "sin",   "pow",    "max",
                                          "load",   "store", "broadcast", "widen", "narrow", "exp_nonpositive",
                                          "dot"};

MachineKind read_kind(FigureReader& reader, const toml::table& root) {
    if (!root.contains("kind")) return MachineKind::cpu;
    const std::string kind = reader.text(root, "kind", "the machine");
    reader.check_name(root, "kind", kind, {"cpu", "gpu"}, "kind of machine");
    return kind == "cpu" ? MachineKind::cpu : MachineKind::gpu;
}

std::string read_architecture(FigureReader& reader, const toml::table& root, MachineKind kind) {
    const toml::node* node = root.get("architecture");
    if (!node) return "";
    if (kind == MachineKind::cpu)
        reader.error("unknown-key", reader.range_of(node->source()), "a CPU has no 'architecture'",
                     "no 'architecture' here", "a GPU's file says kind = \"gpu\"");
    return reader.text(root, "architecture", "a machine");
}

/// `bandwidth` into one instance, or `total_bandwidth` into all of them together.
Figure read_bandwidth(FigureReader& reader, const toml::table& table, const TableName& where, double instances) {
    if (reader.misspelt(table, "total_bandwidth")) return {};
    if (!table.contains("total_bandwidth")) return reader.figure(table, "bandwidth", where, Dimension::bytes_per_s);
    if (const toml::node* both = table.get("bandwidth"))
        reader.bad_value(*both, fmt::format("{} has both 'bandwidth' and 'total_bandwidth'", where.shown),
                         "one of them");
    Figure total = reader.figure(table, "total_bandwidth", where, Dimension::bytes_per_s);
    if (instances > 0) total.value /= instances;
    return total;
}

bool read_flag(FigureReader& reader, const toml::table& table, const std::string& key, const std::string& where) {
    const toml::node* node = table.get(key);
    if (!node) return false;
    if (const auto* flag = node->as_boolean()) return flag->get();
    reader.bad_value(*node, fmt::format("'{}' of {} is not true or false", key, where), "true or false");
    return false;
}

void check_distinct(FigureReader& reader, const toml::table& table, std::set<std::string>& names,
                    const std::string& name, const std::string& what) {
    if (!names.insert(name).second && table.contains("name"))
        reader.error("bad-value", reader.range_of(table.get("name")->source()),
                     fmt::format("there are two {}s '{}'", what, name), "distinct names");
}

/// `runs`: shares of the rate by the lines of a run.
void read_runs(FigureReader& reader, const toml::table& table, const TableName& where, Level& out) {
    const toml::node* node = table.get("runs");
    if (!node) return;
    constexpr std::int64_t most = 1 << 20;
    const std::string expected = "shares of the rate by the lines of a run, such as { 1 = 0.5, 8 = 0.9 }";
    const toml::table* shares = node->as_table();
    if (!shares || shares->empty())
        return reader.bad_value(*node, fmt::format("'runs' of {} is not a table", where.shown), expected);
    for (const auto& [key, share] : *shares) {
        const std::string text(key.str());
        const auto lines = parse_number<std::int64_t>(text);
        if (!lines || *lines < 1 || *lines > most) {
            reader.error("unknown-key", reader.range_of(key.source()),
                         fmt::format("unknown key '{}' in 'runs' of {}", text, where.shown), expected,
                         fmt::format("whole numbers of lines from 1 to {}", most));
            continue;
        }
        const TableName runs{"'runs' of " + where.shown, where.path + "runs."};
        if (auto figure = reader.figure_of(share, table, text, runs, Dimension::number)) out.runs[*lines] = *figure;
    }
}

void read_levels(FigureReader& reader, const toml::table& root, Machine& machine) {
    std::set<std::string> names;
    for (const toml::table* table : reader.tables(root, "level", true)) {
        reader.check_keys(*table,
                          with_keys({"name", "bandwidth", "total_bandwidth", "runs", "cache", "source"}, level_figures()),
                          "a level");
        Level level;
        level.name = reader.text(*table, "name", "a level");
        check_distinct(reader, *table, names, level.name, "level");
        const TableName where{"level '" + level.name + "'", fmt::format("level.{}.", machine.levels.size())};
        reader.figures(*table, where, level_figures(), level, machine.kind);
        read_runs(reader, *table, where, level);
        level.caches = read_flag(reader, *table, "cache", where.shown);
        if (!machine.levels.empty()) {
            level.bandwidth_bytes_per_s = read_bandwidth(reader, *table, where, level.instances.value);
        } else {
            for (const char* key : {"bandwidth", "total_bandwidth"})
                if (const toml::node* node = table->get(key))
                    reader.error("unknown-key", reader.range_of(node->source()),
                                 fmt::format("{} is the first level: nothing is above it to load from", where.shown),
                                 fmt::format("no '{}' here", key));
        }
        machine.levels.push_back(std::move(level));
    }
}

void read_units(FigureReader& reader, const toml::table& root, Machine& machine) {
    std::vector<std::string> keys{"name", "source", "sustained"};
    for (const DType type : all_dtypes) keys.emplace_back(name(type));
    std::set<std::string> names;
    for (const toml::table* table : reader.tables(root, "unit", true)) {
        reader.check_keys(*table, keys, "a unit");
        Unit unit;
        unit.name = reader.text(*table, "name", "a unit");
        reader.check_name(*table, "name", unit.name, unit_names, "unit");
        check_distinct(reader, *table, names, unit.name, "unit");
        const TableName where{"unit '" + unit.name + "'", fmt::format("unit.{}.", machine.units.size())};
        for (const DType type : all_dtypes)
            if (auto rate = reader.optional_figure(*table, std::string(name(type)), where, Dimension::number))
                unit.per_clock[type] = *rate;
        unit.sustained = reader.optional_figure(*table, "sustained", where, Dimension::number).value_or(Figure{});
        if (unit.per_clock.empty())
            reader.error("missing-key", reader.range_of(table->source()), fmt::format("{} has no rate", where.shown),
                         "operations a clock by type, such as f32 = 16");
        machine.units.push_back(std::move(unit));
    }
    if (reader.errors().empty() && !names.contains("fma"))
        reader.error("missing-key", reader.begin_of_file(), "the machine has no unit 'fma'",
                     "[[unit]] with name = \"fma\"");
}

}  // namespace

Result<Machine> read_machine(std::shared_ptr<const Source> text) {
    FigureReader reader(std::move(text));
    const toml::table root = reader.parse();
    if (!reader.errors().empty()) return std::move(reader.errors());
    Machine machine;
    reader.check_keys(root,
                      with_keys({"name", "description", "source", "kind", "architecture", "level", "unit",
                                 "cross_transfer", "instruction", "copy", "threads"},
                                machine_figures()),
                      "a machine");
    machine.name = reader.text(root, "name", "a machine");
    machine.description = reader.text(root, "description", "a machine");
    machine.kind = read_kind(reader, root);
    machine.architecture = read_architecture(reader, root, machine.kind);
    reader.figures(root, {"the machine", ""}, machine_figures(), machine, machine.kind);
    read_levels(reader, root, machine);
    read_units(reader, root, machine);
    read_cross_transfers(reader, root, machine);
    read_instructions(reader, root, machine);
    read_copies(reader, root, machine);
    read_threads(reader, root, machine);
    if (reader.errors().empty()) complete_figures(machine);
    for (const Impossible& fault : impossible_figures(machine, reader.places()))
        reader.error("impossible-figure", fault.range, "impossible: " + fault.why);
    if (reader.errors().empty()) return machine;
    stable_sort(reader.errors(), [](const Diagnostic& a, const Diagnostic& b) { return a.range.begin < b.range.begin; });
    return std::move(reader.errors());
}

}  // namespace napkin
