#include "derive/analyse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algebra/number.hpp"
#include "derive/factor.hpp"
#include "derive/replay.hpp"

namespace napkin {
namespace {

bool contains(const std::vector<AxisId>& axes, AxisId axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

class Analyser {
public:
    Analyser(Diagram& diagram, const std::vector<ArrayId>& targets, AxisId axis, Form form,
             std::vector<DerivationStep>* steps, std::vector<Refusal>& refusals)
        : d_(diagram), set_(targets.begin(), targets.end()), axis_(axis), form_(form), steps_(steps), refusals_(refusals) {}

    std::variant<Analysis, Refusal> run() {
        if (auto refusal = check_reads()) return *refusal;
        // The list grows while it is walked: centres and states are inserted before the equation that asks for them.
        for (std::size_t i = 0; i < d_.equations.size(); ++i) {
            if (!set_.contains(d_.equations[i].target) || !streamed_reduction(d_.equations[i])) continue;
            if (states_.contains(d_.equations[i].target)) continue;
            i = rewrite(i);
        }
        Analysis out;
        for (const auto& e : d_.equations)
            if (set_.contains(e.target)) out.targets.push_back(e.target);
        out.states = states_;
        for (const auto& [id, s] : states_) out.num_traversals = std::max(out.num_traversals, s.traversal);
        return out;
    }

private:
    Diagram& d_;
    std::set<ArrayId> set_;
    AxisId axis_;
    Form form_;
    std::vector<DerivationStep>* steps_;
    std::vector<Refusal>& refusals_;
    std::map<ArrayId, StateInfo> states_;

    [[nodiscard]] bool streamed_reduction(const Equation& e) const {
        return axis_ >= 0 && e.reduce && contains(e.reduce_axes, axis_);
    }
    [[nodiscard]] bool in_stream(ArrayId id) const { return axis_ >= 0 && contains(d_.array(id).axes, axis_); }

    /// Inside a kernel an array is a tile: it can be read only where it was computed, at its own axes.
    std::optional<Refusal> check_reads() {
        for (const auto& e : d_.equations) {
            if (!set_.contains(e.target)) continue;
            std::optional<Refusal> refusal;
            visit(e.body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                if (!r || refusal) return;
                for (const Index& index : r->indices) {
                    if (!index.is_gathered()) continue;
                    for (const ArrayId inner : read_arrays(*index.expression())) {
                        if (!set_.contains(inner)) continue;
                        refusal = Refusal{
                            fmt::format("fuse {} with {}", d_.array(inner).name, d_.array(e.target).name),
                            fmt::format("{} says where {} is read, so it must be in memory before the kernel begins",
                                        d_.array(inner).name, to_string(node, d_.names())),
                            e.range};
                        return;
                    }
                }
                if (!set_.contains(r->array)) return;
                const auto& axes = d_.array(r->array).axes;
                for (std::size_t k = 0; k < axes.size(); ++k) {
                    if (r->indices[k].is_axis(axes[k])) continue;
                    refusal = Refusal{
                        fmt::format("fuse {} with {}", d_.array(r->array).name, d_.array(e.target).name),
                        fmt::format(
                            "{} is read at other indices than its own, so a tile of it does not hold what is read",
                            to_string(node, d_.names())),
                        e.range};
                }
            });
            if (refusal) return refusal;
        }
        return std::nullopt;
    }

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
        const auto centres_before = d_.equations.size();
        auto factored = try_factor(i, body, traversal);
        i += d_.equations.size() - centres_before;
        if (auto* failure = std::get_if<FactorFailure>(&factored)) {
            refusals_.push_back(
                {fmt::format("stream {} through {} in one traversal", d_.axis(axis_).name, d_.array(result).name),
                 fmt::format("{}: {}", failure->reason, to_string(failure->term, d_.names())), d_.equations[i].range});
            ++traversal;
            Term plain;
            plain.body = body;
            Factored whole;
            whole.terms = {plain};
            factored = whole;
        }
        return install(i, std::get<Factored>(factored), traversal, before);
    }

    std::variant<Factored, FactorFailure> try_factor(std::size_t i, const Expr& body, int traversal) {
        const Equation eq = d_.equations[i];
        Leaves leaves;
        leaves.is_running = [&](const Read& r) {
            const auto s = states_.find(r.array);
            return s != states_.end() && s->second.traversal == traversal;
        };
        leaves.is_running_sum = [&](const Read& r) {
            return leaves.is_running(r) && d_.definition(r.array)->reduce == ReduceOp::sum;
        };
        leaves.axes = eq.reduce_axes;
        if (const Expr stuck = running_integer_arithmetic(body, leaves))
            return FactorFailure{"integers wrap, so nothing is taken out of their arithmetic", stuck};
        const auto saved_equations = d_.equations;
        const std::size_t saved_arrays = d_.arrays.size();
        const auto saved_set = set_;
        const auto saved_states = states_;
        FactorOptions options;
        options.keep_tails = form_ == Form::auxiliary;
        std::size_t at = i;
        options.make_centre = [&](const Expr& of) { return make_centre(at, eq, of, traversal); };
        options.positive = [&](const Expr& e) { return is_positive(positive_marked(e)); };
        auto out = factor(*eq.reduce, body, leaves, options);
        if (std::holds_alternative<FactorFailure>(out)) {
            d_.equations = saved_equations;
            d_.arrays.resize(saved_arrays);
            set_ = saved_set;
            states_ = saved_states;
        }
        return out;
    }

    /// Arithmetic on integers that meets a part of the stream with a running result, or null: the order of integers that wrap is not
    /// that of their sums.
    Expr running_integer_arithmetic(const Expr& body, const Leaves& leaves) const {
        Kinds kinds([&](ArrayId id) { return d_.array(id).type; });
        Expr found;
        visit(body, [&](const Expr& node) {
            const auto* b = as<Binary>(node);
            const bool arithmetic = b || as<Unary>(node);
            if (found || !arithmetic || kinds(node) == Kind::real || kinds(node) == Kind::whole) return;
            bool runs = false;
            visit(node, [&](const Expr& part) {
                const auto* r = as<Read>(part);
                runs = runs || (r && leaves.is_running(*r));
            });
            const bool streams = std::any_of(leaves.axes.begin(), leaves.axes.end(),
                                             [&](AxisId axis) { return depends_on_axis(node, axis); });
            if (runs && streams) found = node;
        });
        return found;
    }

    /// Reductions of positive bodies are positive; they are marked for is_positive() by an exponential.
    [[nodiscard]] Expr positive_marked(const Expr& e) const {
        return transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !states_.contains(r->array)) return node;
            return is_positive(positive_marked(d_.definition(r->array)->body)) ? unary(UnaryOp::exp, node) : node;
        });
    }

    /// The array of an equal reduction that is already a plain state of this traversal, or -1.
    ArrayId find_state(ReduceOp op, const std::vector<AxisId>& axes, const Expr& body, const StateInfo& info) const {
        for (const auto& e : d_.equations) {
            const auto s = states_.find(e.target);
            if (s != states_.end() && s->second == info && e.reduce == op && e.reduce_axes == axes && equal(e.body, body))
                return e.target;
        }
        return -1;
    }

    ArrayId define(std::size_t& at, const std::string& name, std::vector<AxisId> axes, std::optional<ReduceOp> op,
                   std::vector<AxisId> reduce_axes, const Expr& body, const SourceRange& range) {
        const ArrayId id = add_array(d_, name, std::move(axes), DType::f32, ArrayRole::temporary);
        if (wide()) d_.arrays.back().type = DType::f64;
        Equation e;
        e.target = id;
        e.reduce = op;
        e.reduce_axes = std::move(reduce_axes);
        e.body = body;
        e.range = range;
        d_.equations.insert(d_.equations.begin() + static_cast<std::ptrdiff_t>(at), e);
        ++at;
        set_.insert(id);
        return id;
    }
    [[nodiscard]] bool wide() const {
        return std::any_of(d_.arrays.begin(), d_.arrays.end(), [](const Array& a) { return a.type == DType::f64; });
    }

    ArrayId define_state(std::size_t& at, const std::string& name, ReduceOp op, const std::vector<AxisId>& axes,
                         const std::vector<AxisId>& reduce_axes, const Expr& body, const StateInfo& info,
                         const SourceRange& range) {
        if (const ArrayId same = find_state(op, reduce_axes, body, info); same >= 0 && d_.array(same).axes == axes)
            return same;
        const ArrayId id = define(at, name, axes, op, reduce_axes, body, range);
        states_[id] = info;
        return id;
    }

    /// c = Σ A / count: the running mean of A over the reduced axes, kept as two sums.
    Expr make_centre(std::size_t& at, const Equation& eq, const Expr& of, int traversal) {
        std::vector<AxisId> axes;
        for (const AxisId a : d_.array(eq.target).axes)
            if (depends_on_axis(of, a)) axes.push_back(a);
        StateInfo info;
        info.traversal = traversal;
        const std::string base = d_.array(eq.target).name;
        const ArrayId count = define_state(at, base + "_count", ReduceOp::sum, {}, eq.reduce_axes, constant(1), info,
                                           eq.range);
        const ArrayId total = define_state(at, base + "_total", ReduceOp::sum, axes, eq.reduce_axes, of, info, eq.range);
        // Before the first value the count is 0 and so is the total: any centre will do, 0 does.
        const Expr mean = binary(BinaryOp::div, read_self(d_, total),
                                 binary(BinaryOp::max, read_self(d_, count), constant(1)));
        for (const auto& e : d_.equations)
            if (set_.contains(e.target) && !e.reduce && equal(e.body, mean)) return read_self(d_, e.target);
        return read_self(d_, define(at, base + "_centre", axes, std::nullopt, {}, mean, eq.range));
    }

    std::size_t install(std::size_t i, const Factored& f, int traversal, const Before& before) {
        const Equation eq = d_.equations[i];
        StateInfo info;
        info.traversal = traversal;
        const bool plain = f.terms.size() == 1 && !f.terms[0].tail && f.terms[0].power == 0;
        if (plain) {
            info.log_kept = f.terms[0].log_kept;
            info.kept = f.terms[0].kept;
            d_.equations[i].body = f.terms[0].body;
            states_[eq.target] = info;
            if (!equal(f.terms[0].body, eq.body))
                record("factor", "distribute", fmt::format("{}", fmt::join(f.conditions, "; ")),
                       fmt::format("{} is a state of its own", d_.array(eq.target).name), eq.range, before);
            return i;
        }
        std::size_t at = i;
        Expr finish;
        for (const auto& term : f.terms) {
            const ArrayId state = term_state(at, eq, f, term, info);
            if (state < 0) continue;
            Expr value = read_self(d_, state);
            if (term.tail) value = with_tail(f, eq, value, term.tail);
            finish = finish ? binary(BinaryOp::add, finish, value) : value;
        }
        Equation map = eq;
        map.reduce.reset();
        map.reduce_axes.clear();
        map.body = finish ? simplify(finish) : constant(0);
        d_.equations[at] = map;
        record("factor", "distribute", fmt::format("{}", fmt::join(f.conditions, "; ")),
               fmt::format("what does not depend on {} moves behind the reduction of {}", d_.axis(axis_).name,
                           d_.array(eq.target).name),
               eq.range, before);
        return at;
    }

    Expr with_tail(const Factored& f, const Equation& eq, const Expr& value, const Expr& tail) const {
        if (f.additive_tail) return binary(BinaryOp::add, value, tail);
        if (f.power_tail) {
            Expr points = constant(1);
            for (const AxisId a : eq.reduce_axes) points = binary(BinaryOp::mul, points, axis_size(a));
            return binary(BinaryOp::mul, value, binary(BinaryOp::pow, tail, simplify(points)));
        }
        if (const auto* b = as<Binary>(tail); b && b->op == BinaryOp::div) {
            if (const auto* one = as<Constant>(b->a); one && one->value == 1) return binary(BinaryOp::div, value, b->b);
        }
        return binary(BinaryOp::mul, value, tail);
    }

    ArrayId term_state(std::size_t& at, const Equation& eq, const Factored& f, const Term& term, StateInfo info) {
        info.log_kept = term.log_kept;
        info.kept = term.kept;
        const std::string base = d_.array(eq.target).name;
        std::vector<AxisId> axes;
        const auto carries = [&](const Expr& e, AxisId a) { return e && depends_on_axis(e, a); };
        const Expr of = term.power > 0 ? f.centres[static_cast<std::size_t>(term.centre)].of : nullptr;
        for (const AxisId a : d_.array(eq.target).axes)
            if (carries(term.body, a) || carries(of, a)) axes.push_back(a);
        if (term.power == 0)
            return define_state(at, base + "_acc", *eq.reduce, axes, eq.reduce_axes, term.body, info, eq.range);
        return moment(at, eq, f.centres[static_cast<std::size_t>(term.centre)], term, info, axes);
    }

    /// Σ w·(A − c)^p, with the lower moments that following a moving centre needs. Σ (A − c) alone is zero: c is the mean.
    ArrayId moment(std::size_t& at, const Equation& eq, const Centre& centre, const Term& term, StateInfo info,
                   const std::vector<AxisId>& axes) {
        const auto* weight = as<Constant>(term.body);
        const bool unweighted = weight && !term.log_kept && !term.kept;
        std::vector<ArrayId> lower;
        ArrayId id = -1;
        for (int p = 0; p <= term.power; ++p) {
            Expr body = term.body;
            for (int k = 0; k < p; ++k)
                body = simplify(binary(BinaryOp::mul, body, binary(BinaryOp::sub, centre.of, centre.placeholder)));
            StateInfo moment_info = info;
            if (p > 0) {
                moment_info.power = p;
                moment_info.lower_moments = lower;
                moment_info.centre = as<Read>(centre.placeholder)->array;
            }
            std::vector<AxisId> moment_axes;
            for (const AxisId a : axes)
                if (p > 0 || depends_on_axis(term.body, a)) moment_axes.push_back(a);
            if (p == 1 && unweighted) {
                id = -1;
            } else {
                const std::string suffix = p == 0 ? "_weight" : fmt::format("_moment{}", p);
                id = define_state(at, d_.array(eq.target).name + suffix, ReduceOp::sum, moment_axes, eq.reduce_axes,
                                  body, moment_info, eq.range);
            }
            lower.push_back(id);
        }
        return id;
    }
};

}  // namespace

bool operator==(const StateInfo& a, const StateInfo& b) {
    const auto same = [](const Expr& x, const Expr& y) { return x && y ? equal(x, y) : !x && !y; };
    return a.traversal == b.traversal && same(a.log_kept, b.log_kept) && same(a.kept, b.kept) && a.power == b.power &&
           a.lower_moments == b.lower_moments && a.centre == b.centre;
}

std::variant<Analysis, Refusal> analyse(Diagram& diagram, const std::vector<ArrayId>& targets, std::optional<AxisId> axis,
                                        Form form, std::vector<DerivationStep>* steps, std::vector<Refusal>& refusals) {
    return Analyser(diagram, targets, axis.value_or(-1), form, steps, refusals).run();
}

}  // namespace napkin
