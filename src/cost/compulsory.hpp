#pragma once
// What a kernel moves at least, whatever its partition: every input's values that it reads, and its outputs, once.
#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "tile/work.hpp"

namespace napkin {

/// How many values of an input are read at least: strides and shared indices may leave some out. `work`: statement_work of the kernel.
double values_read(const std::vector<StatementWork>& work, ArrayId input, const Extents& extents);

struct Compulsory {
    double loaded_bytes = 0, stored_bytes = 0;
};
Compulsory compulsory_transfers(const Derived& derived, const Kernel& kernel, const Extents& extents);

}  // namespace napkin
