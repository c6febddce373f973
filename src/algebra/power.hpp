#pragma once
// Powers of real numbers: their values, and how one with a number for its exponent is computed, which is emitted and
// counted.
#include <cmath>
#include <limits>
#include <optional>

namespace napkin {

/// A power of a number below zero, -inf included, is NaN unless the exponent is whole or infinite, so that roots
/// compute it. Else it is C's.
template <class T>
T real_power(T base, T exponent) {
    if (base < 0 && std::floor(exponent) != exponent) return std::numeric_limits<T>::quiet_NaN();
    return std::pow(base, exponent);
}

/// baseʷʰᵒˡᵉ, times a root of the base where there is one, or the reciprocal of all that.
struct PowerSteps {
    int whole = 0;
    bool has_root = false;
    bool is_reciprocal = false;

    /// Multiplications, where the whole power is found by repeated squaring.
    [[nodiscard]] int products() const;
};

/// Nothing for an exponent of which the power is left to the library's function.
std::optional<PowerSteps> power_steps(double exponent);

}  // namespace napkin
