#pragma once
// Sums over products of many arrays, one axis after another: the definition's own terms, of which there may be more
// than anything runs over.
#include <optional>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Terms of a sum that are added up as they are written.
constexpr double most_terms_as_written = 1e6;

/// The diagram with this equation alone, split into several. Each sums one axis over the product of the factors that
/// have it, the axis with the fewest points first. The last one defines the equation's target. Temporaries are of type
/// f64. Returns nothing where the equation is no sum over a product of arrays, its points are few, or the split does
/// not make them fewer.
std::optional<Diagram> with_axes_eliminated(const Diagram& diagram, const Equation& equation, const Extents& extents);

/// Every equation of which there is such a form in that form, with temporaries of the type of what they make.
Diagram with_all_eliminated(Diagram diagram, const Extents& extents);

}  // namespace napkin
