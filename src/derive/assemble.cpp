#include "derive/assemble.hpp"

#include <map>
#include <set>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "derive/body_sizes.hpp"
#include "derive/carry.hpp"
#include "derive/share.hpp"
#include "derive/support.hpp"
#include "derive/term.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
class Assembler {
public:
    Assembler(Diagram& diagram, const Analysis& analysis, AxisId axis, const std::vector<ArrayId>& outputs)
        : d_(diagram),
          a_(analysis),
          axis_(axis),
          outputs_(outputs.begin(), outputs.end()),
          set_(a_.targets.begin(), a_.targets.end()) {
        for (const ArrayId id : a_.targets) order_.push_back(id);
        for (std::size_t i = 0; i < d_.equations.size(); ++i) at_[d_.equations[i].target] = i;
        find_counts();
        inline_cheap_maps();
    }

    Kernel run() {
        find_needed();
        Kernel kernel;
        for (int traversal = 0; traversal <= last_traversal(); ++traversal) {
            if (traversal > 0) {
                std::vector<Statement> hoisted;
                Loop loop = make_loop(traversal, kernel, hoisted);
                add(kernel, std::move(hoisted));
                if (!loop.body.empty()) kernel.stages.emplace_back(std::move(loop));
            }
            add(kernel, block(traversal));
        }
        kernel.outputs.assign(outputs_.begin(), outputs_.end());
        drop_unread(kernel);
        list_inputs(kernel);
        find_group_axes(kernel);
        return kernel;
    }

private:
    Diagram& d_;
    const Analysis& a_;
    AxisId axis_;
    std::set<ArrayId> outputs_, set_;
    std::vector<ArrayId> order_;
    std::map<ArrayId, Expr> body_;  ///< of every array of the set, cheap maps inlined
    std::map<ArrayId, ArrayId> old_;
    mutable std::map<ArrayId, int> traversals_;  ///< of arrays that are no states, once asked for
    std::map<ArrayId, std::size_t> at_;          ///< of each equation
    std::set<ArrayId> needed_;
    std::set<ArrayId> counts_;  ///< sums of a number: known from where the loop stands, and from sizes in the end
    /// How many points of the streamed axis have arrived with this chunk, and before it; set when the loop in the
    /// making asks for it.
    struct Arrived {
        ArrayId now, before;
    };
    std::optional<Arrived> arrived_;

    [[nodiscard]] bool on_stream(ArrayId id) const { return axis_ >= 0 && contains(d_.array(id).axes, axis_); }
    [[nodiscard]] bool is_state(ArrayId id) const { return a_.states.contains(id) && !counts_.contains(id); }
    [[nodiscard]] const Equation& definition(ArrayId id) const { return d_.equations[at_.at(id)]; }

    /// Maps that are cheap, or used once, are computed where they are used.
    void inline_cheap_maps() {
        std::map<ArrayId, int> uses;
        std::map<ArrayId, std::size_t> places;  // in the text of all bodies
        for (const ArrayId id : order_) {
            for (const ArrayId r : read_arrays(definition(id).body)) ++uses[r];
            for (const auto& [read_array, n] : count_reads(definition(id).body)) places[read_array] += n;
        }
        for (const ArrayId id : order_) {
            body_[id] = transform(definition(id).body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                if (!r || !set_.contains(r->array) || outputs_.contains(r->array) || definition(r->array).reduce)
                    return node;
                // Where a map would be repeated over more axes than its own, it is shared instead of inlined
                // (share.hpp).
                const bool widened = definition(id).reduce || d_.array(id).axes.size() > d_.array(r->array).axes.size();
                const std::size_t nodes = count_nodes(body_[r->array]);
                if (nodes > largest_copied && (places[r->array] > 1 || nodes > largest_body)) return node;
                if (on_stream(r->array) && traversal(r->array) == 0) {
                    if (is_expensive(body_[r->array]) && (uses[r->array] > 1 || widened)) return node;
                    return body_[r->array];
                }
                // What depends on a result of the stream is recomputed from it in the loop that needs it.
                if (on_stream(r->array)) return body_[r->array];
                if (is_expensive(body_[r->array]) && (uses[r->array] > 1 || widened)) return node;
                return traversal(r->array) == traversal(id) && !on_stream(id) && !is_state(id) ? body_[r->array] : node;
            });
        }
    }

    /// How often each array is read in the text of an expression, where what is shared stands as often as it is used.
    /// Saturates.
    static std::map<ArrayId, std::size_t> count_reads(const Expr& e) {
        constexpr std::size_t many = 1000;
        std::vector<const ExprNode*> order;
        for_each_postorder(e, [&](const Expr& node) { order.push_back(node.get()); });
        std::unordered_map<const ExprNode*, std::size_t> times{{e.get(), 1}};
        std::map<ArrayId, std::size_t> out;
        for (auto node = order.rbegin(); node != order.rend(); ++node) {
            const std::size_t n = times[*node];
            if (const auto* r = std::get_if<Read>(&(*node)->v)) out[r->array] = std::min(many, out[r->array] + n);
            for_each_child(**node,
                           [&](const Expr& child) { times[child.get()] = std::min(many, times[child.get()] + n); });
        }
        return out;
    }

    /// After which traversal the array can be computed (states: by which).
    [[nodiscard]] int traversal(ArrayId id) const {
        if (axis_ < 0 || !set_.contains(id)) return 0;
        if (const auto s = a_.states.find(id); s != a_.states.end()) return s->second.traversal;
        if (const auto known = traversals_.find(id); known != traversals_.end()) return known->second;
        int latest = 0;
        for (const ArrayId r : read_arrays(definition(id).body)) latest = std::max(latest, traversal(r));
        return traversals_[id] = latest;
    }
    /// The traversal in which an array on the stream is computed when it must be stored.
    [[nodiscard]] int storing_traversal(ArrayId id) const { return traversal(id) + 1; }

    [[nodiscard]] int last_traversal() const {
        int last = 0;
        for (const ArrayId id : needed_) {
            if (a_.states.contains(id)) last = std::max(last, a_.states.at(id).traversal);
            if (on_stream(id) && outputs_.contains(id)) last = std::max(last, storing_traversal(id));
        }
        return last;
    }

    void find_needed() {
        std::vector<ArrayId> work(outputs_.begin(), outputs_.end());
        while (!work.empty()) {
            const ArrayId id = work.back();
            work.pop_back();
            if (!set_.contains(id) || !needed_.insert(id).second) continue;
            for (const ArrayId r : read_arrays(body_[id])) work.push_back(r);
            if (const auto s = a_.states.find(id); s != a_.states.end()) {
                if (const auto& moment = s->second.correction.moment)
                    for (const auto& [powers, lower] : moment->lower) work.push_back(lower);
                // The running values of what it reads come from the states behind them.
                for (const ArrayId r : read_arrays(definition(id).body)) work.push_back(r);
            }
        }
    }

    static void add(Kernel& kernel, std::vector<Statement> statements) {
        if (statements.empty()) return;
        if (!kernel.stages.empty())
            if (auto* last = std::get_if<Block>(&kernel.stages.back())) {
                for (auto& s : statements) last->statements.push_back(std::move(s));
                return;
            }
        kernel.stages.emplace_back(Block{std::move(statements)});
    }

    Statement statement(ArrayId id) const {
        const Equation& e = definition(id);
        if (counts_.contains(id)) return {id, std::nullopt, {}, counted(e), nullptr, e.range};
        const Expr body = transform(body_.at(id), [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && counts_.contains(r->array) ? counted(definition(r->array)) : node;
        });
        return {id, e.reduce, e.reduce_axes, body, nullptr, e.range};
    }

    /// Arrays that do not lie on the stream and are final after the traversal, in order of definition.
    std::vector<Statement> block(int after) {
        std::vector<Statement> out;
        for (const ArrayId id : order_)
            if (needed_.contains(id) && !on_stream(id) && !is_state(id) && traversal(id) == after)
                out.push_back(statement(id));
        share(d_, out, [](const Expr&) { return false; }, nullptr);
        return out;
    }

    // --- running values -------------------------------------------------------------------------------------------

    /// The value before the step of a state of this traversal.
    ArrayId old_of(ArrayId state) {
        const auto known = old_.find(state);
        if (known != old_.end()) return known->second;
        const Array array = d_.array(state);
        return old_[state] = add_array(d_, array.name + "_old", array.axes, array.type, ArrayRole::temporary);
    }

    /// The expression over final results, at the states' current or old values of this traversal.
    Expr running(const Expr& e, int t, bool old) {
        return transform(e, [&](const Expr& node) -> Expr {
            if (!old)
                if (const Expr known = known_of_points(node)) return known;
            const auto* r = as<Read>(node);
            if (!r || !set_.contains(r->array) || traversal(r->array) != t) return node;
            if (counts_.contains(r->array)) return points_arrived(definition(r->array), old);
            if (is_state(r->array)) return old ? read_self(d_, old_of(r->array)) : node;
            if (on_stream(r->array) || definition(r->array).reduce) return node;
            return running(definition(r->array).body, t, old);
        });
    }

    /// What was accumulated, at the new running values (derived.hpp, FoldState::carry); in old values throughout.
    Expr carry_of(ArrayId id, const StateInfo& info) {
        const int t = info.traversal;
        return carried(
            info.correction, *definition(id).reduce, read_self(d_, old_of(id)),
            [&](const Expr& e, bool old) { return running(e, t, old); },
            [&](ArrayId state) {
                return counts_.contains(state) ? points_arrived(definition(state), true) : read_self(d_, old_of(state));
            });
    }

    /// The body at running values; a kept 1/z is guarded while z is still 0.
    Expr running_body(ArrayId id, int t) {
        const Expr& kept = a_.states.at(id).correction.kept;
        Expr body = body_.at(id);
        if (kept) {
            const auto* b = as<Binary>(kept);
            const Expr safe = binary(BinaryOp::div, b->a, nonzero(b->b));
            body = transform(body, [&](const Expr& node) { return equal(node, kept) ? safe : node; });
        }
        return running(body, t, false);
    }

    // --- counts ---------------------------------------------------------------------------------------------------

    void find_counts() {
        for (const auto& [id, info] : a_.states) {
            const Equation& e = definition(id);
            const bool is_number = read_arrays(e.body).empty() && free_axes(e.body).empty();
            if (e.reduce == ReduceOp::sum && is_number && info.correction == Correction{}) counts_.insert(id);
        }
    }

    /// A count in the end.
    static Expr counted(const Equation& count) {
        Expr total = count.body;
        for (const AxisId a : count.reduce_axes) total = simplify(binary(BinaryOp::mul, total, axis_size(a)));
        return total;
    }

    /// A count while the loop runs: the points of the streamed axis so far, times the other axes' sizes.
    Expr points_arrived(const Equation& count, bool before) {
        if (!arrived_) {
            const std::string& axis = d_.axis(axis_).name;
            const DType type = d_.array(count.target).type;
            const ArrayId now = add_array(d_, axis + "_seen", {}, type, ArrayRole::temporary);
            arrived_ = {now, add_array(d_, axis + "_seen_old", {}, type, ArrayRole::temporary)};
        }
        Expr points = read_self(d_, before ? arrived_->before : arrived_->now);
        for (const AxisId a : count.reduce_axes)
            if (a != axis_) points = binary(BinaryOp::mul, points, axis_size(a));
        return simplify(binary(BinaryOp::mul, points, count.body));
    }

    /// With a chunk at least one point arrives: max(points, 1) is the points, and where(points == 0, a, b) is b. Null:
    /// neither.
    [[nodiscard]] Expr known_of_points(const Expr& e) const {
        const auto arrived = [&](const Expr& points, bool whole) {
            const auto parts = factors(points);
            bool reads = false;
            return all_of(parts,
                          [&](const Part& p) {
                              const auto* r = as<Read>(p.e);
                              const bool now = arrived_ && r && r->array == arrived_->now;
                              reads |= now;
                              return now || (whole ? p.sign > 0 && as<AxisSize>(p.e) : is_positive(p.e));
                          }) &&
                   reads;
        };
        const auto* s = as<Select>(e);
        const auto* b = as<Binary>(s ? s->condition : e);
        const auto* limit = b ? as<Constant>(b->b) : nullptr;
        if (!limit || b->op != (s ? BinaryOp::eq : BinaryOp::max) || limit->value != (s ? 0 : 1)) return nullptr;
        return arrived(b->a, !s) ? (s ? s->b : b->a) : nullptr;
    }

    /// As a state, for the merge of two parts of the stream: neither knows where the other began.
    [[nodiscard]] FoldState count_state() const {
        return {arrived_->now,   ReduceOp::sum, 0, {axis_}, constant(1), read_self(d_, arrived_->before),
                arrived_->before};
    }

    /// In the loop they are the first coordinate of the chunk, and the one past the last.
    [[nodiscard]] Statement count_statement(bool before, const SourceRange& range) const {
        const Expr at = axis_index(axis_);
        if (before) return {arrived_->before, ReduceOp::min, {axis_}, at, nullptr, range};
        return {arrived_->now, ReduceOp::max, {axis_}, binary(BinaryOp::add, at, constant(1)), nullptr, range};
    }

    // --- loops ----------------------------------------------------------------------------------------------------

    Loop make_loop(int t, Kernel& kernel, std::vector<Statement>& hoisted) {
        arrived_.reset();
        Loop loop;
        loop.axis = axis_;
        Fold fold;
        fold.axis = axis_;
        std::optional<std::vector<MaskForm>> support_forms;
        for (const ArrayId id : order_) {
            if (!needed_.contains(id) || !is_state(id) || a_.states.at(id).traversal != t) continue;
            const Equation e = definition(id);
            FoldState s{.state = id, .op = *e.reduce};
            s.init = identity(s.op);
            s.reduce_axes = e.reduce_axes;
            s.body = running_body(id, t);
            s.carry = carry_of(id, a_.states.at(id));
            s.old = old_of(id);
            fold.states.push_back(s);
            loop.init.emplace_back(id, s.init);
            const auto forms = support(expanded(s.body), s.op, [&](const Expr& part) { return values_of(part); });
            support_forms = support_forms ? common(*support_forms, forms) : forms;
        }
        if (arrived_) {
            fold.states.insert(fold.states.begin(), count_state());
            support_forms = std::vector<MaskForm>{};  // points in a chunk that is skipped would not have arrived
        }
        std::vector<Statement> statements;
        emit_states(fold, statements);
        emit_stored(t, statements, support_forms);
        for (MaskForm& form : support_forms.value_or(std::vector<MaskForm>{}))
            if (form.is_affine())
                loop.support.push_back(std::move(form.affine));
            else if (reads_integers_in_place(form))
                loop.masks.push_back(std::move(form));
        insert_chunk_arrays(statements);
        const auto changes = [&, t](ArrayId id) {
            return on_stream(id) || (arrived_ && (id == arrived_->now || id == arrived_->before)) ||
                   (is_state(id) && a_.states.at(id).traversal == t) ||
                   any_of(old_, [&](const auto& o) { return o.second == id; });
        };
        share(
            d_, statements,
            [&](const Expr& e) {
                if (depends_on_axis(e, axis_)) return false;
                for (const ArrayId r : read_arrays(e))
                    if (changes(r)) return false;
                return true;
            },
            &hoisted);
        loop.body = std::move(statements);
        finish(fold, t);
        if (!fold.states.empty()) kernel.folds.push_back(std::move(fold));
        return loop;
    }

    /// What the form reads are whole numbers of the diagram's inputs, at coordinates that axes alone give.
    [[nodiscard]] bool reads_integers_in_place(const MaskForm& form) const {
        const auto is_good = [&](const Expr& e) {
            const auto* r = e ? as<Read>(e) : nullptr;
            return !r || (!is_float(d_.array(r->array).type) && contains(d_.inputs, r->array) &&
                          all_of(r->indices, [](const Index& i) { return i.affine() != nullptr; }));
        };
        return is_good(form.plus) && is_good(form.minus);
    }

    /// The results that are maps of the states alone; what reduces them further belongs to the tail.
    void finish(Fold& fold, int t) const {
        std::set<ArrayId> beyond;
        for (const ArrayId id : order_) {
            if (!needed_.contains(id) || on_stream(id) || is_state(id) || counts_.contains(id) || traversal(id) != t)
                continue;
            const Statement made = statement(id);
            const auto reads = read_arrays(made.body);
            const bool map = !made.reduce && none_of(reads, [&](ArrayId r) { return beyond.contains(r); });
            if (map) {
                fold.finish.emplace_back(id, made.body);
            } else {
                beyond.insert(id);
            }
        }
    }

    /// The kinds of values of an expression in arrays of the definition, states and their old values, which are those
    /// of the states.
    [[nodiscard]] ValueClass values_of(const Expr& e) const {
        return value_class(e, [&](ArrayId id) {
            const auto i = static_cast<std::size_t>(id);
            return i < a_.values.size() ? a_.values[i] : ValueClass::any();
        });
    }

    /// Chunk arrays written out, for what a mask says about them.
    Expr expanded(const Expr& e) const {
        return transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !set_.contains(r->array) || !on_stream(r->array) || definition(r->array).reduce) return node;
            return expanded(body_.at(r->array));
        });
    }

    void emit_states(const Fold& fold, std::vector<Statement>& statements) {
        const SourceRange range = fold.states.empty() ? SourceRange{} : definition(fold.states.back().state).range;
        const auto is_count = [&](const FoldState& s) { return arrived_ && s.state == arrived_->now; };
        // Only old values that another state's carry reads are copied; a carry reads its own array directly.
        for (const auto& s : fold.states) {
            const bool used = any_of(fold.states, [&](const FoldState& other) {
                return other.state != s.state && reads_array(other.carry, s.old);
            });
            if (used)
                statements.push_back(is_count(s)
                                         ? count_statement(true, range)
                                         : Statement{s.old, std::nullopt, {}, read_self(d_, s.state), nullptr, range});
        }
        for (const auto& s : fold.states) {
            if (is_count(s)) {
                statements.push_back(count_statement(false, range));
                continue;
            }
            const Expr own = read_self(d_, s.state);
            const Expr carry = transform(s.carry, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                return r && r->array == s.old ? own : node;
            });
            statements.push_back({s.state, s.op, s.reduce_axes, s.body, carry, definition(s.state).range});
        }
    }

    void emit_stored(int t, std::vector<Statement>& statements, std::optional<std::vector<MaskForm>>& support_forms) {
        for (const ArrayId id : order_) {
            if (!needed_.contains(id) || !on_stream(id) || !outputs_.contains(id) || storing_traversal(id) != t)
                continue;
            statements.push_back(statement(id));
            support_forms = std::vector<MaskForm>{};  // every point of the stream is stored
        }
    }

    /// Arrays on the stream that the statements read are computed in the loop, each before its first use.
    void insert_chunk_arrays(std::vector<Statement>& statements) {
        std::vector<Statement> out;
        std::set<ArrayId> done;
        std::map<ArrayId, ArrayId> again;  // an output stored by an earlier loop is recomputed under another name
        std::set<ArrayId> stored_here;
        for (const auto& s : statements) stored_here.insert(s.target);
        const std::function<void(Statement)> place = [&](Statement s) {
            for (const ArrayId r : read_arrays(s.body)) {
                if (!set_.contains(r) || !on_stream(r) || r == s.target || done.contains(r) || again.contains(r))
                    continue;
                Statement chunk = statement(r);
                if (outputs_.contains(r) && !stored_here.contains(r)) {
                    const Array array = d_.array(r);
                    again[r] = chunk.target = add_array(d_, array.name + "_again", array.axes, array.type,
                                                        ArrayRole::temporary);
                }
                place(chunk);
            }
            s.body = transform(s.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                return r && again.contains(r->array) ? read_self(d_, again.at(r->array)) : node;
            });
            if (!done.insert(s.target).second && !is_state(s.target)) return;
            out.push_back(std::move(s));
        };
        for (auto& s : statements) place(s);
        statements = std::move(out);
    }

    // --- the kernel's interface --------------------------------------------------------------------------------------

    /// Final results whose running values were all that the loops needed.
    void drop_unread(Kernel& kernel) const {
        for (bool changed = true; changed;) {
            std::set<ArrayId> read = outputs_;
            for_each_statement(kernel, [&](const Statement& s) {
                for (const auto* e : {&s.body, &s.carry})
                    if (*e)
                        for (const ArrayId r : read_arrays(*e)) read.insert(r);
            });
            changed = false;
            for (auto& stage : kernel.stages) {
                auto& list = std::holds_alternative<Block>(stage) ? std::get<Block>(stage).statements
                                                                  : std::get<Loop>(stage).body;
                const auto unread = [&](const Statement& s) { return !read.contains(s.target) && !is_state(s.target); };
                const auto end = std::remove_if(list.begin(), list.end(), unread);
                changed = changed || end != list.end();
                list.erase(end, list.end());
            }
        }
        std::erase_if(kernel.stages, [](const Stage& stage) {
            const auto* block = std::get_if<Block>(&stage);
            return block && block->statements.empty();
        });
    }

    void list_inputs(Kernel& kernel) const {
        std::set<ArrayId> computed, inputs;
        for_each_statement(kernel, [&](const Statement& s) { computed.insert(s.target); });
        for_each_statement(kernel, [&](const Statement& s) {
            for (const ArrayId r : read_arrays(s.body))
                if (!computed.contains(r)) inputs.insert(r);
            if (s.carry)
                for (const ArrayId r : read_arrays(s.carry))
                    if (!computed.contains(r)) inputs.insert(r);
        });
        kernel.inputs.assign(inputs.begin(), inputs.end());
    }

    void find_group_axes(Kernel& kernel) const {
        if (kernel.outputs.empty()) return;
        for (const AxisId a : d_.array(kernel.outputs.front()).axes) {
            bool groupable = a != axis_;
            for (const ArrayId o : kernel.outputs) groupable = groupable && contains(d_.array(o).axes, a);
            for_each_statement(kernel, [&](const Statement& s) { groupable = groupable && !contains(s.reduce_axes, a); });
            if (groupable) kernel.group_axes.push_back(a);
        }
        for (const AxisId a : kernel.group_axes)
            if (repeats_work(kernel, a)) kernel.recompute_axes.push_back(a);
    }

    /// Work that does not carry a is repeated for every group of a. It is harmless where a statement that carries a
    /// does at least as much for every one of its points.
    bool repeats_work(const Kernel& kernel, AxisId a) const {
        bool repeats = false;
        const auto points = [&](const Statement& s) {
            std::vector<AxisId> axes = d_.array(s.target).axes;
            append(axes, s.reduce_axes);
            return axes;
        };
        for_each_statement(kernel, [&](const Statement& s) {
            auto axes = points(s);
            if (contains(axes, a) || read_arrays(s.body).empty() || (!s.reduce && !is_expensive(s.body))) return;
            axes.push_back(a);
            bool covered = false;
            for_each_statement(kernel, [&](const Statement& other) {
                const auto wider = points(other);
                covered = covered || all_of(axes, [&](AxisId x) { return contains(wider, x); });
            });
            repeats = repeats || !covered;
        });
        return repeats;
    }
};

}  // namespace

Kernel assemble(Diagram& diagram, const Analysis& analysis, std::optional<AxisId> axis, const std::vector<ArrayId>& outputs) {
    return Assembler(diagram, analysis, axis.value_or(AxisId()), outputs).run();
}

}  // namespace napkin
