#include "run/derivation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/result.hpp"

namespace napkin {

namespace {

/// Columns that a text takes on a terminal: UTF-8 continuation bytes take none.
std::size_t columns(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
    return text + std::string(width > columns(text) ? width - columns(text) : 0, ' ');
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

/// States stand for themselves without indices: what they are indexed by is said once.
Expr without_indices(const Expr& e, const std::set<ArrayId>& arrays) {
    return transform(e, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        return r && arrays.contains(r->array) ? read(r->array, {}) : node;
    });
}

std::string axis_list(const Diagram& diagram, const std::vector<AxisId>& axes) {
    std::vector<std::string> names;
    for (const AxisId axis : axes) names.push_back(diagram.axis(axis).name);
    return joined(names, ", ");
}

/// left ⊕ right as written in the language.
std::string combined(ReduceOp op, const std::string& left, const std::string& right) {
    switch (op) {
        case ReduceOp::sum: return left + " + " + right;
        case ReduceOp::prod: return left + " * " + right;
        case ReduceOp::max: return "max(" + left + ", " + right + ")";
        case ReduceOp::min: return "min(" + left + ", " + right + ")";
    }
    throw InternalError("unknown reduction");
}

/// Equations of two diagrams that are not in both, as text; targets keep their order.
std::vector<std::string> only_in(const Diagram& diagram, const Diagram& other) {
    std::multiset<std::string> rest;
    for (const Equation& equation : other.equations) rest.insert(to_string(other, equation));
    std::vector<std::string> result;
    for (const Equation& equation : diagram.equations) {
        const std::string text = to_string(diagram, equation);
        if (const auto found = rest.find(text); found != rest.end()) {
            rest.erase(found);
        } else {
            result.push_back(text);
        }
    }
    return result;
}

std::string place(const SourceRange& range) {
    if (!range.source) return "";
    return fmt::format("{}:{}", range.source->name, line_column(*range.source, range.begin).line);
}

}  // namespace

std::string rules_used(const Derived& derived) {
    std::vector<std::pair<std::string, int>> rules;
    for (const DerivationStep& step : derived.steps) {
        const auto known = std::find_if(rules.begin(), rules.end(),
                                        [&](const auto& rule) { return rule.first == step.rule; });
        if (known != rules.end()) {
            ++known->second;
        } else {
            rules.emplace_back(step.rule, 1);
        }
    }
    std::vector<std::string> words;
    for (const auto& [rule, count] : rules) words.push_back(count > 1 ? fmt::format("{} ×{}", rule, count) : rule);
    return joined(words, ", ");
}

std::string kernels_line(const Derived& derived) {
    std::set<std::string> streamed;
    for (const Kernel& kernel : derived.kernels) {
        for (const Stage& stage : kernel.stages) {
            if (const auto* loop = std::get_if<Loop>(&stage)) streamed.insert(derived.diagram.axis(loop->axis).name);
        }
    }
    const std::string over = streamed.empty() ? ""
                                              : ", streamed over " + joined({streamed.begin(), streamed.end()}, ", ");
    const std::size_t equations = derived.source.equations.size();
    return fmt::format("{} equation{} → {} kernel{}{}", equations, equations == 1 ? "" : "s", derived.kernels.size(),
                       derived.kernels.size() == 1 ? "" : "s", over);
}

std::vector<FoldLine> fold_lines(const Derived& derived, const Fold& fold) {
    const Diagram& diagram = derived.diagram;
    std::set<ArrayId> bare;
    std::map<ArrayId, ArrayId> state_of;
    for (const FoldState& state : fold.states) {
        bare.insert(state.state);
        if (state.old >= 0) {
            bare.insert(state.old);
            state_of[state.old] = state.state;
        }
    }
    const auto named = [&](const std::string& old_mark) {
        ExprNames names = diagram.names();
        names.array = [&diagram, &state_of, old_mark](ArrayId id) {
            const auto old = state_of.find(id);
            return old != state_of.end() ? diagram.array(old->second).name + old_mark : diagram.array(id).name;
        };
        return names;
    };
    const auto text = [&](const Expr& e, const std::string& old_mark) {
        return to_string(without_indices(e, bare), named(old_mark));
    };

    std::vector<FoldLine> lines;
    for (const FoldState& state : fold.states) {
        lines.push_back({"state", to_string(read_self(diagram, state.state), diagram.names()),
                         to_string(constant(state.init), diagram.names())});
    }
    for (const FoldState& state : fold.states) {
        const std::string body = text(state.body, "′");
        const std::string reduced = fmt::format("{}({}) {}", name(state.op), axis_list(diagram, state.reduce_axes), body);
        lines.push_back({"step", diagram.array(state.state).name,
                         state.carry ? combined(state.op, text(state.carry, "′"), reduced) : reduced});
    }
    for (const auto& [target, value] : fold.finish) {
        lines.push_back({"finish", to_string(read_self(diagram, target), diagram.names()), text(value, "′")});
    }
    for (const FoldState& state : fold.states) {
        if (!state.carry) continue;
        lines.push_back({"merge", diagram.array(state.state).name,
                         combined(state.op, text(state.carry, "₁"), text(state.carry, "₂"))});
    }
    return lines;
}

std::string describe(const Derived& derived) {
    const Diagram& diagram = derived.diagram;
    std::string out = fmt::format("{}: {}\n", diagram.name, kernels_line(derived));
    if (!derived.steps.empty()) out += fmt::format("  rules   {}\n", rules_used(derived));
    for (const Kernel& kernel : derived.kernels) {
        std::vector<std::string> inputs, outputs;
        for (const ArrayId id : kernel.inputs) inputs.push_back(diagram.array(id).name);
        for (const ArrayId id : kernel.outputs) outputs.push_back(diagram.array(id).name);
        out += fmt::format("\nkernel {}: {} → {}", kernel.name, joined(inputs, ", "), joined(outputs, ", "));
        if (!kernel.group_axes.empty()) out += fmt::format("   groups over {}", axis_list(diagram, kernel.group_axes));
        out += "\n";
        for (const Fold& fold : kernel.folds) {
            out += fmt::format("  fold over {}\n", diagram.axis(fold.axis).name);
            const std::vector<FoldLine> lines = fold_lines(derived, fold);
            std::size_t width = 0;
            for (const FoldLine& line : lines) width = std::max(width, columns(line.left));
            std::string part;
            for (const FoldLine& line : lines) {
                out += fmt::format("    {} {} = {}\n", padded(line.part == part ? "" : line.part, 7),
                                   padded(line.left, width), line.right);
                part = line.part;
            }
        }
    }
    for (const Refusal& refusal : derived.refusals) {
        const std::string where = place(refusal.range);
        out += fmt::format("\nnot done: {}\n  because {}{}\n", refusal.what, refusal.reason,
                           where.empty() ? "" : " (" + where + ")");
    }
    return out;
}

std::string explain(const Derived& derived) {
    std::string out;
    std::size_t number = 0;
    for (const DerivationStep& step : derived.steps) {
        const std::string where = place(step.range);
        out += fmt::format("{:3}. {}{}\n", ++number, step.rule, where.empty() ? "" : "   " + where);
        if (!step.effect.empty()) out += fmt::format("     what     {}\n", step.effect);
        if (!step.side_condition.empty()) out += fmt::format("     because  {}\n", step.side_condition);
        for (const std::string& equation : only_in(step.before, step.after))
            out += fmt::format("     -        {}\n", equation);
        for (const std::string& equation : only_in(step.after, step.before))
            out += fmt::format("     +        {}\n", equation);
        out += "\n";
    }
    return out + describe(derived);
}

}  // namespace napkin
