#pragma once
// The multi-level model of a kernel in closed form (paper.md §5): H* in bytes as Σ_t α_t·M^-β_t, and with a machine's
// levels
//   T = Σ_ℓ Ḣ_ℓ⁻¹·H*(a, M_ℓ) = Σ_t α_t·Σ_ℓ Ḣ_ℓ⁻¹·M_ℓ^-β_t      (Eqs. 2 and 5)
// where the types of the arrays have gone into the α_t and M_ℓ: with one type of q bytes, each term grows as q^(1+β)
// (Eq. 3).
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/levels.hpp"
#include "cost/optimum.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// One term of H* over all levels.
struct LevelTerm {
    StandardTerm term;  ///< α in bytes
    double alpha = 0;   ///< at the sizes at hand
    double weight = 0;  ///< Σ_ℓ Ḣ_ℓ⁻¹·M_ℓ^-β, s/byte^(1−β)
    double halved = 2;  ///< 2^(1+β): how much faster with values of half the bytes (Eq. 3)
    [[nodiscard]] double seconds() const { return alpha * weight; }
};

struct MultiLevel {
    Optimum best;                         ///< in bytes, with tied letters
    std::vector<LevelTerm> terms;         ///< ascending in β; empty when it is not closed
    std::map<std::string, double> bytes;  ///< H*(a, M_ℓ) by level
    double seconds = 0;                   ///< T
    std::vector<Formula> derivation;
};

/// `tied`: letters of axes that are equal in size, as in with_tied.
MultiLevel multi_level(const Derived& derived, const Kernel& kernel, const TiedLetters& tied, const Extents& extents,
                       const std::vector<ModelLevel>& levels);

}  // namespace napkin
