#include "run/derivation.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin {

namespace {
std::string axis_list(const Diagram& diagram, const std::vector<AxisId>& axes) {
    return join(names_of(diagram.axes, axes), ", ");
}

/// left ⊕ right as written in the language.
std::string combined(ReduceOp op, const std::string& left, const std::string& right) {
    const std::string_view sign = name(pairwise(op));
    const bool is_call = op == ReduceOp::max || op == ReduceOp::min;
    return is_call ? fmt::format("{}({}, {})", sign, left, right) : fmt::format("{} {} {}", left, sign, right);
}

/// What an edit takes away and what it puts there, equation by equation: those that stay as they were are in neither.
std::string changes(const Diagram& diagram, const Edit& edit) {
    std::string out;
    for (const Edit::Replacement& r : edit.equations) {
        const bool stays = contains(r.after, r.before);
        if (!stays) out += fmt::format("     -        {}\n", to_string(diagram, r.before));
        for (const Equation& equation : r.after)
            if (!(equation == r.before)) out += fmt::format("     +        {}\n", to_string(diagram, equation));
    }
    return out;
}

std::string place(const SourceRange& range) {
    if (!range.source) return "";
    return fmt::format("{}:{}", range.source->name, line_column(*range.source, range.begin).line);
}

}  // namespace

std::string gatherings_text(const Diagram& diagram, const std::vector<Gathering>& kernels) {
    std::vector<std::string> texts;
    for (const Gathering& g : kernels) {
        const std::string first = diagram.array(g.targets.front()).name, last = diagram.array(g.targets.back()).name;
        std::string text = g.targets.size() > 1 ? first + "…" + last : last;
        texts.push_back(g.stream ? fmt::format("{} over {}", text, diagram.axis(*g.stream).name) : text);
    }
    return join(texts, " | ");
}

std::string rules_used(const Derived& derived) {
    std::vector<std::pair<std::string, int>> rules;
    for (const DerivationStep& step : derived.steps) {
        const auto known = find_if(rules, [&](const auto& rule) { return rule.first == step.rule; });
        if (known != rules.end()) {
            ++known->second;
        } else {
            rules.emplace_back(step.rule, 1);
        }
    }
    std::vector<std::string> words;
    for (const auto& [rule, count] : rules) words.push_back(count > 1 ? fmt::format("{} ×{}", rule, count) : rule);
    return join(words, ", ");
}

std::string kernels_line(const Derived& derived) {
    std::set<std::string> streamed;
    for (const Kernel& kernel : derived.kernels) {
        for (const Stage& stage : kernel.stages) {
            if (const auto* loop = std::get_if<Loop>(&stage)) streamed.insert(derived.diagram.axis(loop->axis).name);
        }
    }
    const std::string over = streamed.empty() ? "" : ", streamed over " + join({streamed.begin(), streamed.end()}, ", ");
    const std::size_t equations = derived.source.equations.size();
    return fmt::format("{} equation{} → {} kernel{}{}", equations, equations == 1 ? "" : "s", derived.kernels.size(),
                       derived.kernels.size() == 1 ? "" : "s", over);
}

namespace {
/// How one kernel's expressions print: states without indices, values before the step with a mark.
class KernelPrinter {
public:
    KernelPrinter(const Derived& derived, const Kernel& kernel) : derived_(derived) {
        for (const Fold& fold : kernel.folds) {
            for (const FoldState& state : fold.states) {
                if (state.old >= 0) state_of_[state.old] = state.state;
            }
        }
        for (const Stage& stage : kernel.stages) {
            const auto* loop = std::get_if<Loop>(&stage);
            if (loop == nullptr) continue;
            for (const auto& [state, value] : loop->init) bare_.insert(state);
            for (const Statement& statement : loop->body) {
                const std::vector<AxisId>& axes = derived.diagram.array(statement.target).axes;
                const bool kept = !contains(axes, loop->axis);
                if (kept && !bare_.contains(statement.target)) {
                    bare_.insert(statement.target);
                    if (!statement.reduce && as<Read>(statement.body) == nullptr && !reads_old(statement.body))
                        helpers_.emplace_back(statement.body, statement.target);
                }
            }
        }
    }

    [[nodiscard]] std::string expression(const Expr& e, const std::string& old_mark = "′") const {
        const Expr shown = transform(e, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && (bare_.contains(r->array) || state_of_.contains(r->array)) ? read(r->array, {}) : node;
        });
        return to_string(shown, names(old_mark));
    }

    /// The expression with what the loop has a name for written by that name.
    [[nodiscard]] Expr with_helpers(const Expr& e) const {
        return transform(e, [&](const Expr& node) {
            for (const auto& [body, target] : helpers_) {
                if (equal(node, body)) return read_self(derived_.diagram, target);
            }
            return node;
        });
    }

    /// "max(x) body", with the carry before it.
    [[nodiscard]] std::string right_side(const Statement& statement) const {
        std::string body = expression(statement.body);
        if (!statement.reduce) return body;
        std::string reduced = fmt::format("{}({}) {}", name(*statement.reduce),
                                          axis_list(derived_.diagram, statement.reduce_axes), body);
        if (!statement.carry) return reduced;
        // A carry's read of its own target is the value before the step.
        const Expr carry = transform(statement.carry, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && r->array == statement.target ? read(own_old, {}) : node;
        });
        ExprNames marked = names("′");
        marked.array = [inner = marked.array, own = target_name(statement.target)](ArrayId id) {
            return id == own_old ? own + "′" : inner(id);
        };
        const Expr bare = transform(carry, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && r->array != own_old && (bare_.contains(r->array) || state_of_.contains(r->array))
                       ? read(r->array, {})
                       : node;
        });
        return combined(*statement.reduce, to_string(bare, marked), reduced);
    }

    [[nodiscard]] std::string target_name(ArrayId id) const { return derived_.diagram.array(id).name; }
    [[nodiscard]] std::string with_indices(ArrayId id) const {
        return to_string(read_self(derived_.diagram, id), derived_.diagram.names());
    }
    [[nodiscard]] std::string left_side(ArrayId id) const {
        return bare_.contains(id) ? target_name(id) : with_indices(id);
    }
    [[nodiscard]] bool is_old(ArrayId id) const { return state_of_.contains(id); }

private:
    static constexpr ArrayId own_old = -2;

    [[nodiscard]] bool reads_old(const Expr& e) const {
        const std::vector<ArrayId> arrays = read_arrays(e);
        return any_of(arrays, [&](ArrayId id) { return state_of_.contains(id); });
    }

    [[nodiscard]] ExprNames names(const std::string& old_mark) const {
        ExprNames result = derived_.diagram.names();
        result.array = [this, old_mark](ArrayId id) {
            const auto old = state_of_.find(id);
            return old != state_of_.end() ? target_name(old->second) + old_mark : target_name(id);
        };
        return result;
    }

    const Derived& derived_;
    std::set<ArrayId> bare_;                         ///< states, and what a step computes without the stream's axis
    std::map<ArrayId, ArrayId> state_of_;            ///< the old value's array → the state
    std::vector<std::pair<Expr, ArrayId>> helpers_;  ///< maps without the stream's axis
};

}  // namespace

std::vector<EquationLine> kernel_lines(const Derived& derived, const Kernel& kernel) {
    const KernelPrinter printer(derived, kernel);
    std::vector<EquationLine> lines;
    bool looped = false;
    for (const Stage& stage : kernel.stages) {
        if (const auto* block = std::get_if<Block>(&stage)) {
            for (const Statement& statement : block->statements) {
                lines.push_back(
                    {looped ? "tail" : "head", printer.with_indices(statement.target), printer.right_side(statement)});
            }
            continue;
        }
        const auto& loop = std::get<Loop>(stage);
        looped = true;
        for (const auto& [state, value] : loop.init) {
            lines.push_back({"state", printer.with_indices(state), to_string(constant(value), derived.diagram.names())});
        }
        for (const Statement& statement : loop.body) {
            if (!printer.is_old(statement.target))
                lines.push_back({"step", printer.left_side(statement.target), printer.right_side(statement)});
        }
    }
    return lines;
}

std::vector<EquationLine> merge_lines(const Derived& derived, const Kernel& kernel, const Fold& fold) {
    const KernelPrinter printer(derived, kernel);
    const auto plain = [](const FoldState& state) {
        const auto* old = state.carry ? as<Read>(state.carry) : nullptr;
        return old != nullptr && old->array == state.old;
    };
    std::vector<EquationLine> lines;
    if (all_of(fold.states, plain)) return lines;
    for (const FoldState& state : fold.states) {
        if (!state.carry) continue;
        const Expr carry = printer.with_helpers(state.carry);
        lines.push_back({"merge", printer.target_name(state.state),
                         combined(state.op, printer.expression(carry, "₁"), printer.expression(carry, "₂"))});
    }
    return lines;
}

std::string aligned(const std::vector<EquationLine>& lines, const std::string& indent) {
    std::size_t columns = 0;
    for (const EquationLine& line : lines) columns = std::max(columns, width(line.left));
    std::string out, part;
    for (const EquationLine& line : lines) {
        out += fmt::format("{}{} {} = {}\n", indent, left(line.part == part ? "" : line.part, 5),
                           left(line.left, columns), line.right);
        part = line.part;
    }
    return out;
}

/// What else the kernels could have been, and when that is better.
std::string alternatives_text(const Derived& derived) {
    std::string out;
    for (const Region& region : derived.regions) {
        if (region.alternatives.size() < 2) continue;
        out += "\ninstead of ";
        std::vector<std::string> chosen;
        for (const Gathering& g : region.alternatives[region.chosen].kernels)
            chosen.push_back(derived.diagram.array(g.targets.back()).name);
        out += fmt::format("kernel{} {}, by FLOPs, then transfers:\n", chosen.size() > 1 ? "s" : "", join(chosen, ", "));
        std::vector<std::string> names;
        std::size_t columns = 0;
        for (const Alternative& a : region.alternatives) {
            names.push_back(gatherings_text(derived.diagram, a.kernels));
            columns = std::max(columns, width(names.back()));
        }
        for (std::size_t i = 0; i < names.size(); ++i)
            out += fmt::format("  {} {}  {}\n", i == region.chosen ? "*" : " ", left(names[i], columns),
                               "where " + region.alternatives[i].condition);
    }
    return out;
}

std::string describe(const Derived& derived) {
    const Diagram& diagram = derived.diagram;
    std::string out = fmt::format("{}: {}\n", diagram.name, kernels_line(derived));
    if (!derived.steps.empty()) out += fmt::format("rules: {}\n", rules_used(derived));
    for (const Kernel& kernel : derived.kernels) {
        out += fmt::format("\nkernel {}: {} → {}", kernel.name, join(names_of(diagram.arrays, kernel.inputs), ", "),
                           join(names_of(diagram.arrays, kernel.outputs), ", "));
        std::vector<AxisId> grouped = kernel.group_axes;
        std::erase_if(grouped, [&](AxisId axis) { return contains(kernel.recompute_axes, axis); });
        if (!grouped.empty()) out += fmt::format("   groups over {}", axis_list(diagram, grouped));
        out += "\n";
        std::vector<EquationLine> lines = kernel_lines(derived, kernel);
        for (const Fold& fold : kernel.folds) {
            const std::vector<EquationLine> merge = merge_lines(derived, kernel, fold);
            append(lines, merge);
        }
        out += aligned(lines, "  ");
    }
    out += alternatives_text(derived);
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
        if (const auto* edit = std::get_if<Edit>(&step.change)) out += changes(derived.diagram, *edit);
        out += "\n";
    }
    return out + describe(derived);
}

}  // namespace napkin
