#include "support/random_diagram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "support/result.hpp"

namespace napkin {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double largest_value = 1000;  ///< that an array may hold
constexpr double largest_extent = 16;   ///< in the bounds of sums

/// Bounds on a value for inputs in [-6, 6]: what keeps the diagrams tame.
struct Range {
    double low = 0, high = 0;
    [[nodiscard]] double magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
};
Range around(double bound) { return {-bound, bound}; }

struct Term {
    Expr e;
    Range range;
};

// Arithmetic on terms carries the bounds along.
Term number(double value) { return {constant(value), {value, value}}; }
Term operator+(const Term& a, const Term& b) {
    return {binary(BinaryOp::add, a.e, b.e), {a.range.low + b.range.low, a.range.high + b.range.high}};
}
Term operator-(const Term& a, const Term& b) {
    return {binary(BinaryOp::sub, a.e, b.e), {a.range.low - b.range.high, a.range.high - b.range.low}};
}
Term operator*(const Term& a, const Term& b) {
    const auto corners = {a.range.low * b.range.low, a.range.low * b.range.high, a.range.high * b.range.low,
                          a.range.high * b.range.high};
    return {binary(BinaryOp::mul, a.e, b.e), {std::min(corners), std::max(corners)}};
}
/// Pre: b is above 0.
Term operator/(const Term& a, const Term& b) {
    const Range inverse{1 / b.range.high, 1 / b.range.low};
    return {binary(BinaryOp::div, a.e, b.e), (a * Term{b.e, inverse}).range};
}
Term call(UnaryOp op, const Term& a, Range range) { return {unary(op, a.e), range}; }

class Generator {
public:
    Generator(std::uint64_t seed, const RandomDiagramOptions& options)
        : random_(seed * 0x9E3779B97F4A7C15ULL + 1), options_(options) {}

    Diagram run() {
        d_.name = "random";
        const int axes = std::min(options_.max_axes, 2 + pick(4));
        for (int i = 0; i < axes; ++i) add_axis(std::string(1, "qxkdhb"[i % 6]));
        const int inputs = 1 + pick(options_.max_inputs);
        for (int i = 0; i < inputs; ++i) add_input(random_axes());
        const int equations = 2 + pick(options_.max_equations - 1);
        while (static_cast<int>(d_.equations.size()) < equations) recipe();
        choose_outputs();
        return std::move(d_);
    }

private:
    // ---- choices -----------------------------------------------------------------------------------------------------------
    int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(std::max(1, n))); }
    bool chance(int percent) { return pick(100) < percent; }
    template <class T>
    const T& one_of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(pick(static_cast<int>(list.size())))];
    }
    template <class T>
    void shuffle(std::vector<T>& list) {
        for (std::size_t i = list.size(); i > 1; --i)
            std::swap(list[i - 1], list[static_cast<std::size_t>(pick(static_cast<int>(i)))]);
    }
    [[nodiscard]] bool room_for(int equations) const {
        return static_cast<int>(d_.equations.size()) + equations <= options_.max_equations;
    }
    [[nodiscard]] bool room_for_axes(int axes) const {
        return static_cast<int>(d_.axes.size()) + axes <= options_.max_axes;
    }

    // ---- axes and arrays ---------------------------------------------------------------------------------------------------
    AxisId add_axis(const std::string& wanted, std::optional<Size> size = std::nullopt) {
        std::string name = wanted;
        for (int i = 2; d_.find_axis(name) || d_.find_array(name); ++i) name = wanted + std::to_string(i);
        d_.axes.push_back({name, std::move(size), {}});
        return static_cast<AxisId>(d_.axes.size()) - 1;
    }
    std::vector<AxisId> random_axes() {
        const int rank = std::vector<int>{0, 1, 1, 2, 2, 2, 2, 3, 3}[static_cast<std::size_t>(pick(9))];
        std::vector<AxisId> axes;
        for (std::size_t i = 0; i < d_.axes.size(); ++i) axes.push_back(static_cast<AxisId>(i));
        shuffle(axes);
        axes.resize(std::min(axes.size(), static_cast<std::size_t>(rank)));
        return axes;
    }
    ArrayId add(std::vector<AxisId> axes, ArrayRole role, Range range, bool usable = true) {
        const std::string name = role == ArrayRole::input ? std::string(1, static_cast<char>('A' + pick(8)))
                                                          : "T" + std::to_string(d_.equations.size());
        const ArrayId id = add_array(d_, name, std::move(axes), one_of(options_.types), role);
        ranges_.push_back(range);
        usable_.push_back(usable);
        return id;
    }
    ArrayId add_input(std::vector<AxisId> axes) {
        const ArrayId id = add(std::move(axes), ArrayRole::input, around(6));
        d_.inputs.push_back(id);
        return id;
    }
    /// target = [op over reduced] body; the target's axes are those of the body that are not reduced, in random order.
    Term define(std::optional<ReduceOp> op, const std::vector<AxisId>& reduced, Term body,
                std::optional<Range> known = std::nullopt, bool usable = true) {
        const double points = std::pow(largest_extent, static_cast<double>(reduced.size()));
        if (!known) {
            if (op == ReduceOp::prod) body = number(1) + number(reduced.size() > 1 ? 0.1 : 0.3) * squashed(body);
            body = limited(body, op == ReduceOp::sum ? largest_value / points : largest_value);
        }
        Range range = known.value_or(body.range);
        if (!known && op == ReduceOp::sum)
            range = {std::min(0.0, range.low * points), std::max(0.0, range.high * points)};
        if (!known && op == ReduceOp::prod) range = {0, reduced.size() > 1 ? 1e6 : 70};
        std::vector<AxisId> axes;
        for (AxisId axis : free_axes(body.e)) {
            if (std::find(reduced.begin(), reduced.end(), axis) == reduced.end()) axes.push_back(axis);
        }
        if (!known && axes.size() < 3 && chance(5)) {
            // The same value all along an axis that the body does not know.
            const AxisId more = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())));
            const auto lists = {axes, reduced};
            const bool there = std::any_of(lists.begin(), lists.end(), [&](const auto& list) {
                return std::find(list.begin(), list.end(), more) != list.end();
            });
            if (!there) axes.push_back(more);
        }
        shuffle(axes);
        const ArrayId target = add(axes, ArrayRole::temporary, range, usable);
        std::vector<AxisId> ascending = reduced;
        std::sort(ascending.begin(), ascending.end());
        d_.equations.push_back({target, op, std::move(ascending), body.e, {}, {}});
        return {read_self(d_, target), range};
    }

    // ---- operands ----------------------------------------------------------------------------------------------------------
    Term self(ArrayId id) { return {read_self(d_, id), ranges_[static_cast<std::size_t>(id)]}; }

    /// An array, more often one of the last; -1 when none will do.
    ArrayId pick_array(const std::function<bool(const Array&)>& good) {
        std::vector<ArrayId> found;
        for (std::size_t i = 0; i < d_.arrays.size(); ++i) {
            if (usable_[i] && good(d_.arrays[i])) found.push_back(static_cast<ArrayId>(i));
        }
        if (found.empty()) return -1;
        const int n = static_cast<int>(found.size());
        return found[static_cast<std::size_t>(chance(60) ? std::max(pick(n), pick(n)) : pick(n))];
    }
    static bool has(const Array& array, AxisId axis) {
        return std::find(array.axes.begin(), array.axes.end(), axis) != array.axes.end();
    }

    /// Makes sure that every index of axis `from` is one of axis `to`, by giving `to` a size if it has none.
    bool fit(AxisId from, AxisId to) {
        Axis& f = d_.axes[static_cast<std::size_t>(from)];
        Axis& t = d_.axes[static_cast<std::size_t>(to)];
        if (from == to || (f.size && *f.size == Size::symbol(t.name))) return true;
        if (t.size) {
            const auto rest = (*t.size - Size::symbol(f.name)).as_constant();
            return rest && *rest >= Rational(0);
        }
        if (f.size) return false;  // it might be given by `to`
        t.size = Size::symbol(f.name) + Size(pick(3));
        return true;
    }

    /// The array at its own axes, or now and then with an index of another axis.
    Term operand(ArrayId id) {
        const Array& array = d_.array(id);
        Term term = self(id);
        if (!options_.affine_reads || array.axes.empty() || !chance(12)) return term;
        std::vector<Index> indices = as<Read>(term.e)->indices;
        const int dimension = pick(static_cast<int>(array.axes.size()));
        const AxisId other = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())));
        if (!fit(other, array.axes[static_cast<std::size_t>(dimension)])) return term;
        indices[static_cast<std::size_t>(dimension)] = Affine::axis(other);
        term.e = read(id, std::move(indices));
        return term;
    }

    std::vector<Term> operands(int count) {
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
    static std::vector<AxisId> axes_of(const std::vector<Term>& terms) {
        std::set<AxisId> axes;
        for (const Term& term : terms) {
            for (AxisId axis : free_axes(term.e)) axes.insert(axis);
        }
        return {axes.begin(), axes.end()};
    }

    // ---- expressions -------------------------------------------------------------------------------------------------------
    Term limited(const Term& t, double bound) {
        if (t.range.magnitude() <= bound) return t;
        return t * number(std::exp2(std::floor(std::log2(bound / t.range.magnitude()))));
    }
    static Term squashed(const Term& t) { return call(UnaryOp::tanh, t, around(1)); }
    static Term clipped(const Range& r, Term t) {
        t.range = r;
        return t;
    }
    Term exponential(const Term& t) {
        Term argument = limited(t, 40);
        if (argument.range.high > 4)
            argument = chance(50) ? limited(t, 4) : Term{binary(BinaryOp::min, argument.e, constant(4)), {-40, 4}};
        return call(UnaryOp::exp, argument, {0, std::exp(argument.range.high)});
    }
    Term above_zero(const Term& t) {
        if (t.range.low > 0.05) return t;
        const double bound = t.range.magnitude();
        switch (pick(3)) {
            case 0: return Term{unary(UnaryOp::abs, t.e), {0, bound}} + number(0.5);
            case 1: return call(UnaryOp::exp, squashed(t), {0.3, 2.8});
            default: return number(1) + clipped({0, bound * bound}, t * t);
        }
    }
    Term wrapped(const Term& t) {
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
    Term leaf(const std::vector<AxisId>& axes) {
        const AxisId any = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())));
        switch (pick(5)) {
            case 0: return {binary(BinaryOp::pow, axis_size(any), constant(-0.5)), {0.1, 1}};
            case 1: return Term{axis_size(any), {1, 40}} * number(0.125);
            case 2:
                if (!axes.empty()) return Term{axis_index(one_of(axes)), {0, 40}} * number(0.125);
                [[fallthrough]];
            default: return number(one_of(std::vector<double>{0.5, -1, 2, 0.1, 1, -0.75, 3}));
        }
    }
    /// A comparison of indices; nothing when there is no axis to compare.
    Expr condition(const std::vector<AxisId>& axes) {
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
            case 4:
                return compare(BinaryOp::lt, unary(UnaryOp::abs, binary(BinaryOp::sub, i, j)), constant(1 + pick(4)));
            case 5: return unary(UnaryOp::logical_not, compare(BinaryOp::eq, i, j));
            default: return compare(BinaryOp::le, j, binary(BinaryOp::add, i, constant(pick(3))));
        }
    }
    Term combined(const Term& a, const Term& b, const std::vector<AxisId>& axes) {
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
    /// An expression that reads every operand, some twice.
    Term expression(std::vector<Term> terms) {
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

    // ---- recipes: one or a few equations each --------------------------------------------------------------------------------
    void recipe() {
        switch (pick(13)) {
            case 0:
            case 1: return elementwise();
            case 2:
            case 3: return reduction();
            case 4:
            case 5: return contraction();
            case 6:
            case 7:
            case 8: return weighted_sum();
            case 9: return centred();
            case 10:
            case 11: return chain();
            default: return windows();
        }
    }

    void elementwise() { define(std::nullopt, {}, expression(operands(1 + pick(3)))); }

    void reduction() {
        const std::vector<Term> terms = operands(1 + pick(3));
        std::vector<AxisId> axes = axes_of(terms);
        if (axes.empty()) return elementwise();
        shuffle(axes);
        axes.resize(std::min(axes.size(), static_cast<std::size_t>(chance(25) ? 2 : 1)));
        // Perhaps an axis that the body does not know.
        if (chance(8) && options_.loose_reductions)
            axes = {static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())))};
        const std::vector operators{ReduceOp::sum, ReduceOp::sum, ReduceOp::sum, ReduceOp::prod,
                                    ReduceOp::max, ReduceOp::max, ReduceOp::min};
        const ReduceOp op = one_of(operators);
        define(op, axes, expression(terms));
    }

    /// An axis of some array, and that array; chance decides which.
    ArrayId pick_with_axis(AxisId& axis) {
        const ArrayId id = pick_array([](const Array& a) { return !a.axes.empty(); });
        if (id >= 0) {
            axis = one_of(d_.array(id).axes);
            return id;
        }
        axis = 0;
        return add_input({0, 1});
    }
    /// Another operand that carries the axis; an input made for it when there is none.
    ArrayId partner(AxisId axis, ArrayId first) {
        const ArrayId id = pick_array(
            [&](const Array& a) { return has(a, axis) && &a != &d_.array(first) && a.axes.size() <= 3; });
        if (id >= 0 && (chance(80) || static_cast<int>(d_.inputs.size()) >= options_.max_inputs)) return id;
        std::vector<AxisId> axes{axis};
        const AxisId other = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())));
        if (other != axis) axes.push_back(other);
        return add_input(std::move(axes));
    }

    void contraction() {
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis), b = partner(axis, a);
        std::vector<AxisId> axes{axis};
        for (AxisId other : d_.array(a).axes) {
            if (other != axis && has(d_.array(b), other) && chance(40) && axes.size() < 2) axes.push_back(other);
        }
        define(ReduceOp::sum, axes, limited(self(a), 10) * limited(self(b), 10));
    }

    /// The weights exp(s - max s), their sum, and what is made of them: nothing, a normalised map, weighted sums, the logarithm.
    void weighted_sum() {
        if (!room_for(3)) return reduction();
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        Term s = limited(self(a), 50);
        if (chance(30)) s = s * Term{binary(BinaryOp::pow, axis_size(axis), constant(-0.5)), {0, 1}};
        if (chance(15)) s = expression({s});
        if (!depends_on_axis(s.e, axis)) s = self(a);
        const std::vector<AxisId> axes = free_axes(s.e);
        bool masked = false;
        if (options_.masks && axes.size() > 1 && chance(45)) {
            // The first position stays, so every row keeps a value and -inf meets no -inf.
            AxisId row = one_of(axes);
            if (row != axis) {
                const Expr limit = chance(50) ? axis_index(row)
                                              : binary(BinaryOp::add, axis_index(row), constant(1 + pick(2)));
                s.e = select(binary(BinaryOp::le, axis_index(axis), limit), s.e, constant(-inf));
                masked = true;
            }
        } else if (options_.masks && chance(15)) {
            s.e = select(condition(axes), s.e, constant(-20));
            s.range.low = std::min(s.range.low, -20.0);
        }
        const Range finite = s.range;
        if (chance(40) && room_for(3)) s = define(std::nullopt, {}, s, finite, !masked);
        std::vector<AxisId> over{axis};
        if (!masked && axes.size() > 2 && chance(15)) over.push_back(axes[0] == axis ? axes[1] : axes[0]);
        const bool shifted = masked || finite.high > 4 || chance(70);
        Term weight = call(UnaryOp::exp, s, {0, std::exp(std::min(4.0, finite.high))});
        Term maximum = number(0);
        if (shifted) {
            maximum = define(ReduceOp::max, over, s, finite);
            weight = call(UnaryOp::exp, s - maximum, {0, 1});
        }
        if (chance(15) && room_for(2)) weight = define(std::nullopt, {}, weight, weight.range);
        const double points = std::pow(largest_extent, static_cast<double>(over.size()));
        const double least = shifted ? 1 : std::max(1e-9, std::exp(finite.low));
        const Term total = define(ReduceOp::sum, over, weight, Range{least, weight.range.high * points});
        for (int more = 1 + pick(2); more > 0 && room_for(1); --more) {
            switch (pick(6)) {
                case 0: define(std::nullopt, {}, maximum + call(UnaryOp::log, total, around(60)), around(120)); break;
                case 1: define(std::nullopt, {}, weight / total, Range{0, 1}); break;
                default: {
                    const Term value = limited(self(partner(axis, a)), 50);
                    if (chance(40) && room_for(2)) {
                        const Term share = define(std::nullopt, {}, weight / total, Range{0, 1});
                        define(ReduceOp::sum, over, share * value,
                               around(value.range.magnitude() * (over.size() > 1 ? largest_extent : 1)));
                    } else {
                        Term body = chance(50)   ? weight * value / total
                                    : chance(50) ? weight / total * value
                                                 : weight * value;
                        define(ReduceOp::sum, over, body, around(value.range.magnitude() * points * weight.range.high));
                        if (chance(40) && room_for(1)) {
                            const ArrayId sum = static_cast<ArrayId>(d_.arrays.size()) - 1;
                            define(std::nullopt, {},
                                   limited(self(sum), 10) / Term{total.e, {std::max(least, 0.01), points}});
                        }
                    }
                }
            }
        }
    }

    /// Mean, squares about it (or about zero), the normalised value and its contraction.
    void centred() {
        if (!room_for(2)) return reduction();
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        const Term value = limited(self(a), 20);
        const double bound = value.range.magnitude();
        const Term count{axis_size(axis), {1, 40}};
        Term centre = value;
        if (chance(75)) {
            Term mean = number(0);
            if (chance(50)) {
                mean = define(ReduceOp::sum, {axis}, value / count, around(bound));
            } else {
                mean = define(ReduceOp::sum, {axis}, value, around(bound * largest_extent));
                mean = clipped(around(bound), mean / count);
                if (chance(40) && room_for(2)) mean = define(std::nullopt, {}, mean, around(bound));
            }
            centre = clipped(around(2 * bound), value - mean);
            if (chance(25) && room_for(2)) centre = define(std::nullopt, {}, centre, around(2 * bound));
        }
        const Term square = chance(50) ? centre * centre : Term{binary(BinaryOp::pow, centre.e, constant(2)), {}};
        const Range squares{0, 4 * bound * bound};
        Term spread = define(ReduceOp::sum, {axis},
                             clipped(squares, chance(50) ? clipped(squares, square) / count : square),
                             Range{0, squares.high * largest_extent});
        if (!room_for(1)) return;
        if (chance(30)) spread = spread / count;
        const Term scale = call(UnaryOp::rsqrt, spread + number(one_of(std::vector<double>{1e-3, 0.1, 1})), {0, 30});
        Term normal = clipped(around(largest_extent), centre * scale);
        if (chance(60)) normal = define(std::nullopt, {}, normal, around(largest_extent));
        if (room_for(1) && chance(60)) define(ReduceOp::sum, {axis}, normal * limited(self(partner(axis, a)), 6));
    }

    /// Reductions over one axis, each of which may use those before it.
    void chain() {
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        std::vector<Term> earlier;
        for (int steps = 2 + pick(2); steps > 0 && room_for(1); --steps) {
            std::vector<Term> terms{self(a)};
            if (!earlier.empty()) terms.push_back(earlier.back());
            if (earlier.size() > 1 && chance(50)) terms.push_back(earlier.front());
            if (chance(25)) {
                const Term more = self(partner(axis, a));
                std::vector<Term> together = terms;
                together.push_back(more);
                if (axes_of(together).size() <= 4) terms = std::move(together);
            }
            Term body = expression(terms);
            if (!depends_on_axis(body.e, axis)) body = limited(body, 100) * limited(self(a), 10);
            earlier.push_back(
                define(one_of(std::vector{ReduceOp::sum, ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::prod}),
                       {axis}, body));
        }
        if (!earlier.empty() && chance(40) && room_for(1))
            define(std::nullopt, {}, expression({self(a), earlier.back()}));
    }

    /// X[i + w], X[2*i + w], or X[i + 1], X[n - 1 - i] without a window's axis.
    void windows() {
        if (!options_.affine_reads || !room_for_axes(1)) return reduction();
        const AxisId i = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size())));
        const Size length = Size::symbol(d_.axis(i).name);
        const bool windowed = room_for_axes(2) && chance(75);
        const std::int64_t stride = chance(35) ? 2 : 1, width = 2 + pick(2), step = chance(20) ? 2 : 1;
        Affine index = Affine::axis(i) * stride;
        // The last element read is the array's last, or one before it.
        Size size = Size(stride) * (length - 1) + 1 + Size(pick(2));
        std::vector<AxisId> over;
        if (windowed) {
            const AxisId w = add_axis("w", Size(width));
            index.add(w, step);
            size += Size(step * (width - 1));
            over.push_back(w);
        } else {
            index.constant = pick(3);
            size += Size(index.constant);
        }
        const AxisId n = add_axis("n", size);
        std::vector<AxisId> axes{n};
        const AxisId channel = static_cast<AxisId>(pick(static_cast<int>(d_.axes.size()) - 2));
        if (channel != i && channel != n && chance(50) && (over.empty() || channel != over[0])) axes.push_back(channel);
        shuffle(axes);
        const ArrayId x = add_input(axes);
        std::vector<Index> indices;
        for (AxisId axis : axes) indices.push_back(axis == n ? index : Affine::axis(axis));
        Term value{read(x, indices), around(6)};
        if (over.empty()) {
            define(std::nullopt, {}, expression({value, chance(50) ? value : self(pick_array([&](const Array& a) {
                                                     return a.axes.size() < 3;
                                                 }))}));
            return;
        }
        if (axes.size() > 1 && chance(50)) over.push_back(channel);
        const ArrayId filter = chance(60) ? add_input(over) : -1;
        const auto op = one_of(std::vector{ReduceOp::sum, ReduceOp::sum, ReduceOp::max});
        define(op, over, filter >= 0 ? value * self(filter) : value);
    }

    void choose_outputs() {
        std::set<ArrayId> read;
        for (const Equation& equation : d_.equations) {
            for (ArrayId id : read_arrays(equation.body)) read.insert(id);
        }
        for (const Equation& equation : d_.equations) {
            const bool last = &equation == &d_.equations.back();
            const bool output = read.contains(equation.target) ? chance(15) : chance(90) || (last && d_.outputs.empty());
            if (!output && !(last && d_.outputs.empty())) continue;
            d_.arrays[static_cast<std::size_t>(equation.target)].role = ArrayRole::output;
            d_.outputs.push_back(equation.target);
        }
    }

    std::mt19937_64 random_;
    RandomDiagramOptions options_;
    Diagram d_;
    std::vector<Range> ranges_;  ///< of every array
    std::vector<bool> usable_;   ///< an array that may hold -inf serves only the recipe that made it
};

}  // namespace

Diagram random_diagram(std::uint64_t seed, const RandomDiagramOptions& options) {
    return Generator(seed, options).run();
}

Extents random_extents(const Diagram& diagram, std::uint64_t seed) {
    std::mt19937_64 random(seed * 0xBF58476D1CE4E5B9ULL + 7);
    std::map<std::string, std::int64_t> sizes;
    for (const Axis& axis : diagram.axes) {
        const auto size = static_cast<std::int64_t>(random() % 9) + 1;
        if (!axis.size) sizes[axis.name] = size;
    }
    return bind_sizes(diagram, sizes).value();
}

std::string describe(const Diagram& diagram) {
    const auto signature = [&](const std::vector<ArrayId>& ids) {
        std::string out;
        for (ArrayId id : ids) {
            std::string axes;
            for (AxisId axis : diagram.array(id).axes) axes += (axes.empty() ? "" : ", ") + diagram.axis(axis).name;
            out += fmt::format("{}{}{}: {}", out.empty() ? "" : ", ", diagram.array(id).name,
                               axes.empty() ? "" : "[" + axes + "]", name(diagram.array(id).type));
        }
        return out;
    };
    std::string out = fmt::format("{}({}) -> {}\n", diagram.name, signature(diagram.inputs), signature(diagram.outputs));
    for (const Axis& axis : diagram.axes) {
        if (axis.size) out += fmt::format("    sizes {} = {}\n", axis.name, to_string(*axis.size, true));
    }
    for (const Equation& equation : diagram.equations) out += "    " + to_string(diagram, equation) + "\n";
    return out;
}

}  // namespace napkin
