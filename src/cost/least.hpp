#pragma once
// H* where sizes are numbers: the fewest transfers over all groupings, and whether the formula in letters says the same there.
#include <string>

#include "cost/optimum.hpp"
#include "cost/search.hpp"

namespace napkin {

/// Why a formula of H* does not hold at some sizes and M.
enum class Misfit : std::uint8_t { none, not_closed, no_value, group, condition, compulsory, not_least, rounding };

struct LeastTransfers {
    KernelCost cost;                ///< over every axis that may be grouped, those that repeat work included
    SearchResult numeric;           ///< integer group sizes, stream sizes of 1
    double compulsory = 0;          ///< every tile once: no M makes it fewer
    std::optional<double> formula;  ///< the value of the formula in letters
    Misfit misfit = Misfit::none;   ///< of the formula
    [[nodiscard]] bool formula_holds() const { return misfit == Misfit::none; }
};

/// `letters`: the optimum in letters, of the cost grouped as it is said to be. `memory`: M in values.
LeastTransfers least_transfers(const Derived& derived, const Kernel& kernel, const Extents& extents, double memory,
                               const Optimum& letters);

/// "its group sizes pass their axes" and the like; empty where it holds.
std::string reason(Misfit misfit);

}  // namespace napkin
