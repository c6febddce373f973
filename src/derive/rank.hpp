#pragma once
// The order of alternatives without a machine. Those that serve at every size stand before those that ask for one core
// or for a short axis; then by FLOPs up to a factor of two, then by compulsory transfers, at the sizes that are known.
#include <vector>

#include "derive/build.hpp"

namespace napkin {

/// At most eight of the candidates that can be built, the best first, each with the condition on sizes under which it
/// is the best. The first candidate can be built.
Region ranked(KernelBuilder& builder, const std::vector<std::vector<Gathering>>& candidates);

}  // namespace napkin
