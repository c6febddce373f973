#include "study/size_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "diagram/flat_axes.hpp"
#include "plan/other_sizes.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

constexpr int longest_power = 20;  ///< lengths are tried up to 2^20
constexpr double never = std::numeric_limits<double>::infinity();

class ClassSearch {
public:
    ClassSearch(std::shared_ptr<const Source> source, PipelineOptions options, std::vector<std::string> axes)
        : source_(std::move(source)), options_(std::move(options)), axes_(std::move(axes)) {}

    Result<SizeClasses> run() {
        if (Status planned = plan(); !planned) return planned.errors();
        time_all();
        kept_ = cover();
        SizeClasses out{
            plans_.front().diagram.name, axes_, plans_.front().machine.name, kept_.size(), {}, lengths_.back()};
        // Past a multiple of a tile another plan may be faster at once.
        std::vector<std::int64_t> tried;
        for (const std::int64_t length : lengths_)
            for (const std::int64_t other : {length, length + 1, length + length / 2})
                if (other <= lengths_.back() && (tried.empty() || other > tried.back())) tried.push_back(other);
        std::vector<std::size_t> fastest(tried.size());
        share_out(tried.size(), [&](std::size_t i) { fastest[i] = fastest_at(tried[i]); });
        std::size_t plan = fastest.front();
        out.classes.push_back(starting(1, plan));
        for (std::size_t i = 0; i < tried.size(); ++i) {
            // A plan stays as long as it is near enough to the fastest one.
            if (plan != fastest[i] && is_too_slow(plan, fastest[i], tried[i])) {
                const std::int64_t change = crossover(plan, fastest[i], tried[i - 1], tried[i]);
                end_with(out.classes.back(), change - 1, plan);
                plan = fastest[i];
                out.classes.push_back(starting(change, plan));
            }
            const auto power = find(lengths_, tried[i]);
            if (power == lengths_.end()) continue;
            const auto at_power = static_cast<std::size_t>(power - lengths_.begin());
            double& slower = out.classes.back().slower;
            slower = std::max(slower, seconds_[plan][at_power] / best_[at_power] - 1);
        }
        end_with(out.classes.back(), lengths_.back(), plan);
        return out;
    }

private:
    [[nodiscard]] PipelineOptions at_length(std::int64_t length) const {
        PipelineOptions out = options_;
        for (const std::string& axis : axes_) out.sizes[axis] = length;
        return out;
    }

    /// Lengths past which there is no plan are left out: arrays may exceed what can be addressed.
    Status plan() {
        std::vector<std::optional<Result<Compilation>>> made(longest_power + 1);
        share_out(made.size(),
                  [&](std::size_t i) { made[i].emplace(run_pipeline(source_, at_length(std::int64_t{1} << i))); });
        for (std::size_t i = 0; i < made.size(); ++i) {
            if (!*made[i]) {
                if (i == 0) return made[i]->errors();
                break;
            }
            plans_.push_back(std::move(**made[i]));
            lengths_.push_back(std::int64_t{1} << i);
        }
        return Done{};
    }

    [[nodiscard]] double seconds(std::size_t plan, std::int64_t length) const {
        if (length == lengths_[plan]) return plans_[plan].plan.seconds();
        const auto other = at_other_sizes(plans_[plan], at_length(length));
        return other ? other->plan.seconds() : never;
    }

    void time_all() {
        const std::size_t n = plans_.size();
        seconds_.assign(n, std::vector<double>(n, never));
        share_out(n * n, [&](std::size_t pair) {
            const std::size_t plan = pair / n, length = pair % n;
            seconds_[plan][length] = seconds(plan, lengths_[length]);
        });
        for (std::size_t i = 0; i < n; ++i) {
            best_.push_back(never);
            for (const std::vector<double>& of_plan : seconds_) best_[i] = std::min(best_[i], of_plan[i]);
        }
    }

    [[nodiscard]] bool serves(std::size_t plan, std::size_t i) const {
        return is_near_enough(seconds_[plan][i], best_[i], lengths_[i]);
    }

    /// One plan after the other that serves the most lengths yet unserved. The last one that may be kept leaves none
    /// without any plan, if there is such a one.
    [[nodiscard]] std::vector<std::size_t> cover() const {
        std::vector<std::size_t> kept;
        std::vector<bool> is_served(lengths_.size()), has_plan(lengths_.size());
        while (kept.size() < most_kernels_of_classes && !all_of(is_served, [](bool served) { return served; })) {
            std::pair<std::size_t, std::size_t> most;
            std::size_t chosen = 0;
            for (std::size_t plan = plans_.size(); plan-- > 0;) {
                std::pair<std::size_t, std::size_t> more;
                for (std::size_t i = 0; i < lengths_.size(); ++i) {
                    const bool is_last = kept.size() + 1 == most_kernels_of_classes;
                    more.first += is_last && !has_plan[i] && seconds_[plan][i] < never ? 1 : 0;
                    more.second += !is_served[i] && serves(plan, i) ? 1 : 0;
                }
                if (more > most) most = more, chosen = plan;
            }
            kept.push_back(chosen);
            for (std::size_t i = 0; i < lengths_.size(); ++i) {
                is_served[i] = is_served[i] || serves(chosen, i);
                has_plan[i] = has_plan[i] || seconds_[chosen][i] < never;
            }
        }
        return kept;
    }

    [[nodiscard]] std::size_t fastest_at(std::int64_t length) const {
        std::size_t fastest = kept_.front();
        double least = never;
        for (const std::size_t plan : kept_)
            if (const double time = seconds(plan, length); time < least) least = time, fastest = plan;
        return fastest;
    }

    [[nodiscard]] bool is_too_slow(std::size_t plan, std::size_t beside, std::int64_t length) const {
        return !is_near_enough(seconds(plan, length), seconds(beside, length), length);
    }

    /// The first length at which `before` is too slow beside `after`, to a sixteenth. Pre: it is at `high`, and not at
    /// `low`.
    [[nodiscard]] std::int64_t crossover(std::size_t before, std::size_t after, std::int64_t low, std::int64_t high) const {
        while (high - low > std::max<std::int64_t>(1, high / 16)) {
            const std::int64_t middle = low + (high - low) / 2;
            (is_too_slow(before, after, middle) ? high : low) = middle;
        }
        return high;
    }

    [[nodiscard]] SizeClass starting(std::int64_t length, std::size_t plan) const {
        return {length, length, lengths_[plan], seconds(plan, length), 0, 0};
    }
    void end_with(SizeClass& one, std::int64_t length, std::size_t plan) const {
        one.to = length, one.seconds_to = seconds(plan, length);
    }

    std::shared_ptr<const Source> source_;
    PipelineOptions options_;
    std::vector<std::string> axes_;
    std::vector<std::int64_t> lengths_;
    std::vector<Compilation> plans_;            ///< by length
    std::vector<std::vector<double>> seconds_;  ///< by plan and length
    std::vector<double> best_;                  ///< by length
    std::vector<std::size_t> kept_;             ///< of the plans
};

}  // namespace

std::vector<std::string> open_axes(const std::shared_ptr<const Source>& source, PipelineOptions options) {
    options.until = Pass::parse;
    std::vector<std::string> out;
    const auto parsed = run_pipeline(source, options);
    if (!parsed) return out;
    const Diagram& diagram = parsed->diagram;
    for (const AxisId axis : diagram.axes.ids())
        if (const Axis& a = diagram.axis(axis); a.is_any && !a.size && parts_of_flat_axis(diagram, axis).empty())
            if (!options.sizes.contains(a.name)) out.push_back(a.name);
    return out;
}

Result<SizeClasses> size_classes(const std::shared_ptr<const Source>& source, const PipelineOptions& options,
                                 std::vector<std::string> axes) {
    PipelineOptions planning = options;
    planning.until = Pass::plan;
    return ClassSearch(source, std::move(planning), std::move(axes)).run();
}

report::Section report_of(const SizeClasses& found) {
    report::Section out;
    out.data("diagram", found.diagram);
    out.data("machine", found.machine);
    out.data("axes", found.axes);
    out.data("plans", found.num_plans);
    out.text(fmt::format("{} plan{} for {} from 1 to {} on {}", found.num_plans, found.num_plans == 1 ? "" : "s",
                         join(found.axes, " = "), found.longest, found.machine));
    const std::vector<report::ColumnOf<SizeClass>> columns = {
        {"from", "from", [](const SizeClass& c) { return report::whole(c.from); }},
        {"to", "to", [](const SizeClass& c) { return report::whole(c.to); }},
        {"planned_at", "planned at", [](const SizeClass& c) { return report::whole(c.planned_at); }},
        {"seconds_from", "time", [](const SizeClass& c) { return report::seconds(c.seconds_from); }},
        {"seconds_to", "to …", [](const SizeClass& c) { return report::seconds(c.seconds_to); }},
        {"slower", "slower than its own plan", [](const SizeClass& c) { return report::percent(c.slower); }},
    };
    out.table(report::table_of<SizeClass>("classes", "", found.classes, columns));
    return out;
}

}  // namespace napkin
