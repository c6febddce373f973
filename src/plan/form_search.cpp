#include "plan/form_search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "cost/compulsory.hpp"
#include "cost/footprint.hpp"
#include "derive/kernel_forms.hpp"
#include "plan/aligned.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/work.hpp"

namespace napkin {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Whether some sum has at most one axis that lies whole in a tile, as products on the tensor cores have.
bool may_run_on_tensor_cores(const Kernel& kernel, const Extents& extents) {
    return any_of(kernel.stages, [&](const Stage& stage) {
        const auto* loop = std::get_if<Loop>(&stage);
        return any_of(statements_of(stage), [&](const Statement& s) {
            const auto is_whole = [&](AxisId axis) { return extents[axis] > 1 && !(loop && loop->axis == axis); };
            return s.reduce == ReduceOp::sum && count_if(s.reduce_axes, is_whole) <= 1;
        });
    });
}

/// One way to stream the equations of a kernel.
struct Way {
    Gathering gathering;
    Derived form;        ///< of this kernel alone
    double seconds = 0;  ///< of its plan, or less
    bool is_planned = false;
};

class FormSearch {
public:
    FormSearch(const Derived& derived, const Extents& extents, const Machine& machine, std::shared_ptr<Estimates> ratings)
        : derived_(derived), extents_(extents), machine_(machine), forms_(derived) {
        options_.quick = has_cuda_blocks(machine), options_.completion = Completion::for_estimate;
        options_.ratings = ratings ? std::move(ratings) : std::make_shared<Estimates>();
    }

    std::optional<FoundForm> run(double enough) {
        std::optional<FoundForm> best;
        for (const std::vector<Region>& regions : gatherings_of(derived_)) {
            auto found = fastest(regions, best ? std::min(enough, least_gain * best->seconds) : enough);
            if (!found) continue;
            Derived with = derived_;
            with.regions = regions;
            best = FoundForm{with_kernels(with, found->first), found->second};
        }
        return best;
    }

private:
    /// Other regions than the derivation's own must save the rest of its time.
    static constexpr double least_gain = 0.99;

    /// The fastest kernels of each region with their time; none where they take `enough` seconds or more.
    std::optional<std::pair<std::vector<std::vector<Gathering>>, double>> fastest(const std::vector<Region>& regions,
                                                                                  double enough) {
        std::vector<std::vector<Gathering>> kernels;
        double seconds = 0;
        for (const Region& region : regions) {
            const auto found = fastest(region, enough < never ? enough - seconds : never);
            if (!found) return std::nullopt;
            seconds += found->second;
            kernels.push_back(std::move(found->first));
        }
        return std::pair(std::move(kernels), seconds);
    }

    /// The equations of each kernel of one alternative, by the ways to stream them.
    using Partition = std::vector<std::vector<Way>*>;

    /// The region's fastest kernels with their time; none where they take `enough` seconds or more.
    std::optional<std::pair<std::vector<Gathering>, double>> fastest(const Region& region, double enough) {
        std::vector<Partition> partitions;
        for (const Alternative& alternative : region.alternatives) {
            Partition next = mapped<std::vector<Way>*>(alternative.kernels,
                                                       [&](const Gathering& g) { return &ways_of(g); });
            if (!contains(partitions, next)) partitions.push_back(std::move(next));
        }
        while (!partitions.empty()) {
            const auto best = min_element(
                partitions, [](const Partition& a, const Partition& b) { return seconds_of(a) < seconds_of(b); });
            const double seconds = seconds_of(*best);
            if (seconds >= enough) break;
            double others = enough;
            for (auto other = partitions.begin(); other != partitions.end(); ++other)
                if (other != best) others = std::min(others, seconds_of(*other));
            const auto open = find_if(*best, [](std::vector<Way>* ways) { return !least(*ways).is_planned; });
            if (open != best->end()) {
                plan(least(**open), others - seconds);
                continue;
            }
            std::vector<Gathering> kernels = mapped<Gathering>(
                *best, [](std::vector<Way>* ways) { return least(*ways).gathering; });
            if (fits(kernels)) return std::pair(std::move(kernels), seconds);
            partitions.erase(best);
        }
        // Where no form can be planned, the plan of the first one says why.
        if (enough < never) return std::nullopt;
        return std::pair(region.alternatives.front().kernels, never);
    }

    std::vector<Way>& ways_of(const Gathering& gathering) {
        const auto [known, is_new] = ways_.try_emplace(gathering.targets);
        if (!is_new) return known->second;
        for (const Gathering& g : forms_.streamed(gathering)) {
            Derived form = forms_.of({g});
            const Kernel& kernel = form.kernels.front();
            const double bound = least_seconds(
                form, kernel, statement_work(form, kernel), extents_, machine_,
                may_run_on_tensor_cores(kernel, extents_) ? ComputedBy::tensor_cores : ComputedBy::cores);
            known->second.push_back({g, std::move(form), bound});
        }
        return known->second;
    }

    static Way& least(std::vector<Way>& ways) {
        return *min_element(ways, [](const Way& a, const Way& b) { return a.seconds < b.seconds; });
    }
    static double seconds_of(const Partition& partition) {
        double seconds = 0;
        for (std::vector<Way>* ways : partition) seconds += least(*ways).seconds;
        return seconds;
    }

    /// Plans the kernel, or finds out that it takes longer by more than `slack` than is known.
    void plan(Way& way, double slack) {
        // Copied rows make another form, with other kernels.
        if (!has_cuda_blocks(machine_) || with_copied_rows(way.form, extents_, machine_)) {
            const auto plan = choose_plan(way.form, extents_, machine_, {}, options_);
            way.seconds = plan ? std::max(way.seconds, plan->seconds()) : never, way.is_planned = true;
            return;
        }
        PlanOptions options = options_;
        options.useless = way.seconds + slack;
        const auto plan = choose_blocks_of(0, way.form, extents_, machine_, {}, options);
        way.is_planned = !plan || !plan->is_bound();
        internal_check(way.is_planned || plan->seconds() > way.seconds,
                       "plan: a kernel is asked for a bound that is known");
        way.seconds = plan ? plan->seconds() : never;
    }

    /// Whether the memory holds what lies between the kernels.
    [[nodiscard]] bool fits(const std::vector<Gathering>& kernels) const {
        return footprint(forms_.of(kernels), extents_).bytes() <= machine_.levels[0].capacity_bytes.value;
    }

    const Derived& derived_;
    const Extents& extents_;
    const Machine& machine_;
    const KernelForms forms_;
    PlanOptions options_;
    std::map<std::vector<ArrayId>, std::vector<Way>> ways_;  ///< by the targets of the equations
};

}  // namespace

std::optional<FoundForm> fastest_form(const Derived& derived, const Extents& extents, const Machine& machine,
                                      const std::shared_ptr<Estimates>& ratings, double enough) {
    return FormSearch(derived, extents, machine, ratings).run(enough);
}

}  // namespace napkin
