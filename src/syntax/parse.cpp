#include "syntax/parse.hpp"

#include <fmt/format.h>

#include <array>

#include "diagram/blocks.hpp"
#include "diagram/conversions.hpp"
#include "diagram/hidden_axes.hpp"
#include "support/ranges.hpp"
#include "syntax/elaborate.hpp"
#include "syntax/jagged.hpp"
#include "syntax/parser.hpp"
#include "syntax/print.hpp"
#include "syntax/std_library.hpp"

namespace napkin {
namespace {
/// The standard library, read once. It is part of napkin, so an error in it is napkin's.
const Module& standard_module() {
    static const Module module = [] {
        const auto source = std::make_shared<const Source>(Source{"<std>", std::string(std_library_text())});
        Diagnostics diagnostics;
        if (source->text.empty()) return Module{source, {}, {}, {}};
        Module result = parse_module(source, diagnostics);
        if (!diagnostics.empty()) throw InternalError("lib/std.nk: " + render(diagnostics.take()));
        return result;
    }();
    return module;
}

/// Entries of `sizes` beside the definitions must name axes of some definition.
void check_size_names(const Module& module, const Diagram& main, Diagnostics& diagnostics) {
    std::set<std::string> names;
    for (const AstDefinition& d : module.definitions) {
        names.merge(axis_like_names(d));
        for (const AstSize& s : d.sizes) {
            for (const AstWord& word : s.names) names.insert(word.text);
        }
        if (d.broken) return;
    }
    for (const Axis& axis : main.axes) names.insert(axis.name);
    const auto check = [&](const std::vector<AstSize>& entries) {
        std::set<std::string> seen;
        for (const AstSize& entry : entries) {
            for (const AstWord& word : entry.names) {
                if (!seen.insert(word.text + (entry.is_data() ? "[]" : "")).second && &entries == &module.sizes) {
                    diagnostics.error(Code::duplicate_size, word.range,
                                      fmt::format("{} is given a size twice", word.text), "one size for each axis");
                }
                if (names.contains(word.text) || !entry.value) continue;
                diagnostics.error(Code::unknown_size_axis, word.range, fmt::format("there is no axis {}", word.text),
                                  "an axis of the diagram", did_you_mean(word.text, {names.begin(), names.end()}));
            }
        }
    };
    // What a size is made of may stand in other sizes only.
    std::vector<const AstNode*> values;
    for (const AstSize& entry : module.sizes) {
        if (entry.value) values.push_back(&*entry.value);
    }
    while (!values.empty()) {
        const AstNode& node = *values.back();
        values.pop_back();
        if (const auto* n = std::get_if<AstName>(&node.v)) names.insert(n->name);
        if (const auto* n = std::get_if<AstUnary>(&node.v)) values.push_back(&n->operand[0]);
        if (const auto* n = std::get_if<AstBinary>(&node.v)) {
            for (const AstNode& operand : n->operands) values.push_back(&operand);
        }
    }
    check(module.sizes);
}

/// Choices that name an axis.
constexpr std::array kinds_of_axes{ChoiceKind::group, ChoiceKind::stream, ChoiceKind::subloop, ChoiceKind::split};

void check_schedule_axes(const Diagram& d, const AstDefinition& definition, Diagnostics& diagnostics) {
    if (definition.broken) return;
    const std::set<std::string> like_axes = axis_like_names(definition);
    std::vector<std::string> names(like_axes.begin(), like_axes.end());
    for (const Axis& axis : with_hidden_axes(d).axes) names.push_back(axis.name);
    for (const ScheduleItem& item : d.schedule) {
        if (!contains(kinds_of_axes, item.kind)) continue;
        if (item.axis.empty() || contains(names, item.axis)) continue;
        diagnostics.error(Code::unknown_schedule_axis, item.range,
                          fmt::format("{} has no axis {}", definition.name.text, item.axis),
                          fmt::format("an axis of {}", definition.name.text), did_you_mean(item.axis, names));
    }
}

/// The choices that stand beside the definitions. They are for the last one; another takes those that fit it.
std::vector<ScheduleItem> schedule_for(const Module& module, const AstDefinition& main, const Diagram& d) {
    std::vector<ScheduleItem> items = module.schedule;
    if (&main != &module.definitions.back()) {
        std::erase_if(items, [&](const ScheduleItem& item) {
            return contains(kinds_of_axes, item.kind) && !d.find_axis(item.axis);
        });
    }
    return items;
}

/// Takes the items of one place: what is said first of a choice stands.
void add_new(std::vector<ScheduleItem>& out, const std::vector<ScheduleItem>& items) {
    for (const ScheduleItem& item : items)
        if (none_of(out, [&](const ScheduleItem& o) { return fixes_the_same(o, item); })) out.push_back(item);
}

}  // namespace

Result<Diagram> parse_diagram(const std::shared_ptr<const Source>& source, const ParseOptions& options) {
    Diagnostics diagnostics;
    Diagnostics standard_diagnostics;
    Budget budget, standard_budget;
    const Module module = parse_module(source, diagnostics);

    const AstDefinition* main = nullptr;
    std::vector<std::string> names;
    for (const AstDefinition& d : module.definitions) {
        names.push_back(d.name.text);
        if (options.diagram.empty() || d.name.text == options.diagram) main = &d;
    }
    Library standard(standard_module(), nullptr, nullptr, standard_diagnostics, standard_budget);
    Library library(module, main, &standard, diagnostics, budget);
    for (const AstDefinition& d : module.definitions) {
        if (!diagnostics.full()) (void)library.find(d.name.text);
    }
    if (!standard_diagnostics.empty()) {
        throw InternalError("lib/std.nk: " + render(standard_diagnostics.take()));
    }
    if (!main && diagnostics.empty()) {
        diagnostics.error(Code::unknown_diagram, {source, 0, 0},
                          fmt::format("there is no diagram {} in {}", options.diagram, source->name),
                          fmt::format("one of {}", fmt::join(names, ", ")), did_you_mean(options.diagram, names));
    }
    std::vector<ScheduleItem> schedule;
    for (const std::string& item : options.schedule) {
        const auto text = std::make_shared<const Source>(Source{"<command line>", item});
        add_new(schedule, parse_schedule(text, diagnostics));
    }
    if (!main) return diagnostics.take();

    const Template* result = library.find(main->name.text);
    Template chosen = result ? *result : Template{};
    if (diagnostics.empty())
        chosen.diagram = without_jagged_axes(std::move(chosen.diagram), chosen.jagged, diagnostics);
    std::vector<ScheduleItem> of_text = schedule_for(module, *main, chosen.diagram);
    add_new(of_text, chosen.diagram.schedule);
    chosen.diagram.schedule = with_items_over(std::move(of_text), schedule);
    check_size_names(module, chosen.diagram, diagnostics);
    check_schedule_axes(chosen.diagram, *main, diagnostics);
    if (!diagnostics.empty()) return diagnostics.take();
    internal_check(chosen.ok, "a definition failed without an error");
    apply_defaults(chosen);
    return canonical(with_axes_in_blocks(with_conversions(chosen.diagram)));
}

Result<std::vector<std::string>> list_diagrams(const std::shared_ptr<const Source>& source) {
    Diagnostics diagnostics;
    const Module module = parse_module(source, diagnostics);
    if (!diagnostics.empty()) return diagnostics.take();
    return mapped<std::string>(module.definitions, [&](const AstDefinition& d) { return d.name.text; });
}

}  // namespace napkin
