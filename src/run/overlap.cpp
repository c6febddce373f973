#include "run/overlap.hpp"

#include <cstdlib>

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// A step that may be taken from 0 up to `most` times.
struct Stride {
    std::int64_t bytes = 1;
    std::int64_t most = 0;
};

/// Whether some number of each step adds up to the target: a bounded linear Diophantine equation. The longest steps
/// come first, and what the shorter ones can still reach leaves few counts of each; for arrays whose axes are nested in
/// each other, two.
class Sums {
public:
    explicit Sums(std::vector<Stride> steps) : steps_(std::move(steps)) {
        sort(steps_, [](const Stride& a, const Stride& b) { return a.bytes > b.bytes; });
        reach_.resize(steps_.size() + 1, 0);
        for (std::size_t i = steps_.size(); i-- > 0;) reach_[i] = reach_[i + 1] + steps_[i].bytes * steps_[i].most;
    }

    [[nodiscard]] bool contain(std::int64_t target, std::size_t i = 0) const {
        if (target < 0 || target > reach_[i]) return false;
        if (target == 0 || target == reach_[i]) return true;
        if (i == steps_.size()) return false;
        const Stride& step = steps_[i];
        const std::int64_t rest = reach_[i + 1];
        const std::int64_t least = target > rest ? (target - rest + step.bytes - 1) / step.bytes : 0;
        for (std::int64_t n = std::min(step.most, target / step.bytes); n >= least; --n)
            if (contain(target - n * step.bytes, i + 1)) return true;
        return false;
    }

private:
    std::vector<Stride> steps_;
    std::vector<std::int64_t> reach_;  ///< of the steps from each on
};

bool is_empty(const StridedArray& a) { return contains(a.sizes, 0); }

/// The steps of an array from its lowest address, which is as much below the base as `below` says.
std::vector<Stride> steps_of(const StridedArray& a, std::int64_t& below) {
    std::vector<Stride> steps;
    below = 0;
    for (std::size_t d = 0; d < a.sizes.size(); ++d) {
        if (a.sizes[d] <= 1) continue;
        const std::int64_t bytes = a.strides[d] * a.width, most = a.sizes[d] - 1;
        if (bytes < 0) below += -bytes * most;
        if (bytes != 0) steps.push_back({std::abs(bytes), most});
    }
    return steps;
}

}  // namespace

bool is_addressable(const StridedArray& a) {
    if (is_empty(a)) return true;
    // Half of the address space is more than any program has, and leaves sums of two arrays' reaches in range.
    constexpr std::int64_t limit = std::int64_t{1} << 61;
    std::int64_t above = a.width, below = 0;
    for (std::size_t d = 0; d < a.sizes.size(); ++d) {
        if (a.sizes[d] <= 1) continue;
        std::int64_t reach = 0;
        if (__builtin_mul_overflow(a.strides[d], a.width, &reach) ||
            __builtin_mul_overflow(reach, a.sizes[d] - 1, &reach) || reach > limit || reach < -limit)
            return false;
        (reach < 0 ? below : above) += std::abs(reach);
        if (above > limit || below > limit) return false;
    }
    return a.base >= static_cast<std::uintptr_t>(below) && a.base <= UINTPTR_MAX - static_cast<std::uintptr_t>(above);
}

bool overlaps_itself(const StridedArray& a) {
    if (is_empty(a)) return false;
    // Two elements differ by some count of each step, of either sign. With the first step that differs taken forwards,
    // and the others counted from their most backwards, all counts are positive.
    std::int64_t ignored = 0;
    std::vector<Stride> steps = steps_of(a, ignored);
    for (std::size_t d = 0; d < a.sizes.size(); ++d)
        if (a.sizes[d] > 1 && a.strides[d] == 0) return true;
    // Nested axes, by far the usual case: each step is longer than all that the shorter ones reach.
    sort(steps, [](const Stride& x, const Stride& y) { return x.bytes < y.bytes; });
    std::int64_t reach = a.width - 1;
    bool nested = true;
    for (const Stride& step : steps) {
        nested = nested && step.bytes > reach;
        reach += step.bytes * step.most;
    }
    if (nested) return false;
    for (std::size_t first = 0; first < steps.size(); ++first) {
        std::vector<Stride> differences{{1, 2 * (a.width - 1)}};
        std::int64_t offset = a.width - 1;
        for (std::size_t d = first; d < steps.size(); ++d) {
            const bool forwards = d == first;
            differences.push_back({steps[d].bytes, forwards ? steps[d].most - 1 : 2 * steps[d].most});
            offset += forwards ? -steps[d].bytes : steps[d].bytes * steps[d].most;
        }
        if (Sums(std::move(differences)).contain(offset)) return true;
    }
    return false;
}

bool overlap(const StridedArray& a, const StridedArray& b) {
    if (is_empty(a) || is_empty(b)) return false;
    std::int64_t below_a = 0, below_b = 0;
    std::vector<Stride> steps = steps_of(a, below_a), others = steps_of(b, below_b);
    const std::uintptr_t low_a = a.base - static_cast<std::uintptr_t>(below_a);
    const std::uintptr_t low_b = b.base - static_cast<std::uintptr_t>(below_b);
    std::int64_t reach_a = a.width - 1, reach_b = b.width - 1;
    for (const Stride& step : steps) reach_a += step.bytes * step.most;
    for (const Stride& step : others) reach_b += step.bytes * step.most;
    if (low_a > low_b + static_cast<std::uintptr_t>(reach_b) || low_b > low_a + static_cast<std::uintptr_t>(reach_a))
        return false;
    // low_a + Σ steps of a = low_b + Σ steps of b, with b's counted from their most backwards.
    steps.push_back({1, a.width - 1});
    append(steps, others);
    steps.push_back({1, b.width - 1});
    const auto apart = static_cast<std::int64_t>(low_b - low_a);
    return Sums(std::move(steps)).contain(apart + reach_b);
}

}  // namespace napkin
