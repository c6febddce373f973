#pragma once
// What a kernel moves at least, whatever its partition: every input's values that it reads, and its outputs, once.
#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "tile/work.hpp"

namespace napkin {

/// Whether a loop leaves iterations out, and with them what they would load: what follows from all iterations then is
/// no lower bound.
bool may_skip(const Kernel& kernel);

/// How many values of an input are read at least where no iteration is skipped: strides and shared indices may leave
/// some out, and an index may pass the array's ends. `work`: statement_work of the kernel.
double values_read(const Diagram& diagram, const std::vector<StatementWork>& work, ArrayId input, const Extents& extents);

struct Compulsory {
    double loaded_bytes = 0, stored_bytes = 0;
};
Compulsory compulsory_transfers(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                                const Extents& extents);

/// Seconds in which the bytes pass the memory's pipe at the best of its nominal rates: a copy reads as many bytes as it
/// writes, so that writing takes what reading leaves of its time.
double least_seconds_of_moving(const Machine& machine, const Compulsory& moved);

/// Seconds of which the simulation of a CPU gives no plan of the kernel less: its start, and the longer of two times:
/// what passes the memory's pipe at least, and what all cores compute at least, one operation after the other.
double least_seconds(const Derived& derived, const Kernel& kernel, const std::vector<StatementWork>& work,
                     const Extents& extents, const Machine& machine);

}  // namespace napkin
