#pragma once
// What is alive when. Memory, transfers and work are all counted from this one pass over a kernel's statements, with
// sizes or with letters.
//
// A variable is alive from the statement that loads, initialises or computes it to the last one before its Free. M is
// the largest sum of the sizes of the variables alive at one moment. H is the sum of all tiles loaded and stored, each
// as often as the loops iterate in which it lives.
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "support/ids.hpp"
#include "tile/program.hpp"

namespace napkin {

/// One life of a variable: a tile at the core, which is the box that the indices `dims` span (diagram/box.hpp).
struct CoreVariable {
    VariableId variable = -1;
    ArrayId array = -1;
    std::vector<Index> indices;  ///< of the array, at which it is read
    std::vector<Index> dims;
    std::vector<AxisId> limits;
    int loop = -1;        ///< into Liveness::loops: the loop in each of whose iterations it begins; -1: once per group
    bool loaded = false;  ///< from memory
    bool stored = false;  ///< to memory
    bool is_state = false;
    int first = 0, last = 0;            ///< moments of the timeline between which it is alive, both included
    int first_step = 0, last_step = 0;  ///< the same in computations and loops that no loop contains
};

/// A loop of a kernel.
struct CoreLoop {
    AxisId axis = -1;
    std::vector<Affine> support;
    bool is_sub = false;
    int outer = -1;         ///< the loop around it, or -1
    int step = 0;           ///< of the kernel, as CoreVariable has them
    bool may_skip = false;  ///< K blocks, by its support or by masks that become support once sizes are known
    std::vector<MaskForm> masks = {};  ///< those of which data decide what they skip
};

/// A computation or the entry of a loop, and what is alive there.
struct Moment {
    int loop = -1;           ///< in whose iterations it happens, or -1
    AxisId entered = -1;     ///< of the loop that it is the entry of, or -1
    ArrayId target = -1;     ///< of the computation, or -1
    std::vector<int> alive;  ///< indices into Liveness::variables, ascending
    /// The variables of `alive` of which only the part for one point of `row_axes` is held.
    std::vector<int> rows = {};
    std::vector<AxisId> row_axes = {};
};

struct Liveness {
    std::vector<AxisId> group_axes;
    StreamParts parts;
    std::vector<CoreLoop> loops;  ///< in order of entry
    std::vector<CoreVariable> variables;
    std::vector<Moment> timeline;  ///< every computation and every loop's entry, in order
    std::vector<Moment> moments;   ///< those at which more may be alive than at every other
    /// The loop and those around it, innermost first. Empty for -1.
    [[nodiscard]] std::vector<int> loops_around(int loop) const;
};

Liveness liveness(const TileKernel& kernel);
/// Lifetimes in the kernel's tile program. With extents, numbers stand in place of the sizes in indices.
Liveness liveness(const Derived& derived, const Kernel& kernel, const Extents* extents = nullptr);

/// With what offsets say of the K blocks that run. Offsets ascend over all rows along a loop's axis, so that tiles run
/// over each row about once, whatever the data. Here each tile has as many rows as any other of its size.
Liveness with_even_lengths(Liveness live, const Diagram& diagram, const Extents& extents);

/// The axes of the indices, ascending, each once.
std::vector<AxisId> axes_of(const std::vector<Index>& dims);

}  // namespace napkin
