// Orders that are no rule's: an entropy beside an attention runs before the weights that it does not read, and gives
// its registers to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_orders {
namespace {

TEST(Orders, OfAnEntropyBesideAnAttentionComputeTheDefinition) {
    const std::string text =
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16, E[h, q]: f32\n"
        "    S[h, q, x] = k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x]\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n    E[h, q] = sum(x) P[h, q, x] * S[h, q, x]\n"
        "sizes h = 2, q = 72, x = 96, k = 32, d = 16\n";
    const std::string
        head = "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n",
        ahead =
            "slot S_sum order 0, stage_offset 1\nslot P_M_old order 2, stage_offset 1\nslot P_M order 2, stage_offset "
            "1\n"
            "slot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\nslot E_acc order 2, "
            "stage_offset 1\n"
            "slot weight order 3, stage_offset 1\nslot P_Z_acc order 3, stage_offset 1\nslot O_acc order 1\n";
    const cpu_case::Planned p = cpu_case::planned(text, head + ahead, load_machine("h200").value());
    const auto module = cpu_case::compiled_for_cpu(p.source);
    for (const Probe probe : all_probes) {
        const cpu_case::Reference reference = cpu_case::reference_of(p, probe);
        EXPECT_EQ(fault_early_or_late(p, reference, *module), "") << name(probe);
    }
}

}  // namespace
}  // namespace napkin::test_orders
