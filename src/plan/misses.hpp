#pragma once
// What a planned kernel leaves unused: the tensor cores that a product does not run on, and the bytes of memory lines
// that an access brings for nothing. Each with the reason, and with what would change it.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace napkin {

struct Miss {
    std::string what;    ///< "S runs off the tensor cores"
    std::string why;     ///< "Q and K are f32"
    std::string change;  ///< what would change it; empty where nothing in the text would
};

/// Products first, then accesses, each in the order of the kernel's statements. It follows from the schedule alone.
/// Kernels of a CPU have accesses only.
std::vector<Miss> misses(const KernelPlan& plan);

std::string to_string(const Miss& miss);

}  // namespace napkin
