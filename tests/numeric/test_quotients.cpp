// Quotients of tiles by their rows' sums on tensor cores: of results that are rounded to 16 bits by a reciprocal, of
// others to their last digits.
#include <gtest/gtest.h>

#include "emit/cpu/emit.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"

namespace napkin::test_quotients {
namespace {

using cpu_case::Planned;

/// Means, whose sums of weights divide them, of this type.
Planned mean(const std::string& type) {
    const std::string text = cpu_case::attention_of_logits("S[h, q, x] * k^-0.5", "f16",
                                                           "h = 1, q = 72, x = 104, d = 24"),
                      result = "O[h, q, d]: ";
    std::string of_type = text;
    of_type.replace(text.find(result + "f16"), result.size() + 3, result + type);
    return cpu_case::planned_on_hopper(of_type, "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n", type);
}

TEST(Quotients, AreNearWhereTheResultIsNarrow) {
    const std::vector<Planned> all = {mean("f16"), mean("bf16"), mean("f32")};
    for (const Planned& p : all) {
        const bool is_narrow = !p.source.entries.front().name.starts_with("f32");
        EXPECT_EQ(p.source.text.find("= near_quotient(") != std::string::npos, is_narrow) << p.source.text;
        EXPECT_EQ(p.source.text.find("= divide(") != std::string::npos, !is_narrow) << p.source.text;
    }
    EXPECT_EQ(cpu_case::fault_on_probes(all, 0, 1), "");
}

// One last digit less is a whole one less under a floor, in the same statement or in another one.
TEST(Quotients, AreExactWhereTheyAreNotTheResultAlone) {
    for (const std::string rest :
         {"-> C[m, n]: f16\n    S[m, n] = sum(k) A[m, k] * B[n, k]\n    C[m, n] = floor(S[m, n] / 3)\n",
          "-> C[m, n]: f16, D[m, n]: f16\n    S[m, n] = sum(k) A[m, k] * B[n, k]\n"
          "    C[m, n] = S[m, n] / 3\n    D[m, n] = floor(C[m, n])\n"}) {
        const Planned p = cpu_case::planned_on_hopper(
            "f(A[m, k]: f16, B[n, k]: f16) " + rest + "sizes m = 64, n = 64, k = 32\n", "mma_m m\nwarps 4\n");
        EXPECT_NE(p.source.text.find("divide("), std::string::npos) << p.source.text;
        EXPECT_EQ(p.source.text.find("= near_quotient("), std::string::npos) << p.source.text;
        EXPECT_EQ(cpu_case::fault_on_probes({p}, 0, 1), "");
    }
}

// On a CPU, of a divisor that all vectors of a row have in common.
TEST(Quotients, OnACpuTakeOneReciprocalARow) {
    const auto source = [](const std::string& text) {
        const Derived derived = derived_from(text);
        const Machine machine = load_machine("generic-cpu").value();
        return cpu::emit(choose_plan(derived, bind_sizes(derived.diagram).value(), machine).value().program()).text;
    };
    const std::string call = "* reciprocal_at";
    const auto has_one = [&](const std::string& text) { return source(text).find(call) != std::string::npos; };
    EXPECT_TRUE(has_one("f(X[r, c], z[r]) -> Y[r, c]\n    Y[r, c] = X[r, c] / z[r]\nsizes r = 64, c = 4096\n"));
    EXPECT_TRUE(
        has_one("f(X[r, c], z[r]) -> Y[r, c]: f16\n    Y[r, c] = X[r, c] / (z[r] + 1)\nsizes r = 64, c = 4096\n"));
    EXPECT_FALSE(has_one("f(X[r, c], z[c]) -> Y[r, c]\n    Y[r, c] = X[r, c] / z[c]\nsizes r = 64, c = 4096\n"))
        << "no row has one";
    EXPECT_FALSE(has_one("f(X[r, c]) -> Y[r, c]\n    Y[r, c] = X[r, c] / 3\nsizes r = 64, c = 4096\n")) << "a number";
    EXPECT_FALSE(has_one("f(X[r, c], z[r]) -> Y[r, c]\n    Y[r, c] = floor(X[r, c] / z[r])\nsizes r = 64, c = 4096\n"))
        << "a floor";
    EXPECT_FALSE(
        has_one("f(X[r, c], z[r]) -> Y[r, c], Z[r, c]\n    Y[r, c] = X[r, c] / z[r]\n    Z[r, c] = floor(Y[r, c])\n"
                "sizes r = 64, c = 4096\n"))
        << "a floor, in another statement";
}

TEST(Quotients, AreWrongWhereTheirDivisorIs) {
    EXPECT_NE(cpu_case::fault_on_probes({cpu_case::with_larger_call(mean("f16"), "near_quotient(")}, 0, 1), "");
}

}  // namespace
}  // namespace napkin::test_quotients
