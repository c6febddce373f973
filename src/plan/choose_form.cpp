#include "plan/choose_form.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cost/compulsory.hpp"
#include "cost/footprint.hpp"
#include "cost/on_machine.hpp"
#include "derive/derive.hpp"
#include "derive/kernel_forms.hpp"
#include "diagram/flat_axes.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "plan/copied.hpp"
#include "plan/lines_of_form.hpp"
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

/// Keeps those of the least rank, in their order.
template <class T, class Rank>
void keep_least(std::vector<T>& all, const Rank& rank) {
    const auto ranks = mapped<decltype(rank(all.front()))>(all, rank);
    const auto least = *min_element(ranks);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (ranks[i] == least) std::swap(all[kept++], all[i]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}

/// Without its own schedule, whose lines may name other kernels than those that are planned by themselves.
Derived without_schedule(Derived derived) {
    derived.source.schedule.clear(), derived.diagram.schedule.clear();
    return derived;
}

struct FoundForm {
    Derived form;
    double seconds = 0;  ///< times `worth_of_room` where it leaves much in memory
};

/// Between its kernels a form may leave in memory so many times what all arguments and results take, or what the cache
/// holds. One that leaves more must be faster than others by the factor that follows. Attention's gradient with scores
/// in memory is predicted 1.1 times as fast as without (h200, 16 heads of 4096 × 4096 × 128). It leaves nine times its
/// arguments there. The logits of a language model are some twice the arguments of its cross-entropy, and may stay.
constexpr double room_of_arguments = 4, worth_of_room = 1.25;

/// One way to stream the equations of a kernel.
struct Way {
    Gathering gathering;
    Derived form;  ///< of this kernel alone
    LinesOfForm lines = {};
    double seconds = 0;  ///< of its plan, or less
    bool is_planned = false;
};

class FormSearch {
public:
    FormSearch(const Derived& derived, const Extents& extents, const Machine& machine,
               const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings, FormTimes times)
        : derived_(derived),
          extents_(extents),
          machine_(machine),
          by_user_(by_user),
          times_(times),
          bare_(without_schedule(derived)),
          forms_(bare_) {
        options_.quick = has_cuda_blocks(machine), options_.completion = Completion::for_estimate;
        options_.ratings = ratings && by_user.empty() ? ratings : std::make_shared<Estimates>();
    }

    /// None where every form takes `enough` seconds or more.
    std::optional<FoundForm> run(double enough) {
        std::vector<std::vector<Region>> gathered = gatherings_of(derived_);
        if (!by_user_.empty())
            keep_least(gathered, [&](const std::vector<Region>& regions) {
                std::vector<Gathering> kernels;
                for (const Region& region : regions) append(kernels, first_of(partitions_of(region).front()));
                return mismatch(kernels);
            });
        if (times_ == FormTimes::of_closed_form) gathered.resize(1);
        std::optional<FoundForm> best;
        for (const std::vector<Region>& regions : gathered) {
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
    /// By the closed form, an alternative must save the rest of an earlier one's time: its accuracy is no better.
    static constexpr double least_gain_by_closed_form = 0.98;

    /// The equations of each kernel of one alternative, by the ways to stream them.
    using Partition = std::vector<std::vector<Way>*>;

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

    /// The region's fastest kernels with their time; none where they take `enough` seconds or more.
    std::optional<std::pair<std::vector<Gathering>, double>> fastest(const Region& region, double enough) {
        std::vector<Partition> partitions = partitions_of(region);
        const std::vector<Gathering> first = first_of(partitions.front());
        std::optional<std::pair<std::vector<Gathering>, double>> large;
        while (!partitions.empty()) {
            const double gain = times_ == FormTimes::of_closed_form ? least_gain_by_closed_form : 1;
            const auto best = min_element(partitions, [gain](const Partition& next, const Partition& least) {
                return seconds_of(next) < gain * seconds_of(least);
            });
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
            const Room room = room_of(kernels);
            if (room == Room::little) return std::pair(std::move(kernels), seconds);
            partitions.erase(best);
            if (room == Room::much && worth_of_room * seconds < enough)
                enough = worth_of_room * seconds, large = std::pair(std::move(kernels), enough);
        }
        if (large) return large;
        // Where no form can be planned, the plan of the first one says why.
        if (enough < never) return std::nullopt;
        return std::pair(first, never);
    }

    /// The region's alternatives that are compared, each once.
    std::vector<Partition> partitions_of(const Region& region) {
        std::vector<Partition> out;
        for (const Alternative& alternative : region.alternatives) {
            Partition next = mapped<std::vector<Way>*>(alternative.kernels,
                                                       [&](const Gathering& g) { return &ways_of(g); });
            if (!contains(out, next)) out.push_back(std::move(next));
        }
        if (!by_user_.empty() && out.size() > 1)
            keep_least(out, [&](const Partition& partition) { return mismatch(first_of(partition)); });
        return out;
    }
    [[nodiscard]] double mismatch(const std::vector<Gathering>& kernels) const {
        return lines_of_form(forms_.of(kernels), extents_, by_user_).mismatch;
    }
    static std::vector<Gathering> first_of(const Partition& partition) {
        return mapped<Gathering>(partition, [](std::vector<Way>* ways) { return ways->front().gathering; });
    }

    std::vector<Way>& ways_of(const Gathering& gathering) {
        const auto stream = times_ == FormTimes::of_closed_form ? gathering.stream : std::nullopt;
        const auto [known, is_new] = ways_.try_emplace({gathering.targets, stream});
        std::vector<Way>& ways = known->second;
        if (!is_new) return ways;
        for (const Gathering& g : forms_.streamed(gathering)) ways.push_back({g, forms_.of({g})});
        if (!by_user_.empty())
            keep_least(ways, [&](Way& way) {
                const std::vector<ScheduleItem> lines = lines_for(way.form, by_user_);
                way.lines = lines_of_form(way.form, extents_, lines);
                return std::pair(way.lines.mismatch, !say_all(lines, way.form, extents_));
            });
        if (times_ == FormTimes::of_closed_form) ways.resize(1);
        for (Way& way : ways) begin(way);
        return ways;
    }
    /// Finds a lower bound of the time, or the time itself where the closed form has it.
    void begin(Way& way) const {
        const Kernel& kernel = way.form.kernels.front();
        if (times_ == FormTimes::of_closed_form) {
            MachineCostOptions quick;
            quick.quick = true;
            const auto cost = cost_on_machine(way.form, kernel, extents_, machine_, quick);
            way.seconds = cost ? cost->seconds : never, way.is_planned = true;
        } else {
            way.seconds = least_seconds(
                way.form, kernel, statement_work(way.form, kernel), extents_, machine_,
                may_run_on_tensor_cores(kernel, extents_) ? ComputedBy::tensor_cores : ComputedBy::cores);
        }
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
        // Other factors make another form, with other kernels.
        if (!has_cuda_blocks(machine_) || any_of(other_factors, [&](FactorForm factors) {
                return with_factors(way.form, extents_, machine_, factors).has_value();
            })) {
            const auto plan = choose_plan(way.form, extents_, machine_, way.lines.readable, options_);
            way.seconds = plan ? std::max(way.seconds, plan->seconds()) : never, way.is_planned = true;
            return;
        }
        PlanOptions options = options_;
        options.useless = way.seconds + slack;
        const auto plan = choose_blocks_of(0, way.form, extents_, machine_, way.lines.readable, options);
        way.is_planned = !plan || !plan->is_bound();
        internal_check(way.is_planned || plan->seconds() > way.seconds,
                       "plan: a kernel is asked for a bound that is known");
        way.seconds = plan ? plan->seconds() : never;
    }

    /// What lies in memory between the kernels, beside what must (worth_of_room).
    enum class Room { little, much, too_much };
    [[nodiscard]] Room room_of(const std::vector<Gathering>& kernels) const {
        const Footprint taken = footprint(forms_.of(kernels), extents_);
        if (taken.bytes() > machine_.levels[0].capacity_bytes.value) return Room::too_much;
        const double cached = machine_.levels.size() > 2 ? machine_.levels[1].capacity_bytes.value : 0;
        return taken.between > std::max(cached, room_of_arguments * (taken.inputs + taken.outputs)) ? Room::much
                                                                                                    : Room::little;
    }

    const Derived& derived_;
    const Extents& extents_;
    const Machine& machine_;
    const std::vector<ScheduleItem>& by_user_;
    const FormTimes times_;
    const Derived bare_;
    const KernelForms forms_;  ///< of bare_
    PlanOptions options_;
    /// By the targets of the equations. The closed form takes each alternative's own stream.
    std::map<std::pair<std::vector<ArrayId>, std::optional<AxisId>>, std::vector<Way>> ways_;
};

/// Names in overrides of axes that arrays of the other form alone have, or of arrays that it alone has.
int names_of_other(const Derived& other, const Derived& derived, const std::vector<ScheduleItem>& by_user) {
    const auto has = [](const Derived& form, const std::string& name) {
        const auto axis = form.diagram.find_axis(name);
        return form.diagram.find_array(name) ||
               (axis && any_of(form.diagram.arrays, [&](const Array& array) { return contains(array.axes, *axis); }));
    };
    std::set<std::string> names;
    for (const ScheduleItem& item : by_user)
        for (const std::string& name : {item.axis, item.kernel})
            if (has(other, name) && !has(derived, name)) names.insert(name);
    return static_cast<int>(names.size());
}

/// Rewritings whose forms have axes of their own, then those with arrays of their own. Lines of schedules may name
/// both.
const std::vector<Rewriting> other_forms{{.flat_rows = true},
                                         {.windows = true},
                                         {.padded = true, .windows = true},
                                         {.again = true},
                                         {.padded = true},
                                         {.grouped = true},
                                         {.nested = true},
                                         {.packed = true},
                                         {.unrolled = true},
                                         {.phased = true},
                                         {.padded = true, .phased = true},
                                         {.padded = true, .unrolled = true}};

/// The form of which overrides name most that it alone has; none where they name nothing of the kind.
std::optional<Derived> form_by_user(const Derived& derived, const std::vector<ScheduleItem>& by_user) {
    std::optional<Derived> out;
    int most = 0;
    for (const Rewriting& rewriting : other_forms) {
        auto other = by_user.empty() ? std::nullopt : rewritten(derived, rewriting);
        const int named = other ? names_of_other(*other, derived, by_user) : 0;
        if (named > most) most = named, out = std::move(other);
    }
    return out;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings, FormTimes times) {
    const bool is_gpu = machine.kind == MachineKind::gpu;
    if (!is_gpu)
        times = FormTimes::of_plans;
    else if (!has_cuda_blocks(machine))
        times = FormTimes::of_closed_form;
    const auto fastest = [&](const Derived& form, double enough) {
        return FormSearch(form, extents, machine, by_user, ratings, times).run(enough);
    };
    const bool may_search = by_user.empty() && is_gpu && times == FormTimes::of_plans;
    if (const auto other = form_by_user(derived, by_user)) return fastest(*other, never)->form;
    FoundForm found = *fastest(derived, never);
    std::vector<Diagram> tried;
    const bool is_reduced = reduces_flat_rows(derived.source);
    for (const Rewriting& other : other_forms) {
        // On a CPU other forms are rarely faster. Some are: where places of a sum look at all of its terms, or taps lie
        // outside of an array or between its values. So are those in which axes of a result are reduced as one.
        const bool is_tried = may_search ||
                              (by_user.empty() && !other.windows &&
                               (other.packed || other.padded || other.phased || (other.flat_rows && is_reduced)));
        const auto form = is_tried ? rewritten(derived, other) : std::nullopt;
        if (!form || contains(tried, form->diagram)) continue;
        tried.push_back(form->diagram);
        if (auto faster = fastest(*form, found.seconds)) found = std::move(*faster);
    }
    return std::move(found.form);
}

}  // namespace napkin
