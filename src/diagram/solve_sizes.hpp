#pragma once
// Sizes that follow from others: where the text says n = 2 * i + w - 2, n and w give i.
#include <cstdint>
#include <map>
#include <string>

#include "diagram/diagram.hpp"
#include "support/result.hpp"

namespace napkin {

/// The given sizes and those that they determine. The size expression of a given axis is an equation; where it is
/// affine in the one axis of it that has no size, it is solved for that. A number of the text is a default. It is
/// solved for as well where it is the only one in an input's size, no input has its axis, and what is given contradicts
/// it.
/// Errors: bad-size, where no whole number from 0 up solves it or two equations want different ones.
Result<std::map<std::string, std::int64_t>> with_solved_sizes(const Diagram& diagram,
                                                              const std::map<std::string, std::int64_t>& given);

}  // namespace napkin
