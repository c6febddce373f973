// Kernels whose running maximum lags, run on the CPU against their definition on inputs by which it moves once, in
// every chunk, or far.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_lazy_maximum_numbers {
namespace {

using cpu_case::attention_of_logits;
using cpu_case::Planned;
using cpu_case::planned_on_hopper;

constexpr const char* in_turn = "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\nmaximum rescaled\n";
constexpr const char* open_order = "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n";
const std::string ahead =
    std::string(in_turn) +
    "slot S order 0, stage_offset 1\nslot P_M_old order 2, stage_offset 1\nslot P_M order 2, stage_offset 1\n"
    "slot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\nslot weight order 2, stage_offset 1\n"
    "slot P_Z_acc order 2, stage_offset 1\nslot O_acc order 1\n";

class ConditionalRescale : public testing::TestWithParam<std::size_t> {};
constexpr std::size_t shards = 2;

/// Quotients of sums under another reference than softmax has: the extremum of the logits and what refers to it.
std::string referring(const std::string& logits, const std::string& extremum, const std::string& weight,
                      const std::string& type, const std::string& line = "", const std::string& outputs = "") {
    return "f(Q[h, q, k]: " + type + ", K[h, x, k]: " + type + ", V[h, x, d]: " + type + ") -> O[h, q, d]: " + type +
           outputs + "\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = " + logits +
           "\n    M[h, q] = " + extremum + "(x) A[h, q, x]\n    E[h, q, x] = " + weight +
           "\n    Z[h, q] = sum(x) E[h, q, x]\n" + line +
           "    O[h, q, d] = (sum(x) E[h, q, x] * V[h, x, d]) / Z[h, q]\nsizes h = 1, q = 72, x = 112, k = 32, d = "
           "16\n";
}

TEST_P(ConditionalRescale, IsRightWhateverItsInputsAre) {
    const std::vector<Planned> all = {
        planned_on_hopper(attention_of_logits("S[h, q, x] / k", "f16", "h = 1, q = 72, x = 136, d = 24"), in_turn, "a"),
        planned_on_hopper(attention_of_logits("S[h, q, x] * k^-0.5", "bf16", "h = 2, q = 64, x = 112, d = 16"), ahead,
                          "b"),
        planned_on_hopper(
            attention_of_logits("where(x <= q, S[h, q, x] / k, -inf)", "f16", "h = 1, q = 128, x = 128, d = 16"), ahead,
            "c"),
        planned_on_hopper(
            attention_of_logits("S[h, q, x] * k^-0.5 + B[q, x]", "bf16", "h = 1, q = 72, x = 96, d = 16", ", B[q, x]"),
            in_turn, "d"),
        // Documents: integers that are compared exactly, read where they lie.
        planned_on_hopper(attention_of_logits("where(D[q] % 3 == E[x] % 3, S[h, q, x] / k, -inf)", "f16",
                                              "h = 2, q = 72, x = 96, d = 16", ", D[q]: i32, E[x]: i32"),
                          open_order, "e"),
        planned_on_hopper(attention_of_logits("where(x <= q and D[q] // 7 != E[x] // 7, S[h, q, x] / k, -1000)", "bf16",
                                              "h = 1, q = 128, x = 128, d = 16", ", D[q]: i64, E[x]: i64"),
                          open_order, "f"),
        planned_on_hopper(attention_of_logits("S[h, q, x] * 4", "bf16", "h = 2, q = 64, x = 112, d = 16"), ahead, "g"),
        // Logits that rise by 2^4, 2^10 and 2^70 or so a chunk.
        planned_on_hopper(attention_of_logits("S[h, q, x] * k^-0.5 + x * 0.17", "f16", "h = 1, q = 64, x = 144, d = 16"),
                          in_turn, "h"),
        planned_on_hopper(
            attention_of_logits("S[h, q, x] * k^-0.5 + x * 0.43", "bf16", "h = 1, q = 64, x = 144, d = 16"), ahead, "i"),
        planned_on_hopper(attention_of_logits("S[h, q, x] * k^-0.5 + x * 3", "bf16", "h = 1, q = 64, x = 144, d = 16"),
                          in_turn, "l"),
        // The logarithm of the sums beside it, with all of its digits.
        planned_on_hopper(
            "f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16, L[h, q]\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = S[h, q, x] * k^-0.5 + x * 0.3\n"
            "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
            "    L[h, q] = logsumexp(x) A[h, q, x]\nsizes h = 1, q = 72, x = 136, k = 32, d = 16\n",
            in_turn, "m"),
        // Minima, other bases and factors; logits that fall by 2^10 or 2^70 a chunk.
        planned_on_hopper(referring("S[h, q, x] / k", "min", "exp(M[h, q] - A[h, q, x])", "f16"), in_turn, "n"),
        planned_on_hopper(referring("S[h, q, x] / k - x * 0.43", "min", "exp(M[h, q] - A[h, q, x])", "bf16"), in_turn,
                          "o"),
        planned_on_hopper(referring("S[h, q, x] / k - x * 3", "min", "2^(M[h, q] - A[h, q, x])", "bf16"), in_turn, "p"),
        planned_on_hopper(referring("S[h, q, x] + x * 0.6", "max", "exp(0.25 * (A[h, q, x] - M[h, q]))", "bf16",
                                    "    L[h, q] = M[h, q] + log(Z[h, q]) * 4\n", ", L[h, q]"),
                          in_turn, "r"),
        planned_on_hopper(referring("where(x <= q, S[h, q, x] + x * 0.4, -inf)", "max",
                                    "exp(k^-0.5 * A[h, q, x] - k^-0.5 * M[h, q])", "bf16"),
                          in_turn, "s"),
        planned_on_hopper(referring("S[h, q, x] / k + x * 0.3", "max", "exp2(A[h, q, x] - M[h, q])", "f16",
                                    "    T[h, q] = (max(x) E[h, q, x] * (x + 1)) / Z[h, q]\n", ", T[h, q]"),
                          in_turn, "t"),
    };
    for (const Planned& p : all)
        EXPECT_THAT(p.source.text, testing::AllOf(testing::HasSubstr("_stays_"), testing::HasSubstr("_most_[r_]")))
            << p.source.entries.front().name;
    EXPECT_EQ(cpu_case::fault_on_probes(all, GetParam(), shards), "");
}

INSTANTIATE_TEST_SUITE_P(Shards, ConditionalRescale, testing::Range(std::size_t{0}, shards));

/// Results do not depend on where the reference goes, so that values alone do not tell: a wrong rate costs range.
TEST(RateOfRescaling, IsThatOfTheExponent) {
    const auto moves_by = [](const std::string& extremum, const std::string& weight, const char* step) {
        const Planned p = planned_on_hopper(referring("S[h, q, x] / k", extremum, weight, "bf16"), in_turn);
        EXPECT_THAT(p.source.text, testing::HasSubstr(fmt::format("whole_powers(M_most_[r_]) * {};", step))) << weight;
    };
    moves_by("max", "exp(A[h, q, x] - M[h, q])", "0.6931472f");
    moves_by("min", "exp(M[h, q] - A[h, q, x])", "-0.6931472f");
    moves_by("max", "2^(A[h, q, x] - M[h, q])", "1.0f");
    moves_by("max", "exp(0.25 * (A[h, q, x] - M[h, q]))", "2.7725887f");
}

/// The fault of attention whose logits rise by so much from key to key, with this in place of that in its source.
std::string fault_of_rising(const std::string& rise, const std::string& from, const std::string& to) {
    Planned p = planned_on_hopper(
        attention_of_logits("S[h, q, x] / k + x * " + rise, "f16", "h = 1, q = 64, x = 128, d = 16"), in_turn);
    const std::size_t at = p.source.text.find(from);
    if (at == std::string::npos) return "there is no " + from;
    p.source.text.replace(at, from.size(), to);
    return fault_of(p, cpu_case::reference_of(p), *cpu_case::compiled_for_cpu(p.source), {});
}

TEST(ConditionalRescale, IsWrongWhereWeightsOrSumsStayOrNothingIsComputedAgain) {
    const std::string weights = "weight[4 * j_ + 2 * r_ + c_] *= delta[r_]", sums = "P_M_sums_[r_] *= delta[r_]",
                      shift = "whole_powers(P_M_most_[r_])";
    EXPECT_EQ(fault_of_rising("0.5", weights, weights), "");
    EXPECT_NE(fault_of_rising("0.5", weights, "weight[0] *= 1.0f"), "");
    EXPECT_NE(fault_of_rising("0.5", sums, "P_M_sums_[r_] *= 1.0f"), "");
    // The maximum moves and nothing with it.
    EXPECT_NE(fault_of_rising("0.5", shift, "(0 * " + shift + ")"), "");
    // Weights that leave the range are computed again.
    EXPECT_EQ(fault_of_rising("8", "if (!any_of_warp(!(", "if (!any_of_warp(!("), "");
    EXPECT_NE(fault_of_rising("8", "if (!any_of_warp(!(", "if (true || (("), "");
}

// Without the limit, the weights of a maximum that stays leave the range of their type.
TEST(ConditionalRescale, IsWrongWithoutItsLimit) {
    Planned p = planned_on_hopper(attention_of_logits("S[h, q, x] * 8", "f16", "h = 1, q = 64, x = 128, d = 16"), in_turn);
    const cpu_case::Reference reference = cpu_case::reference_of(p);
    const auto fault = [&] { return fault_of(p, reference, *cpu_case::compiled_for_cpu(p.source), {}); };
    EXPECT_EQ(fault(), "");
    for (const int r : {0, 1}) {
        const std::string limit = fmt::format("_sums_[{}] <= ", r);
        const std::size_t at = p.source.text.find(limit);
        ASSERT_NE(at, std::string::npos);
        p.source.text.insert(at + limit.size(), "1e30f * ");
    }
    EXPECT_NE(fault(), "");
}

// Two warpgroups run different chunks each. If threads bring a tile into shared memory, all warps wait for each other
// in every chunk (R). If each reads its own values (B), they do not.
TEST(OwnChunks, AreOfLoopsInWhichNotAllWarpsWaitForEachOther) {
    const std::string eight = "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 1\n";
    const Planned tile_of_all = planned_on_hopper(
        attention_of_logits("where(x <= q, S[h, q, x] * k^-0.5 + R[q - x], -inf)", "f16",
                            "h = 1, q = 128, x = 128, d = 16", ", R[q]"),
        eight, "a");
    const Planned read_by_each = planned_on_hopper(
        attention_of_logits("where(x <= q, S[h, q, x] * k^-0.5 + B[q, x], -inf)", "f16",
                            "h = 1, q = 128, x = 128, d = 16", ", B[q, x]"),
        eight, "b");
    EXPECT_THAT(tile_of_all.source.text, testing::Not(testing::HasSubstr("_own_last_")));
    EXPECT_THAT(read_by_each.source.text, testing::HasSubstr("_own_last_"));
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source({tile_of_all, read_by_each}));
    for (const Planned& p : {tile_of_all, read_by_each})
        EXPECT_EQ(fault_of(p, cpu_case::reference_of(p), *module, {}), "") << p.source.entries.front().name;
}

// The last tile of rows leaves one of two groups of four warps, or two of three, without any.
TEST(OwnChunks, AreNoneWhereNoRowIsLeft) {
    const std::string of_warps = "mma_m q\nwarps {}\nrole copies 4\nstream x = 16\nthreads 2\ngrid 2\n";
    std::vector<Planned> all;
    for (const auto& [logits, sizes, warps] :
         {std::tuple{"S[h, q, x] / k", "h = 2, q = 190, x = 72, d = 24", 8},
          {"S[h, q, x] / k", "h = 1, q = 200, x = 40, d = 16", 12},
          {"where(x <= q, S[h, q, x] / k, -inf)", "h = 3, q = 180, x = 180, d = 16", 8},
          {"where(q <= x, S[h, q, x] / k, -inf)", "h = 2, q = 250, x = 250, d = 16", 12}})
        for (const std::string& order : {std::string(), ahead.substr(ahead.find("slot"))})
            all.push_back(planned_on_hopper(attention_of_logits(logits, "bf16", sizes),
                                            fmt::format(fmt::runtime(of_warps), warps) + order,
                                            fmt::format("k{}_", all.size())));
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (const Planned& p : all) {
        EXPECT_THAT(p.source.text, testing::HasSubstr(">= nq) x0_own_last_")) << p.source.entries.front().name;
        const cpu_case::Reference reference = cpu_case::reference_of(p);
        EXPECT_EQ(fault_early_or_late(p, reference, *module), "") << p.source.entries.front().name;
    }
}

// The weights refer to the larger of a running maximum and a logit of the head's own. Beside the latter, all of them
// may be smaller than f16 tells apart from 0.
TEST(Sink, RunsOnTheMatrixUnit) {
    const Planned p = planned_on_hopper(
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, A[h]) -> O[h, q, d]: bf16\n"
        "    S[h, q, x]: f32 = k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q] = max(max(x) S[h, q, x], A[h])\n"
        "    E[h, q, x] = exp(S[h, q, x] - M[h, q])\n    Z[h, q] = exp(A[h] - M[h, q]) + sum(x) E[h, q, x]\n"
        "    O[h, q, d] = sum(x) E[h, q, x] / Z[h, q] * V[h, x, d]\nsizes h = 2, q = 128, x = 80, k = 32, d = 16\n",
        "kernel O\nmma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n");
    EXPECT_THAT(p.source.text, testing::HasSubstr("wgmma_m64n16k16_bf16_r"));
    const auto module = cpu_case::compiled_for_cpu(p.source);
    for (const Probe probe : all_probes) EXPECT_EQ(fault_of(p, cpu_case::reference_of(p, probe), *module, {}), "");
}

// Names that the preludes declare, and those under which statements on the tensor cores keep what they need for
// themselves.
TEST(Names, OfArraysClashWithNothingThatKernelsDeclare) {
    std::string text = attention_of_logits("where(x <= q, S[h, q, x] / k, -inf)", "f16",
                                           "h = 1, q = 128, x = 128, d = 16");
    const std::pair<const char*, const char*> names[] = {
        {"Q[", "fragment_row["}, {"K[", "Q_stage["},        {"V[", "K_at["},      {"O[", "sum_over_quad["},
        {"S[", "P_M_stays["},    {"P[", "wait_ping_pong["}, {"A[", "wgmma_wait["}};
    for (const auto& [from, to] : names)
        for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += std::string(to).size())
            text.replace(at, std::string(from).size(), to);
    const Planned p = planned_on_hopper(text, "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n");
    const auto module = cpu_case::compiled_for_cpu(p.source);
    EXPECT_EQ(fault_of(p, cpu_case::reference_of(p), *module, {}), "");
}

}  // namespace
}  // namespace napkin::test_lazy_maximum_numbers
