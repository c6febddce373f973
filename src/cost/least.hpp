#pragma once
// H* where sizes are numbers: the fewest transfers over all groupings and over every axis that the kernel can stream,
// whatever a plan chose. Statements are carried out point by point or row by row (point_by_point.hpp). It also says
// whether the formula in letters gives the same number.
#include <string>
#include <vector>

#include "cost/optimum.hpp"
#include "cost/search.hpp"

namespace napkin {

/// Why a formula of H* does not hold at some sizes and M.
enum class Misfit : std::uint8_t { none, not_closed, no_value, group, condition, compulsory, not_least, rounding };

struct LeastTransfers {
    Derived form;  ///< the kernel alone, streamed along the axis with which it moves least
    HeldTiles held = HeldTiles::point_by_point;  ///< the way in which statements run
    /// The cost of the form, over every axis that may be grouped, those that repeat work included. Whether iterations
    /// are skipped and padding counts is that of all forms.
    KernelCost cost;
    KernelCost grouped;              ///< the same over the axes that are grouped without repeating work
    Optimum letters;                 ///< of that
    SearchResult numeric;            ///< integer group sizes, and stream sizes of 1 where H does not depend on them
    double compulsory = 0;           ///< every tile once: no M makes it fewer
    std::optional<double> formula;   ///< the value of the formula in letters
    Misfit mismatch = Misfit::none;  ///< of the formula
    [[nodiscard]] bool formula_holds() const { return mismatch == Misfit::none; }
};

/// `forms`: of one kernel each, the ways to stream it (StreamChoices); the earlier one of those that move the same.
/// `memory`: M in values.
LeastTransfers least_transfers(std::vector<Derived> forms, const Extents& extents, double memory);

/// "its group sizes pass their axes" and the like, with M called as said; empty where it holds.
std::string reason(Misfit mismatch, const std::string& memory);

/// Why the figures are no less than what is moved in fact: "iterations that are skipped count as run". Empty where they
/// are what is moved.
std::string why_upper_bound(const KernelCost& cost);

}  // namespace napkin
