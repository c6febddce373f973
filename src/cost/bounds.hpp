#pragma once
// What no choice of sizes can beat, and what a machine demands of sizes:
//  - the group size from which transfers take less time than the tensor cores (B.0.1),
//  - the memory M and the axis lengths from which each term of H* stays below Ḣ/K̇ (B.1),
//  - the best known lower bounds on transfers, beside H*.
#include <string>
#include <vector>

#include "cost/on_machine.hpp"

namespace napkin {

/// B.0.1: g ≥ bytes·N·f / (B·clocks), for the product g of the group sizes of `axes`. In it, `bytes` are those that a
/// chunk loads whatever g is, and `clocks` those of the contractions for a chunk and one row.
struct GroupBound {
    std::vector<AxisId> axes;
    std::string level;
    double bytes = 0, clocks = 0, at_least = 0;
    Formula formula;
};

/// B.1: a term of H*/K (values a FLOP) below Ḣ/K̇: M ≥ …, or an axis ≥ ….
struct TermBound {
    std::string level;
    Size term;      ///< of H*/K, in axes' sizes and M
    Symbol symbol;  ///< M (values, of the whole level as H* sees it) or an axis
    double at_least = 0;
    Formula formula;
};

/// A lower bound on transfers between the memory and a core that holds M values, without skipped iterations and
/// padding.
struct IoBound {
    std::string formula, source;
    double values = 0;
};

struct Bounds {
    std::vector<GroupBound> groups;
    std::vector<TermBound> terms;
    std::vector<IoBound> io;  ///< largest first
};

/// Bounds for a kernel at a core that holds `memory_values` values. `skips` says whether iterations are left out, in
/// this form of the kernel or in another one (StreamChoices). In that case only the stored values bound the transfers.
std::vector<IoBound> io_bounds(const Derived& derived, const Kernel& kernel, const Extents& extents,
                               double memory_values, bool skips);

/// `best` is the optimum in values, with tied letters where sizes are known to be equal. `tied` holds the same letters,
/// for the work. `io` is what io_bounds returns.
Bounds bounds(const Derived& derived, const Kernel& kernel, const Optimum& best, const TiedLetters& tied,
              const Extents& extents, const Machine& machine, const KernelOnMachine& on_machine, std::vector<IoBound> io);

}  // namespace napkin
