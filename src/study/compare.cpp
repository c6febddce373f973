#include "study/compare.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

#include "support/ranges.hpp"
#include "support/share_out.hpp"

namespace napkin {
namespace {

struct Looked {
    std::int64_t size;
    std::vector<Outcome> outcomes;
    [[nodiscard]] int best() const { return best_of(outcomes, Criterion::time); }
};

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

/// Why the loser lost, where it is not for its time.
std::string reason(const std::vector<Subject>& subjects, const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (!outcomes[i].figures) return fmt::format("{} does not run: {}", subjects[i].label, outcomes[i].why.message);
    return "";
}

/// About the geometric mean. It is as round as their distance allows, as kernels of odd sizes are other ones.
std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto step = std::bit_floor(static_cast<std::uint64_t>(high - low + 7) / 8);
    const auto mean = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
    return std::max(low + 1, static_cast<std::int64_t>(mean / step * step));
}

Result<Looked> look(const std::vector<Subject>& subjects, const TiedAxes& group, std::int64_t size) {
    auto outcomes = outcomes_at(subjects, sizes_at({{group.axes, {}}}, {size}));
    if (!outcomes) return outcomes.errors();
    return Looked{size, std::move(outcomes).value()};
}

/// Adds the changes from `low` to `high`.
Status narrow(const std::vector<Subject>& subjects, const Looked& low, const Looked& high, WinnersAlong& out) {
    if (low.best() == high.best()) return Done{};
    if (high.size - low.size <= std::max<std::int64_t>(1, low.size / 16)) {
        out.changes.push_back({low.size, high.size, high.best()});
        out.why.push_back(reason(subjects, (low.best() == nobody ? low : high).outcomes));
        return Done{};
    }
    const auto middle = look(subjects, out.axes, between(low.size, high.size));
    if (!middle) return middle.errors();
    if (const Status below = narrow(subjects, low, *middle, out); !below) return below;
    return narrow(subjects, *middle, high, out);
}

Result<WinnersAlong> winners_along(const std::vector<Subject>& subjects, const TiedAxes& group,
                                   const std::vector<Outcome>& present) {
    WinnersAlong out{group, group.size, group.size, nobody, {}, {}};
    std::vector<Looked> points;
    for (const std::int64_t size : {std::max<std::int64_t>(1, group.size / farthest), group.size, farthest * group.size}) {
        const auto point = size == group.size ? Looked{size, present} : look(subjects, group, size);
        if (!point) return point.errors();
        if (is_of_use(point->outcomes)) points.push_back(*point);
    }
    if (points.empty()) return out;
    out.from = points.front().size, out.to = points.back().size, out.at_from = points.front().best();
    for (std::size_t i = 1; i < points.size(); ++i)
        if (const Status done = narrow(subjects, points[i - 1], points[i], out); !done) return done.errors();
    return out;
}

}  // namespace

Result<Comparison> compare(std::vector<Subject> subjects) {
    auto tied = tied_axes(subjects);
    if (!tied) return tied.errors();
    auto outcomes = outcomes_at(subjects, {});
    if (!outcomes) return outcomes.errors();
    Comparison out{std::move(subjects), std::move(tied).value(), std::move(outcomes).value(), {}};
    for (const Outcome& outcome : out.outcomes)
        if (outcome.has_no_sizes()) return outcome.why;
    std::vector<TiedAxes> groups = out.sizes;
    std::erase_if(groups, [&](const TiedAxes& group) { return is_fixed(out.subjects, group); });
    std::vector<std::optional<Result<WinnersAlong>>> along(groups.size());
    share_out(groups.size(), [&](std::size_t i) { along[i] = winners_along(out.subjects, groups[i], out.outcomes); });
    for (auto& found : along) {
        if (!found->ok()) return found->errors();
        out.along.push_back(std::move(*found).value());
    }
    return out;
}

}  // namespace napkin
