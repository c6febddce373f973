#pragma once
// A derivation as text for people: which rules made the kernels, and each fold's equations in the paper's notation, where μ′ is
// the value of μ before the step.
#include <string>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// "inline ×3, factor, stream partition ×2": the rules in order of first use.
std::string rules_used(const Derived& derived);

/// One line on what the kernels are and stream over.
std::string kernels_line(const Derived& derived);

/// One equation of a fold, cut where the columns are: "step", "z", "exp(m′ - m)*z′ + sum(x) exp(S[q, x] - m)".
struct FoldLine {
    std::string part;  ///< "state", "step", "finish", "merge"
    std::string left;
    std::string right;
    friend bool operator==(const FoldLine&, const FoldLine&) = default;
};
/// The fold's equations. States stand without their indices, which its "state" lines give.
std::vector<FoldLine> fold_lines(const Derived& derived, const Fold& fold);

/// The short form: for each kernel its loops and folds, aligned; then what was refused, if anything.
std::string describe(const Derived& derived);

/// Every step: rule, side condition, the equations that changed, before and after, and the line of the source.
std::string explain(const Derived& derived);

}  // namespace napkin
