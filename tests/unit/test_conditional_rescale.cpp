// Which running maximum may lag: where what is computed in the end does not depend on it.
#include "schedule/conditional_rescale.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "support/parsed.hpp"

namespace napkin::test_lazy_maximum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Plan> planned(const std::string& body, const std::string& lines = "",
                     const std::string& outputs = "O[h, q, d]: bf16") {
    const Derived derived = derived_from("f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> " + outputs +
                                         "\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n" + body +
                                         "sizes h = 64, q = x = 2048, k = d = 64\n");
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{
        "by_hand.schedule", "mma_m q\nwarps 8\nrole copies 4\ngroup h = 1\ngroup q = 128\nstream x = 64\n" + lines});
    return choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {}, options);
}
const std::string attention =
    "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n";
const std::string weights = "    M[h, q] = max(x) S[h, q, x]\n    E[h, q, x] = exp(S[h, q, x] - M[h, q])\n";

std::variant<ConditionalRescale, std::string> found(const std::string& body,
                                                    const std::string& outputs = "O[h, q, d]: bf16") {
    const auto plan = planned(body, "", outputs);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    return conditional_rescale(plan->kernels.at(0).scheduled);
}
std::string refusal(const std::string& body, const std::string& outputs = "O[h, q, d]: bf16") {
    const auto lazy = found(body, outputs);
    return std::holds_alternative<std::string>(lazy) ? std::get<std::string>(lazy) : "";
}

TEST(ConditionalRescale, IsThatOfQuotientsOfSums) {
    const auto plan = planned(attention, "atom P_Z_acc fragment, points h q, over x\n");
    ASSERT_TRUE(plan);
    const auto lazy = conditional_rescale(plan->kernels.at(0).scheduled);
    ASSERT_TRUE(std::holds_alternative<ConditionalRescale>(lazy)) << std::get<std::string>(lazy);
    EXPECT_EQ(std::get<ConditionalRescale>(lazy).moving.size(), 4U);
    EXPECT_EQ(std::get<ConditionalRescale>(lazy).again.size(), 1U);
    EXPECT_EQ(constant_value(plan->kernels.at(0).scheduled, std::get<ConditionalRescale>(lazy).limit), 4);
    EXPECT_EQ(refusal(weights +
                      "    Z[h, q] = sum(x) E[h, q, x]\n    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) / Z[h, q]\n"),
              "");
    EXPECT_EQ(refusal("    A[h, q, x] = where(x <= q, S[h, q, x], -inf)\n    P[h, q, x] = softmax(x) A[h, q, x]\n"
                      "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"),
              "");
}

TEST(ConditionalRescale, IsThatOfALogarithmBesideIt) {
    EXPECT_EQ(refusal(attention + "    L[h, q] = logsumexp(x) S[h, q, x] * k^-0.5\n", "O[h, q, d]: bf16, L[h, q]"), "");
}

/// Weights of this exponential under this extremum of the logits, their sum, and this result line beside the output.
std::string referring(const std::string& extremum, const std::string& weight, const std::string& line = "") {
    return "    M[h, q] = " + extremum + "\n    E[h, q, x] = " + weight + "\n    Z[h, q] = sum(x) E[h, q, x]\n" + line +
           "    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) / Z[h, q]\n";
}

// The calculus says what refers to what: an extremum, a base, a factor and a spelling make no difference here.
TEST(ConditionalRescale, IsThatOfAnyReferenceOfExponentials) {
    const auto rate = [](const std::string& extremum, const std::string& weight, const std::string& line = "",
                         const std::string& outputs = "O[h, q, d]: bf16") {
        const auto lazy = found(referring(extremum, weight, line), outputs);
        if (const auto* why = std::get_if<std::string>(&lazy)) throw std::runtime_error(weight + ": " + *why);
        return std::get<ConditionalRescale>(lazy).rate;
    };
    const std::string most = "max(x) S[h, q, x]", least = "min(x) S[h, q, x]";
    EXPECT_EQ(rate(most, "exp(S[h, q, x] - M[h, q])"), 1);
    EXPECT_EQ(rate(least, "exp(M[h, q] - S[h, q, x])"), -1);
    EXPECT_DOUBLE_EQ(rate(most, "2^(S[h, q, x] - M[h, q])"), std::log(2.0));
    EXPECT_DOUBLE_EQ(rate(least, "exp2(M[h, q] - S[h, q, x])"), -std::log(2.0));
    EXPECT_DOUBLE_EQ(rate(most, "10^(S[h, q, x] - M[h, q])"), std::log(10.0));
    EXPECT_DOUBLE_EQ(rate(most, "exp(0.25 * (S[h, q, x] - M[h, q]))"), 0.25);
    EXPECT_DOUBLE_EQ(rate(most, "exp(k^-0.5 * S[h, q, x] - k^-0.5 * M[h, q])"), 0.125);
    EXPECT_DOUBLE_EQ(rate(least, "exp(-0.25 * (S[h, q, x] - M[h, q]))"), -0.25);
    EXPECT_EQ(rate(most, "3 * exp(S[h, q, x] - M[h, q])"), 1);
    EXPECT_EQ(rate("max(x) where(x <= q, S[h, q, x], -inf)", "exp(where(x <= q, S[h, q, x], -inf) - M[h, q])"), 1);
    // The largest weight, and the logarithm of the sums in each base.
    const std::string bits = "O[h, q, d]: bf16, T[h, q]";
    EXPECT_EQ(rate(most, "exp(S[h, q, x] - M[h, q])", "    T[h, q] = (max(x) E[h, q, x] * (x + 1)) / Z[h, q]\n", bits), 1);
    EXPECT_EQ(rate(least, "exp(M[h, q] - S[h, q, x])", "    T[h, q] = M[h, q] - log(Z[h, q])\n", bits), -1);
    EXPECT_DOUBLE_EQ(rate(most, "2^(S[h, q, x] - M[h, q])", "    T[h, q] = M[h, q] + log2(Z[h, q])\n", bits), std::log(2.0));
    EXPECT_DOUBLE_EQ(
        rate(most, "exp(0.25 * (S[h, q, x] - M[h, q]))", "    T[h, q] = M[h, q] + log(Z[h, q]) * 4\n", bits), 0.25);
}

TEST(ConditionalRescale, IsNoneWhereAnotherRateWouldBeLeft) {
    const std::string bits = "O[h, q, d]: bf16, T[h, q]", most = "max(x) S[h, q, x]",
                      of_two = "2^(S[h, q, x] - M[h, q])";
    EXPECT_THAT(refusal(referring(most, of_two, "    T[h, q] = M[h, q] + log(Z[h, q])\n"), bits),
                HasSubstr("T is stored"));
    EXPECT_THAT(refusal(referring(most, of_two, "    T[h, q] = M[h, q] - log2(Z[h, q])\n"), bits),
                HasSubstr("T is stored"));
    EXPECT_THAT(refusal(referring(most, of_two, "    T[h, q] = (max(x) E[h, q, x] * (x + 1))\n"), bits),
                HasSubstr("stored"));
}

TEST(ConditionalRescale, IsNoneOnWhichAResultDepends) {
    const std::string quotient =
        "    Z[h, q] = sum(x) E[h, q, x]\n    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) / Z[h, q]\n";
    EXPECT_THAT(refusal(weights + quotient, "O[h, q, d]: bf16, Z[h, q]"), HasSubstr("Z"));
    EXPECT_THAT(refusal(weights + quotient, "O[h, q, d]: bf16, M[h, q]"), HasSubstr("M"));
    EXPECT_THAT(refusal(weights + "    O[h, q, d] = sum(x) E[h, q, x] * V[h, x, d]\n"),
                HasSubstr("no sum of its weights"));
    EXPECT_THAT(
        refusal(weights +
                "    Z[h, q] = sum(x) E[h, q, x]\n    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) / (Z[h, q] + 1)\n"),
        HasSubstr("depends on it"));
    EXPECT_THAT(refusal(weights + "    Z[h, q] = sum(x) E[h, q, x]\n    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) "
                                  "/ (Z[h, q] * Z[h, q])\n"),
                HasSubstr("O"));
}

/// Whether the plan has one, by its own choice or by these lines, of attention with these logits.
bool lags(const std::string& logits, const std::string& lines = "") {
    const auto plan = planned(
        "    A[h, q, x] = " + logits +
            "\n    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n",
        lines);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    return plan->kernels.at(0).scheduled.rescale.has_value();
}

// A bias of distances grows toward the diagonal: the maximum would be behind in every chunk. A mask of positions says
// where, and not how much.
TEST(ConditionalRescale, IsNotChosenWhereLogitsGrowWithThePosition) {
    const std::string alibi = "where(x <= q, S[h, q, x] - 2^(-8 * (h + 1) / size(h)) * (q - x), -inf)";
    EXPECT_FALSE(lags(alibi));
    EXPECT_TRUE(lags(alibi, "rescaling rescale\n"));
    EXPECT_FALSE(lags("S[h, q, x] + x * size(x)^-1"));
    EXPECT_TRUE(lags("where(x <= q and q - x < 512, S[h, q, x], -inf)"));
    EXPECT_TRUE(lags("S[h, q, x] - 2^(-8 * (h + 1) / size(h)) * q"));
}

TEST(ConditionalRescale, IsPrintedAndReadBack) {
    const auto rescaled = planned(attention), by_user = planned(attention, "rescaling rescale\n"),
               exact = planned(attention, "rescaling always\n");
    ASSERT_TRUE(rescaled && by_user && exact);
    const auto text = [](const Plan& plan) {
        const ScheduledKernel& k = plan.kernels.at(0).scheduled;
        return to_string(*k.program, *k.kernel, k.schedule);
    };
    EXPECT_THAT(text(*rescaled), testing::ContainsRegex("rescaling +rescale"));
    EXPECT_THAT(text(*rescaled), testing::Not(testing::ContainsRegex("rescaling +rescale +.override.")));
    EXPECT_THAT(text(*by_user), testing::ContainsRegex("rescaling +rescale +.override."));
    EXPECT_THAT(text(*exact), testing::ContainsRegex("rescaling +always +.override."));
    EXPECT_TRUE(rescaled->kernels.at(0).scheduled.rescale);
    EXPECT_TRUE(by_user->kernels.at(0).scheduled.rescale);
    EXPECT_FALSE(exact->kernels.at(0).scheduled.rescale);
    EXPECT_LT(rescaled->kernels.at(0).time.seconds, exact->kernels.at(0).time.seconds);
}

TEST(ConditionalRescale, IsRefusedByTheRuleThatItBreaks) {
    const auto plan = planned(weights + "    O[h, q, d] = sum(x) E[h, q, x] * V[h, x, d]\n", "rescaling rescale\n");
    ASSERT_FALSE(plan);
    EXPECT_THAT(render(plan.errors()), testing::AllOf(HasSubstr("cannot lag"), HasSubstr("no sum of its weights")));
    const auto word = planned(attention, "maximum lazy\n");
    ASSERT_FALSE(word);
    EXPECT_THAT(render(word.errors()), testing::AllOf(HasSubstr("lazy"), HasSubstr("always"), HasSubstr("rescale")));
}

}  // namespace
}  // namespace napkin::test_lazy_maximum
