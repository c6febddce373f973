#include "machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "machine/builtin.hpp"
#include "machine/quantity.hpp"

namespace napkin {
namespace {

/// Clocks of one fused multiply-add a clock that an operation takes on a vector, where the machine says nothing: the lengths of
/// polynomials in single precision with range reduction, and typical divider throughputs.
double fma_clocks(const std::string& unit) {
    static const std::map<std::string, double> clocks{{"fma", 1},   {"simple", 1}, {"load", 1}, {"store", 2},
                                                      {"div", 8},   {"sqrt", 12},  {"exp", 11}, {"log", 14},
                                                      {"tanh", 18}, {"erf", 22},   {"sin", 20}, {"pow", 30}};
    const auto found = clocks.find(unit);
    return found == clocks.end() ? 16 : found->second;
}

/// One table of figures; the source stands once where all share it.
class TableWriter {
public:
    void figure(const std::string& key, const Figure& figure, Dimension dimension) {
        std::string value = quantity_text(figure.value, dimension);
        if (dimension != Dimension::number) value = '"' + value + '"';
        lines_.push_back({key, value, figure.source});
    }
    [[nodiscard]] std::string str() const {
        std::set<std::string> sources;
        for (const Line& line : lines_)
            if (!line.source.empty()) sources.insert(line.source);
        std::string out;
        for (const Line& line : lines_) {
            if (sources.size() > 1 && !line.source.empty())
                out += fmt::format("{} = {{ value = {}, source = {} }}\n", line.key, line.value, quoted(line.source));
            else
                out += fmt::format("{} = {}\n", line.key, line.value);
        }
        return sources.size() == 1 ? out + fmt::format("source = {}\n", quoted(*sources.begin())) : out;
    }

    static std::string quoted(const std::string& text) {
        std::string out = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            if (static_cast<unsigned char>(c) < 0x20)
                out += fmt::format("\\u{:04x}", static_cast<int>(c));
            else
                out += c;
        }
        return out + "\"";
    }

private:
    struct Line {
        std::string key, value, source;
    };
    std::vector<Line> lines_;
};

}  // namespace

double per_clock(const Machine& machine, const std::string& unit, DType type) {
    const auto rate = [&](const std::string& name) -> double {
        for (const Unit& u : machine.units)
            if (u.name == name)
                if (const auto found = u.per_clock.find(type); found != u.per_clock.end()) return found->second.value;
        return 0;
    };
    if (const double given = rate(unit); given > 0) return given;
    const double fma = rate("fma");
    return (fma > 0 ? fma : static_cast<double>(machine.lanes(type))) / fma_clocks(unit);
}

std::size_t core_memory_level(const Machine& machine) {
    for (std::size_t l = 1; l < machine.levels.size(); ++l)
        if (machine.levels[l].instances.value >= machine.cores.value) return l;
    return machine.levels.size() - 1;
}

double bytes_a_core(const Machine& machine, std::size_t level) {
    const Level& l = machine.levels[level];
    return l.capacity_bytes.value * std::min(1.0, l.instances.value / machine.cores.value);
}

std::vector<std::string> machine_names() {
    std::vector<std::string> names{"host"};
    for (const EmbeddedText& text : builtin_machine_texts()) names.emplace_back(text.name);
    return names;
}

std::string to_toml(const Machine& machine) {
    std::string out = fmt::format("name = {}\ndescription = {}\n", TableWriter::quoted(machine.name),
                                  TableWriter::quoted(machine.description));
    TableWriter top;
    top.figure("clock", machine.clock_hz, Dimension::hertz);
    top.figure("cores", machine.cores, Dimension::number);
    top.figure("vector_bits", machine.vector_bits, Dimension::number);
    top.figure("vector_registers", machine.vector_registers, Dimension::number);
    top.figure("fma_latency", machine.fma_latency_clocks, Dimension::number);
    top.figure("line", machine.line_bytes, Dimension::bytes);
    top.figure("launch", machine.launch_s, Dimension::seconds);
    top.figure("group", machine.group_s, Dimension::seconds);
    out += top.str();
    for (std::size_t l = 0; l < machine.levels.size(); ++l) {
        const Level& level = machine.levels[l];
        out += fmt::format("\n[[level]]\nname = {}\n", TableWriter::quoted(level.name));
        TableWriter table;
        table.figure("capacity", level.capacity_bytes, Dimension::bytes);
        table.figure("instances", level.instances, Dimension::number);
        if (l > 0) table.figure("bandwidth", level.bandwidth_bytes_per_s, Dimension::bytes_per_s);
        table.figure("latency", level.latency_s, Dimension::seconds);
        out += table.str();
    }
    for (const Unit& unit : machine.units) {
        out += fmt::format("\n[[unit]]\nname = {}\n", TableWriter::quoted(unit.name));
        TableWriter table;
        for (const auto& [type, figure] : unit.per_clock)
            table.figure(std::string(name(type)), figure, Dimension::number);
        out += table.str();
    }
    return out;
}

}  // namespace napkin
