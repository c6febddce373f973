#include "support/random_expressions.hpp"

#include <set>

namespace napkin::random {

// ---- axes and arrays
// ---------------------------------------------------------------------------------------------------

AxisId RandomExpressions::add_axis(const std::string& wanted, std::optional<Size> size) {
    std::string name = wanted;
    for (int i = 2; d_.find_axis(name) || d_.find_array(name); ++i) name = wanted + std::to_string(i);
    d_.axes.push_back({name, std::move(size), {}});
    return AxisId::of(d_.axes.size() - 1);
}

std::vector<AxisId> RandomExpressions::random_axes() {
    const int rank = std::vector<int>{0, 1, 1, 2, 2, 2, 2, 3, 3}[static_cast<std::size_t>(pick(9))];
    std::vector<AxisId> axes;
    for (std::size_t i = 0; i < d_.axes.size(); ++i) axes.push_back(AxisId::of(i));
    shuffle(axes);
    axes.resize(std::min(axes.size(), static_cast<std::size_t>(rank)));
    return axes;
}

ArrayId RandomExpressions::add(std::vector<AxisId> axes, ArrayRole role, Range range, bool usable) {
    const std::string name = role == ArrayRole::input ? std::string(1, static_cast<char>('A' + pick(8)))
                                                      : "T" + std::to_string(d_.equations.size());
    const ArrayId id = add_array(d_, name, std::move(axes), one_of(options_.types), role);
    ranges_.push_back(range);
    usable_.push_back(usable);
    return id;
}

ArrayId RandomExpressions::add_input(std::vector<AxisId> axes) {
    const ArrayId id = add(std::move(axes), ArrayRole::input, around(6));
    d_.inputs.push_back(id);
    return id;
}

Term RandomExpressions::define(std::optional<ReduceOp> op, const std::vector<AxisId>& reduced, Term body,
                               std::optional<Range> known, bool usable) {
    const double points = std::pow(largest_extent, static_cast<double>(reduced.size()));
    if (!known) {
        if (op == ReduceOp::prod) body = number(1) + number(reduced.size() > 1 ? 0.1 : 0.3) * squashed(body);
        body = limited(body, op == ReduceOp::sum ? largest_value / points : largest_value);
    }
    Range range = known.value_or(body.range);
    if (!known && op == ReduceOp::sum) range = {std::min(0.0, range.low * points), std::max(0.0, range.high * points)};
    if (!known && op == ReduceOp::prod) range = {0, reduced.size() > 1 ? 1e6 : 70};
    std::vector<AxisId> axes;
    for (AxisId axis : free_axes(body.e)) {
        if (!contains(reduced, axis)) axes.push_back(axis);
    }
    if (!known && axes.size() < 3 && chance(5)) {
        // The same value all along an axis that the body does not know.
        const AxisId more = AxisId::of(pick(static_cast<int>(d_.axes.size())));
        const auto lists = {axes, reduced};
        const bool there = std::any_of(lists.begin(), lists.end(), [&](const auto& list) { return contains(list, more); });
        if (!there) axes.push_back(more);
    }
    shuffle(axes);
    const ArrayId target = add(axes, ArrayRole::temporary, range, usable);
    std::vector<AxisId> ascending = reduced;
    std::sort(ascending.begin(), ascending.end());
    d_.equations.push_back({target, op, std::move(ascending), body.e, {}, {}});
    return {read_self(d_, target), range};
}

// ---- operands
// ----------------------------------------------------------------------------------------------------------

ArrayId RandomExpressions::pick_array(const std::function<bool(const Array&)>& good) {
    std::vector<ArrayId> found;
    for (const ArrayId i : d_.arrays.ids()) {
        if (usable_[i] && good(d_.arrays[i])) found.push_back(i);
    }
    if (found.empty()) return -1;
    const int n = static_cast<int>(found.size());
    return found[static_cast<std::size_t>(chance(60) ? std::max(pick(n), pick(n)) : pick(n))];
}

bool RandomExpressions::fit(AxisId from, AxisId to) {
    Axis& f = d_.axes[from];
    Axis& t = d_.axes[to];
    if (from == to || (f.size && *f.size == Size(axis_symbol(to)))) return true;
    if (t.size) {
        const auto rest = (*t.size - axis_symbol(from)).as_constant();
        return rest && *rest >= Rational(0);
    }
    if (f.size) return false;  // it might be given by `to`
    t.size = axis_symbol(from) + Size(pick(3));
    return true;
}

Term RandomExpressions::operand(ArrayId id) {
    const Array& array = d_.array(id);
    Term term = self(id);
    if (!options_.affine_reads || array.axes.empty() || !chance(12)) return term;
    std::vector<Index> indices = as<Read>(term.e)->indices;
    const int dimension = pick(static_cast<int>(array.axes.size()));
    const AxisId other = AxisId::of(pick(static_cast<int>(d_.axes.size())));
    if (!fit(other, array.axes[static_cast<std::size_t>(dimension)])) return term;
    indices[static_cast<std::size_t>(dimension)] = Affine::axis(other);
    term.e = read(id, std::move(indices));
    return term;
}

std::vector<Term> RandomExpressions::operands(int count) {
    std::vector<Term> terms;
    std::set<AxisId> axes;
    for (int i = 0; i < count; ++i) {
        const ArrayId id = pick_array([](const Array&) { return true; });
        const Term term = operand(id);
        std::set<AxisId> together = axes;
        for (AxisId axis : free_axes(term.e)) together.insert(axis);
        if (together.size() > 4) continue;
        axes = std::move(together);
        terms.push_back(term);
    }
    return terms;
}

std::vector<AxisId> RandomExpressions::axes_of(const std::vector<Term>& terms) {
    std::set<AxisId> axes;
    for (const Term& term : terms) {
        for (AxisId axis : free_axes(term.e)) axes.insert(axis);
    }
    return {axes.begin(), axes.end()};
}

// ---- expressions
// -------------------------------------------------------------------------------------------------------

Term RandomExpressions::limited(const Term& t, double bound) {
    if (t.range.magnitude() <= bound) return t;
    return t * number(std::exp2(std::floor(std::log2(bound / t.range.magnitude()))));
}

Term RandomExpressions::clipped(const Range& r, Term t) {
    t.range = r;
    return t;
}

Term RandomExpressions::exponential(const Term& t) {
    Term argument = limited(t, 40);
    if (argument.range.high > 4)
        argument = chance(50) ? limited(t, 4) : Term{binary(BinaryOp::min, argument.e, constant(4)), {-40, 4}};
    return call(UnaryOp::exp, argument, {0, std::exp(argument.range.high)});
}

Term RandomExpressions::above_zero(const Term& t) {
    if (t.range.low > 0.05) return t;
    const double bound = t.range.magnitude();
    switch (pick(3)) {
        case 0: return Term{unary(UnaryOp::abs, t.e), {0, bound}} + number(0.5);
        case 1: return call(UnaryOp::exp, squashed(t), {0.3, 2.8});
        default: return number(1) + clipped({0, bound * bound}, t * t);
    }
}

Term RandomExpressions::wrapped(const Term& t) {
    switch (pick(14)) {
        case 0: return exponential(t);
        case 1: return squashed(t);
        case 2: return call(UnaryOp::abs, t, {0, t.range.magnitude()});
        case 3: return call(UnaryOp::sin, t, around(1));
        case 4: return call(UnaryOp::cos, t, around(1));
        case 5: return call(UnaryOp::erf, t, around(1));
        case 6: return {unary(UnaryOp::neg, t.e), {-t.range.high, -t.range.low}};
        case 7: {
            const Term positive = above_zero(t);
            return call(UnaryOp::sqrt, positive, {std::sqrt(positive.range.low), std::sqrt(positive.range.high)});
        }
        case 8: {
            const Term positive = above_zero(t);
            return call(UnaryOp::rsqrt, positive, {0, 1 / std::sqrt(positive.range.low)});
        }
        case 9: {
            const Term positive = above_zero(t);
            return call(UnaryOp::log, positive, {std::log(positive.range.low), std::log(positive.range.high)});
        }
        case 10: return options_.casts ? Term{cast(DType::f32, t.e), t.range} : t;
        case 11: return number(1) / (number(1) + exponential({unary(UnaryOp::neg, limited(t, 4).e), around(4)}));
        case 12: return {binary(BinaryOp::pow, limited(t, 20).e, constant(2)), {0, 400}};
        default: return {binary(BinaryOp::max, t.e, constant(0)), {0, std::max(0.0, t.range.high)}};
    }
}

Term RandomExpressions::leaf(const std::vector<AxisId>& axes) {
    const AxisId any = AxisId::of(pick(static_cast<int>(d_.axes.size())));
    switch (pick(5)) {
        case 0: return {binary(BinaryOp::pow, axis_size(any), constant(-0.5)), {0.1, 1}};
        case 1: return Term{axis_size(any), {1, 40}} * number(0.125);
        case 2:
            if (!axes.empty()) return Term{axis_index(one_of(axes)), {0, 40}} * number(0.125);
            [[fallthrough]];
        default: return number(one_of(std::vector<double>{0.5, -1, 2, 0.1, 1, -0.75, 3}));
    }
}

Expr RandomExpressions::condition(const std::vector<AxisId>& axes) {
    const AxisId a = one_of(axes), b = one_of(axes);
    const Expr i = axis_index(a), j = axis_index(b);
    const auto compare = [&](BinaryOp op, const Expr& x, const Expr& y) { return binary(op, x, y); };
    const Expr few = constant(pick(6));
    switch (pick(7)) {
        case 0: return compare(BinaryOp::lt, i, few);
        case 1: return compare(BinaryOp::ge, i, few);
        case 2: return compare(BinaryOp::ne, i, few);
        case 3:
            return compare(BinaryOp::logical_and, compare(BinaryOp::le, j, i),
                           compare(BinaryOp::lt, binary(BinaryOp::sub, i, j), constant(1 + pick(4))));
        case 4: return compare(BinaryOp::lt, unary(UnaryOp::abs, binary(BinaryOp::sub, i, j)), constant(1 + pick(4)));
        case 5: return unary(UnaryOp::logical_not, compare(BinaryOp::eq, i, j));
        default: return compare(BinaryOp::le, j, binary(BinaryOp::add, i, constant(pick(3))));
    }
}

Term RandomExpressions::combined(const Term& a, const Term& b, const std::vector<AxisId>& axes) {
    const Range both{std::min(a.range.low, b.range.low), std::max(a.range.high, b.range.high)};
    switch (pick(14)) {
        case 0:
        case 1:
        case 2: return a + b;
        case 3:
        case 4: return a - b;
        case 5: return limited(a, 100) / above_zero(b);
        case 6: return {binary(BinaryOp::max, a.e, b.e), both};
        case 7: return {binary(BinaryOp::min, a.e, b.e), both};
        case 8:
            if (options_.masks && !axes.empty()) return {select(condition(axes), a.e, b.e), both};
            [[fallthrough]];
        default: return limited(a, 100) * limited(b, 100);
    }
}

Term RandomExpressions::expression(std::vector<Term> terms) {
    const std::vector<AxisId> axes = axes_of(terms);
    if (chance(35)) terms.push_back(leaf(axes));
    if (chance(15)) terms.push_back(one_of(terms));
    shuffle(terms);
    Term result = terms[0];
    if (chance(35)) result = wrapped(result);
    for (std::size_t i = 1; i < terms.size(); ++i) {
        const Term other = chance(30) ? wrapped(terms[i]) : terms[i];
        result = chance(50) ? combined(result, other, axes) : combined(other, result, axes);
        if (chance(20)) result = wrapped(result);
        result = limited(result, largest_value);
    }
    if (options_.masks && !axes.empty() && chance(12)) {
        result = {select(condition(axes), result.e, constant(0)),
                  {std::min(0.0, result.range.low), std::max(0.0, result.range.high)}};
    }
    return result;
}

}  // namespace napkin::random
