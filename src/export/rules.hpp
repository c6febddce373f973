#pragma once
// Which strides the kernels of a class take of each array.
#include <cstdint>
#include <vector>

#include "export/program.hpp"

namespace napkin {

/// From the freest to the strictest.
enum class StrideRule : std::uint8_t { any, last_is_one, row_major };
struct ArrayRule {
    StrideRule strides = StrideRule::any;
    bool has_map = false;  ///< strides but the last are multiples of 16 bytes
    friend bool operator==(const ArrayRule&, const ArrayRule&) = default;
};

/// By the inputs and then the outputs of the class' program. As Launcher::takes and CpuKernel::run have them, but that
/// nothing is copied.
std::vector<ArrayRule> array_rules(const Compilation& made);
/// The strictest of all classes.
std::vector<ArrayRule> array_rules(const ExportedProgram& program);

}  // namespace napkin
