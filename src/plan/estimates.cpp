#include "plan/estimates.hpp"

namespace napkin {

SearchedFields searched_fields(const KernelSchedule& schedule) {
    SearchedFields out{schedule.vector_axis, schedule.mma_m, schedule.panel_vectors, {}, {}};
    out.group.reserve(schedule.group.size()), out.stream.reserve(schedule.stream.size());
    for (const auto& [axis, choice] : schedule.group) out.group.emplace_back(axis, choice.value, choice.by_user);
    for (const auto& [axis, choice] : schedule.stream) out.stream.emplace_back(axis, choice.value, choice.by_user);
    return out;
}

KernelEstimates& Estimates::of(const std::string& question) {
    const std::lock_guard lock(mutex_);
    return kernels_[question];
}

KnownCounts& Estimates::counts_of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return counts_[text];
}

std::size_t Estimates::num_simulated() const {
    std::size_t out = 0;
    for (const auto& [question, kernel] : kernels_)
        for (const auto& [fields, rating] : kernel.candidates) out += rating.times ? 1 : 0;
    return out;
}

}  // namespace napkin
