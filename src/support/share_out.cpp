#include "support/share_out.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

namespace napkin {

/// Threads that wait for work, as many as were needed at a time.
class Helpers::Crew {
public:
    Crew() = default;
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    ~Crew() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        has_work_.notify_all();
        threads_.clear();
    }

    /// Calls work(t) for t below `count`: work(0) here, each of the others where a thread is free before that ends.
    void run(std::size_t count, const std::function<void(std::size_t)>& work) {
        Job job{&work, 1, count, 0};
        {
            const std::lock_guard lock(mutex_);
            if (count > 1) jobs_.push_back(&job);
            wanted_ += count - 1;
            const std::size_t most = std::max(1U, std::thread::hardware_concurrency()) - 1;
            while (waiting_ < wanted_ && threads_.size() < most)
                if (!start()) break;
        }
        if (count > 1) has_work_.notify_all();
        work(0);
        std::unique_lock lock(mutex_);
        wanted_ -= job.end - job.next;
        std::erase(jobs_, &job);
        is_done_.wait(lock, [&] { return job.running == 0; });
    }

private:
    struct Job {
        const std::function<void(std::size_t)>* work;
        std::size_t next, end, running;  ///< the parts from `next` on have not begun
    };

    bool start() {
        auto thread = std::make_unique<Thread>();
        if (thread->start([this] { serve(); }) != 0) return false;
        ++waiting_;
        threads_.push_back(std::move(thread));
        return true;
    }
    void serve() {
        std::unique_lock lock(mutex_);
        while (true) {
            has_work_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
            if (ends_) return;
            Job& job = *jobs_.front();
            const std::size_t part = job.next++;
            if (job.next == job.end) jobs_.pop_front();
            --wanted_, --waiting_, ++job.running;
            lock.unlock();
            (*job.work)(part);
            lock.lock();
            ++waiting_;
            if (--job.running == 0) is_done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable has_work_, is_done_;
    std::deque<Job*> jobs_;
    std::size_t waiting_ = 0, wanted_ = 0;  ///< threads without work, and parts without a thread
    bool ends_ = false;
    std::vector<std::unique_ptr<Thread>> threads_;
};

namespace {
std::mutex crew_mutex;
std::weak_ptr<Helpers::Crew> the_crew;
}  // namespace

Helpers::Helpers() {
    const std::lock_guard lock(crew_mutex);
    crew_ = the_crew.lock();
    if (!crew_) the_crew = crew_ = std::make_shared<Crew>();
}

void Helpers::run(std::size_t count, const std::function<void(std::size_t)>& work) const { crew_->run(count, work); }

}  // namespace napkin
