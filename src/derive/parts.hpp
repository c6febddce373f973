#pragma once
// A stream cut into parts, for cores that the groups alone do not fill. A part begins with the folds' first states and
// knows nothing of the others, so that parts run at the same time. The merge that every fold has makes one state of
// theirs.
//
// For a stream of x in parts and one loop over it, these kernels replace the kernel:
//   part   for every group and every value of x_part: what the loop needs, the loop over the part's chunks,
//          S_part[x_part, …] = S for every state S
//   merge  for every group: S = ⊕ over x_parts of carry(S_part[x_parts, …]; the states merged before it), and all that
//          followed
// Where the stream's length is any, the last kernel merges in a loop over x_parts, so that their number is any, too.
// A kernel with several loops has a kernel of parts for each, which merges for itself what the loops before it left. A
// loop that only stores what lies on the stream needs no merge after it. All that does not lie on the stream is stored
// by the last kernel alone. Parts are merged in one reduction, so that the result does not depend on which is done
// first.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Values of an axis, from the first to past the last.
struct Stretch {
    std::int64_t begin = 0, end = 0;
};
/// What the parts [first, last) have of a stream that is cut into chunks. The stream has `parts` parts, whose numbers
/// of chunks differ by one at most.
Stretch stretch_of_parts(std::int64_t first, std::int64_t last, std::int64_t parts, std::int64_t extent, std::int64_t chunk);

/// The folds whose states the loop runs, when they make up all of them; else none.
std::vector<const Fold*> folds_of(const Kernel& kernel, const Loop& loop);

/// Why the kernel's stream cannot be cut: "kernel O streams no axis"; empty where it can.
std::string why_not_in_parts(const Diagram& diagram, const Kernel& kernel);

struct Parted {
    std::optional<Derived> form;  ///< none: refused
    std::string refusal;          ///< why_not_in_parts
    std::size_t num_kernels = 1;  ///< that stand in the kernel's place
    AxisId axis = -1;             ///< that is cut
};

/// Axes of the form that with_parts adds: the one by which parts are grouped, and the one over which they are merged.
/// Their number may be any, where the stream's length is.
constexpr AxisId merged_axis(const StreamParts& parts) {
    return AxisId::of(static_cast<std::size_t>(parts.part.place()) + 1);
}

/// The form with the kernel's stream cut. Arrays and axes that it already has keep their numbers; the number of parts
/// is the size of the two axes that are added. Pre: parts >= 2.
Parted with_parts(const Derived& derived, std::size_t kernel, std::int64_t parts);

/// The extents of the form's axes, of which `extents` has those before its streams were cut.
Extents with_part_extents(const Derived& form, Extents extents);

}  // namespace napkin
