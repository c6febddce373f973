#include "plan/kernel_times.hpp"

#include <exception>

namespace napkin {

std::optional<double> KernelTimes::known(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    const auto found = seconds_.find(text);
    if (found == seconds_.end() || !is_there(found->second)) return std::nullopt;
    return found->second.get();
}

bool KernelTimes::is_under_way(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    const auto found = seconds_.find(text);
    return found != seconds_.end() && !is_there(found->second);
}

double KernelTimes::seconds(const std::string& text, const std::function<double()>& find) {
    std::unique_lock lock(mutex_);
    if (const auto found = seconds_.find(text); found != seconds_.end()) {
        const Answer answer = found->second;
        lock.unlock();
        return answer.get();
    }
    std::promise<double> answer;
    seconds_.emplace(text, answer.get_future().share());
    lock.unlock();
    try {
        const double seconds = find();
        answer.set_value(seconds);
        return seconds;
    } catch (...) {
        answer.set_exception(std::current_exception());
        throw;
    }
}

std::size_t KernelTimes::size() const {
    const std::lock_guard lock(mutex_);
    return seconds_.size();
}

}  // namespace napkin
