#include "tile/expand.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "algebra/expr_walk.hpp"
#include "derive/parts.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
/// Frees each variable whose lifetime begins in the list after its last use. `outer` were alive before the list.
std::vector<TileStatement> with_releases(const TileKernel& kernel, std::vector<TileStatement> statements,
                                         const std::set<VariableId>& outer) {
    std::vector<TileStatement> reversed;
    std::set<VariableId> needed = outer;  // by what stands after the current statement
    for (auto s = statements.rbegin(); s != statements.rend(); ++s) {
        const std::vector<VariableId> uses = used_variables(kernel, *s);
        for (auto v = uses.rbegin(); v != uses.rend(); ++v)
            if (needed.insert(*v).second) reversed.emplace_back(Free{*v});
        // A definition that does not read its own variable begins a lifetime. Nothing before it needs the variable.
        VariableId defined = -1;
        if (const auto* load = std::get_if<Load>(&*s)) defined = load->variable;
        if (const auto* init = std::get_if<Init>(&*s)) defined = init->variable;
        if (const auto* compute = std::get_if<Compute>(&*s)) {
            const auto reads = reads_in_order(compute->body, compute->carry);
            const auto is_own = [&](const Read* r) { return r->variable() == compute->variable; };
            if (none_of(reads, is_own)) defined = compute->variable;
        }
        if (defined >= 0 && !outer.contains(defined)) needed.erase(defined);
        reversed.push_back(std::move(*s));
    }
    return {std::make_move_iterator(reversed.rbegin()), std::make_move_iterator(reversed.rend())};
}

/// State of one kernel's expansion.
class KernelExpansion {
public:
    KernelExpansion(const Derived& derived, const Kernel& kernel) : diagram_(derived.diagram), kernel_(kernel) {
        for (const Array& a : diagram_.arrays) names_.insert(a.name);
        for (const Stage& stage : kernel_.stages) {
            if (const auto* block = std::get_if<Block>(&stage)) {
                for (const Statement& s : block->statements) computed_.insert(s.target);
            } else {
                const Loop& loop = std::get<Loop>(stage);
                for (const auto& [state, value] : loop.init) computed_.insert(state), states_.insert(state);
                for (const Statement& s : loop.body) computed_.insert(s.target);
            }
        }
    }

    TileKernel run() {
        out_.name = kernel_.name;
        out_.group_axes = kernel_.group_axes;
        out_.recompute_axes = kernel_.recompute_axes;
        out_.parts = kernel_.parts;
        std::vector<TileStatement> body;
        for (const Stage& stage : kernel_.stages) {
            if (const auto* block = std::get_if<Block>(&stage))
                for (const Statement& s : block->statements) expand_statement(s, body);
            else
                expand_loop(std::get<Loop>(stage), body);
        }
        out_.body = with_releases(out_, std::move(body), {});
        find_references();
        out_.why_no_merge = find_merges();
        if (!out_.why_no_merge.empty()) out_.merges.clear();
        return std::move(out_);
    }

private:
    void find_references() {
        for (const Fold& fold : kernel_.folds)
            for (const FoldReference& r : fold.references) {
                const std::vector<ArrayId> parts = {r.state, r.old, r.guarded, r.correction};
                if (!all_of(parts, [&](ArrayId id) { return computed_.contains(id); })) continue;
                TileReference& out = out_.references.emplace_back();
                out.state = computed_variable(r.state), out.old = computed_variable(r.old);
                out.guarded = computed_variable(r.guarded), out.correction = computed_variable(r.correction);
                if (read_arrays(r.rate).empty()) out.rate = r.rate;
                for (const ArrayId id : r.followers)
                    if (computed_.contains(id)) out.followers.push_back(computed_variable(id));
            }
    }

    /// Sets the merges of the kernel's stream. Returns why it has none, else an empty text.
    std::string find_merges() {
        if (std::string why = why_not_in_parts(diagram_, kernel_); !why.empty()) return why;
        const Loop* only = nullptr;
        for (const Stage& stage : kernel_.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) {
                if (only)
                    return fmt::format("kernel {} streams {} twice", kernel_.name, diagram_.axis(loop->axis).name);
                only = loop;
            }
        std::map<ArrayId, ArrayId> state_of;  // old id → state
        for (const Fold* fold : folds_of(kernel_, *only))
            for (const FoldState& s : fold->states) {
                if (!states_.contains(s.state))
                    return fmt::format("{} is known from where the stream stands", diagram_.array(s.state).name);
                if (s.old >= 0) state_of[s.old] = s.state;
            }
        for (const Fold* fold : folds_of(kernel_, *only))
            for (const FoldState& s : fold->states) {
                std::string other;
                const auto own = [&](ArrayId array) {
                    const VariableId v = computed_variable(array);
                    return read(in_part(v), out_.variables[v].dims);
                };
                const auto over_parts = [&](const Expr& node) {
                    const auto* r = as<Read>(node);
                    if (!r) return node;
                    if (const auto old = state_of.find(r->array); old != state_of.end()) return own(old->second);
                    if (states_.contains(r->array)) return read(computed_variable(r->array), r->indices);
                    other = diagram_.array(r->array).name;
                    return node;
                };
                out_.merges.push_back(
                    {computed_variable(s.state), s.op, s.carry ? transform(s.carry, over_parts) : own(s.state)});
                if (!other.empty())
                    return fmt::format("{} is merged by what each chunk has of {}", diagram_.array(s.state).name, other);
            }
        if (out_.merges.empty()) return fmt::format("kernel {} has no running result", kernel_.name);
        return "";
    }

    [[nodiscard]] bool is_loaded(const Read& r) const { return !computed_.contains(r.array); }

    VariableId add_variable(ArrayId array, std::vector<Index> dims, std::vector<AxisId> limits) {
        const Array& a = diagram_.array(array);
        std::string name = a.name;
        for (int k = 2; variable_names_.contains(name) || (name != a.name && names_.contains(name)); ++k)
            name = a.name + "_" + std::to_string(k);
        variable_names_.insert(name);
        out_.variables.push_back({name, array, std::move(dims), std::move(limits), {}, a.type, states_.contains(array)});
        return VariableId::of(out_.variables.size() - 1);
    }

    VariableId computed_variable(ArrayId array) {
        const auto [it, added] = computed_variables_.try_emplace(array);
        if (added) {
            auto dims = mapped<Index>(diagram_.array(array).axes, [&](AxisId axis) { return Affine::axis(axis); });
            it->second = add_variable(array, std::move(dims), diagram_.array(array).axes);
        }
        return it->second;
    }

    /// One variable for each index pattern. A pattern read both inside a loop over one of its axes and outside of it
    /// has a tile for each.
    VariableId loaded_variable(const Read& r, AxisId loop_axis) {
        const bool streamed = loop_axis >= 0 && depends_on(r.indices, loop_axis);
        const auto known = find_if(loaded_variables_, [&](const LoadedVariable& v) {
            return v.array == r.array && v.streamed == streamed && v.indices == r.indices;
        });
        if (known != loaded_variables_.end()) return known->variable;
        Box box = box_of(diagram_, r);
        const bool gathers = !box.source.empty();
        std::vector<Index> indices;
        if (gathers)
            for (const Index& index : r.indices) indices.push_back(over_variables(index, loop_axis));
        const VariableId v = add_variable(r.array, std::move(box.dims), std::move(box.limits));
        out_.variables[v].gathers = std::move(indices);
        out_.variables[v].is_zero_outside = contains(kernel_.zero_outside, r.array);
        loaded_variables_.push_back({r.array, streamed, r.indices, v});
        return v;
    }

    /// The variable that stands for a read inside the loop over `loop_axis` (-1: outside of loops).
    VariableId variable_of(const Read& r, AxisId loop_axis) {
        return is_loaded(r) ? loaded_variable(r, loop_axis) : computed_variable(r.array);
    }

    /// Elements that an index reads become those of variables, at the same indices.
    Index over_variables(const Index& index, AxisId loop_axis) {
        return index.expression() ? Index::of(in_index(*index.expression(), loop_axis)) : index;
    }
    Expr in_index(const Expr& e, AxisId loop_axis) {
        if (const auto* r = as<Read>(e)) {
            std::vector<Index> indices;
            for (const Index& index : r->indices) indices.push_back(over_variables(index, loop_axis));
            return read(variable_of(*r, loop_axis), std::move(indices));
        }
        auto parts = mapped<Expr>(children(e), [&](const Expr& child) { return in_index(child, loop_axis); });
        return parts.empty() ? e : with_children(e, std::move(parts));
    }

    /// The expression over variables: every read becomes the element of a tile, at the coordinates of its box.
    Expr over_variables(const Expr& e, AxisId loop_axis) {
        if (!e) return e;
        std::map<const ExprNode*, Expr> done;
        const auto rewrite = [&](const Expr& node) -> Expr {
            if (const auto* r = as<Read>(node)) return read(variable_of(*r, loop_axis), box_of(diagram_, *r).dims);
            auto parts = mapped<Expr>(children(node), [&](const Expr& child) { return done.at(child.get()); });
            return parts.empty() ? node : with_children(node, std::move(parts));
        };
        for_each_postorder(e, [&](const Expr& node) { done[node.get()] = rewrite(node); }, Walk::values);
        return done.at(e.get());
    }

    /// The reads from memory. An index's own reads come before the read at that index.
    std::vector<const Read*> loads_in_order(const Statement& s) const {
        std::vector<const Read*> out;
        const auto add = [&](const auto& self, const Read* r) -> void {
            for (const Index& index : r->indices)
                if (index.expression())
                    visit(*index.expression(), [&](const Expr& e) {
                        if (const auto* inner = as<Read>(e)) self(self, inner);
                    });
            if (is_loaded(*r)) out.push_back(r);
        };
        for (const Read* r : reads_in_order(s.body, s.carry)) add(add, r);
        return out;
    }

    Compute compute(const Statement& s, AxisId loop_axis) {
        Expr body = over_variables(s.body, loop_axis), carry = over_variables(s.carry, loop_axis);
        return {computed_variable(s.target), s.reduce, s.reduce_axes, std::move(body), std::move(carry)};
    }

    /// Loads what the statement reads once per group, unless this group has loaded it already.
    void load_once(const Statement& s, AxisId loop_axis, std::vector<TileStatement>& body) {
        for (const Read* r : loads_in_order(s)) {
            if (loop_axis >= 0 && depends_on(r->indices, loop_axis)) continue;
            const VariableId v = loaded_variable(*r, loop_axis);
            if (loaded_once_.insert(v).second) body.push_back(Load{v});
        }
    }

    void store_if_output(ArrayId array, std::vector<TileStatement>& body) {
        if (contains(kernel_.outputs, array)) body.push_back(Store{computed_variable(array)});
    }

    void expand_statement(const Statement& s, std::vector<TileStatement>& body) {
        load_once(s, -1, body);
        body.push_back(compute(s, -1));
        store_if_output(s.target, body);
    }

    void expand_loop(const Loop& loop, std::vector<TileStatement>& body) {
        for (const Statement& s : loop.body) load_once(s, loop.axis, body);
        std::set<VariableId> states;
        for (const auto& [state, value] : loop.init) {
            states.insert(computed_variable(state));
            body.push_back(Init{computed_variable(state), value});
        }

        TileLoop out{.axis = loop.axis, .support = loop.support, .masks = loop.masks};
        std::set<VariableId> loaded;
        for (const Statement& s : loop.body) {
            for (const Read* r : loads_in_order(s)) {
                if (!depends_on(r->indices, loop.axis)) continue;
                const VariableId v = loaded_variable(*r, loop.axis);
                if (loaded.insert(v).second) out.body.push_back(Load{v});
            }
            out.body.push_back(compute(s, loop.axis));
            const VariableId target = computed_variable(s.target);
            if (!states.contains(target) && contains(diagram_.array(s.target).axes, loop.axis))
                store_if_output(s.target, out.body);
        }
        const std::set<VariableId> outer = alive_before(out.body, states);  // before the body is moved from
        out.body = with_releases(out_, std::move(out.body), outer);
        body.push_back(std::make_shared<const TileLoop>(std::move(out)));

        for (const auto& [state, value] : loop.init) store_if_output(state, body);
    }

    /// What a loop body uses but does not define: the states, and whatever is used before the body defines it.
    std::set<VariableId> alive_before(const std::vector<TileStatement>& body, const std::set<VariableId>& states) const {
        std::set<VariableId> outer = states, seen = states;
        for (const TileStatement& s : body) {
            VariableId defined = -1;
            bool reads_itself = false;
            if (const auto* load = std::get_if<Load>(&s)) defined = load->variable;
            if (const auto* compute = std::get_if<Compute>(&s)) {
                defined = compute->variable;
                for (const Read* r : reads_in_order(compute->body, compute->carry))
                    reads_itself |= r->variable() == defined;
            }
            for (const VariableId v : used_variables(out_, s))
                if ((v != defined || reads_itself) && seen.insert(v).second) outer.insert(v);
            seen.insert(defined);
        }
        return outer;
    }

    struct LoadedVariable {
        ArrayId array;
        bool streamed;
        std::vector<Index> indices;
        VariableId variable;
    };

    const Diagram& diagram_;
    const Kernel& kernel_;
    std::set<std::string> names_, variable_names_;
    std::set<ArrayId> computed_, states_;  ///< arrays that the kernel defines; those of them that loops initialise
    std::map<ArrayId, VariableId> computed_variables_;
    std::vector<LoadedVariable> loaded_variables_;
    std::set<VariableId> loaded_once_;
    TileKernel out_;
};

}  // namespace

TileKernel expand(const Derived& derived, const Kernel& kernel) { return KernelExpansion(derived, kernel).run(); }

TileProgram expand(const Derived& derived) {
    TileProgram program{derived.diagram, {}};
    for (const Kernel& kernel : derived.kernels) program.kernels.push_back(expand(derived, kernel));
    return program;
}

}  // namespace napkin
