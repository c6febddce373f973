#include "run/measurement_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <new>
#include <utility>

#include "machine/figures.hpp"

namespace napkin {
namespace {

/// Four digits are what a measurement holds.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

}  // namespace

MeasurementBench::MeasurementBench(Machine described, const JitModule& code)
    : machine(std::move(described)), module(code), workers(std::max(1, threads())) {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    day = fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
    double bytes = 16 << 20;
    for (std::size_t l = 0; l < machine.levels.size(); ++l) bytes = std::max(bytes, footprint(l) * cores());
    memory = allocate(static_cast<std::int64_t>(bytes));
    if (!memory) throw std::bad_alloc();
    values = static_cast<std::int64_t>(bytes / sizeof(float));
}

Figure MeasurementBench::measured(double value, const std::string& what) const {
    return {rounded(value), fmt::format("measured {} by napkin machines measure: {}", day, what), Origin::measured};
}

double MeasurementBench::footprint(std::size_t l) const {
    const double own = bytes_a_core(machine, l);
    if (l + 1 == machine.levels.size()) return own / 2;
    const Level& below = machine.levels[l + 1];
    const double inner = bytes_a_core(machine, l + 1);
    if (l > 0) return std::max(std::min(4 * inner, own / 2), std::min(1.5 * inner, own));
    // Memory: so much that at most an eighth of it may be left in the outermost caches from one time to the next.
    const double caches = below.capacity_bytes.value * below.instances.value;
    return std::min({std::max(8 * caches, 64e6), 1e9, own * cores() / 8}) / cores();
}

}  // namespace napkin
