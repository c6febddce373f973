#include "machine/rate_sources.hpp"

#include <fmt/format.h>

namespace napkin {

std::string RateSources::text() const {
    if (measured == 0) return "nominal";
    return measured == known ? "measured" : fmt::format("{} of {} measured", measured, known);
}

RateSources rate_sources(const Machine& machine) {
    RateSources out;
    const auto add = [&](const Figure& rate, const Figure& sustained) {
        const bool is_measured = rate.origin == Origin::measured;
        if (!sustained.known() && !is_measured) return;
        ++out.known;
        out.measured += is_measured || sustained.origin != Origin::estimated ? 1 : 0;
    };
    for (const Level& level : machine.levels) add(level.bandwidth_bytes_per_s, level.sustained);
    for (const Unit& unit : machine.units)
        if (!unit.per_clock.empty()) add(unit.per_clock.begin()->second, unit.sustained);
    return out;
}

}  // namespace napkin
