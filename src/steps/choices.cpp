#include "steps/choices.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

class ChoiceReader {
public:
    ChoiceReader(const Diagram& diagram, const Machine& machine) : diagram_(diagram), machine_(machine) {}

    Result<StepChoices> run(const std::vector<ScheduleItem>& items) {
        for (const ScheduleItem& item : items) read(item);
        if (!errors_.empty()) return errors_;
        return std::move(out_);
    }

private:
    void fail(const char* code, const SourceRange& range, std::string message, std::string expected,
              std::string hint = "") {
        errors_.push_back({.code = code,
                           .range = range,
                           .message = std::move(message),
                           .expected = std::move(expected),
                           .hint = std::move(hint)});
    }
    std::optional<AxisId> axis(const std::string& name, const SourceRange& range) {
        if (const auto found = diagram_.find_axis(name)) return found;
        fail("unknown-axis", range, fmt::format("there is no axis '{}'", name), "an axis of the diagram",
             did_you_mean(name, names_of(diagram_.axes)));
        return std::nullopt;
    }

    void read(const ScheduleItem& item) {
        switch (item.kind) {
            case ChoiceKind::warpgroup:
                if (const auto id = axis(item.axis, item.range)) out_.warpgroup[*id] = {*item.value, item.range};
                break;
            case ChoiceKind::subloop:
                if (const auto id = axis(item.axis, item.range)) out_.subloop[*id] = {*item.value, item.range};
                break;
            case ChoiceKind::group:
                if (const auto id = axis(item.axis, item.range)) out_.group[*id] = item.range;
                break;
            case ChoiceKind::stream:
                if (!item.value) break;
                if (const auto id = axis(item.axis, item.range)) out_.stream[*id] = item.range;
                break;
            case ChoiceKind::precision: read_precision(item); break;
            case ChoiceKind::overhead: read_overhead(item); break;
            case ChoiceKind::issue: read_list(item, out_.issue); break;
            case ChoiceKind::turns: read_list(item, out_.turns); break;
            case ChoiceKind::units:
                read_list(item, out_.units);
                for (const Listed& unit : out_.units) check_unit(unit.name, unit.range);
                break;
            case ChoiceKind::piece:
                for (const ScheduleClause& c : item.clauses)
                    if (const auto id = axis(c.word, c.range)) out_.pieces[item.axis][*id] = {*c.number, c.range};
                break;
            case ChoiceKind::storage:
                for (const ScheduleClause& c : item.clauses)
                    if (c.word == "stages") out_.stages[item.axis] = {*c.number, c.range};
                break;
            default: break;
        }
    }

    void read_precision(const ScheduleItem& item) {
        if (const auto type = dtype_from_name(item.word)) return void(out_.precision[item.axis] = {*type, item.range});
        std::vector<std::string> names;
        for (const DType type : all_dtypes) names.emplace_back(name(type));
        fail("bad-precision", item.range, fmt::format("there is no type '{}'", item.word),
             "one of " + join(names, ", "), did_you_mean(item.word, names));
    }

    static void read_list(const ScheduleItem& item, std::vector<Listed>& to) {
        for (const ScheduleClause& c : item.clauses)
            to.push_back({c.word, static_cast<int>(c.number.value_or(0)), c.range});
    }

    bool check_unit(const std::string& unit, const SourceRange& range) {
        // Beside units, the pipes into the core's memory and from there into registers, by the names of these levels.
        std::vector<std::string> units = names_of(machine_.units);
        for (std::size_t l = core_memory_level(machine_);
             l < std::min(machine_.levels.size(), core_memory_level(machine_) + 2); ++l)
            units.push_back(machine_.levels[l].name);
        if (contains(units, unit)) return true;
        fail("unknown-unit", range, fmt::format("{} has no unit '{}'", machine_.name, unit),
             "one of " + join(units, ", "), did_you_mean(unit, units));
        return false;
    }

    void read_overhead(const ScheduleItem& item) {
        if (!check_unit(item.axis, item.range)) return;
        if (item.reason.empty())
            return fail("missing-source", item.range, fmt::format("the overhead of {} has no source", item.axis),
                        fmt::format("in a schedule file: overhead {} {}  where the figure comes from", item.axis,
                                    item.value.value_or(0)));
        out_.overheads[item.axis] = {static_cast<double>(item.value.value_or(0)) / 100, item.reason};
    }

    const Diagram& diagram_;
    const Machine& machine_;
    StepChoices out_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

Result<StepChoices> step_choices(const Diagram& diagram, const Machine& machine, const std::vector<ScheduleItem>& items) {
    return ChoiceReader(diagram, machine).run(items);
}

Status check_names(const StepChoices& choices, const std::vector<ScheduleItem>& items, const Assigned& assigned) {
    std::vector<Diagnostic> errors;
    const auto& variables = assigned.kernel.variables;
    const std::vector<std::string> names = names_of(variables);
    const auto error = [&](const char* code, const ScheduleItem& item, std::string message, std::string expected,
                           std::string hint) {
        errors.push_back({.code = code,
                          .range = item.range,
                          .message = std::move(message),
                          .expected = std::move(expected),
                          .hint = std::move(hint)});
    };
    for (const ScheduleItem& item : items) {
        if (item.kind != ChoiceKind::precision && item.kind != ChoiceKind::piece && item.kind != ChoiceKind::storage)
            continue;
        const auto known = find(names, item.axis);
        if (known == names.end()) {
            error("unknown-variable", item, fmt::format("the kernel has no variable '{}'", item.axis),
                  "one of " + join(names, ", "), did_you_mean(item.axis, names));
            continue;
        }
        const auto id = VariableId::of(known - names.begin());
        if (item.kind != ChoiceKind::piece) continue;
        if (assigned.variables[id].copy_of < 0)
            error("bad-schedule", item, fmt::format("{} is computed or loaded, not passed on in pieces", item.axis),
                  "a variable that is passed from one level to another", "");
        for (const auto& [axis, piece] : choices.pieces.at(item.axis))
            if (none_of(variables[id].dims, [&, a = axis](const Index& d) { return d.single_axis() == a; }))
                error("bad-schedule", item, fmt::format("{} has no such axis", item.axis), "one of its own axes", "");
    }
    if (!errors.empty()) return errors;
    return Done{};
}

namespace {
Diagnostic out_of_range(const SourceRange& range, std::string message, std::int64_t most, const std::string& line) {
    return {.code = "size-out-of-range",
            .range = range,
            .message = std::move(message),
            .expected = fmt::format("1 … {}", most),
            .hint = fmt::format("the nearest legal choice is {}{}", line, most)};
}
}  // namespace

Status check_warpgroup(const StepContext& context, const StepChoices& choices, const Kernel& kernel) {
    for (const auto& [axis, share] : choices.warpgroup)
        if (!contains(kernel.group_axes, axis))
            return Diagnostic{.code = "not-groupable",
                              .range = share.range,
                              .message = fmt::format("warpgroups cannot share {}: kernel {} does not group it",
                                                     context.diagram.axis(axis).name, kernel.name),
                              .expected = "one of " + join(names_of(context.diagram.axes, kernel.group_axes), ", "),
                              .hint = ""};
    for (const auto& [axis, share] : context.warpgroup) {
        const std::string& name = context.diagram.axis(axis).name;
        const std::int64_t extent = context.extents[axis];
        const std::int64_t group = context.sizes.group[axis] > 0 ? context.sizes.group[axis] : extent;
        const auto by_user = choices.warpgroup.find(axis);
        if (by_user == choices.warpgroup.end() && !choices.group.contains(axis)) continue;
        const SourceRange range = by_user != choices.warpgroup.end() ? by_user->second.range : choices.group.at(axis);
        if (share > group)
            return out_of_range(range, fmt::format("w_{0} = {1}, but a group has {2} values of {0}", name, share, group),
                                group, fmt::format("warpgroup {} = ", name));
        // The last warpgroup of a whole axis may have fewer values.
        if (group % share == 0 || group >= extent) continue;
        return Diagnostic{.code = "broken-divisor",
                          .range = range,
                          .message = fmt::format("g_{0} = {1} is no multiple of w_{0} = {2}", name, group, share),
                          .expected = "as many values for each warpgroup",
                          .hint = fmt::format("the nearest legal choice is group {} = {}", name, group / share * share)};
    }
    return Done{};
}

std::vector<AxisId> axes_of_subloops(const std::vector<StatementWork>& work) {
    std::vector<AxisId> out;
    for (const StatementWork& w : work) {
        if (w.stream >= 0 && !contains(out, w.stream)) out.push_back(w.stream);
        if (w.contraction && w.carries)
            for (const AxisId axis : w.contraction->n)
                if (!contains(out, axis)) out.push_back(axis);
    }
    return out;
}

/// Checks subloops of streams, and of axes of what contractions accumulate; a part lies in what it is a part of.
Status check_subloops(const StepContext& context, const StepChoices& choices, const std::vector<StatementWork>& work) {
    const std::vector<AxisId> legal = axes_of_subloops(work);
    for (const auto& [axis, part] : choices.subloop)
        if (!contains(legal, axis))
            return Diagnostic{
                .code = "no-subloop",
                .range = part.range,
                .message = fmt::format(
                    "subloop {} cuts nothing: no stream runs over it, and no contraction accumulates along it",
                    context.diagram.axis(axis).name),
                .expected = legal.empty() ? "a stream" : "one of " + join(names_of(context.diagram.axes, legal), ", "),
                .hint = "leave the line out"};
    for (const auto& [axis, part] : choices.subloop) {
        const std::int64_t chunk = context.sizes.stream[axis], most = chunk > 0 ? chunk : context.extents[axis];
        const std::string& name = context.diagram.axis(axis).name;
        if (part.value > most)
            return out_of_range(part.range,
                                fmt::format("u_{} = {}, but {} {} values", name, part.value,
                                            chunk > 0 ? "a chunk has" : name + " has", most),
                                most, fmt::format("subloop {} = ", name));
    }
    return Done{};
}
/// A piece of what is passed on is no larger than what is passed.
Status check_pieces(const StepContext& context, const StepChoices& choices, const Assigned& assigned) {
    for (const VariableId v : assigned.variables.ids()) {
        const auto pieces = choices.pieces.find(assigned.kernel.variables[v].name);
        if (pieces == choices.pieces.end()) continue;
        for (const CutSize& whole : context.cuts_of(assigned, v, {}))
            if (const auto piece = pieces->second.find(whole.axis);
                piece != pieces->second.end() && piece->second.value > whole.size)
                return out_of_range(piece->second.range,
                                    fmt::format("a piece of {} of {}, of which {} has {}", piece->second.value,
                                                context.diagram.axis(whole.axis).name, pieces->first, whole.size),
                                    whole.size,
                                    fmt::format("piece {} {} ", pieces->first, context.diagram.axis(whole.axis).name));
    }
    return Done{};
}

}  // namespace napkin
