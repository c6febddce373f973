#pragma once
// What a reader finds above a kernel's code, and above each of its statements: equations, and the choices of the
// schedule.
#include <string>

#include "emit/emit_frame.hpp"

namespace napkin::writers {

/// Names of the diagram's axes and of the kernel's variables.
ExprNames expression_names(const Frame& frame);
/// The statement as an equation over the kernel's variables.
std::string equation(const Frame& frame, const Compute& compute);
/// The kernel's equations and its main choices, as a comment.
void write_header(const Frame& frame, Lines& out);

}  // namespace napkin::writers
