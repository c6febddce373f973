#include "algebra/index.hpp"

#include <cmath>
#include <unordered_map>

#include "algebra/expr.hpp"
#include "algebra/expr_walk.hpp"
#include "algebra/interval.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

__extension__ using Wide = __int128;

/// Sums and products stop at ±2^62, past every size there can be, so that mad indices end as out of range.
std::int64_t clamped(Wide value) {
    constexpr Wide bound = limits::max_size_product;
    return static_cast<std::int64_t>(std::clamp(value, -bound, bound));
}
std::int64_t clamped_sum(std::int64_t a, std::int64_t b) { return clamped(static_cast<Wide>(a) + b); }
std::int64_t clamped_product(std::int64_t a, std::int64_t b) { return clamped(static_cast<Wide>(a) * b); }

std::optional<std::int64_t> whole(const Expr& e) {
    const auto* c = as<Constant>(e);
    if (!c || c->value != std::floor(c->value) || std::abs(c->value) > 1e15) return std::nullopt;
    return static_cast<std::int64_t>(c->value);
}

/// The operators of indices on whole numbers; / rounds down.
std::int64_t apply_index(BinaryOp op, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BinaryOp::add: return clamped_sum(a, b);
        case BinaryOp::sub: return clamped(static_cast<Wide>(a) - b);
        case BinaryOp::mul: return clamped_product(a, b);
        case BinaryOp::div:
        case BinaryOp::floor_div: return floor_div(a, b);
        case BinaryOp::mod: return floor_mod(a, b);
        case BinaryOp::min: return std::min(a, b);
        case BinaryOp::max: return std::max(a, b);
        default: break;
    }
    throw InternalError("an operator that indices do not have");
}

Interval sum(const Interval& a, const Interval& b) { return {clamped_sum(a.low, b.low), clamped_sum(a.high, b.high)}; }

/// The least and the greatest of the four corners: for operators that are monotone in each operand.
Interval corners(BinaryOp op, const Interval& a, const Interval& b) {
    const std::int64_t all[] = {apply_index(op, a.low, b.low), apply_index(op, a.low, b.high),
                                apply_index(op, a.high, b.low), apply_index(op, a.high, b.high)};
    return {*std::min_element(std::begin(all), std::end(all)), *std::max_element(std::begin(all), std::end(all))};
}

/// The value of an index in some domain V: whole numbers, or intervals.
template <class V, class Leaf, class Apply>
V fold(const Expr& e, const Leaf& leaf, const Apply& apply, const V& minus_one) {
    if (const auto* b = as<Binary>(e))
        return apply(b->op, fold<V>(b->a, leaf, apply, minus_one), fold<V>(b->b, leaf, apply, minus_one));
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg)
        return apply(BinaryOp::mul, minus_one, fold<V>(u->a, leaf, apply, minus_one));
    return leaf(e);
}

/// Operators between two numbers, carried out; nested reads' own indices stay as they are.
Expr folded(const Expr& e) {
    return transform(e, [](const Expr& node) -> Expr {
        if (const auto* u = as<Unary>(node); u && u->op == UnaryOp::neg) {
            const auto a = whole(u->a);
            return a ? constant(static_cast<double>(-*a)) : node;
        }
        const auto* b = as<Binary>(node);
        if (!b) return node;
        const auto x = whole(b->a), y = whole(b->b);
        if (!x || !y || (b->op == BinaryOp::div && (*y == 0 || *x % *y != 0))) return node;
        if ((b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) && *y == 0) return node;
        return constant(static_cast<double>(apply_index(b->op, *x, *y)));
    });
}

}  // namespace

// ---- intervals
// ------------------------------------------------------------

Interval apply_interval(BinaryOp op, const Interval& a, const Interval& b) {
    switch (op) {
        case BinaryOp::add: return sum(a, b);
        case BinaryOp::sub:
            return {clamped(static_cast<Wide>(a.low) - b.high), clamped(static_cast<Wide>(a.high) - b.low)};
        case BinaryOp::mod:
            if (b.low != b.high || b.low <= 0) break;
            // Within one period the rest grows with the value; over several it takes every value.
            if (floor_div(a.low, b.low) == floor_div(a.high, b.low))
                return {floor_mod(a.low, b.low), floor_mod(a.high, b.low)};
            return {0, b.low - 1};
        case BinaryOp::div:
        case BinaryOp::floor_div:
            if (b.low != b.high || b.low == 0) break;
            return corners(op, a, b);
        default: return corners(op, a, b);
    }
    constexpr std::int64_t far = limits::max_size_product;
    return {-far, far};
}

Interval negated(const Interval& a) {
    return {clamped(-static_cast<Wide>(a.high)), clamped(-static_cast<Wide>(a.low))};
}
bool may_saturate(const Interval& a) {
    return a.low <= -limits::max_size_product || a.high >= limits::max_size_product;
}

// ---- affine forms
// ------------------------------------------------------------

std::int64_t Affine::coefficient(AxisId id) const {
    for (const auto& [axis, factor] : terms) {
        if (axis == id) return factor;
    }
    return 0;
}

namespace {

void add_term(std::vector<std::pair<AxisId, std::int64_t>>& terms, AxisId id, std::int64_t coefficient) {
    if (coefficient == 0) return;
    auto at = std::lower_bound(terms.begin(), terms.end(), id,
                               [](const auto& term, AxisId wanted) { return term.first < wanted; });
    if (at == terms.end() || at->first != id) {
        terms.insert(at, {id, coefficient});
        return;
    }
    at->second = clamped_sum(at->second, coefficient);
    if (at->second == 0) terms.erase(at);
}

}  // namespace

void Affine::add(AxisId id, std::int64_t coefficient) { add_term(terms, id, coefficient); }

Affine operator+(const Affine& a, const Affine& b) {
    Affine result = a;
    for (const auto& [axis, factor] : b.terms) result.add(axis, factor);
    for (const auto& [axis, factor] : b.sizes) add_term(result.sizes, axis, factor);
    result.constant = clamped_sum(result.constant, b.constant);
    return result;
}
Affine operator-(const Affine& a, const Affine& b) { return a + b * -1; }
Affine operator*(const Affine& a, std::int64_t factor) {
    Affine result;
    for (const auto& [axis, coefficient] : a.terms) result.add(axis, clamped_product(coefficient, factor));
    for (const auto& [axis, of_size] : a.sizes) add_term(result.sizes, axis, clamped_product(of_size, factor));
    result.constant = clamped_product(a.constant, factor);
    return result;
}

bool is_index_operator(BinaryOp op) {
    switch (op) {
        case BinaryOp::add:
        case BinaryOp::sub:
        case BinaryOp::mul:
        case BinaryOp::div:
        case BinaryOp::floor_div:
        case BinaryOp::mod:
        case BinaryOp::min:
        case BinaryOp::max: return true;
        default: return false;
    }
}

bool is_index(const Expr& e) {
    if (as<AxisIndex>(e) || as<AxisSize>(e) || as<Read>(e)) return true;
    if (as<Constant>(e)) return whole(e).has_value();
    if (const auto* u = as<Unary>(e)) return u->op == UnaryOp::neg && is_index(u->a);
    const auto* b = as<Binary>(e);
    return b && is_index_operator(b->op) && is_index(b->a) && is_index(b->b);
}

std::optional<Affine> affine_form(const Expr& e, const std::vector<std::int64_t>* extents) {
    if (const auto c = whole(e)) return Affine{{}, *c};
    if (const auto* size = as<AxisSize>(e); size && extents)
        return Affine{{}, extents->at(static_cast<std::size_t>(size->axis)), {{size->axis, 1}}};
    if (const auto* i = as<AxisIndex>(e)) return Affine::axis(i->axis);
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        const auto a = affine_form(u->a, extents);
        return a ? std::optional(*a * -1) : std::nullopt;
    }
    const auto* b = as<Binary>(e);
    if (!b) return std::nullopt;
    const auto x = affine_form(b->a, extents);
    const auto y = x ? affine_form(b->b, extents) : std::nullopt;
    if (!x || !y) return std::nullopt;
    if (b->op == BinaryOp::add) return *x + *y;
    if (b->op == BinaryOp::sub) return *x - *y;
    // A factor with a size in it is a number from here on.
    const auto times = [](Affine form, const Affine& factor) {
        if (!factor.sizes.empty()) form.sizes.clear();
        return form * factor.constant;
    };
    if (b->op == BinaryOp::mul && x->terms.empty()) return times(*y, *x);
    if (b->op == BinaryOp::mul && y->terms.empty()) return times(*x, *y);
    return std::nullopt;
}

// ---- indices
// ------------------------------------------------------------

Index Index::of(const Expr& value) {
    const Expr e = folded(value);
    if (auto form = affine_form(e)) return *std::move(form);
    if (read_arrays(e).empty()) return Index(Variant(QuasiAffine{e}));
    return Index(Variant(Gathered{e}));
}

const Expr* Index::expression() const {
    if (const auto* q = std::get_if<QuasiAffine>(&v_)) return &q->value;
    if (const auto* g = std::get_if<Gathered>(&v_)) return &g->value;
    return nullptr;
}

Expr Index::value() const {
    if (const Expr* e = expression()) return *e;
    const auto number = [](std::int64_t n) { return constant(static_cast<double>(n)); };
    Expr sum;
    for (const auto& [axis, factor] : affine()->terms) {
        Expr term = factor == 1 ? axis_index(axis) : binary(BinaryOp::mul, number(factor), axis_index(axis));
        sum = sum ? binary(BinaryOp::add, sum, term) : term;
    }
    if (!sum) return number(affine()->constant);
    if (affine()->constant == 0) return sum;
    const bool falls = affine()->constant < 0;
    return binary(falls ? BinaryOp::sub : BinaryOp::add, sum, number(std::abs(affine()->constant)));
}

bool Index::depends_on(AxisId id) const {
    return affine() ? affine()->coefficient(id) != 0 : depends_on_axis(*expression(), id);
}

std::vector<AxisId> Index::axes() const {
    if (!affine()) return free_axes(*expression());
    std::vector<AxisId> out;
    for (const auto& [axis, factor] : affine()->terms) out.push_back(axis);
    return out;
}

bool operator==(const Index& a, const Index& b) {
    if (a.v_.index() != b.v_.index()) return false;
    return a.affine() ? *a.affine() == *b.affine() : equal(*a.expression(), *b.expression());
}

bool depends_on(const std::vector<Index>& indices, AxisId axis) {
    return any_of(indices, [&](const Index& i) { return i.depends_on(axis); });
}

Index with_sizes(const Index& index, const std::vector<std::int64_t>& extents) {
    if (index.affine()) return index;
    if (auto form = affine_form(*index.expression(), &extents)) return *std::move(form);
    const auto size = [&](AxisId axis) {
        return constant(static_cast<double>(extents.at(static_cast<std::size_t>(axis))));
    };
    return Index::of(transform(*index.expression(), [&](const Expr& node) -> Expr {
        if (const auto* s = as<AxisSize>(node)) return size(s->axis);
        const auto* b = as<Binary>(node);
        const auto x = b ? whole(b->a) : std::nullopt, y = b ? whole(b->b) : std::nullopt;
        return x && y ? constant(static_cast<double>(apply_index(b->op, *x, *y))) : node;
    }));
}

Expr with_sizes(const Expr& e, const std::vector<std::int64_t>& extents) {
    return transform(e, [&](const Expr& node) -> Expr {
        const auto* r = as<Read>(node);
        if (!r || all_of(r->indices, [](const Index& i) { return i.affine(); })) return node;
        std::vector<Index> indices;
        for (const Index& index : r->indices) indices.push_back(with_sizes(index, extents));
        return read(r->array, std::move(indices));
    });
}

Expr substitute_axes(const Expr& e, const AxisSubstitution& f) {
    return transform(e, [&](const Expr& node) -> Expr {
        if (const auto* i = as<AxisIndex>(node)) {
            const auto there = f(i->axis);
            return there ? there->value() : node;
        }
        const auto* r = as<Read>(node);
        if (!r) return node;
        std::vector<Index> indices;
        // Indices that are no affine forms are children of the read, and done.
        for (const Index& index : r->indices) indices.push_back(index.affine() ? substitute(index, f) : index);
        return indices == r->indices ? node : read(r->array, std::move(indices));
    });
}

Index substitute(const Index& index, const AxisSubstitution& f) {
    if (!index.affine()) return Index::of(substitute_axes(*index.expression(), f));
    Affine sum{{}, index.affine()->constant, index.affine()->sizes};
    for (const auto& [axis, factor] : index.affine()->terms) {
        const auto there = f(axis);
        if (there && !there->affine()) return Index::of(substitute_axes(index.value(), f));
        sum = sum + (there ? *there->affine() : Affine::axis(axis)) * factor;
    }
    return sum;
}

// ---- values
// ------------------------------------------------------------

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    // The least integer by -1 is one more than the largest: it wraps, where the processor would trap.
    if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
    if (b == 0 || b == -1) return 0;
    // A product of the divisor and the quotient may be past what 64 bits hold; the remainder is not.
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t value_at(const Index& index, const std::vector<std::int64_t>& point,
                      const std::function<std::int64_t(const Read&)>& element) {
    if (const Affine* form = index.affine()) {
        Wide sum = form->constant;
        for (const auto& [axis, factor] : form->terms) sum += static_cast<Wide>(factor) * point[at(axis)];
        return clamped(sum);
    }
    const auto leaf = [&](const Expr& e) {
        if (const auto* i = as<AxisIndex>(e)) return point[at(i->axis)];
        if (const auto* r = as<Read>(e)) return element(*r);
        const auto number = whole(e);
        internal_check(number.has_value(), "an index holds what is no whole number");
        return *number;
    };
    return fold<std::int64_t>(*index.expression(), leaf, apply_index, -1);
}

Interval range_of(const Affine& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count) {
    Wide low = index.constant, high = index.constant;
    for (const auto& [axis, factor] : index.terms) {
        const Wide first = begin[at(axis)], last = first + count[at(axis)] - 1;
        low += factor * (factor > 0 ? first : last);
        high += factor * (factor > 0 ? last : first);
    }
    return {clamped(low), clamped(high)};
}

Interval range_of(const Index& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count,
                  const std::function<Interval(const Read&)>& element) {
    if (const Affine* form = index.affine()) return range_of(*form, begin, count);
    const auto leaf = [&](const Expr& e) -> Interval {
        if (const auto number = whole(e)) return {*number, *number};
        if (const auto* i = as<AxisIndex>(e)) return {begin[at(i->axis)], begin[at(i->axis)] + count[at(i->axis)] - 1};
        const auto* r = as<Read>(e);
        internal_check(r != nullptr, "an index holds what is no whole number");
        return element(*r);
    };
    return fold<Interval>(*index.expression(), leaf, apply_interval, Interval{-1, -1});
}

Interval range_of(const Index& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count) {
    return range_of(index, begin, count,
                    [](const Read&) -> Interval { throw InternalError("the range of an index that data decide"); });
}

}  // namespace napkin
