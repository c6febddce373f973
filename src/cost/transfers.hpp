#pragma once
// Two-level costs of a kernel as expressions (paper.md §§2–3) in the sizes a of axes, their group sizes g_a and stream
// sizes s_a. With a choice of grouped axes:
//   N_g = Π a/g_a over the grouped axes                          groups
//   H_g = Σ over memory variables of their tiles in one group    values moved between memory and the core, a group
//   H   = N_g · H_g                                              a launch
//   M  ≥  Σ of the tiles alive at one statement                  values, for every statement
// These costs leave out two effects, whose counts exact_costs has. Skipped chunks (Loop::support) and tiles that reach
// past their array make a group move less. Tiles that cut a period of a quotient or rest unevenly may make it move
// more.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "algebra/size.hpp"
#include "tile/liveness.hpp"

namespace napkin {

/// What is moved of one array through one index pattern.
struct ArrayTransfers {
    ArrayId array = -1;
    std::string pattern;  ///< "K[x, k]"
    bool stored = false;  ///< else loaded
    Size per_group, per_launch;
};

/// What is alive at one statement.
struct MemoryColumn {
    std::string at;               ///< the name of the statement's target, or "entry of x" for a loop over x
    std::vector<ArrayId> arrays;  ///< alive there
    bool in_loop = false;
    Size size;
};

struct KernelCost {
    std::string kernel;
    std::vector<AxisId> grouped, streamed;
    AxisId part = -1;       ///< among `grouped`, where every group runs one part of a stream: it has no group size
    bool may_skip = false;  ///< some loop skips chunks: H is an upper bound
    bool counts_padding = false;  ///< some tile may reach past its array, and counts as a whole: H is an upper bound
    std::vector<std::string> assumptions;  ///< under which H is what is moved: "where tiles of k are aligned with 128"
    Size num_groups, per_group, transfers;
    std::vector<ArrayTransfers> arrays;
    std::vector<MemoryColumn> memory;  ///< distinct, none below another; the largest is M
};

/// The axes that are grouped when nothing is said: group_axes without those whose grouping repeats work.
std::vector<AxisId> default_grouped(const Kernel& kernel);

/// What a value of an array counts as: 1, or the bytes of its type (Eq. 3 with a type for each array: M and H in
/// bytes).
enum class Measure : std::uint8_t { values, bytes };

/// Which tiles count as memory. `whole`: each statement's over its whole tile, as the tile program runs it. Otherwise
/// those that statements need which are carried out together (point_by_point.hpp), as H* has it.
enum class HeldTiles : std::uint8_t { whole, point_by_point, row_by_row, rows_of_a_load };

KernelCost symbolic_cost(const Derived& derived, const Kernel& kernel, const std::vector<AxisId>& grouped,
                         Measure measure = Measure::values, HeldTiles held = HeldTiles::whole);
KernelCost symbolic_cost(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                         Measure measure = Measure::values, HeldTiles held = HeldTiles::whole);

/// Points of the axes over all groups and the iterations of the loop, an index into Liveness::loops (-1: none).
Size points(const Diagram& diagram, const Liveness& live, const std::vector<AxisId>& grouped,
            const std::vector<AxisId>& axes, int loop);

/// What a value of a variable counts as at a moment at which it is alive; 0 where it lies elsewhere.
using ValueWeight = std::function<std::int64_t(const CoreVariable&, const Moment&)>;
/// What is alive at each of the moments, distinct, none below another.
std::vector<MemoryColumn> memory_columns(const Diagram& diagram, const Liveness& live, const std::vector<AxisId>& grouped,
                                         const std::vector<Moment>& moments, const ValueWeight& weight);

/// Axes known to be equal in size, each with the one whose letter stands for both.
using TiedLetters = std::map<AxisId, AxisId>;

Size with_tied(const Size& size, const TiedLetters& letters);
KernelCost with_tied(const KernelCost& cost, const TiedLetters& letters);

/// True when a ≤ b wherever all symbols are ≥ 1, as far as comparing terms can tell.
bool never_above(const Size& a, const Size& b);

/// The size without the terms that another of its terms exceeds by a factor that is a product of symbols: its form at
/// large sizes.
Size leading_terms(const Size& size);

}  // namespace napkin
