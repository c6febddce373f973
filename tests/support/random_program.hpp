#pragma once
// Random programs: texts in the language itself, drawn from its grammar, so that the parser and the elaboration are tested with
// everything after them. Where random_diagram combines the calculus' own patterns with tame values, these hold what a person might write:
// masks of every kind and filler, several reductions over one axis that need each other, second axes over a dimension, products of many,
// integers, casts, constants at the ends of their type, calls of the library.
#include <cstdint>
#include <string>

#include "diagram/diagram.hpp"

namespace napkin {

struct ProgramOptions {
    int max_equations = 10;   ///< a recipe that has begun may write a few more
    bool extremes = true;     ///< constants such as 1e38, -1e30, 1e-30 and infinities outside of masks
    bool integers = true;     ///< i32 inputs, compared and counted
    bool small_types = true;  ///< f64, f16 and bf16 inputs
    bool indices = false;     ///< reads at quotients and remainders, padding, gathers
};

/// The same seed gives the same text everywhere. It parses, and sizes bind for any extents of the axes without a size. Comparisons are
/// of coordinates and of values that no rounding touches: inputs, their maxima and minima.
std::string random_program(std::uint64_t seed, const ProgramOptions& options = {});

/// The diagram of a text that is known to be right; throws InternalError with the message where it is not.
Diagram parsed_program(const std::string& text);

}  // namespace napkin
