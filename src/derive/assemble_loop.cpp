#include "derive/assemble_loop.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "derive/carry.hpp"
#include "derive/share.hpp"
#include "derive/support.hpp"
#include "derive/term.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// What the form reads are whole numbers that the kernel does not compute, at coordinates that axes alone give.
bool reads_integers_in_place(const Diagram& diagram, const std::vector<ArrayId>& computed, const MaskForm& form) {
    const auto is_good = [&](const Expr& e) {
        const auto* r = e ? as<Read>(e) : nullptr;
        return !r || (!is_float(diagram.array(r->array).type) && !contains(computed, r->array) &&
                      all_of(r->indices, [](const Index& i) { return i.affine() != nullptr; }));
    };
    return is_good(form.plus) && is_good(form.minus);
}

/// What stands for the counts of a kernel while its loop runs: how many points of the streamed axis have arrived.
class ArrivedPoints {
public:
    explicit ArrivedPoints(const Assembly& assembly) : k_(assembly) {}

    /// Whether the loop in the making asks for it.
    explicit operator bool() const { return arrays_.has_value(); }
    [[nodiscard]] bool is_one(ArrayId id) const { return arrays_ && (id == arrays_->now || id == arrays_->before); }
    [[nodiscard]] bool is_state(ArrayId id) const { return arrays_ && id == arrays_->now; }

    /// A count while the loop runs: the points of the streamed axis so far, times the other axes' sizes.
    Expr points(const Equation& count, bool before) {
        if (!arrays_) {
            const std::string& axis = k_.diagram.axis(k_.axis).name;
            const DType type = k_.diagram.array(count.target).type;
            const ArrayId now = add_array(k_.diagram, axis + "_seen", {}, type, ArrayRole::temporary);
            arrays_ = {now, add_array(k_.diagram, axis + "_seen_old", {}, type, ArrayRole::temporary)};
        }
        Expr points = read_self(k_.diagram, before ? arrays_->before : arrays_->now);
        for (const AxisId a : count.reduce_axes)
            if (a != k_.axis) points = binary(BinaryOp::mul, points, axis_size(a));
        return simplify(binary(BinaryOp::mul, points, count.body));
    }

    /// With a chunk at least one point arrives: max(points, 1) is the points, and where(points == 0, a, b) is b. Null:
    /// neither.
    [[nodiscard]] Expr known(const Expr& e) const {
        const auto arrived = [&](const Expr& points, bool whole) {
            const auto parts = factors(points);
            bool reads = false;
            return all_of(parts,
                          [&](const Part& p) {
                              const auto* r = as<Read>(p.e);
                              const bool now = arrays_ && r && r->array == arrays_->now;
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
    [[nodiscard]] FoldState state() const {
        return {arrays_->now,   ReduceOp::sum, 0, {k_.axis}, constant(1), read_self(k_.diagram, arrays_->before),
                arrays_->before};
    }

    /// In the loop they are the first coordinate of the chunk, and the one past the last.
    [[nodiscard]] Statement statement(bool before, const SourceRange& range) const {
        const Expr at = axis_index(k_.axis);
        if (before) return {arrays_->before, ReduceOp::min, {k_.axis}, at, nullptr, range};
        return {arrays_->now, ReduceOp::max, {k_.axis}, binary(BinaryOp::add, at, constant(1)), nullptr, range};
    }

private:
    /// With this chunk, and before it.
    struct Arrays {
        ArrayId now, before;
    };
    const Assembly& k_;
    std::optional<Arrays> arrays_;
};

class LoopMaker {
public:
    explicit LoopMaker(Assembly& assembly) : k_(assembly), arrived_(assembly) {}

    Loop make(int t, Kernel& kernel, std::vector<Statement>& hoisted) {
        Loop loop;
        loop.axis = k_.axis;
        Fold fold;
        fold.axis = k_.axis;
        std::optional<std::vector<MaskForm>> support_forms;
        for (const ArrayId id : k_.order) {
            if (!k_.needed.contains(id) || !k_.is_state(id) || k_.analysis.states.at(id).traversal != t) continue;
            const Equation e = k_.definition(id);
            FoldState s{.state = id, .op = *e.reduce};
            s.init = identity(s.op);
            s.reduce_axes = e.reduce_axes;
            s.body = running_body(id, t);
            s.carry = carry_of(id, k_.analysis.states.at(id));
            s.old = old_of(id);
            fold.states.push_back(s);
            loop.init.emplace_back(id, s.init);
            const auto forms = support(expanded(s.body), s.op, [&](const Expr& part) { return values_of(part); });
            support_forms = support_forms ? common(*support_forms, forms) : forms;
        }
        if (arrived_) {
            fold.states.insert(fold.states.begin(), arrived_.state());
            support_forms = std::vector<MaskForm>{};  // points in a chunk that is skipped would not have arrived
        }
        std::vector<Statement> statements;
        emit_states(fold, statements);
        emit_stored(t, statements, support_forms);
        for (MaskForm& form : support_forms.value_or(std::vector<MaskForm>{}))
            if (form.is_affine())
                loop.support.push_back(std::move(form.affine));
            else if (reads_integers_in_place(k_.diagram, k_.order, form))
                loop.masks.push_back(std::move(form));
        insert_chunk_arrays(statements);
        std::vector<ReferenceParts> references = references_of(fold, t);
        std::vector<Expr*> facts;
        for (ReferenceParts& parts : references) facts.insert(facts.end(), {&parts.guarded, &parts.correction});
        const auto changes = [&, t](ArrayId id) {
            return k_.on_stream(id) || arrived_.is_one(id) ||
                   (k_.is_state(id) && k_.analysis.states.at(id).traversal == t) ||
                   any_of(k_.old, [&](const auto& o) { return o.second == id; });
        };
        share(
            k_.diagram, statements,
            [&](const Expr& e) {
                if (depends_on_axis(e, k_.axis)) return false;
                for (const ArrayId r : read_arrays(e))
                    if (changes(r)) return false;
                return true;
            },
            &hoisted, facts);
        loop.body = std::move(statements);
        keep_facts(std::move(references), loop, fold);
        finish(fold, t);
        if (!fold.states.empty()) kernel.folds.push_back(std::move(fold));
        return loop;
    }

private:
    /// The value before the step of a state of this traversal.
    ArrayId old_of(ArrayId state) {
        const auto known = k_.old.find(state);
        if (known != k_.old.end()) return known->second;
        const Array array = k_.diagram.array(state);
        return k_.old[state] = add_array(k_.diagram, array.name + "_old", array.axes, array.type, ArrayRole::temporary);
    }

    /// The expression over final results, at the states' current or old values of this traversal.
    Expr running(const Expr& e, int t, bool old) {
        return transform(e, [&](const Expr& node) -> Expr {
            if (!old)
                if (const Expr simpler = arrived_.known(node)) return simpler;
            const auto* r = as<Read>(node);
            if (!r || !k_.set.contains(r->array) || k_.traversal(r->array) != t) return node;
            if (k_.counts.contains(r->array)) return arrived_.points(k_.definition(r->array), old);
            if (k_.is_state(r->array)) return old ? read_self(k_.diagram, old_of(r->array)) : node;
            if (k_.on_stream(r->array) || k_.definition(r->array).reduce) return node;
            return running(k_.definition(r->array).body, t, old);
        });
    }

    /// What was accumulated, at the new running values (derived.hpp, FoldState::carry); in old values throughout.
    Expr carry_of(ArrayId id, const StateInfo& info) {
        const int t = info.traversal;
        return carried(
            info.correction, *k_.definition(id).reduce, read_self(k_.diagram, old_of(id)),
            [&](const Expr& e, bool old) { return running(e, t, old); },
            [&](ArrayId state) {
                return k_.counts.contains(state) ? arrived_.points(k_.definition(state), true)
                                                 : read_self(k_.diagram, old_of(state));
            });
    }

    /// A reference while its loop is made: its parts are expressions still.
    struct ReferenceParts {
        FoldReference fact;
        Expr guarded, correction;
    };

    /// The references that are states of the fold themselves.
    std::vector<ReferenceParts> references_of(const Fold& fold, int t) {
        std::vector<ReferenceParts> out;
        const auto at = [&](const Expr& e, bool old) { return running(e, t, old); };
        for (const FoldState& follower : fold.states) {
            if (!k_.is_state(follower.state)) continue;  // a count
            const Correction& correction = k_.analysis.states.at(follower.state).correction;
            if (correction.references.size() != 1) continue;
            const Reference& reference = correction.references[0];
            const Expr value = at(reference.value, false);
            const auto* state = as<Read>(value);
            if (!state || !any_of(fold.states, [&](const FoldState& s) { return s.state == state->array; })) continue;
            const Expr factor = correction_of(reference, at);
            auto found = find_if(out, [&](const ReferenceParts& r) {
                return r.fact.state == state->array && equal(r.correction, factor);
            });
            if (found == out.end()) {
                Expr rate = or_one(reference.scale);
                if (reference.base) rate = binary(BinaryOp::mul, rate, unary(UnaryOp::log, reference.base));
                if (!reference.is_max) rate = unary(UnaryOp::neg, rate);
                out.push_back(
                    {{state->array, old_of(state->array), -1, -1, simplify(rate)}, at(reference.guarded, false), factor});
                found = out.end() - 1;
            }
            if (correction.selections.empty() && !correction.moment && !correction.kept)
                found->fact.followers.push_back(follower.state);
        }
        return out;
    }

    /// Keeps the references of which the loop has every part in an array of its own.
    static void keep_facts(std::vector<ReferenceParts> references, const Loop& loop, Fold& fold) {
        const auto is_computed = [&](ArrayId id) {
            return any_of(loop.body, [&](const Statement& s) { return s.target == id; });
        };
        for (auto& [fact, guarded, correction] : references) {
            const auto *g = as<Read>(guarded), *c = as<Read>(correction);
            if (!g || !c) continue;
            fact.guarded = g->array, fact.correction = c->array;
            if (is_computed(fact.old) && is_computed(fact.guarded) && is_computed(fact.correction))
                fold.references.push_back(std::move(fact));
        }
    }

    /// The body at running values; a kept 1/z is guarded while z is still 0.
    Expr running_body(ArrayId id, int t) {
        const Expr& kept = k_.analysis.states.at(id).correction.kept;
        Expr body = k_.body.at(id);
        if (kept) {
            const auto* b = as<Binary>(kept);
            const Expr safe = binary(BinaryOp::div, b->a, nonzero(b->b));
            body = transform(body, [&](const Expr& node) { return equal(node, kept) ? safe : node; });
        }
        return running(body, t, false);
    }

    /// The results that are maps of the states alone; what reduces them further belongs to the tail.
    void finish(Fold& fold, int t) const {
        std::set<ArrayId> beyond;
        for (const ArrayId id : k_.order) {
            if (!k_.needed.contains(id) || k_.on_stream(id) || k_.is_state(id) || k_.counts.contains(id) ||
                k_.traversal(id) != t)
                continue;
            const Statement made = k_.statement(id);
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
            return i < k_.analysis.values.size() ? k_.analysis.values[i] : ValueClass::any();
        });
    }

    /// Chunk arrays written out, for what a mask says about them.
    Expr expanded(const Expr& e) const {
        return transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !k_.set.contains(r->array) || !k_.on_stream(r->array) || k_.definition(r->array).reduce)
                return node;
            return expanded(k_.body.at(r->array));
        });
    }

    void emit_states(const Fold& fold, std::vector<Statement>& statements) {
        const SourceRange range = fold.states.empty() ? SourceRange{} : k_.definition(fold.states.back().state).range;
        const auto is_count = [&](const FoldState& s) { return arrived_.is_state(s.state); };
        // Only old values that another state's carry reads are copied; a carry reads its own array directly.
        for (const auto& s : fold.states) {
            const bool used = any_of(fold.states, [&](const FoldState& other) {
                return other.state != s.state && reads_array(other.carry, s.old);
            });
            if (used)
                statements.push_back(
                    is_count(s) ? arrived_.statement(true, range)
                                : Statement{s.old, std::nullopt, {}, read_self(k_.diagram, s.state), nullptr, range});
        }
        for (const auto& s : fold.states) {
            if (is_count(s)) {
                statements.push_back(arrived_.statement(false, range));
                continue;
            }
            const Expr own = read_self(k_.diagram, s.state);
            const Expr carry = transform(s.carry, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                return r && r->array == s.old ? own : node;
            });
            statements.push_back({s.state, s.op, s.reduce_axes, s.body, carry, k_.definition(s.state).range});
        }
    }

    void emit_stored(int t, std::vector<Statement>& statements, std::optional<std::vector<MaskForm>>& support_forms) {
        for (const ArrayId id : k_.order) {
            if (!k_.needed.contains(id) || !k_.on_stream(id) || !k_.outputs.contains(id) || k_.storing_traversal(id) != t)
                continue;
            statements.push_back(k_.statement(id));
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
                if (!k_.set.contains(r) || !k_.on_stream(r) || r == s.target || done.contains(r) || again.contains(r))
                    continue;
                Statement chunk = k_.statement(r);
                if (k_.outputs.contains(r) && !stored_here.contains(r)) {
                    const Array array = k_.diagram.array(r);
                    again[r] = chunk.target = add_array(k_.diagram, array.name + "_again", array.axes, array.type,
                                                        ArrayRole::temporary);
                }
                place(chunk);
            }
            s.body = transform(s.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                return r && again.contains(r->array) ? read_self(k_.diagram, again.at(r->array)) : node;
            });
            if (!done.insert(s.target).second && !k_.is_state(s.target)) return;
            out.push_back(std::move(s));
        };
        for (auto& s : statements) place(s);
        statements = std::move(out);
    }

    Assembly& k_;
    ArrivedPoints arrived_;
};

}  // namespace

Loop make_loop(Assembly& assembly, int traversal, Kernel& kernel, std::vector<Statement>& hoisted) {
    return LoopMaker(assembly).make(traversal, kernel, hoisted);
}

}  // namespace napkin
