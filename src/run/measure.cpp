#include "run/measure.hpp"
#include "support/ranges.hpp"

#include <chrono>
#include <cstring>
#include <utility>

namespace napkin {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double timed(const std::function<void(std::int64_t)>& job, std::int64_t n) {
    const auto start = Clock::now();
    job(n);
    return since(start);
}

double median(std::vector<double> values) {
    sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Medians interleaved_medians(const std::vector<std::function<void()>>& candidates, double seconds,
                            const std::function<void()>& between) {
    constexpr int fewest = 3, most = 1000;
    std::vector<std::vector<double>> times(candidates.size());
    Medians result;
    const auto start = Clock::now();
    while (result.repetitions == 0 || (result.repetitions < fewest && since(start) < 5 * seconds) ||
           (result.repetitions < most && since(start) < seconds)) {
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (between) between();
            const auto begin = Clock::now();
            candidates[i]();
            times[i].push_back(since(begin));
        }
        ++result.repetitions;
    }
    for (auto& list : times) result.seconds.push_back(median(std::move(list)));
    return result;
}

namespace {
/// Reads of this distance touch every line: lines have as many bytes on x86-64 and on most Arm processors, and more on
/// the others.
constexpr std::int64_t line_bytes = 64;
/// A cache evicts lines in an order of its own. So its capacity is read this many times over, which leaves little of
/// what was there before.
constexpr double times_over = 2;
}  // namespace

CacheFlush::CacheFlush(double cache_bytes, int threads) : workers_(threads), read_(static_cast<std::size_t>(threads)) {
    const auto lines = static_cast<std::int64_t>(times_over * cache_bytes) / line_bytes;
    memory_ = allocate(lines * line_bytes);
    if (!memory_) return;
    lines_ = lines;
    // Pages that were never written are all the same one.
    workers_.split(lines_, [&](std::int64_t begin, std::int64_t end) {
        std::memset(static_cast<char*>(memory_.get()) + begin * line_bytes, 1,
                    static_cast<std::size_t>((end - begin) * line_bytes));
    });
}

void CacheFlush::run() {
    workers_.run([&](int worker) {
        const auto* const words = static_cast<const std::uint64_t*>(memory_.get());
        const std::int64_t begin = lines_ * worker / workers_.threads(), end = lines_ * (worker + 1) / workers_.threads();
        std::uint64_t sum = 0;
        for (std::int64_t line = begin; line < end; ++line) sum += words[line * line_bytes / 8];
        read_[static_cast<std::size_t>(worker)] += sum;
    });
}

void ShortestTimes::add(const std::string& name, double seconds, std::function<void(std::int64_t)> job) {
    // The first call finds nothing in the caches and unmapped pages, and any call may be interrupted. So a repetition
    // that seems long enough has to be so three times.
    const auto shortest = [&](std::int64_t n) { return std::min({timed(job, n), timed(job, n), timed(job, n)}); };
    std::int64_t n = 1;
    double once = shortest(n);
    while (once < seconds && n < (std::int64_t{1} << 40)) {
        n *= 2;
        once = shortest(n);
    }
    jobs_.insert_or_assign(name, Job{std::move(job), n, once});
}

void ShortestTimes::run(double seconds) {
    const auto start = Clock::now();
    for (int round = 0; round < 3 || since(start) < seconds; ++round, ++rounds_)
        for (auto& [name, job] : jobs_) {
            const double time = timed(job.run, job.n);
            spent_ += time;
            job.least = std::min(job.least, time);
        }
}

double ShortestTimes::taken() const {
    if (spent_ <= 0) return 0;
    double shortest = 0;
    for (const auto& [name, job] : jobs_) shortest += job.least;
    return std::max(0.0, 1 - shortest * rounds_ / spent_);
}

double ShortestTimes::operator[](const std::string& name) const {
    const Job& job = jobs_.at(name);
    return job.least / static_cast<double>(job.n);
}

}  // namespace napkin
