#include "study/compare.hpp"

#include <fmt/format.h>

#include "support/numbers.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

AxisSizes at_size(const TiedAxes& group, std::int64_t size) {
    AxisSizes sizes;
    for (const std::string& axis : group.axes) sizes[axis] = size;
    return sizes;
}

bool is_fixed(const std::vector<Subject>& subjects, const TiedAxes& group) {
    return any_of(group.axes, [&](const std::string& axis) {
        return any_of(subjects, [&](const Subject& s) { return s.fixed.contains(axis); });
    });
}

/// Some side runs, and the size is one for every side.
bool is_of_use(const std::vector<Outcome>& outcomes) {
    return none_of(outcomes, [](const Outcome& o) { return o.has_no_sizes(); }) &&
           any_of(outcomes, [](const Outcome& o) { return o.figures.has_value(); });
}

/// The powers of two up to the largest and the present size, as far up and down from that as they are of use.
Result<std::vector<std::int64_t>> sizes_to_look_at(CostTable& table, const TiedAxes& group, std::int64_t largest) {
    std::vector<std::int64_t> all = {group.size};
    for (std::int64_t size = 1; size <= largest; size *= 2) all.push_back(size);
    sort_unique(all);
    const auto present = find(all, group.size) - all.begin();
    std::vector<std::int64_t> sizes;
    for (auto i = present; i < std::ssize(all); ++i) {
        const auto outcomes = table.at(at_size(group, all[at(i)]));
        if (!outcomes) return outcomes.errors();
        if (!is_of_use(*outcomes)) break;
        sizes.push_back(all[at(i)]);
    }
    for (auto i = present - 1; i >= 0; --i) {
        const auto outcomes = table.at(at_size(group, all[at(i)]));
        if (!outcomes) return outcomes.errors();
        if (!is_of_use(*outcomes)) break;
        sizes.insert(sizes.begin(), all[at(i)]);
    }
    return sizes;
}

/// Why the loser lost, where it is not for its time.
std::string reason(const std::vector<Subject>& subjects, const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (!outcomes[i].figures) return fmt::format("{} does not run: {}", subjects[i].label, outcomes[i].why.message);
    return "";
}

Result<WinnersAlong> winners_along(CostTable& table, const TiedAxes& group, std::int64_t largest) {
    const auto sizes = sizes_to_look_at(table, group, largest);
    if (!sizes) return sizes.errors();
    WinnersAlong out{group, group.size, group.size, nobody, {}, {}};
    if (sizes->empty()) return out;
    const auto best = [&](std::int64_t size) -> Result<int> {
        const auto outcomes = table.at(at_size(group, size));
        if (!outcomes) return outcomes.errors();
        return best_of(*outcomes, Criterion::time);
    };
    auto flips = find_flips(*sizes, table.looks_near_flips(), best);
    if (!flips) return flips.errors();
    out.from = sizes->front();
    out.to = sizes->back();
    out.at_from = *best(out.from);
    out.flips = std::move(flips).value();
    for (const Flip& flip : out.flips)
        out.why.push_back(
            reason(table.subjects(), *table.at(at_size(group, flip.before == nobody ? flip.at - 1 : flip.at))));
    return out;
}

}  // namespace

Result<Comparison> compare(std::vector<Subject> subjects, std::int64_t largest) {
    auto tied = tied_axes(subjects);
    if (!tied) return tied.errors();
    CostTable table(std::move(subjects));
    auto outcomes = table.at({});
    if (!outcomes) return outcomes.errors();
    Comparison out{table.subjects(), std::move(tied).value(), std::move(outcomes).value(), {}, largest};
    for (const Outcome& outcome : out.outcomes)
        if (outcome.has_no_sizes()) return outcome.why;
    CostTable estimates(by_closed_form(out.subjects));
    for (const TiedAxes& group : out.sizes) {
        if (is_fixed(out.subjects, group)) continue;
        auto along = winners_along(estimates, group, largest);
        if (!along) return along.errors();
        out.along.push_back(std::move(along).value());
    }
    return out;
}

}  // namespace napkin
