#pragma once
// Timing of things against each other: they run in turn, so that a machine that grows slower or faster does so for all
// of them.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "run/memory.hpp"
#include "run/workers.hpp"

namespace napkin {

struct Medians {
    std::vector<double> seconds;  ///< by position
    int repetitions = 0;
};

/// Runs all in turn for about the given time, each at least three times (once when a round takes more than five times
/// the time), at most 1000 times. What is measured should have run once before. `between`, where it is given, runs
/// before each and is not timed.
Medians interleaved_medians(const std::vector<std::function<void()>>& candidates, double seconds,
                            const std::function<void()>& between = {});

/// Fills a processor's caches with data that nobody asks for, so that what is measured next finds its arrays in memory.
/// The data are only read, and no line is left that would have to be written back meanwhile.
class CacheFlush {
public:
    /// Flushes caches that hold so many bytes together. Where twice as much memory cannot be had, flushes nothing.
    CacheFlush(double cache_bytes, int threads);
    void run();

private:
    Workers workers_;
    std::int64_t lines_ = 0;
    Memory memory_;
    std::vector<std::uint64_t> read_;  ///< by thread: keeps the reads from being left out
};

/// Short jobs that are timed in turn, again and again, each with its shortest time: what else runs on the machine
/// lengthens the timing and not the times.
class ShortestTimes {
public:
    /// job(n) repeats itself n times; n is chosen such that a call takes at least `seconds`.
    void add(const std::string& name, double seconds, std::function<void(std::int64_t)> job);
    /// Rounds for about the given time, at least three.
    void run(double seconds);
    /// The time of one repetition.
    [[nodiscard]] double operator[](const std::string& name) const;
    /// Share of the time of all rounds so far that other work, or the host of a virtual machine, took. It is the time
    /// beyond each job's shortest, as if every call had taken that. 0 before the first round.
    [[nodiscard]] double taken() const;

private:
    struct Job {
        std::function<void(std::int64_t)> run;
        std::int64_t n;
        double least;  ///< seconds of run(n)
    };
    std::map<std::string, Job> jobs_;
    int rounds_ = 0;
    double spent_ = 0;  ///< seconds of all rounds
};

}  // namespace napkin
