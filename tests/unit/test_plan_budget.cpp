// What planning may simulate is a count, and stays in it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "machine/machine.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/estimates.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"

namespace napkin::test_plan_budget {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// So many products, each of the one before it: a kernel each.
std::string products(int count) {
    std::string text = "f(P0[i, j]";
    for (int n = 1; n <= count; ++n) text += fmt::format(", W{}[k, j]", n);
    text += fmt::format(") -> P{}[i, j]\n", count);
    for (int n = 1; n <= count; ++n) text += fmt::format("    P{}[i, j] = sum(k) P{}[i, k] * W{}[k, j]\n", n, n - 1, n);
    return text + "sizes i = j = k = 1000\n";
}

struct Searched {
    std::string plan;
    double simulated = 0;  ///< for each kernel
};

Searched searched(int count) {
    DeriveOptions options;
    options.fuse = false;
    const Derived derived = derive(parsed(products(count)), options).value();
    PlanOptions knowing;
    knowing.ratings = std::make_shared<Estimates>();
    const Plan plan = choose_plan(derived, bind_sizes(derived.source).value(), load_machine("generic-cpu").value(), {},
                                  knowing)
                          .value();
    EXPECT_EQ(plan.kernels.size(), static_cast<std::size_t>(count));
    return {to_string(plan), static_cast<double>(knowing.ratings->num_simulated()) / count};
}

TEST(PlanBudget, IsSharedByTheKernelsOfALongForm) {
    const Searched few = searched(2), many = searched(256);
    EXPECT_LT(many.simulated, 0.6 * few.simulated);
    EXPECT_THAT(many.plan, HasSubstr("; 16 and not 64 schedules are simulated for each: the form has 256 kernels"));
    EXPECT_THAT(few.plan, Not(HasSubstr("schedules are simulated")));
}

/// One sum over the products of so many vectors, each along an axis of its own.
std::string sum_over(int axes) {
    std::vector<std::string> inputs, names;
    for (int n = 1; n <= axes; ++n) {
        inputs.push_back(fmt::format("A{0}[i{0}]", n));
        names.push_back(fmt::format("i{}", n));
    }
    return fmt::format("f({}) -> Y\n    Y = sum({}) exp({})\nsizes {} = 32\n", fmt::join(inputs, ", "),
                       fmt::join(names, ", "), fmt::join(inputs, " * "), fmt::join(names, " = "));
}

Searched searched_in_blocks(int axes) {
    const Derived derived = derived_from(sum_over(axes));
    PlanOptions knowing;
    knowing.ratings = std::make_shared<Estimates>();
    const Plan plan = choose_blocks(derived, bind_sizes(derived.source).value(), load_machine("h200").value(), {}, knowing)
                          .value();
    return {to_string(plan), static_cast<double>(knowing.ratings->num_simulated())};
}

// Vectors may lie along the axis of each input, or along a statement's own. Nine inputs have ten such axes.
TEST(PlanBudget, IsSpentOnSixAxesOfAKernelThatHasMore) {
    const Searched six = searched_in_blocks(5), many = searched_in_blocks(9);
    EXPECT_LT(many.simulated, 1.3 * six.simulated);
    EXPECT_THAT(many.plan, HasSubstr("; fastest of 10 axes, 6 of which are searched"));
    EXPECT_THAT(six.plan, HasSubstr("; fastest of 6 axes"));
    EXPECT_THAT(six.plan, Not(HasSubstr("are searched")));
}

// The first form that is planned as a whole is the fused one, in a kernel. What is simulated of the others ends where
// it takes longer.
TEST(PlanBudget, IsNotSpentOnFormsAndPartsThatCannotBeFaster) {
    std::string text;
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& example) {
        if (name == "attention_bf16") text = example;
    });
    const Derived derived = derived_from(text);
    const auto ratings = std::make_shared<Estimates>();
    const Derived form = choose_form(derived, bind_sizes(derived.source).value(), load_machine("h200").value(), {}, ratings);
    EXPECT_EQ(form.kernels.size(), 1u);
    EXPECT_LT(ratings->num_simulated(), 8000u);
}

// Several forms of so few points have one bound, which rounding may put on either side of itself.
TEST(PlanBudget, EndsWhereFormsHaveEqualBounds) {
    const Derived derived = derive(parsed("f(K[n], W[n], B[k]: e5m2) -> O[k], L[k], Y[k], P\n"
                                          "    S[k, n] = where(n <= k, 2 * K[n], -inf)\n"
                                          "    M[k] = max(n) S[k, n]\n    Z[k] = sum(n) 2^(S[k, n] - M[k])\n"
                                          "    O[k] = sum(n) 2^(S[k, n] - M[k]) * W[n]\n    L[k] = M[k] + log(Z[k])\n"
                                          "    Y[k] = L[k] / (0.5 + Z[k] * Z[k])\n    T = max(j) Z[j]\n"
                                          "    U = sum(j) exp(Z[j] - T)\n    P = sum(k) exp(Z[k] - T) / U * B[k]\n"
                                          "sizes n = 7, k = 5\n"))
                                .value();
    const auto ratings = std::make_shared<Estimates>();
    const Derived form = choose_form(derived, bind_sizes(derived.source).value(), load_machine("h200").value(), {}, ratings);
    EXPECT_GE(form.kernels.size(), 1u);
}

}  // namespace
}  // namespace napkin::test_plan_budget
