#pragma once
// Whether a reduction along an axis that a product before it has in tiles is done tile by tile in that product's kernel
// (derive/tiled_reduction.hpp).
#include "plan/choose.hpp"

namespace napkin {

/// The form with all of these reductions in tiles, one after the other; nothing where one of them cannot be.
std::optional<WithTiledReduction> with_tiled_reductions(const Derived& derived, const Extents& extents,
                                                        const std::vector<TiledReduction>& all);

/// The plan of choose_aligned, or of the form in which a product on the matrix unit reduces its own tiles, of as many
/// columns as the first plan gives it, if that is predicted to be faster. What is by hand is said of the form as it is
/// derived. Pre and errors: those of choose_aligned.
Result<Plan> choose_tiled(const Derived& derived, const Extents& extents, const Machine& gpu,
                          const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
