#pragma once
// A derivation as text for people: which rules made the kernels, and each fold's equations in the paper's notation,
// where μ′ is the value of μ before the step.
#include <string>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// "inline ×3, factor, stream partition ×2": the rules in order of first use.
std::string rules_used(const Derived& derived);

/// "S…P | O over x": the kernels of an alternative, each by its first and last array and the axis that it streams.
std::string gatherings_text(const Diagram& diagram, const std::vector<Gathering>& kernels);

/// One line on what the kernels are and stream over.
std::string kernels_line(const Derived& derived);

/// One equation of a kernel, cut where the columns are: "step", "z", "z′ * δ + sum(x) exp(S[q, x] - m)".
struct EquationLine {
    std::string part;  ///< "head", "state", "step", "tail" and, of a fold, "merge"
    std::string left;
    std::string right;
    friend bool operator==(const EquationLine&, const EquationLine&) = default;
};

/// A kernel's equations in order of execution. States stand without their indices, which their "state" lines give.
std::vector<EquationLine> kernel_lines(const Derived& derived, const Kernel& kernel);

/// How the states of two parts of the stream, ₁ and ₂, become one; empty when they simply add up, multiply or compare.
std::vector<EquationLine> merge_lines(const Derived& derived, const Kernel& kernel, const Fold& fold);

/// Lines under each other: the part where it changes, both sides of = aligned.
std::string aligned(const std::vector<EquationLine>& lines, const std::string& indent);

/// The short form: for each kernel its loops and folds, aligned; then what was refused, if anything.
std::string describe(const Derived& derived);

/// Every step: rule, side condition, the equations that changed, before and after, and the line of the source.
std::string explain(const Derived& derived);

}  // namespace napkin
