#pragma once
// Texts that say why a plan is what it is, and what is wrong with one that is asked for, from figures.
#include <cstdint>
#include <string>

#include "diagram/diagram.hpp"
#include "schedule/simulate.hpp"
#include "support/result.hpp"

namespace napkin {

/// "3% slower", from the ratio of a time to the one that is chosen.
std::string time_change(double ratio);
/// What the tiles take of the core's memory.
std::string memory_text(double bytes, const Simulator& model);
std::string nothing_fits_text(const Simulator& model);
/// How a size that is chosen divides its axis. Empty where there is nothing to say.
struct ChosenSize {
    std::int64_t size = 1, extent = 1;
    bool stream = false;
    bool cuts_recompute = false;  ///< only to fit: the axis repeats work where it is grouped
    std::int64_t vectors = 0;     ///< of a panel, where the kernel's vectors run along the axis; else 0
    std::int64_t lanes = 1;
};
std::string size_text(const ChosenSize& chosen);
/// How evenly the groups are spread over the threads.
std::string groups_text(std::int64_t groups, std::int64_t threads);
std::string uneven_groups_text(std::int64_t groups, double waves);

/// memory-exceeded: the overridden size is too large at any other sizes. `nearest`: the largest of its axis that fits,
/// or 0.
Diagnostic size_exceeds_memory(const ScheduleItem& item, double need, std::int64_t nearest, const Simulator& model);
/// memory-exceeded: no sizes fit.
Diagnostic kernel_exceeds_memory(double need, const Simulator& model);

}  // namespace napkin
