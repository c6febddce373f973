#pragma once
// Decides whether a reduction runs tile by tile in the kernel of the product before it, which has the reduced axis in
// tiles (derive/tiled_reduction.hpp).
#include "plan/choose.hpp"

namespace napkin {

/// The form with all of these reductions in tiles, one after the other. Nothing where one of them cannot be.
std::optional<WithTiledReduction> with_tiled_reductions(const Derived& derived, const Extents& extents,
                                                        const std::vector<TiledReduction>& all);

/// The plan of choose_copied, or of the form in which a product on the tensor cores reduces its own tiles, if that is
/// predicted to be faster. The tiles have as many columns as the first plan gives the product. With overrides, only the
/// form as it is derived is planned. Pre and errors: those of choose_copied.
Result<Plan> choose_tiled(const Derived& derived, const Extents& extents, const Machine& gpu,
                          const std::vector<ScheduleItem>& by_user, const PlanOptions& options);

}  // namespace napkin
