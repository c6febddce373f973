// machines/*.toml → Machine. Every figure is checked for its unit, its source and for being possible; all errors of a file are collected.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "machine/machine.hpp"
#include "machine/quantity.hpp"

namespace napkin {
namespace {

/// The byte offset of a 1-based line and column; toml++ counts columns in code points.
std::uint32_t offset_of(const std::string& text, toml::source_position position) {
    std::size_t offset = 0;
    for (toml::source_index line = 1; line < position.line && offset < text.size(); ++line) {
        const std::size_t end = text.find('\n', offset);
        offset = end == std::string::npos ? text.size() : end + 1;
    }
    for (toml::source_index column = 1; column < position.column && offset < text.size() && text[offset] != '\n'; ++column) {
        ++offset;
        while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0U) == 0x80U) ++offset;
    }
    return static_cast<std::uint32_t>(offset);
}

/// A figure of a table, where it stands, and what may be said against it.
struct Placed {
    Figure figure;
    SourceRange range;
    bool given = false;
};

class Reader {
public:
    explicit Reader(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

    Result<Machine> run() {
        toml::table root;
        try {
            root = toml::parse(std::string_view(source_->text));
        } catch (const toml::parse_error& e) {
            error("bad-toml", range_of(e.source()), std::string(e.description()), "a TOML file", "");
            return std::move(errors_);
        }
        read_root(root);
        if (errors_.empty()) return std::move(machine_);
        std::stable_sort(errors_.begin(), errors_.end(),
                         [](const Diagnostic& a, const Diagnostic& b) { return a.range.begin < b.range.begin; });
        return std::move(errors_);
    }

private:
    [[nodiscard]] SourceRange range_of(const toml::source_region& region) const {
        const std::uint32_t begin = offset_of(source_->text, region.begin), end = offset_of(source_->text, region.end);
        return {source_, begin, std::max(end, begin + 1)};
    }

    void error(std::string code, SourceRange range, std::string message, std::string expected, std::string hint) {
        errors_.push_back(
            {std::move(code), std::move(range), std::move(message), std::move(expected), std::move(hint), {}, ExitCode::bad_input});
    }
    void impossible(const Placed& placed, std::string why) {
        error("impossible-figure", placed.range, "impossible: " + std::move(why), "", "");
    }

    void check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& where) {
        for (const auto& [key, value] : table) {
            const std::string text(key.str());
            if (std::find(known.begin(), known.end(), text) != known.end()) continue;
            std::string names;
            for (const std::string& k : known) names += (names.empty() ? "" : ", ") + k;
            const std::string near = nearest_name(text, known);
            if (!near.empty()) misspelt_.insert({&table, near});
            error("unknown-key", range_of(key.source()), fmt::format("unknown key '{}' in {}", text, where),
                  "one of " + names, near.empty() ? "" : fmt::format("did you mean '{}'?", near));
        }
    }

    /// One error, where a key is missing that is not there under a misspelt name.
    void missing(const toml::table& table, const std::string& key, const std::string& where, std::string expected) {
        if (misspelt_.contains({&table, key})) return;
        SourceRange range = range_of(table.source());
        if (const std::size_t line = source_->text.find('\n', range.begin); line < range.end)
            range.end = static_cast<std::uint32_t>(line);
        error("missing-key", std::move(range), fmt::format("{} has no '{}'", where, key), std::move(expected), "");
    }

    std::string read_text(const toml::table& table, const std::string& key, const std::string& where) {
        const toml::node* node = table.get(key);
        if (!node) {
            missing(table, key, where, "a text");
            return "";
        }
        if (const auto* text = node->as_string()) return text->get();
        error("bad-value", range_of(node->source()), fmt::format("'{}' of {} is not a text", key, where),
              "a text in quotes", "");
        return "";
    }

    /// A figure: the quantity itself, or { value = …, source = … }; the table's source holds where it has none of its own.
    Placed read_figure(const toml::table& table, const std::string& key, const std::string& where, Dimension dimension) {
        const toml::node* node = table.get(key);
        if (!node) {
            missing(table, key, where, quantity_help(dimension));
            return {};
        }
        Placed placed{{}, range_of(node->source()), false};
        std::optional<std::string> source = table["source"].value<std::string>();
        if (const toml::table* inner = node->as_table()) {
            check_keys(*inner, {"value", "source"}, fmt::format("'{}' of {}", key, where));
            if (auto own = (*inner)["source"].value<std::string>()) source = own;
            node = inner->get("value");
            if (!node) {
                error("missing-key", placed.range, fmt::format("'{}' of {} has no 'value'", key, where),
                      quantity_help(dimension), "");
                return {};
            }
            placed.range = range_of(node->source());
        }
        std::optional<double> value;
        if (dimension == Dimension::number) {
            if (node->is_number()) value = node->value<double>();
        } else if (const auto* text = node->as_string()) {
            value = parse_quantity(text->get(), dimension);
        }
        if (!value || !std::isfinite(*value)) {
            const bool bare = node->is_number() && dimension != Dimension::number;
            error("bad-value", placed.range,
                  fmt::format("'{}' of {} {}", key, where, bare ? "has no unit" : "is not " + kind(dimension)),
                  quantity_help(dimension), "");
            return {};
        }
        if ((!source || source->empty()) && !misspelt_.contains({&table, "source"}) && unsourced_.insert(&table).second)
            error("missing-source", placed.range, fmt::format("'{}' of {} has no source", key, where),
                  "source = \"…\" in the same table, or { value = …, source = \"…\" }", "");
        placed.figure = {*value, source.value_or("")};
        placed.given = true;
        if (*value < 0 || (*value == 0 && dimension != Dimension::seconds)) {
            impossible(placed, fmt::format("'{}' of {} is {}", key, where, *value < 0 ? "negative" : "zero"));
            placed.given = false;
        }
        return placed;
    }

    static std::string kind(Dimension dimension) {
        switch (dimension) {
            case Dimension::bytes: return "a size";
            case Dimension::bytes_per_s: return "a rate";
            case Dimension::hertz: return "a frequency";
            case Dimension::seconds: return "a time";
            case Dimension::number: return "a number";
        }
        return "a number";
    }

    Figure count(const toml::table& table, const std::string& key, const std::string& where, double low, double high) {
        const Placed placed = read_figure(table, key, where, Dimension::number);
        if (!placed.given) return placed.figure;
        if (placed.figure.value != std::floor(placed.figure.value))
            impossible(placed,
                       fmt::format("'{}' of {} is {}, and there are whole ones only", key, where, placed.figure.value));
        else if (placed.figure.value < low || placed.figure.value > high)
            impossible(placed, fmt::format("'{}' of {} is {}; between {} and {} there are machines", key, where,
                                           placed.figure.value, low, high));
        return placed.figure;
    }

    void read_root(const toml::table& root) {
        check_keys(root,
                   {"name", "description", "source", "clock", "cores", "vector_bits", "vector_registers", "fma_latency",
                    "line", "launch", "group", "level", "unit"},
                   "a machine");
        machine_.name = read_text(root, "name", "a machine");
        machine_.description = read_text(root, "description", "a machine");
        const Placed clock = read_figure(root, "clock", "the machine", Dimension::hertz);
        if (clock.given && (clock.figure.value < 1e6 || clock.figure.value > 2e10))
            impossible(clock, fmt::format("no core runs at {}", quantity_text(clock.figure.value, Dimension::hertz)));
        machine_.clock_hz = clock.figure;
        machine_.cores = count(root, "cores", "the machine", 1, 1e6);
        const Placed bits = read_figure(root, "vector_bits", "the machine", Dimension::number);
        if (bits.given &&
            (bits.figure.value < 32 || bits.figure.value > 16384 || bits.figure.value != std::floor(bits.figure.value) ||
             !std::has_single_bit(static_cast<std::uint64_t>(bits.figure.value))))
            impossible(bits, fmt::format("vectors of {} bits; their width is a power of two from 32 to 16384",
                                         bits.figure.value));
        machine_.vector_bits = bits.figure;
        machine_.vector_registers = count(root, "vector_registers", "the machine", 4, 4096);
        machine_.fma_latency_clocks = count(root, "fma_latency", "the machine", 1, 1000);
        const Placed line = read_figure(root, "line", "the machine", Dimension::bytes);
        if (line.given && (line.figure.value > 65536 || !std::has_single_bit(static_cast<std::uint64_t>(line.figure.value))))
            impossible(line, "a line's size is a power of two of at most 64 KiB");
        machine_.line_bytes = line.figure;
        machine_.launch_s = short_time(root, "launch");
        machine_.group_s = short_time(root, "group");
        if (!errors_.empty()) clock_known_ = false;
        read_levels(root);
        read_units(root);
    }

    Figure short_time(const toml::table& table, const std::string& key) {
        const Placed placed = read_figure(table, key, "the machine", Dimension::seconds);
        if (placed.given && placed.figure.value > 1)
            impossible(placed, fmt::format("'{}' takes longer than a second", key));
        return placed.figure;
    }

    /// The tables of [[key]].
    std::vector<const toml::table*> tables(const toml::table& root, const std::string& key) {
        std::vector<const toml::table*> out;
        const toml::node* node = root.get(key);
        const toml::array* array = node ? node->as_array() : nullptr;
        if (array)
            for (const toml::node& element : *array)
                if (const toml::table* table = element.as_table()) out.push_back(table);
        if (!node || !array || out.size() != array->size() || out.empty())
            error(node ? "bad-value" : "missing-key", node ? range_of(node->source()) : SourceRange{source_, 0, 1},
                  fmt::format("the machine has no [[{}]]", key), fmt::format("one or more tables [[{}]]", key), "");
        return out;
    }

    void read_levels(const toml::table& root) {
        std::set<std::string> names;
        double latency_above = 0, instances_above = 0;
        std::string above;
        for (const toml::table* table : tables(root, "level")) {
            check_keys(*table, {"name", "capacity", "instances", "bandwidth", "latency", "source"}, "a level");
            Level level;
            level.name = read_text(*table, "name", "a level");
            if (!names.insert(level.name).second)
                error("bad-value", range_of(table->get("name")->source()),
                      fmt::format("there are two levels '{}'", level.name), "distinct names", "");
            const std::string where = "level '" + level.name + "'";
            const Placed capacity = read_figure(*table, "capacity", where, Dimension::bytes);
            const Placed latency = read_figure(*table, "latency", where, Dimension::seconds);
            level.capacity_bytes = capacity.figure;
            level.latency_s = latency.figure;
            level.instances = count(*table, "instances", where, 1, 1e6);
            const bool first = machine_.levels.empty();
            if (first && table->contains("bandwidth"))
                error("unknown-key", range_of(table->get("bandwidth")->source()),
                      fmt::format("{} is the first level: nothing is above it to load from", where),
                      "no 'bandwidth' here", "");
            if (!first) {
                const Placed bandwidth = read_figure(*table, "bandwidth", where, Dimension::bytes_per_s);
                level.bandwidth_bytes_per_s = bandwidth.figure;
                if (clock_known_ && bandwidth.given) {
                    const double per_core = bandwidth.figure.value * level.instances.value /
                                            (machine_.cores.value * machine_.clock_hz.value);
                    if (per_core > 4096)
                        impossible(
                            bandwidth,
                            fmt::format(
                                "{:.0f} bytes a clock for each core come from '{}'; no pipe carries more than 4096",
                                per_core, above));
                }
                if (capacity.given && capacity.figure.value > machine_.levels[0].capacity_bytes.value)
                    impossible(capacity,
                               fmt::format("'{}' holds more than '{}' above it", level.name, machine_.levels[0].name));
                if (latency.given && latency_above > 0 && latency.figure.value > latency_above)
                    impossible(latency, fmt::format("'{}' answers later than '{}' above it", level.name, above));
                if (level.instances.value < instances_above)
                    error("impossible-figure",
                          range_of(table->get("instances") ? table->get("instances")->source() : table->source()),
                          fmt::format("impossible: '{}' has fewer instances than '{}' above it", level.name, above), "",
                          "");
            }
            latency_above = latency.figure.value, instances_above = level.instances.value, above = level.name;
            machine_.levels.push_back(std::move(level));
        }
    }

    void read_units(const toml::table& root) {
        std::vector<std::string> keys{"name", "source"};
        for (const DType type : all_dtypes) keys.emplace_back(name(type));
        std::set<std::string> names;
        for (const toml::table* table : tables(root, "unit")) {
            check_keys(*table, keys, "a unit");
            Unit unit;
            unit.name = read_text(*table, "name", "a unit");
            if (!names.insert(unit.name).second)
                error("bad-value", range_of(table->get("name")->source()),
                      fmt::format("there are two units '{}'", unit.name), "distinct names", "");
            const std::string where = "unit '" + unit.name + "'";
            for (const DType type : all_dtypes) {
                const std::string key(name(type));
                if (!table->contains(key)) continue;
                const Placed rate = read_figure(*table, key, where, Dimension::number);
                const double lanes = machine_.vector_bits.value / (8.0 * bytes(type));
                if (rate.given && clock_known_ && rate.figure.value > 1024 * lanes)
                    impossible(rate, fmt::format("{} operations a clock are {:.0f} vectors in every clock",
                                                 rate.figure.value, rate.figure.value / lanes));
                unit.per_clock[type] = rate.figure;
            }
            if (unit.per_clock.empty())
                error("missing-key", range_of(table->source()), fmt::format("{} has no rate", where),
                      "operations a clock by type, such as f32 = 16", "");
            machine_.units.push_back(std::move(unit));
        }
        if (errors_.empty() && !names.contains("fma"))
            error("missing-key", SourceRange{source_, 0, 1}, "the machine has no unit 'fma'",
                  "[[unit]] with name = \"fma\"", "");
    }

    std::shared_ptr<const Source> source_;
    Machine machine_;
    std::vector<Diagnostic> errors_;
    std::set<std::pair<const toml::table*, std::string>> misspelt_;  ///< keys that stand in the table under a name near to theirs
    std::set<const toml::table*> unsourced_;  ///< tables that were told once that a source is missing
    bool clock_known_ = true;                 ///< the figures that others are compared with were read
};

}  // namespace

Result<Machine> read_machine(std::shared_ptr<const Source> text) { return Reader(std::move(text)).run(); }

}  // namespace napkin
