// Programs for which a law of the reals does not hold for every number. A value that cancels, is divided out, loses
// against an extremum or is left out of a masked chunk is infinite or NaN. Or it is so near to something else that an
// expansion keeps none of its digits. Each program goes through every room on inputs of every kind, under both forms,
// in many chunks.
#include <gtest/gtest.h>

#include <ostream>

#include "property/pipeline_case.hpp"
#include "support/random_program.hpp"

namespace napkin::pipeline {
namespace {

struct Program {
    const char* name;
    const char* text;
    friend void PrintTo(const Program& p, std::ostream* out) { *out << p.name; }
};

const Program programs[] = {
    {"a_quotient_of_equal_sums", R"(f(X[t], G[t]) -> O, U
    C[t] = 1 - 1
    Z = sum(t) C[t]
    P[t] = C[t] / Z
    O = sum(t) P[t] + X[t] * 0
    E[t] = 1 < -1
    N = sum(t) E[t]
    U = sum(t) G[t] / N
)"},
    {"an_infinite_reference_that_cancels", R"(f(S[t], B[t]) -> O, U
    M = max(t) where(t < 0, B[t], -inf)
    A[t] = 1
    Z = sum(t) exp(A[t] - M)
    O = sum(t) exp(S[t] - M) / Z
    T[t] = where(B[t] > 100, S[t], -inf)
    L = min(t) T[t]
    W = sum(t) exp(S[t] - L)
    U = sum(t) exp(T[t] - L) / W
)"},
    {"an_infinite_shift_that_cancels", R"(f(B[t]) -> Z
    E[t] = 1 < -1
    N = sum(t) E[t]
    R = 1 / N
    S[t] = B[t] - R
    M = max(t) S[t]
    Z = sum(t) (S[t] - M)
)"},
    {"an_infinite_factor", R"(f(M[t]) -> Y, U
    E[t] = -inf
    R = max(t) E[t]
    Y = sum(t) R * M[t]
    C = sum(t) where(t == 0, M[t], -inf)^2
    U = max(t) where(t == 0, M[t], -inf) / max(sqrt(C), 1e-12)
)"},
    {"minus_infinity_under_a_finite_reference", R"(f(B[t]) -> Z, L
    S[t] = where(B[t] > 100, B[t], -inf)
    E[t] = -1e9
    M = max(t) E[t]
    Z = sum(t) exp(S[t] - M)
    L = log(Z) + M
)"},
    {"a_masked_infinity", R"(f(A[t], B[t]) -> T, U
    P[t] = where(B[t] < 100, inf, 0)
    M = max(t) P[t]
    T = sum(t) where(A[t] == 1, P[t] - M, 0)
    U = sum(t) where(A[t] == 1, exp(P[t] - M), 0)
)"},
    {"a_divergence_of_two_softmaxes", R"(f(A[t], B[t]) -> D, H
    M = max(t) where(A[t] > -2, A[t], -1e9)
    P[t] = exp(where(A[t] > -2, A[t], -1e9) - M)
    Z = sum(t) P[t]
    N = max(t) B[t]
    W = sum(t) exp(B[t] - N)
    D = sum(t) P[t] / Z * (where(A[t] > -2, A[t], -1e9) - M - log(Z) - (B[t] - N - log(W)))
    H = sum(t) P[t] * (A[t] - M - B[t] + N)
)"},
    {"a_masked_0_under_an_infinite_factor", R"(f(A[t], B[t]) -> M, N, T
    F = max(t) exp(B[t])
    M = max(t) where(A[t] == 1, F, 0)
    N = min(t) where(A[t] == 1, F * exp(B[t]), 0)
    T = sum(t) where(A[t] == 1, F * B[t], 0)
)"},
    {"a_mask_beside_a_maximum_that_is_not_a_number", R"(f(A[t], B[t]) -> T, U, V
    M = max(t) B[t]
    T = sum(t) where(A[t] == 1, B[t] - M, 0)
    V = sum(t) where(A[t] == 1, exp(B[t] - M), 0)
    N = max(j) log(A[j])
    U = sum(t) where(B[t] > 100, log(A[t]) - N, 0)
)"},
    {"a_mask_beside_an_empty_maximum", R"(f(A[t], B[t]) -> T, U, W
    S[t] = where(B[t] > 100, B[t], -inf)
    M = max(t) S[t]
    T = sum(t) where(A[t] == 1, exp(S[t] - M), 0)
    U = sum(t) where(t < 0, exp(S[t] - M), 0)
    R = sqrt(sum(t) B[t])
    W = sum(t) where(A[t] == 1, t - R, 0) + where(A[t] == 2, B[t] - sum(t) B[t], 0)
)"},
    {"a_masked_weight_of_an_empty_maximum", R"(f(A[t], B[t]) -> O
    X[t] = where(B[t] > 100, B[t], -inf)
    M = max(t) X[t]
    W[t] = where(A[t] == 1, exp(X[t] - M), 0)
    S = sum(t) W[t]
    O = sum(t) W[t] / S
)"},
    {"chunks_of_a_mask_beside_minus_infinity", R"(f(B[t]) -> Z, H
    S[t] = where(t < 0, B[t], -inf)
    E[t] = -inf
    M = max(t) E[t]
    Z = sum(t) exp(S[t] - M)
    H = sum(t) exp(S[t] - M) * (S[t] - M)
)"},
    {"a_difference_from_far_away", R"(f(S[t], K[t], Q[t]) -> D, H, C
    N = sum(t) K[t]
    D = sum(t) S[t] * (Q[t] - N)
    M = max(t) where(K[t] > 0, S[t], -1e9)
    H = sum(t) (S[t] - M - log(1 + N^2))
    C = sum(t) K[t] * (Q[t] - N)^3
)"},
    {"two_exponentials_of_unlike_size", R"(f(X[t]) -> O
    E[t] = 1
    N = max(t) E[t]
    P[t] = exp(X[t] - N)
    S[t] = -1e9
    M = max(t) S[t]
    O = sum(t) exp(S[t] - M) * P[t]
)"},
    {"a_weight_whose_value_loses_by_its_sign", R"(f(A[t], B[t]) -> N, O, U
    Z = min(t) A[t]
    N = max(t) exp(A[t] - Z) * B[t]
    O = min(t) exp(A[t] - Z) * B[t]
    U = max(t) exp(A[t] - Z) * B[t]^2
)"},
    {"a_power_of_a_sum_that_cancels", R"(f(A[t]) -> V, W
    E[t] = 1
    N = (sum(t) E[t]) / size(t)
    X[t] = N * A[t]
    V = sum(t) (X[t] - 1000)^3
    W = sum(t) (X[t] - 1000) * (X[t] - 1000)
)"},
};

class Nonfinite : public testing::TestWithParam<Program> {};

TEST_P(Nonfinite, IsWhatTheDefinitionGives) {
    const Diagram diagram = parsed_program(GetParam().text);
    Coverage seen;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        for (const Probe probe : all_probes) {
            const Case c = make_case(diagram, seed, probe);
            const std::string failure = failure_of(c, seen);
            ASSERT_EQ(failure, "") << describe(c);
        }
    EXPECT_GT(seen.steps, 0);
}

INSTANTIATE_TEST_SUITE_P(Programs, Nonfinite, testing::ValuesIn(programs),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace napkin::pipeline
