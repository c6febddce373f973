#pragma once
// The variables of a kernel at the core and when each is alive, by the rules atop derive/derived.hpp. Symbolic and exact costs
// are both sums over what this pass finds, so they cannot disagree about what is counted.
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// One variable at the core: a tile of an array, the box spanned by the indices `dims` (diagram/box.hpp).
struct CoreVariable {
    ArrayId array = -1;
    std::vector<Index> indices;  ///< at which the array is read
    std::vector<Index> dims;
    std::vector<AxisId> limits;
    int loop = -1;  ///< the stage whose iterations load or define it (its tile is the chunk's), or -1: a tile of the group
    bool loaded = false;  ///< from memory: in every iteration of `loop`, or once a group
    bool stored = false;  ///< to memory, as often
    bool is_state = false;
    int first_step = 0,
        last_step = 0;  ///< between which it is alive; the statements of blocks and the loops are steps, in order
};

/// A point of the kernel's timeline and what is alive there.
struct Moment {
    int stage = 0;
    bool in_body = false;    ///< inside the stage's loop: happens only when a chunk runs
    ArrayId target = -1;     ///< of the statement, or -1: the entry of a loop
    std::vector<int> alive;  ///< indices into Liveness::variables, ascending
};

/// First and last moment of a variable's life in Liveness::timeline, both included.
struct Life {
    int first = 0, last = 0;
};

struct Liveness {
    std::vector<CoreVariable> variables;
    std::vector<Life> lives;       ///< by variable
    std::vector<Moment> timeline;  ///< every statement and every loop's entry, in order
    std::vector<Moment> moments;   ///< those of the timeline at which more may be alive than at every other
};

/// With extents, their numbers stand in place of the sizes in indices.
Liveness liveness(const Derived& derived, const Kernel& kernel, const Extents* extents = nullptr);

/// The axes of the indices, ascending, each once.
std::vector<AxisId> axes_of(const std::vector<Index>& dims);

bool is_among(const std::vector<int>& ids, int id);

}  // namespace napkin
