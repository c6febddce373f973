#pragma once
// Caches and memory, measured: latencies, what the pipes between them move, what stays in them.
#include <functional>

#include "run/measurement_bench.hpp"

namespace napkin {

/// Sets the figures of the levels, in about so many seconds. Other work comes and goes: `in_between` is called between
/// the measurements, when the memory holds real numbers.
void measure_levels(MeasurementBench& bench, double seconds, const std::function<void()>& in_between);

}  // namespace napkin
