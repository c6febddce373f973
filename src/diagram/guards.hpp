#pragma once
// Which reads may leave their arrays: those that stand where a condition keeps them from being taken. where(n - w >= 0, X[n - w], 0)
// reads X[n - w] only where the condition holds, and there it is inside.
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

/// Calls f for every read of the expression that `wanted` picks, with the conditions on the way to it; for a read that is shared, once for
/// each way that differs in them.
void for_each_guarded_read(const Expr& e, const std::function<bool(const Read&)>& wanted,
                           const std::function<void(const Read&, const std::vector<Guard>&)>& f);

/// Affine forms that are not negative where the condition holds (or, with `holds` false, does not), as far as it is made of affine forms.
std::vector<Affine> implied_forms(const Expr& condition, bool holds);

/// Affine forms that are not negative exactly where the condition holds (or, with `holds` false, does not); none where it is made of anything
/// but comparisons of affine forms that all have to hold.
std::optional<std::vector<Affine>> equivalent_forms(const Expr& condition, bool holds);

/// Whether the index lies in [0, extent) at every point of the extents at which all guards are as they say. Guards that read arrays, and
/// spaces too large to walk where no affine form decides, prove nothing. Pre: not gathered, with_sizes was applied.
bool is_kept_inside(const Index& index, std::int64_t extent, const std::vector<Guard>& guards, const Extents& extents);

}  // namespace napkin
