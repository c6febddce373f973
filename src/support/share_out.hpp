#pragma once
// Independent pieces of work on all processors.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "support/threads.hpp"

namespace napkin {

/// As long as there is one of these, threads that have done a piece of work wait for the next one.
/// A thread that ends hands its memory to others, which takes longer than many a piece of work.
class Helpers {
public:
    class Crew;
    Helpers();
    /// Calls work(t) for some t below `count`, each once and at the same time: here for 0, and for others as far as
    /// there are threads. The work throws nothing.
    void run(std::size_t count, const std::function<void(std::size_t)>& work) const;

private:
    std::shared_ptr<Crew> crew_;
};

/// Calls work(i) for each i below `count`, each once and begun in their order. As many threads do it as there are
/// processors, at most `most_threads`, or fewer where the system gives no more. Returns when all is done, and rethrows
/// what one call throws.
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
    Helpers().run(thrown.size(), take);
    for (const std::exception_ptr& one : thrown)
        if (one) std::rethrow_exception(one);
}

/// Calls run(begin, end) for runs that together are [0, count), on as many threads as there are processors. Each thread
/// gets at least `enough` of the total `work`. If that leaves one thread, the caller's does all.
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
