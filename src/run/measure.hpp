#pragma once
// Timing of things against each other: they run in turn, so that a machine that grows slower or faster does so for all of them.
#include <functional>
#include <vector>

namespace napkin {

struct Medians {
    std::vector<double> seconds;  ///< by position
    int repetitions = 0;
};

/// Runs all in turn for about the given time, each at least three times (once when a round takes more than five times the time), at most
/// 1000 times. What is measured should have run once before.
Medians interleaved_medians(const std::vector<std::function<void()>>& candidates, double seconds);

}  // namespace napkin
