#include "derive/support.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace napkin {
namespace {
using Forms = std::vector<MaskForm>;

/// What a body is compared with: the identity of the reduction.
enum class Null { zero, one, minus_infinity, plus_infinity };

double value_of(Null null) {
    switch (null) {
        case Null::zero: return 0;
        case Null::one: return 1;
        case Null::minus_infinity: return -infinity;
        case Null::plus_infinity: return infinity;
    }
    return 0;
}

bool is_null(const Expr& e, Null null) {
    const auto* c = as<Constant>(e);
    return c && c->value == value_of(null);
}

Null opposite(Null null) {
    return null == Null::minus_infinity  ? Null::plus_infinity
           : null == Null::plus_infinity ? Null::minus_infinity
                                         : null;
}

class Search {
public:
    explicit Search(const ValuesOf& values) : values_(values) {}

    [[nodiscard]] Forms forms(const Expr& e, Null null) const {
        if (const auto* s = as<Select>(e)) {
            if (is_null(s->b, null)) return united(implied_mask_forms(s->condition, true), forms(s->a, null));
            if (is_null(s->a, null)) return united(implied_mask_forms(s->condition, false), forms(s->b, null));
            return common(forms(s->a, null), forms(s->b, null));
        }
        if (const auto* b = as<Binary>(e)) {
            if (null == Null::zero && b->op >= BinaryOp::lt) return implied_mask_forms(e, true);
            return of_binary(*b, null);
        }
        if (const auto* u = as<Unary>(e)) return of_unary(*u, null);
        if (const auto* c = as<Cast>(e)) return forms(c->a, null);
        return {};
    }

private:
    const ValuesOf& values_;

    /// An infinity absorbs what is added to it, but for the other infinity and NaN.
    [[nodiscard]] Forms absorbing(const Expr& e, Null null, const Expr& added, Null opposite_there) const {
        const ValueClass other = values_(added);
        const auto there = opposite_there == Null::plus_infinity ? ValueClass::infinite : ValueClass::minus_infinite;
        if (other.has(there) || other.has(ValueClass::undefined)) return {};
        return forms(e, null);
    }

    /// An infinity stays itself under this factor or divisor.
    [[nodiscard]] bool scales(const Expr& factor) const { return is_positive(factor) && values_(factor).is_finite(); }

    [[nodiscard]] Forms of_binary(const Binary& b, Null null) const {
        const bool infinite = null == Null::minus_infinity || null == Null::plus_infinity;
        switch (b.op) {
            case BinaryOp::mul:
                if (null == Null::zero) return united(forms(b.a, null), forms(b.b, null));
                if (infinite && scales(b.b)) return forms(b.a, null);
                if (infinite && scales(b.a)) return forms(b.b, null);
                return {};
            case BinaryOp::div:
                if (null == Null::zero || (infinite && scales(b.b))) return forms(b.a, null);
                return {};
            case BinaryOp::add:
                if (infinite)
                    return united(absorbing(b.a, null, b.b, opposite(null)), absorbing(b.b, null, b.a, opposite(null)));
                return null == Null::zero ? common(forms(b.a, null), forms(b.b, null)) : Forms{};
            case BinaryOp::sub:
                if (infinite)
                    return united(absorbing(b.a, null, b.b, null), absorbing(b.b, opposite(null), b.a, opposite(null)));
                return null == Null::zero ? common(forms(b.a, null), forms(b.b, null)) : Forms{};
            case BinaryOp::pow: {
                const auto* c = as<Constant>(b.b);
                return null == Null::zero && c && c->value > 0 ? forms(b.a, null) : Forms{};
            }
            case BinaryOp::min:
            case BinaryOp::max: {
                const bool absorbs = null == (b.op == BinaryOp::min ? Null::minus_infinity : Null::plus_infinity);
                return absorbs ? united(forms(b.a, null), forms(b.b, null)) : common(forms(b.a, null), forms(b.b, null));
            }
            default: return {};
        }
    }

    /// A function gives `null` where it has the argument of which it does.
    [[nodiscard]] Forms of_unary(const Unary& u, Null null) const {
        Forms out;
        for (const Null of : {Null::zero, Null::one, Null::minus_infinity, Null::plus_infinity}) {
            // The sign of a zero depends on how it came about.
            const bool gives_it = apply(u.op, value_of(of)) == value_of(null) &&
                                  (of != Null::zero || apply(u.op, -0.0) == value_of(null));
            if (gives_it) out = united(out, forms(u.a, of));
        }
        return out;
    }
};

}  // namespace

std::vector<MaskForm> common(const std::vector<MaskForm>& a, const std::vector<MaskForm>& b) {
    Forms out;
    for (const auto& f : a)
        if (contains(b, f)) out.push_back(f);
    return out;
}

std::vector<MaskForm> support(const Expr& body, ReduceOp op, const ValuesOf& values) {
    const Search search(values);
    switch (op) {
        case ReduceOp::sum: return search.forms(body, Null::zero);
        case ReduceOp::prod: return search.forms(body, Null::one);
        case ReduceOp::max: return search.forms(body, Null::minus_infinity);
        case ReduceOp::min: return search.forms(body, Null::plus_infinity);
    }
    return {};
}

}  // namespace napkin
