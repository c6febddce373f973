#pragma once
// What group and stream sizes must be divisible by on a machine (paper.md §6, step 4), with each constraint's cause
// kept:
//  - an axis that lies lowermost in memory moves in whole lines: line bytes / bytes a value;
//  - a contraction that an instruction runs takes its axes in the instruction's m, n and k.
// An axis that is shorter than its divisor runs whole.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "tile/liveness.hpp"
#include "tile/work.hpp"

namespace napkin {

struct Divisor {
    AxisId axis = -1;
    std::int64_t value = 1;
    std::string cause;  ///< "wgmma m", "128 B lines of V"
};

struct Divisors {
    std::vector<Divisor> constraints;               ///< of grouped and streamed axes
    std::map<AxisId, std::int64_t> least_multiple;  ///< of all constraints of an axis

    [[nodiscard]] std::int64_t of(AxisId axis) const;
    [[nodiscard]] std::string causes(AxisId axis) const;  ///< "wgmma m 64, 128 B lines of V 64"
};

/// Divisors of a kernel's tile program, of which `live` and `work` are readings.
Divisors divisors(const Diagram& diagram, const Kernel& kernel, const Liveness& live,
                  const std::vector<StatementWork>& work, const Machine& machine);

/// The instruction that multiplies operands of this type, or null: the first that the machine lists.
const Instruction* instruction_for(const Machine& machine, DType type);

/// The operations of a machine's unit and type a clock; "tensor" falls back to "fma" where tensor cores do not take the
/// type.
struct UnitRate {
    std::string unit;
    DType type = DType::f32;
    double per_clock = 0;  ///< of one core
};
UnitRate contraction_rate(const Machine& machine, DType type);

}  // namespace napkin
