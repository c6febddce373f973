#include "plan/overrides.hpp"

#include <fmt/format.h>

#include <set>

#include "algebra/fragment.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"
#include "tile/subloops.hpp"

namespace napkin {
namespace {
/// Rows that the tensor cores' instructions leave four warps.
constexpr std::int64_t rows_of_warpgroup = layouts::warpgroup_warps * layouts::instruction_row_blocks * layouts::core_rows;

class Checker {
public:
    Checker(const Derived& derived, const Extents& extents)
        : derived_(derived), diagram_(derived.diagram), kernels_(derived.kernels), extents_(extents) {
        for (const Kernel& kernel : kernels_) {
            for (const AxisId axis : kernel.group_axes)
                if (axis != kernel.parts.part) add(groupable_, axis);
            for (const Stage& stage : kernel.stages)
                if (const auto* loop = std::get_if<Loop>(&stage)) add(streamed_, loop->axis);
        }
    }

    Result<Overrides> run(const std::vector<ScheduleItem>& items) {
        for (const ScheduleItem& item : items) check(item);
        for (const auto& [axis, item] : choices_.of(ChoiceKind::subloop))
            if (choices_.fixes(ChoiceKind::group, axis))
                error("no-subloop", item, fmt::format("{} is cut into groups and by a subloop", item.axis),
                      "one of the two", fmt::format("leave 'group {}' or 'subloop {}' out", item.axis, item.axis));
        if (!errors_.empty()) return std::move(errors_);
        return std::move(choices_);
    }

private:
    static void add(std::vector<AxisId>& axes, AxisId axis) {
        if (!contains(axes, axis)) axes.push_back(axis);
    }
    [[nodiscard]] std::string axis_name(AxisId axis) const { return diagram_.axis(axis).name; }
    [[nodiscard]] std::int64_t extent(AxisId axis) const { return extents_[axis]; }
    [[nodiscard]] std::string list(const std::vector<AxisId>& axes) const {
        return axes.empty() ? "no axis" : join(names_of(diagram_.axes, axes), ", ");
    }

    void error(std::string code, const ScheduleItem& item, std::string message, std::string expected,
               std::string hint = "") {
        errors_.push_back(
            {std::move(code), item.range, std::move(message), std::move(expected), std::move(hint), {}, ExitCode::bad_input});
    }

    void check(const ScheduleItem& item) {
        if (is_of_steps(item)) {
            const auto [why, hint] = why_only_of_steps(item);
            return error("only-of-steps", item, fmt::format("no kernel has a line '{}': {}", name(item.kind), why),
                         "napkin plan --steps", hint);
        }
        switch (item.kind) {
            case ChoiceKind::warpgroup: return check_warpgroup(item);
            case ChoiceKind::any:
                if (const auto axis = find_axis(item, item.axis)) choices_.take(item, *axis);
                return;
            case ChoiceKind::group: return check_sized(item, groupable_);
            case ChoiceKind::stream:
            case ChoiceKind::split: return check_sized(item, streamed_);
            case ChoiceKind::subloop: return check_subloop(item);
            case ChoiceKind::vector: return check_vector(item);
            case ChoiceKind::mma_m: return check_mma_m(item);
            case ChoiceKind::cluster: return check_cluster(item);
            case ChoiceKind::role: return;  // one of several, of which the schedule's reader knows
            default:
                if (any_of(schedule_fields, [&](const FieldRow& field) { return field.kind == item.kind; }))
                    choices_.take(item);
        }
    }

    std::optional<AxisId> find_axis(const ScheduleItem& item, const std::string& name) {
        if (auto axis = diagram_.find_axis(name)) return axis;
        error("unknown-axis", item, fmt::format("there is no axis '{}'", name), "an axis of the diagram",
              did_you_mean(name, names_of(diagram_.axes)));
        return std::nullopt;
    }

    /// Why the axis is not among those that this kind of choice can name.
    std::string obstacle(const ScheduleItem& item, AxisId axis) const {
        const bool groups = item.kind != ChoiceKind::stream && item.kind != ChoiceKind::split;
        for (const Kernel& kernel : kernels_) {
            for (const Stage& stage : kernel.stages) {
                const auto* loop = std::get_if<Loop>(&stage);
                if (groups && loop && loop->axis == axis) return fmt::format("kernel {} streams it", kernel.name);
                const auto& statements = loop ? loop->body : std::get<Block>(stage).statements;
                for (const Statement& s : statements)
                    if (groups && contains(s.reduce_axes, axis))
                        return fmt::format("kernel {} reduces over it for {}", kernel.name, diagram_.array(s.target).name);
            }
        }
        if (groups) return "not every output of a kernel carries it";
        return contains(groupable_, axis) ? "every output carries it: it is grouped" : "no kernel has a loop over it";
    }

    void check_sized(const ScheduleItem& item, const std::vector<AxisId>& legal) {
        const auto axis = find_axis(item, item.axis);
        if (!axis) return;
        const bool group = item.kind == ChoiceKind::group;
        if (!contains(legal, *axis)) {
            std::string hint;
            if (contains(group ? streamed_ : groupable_, *axis))
                hint = fmt::format("{} {} = … cuts it", group ? "stream" : "group", item.axis);
            return error(group ? "not-groupable" : "not-streamed", item,
                         fmt::format("{} cannot be {}: {}", item.axis,
                                     group                            ? "grouped"
                                     : item.kind == ChoiceKind::split ? "split"
                                                                      : "streamed",
                                     obstacle(item, *axis)),
                         fmt::format("one of {}", list(legal)), hint);
        }
        // The line `stream x` alone asks the derivation for a loop, and leaves its K block to the model.
        if (item.value || item.kind != ChoiceKind::stream) take_size(item, *axis);
    }

    /// At least one reduction must be cut. If none is, the error says why the first reduction along the axis is not.
    void check_subloop(const ScheduleItem& item) {
        const auto axis = find_axis(item, item.axis);
        if (!axis) return;
        std::string why;
        for (const Kernel& kernel : kernels_)
            if (const SubloopsOver cut = with_subloops_over(diagram_, expand(derived_, kernel), *axis); cut.num_cut > 0)
                return take_size(item, *axis);
            else if (why.empty())
                why = cut.refusal;
        error("no-subloop", item,
              fmt::format("subloop {} cuts nothing: {}", item.axis,
                          why.empty() ? "no kernel reduces over it or along it" : why),
              "an axis along which a reduction alone loads", "leave the line out");
    }

    void take_size(const ScheduleItem& item, AxisId axis) {
        // Where any size may come, a tile may be longer than the axis is now. One value may have a tile's columns.
        if (*item.value < 1 || (*item.value > extent(axis) && !diagram_.axis(axis).is_any && extent(axis) != 1))
            return error(
                "size-out-of-range", item,
                fmt::format("{} {} = {}, but {} has {} values", name(item.kind), item.axis, *item.value, item.axis,
                            extent(axis)),
                fmt::format("1 … {}", extent(axis)),
                fmt::format("the nearest legal size is {}", std::clamp<std::int64_t>(*item.value, 1, extent(axis))));
        choices_.take(item, axis);
    }

    void check_vector(const ScheduleItem& item) {
        const std::string name = item.axis.empty() ? item.word : item.axis;
        if (name == "none") return choices_.take(item);
        const auto axis = find_axis(item, name);
        if (!axis) return;
        std::vector<AxisId> have;
        for (const Kernel& kernel : kernels_)
            for (const AxisId own : axes_of(diagram_, kernel)) add(have, own);
        if (!contains(have, *axis))
            return error("no-vector-axis", item,
                         kernels_.size() == 1 ? fmt::format("kernel {} computes nothing along {}", kernels_[0].name, name)
                                              : fmt::format("no kernel computes anything along {}", name),
                         fmt::format("one of {}, or none", list(have)));
        choices_.take(item, *axis);
    }

    void check_mma_m(const ScheduleItem& item) {
        const std::string name = item.axis.empty() ? item.word : item.axis;
        if (name == "none") return choices_.take(item);
        check_grouped(item, name, "warps share the rows of a group's tile");
    }
    /// Every instruction leaves a warp the same rows, so four warps have as many whatever the machine is.
    void check_warpgroup(const ScheduleItem& item) {
        const auto axis = find_axis(item, item.axis);
        if (!axis) return;
        if (*item.value != rows_of_warpgroup && *item.value < extent(*axis))
            return error(
                "no-warpgroup", item,
                fmt::format("w_{} = {}, but the four warps of a kernel's warpgroup have {} rows of the tensor cores",
                            item.axis, *item.value, rows_of_warpgroup),
                fmt::format("warpgroup {} = {}; napkin plan --steps takes others", item.axis, rows_of_warpgroup),
                "more rows a warpgroup are several products, as in examples/schedules/napkin-section-5.nk");
        check_grouped(item, item.axis, "warpgroups share the rows of a group's tile");
    }
    /// Why kernels have no such line, and what they have in its place.
    static std::pair<std::string, std::string> why_only_of_steps(const ScheduleItem& item) {
        switch (item.kind) {
            case ChoiceKind::precision:
                return {"it computes in single precision, and holds operands in their type in memory",
                        "leave the line out"};
            case ChoiceKind::piece:
                return {"its threads know which values the tensor cores leave them, so nothing is passed on in pieces",
                        "leave the line out"};
            case ChoiceKind::issue:
                return {"its order of issue is in lines 'slot'",
                        fmt::format("slot {} order 0", item.clauses.empty() ? "S" : item.clauses.front().word)};
            default: return {"its warpgroups take turns by a line 'ping_pong'", "ping_pong on"};
        }
    }
    void check_cluster(const ScheduleItem& item) {
        check_grouped(item, item.axis, "the blocks of a cluster run groups that lie beside each other");
    }
    void check_grouped(const ScheduleItem& item, const std::string& name, const char* hint) {
        const auto axis = find_axis(item, name);
        if (!axis) return;
        if (!contains(groupable_, *axis))
            return error("not-groupable", item, fmt::format("{} is no axis of groups: {}", name, obstacle(item, *axis)),
                         "one of " + list(groupable_), hint);
        choices_.take(item, *axis);
    }

    const Derived& derived_;
    const Diagram& diagram_;
    const std::vector<Kernel>& kernels_;
    const Extents& extents_;
    std::vector<AxisId> groupable_, streamed_;
    Overrides choices_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

namespace {

/// A line names one of the axes of which the field has sizes. Other fields have one line.
bool has_sizes_of_axes(ChoiceKind kind) {
    return any_of(schedule_fields, [&](const FieldRow& field) {
        return field.kind == kind &&
               (std::holds_alternative<SizesByAxis KernelSchedule::*>(field.member) || kind == ChoiceKind::split);
    });
}

}  // namespace

const Overrides::Lines& Overrides::of(ChoiceKind kind) const {
    static const Lines none;
    const auto found = lines_.find(kind);
    return found == lines_.end() ? none : found->second;
}
const ScheduleItem* Overrides::line(ChoiceKind kind) const {
    const Lines& lines = of(kind);
    return lines.empty() ? nullptr : &lines.begin()->second;
}
AxisId Overrides::axis(ChoiceKind kind) const {
    const Lines& lines = of(kind);
    return lines.empty() ? AxisId() : lines.begin()->first;
}
std::int64_t Overrides::value(ChoiceKind kind, std::int64_t otherwise) const {
    const ScheduleItem* said = line(kind);
    return said ? said->value.value_or(otherwise) : otherwise;
}
void Overrides::take(const ScheduleItem& item, AxisId axis) {
    if (!has_sizes_of_axes(item.kind)) drop(item.kind);
    lines_[item.kind][axis] = item;
}
void Overrides::take_over(const Overrides& over) {
    for (const auto& [kind, lines] : over.lines_)
        for (const auto& [axis, item] : lines) take(item, axis);
}

std::vector<AxisId> axes_of(const Diagram& diagram, const Kernel& kernel) {
    std::vector<AxisId> axes;
    const auto add = [&](const std::vector<AxisId>& more) {
        for (const AxisId axis : more)
            if (!contains(axes, axis)) axes.push_back(axis);
    };
    add(kernel.group_axes);
    for (const Stage& stage : kernel.stages) {
        const auto* loop = std::get_if<Loop>(&stage);
        for (const Statement& s : loop ? loop->body : std::get<Block>(stage).statements)
            add(diagram.array(s.target).axes), add(s.reduce_axes);
    }
    return axes;
}

const std::vector<ScheduleItem>& own_schedule(const Derived& derived) {
    return derived.source.schedule.empty() ? derived.diagram.schedule : derived.source.schedule;
}

Result<std::vector<ScheduleItem>> all_overrides(const Derived& derived, const std::vector<ScheduleItem>& beside,
                                                const std::shared_ptr<const Source>& file) {
    std::vector<ScheduleItem> items = with_items_over(own_schedule(derived), beside);
    if (!file) return items;
    const auto in_file = parse_schedule_file(file);
    if (!in_file) return in_file.errors();
    return with_items_over(std::move(items), *in_file);
}

Result<std::vector<ScheduleItem>> kernel_overrides(const Derived& derived, const std::vector<ScheduleItem>& beside,
                                                   const std::shared_ptr<const Source>& file) {
    auto items = all_overrides(derived, beside, file);
    if (!items) return items;
    std::vector<ScheduleItem> out = *items;
    const auto add = [&](const ScheduleItem& like, ChoiceKind kind, const std::string& word,
                         std::optional<std::int64_t> value) {
        if (any_of(*items, [&](const ScheduleItem& i) { return i.kind == kind && i.kernel == like.kernel; })) return;
        out.push_back({.kind = kind, .axis = {}, .value = value, .word = word, .range = like.range, .kernel = like.kernel});
    };
    for (const ScheduleItem& item : *items) {
        if (item.kind != ChoiceKind::warpgroup) continue;
        add(item, ChoiceKind::mma_m, item.axis, std::nullopt);
        for (const ScheduleItem& group : *items)
            if (group.kind == ChoiceKind::group && group.axis == item.axis &&
                (group.kernel.empty() || group.kernel == item.kernel))
                add(item, ChoiceKind::warps, {}, layouts::warpgroup_warps * ceil_div(*group.value, rows_of_warpgroup));
    }
    return out;
}

std::vector<ScheduleItem> of_all_kernels(std::vector<ScheduleItem> items) {
    std::erase_if(items, [](const ScheduleItem& item) { return !item.kernel.empty(); });
    return items;
}

Result<Overrides> checked_overrides(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items) {
    return Checker(derived, extents).run(items);
}

}  // namespace napkin
