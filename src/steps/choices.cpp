#include "steps/choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/ids.hpp"
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
        if ((item.kind == "warpgroup" || item.kind == "subloop") && item.value) {
            if (const auto id = axis(item.axis, item.range))
                (item.kind == "subloop" ? out_.subloop : out_.warpgroup)[*id] = {*item.value, item.range};
        } else if (item.kind == "group" && item.value) {
            if (const auto id = axis(item.axis, item.range)) out_.group[*id] = item.range;
        } else if (item.kind == "stream" && item.value) {
            if (const auto id = axis(item.axis, item.range)) out_.stream[*id] = item.range;
        } else if (item.kind == "precision") {
            read_precision(item);
        } else if (item.kind == "overhead") {
            read_overhead(item);
        } else if (item.kind == "issue") {
            read_list(item, out_.issue);
        } else if (item.kind == "turns") {
            read_list(item, out_.turns);
        } else if (item.kind == "units") {
            read_list(item, out_.units);
            for (const Listed& unit : out_.units) check_unit(unit.name, unit.range);
        } else if (item.kind == "piece") {
            for (const ScheduleClause& c : item.clauses) {
                if (!c.number || *c.number < 1)
                    fail("bad-schedule", c.range, fmt::format("{} of what size?", c.word),
                         "an axis and a size: piece A d 8");
                else if (const auto id = axis(c.word, c.range))
                    out_.pieces[item.axis][*id] = {*c.number, c.range};
            }
        } else if (item.kind == "place") {
            for (const ScheduleClause& c : item.clauses) {
                if (c.word != "stages" || !c.number) continue;
                constexpr std::int64_t most = 64;
                if (*c.number < 1 || *c.number > most)
                    fail("bad-schedule", c.range, fmt::format("{} is held {} times", item.axis, *c.number),
                         fmt::format("1 … {} tiles at a time: place {} operand, stages 2", most, item.axis),
                         fmt::format("the nearest legal choice is stages {}", std::clamp<std::int64_t>(*c.number, 1, most)));
                else
                    out_.stages[item.axis] = {*c.number, c.range};
            }
        }
    }

    void read_precision(const ScheduleItem& item) {
        if (const auto type = dtype_from_name(item.word)) return void(out_.precision[item.axis] = {*type, item.range});
        std::vector<std::string> names;
        for (const DType type : all_dtypes) names.emplace_back(name(type));
        fail("bad-precision", item.range, fmt::format("there is no type '{}'", item.word),
             "one of " + join(names, ", "), did_you_mean(item.word, names));
    }

    void read_list(const ScheduleItem& item, std::vector<Listed>& to) {
        for (const ScheduleClause& c : item.clauses) {
            if (!c.names.empty() || (c.number && (*c.number > 8 || item.kind != "issue")))
                fail("bad-schedule", c.range,
                     fmt::format("{} takes names, and not '{}'", item.kind,
                                 c.names.empty() ? std::to_string(*c.number) : c.names[0].text),
                     item.kind == "issue"
                         ? "names, each with the iterations by which it is ahead, at most 8: issue S 1, O_acc"
                         : "names with commas between them");
            if (std::any_of(to.begin(), to.end(), [&](const Listed& l) { return l.name == c.word; }))
                fail("bad-schedule", c.range, fmt::format("{} names {} twice", item.kind, c.word), "each name once");
            to.push_back({c.word, static_cast<int>(c.number.value_or(0)), c.range});
        }
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
        if (item.kind != "precision" && item.kind != "piece" && item.kind != "place") continue;
        const auto known = std::find(names.begin(), names.end(), item.axis);
        if (known == names.end()) {
            error("unknown-variable", item, fmt::format("the kernel has no variable '{}'", item.axis),
                  "one of " + join(names, ", "), did_you_mean(item.axis, names));
            continue;
        }
        const auto id = static_cast<std::size_t>(known - names.begin());
        if (item.kind != "piece") continue;
        if (assigned.variables[id].copy_of < 0)
            error("bad-schedule", item, fmt::format("{} is computed or loaded, not passed on in pieces", item.axis),
                  "a variable that is passed from one level to another", "");
        for (const auto& [axis, piece] : choices.pieces.at(item.axis))
            if (std::none_of(variables[id].dims.begin(), variables[id].dims.end(),
                             [&, a = axis](const Index& d) { return d.single_axis() == a; }))
                error("bad-schedule", item, fmt::format("{} has no such axis", item.axis), "one of its own axes", "");
    }
    if (!errors.empty()) return errors;
    return Done{};
}

}  // namespace napkin
