#pragma once
// Pictures compared with those that are kept: the same text, and numbers that differ by no more than is seen.
#include <string>
#include <string_view>

namespace napkin::draw {

/// Where the texts differ first, as "line 12: … where … was expected"; empty where they do not. Numbers may differ by
/// the tolerance.
std::string first_difference(std::string_view made, std::string_view kept, double tolerance = 0.5);

}  // namespace napkin::draw
