// Emitted CPU kernels against the definition of their diagrams.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "numeric/cpu_kernel_case.hpp"
#include "support/ids.hpp"
#include "support/random_diagram.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

std::uint64_t first_seed() {
    const char* given = std::getenv("NAPKIN_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 1;
}

/// 40 random diagrams in one translation unit.
void check_batch(std::uint64_t batch, const RandomDiagramOptions& options) {
    constexpr std::uint64_t batch_size = 40;
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t k = 0; k < batch_size; ++k) {
        const std::uint64_t seed = first_seed() + batch * batch_size + k;
        const Diagram diagram = random_diagram(seed, options);
        cases.push_back(cpu_case::make_case(diagram, cpu_case::some_extents(diagram, seed), seed, fmt::format("k{}", seed)));
    }
    int num_subloops = 0, num_parts = 0, num_in_place = 0, num_non_temporal = 0;
    int num_groups_ahead = 0;
    for (const cpu_case::Case& c : cases) {
        num_subloops += c.num_subloops, num_parts += c.num_parts, num_in_place += c.num_in_place;
        num_non_temporal += c.num_non_temporal;
        num_groups_ahead += c.num_groups_ahead;
    }
    EXPECT_GT(num_subloops, 0);
    EXPECT_GT(num_parts, 0);
    EXPECT_GT(num_in_place, 4);
    EXPECT_GT(num_non_temporal, 1);
    EXPECT_GT(num_groups_ahead, 0);
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

class RandomKernels : public testing::TestWithParam<int> {};
TEST_P(RandomKernels, ComputeTheirDefinition) {
    const int batch = GetParam();
    RandomDiagramOptions options;
    if (batch % 3 == 1) options.types = {DType::f32, DType::f16, DType::bf16};
    if (batch % 3 == 2) options.types = {DType::f64, DType::f32};
    check_batch(static_cast<std::uint64_t>(batch), options);
}
/// One diagram with the plans under which it is tried: "group q=24 stream x=32 vector q rows 8 vectors 3 threads 2".
struct HandPlanned {
    const char* name;
    const char* text;
    std::vector<const char*> plans;
};

const HandPlanned subjects[] = {
    {"matmul",
     "f(A[a, b], B[b, c]) -> C[a, c]\n"
     "    C[a, c] = sum(b) A[a, b] * B[b, c]\n"
     "sizes a = 70, b = 101, c = 117\n",
     {"group a=64 group c=48 stream b=64 vector c rows 8 vectors 3",
      "group a=64 group c=16 stream b=37 vector a rows 4 vectors 2", "group a=1 group c=100", "rows 8 vectors 2"}},
    {"attention",
     "f(Q[h, q, k], K[h, x, k], V[h, x, d]) -> O[h, q, d]\n"
     "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
     "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
     "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
     "sizes h = 2, q = 113, x = 203, k = 40, d = 80\n",
     {"group h=1 group q=48 stream x=64 vector q rows 8 vectors 3 threads 2",
      "group h=1 group q=100 stream x=203 vector q rows 8 vectors 2",
      "group h=2 group q=5 stream x=50 rows 4 vectors 2", "group q=3 stream x=64 vector d rows 8 vectors 3",
      "group h=1 group q=48 stream x=64 subloop k=7 vector q rows 8 vectors 3",
      "group h=1 group q=48 stream x=50 subloop k=16 subloop d=7 vector q rows 8 vectors 1",
      "group h=1 group q=20 stream x=64 subloop d=32 vector d rows 8 vectors 2",
      "group q=3 stream x=64 subloop d=16 subloop k=9 vector d rows 8 vectors 3"}},
    {"attention to so few keys that a block holds them, inside of a loop over heads",
     "f(Q[h, q, k], K[h, x, k], V[h, x, d]) -> O[h, q, d]\n"
     "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
     "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
     "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
     "sizes h = 2, q = 53, x = 4, k = 5, d = 4\n",
     {"group q=32 vector q rows 4 vectors 1", "group q=20 stream x=4 vector q rows 8 vectors 2"}},
    {"one query in bf16",
     "f(Q[h, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, d]: bf16\n"
     "    S[h, x] = sum(k) Q[h, k] * K[h, x, k]\n"
     "    P[h, x] = softmax(x) S[h, x] * k^-0.5\n"
     "    O[h, d] = sum(x) P[h, x] * V[h, x, d]\n"
     "sizes h = 3, x = 203, k = d = 64\n",
     {"group h=1 stream x=64 rows 8 vectors 2", "group h=3 stream x=50 vector h rows 4 vectors 1"}},
    {"window in f64",
     "f(Q[q, k]: f64, K[x, k]: f64, V[x, d]: f64) -> O[q, d]: f64\n"
     "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
     "    P[q, x] = softmax(x) where(x <= q and x > q - 40, S[q, x] * k^-0.5, -inf)\n"
     "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
     "sizes q = x = 150, k = 20, d = 33\n",
     {"group q=24 stream x=32 vector q rows 4 vectors 3", "group q=10 stream x=32 vector d rows 8 vectors 2",
      "group q=1 stream x=17"}},
    {"grouped queries in f16",
     "f(Q[g, h, q, k]: f16, K[g, x, k]: f16, V[g, x, d]: f16) -> O[g, h, q, d]: f16\n"
     "    S[g, h, q, x] = sum(k) Q[g, h, q, k] * K[g, x, k]\n"
     "    P[g, h, q, x] = softmax(x) 30 * tanh(S[g, h, q, x] / 30)\n"
     "    O[g, h, q, d] = sum(x) P[g, h, q, x] * V[g, x, d]\n"
     "sizes g = 2, h = 3, q = 13, x = 77, k = d = 24\n",
     {"group g=1 group h=1 group q=16 stream x=32 vector q rows 8 vectors 3",
      "group g=1 group h=3 group q=5 stream x=20 vector q rows 8 vectors 3",
      "group g=1 group h=3 group q=13 stream x=32 vector h rows 2 vectors 1"}},
    {"rows normalised",
     "f(X[r, i]: bf16, G[i], B[i]) -> Y[r, i]: bf16\n"
     "    Y[r, i] = layernorm(i)(X[r, i], G[i], B[i])\n"
     "sizes r = 50, i = 100\n",
     {"group r=16 stream i=32 vector r rows 4 vectors 1", "group r=7 stream i=100 rows 4 vectors 2",
      "group r=1 stream i=33"}},
    {"convolution",
     "f(X[c, n], F[o, c, w]) -> Y[o, i]\n"
     "    Y[o, i] = sum(c, w) X[c, i + w] * F[o, c, w]\n"
     "sizes c = 5, o = 7, w = 3, i = 60, n = 62\n",
     {"group i=32 vector i rows 4 vectors 2", "group i=7 group o=3 vector o rows 2 vectors 1",
      "group o=2 vector i rows 8 vectors 3", "vector o stream c=2 rows 4 vectors 1",
      "group o=2 stream c=2 subloop w=2 vector i rows 8 vectors 1", "stream c=2 subloop i=16 rows 4 vectors 1"}},
    {"a reversed read",
     "f(X[n], F[w]) -> Y[i]\n"
     "    Y[i] = sum(w) X[i - w + 4] * F[w]\n"
     "sizes w = 5, i = 60, n = 64\n",
     {"group i=32 vector i rows 4 vectors 2", "group i=7", "stream w=2 group i=50 vector i vectors 2"}},
    {"reductions of every kind",
     "f(X[r, i]) -> A[r], B[r], C[r], D[i]\n"
     "    A[r] = sum(i) X[r, i]^2\n"
     "    B[r] = prod(i) (1 + 0.01 * X[r, i])\n"
     "    C[r] = max(i) X[r, i] * (i + 1)\n"
     "    D[i] = min(r) abs(X[r, i]) - r\n"
     "sizes r = 19, i = 83\n",
     {"group r=16 stream i=32 vector r vectors 1 rows 4", "group i=20 stream r=5 vectors 2 rows 2", "vectors 2 rows 8"}},
    {"results written in place, ragged in every way",
     "f(X[r, i], G[i]) -> Y[r, i], M[r], P[i]\n"
     "    Y[r, i] = softmax(i) X[r, i] * G[i]\n"
     "    M[r] = max(i) X[r, i]\n"
     "    P[i] = G[i] * G[i]\n"
     "sizes r = 29, i = 77\n",
     {"group r=1", "group r=4 rows 4 vectors 2", "group r=7 vector i rows 3 vectors 2", "group r=16 vector r vectors 1",
      "rows 8 vectors 3"}},
    {"scalar functions",
     "f(X[i]) -> Y[i], Z[i]\n"
     "    Y[i] = exp(-abs(X[i])) + log(1 + X[i]^2) * tanh(X[i]) - erf(X[i]) / sqrt(2 + X[i]^4) + floor(X[i]) * "
     "rsqrt(X[i]^2 + 1)\n"
     "    Z[i] = where(X[i] > 0 and not (i < 5 or X[i] >= 2), sin(X[i]) + cos(X[i]), (1.5 + abs(X[i]))^0.7 + max(X[i], "
     "min(-X[i], 0.5)) + bf16(X[i]))\n"
     "sizes i = 101\n",
     {"group i=32 vector i vectors 2", "group i=7"}},
    {"more scalar functions",
     "f(X[r, i], W[r, i]: f64) -> Y[r, i], Z[r, i], V[r, i]: f64, A[r]: i32\n"
     "    Y[r, i] = exp2(X[r, i]) - log2(abs(X[r, i])) * log1p(X[r, i]^2) + expm1(X[r, i]) / cosh(X[r, i]) + erfc(X[r, "
     "i])\n"
     "    Z[r, i] = where(isnan(X[r, i]) or isinf(X[r, i]), 5, round(4 * X[r, i]) + ceil(X[r, i]) * trunc(3 * X[r, i]) "
     "+ "
     "sinh(X[r, i]) * atan(X[r, i]))\n"
     "    V[r, i] = exp2(W[r, i]) - log2(abs(W[r, i])) * log1p(W[r, i]^2) + expm1(W[r, i]) / cosh(W[r, i]) + erfc(W[r, "
     "i]) + "
     "round(4 * W[r, i]) + ceil(W[r, i]) * trunc(3 * W[r, i]) + sinh(W[r, i]) * atan(W[r, i])\n"
     "    A[r] = (count(i) X[r, i] > 0) + 100 * (any(i) X[r, i] > 2) + 1000 * (all(i) X[r, i] > -2)\n"
     "sizes r = 9, i = 101\n",
     {"group r=4 vector i vectors 2", "group r=8 vector r", "stream i=20"}},
};

std::vector<KernelSchedule> schedules_from(const Derived& derived, const std::string& text) {
    std::vector<KernelSchedule> schedules;
    for (const Kernel& kernel : derived.kernels) {
        KernelSchedule k;
        k.kernel = kernel.name;
        k.rows.value = 32;
        std::istringstream words(text);
        for (std::string word, value; words >> word >> value;) {
            const auto equals = value.find('=');
            const AxisId axis = derived.diagram.find_axis(value.substr(0, equals)).value_or(AxisId());
            if (word == "group" && contains(kernel.group_axes, axis))
                k.group[axis] = {std::stoll(value.substr(equals + 1)), "", true};
            if (word == "stream") k.stream[axis] = {std::stoll(value.substr(equals + 1)), "", true};
            if (word == "subloop") k.subloop[axis] = {std::stoll(value.substr(equals + 1)), "", true};
            if (word == "vector") k.vector_axis.value = axis;
            if (word == "rows") k.rows = {std::stoll(value), "", true};
            if (word == "vectors") k.panel_vectors.value = std::stoi(value);
            if (word == "threads") k.threads = {std::stoll(value), "", true};
        }
        schedules.push_back(std::move(k));
    }
    return schedules;
}

TEST(CpuKernels, ComputeSubjectsUnderManyPlans) {
    std::vector<cpu_case::Case> cases;
    std::vector<std::string> names;
    for (const HandPlanned& subject : subjects) {
        const auto source = std::make_shared<const Source>(Source{subject.name, subject.text});
        const auto diagram = parse_diagram(source);
        ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
        const auto extents = bind_sizes(*diagram);
        ASSERT_TRUE(extents.ok()) << render(extents.errors());
        const auto derived = derive(*diagram);
        ASSERT_TRUE(derived.ok()) << render(derived.errors());
        for (const char* plan : subject.plans) {
            names.push_back(fmt::format("{} under {}", subject.name, plan));
            cases.push_back(cpu_case::make_case(*diagram, *extents, cases.size() + 1, fmt::format("s{}", cases.size()),
                                                schedules_from(*derived, plan)));
        }
    }
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const cpu_case::Case& c) { return c.num_rows_ahead > 0; }));
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(failures[k], "") << names[k] << "\n" << cpu_case::describe(cases[k]);
}

INSTANTIATE_TEST_SUITE_P(Batches, RandomKernels, testing::Range(0, 4));

}  // namespace
}  // namespace napkin
