// How many warps a GPU's block has, and what is said of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"
#include "support/schedules.hpp"

namespace napkin::test_blocks {
namespace {

/// A plan of sums of rows with these numbers by hand, where they are above 0.
Result<KernelSchedule> planned(std::int64_t warps, std::int64_t blocks, double warps_a_core = 64,
                               const std::string& on = "h200") {
    const Derived derived = derived_from("f(X[i, j]) -> Y[i]\n    Y[i] = sum(j) X[i, j]\nsizes i = 4096, j = 512\n");
    Machine machine = load_machine(on).value();
    if (machine.threads) machine.threads->warps_a_core.value = warps_a_core;
    std::vector<ScheduleItem> by_user;
    const auto fix = [&](const std::string& kind, std::int64_t value) {
        if (value > 0) by_user.push_back({choice_kind(kind), "", value});
    };
    fix("warps", warps), fix("blocks", blocks);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram).value(), machine, by_user);
    if (!plan) return plan.errors();
    return plan->kernels[0].schedule();
}
std::string reason(std::int64_t warps, double warps_a_core) {
    const KernelSchedule schedule = planned(warps, 0, warps_a_core).value();
    EXPECT_EQ(schedule.warps.by_user, warps > 0);
    EXPECT_TRUE(warps == 0 || schedule.warps.value == warps);
    return schedule.warps.reason;
}

TEST(Blocks, EachShapeIsTriedOnceAndCounted) {
    EXPECT_EQ(reason(0, 64), "fastest of 7 shapes of blocks");
    EXPECT_EQ(reason(0, 32), "fastest of 6 shapes of blocks") << "no room for 12 blocks of 4 warps";
    EXPECT_EQ(reason(8, 64), "fastest of 5 shapes of blocks") << "1, 2, 3, 4 or 8 blocks";
    EXPECT_EQ(reason(16, 64), "fastest of 4 shapes of blocks") << "an SM has room for four";
    EXPECT_EQ(reason(32, 64), "fastest of 2 shapes of blocks") << "an SM has room for two";
    EXPECT_EQ(reason(32, 48), "") << "there is no other";
}

TEST(Blocks, OfAnSmMayBeSetByHand) {
    for (const std::int64_t blocks : {1, 3, 5}) {
        const KernelSchedule schedule = planned(0, blocks).value();
        EXPECT_EQ(schedule.blocks.value, blocks);
        EXPECT_TRUE(schedule.blocks.by_user);
        EXPECT_FALSE(schedule.warps.by_user);
    }
    const KernelSchedule both = planned(16, 3).value();
    EXPECT_EQ(both.warps.value, 16);
    EXPECT_EQ(both.blocks.value, 3);
    EXPECT_FALSE(planned(16, 0).value().blocks.by_user);
    const auto error = [](const auto& result) {
        return result.ok() ? "none"
                           : result.errors().front().code + ": " + result.errors().front().message + "; " +
                                 result.errors().front().expected;
    };
    EXPECT_EQ(error(planned(16, 5)),
              "too-many-blocks: 5 blocks of 16 warps are more than the 64 warps of an SM; blocks 1 … 4");
    EXPECT_EQ(error(planned(0, 17)),
              "too-many-blocks: 17 blocks of 4 warps are more than the 64 warps of an SM; blocks 1 … 16");
    EXPECT_EQ(error(planned(0, 2, 64, "generic-cpu")),
              "no-blocks: generic-cpu has no blocks: each thread of a CPU runs whole groups; a GPU");
}

/// The mma_m axis and the sizes of the groups' axes, as "t 128, b 1 t 128 n 256"; "none" of a kernel that no matrix
/// unit runs.
std::string tiles_of(const std::string& text) {
    const Derived derived = derived_from(text);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {});
    if (!plan) return render(plan.errors());
    const ScheduledKernel& k = plan->kernels.at(0).scheduled;
    if (!k.on_tensor_cores()) return "none";
    std::string out = derived.diagram.axis(k.schedule.mma_m).name + ":";
    for (const auto& [axis, choice] : k.schedule.group)
        out += " " + derived.diagram.axis(axis).name + (choice.value == 1 ? " 1" : "");
    return out;
}

// The batch of a layer, whose weights lack it, and the heads that share keys, which lack those, are one value a group.
TEST(Blocks, HaveOneAxisOfColumnsOnAMatrixUnit) {
    EXPECT_EQ(tiles_of("layer(X[b, t, k]: bf16, W[n, k]: bf16) -> Y[b, t, n]: bf16\n"
                       "    Y[b, t, n] = sum(k) X[b, t, k] * W[n, k]\nsizes b = 8, t = 2048, n = 4096, k = 4096\n"),
              "t: b 1 t n");
    EXPECT_EQ(tiles_of("gqa(Q[g, r, q, k]: bf16, K[g, x, k]: bf16, V[g, x, d]: bf16) -> O[g, r, q, d]: bf16\n"
                       "    S[g, r, q, x] = sum(k) Q[g, r, q, k] * K[g, x, k]\n"
                       "    P[g, r, q, x] = softmax(x) S[g, r, q, x] * k^-0.5\n"
                       "    O[g, r, q, d] = sum(x) P[g, r, q, x] * V[g, x, d]\n"
                       "sizes g = 8, r = 8, q = x = 4096, k = d = 128\n"),
              "q: g 1 r 1 q");
    EXPECT_EQ(
        tiles_of(
            "f(A[a, b, k]: bf16, B[c, e, k]: bf16) -> C[a, b, c, e]: bf16\n"
            "    C[a, b, c, e] = sum(k) A[a, b, k] * B[c, e, k]\nsizes a = 16, b = 256, c = 16, e = 256, k = 1024\n"),
        "b: a 1 b c 1 e");
}

/// Beside rows of 256 values only short chunks fit: that makes neither fewer warps of them nor parts of a row.
TEST(Blocks, WideRowsHaveTwoWarpgroupsAndShorterChunks) {
    const Derived derived = derived_from(
        "f(Q[q, k]: f16, K[x, k]: f16, V[x, d]: f16) -> O[q, d]: f16\n"
        "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = softmax(x) S[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 32768, k = d = 256\n");
    const Plan plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {}).value();
    const KernelSchedule& schedule = plan.kernels.at(0).schedule();
    EXPECT_EQ(schedule.warps.value, 8);
    ASSERT_EQ(schedule.stream.size(), 1U);
    EXPECT_EQ(schedule.stream.begin()->second.value, 64);
    for (const auto& [axis, choice] : schedule.group) EXPECT_EQ(derived.diagram.axis(axis).name, "q");
}

}  // namespace
}  // namespace napkin::test_blocks
