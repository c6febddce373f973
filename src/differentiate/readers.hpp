#pragma once
// The inverse of an access: which points of an equation read an element of an array.
//
// An equation reads X[2*i + w - 1] at its points (i, w). The element X[a] is read for each w at i = (a + 1 - w) // 2,
// where that leaves no rest and lies within i. An access without an inverse, such as a gathered one, is a condition on
// the points: all are run over, and those count that read the element.
#include <map>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

struct Readers {
    std::vector<AxisId> over;    ///< axes of the points (and new ones), along which an element has several readers
    std::map<AxisId, Expr> at;   ///< the other axes of the points: coordinates made of the element's axes and of `over`
    std::vector<Expr> required;  ///< what holds where such a point exists and reads the element
    std::vector<Expr> assumed;   ///< of sizes that the text gives as numbers: with others there are more readers

    /// What a point computes, seen from the element, and 0 where no point reads it. NaN where sizes are not as assumed.
    [[nodiscard]] Expr seen(const Expr& e) const;
};

/// The readers of an element with the coordinates `element`, in an array whose dimensions have these axes. May add axes
/// to the diagram. Pre: an axis of `points` is one of `element` only where it is the index of its own dimension.
Readers readers_of(Diagram& diagram, const std::vector<Index>& indices, const std::vector<AxisId>& element,
                   const std::vector<AxisId>& points);

}  // namespace napkin
