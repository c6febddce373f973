#pragma once
// What a kernel moves at least, whatever its partition: every input's values that it reads, and its outputs, once.
#include <cstdint>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "tile/work.hpp"

namespace napkin {

/// Whether a loop may skip iterations, and with them their loads. Then a bound that follows from all iterations is no
/// lower bound.
bool may_skip(const Kernel& kernel);

/// The least number of values of an input that are read if no iteration is skipped. Strides and shared indices may
/// leave some values out, and an index may pass the array's ends. `work` is the kernel's statement_work.
double values_read(const Diagram& diagram, const std::vector<StatementWork>& work, ArrayId input, const Extents& extents);

struct Compulsory {
    double loaded_bytes = 0, stored_bytes = 0;
};
Compulsory compulsory_transfers(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                                const Extents& extents);

/// Seconds that the bytes take through the memory's pipe at the best of its nominal rates. A copy reads as many bytes
/// as it writes, so writing takes what reading leaves of the copy's time.
double least_seconds_of_moving(const Machine& machine, const Compulsory& moved);

/// The least seconds from a kernel's call to its first group. A GPU's kernel is always launched; a CPU's of one thread
/// wakes no others.
double least_seconds_to_start(const Machine& machine);

/// Who computes a kernel. No bound counts what tensor cores may do for the other units.
enum class ComputedBy : std::uint8_t { cores, tensor_cores };

/// A lower bound in seconds on the simulated time of any plan of the kernel, on a CPU or on a GPU's block_machine. It
/// is the least start plus the longer of two times: the least that passes the memory's pipe, and the least that all
/// cores compute, one operation after the other.
double least_seconds(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                     const Extents& extents, const Machine& machine, ComputedBy by = ComputedBy::cores);

}  // namespace napkin
