// Kernels in which a product adds up its left factor as a further column, run on the CPU against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_ones_column_numbers {
namespace {

using cpu_case::Planned;
using cpu_case::planned_on_hopper;
using cpu_case::Timing;

/// By hand, `sum` being the statement that is a column.
std::string in_turn(const std::string& sum) {
    return fmt::format(
        "tensor q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\natom {} column, points h q, over x\n", sum);
}
std::string ahead(const std::string& sum) {
    return in_turn(sum) +
           "slot S position 0, ahead 1\nslot P_M_old position 2, ahead 1\nslot P_M position 2, ahead 1\n"
           "slot guarded position 2, ahead 1\nslot delta position 2, ahead 1\nslot weight position 2, ahead 1\n"
           "slot P_Z_acc position 1\nslot O_acc position 1\n";
}

std::string attention(const std::string& logits, const std::string& type, const std::string& sizes) {
    return cpu_case::attention_of_logits(logits, type, sizes + ", d = 64");
}
/// Means weighted by what `weights` makes of S.
std::string mean(const std::string& weights, const std::string& sizes) {
    return fmt::format(
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    W[h, q, x] = {}\n    Z[h, q] = sum(x) W[h, q, x]\n"
        "    N[h, q, d] = sum(x) W[h, q, x] * V[h, x, d]\n    O[h, q, d] = N[h, q, d] / Z[h, q]\nsizes k = 32, d = 64, "
        "{}\n",
        weights, sizes);
}

class OnesColumn : public testing::TestWithParam<std::size_t> {};
constexpr std::size_t shards = 2;

TEST_P(OnesColumn, IsRightWhateverItsInputsAre) {
    const std::vector<Planned> all = {
        planned_on_hopper(attention("S[h, q, x] / k", "f16", "h = 1, q = 72, x = 136"), in_turn("P_Z_acc"), "a"),
        planned_on_hopper(attention("S[h, q, x] * k^-0.5", "bf16", "h = 2, q = 64, x = 112"), ahead("P_Z_acc"), "b"),
        // Ragged chunks, and rows that a mask leaves nothing of.
        planned_on_hopper(attention("where(x <= q - 20, S[h, q, x] / k, -inf)", "f16", "h = 1, q = 128, x = 104"),
                          ahead("P_Z_acc"), "c"),
        planned_on_hopper(attention("S[h, q, x] * k^-0.5", "f16", "h = 1, q = 72, x = 96"),
                          in_turn("P_Z_acc") + "maximum exact\n", "d"),
        // No softmax: a sigmoid attention with its sum, and a kernel regression.
        planned_on_hopper(mean("1 / (1 + exp(-S[h, q, x] / k))", "h = 1, q = 72, x = 104"), in_turn("Z"), "e"),
        planned_on_hopper(mean("max(S[h, q, x] / k, 0) + 1", "h = 2, q = 64, x = 80"), in_turn("Z"), "f"),
    };
    for (const Planned& p : all)
        EXPECT_THAT(p.source.text, testing::HasSubstr("m64n72k16")) << p.source.entries.front().name;
    EXPECT_EQ(cpu_case::fault_on_probes(all, GetParam(), shards), "");
}

INSTANTIATE_TEST_SUITE_P(Shards, OnesColumn, testing::Range(std::size_t{0}, shards));

// A sum of an operand as it lies in memory is exact in the column, too, and may be a result of its own.
TEST(OnesColumn, AddsUpAnOperandThatLiesInSharedMemory) {
    const Planned p = planned_on_hopper(
        "f(A[q, x]: f16, B[x, d]: f16) -> C[q, d]: f16, R[q]\n    C[q, d] = sum(x) A[q, x] * B[x, d]\n"
        "    R[q] = sum(x) A[q, x]\nsizes q = 72, x = 120, d = 64\n",
        "tensor q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\natom R column, points q, over x\n");
    EXPECT_THAT(p.source.text, testing::HasSubstr("wgmma_m64n72k16_f16_s"));
    const auto module = cpu_case::compiled_for_cpu(p.source);
    for (const Probe probe : all_probes)
        for (const bool late : {false, true}) {
            Timing timing;
            timing.copies_late = timing.results_late = late;
            EXPECT_EQ(fault_of(p, cpu_case::reference_of(p, probe), *module, timing), "") << name(probe);
        }
}

/// The fault of attention whose logits grow, with this in place of that in its source.
std::string fault_with(const std::string& from, const std::string& to) {
    Planned p = planned_on_hopper(attention("S[h, q, x] * 8", "f16", "h = 1, q = 64, x = 128"), in_turn("P_Z_acc"));
    const std::size_t at = p.source.text.find(from);
    if (!from.empty() && at == std::string::npos) return "there is no " + from;
    if (!from.empty()) p.source.text.replace(at, from.size(), to);
    return fault_of(p, cpu_case::reference_of(p), *cpu_case::compiled_for_cpu(p.source), {});
}

TEST(OnesColumn, IsWrongWithoutItsGuardAndWithoutItsOnes) {
    EXPECT_EQ(fault_with("", ""), "");
    EXPECT_NE(fault_with("those_of_warp(reaches_two(P_M_bits_))", "0u"), "");
    EXPECT_NE(fault_with("pack_f16(1.0f, 1.0f)", "pack_f16(2.0f, 1.0f)"), "");
    EXPECT_NE(fault_with("matrix_descriptor_before(V_at_, k_", "matrix_descriptor(V_at_, 2048 + k_"), "");
    EXPECT_NE(fault_with("O_acc[32 + 2 * r_] * delta", "O_acc[32 + 2 * r_] * 1.01f * delta"), "");
}

}  // namespace
}  // namespace napkin::test_ones_column_numbers
