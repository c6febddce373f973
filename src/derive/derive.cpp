#include "derive/derive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "algebra/expr_walk.hpp"
#include "derive/array_types.hpp"
#include "derive/assemble.hpp"

namespace napkin {
namespace {

/// One kernel to be: its arrays in order of definition and the axis to stream (none: a single block).
struct Part {
    std::vector<ArrayId> targets;
    std::optional<AxisId> axis;
};
using Partition = std::vector<Part>;

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

class Deriver {
public:
    Deriver(const Diagram& diagram, const DeriveOptions& options, Form form, std::vector<AxisId> demanded)
        : d_(diagram), options_(options), form_(form), demanded_(std::move(demanded)) {}

    Derived run() {
        Partition best = initial();
        if (options_.kernels.empty() && options_.fuse && options_.cost) best = improved(std::move(best));
        auto derived = build(best, true);
        internal_check(derived.has_value(), "a partition that was found legal cannot be built");
        describe(*derived, best);
        return std::move(*derived);
    }

private:
    const Diagram& d_;
    const DeriveOptions& options_;
    Form form_;
    std::vector<AxisId> demanded_;

    // --- which equations share a kernel -------------------------------------------------------------------------

    Partition initial() {
        if (!options_.kernels.empty()) return named();
        Partition parts;
        if (!options_.fuse) {
            for (const auto& e : d_.equations) parts.push_back(with_axis({e.target}));
            return parts;
        }
        for (const auto& component : components()) {
            std::vector<ArrayId> current;
            for (const ArrayId target : component) {
                auto longer = current;
                longer.push_back(target);
                if (!current.empty() && !may_join(current, longer)) {
                    parts.push_back(with_axis(current));
                    longer = {target};
                }
                current = std::move(longer);
            }
            if (!current.empty()) parts.push_back(with_axis(current));
        }
        return parts;
    }

    Partition named() {
        Partition parts;
        std::set<ArrayId> placed;
        for (const auto& names : options_.kernels) {
            std::vector<ArrayId> targets;
            for (const auto& e : d_.equations)
                if (std::find(names.begin(), names.end(), d_.array(e.target).name) != names.end() &&
                    placed.insert(e.target).second)
                    targets.push_back(e.target);
            if (!targets.empty()) parts.push_back(with_axis(targets));
        }
        for (const auto& e : d_.equations)
            if (placed.insert(e.target).second) parts.push_back(with_axis({e.target}));
        return parts;
    }

    /// Equations that are linked through a computed array, in order; unlinked ones have nothing to gain from one kernel.
    [[nodiscard]] std::vector<std::vector<ArrayId>> components() const {
        std::vector<int> root(d_.arrays.size());
        std::iota(root.begin(), root.end(), 0);
        const auto find = [&](int i) {
            while (root[static_cast<std::size_t>(i)] != i) i = root[static_cast<std::size_t>(i)];
            return i;
        };
        for (const auto& e : d_.equations)
            for (const ArrayId r : read_arrays(e.body))
                if (d_.definition(r)) root[static_cast<std::size_t>(find(e.target))] = find(r);
        std::vector<std::vector<ArrayId>> out;
        std::map<int, std::size_t> index;
        for (const auto& e : d_.equations) {
            const auto [it, fresh] = index.emplace(find(e.target), out.size());
            if (fresh) out.emplace_back();
            out[it->second].push_back(e.target);
        }
        return out;
    }

    /// A longer kernel must be possible, and must not lose the last axis over which groups can be made.
    bool may_join(const std::vector<ArrayId>& current, const std::vector<ArrayId>& longer) {
        const auto after = try_part(with_axis(longer));
        if (!after) return false;
        if (!after->group_axes.empty()) return true;
        const auto before = try_part(with_axis(current));
        return !before || before->group_axes.empty();
    }

    std::optional<Kernel> try_part(const Part& part) {
        Diagram copy = d_;
        std::vector<Refusal> refusals;
        auto analysis = analyse(copy, part.targets, part.axis, form_, nullptr, refusals);
        if (std::holds_alternative<Refusal>(analysis)) return std::nullopt;
        return assemble(copy, std::get<Analysis>(analysis), part.axis, outputs_of(part.targets));
    }

    /// Arrays of the set that memory must hold: results, and what equations outside the set read.
    [[nodiscard]] std::vector<ArrayId> outputs_of(const std::vector<ArrayId>& targets) const {
        const std::set<ArrayId> set(targets.begin(), targets.end());
        std::vector<ArrayId> out;
        for (const ArrayId t : targets) {
            bool needed = d_.array(t).role == ArrayRole::output;
            for (const auto& e : d_.equations) needed = needed || (!set.contains(e.target) && reads_array(e.body, t));
            if (needed) out.push_back(t);
        }
        if (out.empty()) out.push_back(targets.back());
        return out;
    }

    // --- which axis is streamed ---------------------------------------------------------------------------------

    [[nodiscard]] std::vector<AxisId> reduced_axes(const std::vector<ArrayId>& targets) const {
        std::vector<AxisId> axes;
        for (const ArrayId t : targets)
            for (const AxisId a : d_.definition(t)->reduce_axes)
                if (!contains(axes, a)) axes.push_back(a);
        return axes;
    }

    /// True when some index adds the axis to others: neighbouring chunks of it overlap, and are loaded again.
    [[nodiscard]] bool chunks_overlap(const std::vector<ArrayId>& targets, AxisId axis) const {
        bool overlap = false;
        for (const ArrayId t : targets)
            for_each_postorder(d_.definition(t)->body, [&](const Expr& node) {
                if (const auto* read = std::get_if<Read>(&node->v))
                    for (const Index& index : read->indices)
                        overlap |= index.axes().size() > 1 && index.depends_on(axis);
            });
        return overlap;
    }

    /// The axis under most reductions, then the fewest traversals, then one whose chunks do not overlap, then the latest: what it
    /// consumes need not be kept whole.
    Part with_axis(const std::vector<ArrayId>& targets) {
        Part best{targets, std::nullopt};
        const auto axes = reduced_axes(targets);
        for (const AxisId a : demanded_)
            if (contains(axes, a)) return {targets, a};
        std::tuple<int, int, bool> best_score{-1, 0, false};
        for (const AxisId a : axes) {
            int reductions = 0;
            for (const ArrayId t : targets) reductions += contains(d_.definition(t)->reduce_axes, a) ? 1 : 0;
            Diagram copy = d_;
            std::vector<Refusal> refusals;
            const auto analysis = analyse(copy, targets, a, form_, nullptr, refusals);
            if (std::holds_alternative<Refusal>(analysis)) continue;
            const std::tuple score{reductions, -std::get<Analysis>(analysis).num_traversals, !chunks_overlap(targets, a)};
            if (score >= best_score) {
                best_score = score;
                best.axis = a;
            }
        }
        return best;
    }

    // --- building and comparing -----------------------------------------------------------------------------------

    std::optional<Derived> build(const Partition& partition, bool record) {
        Derived out;
        out.source = d_;
        out.diagram = d_;
        std::vector<Analysis> analyses;
        for (const auto& part : partition) {
            auto analysis = analyse(out.diagram, part.targets, part.axis, form_, record ? &out.steps : nullptr,
                                    out.refusals);
            if (std::holds_alternative<Refusal>(analysis)) return std::nullopt;
            analyses.push_back(std::get<Analysis>(std::move(analysis)));
        }
        for (std::size_t i = 0; i < partition.size(); ++i) {
            out.kernels.push_back(assemble(out.diagram, analyses[i], partition[i].axis, outputs_of(partition[i].targets)));
            out.kernels.back().name = d_.array(out.kernels.back().outputs.back()).name;
        }
        return out;
    }

    /// Cuts kernels at reductions, and changes streamed axes, as long as the model says that it pays.
    Partition improved(Partition best) {
        const auto cost_of = [&](const Partition& p) {
            const auto derived = build(p, false);
            return derived ? options_.cost(*derived) : std::numeric_limits<double>::infinity();
        };
        double best_cost = cost_of(best);
        for (int round = 0; round < 4; ++round) {
            Partition next;
            double next_cost = best_cost;
            for (auto& candidate : neighbours(best)) {
                const double cost = cost_of(candidate);
                if (cost < next_cost * 0.98) {
                    next_cost = cost;
                    next = std::move(candidate);
                }
            }
            if (next.empty()) break;
            best = std::move(next);
            best_cost = next_cost;
        }
        return best;
    }

    std::vector<Partition> neighbours(const Partition& partition) {
        std::vector<Partition> out;
        for (std::size_t i = 0; i < partition.size(); ++i) {
            const auto& part = partition[i];
            if (demanded_.empty()) {
                std::vector<std::optional<AxisId>> axes{std::nullopt};  // none: what is reduced lies whole at the core
                for (const AxisId a : reduced_axes(part.targets)) axes.emplace_back(a);
                for (const auto& a : axes)
                    if (part.axis != a && (a || !reduced_axes(part.targets).empty())) {
                        Partition p = partition;
                        p[i].axis = a;
                        out.push_back(std::move(p));
                    }
            }
            for (std::size_t cut = 1; cut < part.targets.size(); ++cut) {
                if (!worth_cutting(part, cut)) continue;
                Partition p = partition;
                const auto middle = part.targets.begin() + static_cast<std::ptrdiff_t>(cut);
                p[i] = with_axis({part.targets.begin(), middle});
                p.insert(p.begin() + static_cast<std::ptrdiff_t>(i) + 1, with_axis({middle, part.targets.end()}));
                out.push_back(std::move(p));
            }
        }
        return out;
    }

    /// Before a reduction: a map alone has no reason to leave the kernel of its operands.
    [[nodiscard]] bool worth_cutting(const Part& part, std::size_t cut) const {
        return d_.definition(part.targets[cut])->reduce.has_value();
    }

    // --- the record ---------------------------------------------------------------------------------------------

    void describe(Derived& derived, const Partition& partition) const {
        for (std::size_t i = 0; i < partition.size(); ++i) {
            const Kernel& k = derived.kernels[i];
            const auto& part = partition[i];
            const auto step = [&](const char* rule, const char* inverse, std::string condition, std::string effect) {
                derived.steps.push_back(
                    {rule, inverse, std::move(condition), std::move(effect), d_.definition(part.targets.back())->range,
                     derived.diagram_without_kernel_arrays(), derived.diagram_without_kernel_arrays()});
            };
            const auto names = [&](const std::vector<ArrayId>& ids) {
                std::vector<std::string> out;
                for (const ArrayId id : ids) out.push_back(d_.array(id).name);
                return fmt::format("{}", fmt::join(out, ", "));
            };
            if (part.targets.size() > 1)
                step("fuse", "split",
                     "Theorem 1: no array between these equations is read at other indices than its own",
                     fmt::format("{} are one kernel", names(part.targets)));
            if (part.axis && !k.folds.empty()) {
                std::vector<std::string> states;
                for (const auto& f : k.folds)
                    for (const auto& s : f.states) states.push_back(derived.diagram.array(s.state).name);
                step("stream partition", "whole axis",
                     "every state has an accumulator: carry ⊕ the chunk's own reduction",
                     fmt::format("{} arrives in chunks of s_{}; kept between chunks: {}", d_.axis(*part.axis).name,
                                 d_.axis(*part.axis).name, fmt::join(states, ", ")));
            }
            for (const AxisId a : k.group_axes)
                if (!contains(k.recompute_axes, a))
                    step("group partition", "whole axis", fmt::format("{} is woven over every result", d_.axis(a).name),
                         fmt::format("{} is cut into tiles of g_{}", d_.axis(a).name, d_.axis(a).name));
        }
    }
};

Diagnostic problem(const char* code, const SourceRange& range, std::string message, std::string expected, std::string hint) {
    Diagnostic d;
    d.code = code;
    d.range = range;
    d.message = std::move(message);
    d.expected = std::move(expected);
    d.hint = std::move(hint);
    return d;
}

std::vector<std::string> axis_names(const Diagram& diagram) {
    std::vector<std::string> out;
    for (const auto& a : diagram.axes) out.push_back(a.name);
    return out;
}

}  // namespace

Diagram Derived::diagram_without_kernel_arrays() const {
    Diagram out = diagram;
    while (!out.arrays.empty() && out.arrays.back().role != ArrayRole::input &&
           !out.definition(static_cast<ArrayId>(out.arrays.size()) - 1))
        out.arrays.pop_back();
    return out;
}

Result<Derived> derive(const Diagram& diagram, const DeriveOptions& options) {
    std::vector<Diagnostic> errors;
    std::vector<AxisId> demanded;
    Form form = options.form;
    const auto demand = [&](const std::string& axis_name, const SourceRange& range) {
        const auto axis = diagram.find_axis(axis_name);
        if (!axis) {
            const std::string near = nearest_name(axis_name, axis_names(diagram));
            errors.push_back(problem("unknown-axis", range, fmt::format("no axis '{}' in {}", axis_name, diagram.name),
                                     "an axis to stream", near.empty() ? "" : fmt::format("did you mean '{}'?", near)));
            return;
        }
        const bool reduced = std::any_of(diagram.equations.begin(), diagram.equations.end(),
                                         [&](const Equation& e) { return contains(e.reduce_axes, *axis); });
        if (!reduced) {
            std::vector<std::string> reducible;
            for (const auto& e : diagram.equations)
                for (const AxisId a : e.reduce_axes)
                    if (const auto& n = diagram.axis(a).name;
                        std::find(reducible.begin(), reducible.end(), n) == reducible.end())
                        reducible.push_back(n);
            errors.push_back(problem("not-streamable", range,
                                     fmt::format("'{}' cannot be streamed: no reduction consumes it", axis_name),
                                     "an axis under a reduction", fmt::format("{}", fmt::join(reducible, ", "))));
            return;
        }
        demanded.push_back(*axis);
    };
    for (const auto& name : options.stream) demand(name, diagram.range);
    for (const auto& item : diagram.schedule) {
        if (item.kind == "stream") demand(item.axis, item.range);
        if (item.kind == "form") {
            if (item.word == "auxiliary") {
                form = Form::auxiliary;
            } else if (item.word != "unscaled") {
                errors.push_back(problem("unknown-form", item.range, fmt::format("no form '{}'", item.word),
                                         "unscaled or auxiliary", ""));
            }
        }
    }
    if (!errors.empty()) return errors;
    Derived derived = Deriver(diagram, options, form, std::move(demanded)).run();
    give_integer_types(derived);
    return derived;
}

}  // namespace napkin
