#include "derive/analyse.hpp"

#include <fmt/format.h>

#include <set>

#include "algebra/number.hpp"
#include "derive/read_before.hpp"
#include "derive/replay.hpp"
#include "derive/term.hpp"
#include "diagram/guards.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// Arithmetic on integers that meets a part of the stream with a running result, or null: the order of integers
/// that wrap is not that of their sums.
Expr running_integer_arithmetic(const Expr& body, const Stream& stream) {
    Expr found;
    visit(body, [&](const Expr& node) {
        const bool arithmetic = as<Binary>(node) || as<Unary>(node);
        if (!found && arithmetic && stream.whole(node) && stream.mixed(node)) found = node;
    });
    return found;
}

/// A moment follows its origins and the moments below it also where its own body has cancelled to a constant.
bool follows_axis(const Diagram& d, const std::optional<CentredMoment>& moment, AxisId axis) {
    return moment && (any_of(moment->origins, [&](const Expr& r) { return depends_on_axis(r, axis); }) ||
                      any_of(moment->lower, [&](const auto& m) { return contains(d.array(m.second).axes, axis); }));
}

/// The signs of what is computed in a kernel.
class KernelSigns {
public:
    KernelSigns(const Diagram& diagram, const std::set<ArrayId>& kernel) : d_(diagram), kernel_(kernel) {}

    /// Reads of what is computed in the kernel, marked for is_positive() by an exponential where they are positive and
    /// by an absolute value where they are not negative.
    [[nodiscard]] Expr marked(const Expr& e) {
        return transform(where_defined(e), [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !kernel_.contains(r->array)) return node;
            switch (sign_of(r->array)) {
                case Sign::positive: return unary(UnaryOp::exp, node);
                case Sign::not_negative: return unary(UnaryOp::abs, node);
                case Sign::any: return node;
            }
            return node;
        });
    }
    void forget(ArrayId id) { known_.erase(id); }
    void clear() { known_.clear(); }

private:
    enum class Sign { any, not_negative, positive };

    /// Every reduction keeps the sign of what it reduces.
    Sign sign_of(ArrayId id) {
        if (const auto known = known_.find(id); known != known_.end()) return known->second;
        const Equation* e = d_.definition(id);
        if (!e) return Sign::any;
        const Expr body = marked(e->body);
        return known_[id] = is_positive(body) ? Sign::positive : is_not_negative(body) ? Sign::not_negative : Sign::any;
    }

    const Diagram& d_;
    const std::set<ArrayId>& kernel_;
    std::map<ArrayId, Sign> known_;
};

class Analyser {
public:
    Analyser(Diagram& diagram, const std::vector<ArrayId>& targets, AxisId axis, Form form,
             const std::vector<ValueClass>& values, std::vector<DerivationStep>* steps, std::vector<Refusal>& refusals)
        : d_(diagram),
          set_(targets.begin(), targets.end()),
          axis_(axis),
          form_(form),
          values_(values),
          steps_(steps),
          refusals_(refusals) {}

    std::variant<Analysis, Refusal> run() {
        if (auto refusal = refused_read(d_, set_)) return *refusal;
        Checkpoint begin{{}, d_.arrays.size(), set_, steps_ ? steps_->size() : 0, refusals_.size()};
        for (const ArrayId id : set_)
            if (const Equation* e = d_.definition(id)) begin.equations[id] = *e;
        while (!rewrite_all()) restore(begin);
        Analysis out;
        for (const auto& e : d_.equations)
            if (set_.contains(e.target)) out.targets.push_back(e.target);
        out.states = states_;
        for (const auto& [id, s] : states_) out.num_traversals = std::max(out.num_traversals, s.traversal);
        out.values = values_;
        for (std::size_t id = values_.size(); id < d_.arrays.size(); ++id)
            out.values.push_back(set_.contains(ArrayId::of(id)) ? values_of(ArrayId::of(id)) : ValueClass::any());
        return out;
    }

private:
    /// False where a reference turned out to need lowering: then all is to be done again.
    bool rewrite_all() {
        // The list grows while it is walked: centres and states are inserted before the equation that asks for them.
        for (std::size_t i = 0; i < d_.equations.size(); ++i) {
            if (!set_.contains(d_.equations[i].target) || !streamed_reduction(d_.equations[i])) continue;
            if (states_.contains(d_.equations[i].target)) continue;
            const std::size_t num_lowered = lowered_.size();
            i = rewrite(i);
            if (lowered_.size() > num_lowered) return false;
        }
        return true;
    }

    struct Checkpoint {
        std::map<ArrayId, Equation> equations;  ///< of the set
        std::size_t num_arrays;
        std::set<ArrayId> set;
        std::size_t num_steps, num_refusals;
    };
    void restore(const Checkpoint& begin) {
        std::erase_if(d_.equations,
                      [&](const Equation& e) { return static_cast<std::size_t>(e.target) >= begin.num_arrays; });
        for (auto& e : d_.equations)
            if (const auto saved = begin.equations.find(e.target); saved != begin.equations.end()) e = saved->second;
        d_.arrays.resize(begin.num_arrays);
        set_ = begin.set;
        if (steps_) steps_->erase(steps_->begin() + static_cast<std::ptrdiff_t>(begin.num_steps), steps_->end());
        refusals_.erase(refusals_.begin() + static_cast<std::ptrdiff_t>(begin.num_refusals), refusals_.end());
        states_.clear();
        signs_.clear();
        kinds_ = kinds_of(d_);
    }

    Diagram& d_;
    std::set<ArrayId> set_;
    AxisId axis_;
    Form form_;
    const std::vector<ValueClass>& values_;
    std::vector<DerivationStep>* steps_;
    std::vector<Refusal>& refusals_;
    std::map<ArrayId, StateInfo> states_;
    KernelSigns signs_{d_, set_};
    /// extrema under which exponentials are 1/n of what was written (FactorOptions::lowered)
    std::set<ArrayId> lowered_;

    [[nodiscard]] bool streamed_reduction(const Equation& e) const {
        return axis_ >= 0 && e.reduce && contains(e.reduce_axes, axis_);
    }
    [[nodiscard]] bool in_stream(ArrayId id) const { return axis_ >= 0 && contains(d_.array(id).axes, axis_); }

    /// The traversal after which the array's value is final; 0 when it does not depend on the stream's reductions.
    [[nodiscard]] int traversal_of(ArrayId id) const {
        if (const auto s = states_.find(id); s != states_.end()) return s->second.traversal;
        if (axis_ < 0 || !set_.contains(id)) return 0;
        const Equation* e = d_.definition(id);
        int latest = 0;
        if (e)
            for (const ArrayId r : read_arrays(e->body)) latest = std::max(latest, traversal_of(r));
        return latest;
    }

    /// Maps that depend on the stream's reductions are written into the body, so that the algebra sees through them.
    Expr inlined(const Expr& body) const {
        return transform(body, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !set_.contains(r->array) || states_.contains(r->array)) return node;
            const Equation* e = d_.definition(r->array);
            if (!e || e->reduce || traversal_of(r->array) == 0) return node;
            return inlined(e->body);
        });
    }

    /// The first traversal in which everything that the body reads can be there: running results count as there.
    [[nodiscard]] int earliest(const Expr& body) const {
        int traversal = 1;
        for (const ArrayId r : read_arrays(body)) {
            const int t = traversal_of(r);
            const bool late = !states_.contains(r) && t > 0;  // a chunk array over final results: one traversal later
            traversal = std::max(traversal, late ? t + 1 : t);
        }
        return traversal;
    }

    /// The equations as they stand before a rewrite, and how many arrays there are.
    struct Before {
        std::vector<Equation> equations;
        std::size_t num_arrays = 0;
    };
    [[nodiscard]] Before snapshot() const { return steps_ ? Before{d_.equations, d_.arrays.size()} : Before{}; }
    void record(const char* rule, const char* inverse, std::string condition, std::string effect,
                const SourceRange& range, const Before& before) {
        if (steps_)
            steps_->push_back({rule, inverse, std::move(condition), std::move(effect), range,
                               edit_between(before.equations, before.num_arrays, d_)});
    }

    /// Rewrites equation i; returns the index at which it (or its finishing map) now stands.
    std::size_t rewrite(std::size_t i) {
        const ArrayId result = d_.equations[i].target;
        const Expr body = inlined(d_.equations[i].body);
        if (!equal(body, d_.equations[i].body)) {
            Before before = snapshot();
            d_.equations[i].body = body;
            record("inline", "outline", "the maps between two reductions over the same axis are pure",
                   fmt::format("{} is written in the stream's arrays and reductions", d_.array(result).name),
                   d_.equations[i].range, before);
        }
        int traversal = earliest(body);
        const Before before = snapshot();
        const std::size_t first = i;
        auto factored = try_factor(i, body, traversal);
        if (auto* failure = std::get_if<FactorFailure>(&factored)) {
            refusals_.push_back(
                {fmt::format("stream {} through {} in one traversal", d_.axis(axis_).name, d_.array(result).name),
                 fmt::format("{}: {}", failure->reason, to_string(failure->term, d_.names())), d_.equations[i].range});
            ++traversal;
            Factored whole;
            whole.plain = StateSpec{"", *d_.equations[i].reduce, body, {}};
            factored = whole;
        }
        if (const Expr& reference = std::get<Factored>(factored).to_lower) {
            for (const ArrayId id : read_arrays(reference)) lowered_.insert(id);
            return i;
        }
        install(i, std::get<Factored>(factored), traversal);
        const auto& plain = std::get<Factored>(factored).plain;
        if (!equal(d_.equations[i].body, body) || i != first || (plain && !(plain->correction == Correction{})))
            record("factor", "distribute", fmt::format("{}", fmt::join(std::get<Factored>(factored).conditions, "; ")),
                   !d_.equations[i].reduce && plain ? fmt::format("{} is the state {}", d_.array(result).name,
                                                                  d_.array(read_arrays(d_.equations[i].body).front()).name)
                   : plain                          ? fmt::format("{} is a state of its own", d_.array(result).name)
                           : fmt::format("what does not depend on {} moves behind the reduction of {}",
                                         d_.axis(axis_).name, d_.array(result).name),
                   d_.equations[i].range, before);
        return i;
    }

    /// Makes the states that the factoring asks for before equation i, which moves along; none where it fails.
    std::variant<Factored, FactorFailure> try_factor(std::size_t& i, const Expr& body, int traversal) {
        const Equation eq = d_.equations[i];
        Stream stream;
        stream.axes = eq.reduce_axes;
        stream.running = [&](ArrayId id) {
            const auto s = states_.find(id);
            return s != states_.end() && s->second.traversal == traversal;
        };
        stream.definition = [&](ArrayId id) { return set_.contains(id) ? d_.definition(id) : nullptr; };
        stream.positive = [&](const Expr& e) { return is_positive(signs_.marked(e)); };
        stream.not_negative = [&](const Expr& e) { return is_not_negative(signs_.marked(e)); };
        stream.whole = [&](const Expr& e) {
            const Kind kind = kind_of(e);
            return kind == Kind::i32 || kind == Kind::i64;
        };
        stream.values = [&](const Expr& e) { return value_class(e, [&](ArrayId id) { return values_of(id); }); };
        stream.with_guarded_reads = [&](const Expr& e, const Expr& condition) {
            return napkin::with_guarded_reads(d_, e, condition, is_other_index);
        };
        if (!stream.whole(body))
            if (const Expr stuck = running_integer_arithmetic(body, stream))
                return FactorFailure{"integers wrap, so nothing is taken out of their arithmetic into real numbers", stuck};
        FactorOptions options;
        options.keep_tails = form_ == Form::auxiliary;
        const std::size_t first = i;
        const std::size_t num_arrays = d_.arrays.size();
        options.make_state = [&](const StateSpec& spec) { return read_self(d_, define_state(i, eq, spec, traversal)); };
        options.lowered = [&](const Expr& reference) {
            const auto reads = read_arrays(reference);
            return any_of(reads, [&](ArrayId id) { return lowered_.contains(id); });
        };
        options.wide = [&](const Expr& e) {
            const auto reads = read_arrays(e);
            return any_of(reads, [&](ArrayId id) {
                const DType type = d_.array(id).type;
                return is_float(type) && facts(type).min_exponent <= facts(DType::f32).min_exponent;
            });
        };
        auto out = factor(*eq.reduce, body, stream, options);
        if (std::holds_alternative<FactorFailure>(out)) {
            for (std::size_t k = first; k < i; ++k) {
                set_.erase(d_.equations[k].target);
                states_.erase(d_.equations[k].target);
                signs_.forget(d_.equations[k].target);
            }
            const auto begin = d_.equations.begin();
            d_.equations.erase(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(i));
            d_.arrays.resize(num_arrays);
            kinds_ = kinds_of(d_);
            i = first;
        }
        return out;
    }

    /// The kinds of values of an array of the definition, or of a state that was made.
    [[nodiscard]] ValueClass values_of(ArrayId id) const {
        if (static_cast<std::size_t>(id) < values_.size()) return values_[at(id)];
        const Equation* e = d_.definition(id);
        internal_check(e, "a state without a definition");
        const ValueClass body = value_class(e->body, [&](ArrayId read) { return values_of(read); });
        return e->reduce ? reduced(*e->reduce, body) : body;
    }

    // --- states
    // -----------------------------------------------------------------------------------------------------------

    [[nodiscard]] std::optional<ArrayId> state_like(const StateInfo& info, const StateSpec& spec,
                                                    const std::vector<AxisId>& reduce_axes,
                                                    const std::vector<AxisId>& axes) const {
        for (const auto& e : d_.equations) {
            const auto s = states_.find(e.target);
            if (s != states_.end() && s->second == info && e.reduce == spec.op && e.reduce_axes == reduce_axes &&
                equal(e.body, spec.body) && d_.array(e.target).axes == axes)
                return e.target;
        }
        return std::nullopt;
    }

    /// The state that the specification asks for: one that is there already, or a new one before equation `at`.
    ArrayId define_state(std::size_t& at, const Equation& eq, const StateSpec& spec, int traversal) {
        const StateInfo info{traversal, spec.correction};
        std::vector<AxisId> axes;
        for (const AxisId a : d_.array(eq.target).axes)
            if (depends_on_axis(spec.body, a) || follows_axis(d_, spec.correction.moment, a)) axes.push_back(a);
        if (const auto same = state_like(info, spec, eq.reduce_axes, axes)) return *same;
        const Kind kind = kind_of(spec.body);
        const DType type = kind == Kind::i32   ? DType::i32
                           : kind == Kind::i64 ? DType::i64
                           : wide()            ? DType::f64
                                               : DType::f32;
        const ArrayId id = add_array(d_, d_.array(eq.target).name + spec.suffix, axes, type, ArrayRole::temporary);
        Equation e{.target = id, .reduce = spec.op, .reduce_axes = eq.reduce_axes, .body = spec.body, .range = eq.range};
        d_.equations.insert(d_.equations.begin() + static_cast<std::ptrdiff_t>(at), e);
        ++at;
        set_.insert(id);
        states_[id] = info;
        return id;
    }
    Kind kind_of(const Expr& e) { return kinds_(e); }
    Kinds kinds_ = kinds_of(d_);
    [[nodiscard]] bool wide() const {
        return any_of(d_.arrays, [](const Array& a) { return a.type == DType::f64; });
    }

    /// Equation i becomes a state itself, or a map of the states before it.
    void install(std::size_t i, const Factored& f, int traversal) {
        Equation& eq = d_.equations[i];
        if (f.plain) {
            const Array& array = d_.array(eq.target);
            const auto same = state_like({traversal, f.plain->correction}, *f.plain, eq.reduce_axes, array.axes);
            if (same && is_float(array.type) && is_float(d_.array(*same).type)) {
                eq.reduce.reset();
                eq.reduce_axes.clear();
                eq.body = read_self(d_, *same);
                return;
            }
            eq.body = f.plain->body;
            eq.reduce = f.plain->op;
            states_[eq.target] = {traversal, f.plain->correction};
            return;
        }
        eq.reduce.reset();
        eq.reduce_axes.clear();
        eq.body = f.finish;
    }
};

}  // namespace

std::variant<Analysis, Refusal> analyse(Diagram& diagram, const std::vector<ArrayId>& targets,
                                        std::optional<AxisId> axis, Form form, const std::vector<ValueClass>& values,
                                        std::vector<DerivationStep>* steps, std::vector<Refusal>& refusals) {
    return Analyser(diagram, targets, axis.value_or(AxisId()), form, values, steps, refusals).run();
}

}  // namespace napkin
