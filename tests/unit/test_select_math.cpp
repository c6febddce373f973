// How operations are computed: what the pass chooses for each statement, as the kernel program prints it.
#include <gmock/gmock.h>

#include <string>

#include "lower/lower.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"

namespace napkin::test_select_math {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The kernel programs of the text's plan.
std::string lowered(const std::string& text, const char* machine) {
    const Derived derived = derived_from(text);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram).value(), load_machine(machine).value());
    if (!plan) throw std::runtime_error(render(plan.errors()));
    std::string out;
    for (const lower::KernelProgram& kernel : lower::lowered(plan->program()).kernels) out += to_string(kernel);
    return out;
}
/// Y of X, whose rows have values.
std::string of_rows(const std::string& value, const std::string& machine, const std::string& type = "") {
    return lowered("f(X[r, c]" + type + ") -> Y[r, c]" + type + "\n    Y[r, c] = " + value + "\nsizes r = 64, c = 256\n",
                   machine.c_str());
}
std::string attention(const char* machine, const std::string& score) {
    return lowered(
        "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16) -> O[q, d]: bf16\n"
        "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = softmax(x) " +
            score + "\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 4096, k = d = 64\n",
        machine);
}

TEST(SelectMath, MakesPowersOfTwoOfExponentialsOnGpusInSinglePrecision) {
    EXPECT_THAT(of_rows("exp(X[r, c])", "h200"), HasSubstr("map Y, exp by exp2\n"));
    EXPECT_THAT(of_rows("exp(X[r, c])", "h200", ": f64"), HasSubstr("map Y\n"));
    EXPECT_THAT(of_rows("exp(X[r, c])", "generic-cpu"), HasSubstr("map Y\n")) << "it may be positive";
    EXPECT_THAT(of_rows("2^X[r, c]", "h200"), HasSubstr("map Y, ^ by exp2\n"));
    EXPECT_THAT(of_rows("3^X[r, c]", "h200"), HasSubstr("map Y\n"));
}

TEST(SelectMath, KnowsWhatIsAtMostZeroOnCpus) {
    const std::string softmax = of_rows("softmax(c) X[r, c]", "generic-cpu");
    EXPECT_THAT(softmax, HasSubstr("exp by exp_nonpositive\n"));
    EXPECT_THAT(softmax, HasSubstr("map Y, / by a reciprocal"));
    EXPECT_THAT(of_rows("softmax(c) X[r, c]", "generic-cpu", ": f64"), Not(HasSubstr("exp_nonpositive")));
}

TEST(SelectMath, HidesLastDigitsBehindARounding) {
    EXPECT_THAT(attention("h200", "S[q, x] * k^-0.5"), HasSubstr("map O, / by near_quotient\n"));
    EXPECT_THAT(of_rows("X[r, c] / (c + 1)", "h200", ": bf16"), HasSubstr("map Y, / by near_quotient\n"));
    EXPECT_THAT(of_rows("X[r, c] / (c + 1)", "h200"), HasSubstr("map Y\n"));
    EXPECT_THAT(of_rows("X[r, c] / 4", "h200", ": bf16"), HasSubstr("map Y, / exactly\n"));
    EXPECT_THAT(of_rows("gelu(X[r, c])", "h200", ": bf16"), HasSubstr("map Y, erfc by near_erfc\n"));
    EXPECT_THAT(of_rows("gelu(X[r, c])", "h200"), HasSubstr("map Y\n"));
    EXPECT_THAT(of_rows("gelu(X[r, c])", "generic-cpu", ": bf16"), HasSubstr("map Y\n"));
}

TEST(SelectMath, TakesFactorsOutOfMaximaOnFragments) {
    for (const char* score : {"S[q, x] * k^-0.5", "S[q, x] * rsqrt(k)"})
        EXPECT_THAT(attention("h200", score), HasSubstr("reduce P_M, then times 0.125\n"));
    EXPECT_THAT(attention("h200", "S[q, x] * -1"), Not(HasSubstr("then times"))) << "the largest would be the smallest";
}

TEST(SelectMath, MultipliesForConstantExponents) {
    for (const char* machine : {"h200", "generic-cpu"}) {
        EXPECT_THAT(of_rows("X[r, c]^-2", machine), HasSubstr("map Y, ^ by products\n"));
        EXPECT_THAT(of_rows("X[r, c]^0.3", machine), HasSubstr("map Y\n"));
    }
}

TEST(SelectMath, SetsColumnsOfFragmentsApart) {
    const std::string causal = "where(x <= q, S[q, x], -inf)";
    EXPECT_THAT(attention("h200", causal), HasSubstr("column apart"));
    EXPECT_THAT(attention("generic-cpu", causal), Not(HasSubstr("column apart"))) << "it has no fragments";
}

}  // namespace
}  // namespace napkin::test_select_math
