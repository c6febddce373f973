#include "plan/lines_of_form.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "plan/choose.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"

namespace napkin {
namespace {

/// Whether the line can be read for the form's kernels, which are cut as `cut` says.
bool is_readable(const ScheduleItem& item, const std::vector<ScheduleItem>& by_user, const Derived& form,
                 const Extents& extents, const Cut& cut, const TileProgram& tiles, bool is_cut_as_said) {
    // A merge does not stream what the kernel that was split did.
    if (item.kind == ChoiceKind::split)
        return is_cut_as_said && (!item.kernel.empty() || checked_overrides(form, extents, {item}).ok());
    std::vector<ScheduleItem> lines{item};
    // A slot may name a role.
    if (item.kind == ChoiceKind::slot)
        for (const ScheduleItem& role : by_user)
            if (role.kind == ChoiceKind::role && (role.kernel.empty() || role.kernel == item.kernel))
                lines.insert(lines.begin(), role);
    if (!schedule_overrides(lines, tiles).ok()) return false;
    if (!item.clauses.empty()) return true;
    Derived named = cut.form;
    if (!item.kernel.empty()) std::erase_if(named.kernels, [&](const Kernel& k) { return k.name != item.kernel; });
    return checked_overrides(named, cut.extents, {item}).ok();
}

}  // namespace

LinesOfForm lines_of_form(const Derived& form, const Extents& extents, const std::vector<ScheduleItem>& by_user) {
    constexpr double weight_of_kernel = 1e6;
    // Where an override splits a stream, the lines are those of its parts and of their merge, which may have the name
    // of the whole kernel.
    const auto parts = parts_by_user(form, extents, by_user);
    std::vector<std::int64_t> numbers(form.kernels.size(), 1);
    for (std::size_t k = 0; parts && k < numbers.size(); ++k)
        if ((*parts)[k]) numbers[k] = (*parts)[k]->value;
    const Cut cut = cut_streams(form, extents, numbers);
    const std::vector<std::string> names = names_of(cut.form.kernels);
    const TileProgram tiles = tiles_of(cut.form, cut.extents, by_user);
    LinesOfForm out;
    std::set<std::string> missing;
    for (const ScheduleItem& item : by_user) {
        if (!item.kernel.empty() && !contains(names, item.kernel))
            missing.insert(item.kernel);
        else if (is_readable(item, by_user, form, extents, cut, tiles, parts.ok()))
            out.readable.push_back(item);
        else
            out.mismatch += 1;
    }
    out.mismatch += weight_of_kernel * static_cast<double>(missing.size());
    return out;
}

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

std::vector<ScheduleItem> lines_for(const Derived& form, std::vector<ScheduleItem> by_user) {
    std::erase_if(by_user, [&](const ScheduleItem& item) {
        return !item.kernel.empty() && item.kernel != form.kernels.front().name && !is_of_parts(form, 0, item.kernel);
    });
    return by_user;
}

}  // namespace napkin
