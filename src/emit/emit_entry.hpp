#pragma once
// How a kernel's function begins.
#include <string>

#include "emit/emit_frame.hpp"

namespace napkin::writers {

/// The parameters of a GPU's kernel: its arrays, memory for what does not fit in shared memory, and the maps of bulk
/// copies.
std::string parameters_on_gpu(const Frame& frame);
/// Where the arguments of a launch on a GPU are.
void declare_arguments(Lines& out);
/// The head of the function named `entry`, opened, and where its arena lies.
void write_entry(const Frame& frame, Lines& out, const std::string& entry);

}  // namespace napkin::writers
