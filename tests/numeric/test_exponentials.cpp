// Kernels that compute a part of their exponentials by polynomials, run on the CPU against their definition, and the polynomials by themselves.
#include "schedule/exponentials.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_exponential_numbers {
namespace {

using cpu_case::Planned;
using cpu_case::planned_on_hopper;

/// By hand, `part` being of the exponentials of `statement`.
std::string by_hand(const std::string& statement, const std::string& part, const std::string& lines = "") {
    return fmt::format(
        "tensor q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\natom {} fragment, points h q x, polynomials "
        "{}\n{}",
        statement, part, lines);
}
std::string attention(const std::string& logits, const std::string& type, const std::string& sizes) {
    return cpu_case::attention_of_logits(logits, type, sizes + ", d = 64");
}
class Polynomials : public testing::TestWithParam<std::size_t> {};
constexpr std::size_t shards = 2;

TEST_P(Polynomials, AreRightWhateverTheInputsAre) {
    const std::vector<Planned> all = {
        planned_on_hopper(attention("S[h, q, x] / k", "f16", "h = 1, q = 72, x = 136"), by_hand("weight", "1, of 4"),
                          "a"),
        // Ragged chunks, and rows that a mask leaves nothing of; all by polynomials, and the maximum in every chunk.
        planned_on_hopper(attention("where(x <= q - 20, S[h, q, x] * k^-0.5, -inf)", "bf16", "h = 2, q = 64, x = 104"),
                          by_hand("weight", "4, of 4", "maximum exact\n"), "b"),
        // Added up by a column of ones.
        planned_on_hopper(attention("S[h, q, x] * k^-0.5", "f16", "h = 1, q = 72, x = 104"),
                          by_hand("weight", "1, of 2", "atom P_Z_acc column, points h q, over x\n"), "c"),
        // The sum of the weights is a result of its own, which has all of its digits.
        planned_on_hopper(
            "f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16, L[h, q]\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] / k\n"
            "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n    L[h, q] = logsumexp(x) S[h, q, x] / k\n"
            "sizes h = 1, q = 72, x = 88, k = 32, d = 64\n",
            by_hand("weight", "2, of 4"), "d"),
        // No softmax: a sigmoid attention.
        planned_on_hopper(
            "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    W[h, q, x] = 1 / (1 + exp(-S[h, q, x]))\n"
            "    O[h, q, d] = sum(x) W[h, q, x] * V[h, x, d]\nsizes h = 1, q = 72, x = 104, k = 32, d = 64\n",
            by_hand("W", "2, of 4"), "e"),
    };
    for (const Planned& p : all) {
        const int degree = p.source.entries.front().name.starts_with("d") ? 5 : 3;
        EXPECT_THAT(p.source.text, testing::ContainsRegex(fmt::format("exp2_in_part<., ., {}>", degree)))
            << p.source.entries.front().name;
    }
    EXPECT_EQ(cpu_case::fault_on_probes(all, GetParam(), shards), "");
}

INSTANTIATE_TEST_SUITE_P(Shards, Polynomials, testing::Range(std::size_t{0}, shards));

/// The fault of attention whose logits are small, with this in place of that in its source.
std::string fault_with(const std::string& from, const std::string& to) {
    Planned p = planned_on_hopper(attention("S[h, q, x] / k", "f16", "h = 1, q = 64, x = 64"),
                                  by_hand("weight", "1, of 4"));
    if (const std::size_t at = p.source.text.find(from); at != std::string::npos)
        p.source.text.replace(at, from.size(), to);
    else
        return "there is no " + from;
    return fault_of(p, cpu_case::reference_of(p), *cpu_case::compiled_for_cpu(p.source), {});
}

TEST(Polynomials, AreWrongWhereTheirArgumentIs) {
    const std::string call = "exp2_in_part<1, 4, 3>(2 * j_ + c_, ";
    EXPECT_EQ(fault_with(call, call), "");
    EXPECT_NE(fault_with(call, call + "0.02f * (j_ == 0 && c_ == 0) + "), "");
    EXPECT_NE(fault_with(call, "(c_ == 0 ? 1.01f : 1.0f) * " + call), "");
}

/// The prelude's polynomials, by degree.
using Power = float (*)(float);
struct Powers {
    Powers() {
        cuda::CudaSource source;
        for (const PowerPolynomial& p : power_polynomials)
            source.text += fmt::format(
                "extern \"C\" float power_{0}(float x) {{ return napkin_gpu::exp2_by_polynomial<{0}>(x); }}\n", p.degree);
        module = cpu_case::compiled_for_cpu(source);
    }
    [[nodiscard]] Power of(int degree) const {
        return reinterpret_cast<Power>(module->symbol(fmt::format("power_{}", degree)));
    }
    std::shared_ptr<const JitModule> module;
};

TEST(Polynomials, KeepTheErrorThatTheBoundsCountOn) {
    const Powers powers;
    constexpr int steps = 1 << 24;
    for (const PowerPolynomial& p : power_polynomials) {
        const Power power = powers.of(p.degree);
        double most = 0;
        for (int i = 0; i < steps; ++i) {
            const float f = static_cast<float>(i) / steps;
            most = std::max(most, std::abs(power(f) / std::exp2(static_cast<double>(f)) - 1));
        }
        EXPECT_LE(most, p.error) << p.degree;
        EXPECT_GT(most, 0.9 * p.error) << p.degree << ": the table is not tight";
    }
}

TEST(Polynomials, TakeWhatIsNotFiniteAndWhatLeavesTheRangeAsTheUnitDoes) {
    const Powers powers;
    constexpr float inf = std::numeric_limits<float>::infinity(), smallest = std::numeric_limits<float>::min();
    for (const PowerPolynomial& p : power_polynomials) {
        const Power power = powers.of(p.degree);
        EXPECT_EQ(power(-inf), 0) << p.degree;
        EXPECT_EQ(power(inf), inf) << p.degree;
        for (const unsigned bits : {0x7fc00000u, 0x7fffffffu, 0xffc00000u})  // the second one is a GPU's
            EXPECT_TRUE(std::isnan(power(std::bit_cast<float>(bits)))) << p.degree;
        EXPECT_EQ(power(0), 1) << p.degree;
        EXPECT_EQ(power(-0.0f), 1) << p.degree;
        EXPECT_NEAR(power(-1e-30f), 1, p.error) << p.degree;
        for (const float x : {-1e9f, -1e38f, -150.0f, -127.0f, std::nextafter(-126.0f, -inf)})
            EXPECT_EQ(power(x), 0) << p.degree << ", " << x << ": below the smallest normal number";
        EXPECT_EQ(power(-126), smallest) << p.degree;
        for (const float x : {128.0f, 129.0f, 1e9f, std::numeric_limits<float>::max()})
            EXPECT_EQ(power(x), inf) << p.degree << ", " << x;
        for (float x = -126; x < 127.9f; x += 0.37f)
            EXPECT_NEAR(power(x) / std::exp2(static_cast<double>(x)), 1, p.error + 1e-7) << p.degree << ", " << x;
    }
}

}  // namespace
}  // namespace napkin::test_exponential_numbers
