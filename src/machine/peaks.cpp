#include "machine/peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace napkin {

double total_bandwidth(const Level& level) { return level.bandwidth_bytes_per_s.value * level.instances.value; }

double peak_per_s(const Machine& machine, const std::string& unit, DType type) {
    const double operations = unit == "fma" || unit == "tensor" || unit == "dot" ? 2 : 1;
    for (const Unit& u : machine.units)
        if (u.name == unit)
            if (const auto rate = u.per_clock.find(type); rate != u.per_clock.end())
                return machine.clock_hz.value * machine.cores.value * rate->second.value * operations;
    return 0;
}

std::vector<Ridge> ridges(const Machine& machine) {
    std::vector<Ridge> out;
    for (const Unit& unit : machine.units) {
        if (unit.name != "fma" && unit.name != "tensor") continue;
        for (const auto& [type, rate] : unit.per_clock)
            for (std::size_t l = 1; l < machine.levels.size(); ++l) {
                const double peak = peak_per_s(machine, unit.name, type), bytes = total_bandwidth(machine.levels[l]);
                if (bytes <= 0) continue;
                out.push_back({unit.name, type, l, peak / bytes,
                               fmt::format("{:.4g} TFLOP/s / {:.4g} TB/s", peak / 1e12, bytes / 1e12)});
            }
    }
    return out;
}

std::int64_t warp_transactions(const Machine& machine, std::int64_t stride_values, int bytes_a_value) {
    const std::int64_t threads = machine.threads ? static_cast<std::int64_t>(machine.threads->warp_threads.value)
                                                 : machine.lanes(DType::f32);
    const auto line = static_cast<std::int64_t>(machine.line_bytes.value);
    if (stride_values == 0) return 1;
    // A descending walk touches as many lines as an ascending one. Past a line's size, every thread has its own.
    const std::int64_t stride = std::abs(std::clamp(stride_values, -line, line));
    std::int64_t lines = 0, last = -1;
    for (std::int64_t t = 0; t < threads; ++t) {
        const std::int64_t first = t * stride * bytes_a_value / line;
        const std::int64_t end = (t * stride * bytes_a_value + bytes_a_value - 1) / line;
        lines += end - std::max(first, last + 1) + 1;
        last = end;
    }
    return lines;
}

}  // namespace napkin
