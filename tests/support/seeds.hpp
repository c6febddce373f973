#pragma once
#include <cstdint>
#include <utility>

namespace napkin {

/// The seeds of a campaign, from the first to before the second: 0 to `every_day`, or what NAPKIN_SEEDS=from:to says
/// (NAPKIN_SEEDS=n: n).
std::pair<std::uint64_t, std::uint64_t> seeds(std::uint64_t every_day);

}  // namespace napkin
