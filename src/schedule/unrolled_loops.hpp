#pragma once
// Which loops of a reduction a compiler may unroll.
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The first of a reduction's loops, outermost first, that may be unrolled with all loops inside of it. A compiler
/// unrolls nested short loops of known lengths, and issues all their loads before it multiplies. Those operands need
/// registers beside the block's results. The innermost loop may always be unrolled. Pre: the step computes, in a kernel
/// of CTAs.
std::size_t first_unrolled(const ScheduledKernel& kernel, const Step& step, const std::vector<AxisId>& loops);

}  // namespace napkin
