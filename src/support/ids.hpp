#pragma once
// Identity is by id, a position in the list that owns the things; names are for people.
#include <cstddef>

#include "support/ranges.hpp"

namespace napkin {

/// The place of an id, or of an enumerator, in a container indexed by it.
constexpr std::size_t at(auto id) { return static_cast<std::size_t>(id); }

}  // namespace napkin
