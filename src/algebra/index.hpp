#pragma once
// One dimension of a Read's index: the coordinate of an element as a function of the axes. There are three kinds:
//   affine        2*i + w - 1
//   quasi-affine  x // 16, x % 16, r + size(r)/2: integers made of axes and sizes, not affine. Over a box of the axes
//                 the coordinate lies in an interval, found by interval arithmetic.
//   gathered      table[b, x // 16]: also made of elements of integer arrays, so that data decide where is read.
// The operators of the last two kinds are + - * // % min max. One side of a product has no axes and no elements. The
// divisor of // and % is positive and has none either. The operator / stands between sizes and numbers alone, and must
// leave no remainder.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "support/ids.hpp"

namespace napkin {

struct ExprNode;
struct Read;
enum class BinaryOp : std::uint8_t;
/// Never null once built by the functions of expr.hpp.
using Expr = std::shared_ptr<const ExprNode>;

/// Σ coefficient·axis + constant, with axes in ascending order, no zero coefficient, each axis at most once.
struct Affine {
    std::vector<std::pair<AxisId, std::int64_t>> terms;
    std::int64_t constant = 0;
    /// The sizes of axes in the constant, by factor, with their numbers. What differs in them alone is equal.
    std::vector<std::pair<AxisId, std::int64_t>> sizes = {};

    static Affine axis(AxisId id) { return {{{id, 1}}, 0, {}}; }
    [[nodiscard]] bool is_axis(AxisId id) const {
        return constant == 0 && terms.size() == 1 && terms[0].first == id && terms[0].second == 1;
    }
    /// The axis when the index is just an axis, else -1.
    [[nodiscard]] AxisId single_axis() const {
        return constant == 0 && terms.size() == 1 && terms[0].second == 1 ? terms[0].first : AxisId();
    }
    [[nodiscard]] std::int64_t coefficient(AxisId id) const;
    void add(AxisId id, std::int64_t coefficient);
    friend bool operator==(const Affine& a, const Affine& b) { return a.terms == b.terms && a.constant == b.constant; }
};
// Coefficients saturate at ±2^62 (limits::max_size_product).
Affine operator+(const Affine& a, const Affine& b);
Affine operator-(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, std::int64_t factor);

struct QuasiAffine {
    Expr value;
};
struct Gathered {
    Expr value;
};

class Index {
public:
    using Variant = std::variant<Affine, QuasiAffine, Gathered>;

    Index(Affine form) : v_(std::move(form)) {}
    /// The index with this value, affine where it can be. Pre: made of the operators above.
    static Index of(const Expr& value);

    [[nodiscard]] const Variant& kind() const { return v_; }
    /// The form of an affine index, else null.
    [[nodiscard]] const Affine* affine() const { return std::get_if<Affine>(&v_); }
    [[nodiscard]] bool is_gathered() const { return std::holds_alternative<Gathered>(v_); }
    /// The expression of an index that is not affine, else null.
    [[nodiscard]] const Expr* expression() const;
    [[nodiscard]] Expr value() const;  ///< as an expression, whatever the kind

    [[nodiscard]] bool is_axis(AxisId id) const { return affine() && affine()->is_axis(id); }
    [[nodiscard]] AxisId single_axis() const { return affine() ? affine()->single_axis() : AxisId(); }
    [[nodiscard]] bool depends_on(AxisId id) const;
    [[nodiscard]] std::vector<AxisId> axes() const;  ///< on which it depends, ascending
    friend bool operator==(const Index& a, const Index& b);

private:
    explicit Index(Variant v) : v_(std::move(v)) {}
    Variant v_;
};

bool depends_on(const std::vector<Index>& indices, AxisId axis);

/// + - * / // % min max.
bool is_index_operator(BinaryOp op);

/// Whether the expression can be an index: made of the operators above, over axes, sizes, whole numbers and elements.
bool is_index(const Expr& e);

/// The expression as an affine form of the axes, where it is one. Sizes are numbers where there are extents.
std::optional<Affine> affine_form(const Expr& e, const std::vector<std::int64_t>* extents = nullptr);

/// The index with numbers in place of the sizes: affine where they make it so. Sizes that do not divide as they must
/// are rounded down; bind_sizes reports them.
Index with_sizes(const Index& index, const std::vector<std::int64_t>& extents);
/// The same for every index in an expression; sizes elsewhere stay.
Expr with_sizes(const Expr& e, const std::vector<std::int64_t>& extents);

/// The index at other coordinates: every axis for which `f` gives something becomes that.
using AxisSubstitution = std::function<std::optional<Index>(AxisId)>;
Index substitute(const Index& index, const AxisSubstitution& f);
/// The same for everything in an expression.
Expr substitute_axes(const Expr& e, const AxisSubstitution& f);

/// The coordinate at a point (by AxisId). `element` gives the values that a gathered index reads. Pre: with_sizes was
/// applied.
std::int64_t value_at(const Index& index, const std::vector<std::int64_t>& point,
                      const std::function<std::int64_t(const Read&)>& element);

/// Bounds of the coordinate when axis a runs over [begin[a], begin[a] + count[a]): the smallest and largest value of an
/// affine index, an interval around those of a quasi-affine one. Pre: not gathered, and with_sizes was applied.
struct Interval {
    std::int64_t low = 0, high = 0;  ///< inclusive
    [[nodiscard]] std::int64_t size() const { return high - low + 1; }
    friend bool operator==(const Interval&, const Interval&) = default;
};
Interval range_of(const Affine& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count);
Interval range_of(const Index& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count);
/// The same, where `element` bounds the values that a gathered index reads.
Interval range_of(const Index& index, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count,
                  const std::function<Interval(const Read&)>& element);

/// Rounds towards minus infinity; the rest has the divisor's sign. 0 where the divisor is 0.
std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);

}  // namespace napkin
