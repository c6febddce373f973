#pragma once
// The order of alternatives without a machine. Those that serve at every size come before those that need one core or a
// short axis. Then the order is by FLOPs up to a factor of two, then by compulsory transfers, at the sizes that are
// known.
#include <vector>

#include "derive/build.hpp"

namespace napkin {

/// At most eight of the candidates that can be built, the best first, each with the condition on sizes under which it
/// is the best. The first candidate can be built.
Region ranked(KernelBuilder& builder, const std::vector<std::vector<Gathering>>& candidates);

}  // namespace napkin
