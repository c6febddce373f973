#pragma once
// Statements in register blocks as functions of their own, so that the compiler gives their loops all registers.
#include <string>

#include "emit/emit_frame.hpp"

namespace napkin::writers {

struct BlocksFunction {
    Lines code;  ///< with the equations above it
    std::string call;
};

/// The function of a statement's blocks, whose parameters are what its text mentions. `before`: a statement of the
/// previous group that runs in the same loops. A deferred statement's own function is for the previous group, too.
BlocksFunction function_of_blocks(Frame& frame, const Step& step, const Step* before = nullptr);

/// The function that stores what the step has added up in accumulators.
BlocksFunction function_of_sums_to_memory(Frame& frame, const Step& step);

}  // namespace napkin::writers
