#pragma once
// Which reads may leave their arrays: those that a condition keeps from being taken. In where(n - w >= 0, X[n - w], 0),
// X[n - w] is only read where the condition holds, and there it is inside.
#include <functional>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// A condition on the way to an expression: it holds (or not) wherever the expression is taken.
struct Guard {
    Expr condition;
    bool holds = true;
};

/// Calls f for every read of the expression that `wanted` picks, with the conditions on the way to it. If a read is
/// shared, f is called once for each way that differs in its conditions.
void for_each_guarded_read(const Expr& e, const std::function<bool(const Read&)>& wanted,
                           const std::function<void(const Read&, const std::vector<Guard>&)>& f);

/// Whether an index may lie outside of the dimension, as far as nothing but the two is known.
using MayLeave = std::function<bool(const Index&, AxisId dimension)>;
/// Before sizes are numbers, any index may leave but the dimension's own axis.
inline bool is_other_index(const Index& index, AxisId dimension) { return !index.is_axis(dimension); }

/// The part of a condition that can keep the expression's reads inside of their arrays. It is made of the parts of a
/// conjunction that share an axis with an index that may leave, or with such a part. Null: nothing.
Expr guard_of_reads(const Diagram& diagram, const Expr& e, const Expr& condition, const MayLeave& may_leave);

/// The expression where the condition holds. Each read that may leave its array is taken only where its guard (above)
/// holds, and is 0 elsewhere. So the expression may be computed where the condition does not hold. A null condition
/// says nothing.
Expr with_guarded_reads(const Diagram& diagram, const Expr& e, const Expr& condition, const MayLeave& may_leave);

/// The select that gives 0 where its condition does not hold; null: another expression.
const Select* zero_elsewhere(const Expr& e);

/// The condition that both hold. Null says nothing.
Expr both_hold(const Expr& a, const Expr& b);
/// What all holds where the condition does.
std::vector<Expr> conditions_in(const Expr& condition);

/// An inequality of whole numbers, of which a part may be known only once sizes or data are:
/// affine + Σ factor·size(axis) + plus - minus ≥ 0.
struct MaskForm {
    Affine affine;
    std::vector<std::pair<AxisId, std::int64_t>> sizes = {};  ///< axis and factor, by ascending axis
    Expr plus, minus;  ///< reads of arrays, each of which stands alone on its side of a comparison; null: none
    [[nodiscard]] bool is_affine() const { return sizes.empty() && !has_reads(); }
    [[nodiscard]] bool has_reads() const { return plus != nullptr || minus != nullptr; }
    friend bool operator==(const MaskForm& a, const MaskForm& b);
};
/// The form with numbers in place of sizes, in the indices of its reads too.
MaskForm with_sizes(MaskForm form, const Extents& extents);

/// Forms that are not negative where the condition holds (or, with `holds` false, does not), as far as it is made of
/// such comparisons. A read of numbers that are not whole makes a form that holds nothing: the caller knows the arrays'
/// types.
std::vector<MaskForm> implied_mask_forms(const Expr& condition, bool holds);

/// Forms that are not negative exactly where the condition holds (or, with `holds` false, does not). None unless the
/// condition is made only of such comparisons that all have to hold.
std::optional<std::vector<MaskForm>> equivalent_mask_forms(const Expr& condition, bool holds);

/// Affine forms that are not negative where the condition holds (or, with `holds` false, does not), as far as it is
/// made of affine forms.
std::vector<Affine> implied_forms(const Expr& condition, bool holds);

/// Whether the index lies in [0, extent) at every point of the extents at which all guards are as they say. Guards that
/// read arrays, and spaces too large to walk where no affine form decides, prove nothing. Pre: not gathered, with_sizes
/// was applied.
bool is_kept_inside(const Index& index, std::int64_t extent, const std::vector<Guard>& guards, const Extents& extents);

}  // namespace napkin
