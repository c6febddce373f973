#include "plan/accepted.hpp"

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <optional>
#include <set>

#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// As in `kernel O with groups of q = 128, chunks of x = 64, panels of 3 vectors along d, in blocks of 8 warps that
/// have 113.0 KiB each`.
std::string described(const KernelPlan& kernel) {
    const KernelSchedule& s = kernel.schedule();
    const Diagram& diagram = kernel.scheduled.program->diagram;
    const auto sizes = [&](const char* what, const std::map<AxisId, Choice>& chosen) {
        std::vector<std::string> parts;
        for (const auto& [axis, choice] : chosen)
            parts.push_back(fmt::format("{} = {}", diagram.axis(axis).name, choice.value));
        return parts.empty() ? std::string() : fmt::format(" {} of {},", what, join(parts, ", "));
    };
    std::string panels;
    if (s.vector_axis >= 0)
        panels = fmt::format(" panels of {} vector{} along {},", s.panel_vectors.value, s.panel_vectors == 1 ? "" : "s",
                             diagram.axis(s.vector_axis).name);
    const std::string clusters = kernel.scheduled.in_cluster()
                                     ? fmt::format(", {} a cluster along {}", s.cluster.value.ctas,
                                                   diagram.axis(s.cluster.value.axis).name)
                                     : "";
    return fmt::format("kernel {} with{}{}{} in blocks of {} warps that have {} each{}", s.kernel,
                       sizes("groups", s.group), sizes("chunks", s.stream), panels, s.warps.value,
                       bytes_text(static_cast<double>(kernel.scheduled.unit.share_bytes)), clusters);
}

struct RatedPlan {
    Plan plan;
    std::vector<KernelRefusal> refusals;
    std::set<std::size_t> refused = {};  ///< kernels of the derived form; the parts of one and their merge count once
};

/// Whether a candidate of the kernel was refused in the same words.
bool refused_alike(const std::vector<RatedPlan>& tried, const std::string& kernel, const KernelRefusal& refusal) {
    return any_of(tried, [&](const RatedPlan& earlier) {
        for (std::size_t k = 0; k < earlier.refusals.size(); ++k)
            if (earlier.plan.kernels[k].schedule().kernel == kernel && earlier.refusals[k].why == refusal.why)
                return true;
        return false;
    });
}

/// What the plan has of one kernel of the derived form: the kernel itself, or its parts and their merge.
std::vector<KernelCandidate> candidates_of(const Plan& plan, std::size_t whole) {
    std::vector<KernelCandidate> out;
    for (const KernelPlan& kernel : plan.kernels)
        if (kernel.whole == whole) out.push_back(candidate_of(kernel.scheduled));
    return out;
}

/// Where a refused kernel is taken: how many other candidates of it are refused, too.
std::string no_better_text(const std::vector<RatedPlan>& tried, const Plan& taken, std::size_t whole) {
    std::vector<std::vector<KernelCandidate>> seen{candidates_of(taken, whole)};
    for (const RatedPlan& other : tried)
        if (auto candidates = candidates_of(other.plan, whole); other.refused.contains(whole) && !contains(seen, candidates))
            seen.push_back(std::move(candidates));
    const std::size_t others = seen.size() - 1;
    if (others == 0) return "there is no other candidate of it";
    if (others == 1) return "1 other candidate of it is no better";
    return fmt::format("{} other candidates of it are no better", others);
}

/// Plans in the order in which they are tried, each with its refusals. Some are made before it is known whether they
/// are needed.
class PlansToTry {
public:
    PlansToTry(const PlanWithout& plan, const Refusals& refusals, std::size_t at_a_time)
        : plan_(plan), refusals_(refusals), at_a_time_(at_a_time) {}

    /// The plan without the candidates. `open`: kernels of the derived form whose candidates may be refused again.
    Result<RatedPlan> without(const std::vector<KernelCandidate>& refused, const std::set<std::size_t>& open) {
        if (ahead_.empty() || ahead_.front().refused != refused) {
            ahead_.clear();
            if (auto error = make(refused, open)) return *error;
        }
        RatedPlan next = std::move(ahead_.front().rated);
        ahead_.pop_front();
        return next;
    }

private:
    struct Ahead {
        std::vector<KernelCandidate> refused;
        RatedPlan rated;
    };

    std::optional<std::vector<Diagnostic>> make(std::vector<KernelCandidate> refused, const std::set<std::size_t>& open) {
        for (std::size_t n = 0; n == 0 || (n < at_a_time_ && !open.empty()); ++n) {
            auto plan = plan_(refused);
            // A plan that may not be needed reports no errors.
            if (!plan && n == 0) return plan.errors();
            if (!plan) break;
            ahead_.push_back({refused, {std::move(*plan), {}}});
            const std::size_t before = refused.size();
            for (const KernelPlan& kernel : ahead_.back().rated.plan.kernels)
                if (const auto candidate = candidate_of(kernel.scheduled);
                    open.contains(kernel.whole) && !contains(refused, candidate))
                    refused.push_back(candidate);
            if (refused.size() == before) break;
        }
        share_out(ahead_.size(), [this](std::size_t i) { ahead_[i].rated.refusals = refusals_(ahead_[i].rated.plan); });
        return std::nullopt;
    }

    const PlanWithout& plan_;
    const Refusals& refusals_;
    std::size_t at_a_time_;
    std::deque<Ahead> ahead_;
};

}  // namespace

Result<AcceptedPlan> accepted_plan(const PlanWithout& plan, const Refusals& refusals, std::size_t at_a_time) {
    std::vector<KernelCandidate> refused;
    std::vector<std::string> notes;
    std::vector<RatedPlan> tried;
    PlansToTry plans(plan, refusals, at_a_time);
    bool is_cut = true;
    for (int turn = 0; turn < most_plans; ++turn) {
        auto next = plans.without(refused, tried.empty() ? std::set<std::size_t>() : tried.back().refused);
        // Refusals may leave no plan. That is no error where an earlier plan can be taken.
        if (!next && tried.empty()) return next.errors();
        if (!next) {
            is_cut = false;
            break;
        }
        RatedPlan rated = std::move(*next);
        internal_check(rated.refusals.size() == rated.plan.kernels.size(),
                       "plan: not every kernel is accepted or refused");
        bool any_new = false;
        for (std::size_t k = 0; k < rated.refusals.size(); ++k) {
            const KernelRefusal& refusal = rated.refusals[k];
            if (refusal.why.empty()) continue;
            rated.refused.insert(rated.plan.kernels[k].whole);
            const KernelCandidate candidate = candidate_of(rated.plan.kernels[k].scheduled);
            if (contains(refused, candidate)) continue;
            refused.push_back(candidate);
            any_new |= !refusal.may_last || !refused_alike(tried, candidate.kernel, refusal);
            notes.push_back(fmt::format("the assembler's report speaks against {}: {}",
                                        described(rated.plan.kernels[k]), join(refusal.why, "; ")));
        }
        if (rated.refused.empty()) return AcceptedPlan{std::move(rated.plan), std::move(notes)};
        tried.push_back(std::move(rated));
        if (!any_new) {
            is_cut = false;
            break;
        }
    }
    // Plans come fastest first.
    auto& best = *min_element(
        tried, [](const RatedPlan& a, const RatedPlan& b) { return a.refused.size() < b.refused.size(); });
    for (std::size_t k = 0; k < best.refusals.size(); ++k)
        if (!best.refusals[k].why.empty())
            notes.push_back(fmt::format("{} is taken all the same: {}{}", described(best.plan.kernels[k]),
                                        no_better_text(tried, best.plan, best.plan.kernels[k].whole),
                                        is_cut ? fmt::format(", and no more than {} plans are compiled", most_plans) : ""));
    return AcceptedPlan{std::move(best.plan), std::move(notes)};
}

}  // namespace napkin
