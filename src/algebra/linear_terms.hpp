#pragma once
// Sums of whole numbers as terms with factors, so that what stands on both sides of a comparison, or is added and taken
// away, cancels. Whole numbers that are reckoned without a width, as indices and coordinates are, allow that.
#include <cstdint>
#include <utility>
#include <vector>

#include "algebra/expr.hpp"

namespace napkin {

/// Terms with their factors, in the order in which they stand first, and a number.
class LinearTerms {
public:
    void add(const Expr& e, std::int64_t factor);
    [[nodiscard]] const std::vector<std::pair<Expr, std::int64_t>>& terms() const { return terms_; }
    [[nodiscard]] std::int64_t constant() const { return constant_; }
    /// Whether some term was both added and taken away.
    [[nodiscard]] bool has_cancelled() const { return cancelled_; }
    /// The terms whose factors have the sign, as a sum; 0 where there are none.
    [[nodiscard]] Expr part(bool positive) const;
    /// Whether all factors and the number are 0.
    [[nodiscard]] bool is_zero() const;

private:
    std::vector<std::pair<Expr, std::int64_t>> terms_;
    std::int64_t constant_ = 0;
    bool cancelled_ = false;
};

/// The sum without terms that cancel, in the order in which they stand; the same expression where none do.
Expr without_cancelled_terms(const Expr& sum);
/// The comparison without terms that both of its sides have; the same expression where there are none. Pre: its sides
/// are whole numbers.
Expr without_common_terms(const Expr& comparison);

}  // namespace napkin
