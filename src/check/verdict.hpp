#pragma once
// Whether what ran is what the definition says, element by element, within the error that the definition allows to it.
#include <cstdint>
#include <string>
#include <vector>

#include "check/reference.hpp"
#include "check/work.hpp"
#include "run/pipeline.hpp"
#include "run/tensor.hpp"

namespace napkin {

enum class Judgement : std::uint8_t {
    good,  ///< every value is within its bound
    /// so is every one that has a bound, but too many have none: the definition divides by what may be 0, or rounding
    /// made NaN of them
    unbounded,
    bad,  ///< a value is outside
};
std::string_view name(Judgement judgement);  ///< "good", "no bound", "BAD"

/// One output against its reference.
struct ArrayVerdict {
    std::string array;
    DType type = DType::f32;
    Judgement judgement = Judgement::good;
    std::int64_t values = 0;     ///< compared
    std::int64_t beyond = 0;     ///< outside of their bounds
    std::int64_t unbounded = 0;  ///< without a bound: anything is right there
    /// those among them that are infinite or NaN, by rounding, where the definition has a number
    std::int64_t lost = 0;
    // The value that is farthest out, as a share of its bound: the first of those outside, if any.
    double share = 0;                      ///< |value - reference| / bound; infinite where no number makes it
    std::vector<std::int64_t> place = {};  ///< its coordinates
    double value = 0, reference = 0;
    double bound = 0;  ///< with the rounding to the output's type
    // FlashAttention's rule, which decides nothing: the error is at most twice that of the plain evaluation in the
    // arrays' types, plus one rounding. Over the values that are finite in all three.
    double error = 0, plain_error = 0, rounding = 0;
    [[nodiscard]] bool within_plain() const { return error <= 2 * plain_error + rounding; }
};

/// "O[3, 17] is 2.5, where the definition gives 1 ± 3e-07": about a value outside of its bound.
std::string describe(const ArrayVerdict& verdict);

/// Judges what was made of an array of the diagram, by the bounds of evaluate_bounded.
ArrayVerdict judge(const Diagram& diagram, ArrayId array, const Extents& extents, const BoundedValues& reference,
                   const Column& values);

struct Verdict {
    std::vector<ArrayVerdict> arrays;  ///< in the order of the diagram's outputs
    std::int64_t checked_values = 0, output_values = 0;
    std::string left_out = {};  ///< why no value was compared; empty: some were
    std::uint64_t seed = 0;
    [[nodiscard]] bool good() const;  ///< none is bad
};

struct CheckOptions {
    std::uint64_t seed = 0;                ///< of the sample
    double operations = check_operations;  ///< that the evaluations of the definition take, at most about
};

/// Compares a run's outputs, or a sample of them where there are very many, with the definition; nothing where a single
/// value takes more operations than are allowed.
Verdict check_outputs(const Compilation& compilation, const std::vector<Tensor>& inputs,
                      const std::vector<Tensor>& outputs, const CheckOptions& options);

}  // namespace napkin
