// Which exponentials are of a value less a maximum over it, and are computed as such.
#include "schedule/maxima.hpp"

#include <gmock/gmock.h>

#include "algebra/expr_walk.hpp"
#include "emit/cpu/emit.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"

namespace napkin::test_maxima {
namespace {

/// Exponentials of the plan that are, and all of them.
struct Counted {
    int nonpositive = 0, all = 0;
    friend bool operator==(const Counted&, const Counted&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Counted& c) {
        return out << c.nonpositive << " of " << c.all;
    }
};
Counted counted(const std::string& text, const char* machine = "generic-cpu") {
    const Derived derived = derived_from(text);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram).value(), load_machine(machine).value());
    if (!plan) throw std::runtime_error(render(plan.errors()));
    Counted out;
    for (const KernelPlan& kernel : plan->kernels)
        for (const Step& step : kernel.scheduled.steps) {
            const auto* compute = std::get_if<Compute>(step.statement);
            if (!compute) continue;
            out.nonpositive += static_cast<int>(nonpositive_exponentials(kernel.scheduled, step).size());
            for_each_postorder(compute->body, [&](const Expr& e) {
                const auto* u = as<Unary>(e);
                out.all += u && u->op == UnaryOp::exp;
            });
        }
    return out;
}
/// Counts the exponential of each element of X, f32 unless `type` says otherwise, less M.
Counted of_rows(const std::string& maximum, const std::string& exponent, const std::string& type = "",
                const std::string& results = "Y[r, c]") {
    return counted("f(X[r, c]" + type + ", G[r, c]) -> " + results + "\n    M[r] = " + maximum +
                   "\n    Y[r, c] = exp(" + exponent + ")\nsizes r = 64, c = 256\n");
}

TEST(Maxima, BoundTheValuesThatTheyAreOver) {
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - M[r]"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c] * 0.3", "X[r, c] * 0.3 - M[r]"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("max(c) where(c <= r, X[r, c] * 0.5, -inf)", "where(c <= r, X[r, c] * 0.5, -inf) - M[r]"),
              (Counted{1, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - where(M[r] == -inf, 0, M[r])"), (Counted{1, 1}));
}

// A product is rounded before the difference, as it was for the maximum, which it is never above then.
TEST(Maxima, BoundProductsOfTwoValues) {
    EXPECT_EQ(of_rows("max(c) X[r, c] * G[r, c]", "X[r, c] * G[r, c] - M[r]"), (Counted{1, 1}));
}

TEST(Maxima, OfMinimaBoundTheirDifferences) {
    EXPECT_EQ(of_rows("min(c) X[r, c]", "M[r] - X[r, c]"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("min(c) X[r, c] * 0.3", "M[r] - X[r, c] * 0.3"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("min(c) X[r, c]", "where(M[r] == inf, 0, M[r]) - X[r, c]"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("min(c) X[r, c]", "where(M[r] == -inf, 0, M[r]) - X[r, c]"), (Counted{0, 1}));
}

TEST(Maxima, BoundNothingElse) {
    EXPECT_EQ(of_rows("max(c) X[r, c]", "M[r] - X[r, c]"), (Counted{0, 1})) << "it is not negative";
    EXPECT_EQ(of_rows("min(c) X[r, c]", "X[r, c] - M[r]"), (Counted{0, 1}));
    EXPECT_EQ(of_rows("sum(c) X[r, c]", "X[r, c] - M[r]"), (Counted{0, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] * 2 - M[r]"), (Counted{0, 1})) << "other values";
    EXPECT_EQ(of_rows("max(c) G[r, c]", "X[r, c] - M[r]"), (Counted{0, 1}));
    EXPECT_EQ(of_rows("max(c) abs(X[r, c])", "X[r, c] - M[r]"), (Counted{0, 1})) << "true, and not seen";
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - where(M[r] == -inf, 1, M[r])"), (Counted{0, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - where(M[r] == inf, 0, M[r])"), (Counted{0, 1}))
        << "where the maximum is +inf, others less 0 may be above 0";
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - where(abs(M[r]) == inf, 0, M[r])"), (Counted{0, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c] * G[r, c] * X[r, c]", "X[r, c] * G[r, c] * X[r, c] - M[r]"), (Counted{0, 1}))
        << "rounded twice";
    EXPECT_EQ(of_rows("max(c) X[r, c] * (c + 1)^-0.5", "X[r, c] * (c + 1)^-0.5 - M[r]"), (Counted{0, 1}));
    EXPECT_EQ(counted("f(X[r, c]) -> Y[r, c]\n    M[r] = max(c) X[r, c]\n    Y[r, c] = exp(X[r, c] - M[c])\n"
                      "sizes r = c = 64\n"),
              (Counted{0, 1}))
        << "the maximum of another row";
}

// What a row's own maximum is computed from goes through the stream with it; of the maximum before, nothing is known.
TEST(Maxima, OfStreamsBoundTheirWeightsAndNotTheirCorrections) {
    const Counted attention = counted(
        "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
        "    P[q, x] = softmax(x) S[q, x] * k^-0.5\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
        "sizes q = x = 512, k = d = 64\n");
    EXPECT_GE(attention.nonpositive, 1);
    EXPECT_GT(attention.all, attention.nonpositive);
}

TEST(Maxima, AreOfCpusInSinglePrecision) {
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - M[r]", ": f16"), (Counted{1, 1}));
    EXPECT_EQ(of_rows("max(c) X[r, c]", "X[r, c] - M[r]", ": f64").nonpositive, 0);
    EXPECT_EQ(counted("f(X[r, c]) -> Y[r, c]\n    M[r] = max(c) X[r, c]\n    Y[r, c] = exp(X[r, c] - M[r])\n"
                      "sizes r = 64, c = 256\n",
                      "h200")
                  .nonpositive,
              0);
}

// Contracted with the difference, the product would be rounded with it alone.
TEST(Maxima, HaveTheProductsThatTheyAreOverRoundedBeforeTheDifference) {
    const auto emitted = [](const std::string& extremum, const std::string& exponent) {
        const Derived derived = derived_from("f(X[r, c]) -> Y[r, c]\n    M[r] = " + extremum + "\n    Y[r, c] = exp(" +
                                             exponent + ")\nsizes r = 64, c = 256\n");
        const Machine machine = load_machine("generic-cpu").value();
        return cpu::emit(choose_plan(derived, bind_sizes(derived.diagram).value(), machine).value().program()).text;
    };
    const auto source = [&](const std::string& value) { return emitted("max(c) " + value, value + " - M[r]"); };
    const auto least = [&](const std::string& value) { return emitted("min(c) " + value, "M[r] - " + value); };
    EXPECT_THAT(source("X[r, c] * 0.3"), testing::HasSubstr("exp_nonpositive(keep("));
    EXPECT_THAT(source("X[r, c]"), testing::HasSubstr("exp_nonpositive(load("));
    EXPECT_THAT(least("X[r, c] * 0.3"), testing::ContainsRegex("exp_nonpositive\\(.* - keep\\("));
}

}  // namespace
}  // namespace napkin::test_maxima
