#include "machine/machine.hpp"

#include <map>

#include "machine/builtin.hpp"

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

}  // namespace

double per_clock(const Machine& machine, const std::string& unit, DType type) {
    const auto rate = [&](const std::string& name, DType of) -> double {
        for (const Unit& u : machine.units)
            if (u.name == name)
                if (const auto found = u.per_clock.find(of); found != u.per_clock.end()) return found->second.value;
        return 0;
    };
    if (const double given = rate(unit, type); given > 0) return given;
    if (unit == "tensor") return 0;
    if (machine.kind == MachineKind::gpu) {
        // What has no circuit of its own type runs in single precision, and moves by its bytes.
        const bool moves = unit == "load" || unit == "store";
        if (const double single = rate(unit, DType::f32); single > 0 && type != DType::f64)
            return moves ? single * bytes(DType::f32) / bytes(type) : single;
        const double fma = rate("fma", type);
        return (fma > 0 ? fma : rate("fma", DType::f32)) / fma_clocks(unit);
    }
    const double fma = rate("fma", type);
    return (fma > 0 ? fma : static_cast<double>(machine.lanes(type))) / fma_clocks(unit);
}

std::size_t core_memory_level(const Machine& machine) {
    for (std::size_t l = 1; l < machine.levels.size(); ++l)
        if (machine.levels[l].instances.value >= machine.cores.value) return l;
    return machine.levels.size() - 1;
}

double bytes_a_core(const Machine& machine, std::size_t level) {
    const Level& l = machine.levels[level];
    return l.capacity_bytes.value * l.instances.value / machine.cores.value;
}

std::vector<std::string> machine_names() {
    std::vector<std::string> names{"host"};
    for (const EmbeddedText& text : builtin_machine_texts()) names.emplace_back(text.name);
    return names;
}

}  // namespace napkin
