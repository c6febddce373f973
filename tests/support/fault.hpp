#pragma once
// Faults planted into a tile program: what a wrong rewrite or a wrong emitter would make of it. The verdict must find
// every one that computes something else.
#include <string>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

enum class FaultKind : std::uint8_t {
    chunk,       ///< a chunk is left out, or taken twice
    tail,        ///< the last point of a streamed axis is left out
    correction,  ///< what was accumulated before is not corrected, or forgotten
    stale,       ///< a value is read before the statement that computes it
    init,        ///< a state begins at another value
    reduction,   ///< another operator reduces
    mask,        ///< an edge, a coordinate or a side of a choice is moved by one
    operand,     ///< operands are swapped, or one is left out
    function,    ///< a function is left out
    constant,    ///< a number is another
};
inline constexpr FaultKind all_fault_kinds[] = {
    FaultKind::chunk,     FaultKind::tail, FaultKind::correction, FaultKind::stale,    FaultKind::init,
    FaultKind::reduction, FaultKind::mask, FaultKind::operand,    FaultKind::function, FaultKind::constant};
std::string_view name(FaultKind kind);

struct PlantedFault {
    FaultKind kind;
    std::string what;  ///< "loop over x: its last chunk is left out"
    SizedProgram program;
};

/// Every fault of the kinds above that the program has room for, one at a time.
std::vector<PlantedFault> plant_faults(const SizedProgram& program);

}  // namespace napkin
