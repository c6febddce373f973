#pragma once
// The arithmetic of a kernel as expressions in sizes, by the unit that does it.
#include <array>
#include <string>
#include <vector>

#include "algebra/size.hpp"
#include "cost/divisors.hpp"
#include "cost/transfers.hpp"
#include "tile/work.hpp"

namespace napkin {

/// Operations of one kind in one statement.
struct UnitWork {
    std::string statement;  ///< its target
    OpKind kind = OpKind::fma;
    UnitRate rate = {};        ///< on the machine
    bool contraction = false;  ///< a tensor core's, where there is one
    bool in_loop = false;
    Size total = {};     ///< operations in a launch
    Size of_a_row = {};  ///< in one chunk, for one value of every grouped axis (paper Table 3); 0 outside of loops
    [[nodiscard]] int flops_each() const { return kind == OpKind::fma ? 2 : 1; }
};

std::vector<UnitWork> unit_work(const Derived& derived, const Kernel& kernel, const std::vector<AxisId>& grouped,
                                const Machine& machine);
std::vector<UnitWork> unit_work(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                                const Machine& machine);

/// Which operations of a core wait for each other. A GPU's special functions and tensor cores stand beside its other
/// units.
std::string pipe_of(const Machine& machine, const UnitWork& work);

/// Σ of the FLOPs, of the contractions alone or of everything.
Size flops(const std::vector<UnitWork>& work, bool contractions_only);

/// Operations of a launch by kind: those of total_work where sizes divide and no chunk is skipped.
using WorkInLetters = std::array<Size, num_op_kinds>;
WorkInLetters symbolic_work(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped);
/// FLOPs among them, an fma counting as 2.
Size flops(const WorkInLetters& work);

}  // namespace napkin
