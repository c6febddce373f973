#pragma once
// How a power with a number for its exponent is computed: what is emitted, and what is counted.
#include <optional>

namespace napkin {

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
