#include "differentiate/references.hpp"

#include <cmath>
#include <numbers>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/polynomial.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// What becomes of a value when δ is added to the reference's element at these indices.
struct Effect {
    enum class Kind : std::uint8_t { moves, scales, unknown };
    Kind kind = Kind::moves;
    Polynomial by = {};                         ///< c: it moves by c·δ, or is multiplied by e^(c·δ); 0: it stays
    std::vector<Index> at = {};                 ///< where c is not 0
    bool is_zero = false, is_infinite = false;  ///< a constant that no factor, or no step, changes

    [[nodiscard]] bool stays() const { return kind != Kind::unknown && by.empty(); }
    [[nodiscard]] bool fits_any(Kind other) const {
        return (is_zero && other == Kind::scales) || (is_infinite && other == Kind::moves);
    }
};
const Effect unknown{.kind = Effect::Kind::unknown};

Polynomial number(double value) { return polynomial(constant(value)); }

/// The same for both; a constant that is not changed takes the other's.
Effect common(const Effect& a, const Effect& b) {
    if (a.stays() && b.stays()) return {};
    if (a.fits_any(b.kind)) return b;
    if (b.fits_any(a.kind)) return a;
    return a.kind == b.kind && a.by == b.by && a.at == b.at ? a : unknown;
}

/// Both move, or both scale, by the sum of what they do.
Effect together(const Effect& a, const Effect& b, double sign, Effect::Kind kind) {
    if ((!a.stays() && a.kind != kind) || (!b.stays() && b.kind != kind)) return unknown;
    if (!a.stays() && !b.stays() && a.at != b.at) return unknown;
    return {kind, a.by + number(sign) * b.by, a.stays() ? b.at : a.at};
}

Effect times(Effect a, const Polynomial& factor) {
    a.by = a.by * factor;
    return a;
}

class Effects {
public:
    Effects(const Diagram& diagram, ArrayId reference)
        : d_(diagram), reference_(reference), of_(diagram.arrays.size()) {}

    [[nodiscard]] bool outputs_stay() {
        for (const Equation& e : d_.equations) {
            if (e.target == reference_) continue;
            if (!any_of(read_arrays(e.body), [&](ArrayId id) { return id == reference_ || !of_[at(id)].stays(); }))
                continue;
            of_[at(e.target)] = reduced(e, of_body(e.body));
        }
        return d_.array(reference_).role == ArrayRole::temporary &&
               all_of(d_.outputs, [&](ArrayId id) { return of_[at(id)].stays(); });
    }

private:
    static Effect reduced(const Equation& e, Effect body) {
        if (!e.reduce || body.stays()) return body;
        if (any_of(e.reduce_axes, [&](AxisId axis) { return depends_on(body.at, axis); })) return unknown;
        const bool is_extremum = e.reduce == ReduceOp::max || e.reduce == ReduceOp::min;
        const bool is_sum = e.reduce == ReduceOp::sum && body.kind == Effect::Kind::scales;
        return is_extremum || is_sum ? body : unknown;
    }

    Effect of_read(const Read& r) const {
        if (r.array == reference_) return {Effect::Kind::moves, number(1), r.indices};
        Effect out = of_[at(r.array)];
        const std::vector<AxisId>& axes = d_.array(r.array).axes;
        for (Index& index : out.at)
            index = substitute(index, [&](AxisId axis) -> std::optional<Index> {
                const auto place = find(axes, axis);
                return place == axes.end() ? std::nullopt : std::optional(r.indices[at(place - axes.begin())]);
            });
        return out;
    }

    /// What stays, as a factor of δ: a number for all points.
    static bool is_factor(const Expr& e) { return free_axes(e).empty(); }

    static Effect of_function(UnaryOp op, const Effect& a) {
        if (a.stays()) return {};
        const bool moves = a.kind == Effect::Kind::moves, scales = a.kind == Effect::Kind::scales;
        const auto becomes = [&](Effect::Kind kind, double factor) {
            Effect out = times(a, number(factor));
            out.kind = kind;
            return out;
        };
        switch (op) {
            case UnaryOp::neg: return moves ? times(a, number(-1)) : a;
            case UnaryOp::abs: return scales ? a : unknown;
            case UnaryOp::exp: return moves ? becomes(Effect::Kind::scales, 1) : unknown;
            case UnaryOp::exp2: return moves ? becomes(Effect::Kind::scales, std::numbers::ln2) : unknown;
            case UnaryOp::log: return scales ? becomes(Effect::Kind::moves, 1) : unknown;
            case UnaryOp::log2: return scales ? becomes(Effect::Kind::moves, std::numbers::log2e) : unknown;
            case UnaryOp::sqrt: return scales ? times(a, number(0.5)) : unknown;
            case UnaryOp::rsqrt: return scales ? times(a, number(-0.5)) : unknown;
            default: return unknown;
        }
    }

    static Effect of_binary(const Binary& n, const Effect& a, const Effect& b) {
        if (a.kind == Effect::Kind::unknown || b.kind == Effect::Kind::unknown) return unknown;
        if (a.stays() && b.stays()) return {};
        switch (n.op) {
            case BinaryOp::add:
            case BinaryOp::sub: {
                const bool moves = (a.stays() || a.kind == Effect::Kind::moves) &&
                                   (b.stays() || b.kind == Effect::Kind::moves);
                return moves ? together(a, b, n.op == BinaryOp::add ? 1 : -1, Effect::Kind::moves) : common(a, b);
            }
            case BinaryOp::mul:
                if (a.kind == Effect::Kind::moves && !a.stays())
                    return b.stays() && is_factor(n.b) ? times(a, polynomial(n.b)) : unknown;
                if (b.kind == Effect::Kind::moves && !b.stays())
                    return a.stays() && is_factor(n.a) ? times(b, polynomial(n.a)) : unknown;
                return together(a, b, 1, Effect::Kind::scales);
            case BinaryOp::div:
                if (a.kind == Effect::Kind::moves && !a.stays()) {
                    const auto factor = b.stays() && is_factor(n.b) ? quotient(number(1), polynomial(n.b)) : std::nullopt;
                    return factor ? times(a, *factor) : unknown;
                }
                return together(a, b, -1, Effect::Kind::scales);
            case BinaryOp::pow:
                return b.stays() && is_factor(n.b) && a.kind == Effect::Kind::scales ? times(a, polynomial(n.b)) : unknown;
            case BinaryOp::max:
            case BinaryOp::min: return common(a, b);
            default:
                // A comparison of what moves alike.
                return is_comparison(n.op) && common(a, b).kind != Effect::Kind::unknown ? Effect{} : unknown;
        }
    }

    /// Whether the condition compares what is changed with 0 or an infinity. Values that are just that stand for rows
    /// of nothing, in which all derivatives are 0: the choice is as if it did not hold.
    static std::optional<bool> holds_nowhere(const Expr& condition) {
        const auto* n = as<Binary>(condition);
        if (!n || (n->op != BinaryOp::eq && n->op != BinaryOp::ne)) return std::nullopt;
        const auto* c = as<Constant>(n->b);
        if (!c || (c->value != 0 && !std::isinf(c->value))) return std::nullopt;
        return n->op == BinaryOp::eq;
    }

    Effect of_body(const Expr& body) const {
        std::unordered_map<const ExprNode*, Effect> effects;
        const auto of = [&](const Expr& part) -> const Effect& { return effects.at(part.get()); };
        for_each_postorder(
            body,
            [&](const Expr& node) {
                Effect out;
                if (const auto* c = as<Constant>(node)) {
                    out.is_zero = c->value == 0, out.is_infinite = std::isinf(c->value);
                } else if (const auto* r = as<Read>(node)) {
                    out = of_read(*r);
                } else if (const auto* u = as<Unary>(node)) {
                    out = of_function(u->op, of(u->a));
                } else if (const auto* b = as<Binary>(node)) {
                    out = of_binary(*b, of(b->a), of(b->b));
                } else if (const auto* c2 = as<Cast>(node)) {
                    out = is_float(c2->type) || of(c2->a).stays() ? of(c2->a) : unknown;
                } else if (const auto* s = as<Select>(node)) {
                    const auto* compared = as<Binary>(s->condition);
                    const auto nowhere = compared && !of(compared->a).stays() ? holds_nowhere(s->condition) : std::nullopt;
                    out = nowhere                    ? of(*nowhere ? s->b : s->a)
                          : of(s->condition).stays() ? common(of(s->a), of(s->b))
                                                     : unknown;
                }
                effects[node.get()] = std::move(out);
            },
            Walk::values);
        return of(body);
    }

    const Diagram& d_;
    const ArrayId reference_;
    std::vector<Effect> of_;  ///< by array
};

}  // namespace

std::set<ArrayId> cancelling_references(const Diagram& diagram) {
    std::set<ArrayId> out;
    for (const Equation& e : diagram.equations) {
        const bool is_extremum = e.reduce == ReduceOp::max || e.reduce == ReduceOp::min;
        if (is_extremum && Effects(diagram, e.target).outputs_stay()) out.insert(e.target);
    }
    return out;
}

}  // namespace napkin
