#pragma once
// What alternative forms have in common, so that it is found out once: the times of kernels, and the estimates of their
// candidates.
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "plan/estimates.hpp"

namespace napkin {

/// Any number of threads may ask at a time.
class KernelTimes {
public:
    /// `ratings`: PlanOptions::ratings.
    explicit KernelTimes(std::shared_ptr<Estimates> ratings = {}) : ratings_(std::move(ratings)) {}

    [[nodiscard]] const std::shared_ptr<Estimates>& ratings() const { return ratings_; }
    /// Seconds of the kernel with that text (text_of), which determines its time. None where nobody has asked for it,
    /// or where the answer is under way.
    [[nodiscard]] std::optional<double> known(const std::string& text) const;
    /// Whether somebody has asked for it and is finding it out.
    [[nodiscard]] bool is_under_way(const std::string& text) const;
    /// Seconds of a kernel. The first who asks computes them by `find`. Others wait for its result, or for what it
    /// throws.
    double seconds(const std::string& text, const std::function<double()>& find);
    /// Kernels that somebody has asked for.
    [[nodiscard]] std::size_t size() const;

private:
    using Answer = std::shared_future<double>;
    static bool is_there(const Answer& answer) {
        return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    mutable std::mutex mutex_;
    std::map<std::string, Answer> seconds_;
    std::shared_ptr<Estimates> ratings_;
};

}  // namespace napkin
