#pragma once
// What random diagrams are made of: axes, arrays and expressions over them, each with bounds on its values.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/random_diagram.hpp"

namespace napkin::random {

/// Bounds on a value for inputs in [-6, 6]: what keeps the diagrams tame.
struct Range {
    double low = 0, high = 0;
    [[nodiscard]] double magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
};
inline Range around(double bound) { return {-bound, bound}; }

struct Term {
    Expr e;
    Range range;
};

// Arithmetic on terms carries the bounds along.
inline Term number(double value) { return {constant(value), {value, value}}; }
inline Term operator+(const Term& a, const Term& b) {
    return {binary(BinaryOp::add, a.e, b.e), {a.range.low + b.range.low, a.range.high + b.range.high}};
}
inline Term operator-(const Term& a, const Term& b) {
    return {binary(BinaryOp::sub, a.e, b.e), {a.range.low - b.range.high, a.range.high - b.range.low}};
}
inline Term operator*(const Term& a, const Term& b) {
    const auto corners = {a.range.low * b.range.low, a.range.low * b.range.high, a.range.high * b.range.low,
                          a.range.high * b.range.high};
    return {binary(BinaryOp::mul, a.e, b.e), {std::min(corners), std::max(corners)}};
}
/// Pre: b is above 0.
inline Term operator/(const Term& a, const Term& b) {
    const Range inverse{1 / b.range.high, 1 / b.range.low};
    return {binary(BinaryOp::div, a.e, b.e), (a * Term{b.e, inverse}).range};
}
inline Term call(UnaryOp op, const Term& a, Range range) { return {unary(op, a.e), range}; }

/// Chooses arrays and writes expressions and equations into a diagram.
class RandomExpressions {
protected:
    static constexpr double largest_value = 1000;  ///< that an array may hold
    static constexpr double largest_extent = 16;   ///< in the bounds of sums

    RandomExpressions(std::uint64_t seed, const RandomDiagramOptions& options)
        : random_(seed * 0x9E3779B97F4A7C15ULL + 1), options_(options) {}

    // ---- choices
    // -----------------------------------------------------------------------------------------------------------
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

    // ---- axes and arrays
    // ---------------------------------------------------------------------------------------------------
    AxisId add_axis(const std::string& wanted, std::optional<Size> size = std::nullopt);
    std::vector<AxisId> random_axes();
    ArrayId add(std::vector<AxisId> axes, ArrayRole role, Range range, bool usable = true);
    ArrayId add_input(std::vector<AxisId> axes);
    /// target = [op over reduced] body; the target's axes are those of the body that are not reduced, in random order.
    Term define(std::optional<ReduceOp> op, const std::vector<AxisId>& reduced, Term body,
                std::optional<Range> known = std::nullopt, bool usable = true);

    // ---- operands
    // ----------------------------------------------------------------------------------------------------------
    Term self(ArrayId id) { return {read_self(d_, id), ranges_[static_cast<std::size_t>(id)]}; }
    /// An array, more often one of the last; -1 when none will do.
    ArrayId pick_array(const std::function<bool(const Array&)>& good);
    static bool has(const Array& array, AxisId axis) { return contains(array.axes, axis); }
    /// Makes sure that every index of axis `from` is one of axis `to`, by giving `to` a size if it has none.
    bool fit(AxisId from, AxisId to);
    /// The array at its own axes, or now and then with an index of another axis.
    Term operand(ArrayId id);
    std::vector<Term> operands(int count);
    static std::vector<AxisId> axes_of(const std::vector<Term>& terms);

    // ---- expressions
    // -------------------------------------------------------------------------------------------------------
    Term limited(const Term& t, double bound);
    static Term squashed(const Term& t) { return call(UnaryOp::tanh, t, around(1)); }
    static Term clipped(const Range& r, Term t);
    Term exponential(const Term& t);
    Term above_zero(const Term& t);
    Term wrapped(const Term& t);
    Term leaf(const std::vector<AxisId>& axes);
    /// A comparison of indices; nothing when there is no axis to compare.
    Expr condition(const std::vector<AxisId>& axes);
    Term combined(const Term& a, const Term& b, const std::vector<AxisId>& axes);
    /// An expression that reads every operand, some twice.
    Term expression(std::vector<Term> terms);

    std::mt19937_64 random_;
    RandomDiagramOptions options_;
    Diagram d_;
    std::vector<Range> ranges_;  ///< of every array
    std::vector<bool> usable_;   ///< an array that may hold -inf serves only the recipe that made it
};

}  // namespace napkin::random
