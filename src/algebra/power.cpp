#include "algebra/power.hpp"

#include <bit>
#include <cmath>

namespace napkin {
namespace {
/// Each of more products rounds what the ones before have rounded: the library's function has fewer wrong digits.
constexpr double largest_whole = 8;
}  // namespace

int PowerSteps::products() const {
    if (whole == 0) return 0;
    const auto n = static_cast<unsigned>(whole);
    return std::bit_width(n) - 1 + std::popcount(n) - 1 + (has_root ? 1 : 0);
}

std::optional<PowerSteps> power_steps(double exponent) {
    if (exponent == 0.5) return PowerSteps{.has_root = true};
    if (exponent == -0.5) return PowerSteps{.has_root = true, .is_reciprocal = true};
    if (exponent == 1.5) return PowerSteps{.whole = 1, .has_root = true};
    if (std::abs(exponent) > largest_whole || exponent != std::trunc(exponent)) return std::nullopt;
    return PowerSteps{.whole = static_cast<int>(std::abs(exponent)), .is_reciprocal = exponent < 0};
}

}  // namespace napkin
