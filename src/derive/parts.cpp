#include "derive/parts.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "algebra/expr_walk.hpp"
#include "derive/share.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

bool initialises(const Loop& loop, ArrayId state) {
    return any_of(loop.init, [&](const auto& known) { return known.first == state; });
}

/// All that the kernel computes.
std::vector<ArrayId> targets_of(const Kernel& kernel) {
    std::vector<ArrayId> out;
    for (const Stage& stage : kernel.stages) {
        const auto* loop = std::get_if<Loop>(&stage);
        for (const Statement& s : loop ? loop->body : std::get<Block>(stage).statements) out.push_back(s.target);
    }
    return out;
}

/// Makes the kernels that stand in one kernel's place.
class Parting {
public:
    Parting(Diagram& diagram, const Kernel& kernel, AxisId axis, std::int64_t parts)
        : d_(diagram),
          k_(kernel),
          axis_(axis),
          part_(add_axis_of_parts("_part", parts)),
          merged_(add_axis_of_parts("_parts", parts)) {}

    std::vector<Kernel> run() {
        std::vector<Kernel> kernels;
        // From the last one back: each says which states of earlier loops it merges.
        std::vector<ArrayId> outputs;
        for (const ArrayId id : k_.outputs)
            if (!contains(d_.array(id).axes, axis_)) outputs.push_back(id);
        if (!outputs.empty()) kernels.push_back(kernel_of(k_.stages.size(), outputs));
        for (std::size_t s = k_.stages.size(); s-- > 0;)
            if (const auto* loop = std::get_if<Loop>(&k_.stages[s])) {
                std::vector<ArrayId> stored;
                for (const ArrayId id : k_.outputs)
                    if (any_of(loop->body, [&](const auto& b) { return b.target == id; }) &&
                        contains(d_.array(id).axes, axis_))
                        stored.push_back(id);
                if (!stored.empty() || !kept_[s].empty()) kernels.push_back(kernel_of(s, stored));
            }
        reverse(kernels);
        for (std::size_t i = 0; i + 1 < kernels.size(); ++i)
            kernels[i].name += kernels.size() == 2 ? "_part" : fmt::format("_part{}", i + 1);
        kernels.back().equations = k_.equations;
        return kernels;
    }

private:
    AxisId add_axis_of_parts(const std::string& suffix, std::int64_t size) {
        return add_axis(d_, d_.axis(axis_).name + suffix, size, axis_);
    }

    /// The state of every part in memory. It has the grouped axes that the state lacks too: every group stores its own.
    ArrayId in_parts(std::size_t stage, ArrayId state) {
        const auto [found, added] = parts_of_.try_emplace({stage, state});
        if (!added) return found->second;
        const Array array = d_.array(state);
        std::vector<AxisId> axes{part_};
        for (const AxisId a : k_.group_axes)
            if (!contains(k_.recompute_axes, a) && !contains(array.axes, a)) axes.push_back(a);
        append(axes, array.axes);
        // What is accumulated keeps its precision on the way through memory: the kernel computes all of it in double
        // where anything is.
        const auto any_double = [&](const std::vector<ArrayId>& arrays) {
            return any_of(arrays, [&](ArrayId id) { return d_.array(id).type == DType::f64; });
        };
        const bool is_double = any_double(k_.inputs) || any_double(k_.outputs) || any_double(targets_of(k_)) ||
                               array.type == DType::f64;
        const DType type = !is_float(array.type) ? array.type : is_double ? DType::f64 : DType::f32;
        return found->second = add_array(d_, array.name + "_part", axes, type, ArrayRole::temporary);
    }

    /// The state of the part that the merge is at. Along the grouped axes that the state lacks all values are the same.
    Expr read_part(std::size_t stage, ArrayId state) {
        const ArrayId id = in_parts(stage, state);
        std::vector<Index> indices;
        for (const AxisId a : d_.array(id).axes)
            indices.push_back(a == part_                          ? Index(Affine::axis(merged_))
                              : contains(d_.array(state).axes, a) ? Index(Affine::axis(a))
                                                                  : Index(Affine{}));
        return read(id, std::move(indices));
    }

    static void add_reads(const Statement& s, std::set<ArrayId>& needed) {
        for (const Expr& e : {s.body, s.carry})
            if (e)
                for (const ArrayId r : read_arrays(e)) needed.insert(r);
    }

    /// What the loop computes of the states that are needed, from those of its parts.
    std::vector<Statement> merge(std::size_t stage, const Loop& loop, std::set<ArrayId>& needed) {
        std::map<ArrayId, ArrayId> state_of;  // old id → state
        std::vector<const FoldState*> states;
        for (const Fold* fold : folds_of(k_, loop))
            for (const FoldState& s : fold->states) {
                if (s.old >= 0) state_of[s.old] = s.state;
                states.push_back(&s);
            }
        std::vector<Statement> out;
        for (auto s = states.rbegin(); s != states.rend(); ++s) {
            const FoldState& state = **s;
            if (!needed.contains(state.state)) continue;
            const Expr body = !state.carry ? read_part(stage, state.state) : transform(state.carry, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                const auto old = r ? state_of.find(r->array) : state_of.end();
                if (old == state_of.end()) return node;
                kept_[stage].insert(old->second);
                return read_part(stage, old->second);
            });
            if (!state.carry) kept_[stage].insert(state.state);
            Statement merged{state.state, state.op, {merged_}, body, nullptr, d_.array(state.state).range};
            add_reads(merged, needed);
            out.push_back(std::move(merged));
        }
        reverse(out);
        share(d_, out, [](const Expr&) { return false; }, nullptr);
        return out;
    }

    /// The merge as a loop over the parts, of which there may be any number.
    Loop merging_loop(std::size_t stage, const Loop& loop, std::set<ArrayId>& needed) {
        Loop out;
        out.axis = merged_;
        const std::vector<Statement> merged = merge(stage, loop, needed);
        const auto is_merged = [&](ArrayId state) {
            return any_of(merged, [&](const Statement& s) { return s.target == state; });
        };
        std::map<ArrayId, Expr> carries;  // by state
        for (const Fold* fold : folds_of(k_, loop))
            for (const FoldState& s : fold->states) {
                if (!is_merged(s.state)) continue;
                const Expr own = read_self(d_, s.state);
                out.init.emplace_back(s.state, s.init);
                carries[s.state] = !s.carry ? own : transform(s.carry, [&](const Expr& node) {
                    const auto* r = as<Read>(node);
                    return r && r->array == s.old ? own : node;
                });
            }
        for (const Fold* fold : folds_of(k_, loop))
            for (const FoldState& s : fold->states)
                if (is_merged(s.state) &&
                    any_of(carries, [&](const auto& carry) { return reads_array(carry.second, s.old); }))
                    out.body.push_back({s.old, std::nullopt, {}, read_self(d_, s.state), nullptr, d_.array(s.state).range});
        for (Statement s : merged) {
            if (const auto carry = carries.find(s.target); carry != carries.end()) s.carry = carry->second;
            add_reads(s, needed);
            out.body.push_back(std::move(s));
        }
        return out;
    }

    /// The loop for one part of the stream. What its states hold that a loop over all of it knows from where it stands
    /// is accumulated.
    [[nodiscard]] Loop loop_of_part(const Loop& loop) const {
        Loop out = loop;
        for (const Fold* fold : folds_of(k_, loop))
            for (const FoldState& s : fold->states) {
                if (initialises(loop, s.state)) continue;
                const Expr own = read_self(d_, s.state);
                out.init.emplace_back(s.state, s.init);
                for (Statement& statement : out.body) {
                    if (statement.target == s.state)
                        statement = {s.state, s.op, s.reduce_axes, s.body, own, statement.range};
                    if (statement.target == s.old) statement = {s.old, std::nullopt, {}, own, nullptr, statement.range};
                }
            }
        return out;
    }

    /// Everything that `outputs` need of the stages before `last`, which is a loop over one part or past the end. The
    /// states that are kept of that loop are among its outputs.
    Kernel kernel_of(std::size_t last, std::vector<ArrayId> outputs) {
        std::set<ArrayId> needed(outputs.begin(), outputs.end());
        std::vector<Stage> stages;  // last one first
        if (last < k_.stages.size()) {
            const Loop& loop = std::get<Loop>(k_.stages[last]);
            Block copies;
            for (const ArrayId state : kept_[last]) {
                const ArrayId part = in_parts(last, state);
                copies.statements.push_back({part, std::nullopt, {}, read_self(d_, state), nullptr, d_.array(state).range});
                outputs.push_back(part);
            }
            if (!copies.statements.empty()) stages.emplace_back(std::move(copies));
            stages.emplace_back(loop_of_part(loop));
            for (const Statement& s : std::get<Loop>(stages.back()).body) add_reads(s, needed);
        }
        for (std::size_t i = last; i-- > 0;) {
            Block block;
            const auto* loop = std::get_if<Loop>(&k_.stages[i]);
            if (loop && d_.axis(axis_).is_any && last == k_.stages.size()) {
                if (Loop merging = merging_loop(i, *loop, needed); !merging.body.empty())
                    stages.emplace_back(std::move(merging));
                continue;
            }
            if (loop) {
                block.statements = merge(i, *loop, needed);
            } else {
                const auto& statements = std::get<Block>(k_.stages[i]).statements;
                for (auto s = statements.rbegin(); s != statements.rend(); ++s) {
                    if (!needed.contains(s->target)) continue;
                    add_reads(*s, needed);
                    block.statements.push_back(*s);
                }
                reverse(block.statements);
            }
            if (!block.statements.empty()) stages.emplace_back(std::move(block));
        }
        reverse(stages);
        return with_interface(std::move(stages), std::move(outputs), last < k_.stages.size());
    }

    [[nodiscard]] Kernel with_interface(std::vector<Stage> stages, std::vector<ArrayId> outputs, bool is_part) const {
        Kernel out;
        out.name = k_.name;
        out.outputs = std::move(outputs);
        if (is_part) out.parts = {axis_, part_};
        std::set<ArrayId> computed, inputs;
        std::set<AxisId> reduced;
        const auto for_each = [&](const auto& f) {
            for (const Stage& stage : stages)
                for (const Statement& s : std::holds_alternative<Block>(stage) ? std::get<Block>(stage).statements
                                                                               : std::get<Loop>(stage).body)
                    f(s);
        };
        for_each([&](const Statement& s) {
            computed.insert(s.target);
            reduced.insert(s.reduce_axes.begin(), s.reduce_axes.end());
        });
        for_each([&](const Statement& s) { add_reads(s, inputs); });
        for (const ArrayId id : inputs)
            if (!computed.contains(id)) out.inputs.push_back(id);
        if (is_part) out.group_axes.push_back(part_);
        for (const AxisId a : k_.group_axes) {
            const bool carried = all_of(out.outputs, [&](ArrayId id) { return contains(d_.array(id).axes, a); });
            if (!carried || reduced.contains(a)) continue;
            out.group_axes.push_back(a);
            if (contains(k_.recompute_axes, a)) out.recompute_axes.push_back(a);
        }
        out.stages = std::move(stages);
        return out;
    }

    Diagram& d_;
    const Kernel& k_;
    AxisId axis_, part_, merged_;
    std::map<std::pair<std::size_t, ArrayId>, ArrayId> parts_of_;  ///< by loop and state
    std::map<std::size_t, std::set<ArrayId>> kept_;                ///< by loop: states that a later kernel merges
};

/// Why the kernel's stream cannot be cut; empty where it can. Sets the axis.
std::string obstacle(const Diagram& diagram, const Kernel& kernel, AxisId& axis) {
    std::set<ArrayId> looped;  // what is computed in loops, and is no state
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) {
            if (axis >= 0 && axis != loop->axis)
                return fmt::format("kernel {} streams {} and {}", kernel.name, diagram.axis(axis).name,
                                   diagram.axis(loop->axis).name);
            axis = loop->axis;
        }
    if (kernel.parts.any())
        return fmt::format("kernel {} runs one part of {} already", kernel.name, diagram.axis(axis).name);
    if (axis < 0) return fmt::format("kernel {} streams no axis", kernel.name);
    const std::string& x = diagram.axis(axis).name;
    for (const Stage& stage : kernel.stages) {
        if (const auto* block = std::get_if<Block>(&stage)) {
            for (const Statement& s : block->statements) {
                std::vector<AxisId> axes = diagram.array(s.target).axes;
                append(axes, s.reduce_axes);
                if (contains(axes, axis))
                    return fmt::format("{} runs over all of {} at once", diagram.array(s.target).name, x);
                for (const ArrayId r : read_arrays(s.body))
                    if (looped.contains(r))
                        return fmt::format("{} reads {}, which is no state of the stream", diagram.array(s.target).name,
                                           diagram.array(r).name);
            }
            continue;
        }
        const Loop& loop = std::get<Loop>(stage);
        const std::vector<const Fold*> folds = folds_of(kernel, loop);
        if (!loop.init.empty() && folds.empty())
            return fmt::format("the running {} has no merge", diagram.array(loop.init.front().first).name);
        std::set<ArrayId> states;
        for (const Fold* fold : folds)
            for (const FoldState& s : fold->states) states.insert(s.state);
        for (const Statement& s : loop.body) {
            if (!states.contains(s.target)) looped.insert(s.target);
            // What is stored of a chunk is final, and knows no running value.
            if (!contains(kernel.outputs, s.target) || !contains(diagram.array(s.target).axes, axis)) continue;
            for (const ArrayId r : read_arrays(s.body))
                if (states.contains(r))
                    return fmt::format("{} is stored from the running {}", diagram.array(s.target).name,
                                       diagram.array(r).name);
        }
    }
    return "";
}

}  // namespace

Stretch stretch_of_parts(std::int64_t first, std::int64_t last, std::int64_t parts, std::int64_t extent, std::int64_t chunk) {
    const std::int64_t chunks = ceil_div(extent, chunk);
    const auto begin = [&](std::int64_t part) { return std::min(extent, part * chunks / parts * chunk); };
    return {begin(first), begin(last)};
}

std::vector<const Fold*> folds_of(const Kernel& kernel, const Loop& loop) {
    std::set<ArrayId> open;
    for (const auto& [state, value] : loop.init) open.insert(state);
    std::vector<const Fold*> folds;
    for (const Fold& fold : kernel.folds) {
        const auto runs = [&](const FoldState& s) {
            return open.contains(s.state) || any_of(loop.body, [&](const Statement& statement) {
                       return statement.target == s.state && !statement.carry;
                   });
        };
        if (fold.axis != loop.axis || !all_of(fold.states, runs)) continue;
        for (const FoldState& s : fold.states) open.erase(s.state);
        folds.push_back(&fold);
    }
    return open.empty() ? folds : std::vector<const Fold*>{};
}

std::string why_not_in_parts(const Diagram& diagram, const Kernel& kernel) {
    AxisId axis = -1;
    return obstacle(diagram, kernel, axis);
}

Parted with_parts(const Derived& derived, std::size_t kernel, std::int64_t parts) {
    internal_check(parts >= 2, "parts: a stream is cut into two at least");
    Parted out;
    out.refusal = obstacle(derived.diagram, derived.kernels[kernel], out.axis);
    if (!out.refusal.empty()) return out;
    out.form = derived;
    const Kernel whole = derived.kernels[kernel];
    std::vector<Kernel> made = Parting(out.form->diagram, whole, out.axis, parts).run();
    out.num_kernels = made.size();
    const auto place = out.form->kernels.begin() + static_cast<std::ptrdiff_t>(kernel);
    out.form->kernels.insert(out.form->kernels.erase(place), std::make_move_iterator(made.begin()),
                             std::make_move_iterator(made.end()));
    return out;
}

Extents with_part_extents(const Derived& form, Extents extents) {
    while (extents.size() < form.diagram.axes.size()) {
        const auto& size = form.diagram.axes[extents.next()].size;
        const auto parts = size ? size->as_constant() : std::nullopt;
        internal_check(parts.has_value(), "parts: an axis was added that numbers no parts");
        extents.push_back(parts->numerator());
    }
    return extents;
}

}  // namespace napkin
