#pragma once
// Threads that wait for work: pieces of one job are shared out among them, the caller being one of them.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "support/result.hpp"
#include "support/threads.hpp"

namespace napkin {

class Workers {
public:
    /// At least 1. Where the system gives no more, they are fewer.
    explicit Workers(int threads);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    [[nodiscard]] int threads() const { return static_cast<int>(threads_.size()) + 1; }
    /// Error no-thread (machine_lacks), where they are fewer than wanted.
    [[nodiscard]] Status all_started() const;
    /// Calls job(worker) once on every thread, with worker from 0 to threads() - 1, and returns when all calls did. The
    /// job throws nothing.
    void run(const std::function<void(int)>& job);
    /// Cuts [0, count) into one run of neighbours for each thread and calls job(begin, end) for those that are not
    /// empty.
    void split(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& job);

    /// Distributes [0, count) over the first `threads` threads. It calls job(worker, begin, end) for contiguous runs,
    /// which share data, on whichever thread is free. Runs get shorter towards the end, so that all threads finish
    /// together.
    void deal(std::int64_t count, int threads, const std::function<void(int, std::int64_t, std::int64_t)>& job);

private:
    void serve(int worker);

    int wanted_;
    int why_fewer_ = 0;  ///< an error number
    std::vector<Thread> threads_;
    std::mutex mutex_;
    std::condition_variable start_, done_;
    const std::function<void(int)>* job_ = nullptr;
    std::uint64_t round_ = 0;
    int busy_ = 0;
    bool stop_ = false;
};

}  // namespace napkin
