#pragma once
// Which loops of a reduction a compiler may unroll.
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The first of a reduction's loops, outermost first, that may be unrolled with all that is inside of it. A compiler
/// unrolls short loops of known lengths one inside the other, and asks for all that their turns load before it
/// multiplies: those operands must have registers beside the block's results. The innermost loop always may be. Pre:
/// the step computes, in blocks of threads.
std::size_t first_unrolled(const ScheduledKernel& kernel, const Step& step, const std::vector<AxisId>& loops);

}  // namespace napkin
