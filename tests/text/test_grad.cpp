// `napkin grad`: the text of the gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/json.hpp"
#include "text/cli.hpp"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* row =
    "row(X[r, c], W[c], N[r]: i32) -> Y[r], Z[r]\n"
    "    Y[r] = logsumexp(c) X[r, c] * W[c]\n"
    "    Z[r] = Y[r] * N[r]\n";

TEST_F(Cli, grad_prints_a_text_that_runs) {
    write("a.nk", row);
    const Outcome outcome = napkin("grad a.nk");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("row_grad(X[r, c]: f32, W[c]: f32, N[r]: i32, dY[r]: f32, dZ[r]: f32) -> "
                                        "dX[r, c]: f32, dW[c]: f32\n"));
    write("b.nk", outcome.out);
    EXPECT_EQ(napkin("run b.nk --set r=7,c=33").code, 0);
}

TEST_F(Cli, grad_differentiates_by_what_is_asked) {
    write("a.nk", row);
    EXPECT_THAT(napkin("grad a.nk --wrt W").out, HasSubstr("-> dW[c]: f32\n"));
    EXPECT_THAT(napkin("grad a.nk --wrt N").err, AllOf(HasSubstr("bad-gradient"), HasSubstr("X, W")));
    EXPECT_THAT(napkin("grad a.nk --wrt V").err, HasSubstr("row has no argument V"));
    EXPECT_EQ(napkin("grad a.nk --wrt V").code, 1);
}

TEST_F(Cli, grad_says_what_results_do_not_depend_on) {
    write("a.nk", "f(X[i], A[i]) -> Y[i]\n    Y[i] = X[i] + floor(A[i])\n");
    const Outcome outcome = napkin("grad a.nk");
    EXPECT_THAT(outcome.out, AllOf(StartsWith("# no result depends on A\n"), HasSubstr("dA[i]: f32 = 0\n")));
    EXPECT_EQ(nlohmann::json::parse(napkin("grad a.nk --json").out)["independent"], nlohmann::json::array({"A"}));
}

TEST_F(Cli, grad_keeps_what_the_forward_text_returns) {
    write("a.nk", row);
    EXPECT_THAT(napkin("grad a.nk --keep Y").out,
                AllOf(StartsWith("row_grad(X[r, c]: f32, W[c]: f32, N[r]: i32, dY"), HasSubstr("max(c)")));
    EXPECT_THAT(napkin("grad a.nk --keep Y_M,Y_Z").out,
                AllOf(HasSubstr("Y_M[r]: f32, Y_Z[r]: f32, dY"), Not(HasSubstr("max(c)"))));
    EXPECT_THAT(napkin("grad a.nk --keep Y_M,Y_Z --forward").out,
                HasSubstr("-> Y[r]: f32, Z[r]: f32, Y_M[r]: f32, Y_Z[r]: f32\n"));
    EXPECT_THAT(napkin("grad a.nk --keep X").err, HasSubstr("a result or a temporary"));
}

TEST_F(Cli, grad_chooses_what_is_kept_by_predicted_time) {
    write("a.nk", row);
    const std::string chosen = "grad a.nk --keep auto --machine generic-cpu --set r=4096,c=4096";
    EXPECT_THAT(napkin(chosen).out,
                AllOf(HasSubstr("keep nothing"), HasSubstr("* keep Y_M, Y_Z "), HasSubstr("Y_M, Y_Z, Y_X")));
    // All values do not fit there, and then no row's.
    EXPECT_THAT(napkin(chosen + " --memory-limit 100000").out, Not(HasSubstr("Y_X ")));
    EXPECT_THAT(napkin(chosen + " --memory-limit 100").out, HasSubstr("* keep nothing"));
    EXPECT_THAT(napkin("grad a.nk --keep auto").err, HasSubstr("missing-size"));
}

TEST_F(Cli, grad_needs_real_numbers) {
    write("a.nk", "f(N[i]: i32) -> Y\n    Y = sum(i) N[i] * 0.5\n");
    EXPECT_THAT(napkin("grad a.nk").err, HasSubstr("f has no argument of real numbers"));
    write("b.nk", "f(X[i]) -> Y: i32\n    Y = argmax(i) X[i]\n");
    EXPECT_THAT(napkin("grad b.nk").err, HasSubstr("f has no result of real numbers"));
}

}  // namespace
