#include "run/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace napkin {

Workers::Workers(int threads) : wanted_(threads) {
    for (int worker = 1; worker < threads; ++worker) {
        why_fewer_ = threads_.emplace_back().start([this, worker] { serve(worker); });
        if (why_fewer_ == 0) continue;
        threads_.pop_back();
        break;
    }
}

Status Workers::all_started() const {
    if (why_fewer_ == 0) return Done{};
    return no_resource("no-thread", fmt::format("of {} threads only {} can be started", wanted_, threads()), why_fewer_);
}

Workers::~Workers() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    start_.notify_all();
    threads_.clear();
}

void Workers::run(const std::function<void(int)>& job) {
    if (threads_.empty()) return job(0);
    {
        const std::lock_guard lock(mutex_);
        job_ = &job;
        busy_ = static_cast<int>(threads_.size());
        ++round_;
    }
    start_.notify_all();
    job(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
}

void Workers::split(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& job) {
    if (count < 2) return job(0, count);
    run([&](int worker) {
        const std::int64_t begin = count * worker / threads(), end = count * (worker + 1) / threads();
        if (begin < end) job(begin, end);
    });
}

void Workers::deal(std::int64_t count, int threads, const std::function<void(int, std::int64_t, std::int64_t)>& job) {
    const std::int64_t sharing = std::min<std::int64_t>(threads, count);
    if (sharing < 2) return job(0, 0, count);
    std::atomic<std::int64_t> next{0};
    run([&](int worker) {
        if (worker >= sharing) return;
        for (std::int64_t first = next.load(); first < count;) {
            const std::int64_t take = std::max<std::int64_t>(1, (count - first) / (4 * sharing));
            if (!next.compare_exchange_weak(first, first + take)) continue;
            job(worker, first, first + take);
            first = next.load();
        }
    });
}

void Workers::serve(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
        const std::function<void(int)>* job = nullptr;
        {
            std::unique_lock lock(mutex_);
            start_.wait(lock, [&] { return stop_ || round_ != seen; });
            if (stop_) return;
            seen = round_;
            job = job_;
        }
        (*job)(worker);
        const std::lock_guard lock(mutex_);
        if (--busy_ == 0) done_.notify_one();
    }
}

}  // namespace napkin
