#include "study/ranking.hpp"

#include <limits>

#include "support/ranges.hpp"

namespace napkin {

Result<Ranking> rank(std::vector<Subject> subjects) {
    auto tied = tied_axes(subjects);
    if (!tied) return tied.errors();
    auto outcomes = outcomes_at(subjects, {});
    if (!outcomes) return outcomes.errors();
    Ranking out{std::move(subjects), std::move(tied).value(), std::move(outcomes).value(), {}};
    if (none_of(out.outcomes, [](const Outcome& o) { return o.figures.has_value(); })) return out.outcomes.front().why;
    out.order.resize(out.outcomes.size());
    iota(out.order, std::size_t{0});
    // Those on which a kernel runs come first, by its time; then estimates.
    const auto rank = [&](std::size_t i) {
        const auto& figures = out.outcomes[i].figures;
        return std::pair(!out.outcomes[i].is_planned(),
                         figures ? figures->seconds : std::numeric_limits<double>::infinity());
    };
    stable_sort(out.order, [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    return out;
}

}  // namespace napkin
