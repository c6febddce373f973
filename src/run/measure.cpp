#include "run/measure.hpp"

#include <algorithm>
#include <chrono>

namespace napkin {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Medians interleaved_medians(const std::vector<std::function<void()>>& candidates, double seconds) {
    constexpr int fewest = 3, most = 1000;
    std::vector<std::vector<double>> times(candidates.size());
    Medians result;
    const auto start = Clock::now();
    while (result.repetitions == 0 || (result.repetitions < fewest && since(start) < 5 * seconds) ||
           (result.repetitions < most && since(start) < seconds)) {
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const auto begin = Clock::now();
            candidates[i]();
            times[i].push_back(since(begin));
        }
        ++result.repetitions;
    }
    for (auto& list : times) result.seconds.push_back(median(std::move(list)));
    return result;
}

}  // namespace napkin
