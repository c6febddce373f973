#include "machine/machine.hpp"

#include <cmath>
#include <iterator>
#include <map>

#include "machine/builtin.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Where a machine says nothing of a unit: the unit whose rate stands for it, and how many of its operations one takes.
/// Special functions are polynomials of multiply-adds in single precision with range reduction; dividers have typical
/// rates.
struct StandIn {
    std::string unit;
    double operations;
};
StandIn stand_in(const std::string& unit) {
    static const std::map<std::string, StandIn> known{
        {"simple", {"fma", 1}},   {"max", {"simple", 2}},   {"load", {"fma", 1}},
        {"store", {"fma", 2}},    {"div", {"fma", 8}},      {"sqrt", {"fma", 12}},
        {"exp", {"fma", 11}},     {"log", {"fma", 14}},     {"exp_nonpositive", {"exp", 1}},
        {"tanh", {"fma", 18}},    {"erf", {"fma", 22}},     {"sin", {"fma", 20}},
        {"pow", {"fma", 30}},     {"widen", {"simple", 2}}, {"broadcast", {"load", 1}},
        {"narrow", {"simple", 4}}};
    return value_or(known, unit, StandIn{"fma", 16});
}

}  // namespace

void Instruction::find_tile() {
    tile.reset(), result_types.clear();
    if (!d || d->rank() != 2) return;
    const std::int64_t rows = m.to * d->mode(0).size() / threads;
    if (rows > 0) tile = register_tile(*d, rows);
    for (const auto& [type, deep] : k)
        if (tile && a && takes_results(*d, *a, rows, bytes(type))) result_types.push_back(type);
}

bool adds_in(const Instruction& instruction, DType operands, DType sum) {
    const std::vector<Accumulator>& types = instruction.accumulators.at(operands);
    return any_of(types, [&](const Accumulator& a) { return a.type == sum; });
}

bool multiplies(const Instruction& instruction, DType a, DType b) {
    const auto of_a = instruction.k.find(a), of_b = instruction.k.find(b);
    if (of_a == instruction.k.end() || of_b == instruction.k.end()) return false;
    return a == b || (is_float(a) == is_float(b) && of_a->second == of_b->second && contains(instruction.mixed, a) &&
                      contains(instruction.mixed, b));
}

double per_clock(const Machine& machine, const std::string& unit, DType type) {
    const auto rate = [&](const std::string& name, DType of) -> double {
        for (const Unit& u : machine.units)
            if (u.name == name)
                if (const auto found = u.per_clock.find(of); found != u.per_clock.end()) return found->second.value;
        return 0;
    };
    if (const double given = rate(unit, type); given > 0) return given;
    if (unit == "tensor" || unit == "dot") return 0;
    if (machine.kind == MachineKind::gpu) {
        // What has no circuit of its own type runs in single precision, and moves by its bytes.
        const bool moves = unit == "load" || unit == "store";
        if (const double single = rate(unit, DType::f32); single > 0 && type != DType::f64)
            return moves ? single * bytes(DType::f32) / bytes(type) : single;
    }
    // A CPU's conversions run on the vectors of single precision.
    const bool converts = unit == "widen" || unit == "narrow";
    const DType of = machine.kind == MachineKind::gpu && rate("fma", type) == 0 ? DType::f32
                     : converts && bytes(type) < 4                              ? DType::f32
                                                                                : type;
    if (unit == "fma") return rate("fma", of) > 0 ? rate("fma", of) : static_cast<double>(machine.lanes(of));
    const StandIn other = stand_in(unit);
    return per_clock(machine, other.unit, of) / other.operations;
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

double tile_bytes_a_core(const Machine& machine, std::size_t level) {
    constexpr double share_of_cpus = 0.75;
    return (machine.kind == MachineKind::gpu ? 1 : share_of_cpus) * bytes_a_core(machine, level);
}

double sustained_rate_of(const Machine& machine, std::string_view unit) {
    for (const Unit& u : machine.units)
        if (u.name == unit && u.sustained.known()) return u.sustained.value;
    return 1;
}

std::vector<std::string> machine_names() {
    std::vector<std::string> names{"host"};
    for (const EmbeddedText& text : builtin_machine_texts()) names.emplace_back(text.name);
    return names;
}

double share_of_runs(const Level& level, double lines) {
    if (level.runs.empty()) return 1;
    const auto longer = level.runs.lower_bound(static_cast<std::int64_t>(std::ceil(lines)));
    if (longer == level.runs.begin()) return longer->second.value;
    const auto& [shorter_lines, shorter] = *std::prev(longer);
    const double from = static_cast<double>(shorter_lines), over = lines / from;
    if (longer == level.runs.end()) return 1 - (1 - shorter.value) / over;
    const double along = std::log(over) / std::log(static_cast<double>(longer->first) / from);
    return shorter.value + (longer->second.value - shorter.value) * along;
}

}  // namespace napkin
