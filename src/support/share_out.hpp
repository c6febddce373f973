#pragma once
// Independent pieces of work on all processors.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

#include "support/threads.hpp"

namespace napkin {

/// Calls work(i) for each i below `count`, each once and begun in their order, by as many threads as there are processors and at most so many; by fewer
/// where the system gives no more. Returns when all is done; what one throws comes out.
template <class Work>
void share_out(std::size_t count, const Work& work, std::size_t most_threads = std::numeric_limits<std::size_t>::max()) {
    std::atomic<std::size_t> next = 0;
    const std::size_t threads = std::min<std::size_t>(
        {count, most_threads, std::max(1U, std::thread::hardware_concurrency())});
    std::vector<std::exception_ptr> thrown(std::max<std::size_t>(threads, 1));
    const auto take = [&](std::size_t t) {
        try {
            for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            thrown[t] = std::current_exception();
        }
    };
    {
        std::vector<Thread> others(thrown.size() - 1);
        for (std::size_t t = 1; t < threads; ++t)
            if (others[t - 1].start([&take, t] { take(t); }) != 0) break;
        take(0);
    }
    for (const std::exception_ptr& one : thrown)
        if (one) std::rethrow_exception(one);
}

/// Calls run(begin, end) for runs that are together [0, count), on as many threads as there are processors, of which each has `enough` of the `work` that
/// all of it is, or on one.
template <class Run>
void share_out_runs(std::int64_t count, double work, double enough, const Run& run) {
    const auto wanted = static_cast<std::int64_t>(
        std::min<double>(std::max(1U, std::thread::hardware_concurrency()), work / enough));
    const std::int64_t runs = std::min(wanted, count);
    if (runs <= 1) return run(std::int64_t{0}, count);
    share_out(static_cast<std::size_t>(runs), [&](std::size_t i) {
        const auto r = static_cast<std::int64_t>(i);
        run(count * r / runs, count * (r + 1) / runs);
    });
}

}  // namespace napkin
