#pragma once
// What has to be in memory before a kernel begins: integers that say where it reads, or how far its loops go.
#include <optional>
#include <set>

#include "derive/derive.hpp"

namespace napkin {

/// The first read of the equations of one kernel that cannot be, and why.
std::optional<Refusal> refused_read(const Diagram& diagram, const std::set<ArrayId>& kernel);

/// The arrays that say where others are read or how far an axis counts, and all that they are made of.
std::set<ArrayId> read_before(const Diagram& diagram);

}  // namespace napkin
