#pragma once
// The running origins r about which Σ_x w·Π (A + B) is expanded, and why a sum has none that keeps the definition's
// digits. The side condition of the law (law.hpp, Action::shift): the parts of the expansion about r are no larger than
// those that the definition itself rounds.
#include <variant>

#include "derive/term.hpp"

namespace napkin {

/// A running mean of a quantity.
struct Mean {
    Expr value = {};     ///< 0 while it has no weight
    Expr weight = {};    ///< its weights (null: 1) and
    Conditions masks;    ///< where they count
    bool exact = false;  ///< at the end of the stream it is what the definition subtracts
};

/// Factors A + B of one A.
struct Group {
    Expr a;
    std::vector<Expr> b;
    Expr origin;               ///< a running extremum of a, finite; null: none
    std::optional<Mean> mean;  ///< of a − origin
    std::vector<Expr> shifts;  ///< r + B at the end of the stream; null: 0

    /// A − r.
    [[nodiscard]] Expr centred() const { return mean ? minus(minus(a, origin), mean->value) : minus(a, origin); }
    [[nodiscard]] Expr reference() const { return mean ? plus(origin, mean->value) : origin; }
};

/// The term's factors A + B by their A, each with its origin; the means are states that were made. Conditions under
/// which the definition is undefined where the moments are not are added to `undefined`.
std::variant<std::vector<Group>, FactorFailure> centred_groups(const Term& term, const Stream& stream,
                                                               const FactorOptions& options, Conditions& undefined);

/// e is the number, or null for the neutral one.
bool is_zero(const Expr& e);
bool is_one(const Expr& e);
/// The same conditions in any order.
bool same_conditions(const Conditions& a, const Conditions& b);

/// Π size(a): the number of reduced points.
Expr number_of_points(const Stream& stream);

}  // namespace napkin
