// Machine → the text of a machine file, such that reading it gives the same machine, bit for bit.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "machine/figures.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
            out += c;
    }
    return out + "\"";
}

std::string value_text(double value, Dimension dimension) {
    const std::string text = quantity_text(value, dimension);
    return dimension == Dimension::number ? text : quoted(text);
}

/// One table of figures; the source that most of them share stands once, at the end.
class TableWriter {
public:
    void figure(const std::string& key, const Figure& figure, Dimension dimension) {
        lines_.push_back({key, value_text(figure.value, dimension), figure.source});
    }
    template <class Owner>
    void figures(std::span<const FigureKey<Owner>> keys, const Owner& owner) {
        for (const FigureKey<Owner>& k : keys)
            if ((owner.*k.figure).known()) figure(k.key, owner.*k.figure, k.dimension);
    }
    /// A table of figures within the table.
    void figures(const std::string& key, const std::vector<std::pair<std::string, std::string>>& keys_and_values,
                 const std::vector<std::string>& sources) {
        std::vector<std::string> parts;
        bool one_source = true;
        for (const std::string& source : sources) one_source = one_source && source == sources[0];
        for (std::size_t i = 0; i < keys_and_values.size(); ++i) {
            const auto& [inner, value] = keys_and_values[i];
            parts.push_back(one_source
                                ? fmt::format("{} = {}", inner, value)
                                : fmt::format("{} = {{ value = {}, source = {} }}", inner, value, quoted(sources[i])));
        }
        lines_.push_back({key, "{ " + join(parts, ", ") + " }", one_source && !sources.empty() ? sources[0] : "", true});
    }
    [[nodiscard]] std::string str() const {
        const std::string shared = shared_source();
        std::string out;
        for (const Line& line : lines_) {
            if (line.source.empty() || line.source == shared)
                out += fmt::format("{} = {}\n", line.key, line.value);
            else
                out += fmt::format("{} = {{ value = {}, source = {} }}\n", line.key, line.value, quoted(line.source));
        }
        return shared.empty() ? out : out + fmt::format("source = {}\n", quoted(shared));
    }

private:
    struct Line {
        std::string key, value, source;
        bool is_table = false;  ///< whose figures share the source: it must be the table's own
    };
    [[nodiscard]] std::string shared_source() const {
        std::map<std::string, int> uses;
        for (const Line& line : lines_) {
            if (line.is_table && !line.source.empty()) return line.source;
            if (!line.source.empty()) ++uses[line.source];
        }
        std::string most;
        for (const auto& [source, count] : uses)
            if (most.empty() || count > uses[most]) most = source;
        return most;
    }
    std::vector<Line> lines_;
};

/// The rate of all instances together where the file gave that, which the shorter text tells; nothing where it was the
/// rate of one.
std::optional<double> total_rate(double one, double instances) {
    const double total = std::strtod(fmt::format("{:.10g}", one * instances).c_str(), nullptr);
    if (instances <= 1 || total / instances != one) return std::nullopt;
    if (quantity_text(total, Dimension::bytes_per_s).size() >= quantity_text(one, Dimension::bytes_per_s).size())
        return std::nullopt;
    return total;
}

void write_bandwidth(TableWriter& table, const Level& level) {
    const Figure& one = level.bandwidth_bytes_per_s;
    if (const auto total = total_rate(one.value, level.instances.value))
        table.figure("total_bandwidth", Figure{*total, one.source}, Dimension::bytes_per_s);
    else
        table.figure("bandwidth", one, Dimension::bytes_per_s);
}

std::string level_toml(const Level& level, bool first) {
    TableWriter table;
    table.figures(level_figures(), level);
    if (!first) write_bandwidth(table, level);
    std::vector<std::string> shares;
    for (const auto& [lines, share] : level.runs)
        shares.push_back(fmt::format("{} = {{ value = {}, source = {} }}", lines,
                                     value_text(share.value, Dimension::number), quoted(share.source)));
    const std::string runs = shares.empty() ? "" : fmt::format("runs = {{ {} }}\n", join(shares, ", "));
    return fmt::format("\n[[level]]\nname = {}\n{}{}{}", quoted(level.name), level.caches ? "cache = true\n" : "",
                       table.str(), runs);
}

std::string cross_transfer_toml(const CrossTransfer& cross, const Machine& machine) {
    double instances = 1;
    for (const Level& level : machine.levels)
        if (level.name == cross.level) instances = level.instances.value;
    bool totals = true;
    for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s)
        totals = totals && total_rate(rate.value, instances).has_value();
    std::vector<std::pair<std::string, std::string>> rates;
    std::vector<std::string> sources;
    for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s) {
        const double value = totals ? total_rate(rate.value, instances).value_or(rate.value) : rate.value;
        rates.emplace_back(std::to_string(joined), value_text(value, Dimension::bytes_per_s));
        sources.push_back(rate.source);
    }
    TableWriter table;
    table.figures(totals ? "total_bandwidth" : "bandwidth", rates, sources);
    return fmt::format("\n[[cross_transfer]]\nname = {}\nlevel = {}\n{}", quoted(cross.name), quoted(cross.level),
                       table.str());
}

std::string range_text(const IntegerRange& range) {
    if (range.from == range.to && range.step == 1) return std::to_string(range.from);
    return fmt::format("{{ from = {}, to = {}, step = {} }}", range.from, range.to, range.step);
}

/// A figure of a table that has a source for all that has none of its own.
std::string own_figure(const char* key, const Figure& f, const std::string& source_of_all) {
    if (f.value == 0 && f.source.empty()) return "";
    const std::string value = value_text(f.value, Dimension::number);
    return f.source == source_of_all ? fmt::format("{} = {}\n", key, value)
                                     : fmt::format("{} = {{ value = {}, source = {} }}\n", key, value, quoted(f.source));
}

std::string accumulator_toml(const Accumulator& a, const std::string& source_of_all) {
    const std::string type = quoted(std::string(name(a.type)));
    if (!a.bits.known()) return type;
    const std::string bits = own_figure("bits", a.bits, source_of_all);
    return fmt::format("{{ type = {}, {} }}", type, bits.substr(0, bits.size() - 1));
}

std::string instruction_toml(const Instruction& i) {
    std::vector<std::string> k, accumulators;
    for (const auto& [type, size] : i.k) k.push_back(fmt::format("{} = {}", name(type), size));
    for (const auto& [type, list] : i.accumulators) {
        const auto types = mapped<std::string>(list, [&](const Accumulator& a) { return accumulator_toml(a, i.source); });
        accumulators.push_back(fmt::format("{} = [{}]", name(type), join(types, ", ")));
    }
    std::string out = fmt::format(
        "\n[[instruction]]\nname = {}\nunit = {}\nthreads = {}\nm = {}\nn = {}\nk = {{ {} }}\naccumulators = {{ {} "
        "}}\n",
        quoted(i.name), quoted(i.unit), i.threads, range_text(i.m), range_text(i.n), join(k, ", "),
        join(accumulators, ", "));
    std::vector<std::string> registers, shared;
    for (const auto& [key, layout] : {std::pair{"a", &i.a}, {"b", &i.b}, {"d", &i.d}})
        if (*layout) registers.push_back(fmt::format("{} = {}", key, quoted(layouts::to_string(**layout))));
    if (i.a_in_shared) shared.push_back(quoted("a"));
    if (i.b_in_shared) shared.push_back(quoted("b"));
    if (!registers.empty()) out += fmt::format("registers = {{ {} }}\n", join(registers, ", "));
    if (!shared.empty()) out += fmt::format("shared = [{}]\n", join(shared, ", "));
    for (const auto& [key, list] : {std::pair{"either_major", &i.either_major}, {"mixed", &i.mixed}}) {
        const auto types = mapped<std::string>(*list, [](DType type) { return quoted(std::string(name(type))); });
        if (!types.empty()) out += fmt::format("{} = [{}]\n", key, join(types, ", "));
    }
    out += own_figure("overhead", i.overhead_clocks, i.source) + own_figure("sustained", i.sustained, i.source);
    return out + fmt::format("source = {}\n", quoted(i.source));
}

std::string copy_toml(const CopyInstruction& c) {
    std::string out = fmt::format("\n[[copy]]\nname = {}\nfrom = {}\nto = {}\nthreads = {}\nbytes = {}\n",
                                  quoted(c.name), quoted(c.from), quoted(c.to), c.threads, c.bytes);
    if (c.box > 0) out += fmt::format("dimensions = {}\nbox = {}\n", c.dimensions, c.box);
    return out + own_figure("latency", c.latency_clocks, c.source) +
           own_figure("cached_latency", c.cached_latency_clocks, c.source) +
           own_figure("loaded_latency", c.loaded_latency_clocks, c.source) +
           fmt::format("source = {}\n", quoted(c.source));
}

std::string threads_toml(const ThreadLimits& limits) {
    TableWriter table;
    table.figures(thread_figures(), limits);
    return "\n[threads]\n" + table.str();
}

}  // namespace

std::string to_toml(const Machine& machine) {
    const bool cpu = machine.kind == MachineKind::cpu;
    std::string out = fmt::format("name = {}\ndescription = {}\n{}", quoted(machine.name), quoted(machine.description),
                                  cpu ? "" : "kind = \"gpu\"\n");
    if (!machine.architecture.empty()) out += fmt::format("architecture = {}\n", quoted(machine.architecture));
    TableWriter top;
    top.figures(machine_figures(), machine);
    out += top.str();
    for (std::size_t l = 0; l < machine.levels.size(); ++l) out += level_toml(machine.levels[l], l == 0);
    for (const Unit& unit : machine.units) {
        TableWriter table;
        for (const auto& [type, figure] : unit.per_clock)
            table.figure(std::string(name(type)), figure, Dimension::number);
        if (unit.sustained.known()) table.figure("sustained", unit.sustained, Dimension::number);
        out += fmt::format("\n[[unit]]\nname = {}\n{}", quoted(unit.name), table.str());
    }
    for (const CrossTransfer& cross : machine.cross_transfers) out += cross_transfer_toml(cross, machine);
    for (const Instruction& instruction : machine.instructions) out += instruction_toml(instruction);
    for (const CopyInstruction& copy : machine.copies) out += copy_toml(copy);
    if (machine.threads) out += threads_toml(*machine.threads);
    return out;
}

}  // namespace napkin
