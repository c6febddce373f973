// The error functions in products that are rounded to 16 bits: where cheaper forms stand for them, and that the results
// are right there.
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_error_function {
namespace {

using cpu_case::Planned;

/// Kernels that are compiled together have different names.
Planned planned(const std::string& results, const std::string& equations, const std::string& name = "k") {
    return cpu_case::planned_on_hopper("f(A[m, k]: f16, B[n, k]: f16) -> " + results +
                                           "\n    S[m, n] = sum(k) A[m, k] * B[n, k]\n" + equations +
                                           "sizes m = 64, n = 64, k = 32\n",
                                       "mma_m m\nwarps 4\n", name);
}
bool is_near(const Planned& p) { return p.source.text.find("near_erf") != std::string::npos; }
bool calls(const Planned& p, const std::string& function) {
    return p.source.text.find(function + "(") != std::string::npos;
}

TEST(ErrorFunction, IsNearBesideOneWhereTheResultIsNarrow) {
    const std::vector<Planned> all = {planned("C[m, n]: f16", "    C[m, n] = S[m, n] * (1 + erf(S[m, n]))\n", "a"),
                                      planned("C[m, n]: bf16", "    C[m, n] = S[m, n] * (1 + erf(S[m, n] * 4))\n", "b"),
                                      planned("C[m, n]: f16", "    C[m, n] = S[m, n] * (2 - erf(S[m, n]))\n", "c")};
    for (const Planned& p : all) EXPECT_TRUE(calls(p, "near_erf")) << p.source.text;
    EXPECT_EQ(cpu_case::fault_on_probes(all, 0, 1), "");
}

TEST(ErrorFunction, ItsComplementIsNearInProducts) {
    const std::vector<Planned> all = {planned("C[m, n]: f16", "    C[m, n] = gelu(S[m, n])\n", "a"),
                                      planned("C[m, n]: bf16", "    C[m, n] = gelu(S[m, n] * 4)\n", "b"),
                                      planned("C[m, n]: bf16", "    C[m, n] = gelu(S[m, n] * 16)\n", "c"),
                                      planned("C[m, n]: f16", "    C[m, n] = S[m, n] * erfc(S[m, n])\n", "d")};
    for (const Planned& p : all) EXPECT_TRUE(calls(p, "near_erfc")) << p.source.text;
    EXPECT_EQ(cpu_case::fault_on_probes(all, 0, 1), "");
}

// The error function by itself has digits near zero that its distance from 1 does not show. So have sums in which
// others cancel. A floor shows the last digit of all.
TEST(ErrorFunction, IsExactElsewhere) {
    std::vector<Planned> all;
    for (const auto& [results, equations] : std::vector<std::pair<std::string, std::string>>{
             {"C[m, n]: f32", "    C[m, n] = gelu(S[m, n])\n"},
             {"C[m, n]: f16", "    C[m, n] = erf(S[m, n])\n"},
             {"C[m, n]: f16", "    C[m, n] = S[m, n] * erf(S[m, n])\n"},
             {"C[m, n]: f16", "    C[m, n] = S[m, n] * (0.5 + erf(S[m, n]))\n"},
             {"C[m, n]: f16", "    C[m, n] = 1 + erf(S[m, n]) - 1\n"},
             {"C[m, n]: f16", "    C[m, n] = 1 - erfc(S[m, n])\n"},
             {"C[m, n]: f16", "    C[m, n] = erfc(S[m, n]) * erf(S[m, n])\n"},
             {"C[m, n]: f16", "    C[m, n] = erf(S[m, n]) * (1 + erf(S[m, n]))\n"},
             {"C[m, n]: f16", "    C[m, n] = floor(S[m, n] * (1 + erf(S[m, n])))\n"},
             {"C[m, n]: f16, D[m, n]: f16", "    C[m, n] = gelu(S[m, n])\n    D[m, n] = floor(C[m, n] * 64)\n"}}) {
        all.push_back(planned(results, equations, "k" + std::to_string(all.size()) + "_"));
        EXPECT_NE(all.back().source.text.find("erf"), std::string::npos) << all.back().source.text;
        EXPECT_FALSE(is_near(all.back())) << all.back().source.text;
    }
    EXPECT_EQ(cpu_case::fault_on_probes(all, 0, 1), "");
}

TEST(ErrorFunction, IsWrongWhereItsPolynomialIs) {
    EXPECT_NE(
        cpu_case::fault_on_probes(
            {cpu_case::with_larger_call(planned("C[m, n]: f16", "    C[m, n] = gelu(S[m, n])\n"), "near_erfc(")}, 0, 1),
        "");
}

}  // namespace
}  // namespace napkin::test_error_function
