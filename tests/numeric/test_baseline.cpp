// Equation by equation in f32 with OpenBLAS or kernels of our own: the same numbers as the definition, up to f32's
// rounding.
#include "run/baseline.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "diagram/evaluate.hpp"
#include "machine/machine.hpp"
#include "run/blas.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

struct Outcome {
    double largest_error = 0;
    int multiplies = 0;
    std::string blas;
    std::int64_t extra_bytes = 0;
};

template <class Real>
Outcome compare(const Diagram& diagram, const Extents& extents, const BaselineOptions& options, Precision precision) {
    const auto baseline = Baseline::build(diagram, extents, load_machine("").value(), options);
    EXPECT_TRUE(baseline.ok()) << render(baseline.errors());
    Outcome outcome;
    if (!baseline) return outcome;
    EXPECT_EQ(baseline->type, sizeof(Real) == 8 ? DType::f64 : DType::f32);
    Values values = random_inputs(diagram, extents, 11);
    std::vector<std::vector<Real>> in, out;
    for (const ArrayId id : diagram.inputs) in.emplace_back(values[id].begin(), values[id].end());
    for (const ArrayId id : diagram.outputs)
        out.emplace_back(static_cast<std::size_t>(count_values(diagram, id, extents)), Real(-77));
    std::vector<const void*> in_pointers;
    std::vector<void*> out_pointers;
    for (const auto& array : in) in_pointers.push_back(array.data());
    for (auto& array : out) out_pointers.push_back(array.data());
    for (int run = 0; run < 2; ++run) {
        const Status ran = baseline->kernel->run(in_pointers, out_pointers);
        EXPECT_TRUE(ran.ok()) << render(ran.errors());
    }
    evaluate(diagram, extents, values, precision);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Column& exact = values[diagram.outputs[i]];
        for (std::size_t j = 0; j < exact.size(); ++j) {
            const double got = out[i][j];
            if (got == exact[j] || (std::isnan(got) && std::isnan(exact[j]))) continue;
            const double error = std::abs(got - exact[j]) / std::max(1.0, std::abs(exact[j]));
            outcome.largest_error = std::max(outcome.largest_error, std::isnan(error) ? INFINITY : error);
        }
    }
    outcome.multiplies = baseline->multiplies;
    outcome.blas = baseline->blas;
    outcome.extra_bytes = baseline_extra_bytes(diagram, extents);
    return outcome;
}

template <class Real = float>
Outcome compare(const std::string& text, const BaselineOptions& options = {2, true}, Precision precision = Precision::exact) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    if (!diagram) return {};
    const auto extents = bind_sizes(*diagram);
    EXPECT_TRUE(extents.ok()) << render(extents.errors());
    return extents ? compare<Real>(*diagram, *extents, options, precision) : Outcome{};
}

constexpr const char* heads = R"(
f(Q[h, q, k], K[h, x, k], V[h, x, d]) -> O[h, q, d]
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) where(x <= q + 40, S[h, q, x] * k^-0.5, -inf)
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
sizes h = 3, q = 67, x = 1100, k = 19, d = 21
)";

TEST(Baseline, contractions_are_multiplies) {
    const Outcome outcome = compare(heads);
    EXPECT_LT(outcome.largest_error, 1e-5);
    EXPECT_EQ(outcome.multiplies, 2);
    EXPECT_EQ(outcome.blas.empty(), load_blas() == nullptr);
    // Two arrays of h·q·x at no time: scaling, exponential and quotient are written over what they read.
    EXPECT_LT(outcome.extra_bytes, 4 * 3 * 67 * 1100 * 3 / 2);
}

TEST(Baseline, without_the_library_contractions_are_kernels_of_our_own) {
    const Outcome outcome = compare(heads, {2, false});
    EXPECT_LT(outcome.largest_error, 1e-5);
    EXPECT_EQ(outcome.blas, "");
}

TEST(Baseline, one_thread_gives_the_same) { EXPECT_LT(compare(heads, {1, true}).largest_error, 1e-5); }

TEST(Baseline, doubles_are_computed_in_double) {
    const Outcome outcome = compare<double>(
        "f(A[i, k]: f64, B[k, j]: f64) -> C[i, j]: f64, L[i]: f64\n    C[i, j] = sum(k) A[i, k] * B[k, j]\n    L[i] = "
        "logsumexp(j) C[i, j]\n"
        "sizes i = 130, k = 90, j = 70\n");
    EXPECT_LT(outcome.largest_error, 1e-13);
}

TEST(Baseline, few_results_of_much_are_shared_out) {
    const Outcome outcome = compare(
        "f(X[i, j]) -> S, M, Y[j]\n    S = sum(i, j) X[i, j]^2\n    M = max(i, j) X[i, j]\n    Y[j] = min(i) X[i, "
        "j]\nsizes i = 3000, j = 37\n");
    EXPECT_LT(outcome.largest_error, 1e-4);
}

TEST(Baseline, every_scalar_function) {
    const Outcome outcome = compare(R"(
f(X[i]) -> A[i], B[i], C[i], D[i], E[i]
    A[i] = exp(X[i]) + log(abs(X[i]) + 1) + tanh(X[i]) + erf(X[i])
    B[i] = sqrt(abs(X[i])) * rsqrt(X[i]^2 + 0.5) - sin(X[i]) / (2 + cos(X[i]))
    C[i] = floor(3 * X[i]) + max(X[i], 0.25) - min(X[i], -0.25) + abs(X[i])^1.5
    D[i] = where(X[i] > 0 and not (X[i] >= 1 or i == 3), X[i], where(X[i] != X[i], 1, i / size(i)))
    E[i] = f32(X[i]) + i32(4 * X[i])
sizes i = 2100
)");
    EXPECT_LT(outcome.largest_error, 1e-6);
}

TEST(Baseline, casts_round_as_the_language_says) {
    const Outcome outcome = compare(R"(
f(X[i]) -> H[i], B[i], E[i], F[i]
    H[i] = f16(X[i] * 1000)
    B[i] = bf16(X[i])
    E[i] = e4m3(X[i])
    F[i] = e5m2(X[i] / 3000)
sizes i = 3000
)",
                                    {2, true}, Precision::stored);
    EXPECT_EQ(outcome.largest_error, 0);
}

TEST(Baseline, whole_numbers_are_multiplied_by_no_library) {
    const std::string text =
        "f(A[i, k], B[k, j], W[k]: i32) -> C[i, j], D[i, j]\n    N[k, j]: i32 = W[k] * j\n"
        "    C[i, j] = sum(k) A[i, k] * B[k, j]\n    D[i, j] = sum(k) A[i, k] * N[k, j]\n"
        "sizes i = 33, k = 20, j = 40\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto baseline = Baseline::build(*diagram, bind_sizes(*diagram).value(), load_machine("").value());
    ASSERT_TRUE(baseline.ok()) << render(baseline.errors());
    EXPECT_EQ(baseline->multiplies, 1);
    const std::vector<float> a(33 * 20, 0.5F), b(20 * 40, 2);
    const std::vector<std::int32_t> w(20, 3);
    std::vector<float> c(33 * 40), d(33 * 40);
    ASSERT_TRUE(baseline->kernel->run({a.data(), b.data(), w.data()}, {c.data(), d.data()}).ok());
    EXPECT_EQ(c[41], 20);
    EXPECT_EQ(d[40 + 7], 20 * 0.5F * 3 * 7);
}

TEST(Baseline, a_lone_multiply_has_no_kernel_of_our_own) {
    const Outcome outcome = compare(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = 130, k = 90, j = 70\n");
    EXPECT_LT(outcome.largest_error, 1e-5);
    EXPECT_EQ(outcome.extra_bytes, 0);
}

TEST(Baseline, maps_are_written_over_what_they_read_last) {
    // Neither an input nor what the output reads again gives its place away.
    const Outcome outcome = compare(R"(
f(X[i, j], B[i, j], T[i]) -> Y[i, j]
    P[i, j] = X[i, j] + 1
    Q[i, j] = B[i, j] * P[i, j] * exp(T[i])
    R[i, j] = Q[i, j] + Q[i, j // 2]
    S[i, j] = R[i, j] * 2
    Y[i, j] = S[i, j] + R[i, j]
sizes i = 64, j = 1000
)");
    EXPECT_LT(outcome.largest_error, 1e-5);
    EXPECT_EQ(outcome.extra_bytes, 2 * 4 * 64 * 1000);
}

TEST(Baseline, infinities_and_nan_go_through) {
    const Outcome outcome = compare(
        "f(X[i]) -> A[i], M\n    A[i] = exp(where(X[i] > 0, -inf, X[i] * 1000)) + log(where(X[i] > 1, 0, 1))\n    M = "
        "max(i) where(X[i] > 2, nan, X[i])\nsizes i = 2000\n");
    EXPECT_LT(outcome.largest_error, 1e-5);
}

TEST(Baseline, shifted_and_strided_reads) {
    const Outcome outcome = compare(
        "f(X[c, n], W[o, c, w]) -> Y[o, i]\n    Y[o, i] = sum(c, w) X[c, 2 * i + w] * W[o, c, w]\nsizes c = 5, n = "
        "203, w = 4, o = 6, i = 100\n");
    EXPECT_LT(outcome.largest_error, 1e-5);
}

}  // namespace
}  // namespace napkin
