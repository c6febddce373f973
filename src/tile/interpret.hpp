#pragma once
// The counting interpreter runs a tile program in double precision, tile by tile, with a buffer for every variable. It
// counts what moves between the levels and what is alive at each. The model's H and M must equal these counts.
#include <vector>

#include "diagram/evaluate.hpp"
#include "tile/counts.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// `values` holds the inputs, by ArrayId of program.diagram. On return it also holds every array that a kernel stored.
/// With Precision::stored, casts round to their type, and stores to the type of the array.
/// Pre: the program verifies (verify.hpp). A program that touches what is not there throws InternalError.
std::vector<Counts> interpret(const SizedProgram& program, Values& values, Precision precision = Precision::exact);

/// The same with memory levels between memory and the core, by the rules atop cost/nested.hpp. Every value moves
/// through a buffer of each level. `outer` holds the sizes of the outer levels of each kernel, outermost first; the
/// program has the core's. Returns the counts of each kernel, outermost level first and the core last.
/// Pre: the sizes nest; else throws InternalError.
std::vector<std::vector<Counts>> interpret_levels(const SizedProgram& program,
                                                  const std::vector<std::vector<TileSizes>>& outer, Values& values);

}  // namespace napkin
