// Quotients of tiles by their rows' sums on a matrix unit: of results that are rounded to 16 bits by a reciprocal, of others to their last digits.
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

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
    return cpu_case::planned_on_hopper(of_type, "tensor q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n", type);
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
            "f(A[m, k]: f16, B[n, k]: f16) " + rest + "sizes m = 64, n = 64, k = 32\n", "tensor m\nwarps 4\n");
        EXPECT_NE(p.source.text.find("divide("), std::string::npos) << p.source.text;
        EXPECT_EQ(p.source.text.find("= near_quotient("), std::string::npos) << p.source.text;
        EXPECT_EQ(cpu_case::fault_on_probes({p}, 0, 1), "");
    }
}

TEST(Quotients, AreWrongWhereTheirDivisorIs) {
    Planned p = mean("f16");
    const std::string call = "near_quotient(";
    const std::size_t at = p.source.text.find(call);
    ASSERT_NE(at, std::string::npos);
    p.source.text.insert(at, "1.01f * ");
    EXPECT_NE(cpu_case::fault_on_probes({p}, 0, 1), "");
}

}  // namespace
}  // namespace napkin::test_quotients
