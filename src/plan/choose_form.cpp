#include "plan/choose_form.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "derive/derive.hpp"
#include "derive/kernel_forms.hpp"
#include "diagram/flat_axes.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "plan/form_search.hpp"
#include "plan/kernel_times.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"

namespace napkin {

namespace {

/// Threads that compare forms. With more of them, more forms are costed before it is known which time rejects them.
constexpr std::size_t forms_at_a_time = 2;
/// Share of the time that another form must save to replace an earlier one.
constexpr double least_gain_of_form = 0.02;

/// The whole fold is planned too where a quick search finds it slower than the fastest form by at most this factor. It
/// may be the faster one by full searches. With one new token against a cache (examples/decode.nk), the quick search
/// finds 8.3 ms where the full search finds 6.3 (two cores of an Intel server, 2026-11-27).
constexpr double near_the_least = 1.25;

/// The overrides, read for the kernels of one form.
class LinesOfForm {
public:
    LinesOfForm(const Derived& form, const Extents& extents, const std::vector<ScheduleItem>& by_user)
        : form_(form), extents_(extents) {
        // Where an override splits a stream, the lines are those of its parts and of their merge, which may have the
        // name of the whole kernel.
        const auto parts = parts_by_user(form, extents, by_user);
        const std::vector<std::int64_t> numbers = parts ? mapped<std::int64_t>(
                                                              *parts,
                                                              [](const auto& part) { return part ? part->value : 1; })
                                                        : std::vector<std::int64_t>(form.kernels.size(), 1);
        cut_ = cut_streams(form, extents, numbers);
        const std::vector<std::string> names = names_of(cut_.form.kernels);
        const TileProgram tiles = tiles_of(cut_.form, cut_.extents, by_user);
        for (const ScheduleItem& item : by_user) {
            if (!item.kernel.empty() && !contains(names, item.kernel)) {
                missing_.insert(item.kernel);
            } else if (is_readable(item, by_user, tiles, parts.ok())) {
                if (item.kernel.empty()) of_all_.push_back(item);
            } else {
                ++unread_;
            }
        }
    }

    /// Kernels that the form lacks weigh more than lines that cannot be read for kernels that it has. Kernels and lines
    /// of other forms' regions count alike in each of the alternatives.
    [[nodiscard]] double mismatch() const {
        constexpr double weight_of_kernel = 1e6;
        return weight_of_kernel * static_cast<double>(missing_.size()) + unread_;
    }
    /// The lines for all kernels that can be read for these.
    [[nodiscard]] const std::vector<ScheduleItem>& of_all_kernels() const { return of_all_; }

private:
    [[nodiscard]] bool is_readable(const ScheduleItem& item, const std::vector<ScheduleItem>& by_user,
                                   const TileProgram& tiles, bool is_cut_as_said) const {
        // A merge does not stream what the kernel that was split did.
        if (item.kind == ChoiceKind::split)
            return is_cut_as_said && (!item.kernel.empty() || checked_overrides(form_, extents_, {item}).ok());
        std::vector<ScheduleItem> lines{item};
        // A slot may name a role.
        if (item.kind == ChoiceKind::slot)
            for (const ScheduleItem& role : by_user)
                if (role.kind == ChoiceKind::role && (role.kernel.empty() || role.kernel == item.kernel))
                    lines.insert(lines.begin(), role);
        if (!schedule_overrides(lines, tiles).ok()) return false;
        if (!item.clauses.empty()) return true;
        Derived named = cut_.form;
        if (!item.kernel.empty()) std::erase_if(named.kernels, [&](const Kernel& k) { return k.name != item.kernel; });
        return checked_overrides(named, cut_.extents, {item}).ok();
    }

    const Derived& form_;
    const Extents& extents_;
    Cut cut_;
    std::set<std::string> missing_;
    int unread_ = 0;
    std::vector<ScheduleItem> of_all_;
};

/// The fastest form, by a plan of each. The earlier one where they are alike.
Derived fastest_planned(std::vector<Derived> forms, const Extents& extents, const Machine& machine,
                        const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < forms.size(); ++i) {
        const auto plan = choose_plan(forms[i], extents, machine, by_user, options);
        if (plan && plan->seconds() < least) best = i, least = plan->seconds();
    }
    return std::move(forms[best]);
}

/// Whether two forms of one derivation have the same kernels, streamed along the same axes.
bool have_the_same_kernels(const Derived& a, const Derived& b) {
    return a.flat_rows == b.flat_rows &&
           std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                      [](const Region& x, const Region& y) {
                          return x.alternatives[x.chosen].kernels == y.alternatives[y.chosen].kernels;
                      });
}

bool streams_flat_axis(const Derived& form) {
    return any_of(form.regions, [&](const Region& region) {
        return any_of(region.alternatives[region.chosen].kernels, [&](const Gathering& g) {
            return g.stream && !parts_of_flat_axis(form.diagram, *g.stream).empty();
        });
    });
}

/// Whether the lines leave nothing open that a printed schedule of the form's only kernel says.
bool say_all(const std::vector<ScheduleItem>& lines, const Derived& form, const Extents& extents) {
    const TileProgram tiles = tiles_of(form, extents, lines);
    const auto schedules = schedule_overrides(lines, tiles);
    if (!schedules) return false;
    const KernelSchedule& said = schedules->front();
    const auto has_size = [&](const Stage& stage) {
        const auto* loop = std::get_if<Loop>(&stage);
        return !loop || said.stream.contains(loop->axis);
    };
    return said.atoms.size() == atom_names(tiles.kernels.front()).size() && all_of(form.kernels.front().stages, has_size);
}

/// The derivation whose alternatives stream each kernel as most of the lines for it say, and as a schedule that leaves
/// nothing open says by having no stream. A printed plan may be of a form that is none of the first alternatives
/// (form_search.hpp).
Derived with_streams_of_lines(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& by_user) {
    const KernelForms forms(derived);
    std::map<std::vector<ArrayId>, Gathering> known;
    const auto as_said = [&](const Gathering& gathering) {
        const auto [found, is_new] = known.try_emplace(gathering.targets, gathering);
        if (!is_new) return found->second;
        std::pair least(std::numeric_limits<double>::infinity(), true);  // mismatch, and whether anything is left open
        for (const Gathering& way : forms.streamed(gathering)) {
            const Derived form = forms.of({way});
            std::vector<ScheduleItem> lines;
            for (const ScheduleItem& item : by_user)
                if (!item.kernel.empty() && (item.kernel == form.kernels.front().name || is_of_parts(form, 0, item.kernel)))
                    lines.push_back(item);
            if (lines.empty()) break;
            const std::pair next(LinesOfForm(form, extents, lines).mismatch(), !say_all(lines, form, extents));
            if (next < least) least = next, found->second = way;
        }
        return found->second;
    };
    Derived out = derived;
    for (Region& region : out.regions)
        for (Alternative& alternative : region.alternatives)
            for (Gathering& gathering : alternative.kernels) gathering = as_said(gathering);
    if (out.regions == derived.regions) return derived;
    return rederive(out, mapped<std::size_t>(out.regions, [](const Region& r) { return r.chosen; }));
}

/// choose_form, with known times of kernels.
Derived least_form(const Derived& derived, const Extents& extents, const Machine& machine,
                   const std::vector<ScheduleItem>& by_user, KernelTimes& known) {
    const auto quick = [&](const Derived& form, double enough) {
        // Vectors lie along any axis of a product, so that a processor gains nothing by one summed axis.
        if (machine.kind == MachineKind::cpu && streams_flat_axis(form)) return std::numeric_limits<double>::infinity();
        if (by_user.empty()) return estimated_seconds(form, extents, machine, known, enough);
        return estimated_seconds(form, extents, machine, known, enough,
                                 LinesOfForm(form, extents, by_user).of_all_kernels());
    };
    std::function<double(const Derived&)> mismatch;
    if (!by_user.empty())
        mismatch = [&](const Derived& form) { return LinesOfForm(form, extents, by_user).mismatch(); };
    Derived least = with_least_cost(derived, quick, forms_at_a_time, least_gain_of_form, mismatch);
    if (machine.kind == MachineKind::gpu || names_of(least.kernels) == names_of(derived.kernels)) return least;
    if (mismatch && mismatch(derived) > mismatch(least)) return least;
    // A quick search finds less of a long fold's schedules than of its parts'.
    constexpr double no_limit = std::numeric_limits<double>::infinity();
    if (quick(derived, no_limit) > near_the_least * quick(least, no_limit)) return least;
    return fastest_planned({std::move(least), derived}, extents, machine, by_user, {.ratings = known.ratings()});
}

/// The same where lines name kernels: of the first gathering that has the kernels which the lines name, or most of
/// them.
Derived least_form_of_lines(const Derived& derived, const Extents& extents, const Machine& machine,
                            const std::vector<ScheduleItem>& by_user, KernelTimes& known) {
    const auto found = [&](const Derived& gathered) {
        Derived form = least_form(with_streams_of_lines(gathered, extents, by_user), extents, machine, by_user, known);
        const double mismatch = LinesOfForm(form, extents, by_user).mismatch();
        return std::pair(mismatch, std::move(form));
    };
    auto best = found(derived);
    if (best.first == 0) return std::move(best.second);
    for (std::vector<Region>& regions : gatherings_of(derived)) {
        Derived gathered = derived;
        gathered.regions = std::move(regions);
        if (auto next = found(rederive(gathered, std::vector<std::size_t>(gathered.regions.size(), 0)));
            next.first < best.first)
            best = std::move(next);
        if (best.first == 0) break;
    }
    return std::move(best.second);
}

/// The derivation with flat rows, where an override names one of their axes.
std::optional<Derived> flat_rows_by_user(const Derived& derived, const std::vector<ScheduleItem>& by_user) {
    for (const std::vector<AxisId>& run : flat_rows(derived.source)) {
        const AxisId flat = flat_axis_of(derived.source, run);
        if (flat >= 0 &&
            any_of(by_user, [&](const ScheduleItem& item) { return item.axis == derived.source.axis(flat).name; }))
            return with_flat_rows(derived);
    }
    return std::nullopt;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings) {
    if (by_user.empty() && machine.kind == MachineKind::cpu)
        return choose_form_by_plans(derived, extents, machine, by_user, ratings);
    KernelTimes known(by_user.empty() ? ratings : nullptr);
    const auto flat = flat_rows_by_user(derived, by_user);
    const Derived& form = flat ? *flat : derived;
    const bool names_kernels = any_of(by_user, [](const ScheduleItem& item) { return !item.kernel.empty(); });
    return names_kernels ? least_form_of_lines(form, extents, machine, by_user, known)
                         : least_form(form, extents, machine, by_user, known);
}

Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings) {
    const bool is_gpu = machine.kind == MachineKind::gpu;
    if (is_gpu ? !has_cuda_blocks(machine) : !by_user.empty())
        return choose_form(derived, extents, machine, by_user, ratings);
    if (!by_user.empty()) {
        Derived least = choose_form(derived, extents, machine, by_user, ratings);
        if (have_the_same_kernels(least, derived)) return least;
        return fastest_planned({std::move(least), derived}, extents, machine, by_user,
                               {.quick = true, .completion = Completion::for_estimate});
    }
    constexpr double no_limit = std::numeric_limits<double>::infinity();
    FoundForm found = *fastest_form(derived, extents, machine, ratings, no_limit);
    if (const auto flat = is_gpu ? with_flat_rows(derived) : std::nullopt)
        if (auto faster = fastest_form(*flat, extents, machine, ratings, found.seconds)) found = std::move(*faster);
    return std::move(found.form);
}

}  // namespace napkin
