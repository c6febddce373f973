#include "schedule/conditional_rescale.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <optional>

#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// The most that a thread's weights of a row may add up to, whatever the type. It bounds, as a factor, how far the
/// maximum may stay behind. Measured on one H200 on 2026-11-23: no row of attention over 8192 normally distributed
/// logits comes near it after the first KV block.
constexpr double largest_sum = 8192;
/// The fraction of a type's largest number that a weight may reach.
constexpr double share_of_range = 0.25;

/// How an expression changes where the reference moves so that all sums are multiplied by e^-t. Its value becomes
/// e^(-scaled·t) times what it was, plus shifted·t.
struct Drift {
    double scaled = 0, shifted = 0;
    [[nodiscard]] bool is_none() const { return *this == Drift{}; }
    /// Up to rounding: rates are products of sizes' powers and logarithms.
    friend bool operator==(const Drift& x, const Drift& y) {
        const auto near = [](double a, double b) {
            return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
        };
        return near(x.scaled, y.scaled) && near(x.shifted, y.shifted);
    }
};

/// Drifts of expressions over variables whose own drifts are known. All other variables have none.
class Drifts {
public:
    explicit Drifts(const ScheduledKernel& kernel) : kernel_(kernel) {}
    void set(VariableId id, Drift drift) { known_[id] = drift; }

    [[nodiscard]] std::optional<Drift> of(const Expr& e) const {
        if (const auto* r = as<Read>(e)) {
            return value_or(known_, r->variable(), Drift{});
        }
        if (const auto* u = as<Unary>(e)) return of(*u);
        if (const auto* b = as<Binary>(e)) return of(*b);
        if (const auto* s = as<Select>(e)) {
            const auto c = of(s->condition), x = of(s->a), y = of(s->b);
            if (!c || !c->is_none() || !x || !y) return std::nullopt;
            if (stays(s->a)) return y;
            if (stays(s->b)) return x;
            return *x == *y ? x : std::nullopt;
        }
        if (const auto* c = as<Cast>(e)) return none_of(c->a);
        return Drift{};
    }

private:
    /// A constant that no factor changes: 0, an infinity, or NaN.
    static bool stays(const Expr& e) {
        const auto* c = as<Constant>(e);
        return c && (c->value == 0 || !std::isfinite(c->value));
    }
    [[nodiscard]] std::optional<Drift> none_of(const Expr& e) const {
        const auto drift = of(e);
        return drift && drift->is_none() ? drift : std::nullopt;
    }
    [[nodiscard]] std::optional<Drift> of(const Unary& u) const {
        const auto a = of(u.a);
        if (!a || a->is_none()) return a;
        if (u.op == UnaryOp::neg) return Drift{a->scaled, -a->shifted};
        if (u.op == UnaryOp::exp) return exponential(*a, 1);
        if (u.op == UnaryOp::exp2) return exponential(*a, std::numbers::ln2);
        if (u.op == UnaryOp::log && a->shifted == 0) return Drift{0, -a->scaled};
        if (u.op == UnaryOp::log2 && a->shifted == 0) return Drift{0, -a->scaled / std::numbers::ln2};
        if (u.op == UnaryOp::abs && a->shifted == 0) return a;
        return std::nullopt;
    }
    /// The drift of e^(rate·x).
    static std::optional<Drift> exponential(const Drift& x, double rate) {
        return x.scaled == 0 ? std::optional(Drift{-rate * x.shifted, 0}) : std::nullopt;
    }
    [[nodiscard]] std::optional<Drift> of(const Binary& b) const {
        const auto x = of(b.a), y = of(b.b);
        if (!x || !y) return std::nullopt;
        if (x->is_none() && y->is_none()) return Drift{};
        const auto factor = constant_value(kernel_, b.b), first = constant_value(kernel_, b.a);
        switch (b.op) {
            case BinaryOp::add:
            case BinaryOp::sub: {
                const int sign = b.op == BinaryOp::add ? 1 : -1;
                if (x->scaled == 0 && y->scaled == 0)
                    return *x == Drift{0, -sign * y->shifted} ? Drift{} : Drift{0, x->shifted + sign * y->shifted};
                return *x == *y ? x : std::nullopt;
            }
            case BinaryOp::mul:
                if (x->shifted == 0 && y->shifted == 0) return Drift{x->scaled + y->scaled, 0};
                if (factor && x->scaled == 0) return Drift{0, x->shifted * *factor};
                return first && y->scaled == 0 ? std::optional(Drift{0, y->shifted * *first}) : std::nullopt;
            case BinaryOp::div:
                if (x->shifted == 0 && y->shifted == 0) return Drift{x->scaled - y->scaled, 0};
                return factor && x->scaled == 0 ? std::optional(Drift{0, x->shifted / *factor}) : std::nullopt;
            case BinaryOp::pow:
                if (first && *first > 0) return exponential(*y, std::log(*first));
                return factor && x->shifted == 0 ? std::optional(Drift{x->scaled * *factor, 0}) : std::nullopt;
            case BinaryOp::min:
            case BinaryOp::max: return *x == *y ? x : std::nullopt;
            case BinaryOp::eq:
            case BinaryOp::ne: {
                // No factor changes whether a value is 0. Neither a factor nor a sum changes whether it is infinite.
                const auto same = [](const Drift& drift, const Expr& other) {
                    const auto* c = as<Constant>(other);
                    return c && (std::isinf(c->value) || (c->value == 0 && drift.shifted == 0));
                };
                return same(*x, b.b) || same(*y, b.a) ? std::optional(Drift{}) : std::nullopt;
            }
            default: return std::nullopt;
        }
    }

    const ScheduledKernel& kernel_;
    std::map<VariableId, Drift> known_;
};

/// Finds out whether a reference of a kernel allows conditional rescaling, and the steps around it.
class Search {
public:
    Search(const ScheduledKernel& kernel, const TileReference& reference) : k_(kernel), reference_(reference) {
        found_.maximum = reference.state;
    }

    /// Why the reference may not stay behind; empty: it may.
    std::string run() {
        maximum_ = definition(found_.maximum);
        if (maximum_ < 0 || !is_fragment(maximum_)) return "it is not computed on fragments";
        const Compute& m = compute(maximum_);
        const auto loop = find_if(k_.loops, [&](const ScheduledLoop& l) { return l.scope == k_.step(maximum_).scope; });
        if (loop == k_.loops.end() || !is_repeated(k_, *loop)) return "its loop has one turn";
        if (!m.carry || !is_read(m.carry, found_.maximum)) return "it follows something else than itself";
        const auto rate = reference_.rate ? constant_value(k_, reference_.rate) : std::nullopt;
        if (!rate || !std::isfinite(*rate) || *rate == 0) return "its exponent has a factor that depends on data";
        found_.rate = *rate;
        if (auto refusal = find_rescale_steps(); !refusal.empty()) return refusal;
        if (auto refusal = find_sums(m); !refusal.empty()) return refusal;
        if (auto refusal = find_again(); !refusal.empty()) return refusal;
        return drifting();
    }
    [[nodiscard]] const ConditionalRescale& found() const { return found_; }

private:
    [[nodiscard]] const Compute& compute(StepId step) const { return std::get<Compute>(*k_.step(step).statement); }
    [[nodiscard]] bool is_read(const Expr& e, VariableId id) const {
        const auto* r = as<Read>(e);
        return r && r->variable() == id;
    }
    [[nodiscard]] const std::string& name(VariableId id) const { return k_.variable(id).name; }
    [[nodiscard]] bool is_map(StepId step) const { return !compute(step).reduce && !compute(step).carry; }
    [[nodiscard]] bool is_fragment(StepId step) const { return k_.atom(k_.step(step)).kind == AtomKind::fragment; }
    [[nodiscard]] bool is_in_loop(StepId step) const { return k_.step(step).scope == k_.step(maximum_).scope; }

    /// The one step that computes the variable; -1: there are none or several.
    [[nodiscard]] StepId definition(VariableId id) const {
        StepId found = -1;
        for (const StepId s : k_.steps.ids()) {
            if (k_.step(s).atom < 0 || variable_of(k_.step(s)) != id) continue;
            if (found >= 0) return -1;
            found = s;
        }
        return found;
    }
    /// Compute steps that read the variable, except those that compute it.
    [[nodiscard]] std::vector<StepId> readers(VariableId id) const {
        std::vector<StepId> out;
        for (const StepId s : k_.steps.ids())
            if (k_.step(s).atom >= 0 && reads(k_.step(s), id) && variable_of(k_.step(s)) != id) out.push_back(s);
        return out;
    }

    /// Finds the steps that move the reference. What else the loop makes of it would notice where it stays.
    std::string find_rescale_steps() {
        old_ = definition(reference_.old), finite_ = definition(reference_.guarded);
        correction_ = definition(reference_.correction);
        found_.moving = {old_, maximum_, finite_, correction_};
        for (const StepId s : found_.moving)
            if (s < 0 || !is_in_loop(s) || !is_fragment(s)) return "it is not computed on fragments";
        found_.correction = reference_.correction;
        for (const StepId s : readers(found_.maximum)) {
            if (!is_in_loop(s) || s == old_ || s == finite_) continue;
            return fmt::format("{} is {}", name(compute(s).variable), is_map(s) ? "made of it" : "reduced with it");
        }
        for (const StepId s : readers(reference_.old))
            if (s != correction_) return fmt::format("{} is made of what it was", name(compute(s).variable));
        return "";
    }

    /// Finds the weights and the sums over them.
    std::string find_sums(const Compute& maximum) {
        // Maps of the reference alone move with it: they stand for their bodies.
        std::map<VariableId, Expr> moved = {{reference_.guarded, read_of(reference_.guarded)}};
        const auto inlined = [&](const Expr& body) {
            return transform(body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                return r ? value_or(moved, r->variable(), node) : node;
            });
        };
        for (const StepId s : k_.steps.ids()) {
            if (k_.step(s).atom < 0 || s == correction_ ||
                none_of(k_.step(s).reads, [&](const Read* r) { return moved.contains(r->variable()); }))
                continue;
            const Compute& c = compute(s);
            const bool is_map_on_fragments = is_in_loop(s) && is_map(s) && is_fragment(s);
            if (is_map_on_fragments &&
                all_of(k_.step(s).reads, [&](const Read* r) { return moved.contains(r->variable()); })) {
                moved.emplace(c.variable, inlined(c.body)), found_.moving.push_back(s);
                continue;
            }
            if (!is_map_on_fragments || !are_weights(inlined(c.body), maximum.body) || found_.weights >= 0)
                return fmt::format("{} is made of it", name(c.variable));
            found_.weights = s;
        }
        sort(found_.moving);
        if (found_.weights < 0) return "no weights refer to it";
        const VariableId w = compute(found_.weights).variable;
        for (const StepId s : readers(found_.correction))
            if (!follows(s)) return fmt::format("{} is corrected in a way of its own", name(compute(s).variable));
        for (const StepId s : readers(w)) {
            const Compute& c = compute(s);
            if (!c.reduce || *c.reduce == ReduceOp::prod || !follows(s) || !is_linear(c.body, w))
                return fmt::format("{} is no sum of its weights", name(c.variable));
            if (c.reduce != ReduceOp::sum || !is_read(c.body, w) || column_axis(k_, c.variable) >= 0 ||
                c.reduce_axes != maximum.reduce_axes)
                continue;
            if (is_fragment(s)) found_.sum = s;
        }
        return found_.sum < 0 ? "no sum of its weights says how large they are" : "";
    }
    /// Whether `e` is a positive constant times e^(rate·(A − R)), where R is an extremum of A. The limit is in units of
    /// that constant.
    bool are_weights(const Expr& e, const Expr& extremum_of) {
        Drifts drifts(k_);
        drifts.set(reference_.guarded, {0, 1 / found_.rate});
        if (drifts.of(e) != Drift{1, 0}) return false;
        // The constant is what stands there where A and R are 0.
        const Expr zero = constant(0);
        for (const Expr& values : {extremum_of, without_mask(extremum_of)}) {
            const Expr at_extremum = transform(without_mask(e), [&](const Expr& node) {
                return equal(node, values) || is_read(node, reference_.guarded) ? zero : node;
            });
            weight_ = at_extremum;
            if (const double weight = constant_value(k_, weight_).value_or(0); weight > 0 && std::isfinite(weight))
                return true;
        }
        return false;
    }
    /// What the expression is where its mask lets a value through.
    static Expr without_mask(const Expr& e) {
        const auto* choice = as<Select>(e);
        const auto* excluded = choice ? as<Constant>(choice->b) : nullptr;
        return excluded && (excluded->value == 0 || std::isinf(excluded->value)) ? choice->a : e;
    }
    /// It runs through the loop, and the correction alone multiplies it.
    [[nodiscard]] bool follows(StepId s) const {
        const Compute& c = compute(s);
        return is_in_loop(s) && c.carry && contains(reference_.followers, c.variable);
    }
    [[nodiscard]] bool is_linear(const Expr& e, VariableId w) const {
        if (is_read(e, w)) return true;
        const auto* b = as<Binary>(e);
        if (!b || (b->op != BinaryOp::mul && b->op != BinaryOp::div)) return false;
        const bool in_a = reads_variable(b->a, w), in_b = reads_variable(b->b, w);
        return in_a != in_b && (in_a ? is_linear(b->a, w) : b->op == BinaryOp::mul && is_linear(b->b, w));
    }

    /// Finds the steps of the same iteration from which the weights are computed, in program order.
    std::string find_again() {
        std::vector<VariableId> wanted;
        const auto want = [&](StepId step) {
            for (const Read* r : k_.step(step).reads) wanted.push_back(r->variable());
        };
        want(found_.weights);
        const int ahead = k_.step(found_.weights).ahead;
        for (int before = found_.weights - 1; before >= 0; --before) {
            const auto s = StepId::of(before);
            const Step& step = k_.step(s);
            if (step.atom < 0 || !is_in_loop(s) || found_.moves(s) || !contains(wanted, variable_of(step))) continue;
            // What threads wrote to shared memory is still there.
            if (k_.atom(step).kind == AtomKind::tile) continue;
            if (compute(s).carry || step.ahead != ahead || k_.atom(step).kind == AtomKind::block)
                return fmt::format("{} is not computed again within a turn", name(variable_of(step)));
            if (k_.atom(step).kind == AtomKind::mma && !product_by_warp(k_, step))
                return fmt::format("no warp computes {} by itself", name(variable_of(step)));
            found_.again.insert(found_.again.begin(), s);
            want(s);
        }
        std::vector<StepId> together = found_.moving;
        together.push_back(found_.sum);
        for (const StepId s : together)
            if (k_.step(s).ahead != ahead) return "it moves in another turn than its weights";
        DType type = DType::f32;
        for (const StepId s : readers(compute(found_.weights).variable))
            if (const auto product = k_.atom(k_.step(s)).kind == AtomKind::mma ? mma_product(k_, k_.step(s)) : std::nullopt)
                type = product->type;
        const double room = std::exp2(std::floor(std::log2(share_of_range * format_range(type).largest)));
        found_.largest = weight_;
        found_.limit = binary(BinaryOp::min, binary(BinaryOp::mul, constant(largest_sum), weight_), constant(room));
        return "";
    }

    /// Why something computed after the loop, or stored, depends on the reference; empty: nothing does.
    std::string drifting() {
        std::vector<VariableId> moved = {compute(found_.weights).variable};
        for (const StepId s : found_.moving)
            if (s != maximum_) moved.push_back(compute(s).variable);
        std::map<VariableId, Drift> of;
        of[found_.maximum] = {0, 1 / found_.rate};
        for (const StepId s : readers(found_.correction)) of[variable_of(k_.step(s))] = {1, 0};
        Drifts drifts(k_);
        for (const auto& [variable, drift] : of) drifts.set(variable, drift);
        for (const StepId s : k_.steps.ids()) {
            const Step& step = k_.step(s);
            if (const auto* store = std::get_if<Store>(step.statement)) {
                const auto known = of.find(store->variable);
                if (contains(moved, store->variable) || (known != of.end() && !known->second.is_none()))
                    return fmt::format("{} is stored", name(store->variable));
            }
            if (step.atom < 0 || is_in_loop(s)) continue;
            const Compute& c = compute(s);
            auto drift = drifts.of(c.body);
            if (drift && c.carry) {
                const auto carried = drifts.of(c.carry);
                if (!carried || !carried->is_none()) drift = std::nullopt;
            }
            const bool adds_up = c.reduce == ReduceOp::sum && drift && drift->shifted == 0;
            const bool keeps = c.reduce && drift && (adds_up || (c.reduce != ReduceOp::prod && c.reduce != ReduceOp::sum));
            if (!drift || (c.reduce && !drift->is_none() && !keeps))
                return fmt::format("{} depends on it", name(c.variable));
            drifts.set(c.variable, *drift), of[c.variable] = *drift;
        }
        return "";
    }

    [[nodiscard]] Expr read_of(VariableId id) const { return read(id, k_.variable(id).dims); }

    const ScheduledKernel& k_;
    const TileReference& reference_;
    StepId maximum_, old_, finite_, correction_;
    Expr weight_;  ///< at the extremum, as the reference moves to it
    ConditionalRescale found_;
};

}  // namespace

std::variant<ConditionalRescale, std::string> conditional_rescale(const ScheduledKernel& kernel) {
    std::string refusal = "no running maximum or minimum is a reference of exponentials";
    for (const TileReference& reference : kernel.kernel->references) {
        Search search(kernel, reference);
        const std::string why = search.run();
        if (why.empty()) return search.found();
        refusal = fmt::format("{}: {}", kernel.variable(reference.state).name, why);
    }
    return refusal;
}

bool ConditionalRescale::is_corrected(const Step& step) const {
    const auto* compute = std::get_if<Compute>(step.statement);
    return compute && compute->carry && reads_variable(compute->carry, correction);
}

bool moves_by_position(const ScheduledKernel& kernel, const ConditionalRescale& lazy) {
    const Step& weights = kernel.step(lazy.weights);
    const auto loop = find_if(kernel.loops, [&](const ScheduledLoop& l) { return l.scope == weights.scope; });
    const AxisId stream = loop->loop->axis;
    // Only the index of the axis itself counts, not what is read at that index. Comparisons and the conditions of
    // selects do not count either: they say where, not how much.
    const std::function<bool(const Expr&)> mentions = [&](const Expr& e) {
        if (const auto* i = as<AxisIndex>(e)) return i->axis == stream;
        if (const auto* u = as<Unary>(e)) return mentions(u->a);
        if (const auto* b = as<Binary>(e)) return !is_comparison(b->op) && (mentions(b->a) || mentions(b->b));
        if (const auto* s = as<Select>(e)) return mentions(s->a) || mentions(s->b);
        const auto* c = as<Cast>(e);
        return c && mentions(c->a);
    };
    const auto computes = [&](StepId s) { return mentions(std::get<Compute>(*kernel.step(s).statement).body); };
    return computes(lazy.weights) || any_of(lazy.again, computes);
}

std::optional<ConditionalRescale> chosen_rescale(const ScheduledKernel& kernel) {
    if (kernel.schedule.rescaling == RescaleMode::always) return std::nullopt;
    auto found = conditional_rescale(kernel);
    auto* lazy = std::get_if<ConditionalRescale>(&found);
    return lazy ? std::optional(std::move(*lazy)) : std::nullopt;
}

bool reads_again(const ScheduledKernel& kernel, StepId step, VariableId operand) {
    return kernel.rescale && kernel.rescale->weights == step &&
           any_of(kernel.rescale->again, [&](StepId again) { return reads(kernel.step(again), operand); });
}

}  // namespace napkin
