// How many warps a GPU's block has, and what is said of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_blocks {
namespace {

using testing::EndsWith;

/// What is said of the warps of a plan in which a file fixes them.
std::string reason(std::int64_t warps, double warps_a_core) {
    const Diagram diagram = parse_diagram(std::make_shared<Source>(Source{"sum.nk",
                                                                          "f(X[i, j]) -> Y[i]\n"
                                                                          "    Y[i] = sum(j) X[i, j]\n"
                                                                          "sizes i = 4096, j = 512\n"}))
                                .value();
    Machine machine = load_machine("h200").value();
    machine.threads->warps_a_core.value = warps_a_core;
    std::vector<ScheduleItem> by_hand;
    if (warps > 0) {
        ScheduleItem item;
        item.kind = "warps", item.value = warps;
        by_hand.push_back(item);
    }
    const auto plan = choose_plan(derive(diagram).value(), bind_sizes(diagram).value(), machine, by_hand);
    if (!plan) return render(plan.errors());
    const Choice& chosen = plan->kernels[0].schedule().warps;
    EXPECT_EQ(chosen.by_hand, warps > 0);
    EXPECT_TRUE(warps == 0 || chosen.value == warps);
    return chosen.reason;
}

TEST(Blocks, EachShapeIsTriedOnceAndCounted) {
    EXPECT_THAT(reason(0, 64), EndsWith(" an SM; fastest of 7 shapes"));
    EXPECT_THAT(reason(0, 32), EndsWith(" an SM; fastest of 6 shapes")) << "no room for 12 blocks of 4 warps";
    EXPECT_THAT(reason(8, 64), EndsWith(" an SM; fastest of 5 shapes")) << "1, 2, 3, 4 or 8 blocks";
    EXPECT_THAT(reason(16, 64), EndsWith(" an SM; fastest of 4 shapes")) << "an SM has room for four";
    EXPECT_THAT(reason(32, 64), EndsWith(" an SM; fastest of 2 shapes")) << "an SM has room for two";
    EXPECT_EQ(reason(32, 48), "1 block an SM; no more of 32 warps fit");
}

/// The tensor axis and the sizes of the groups' axes, as "t 128, b 1 t 128 n 256"; "none" of a kernel that no matrix unit runs.
std::string tiles_of(const std::string& text) {
    const Derived derived = derived_from(text);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {});
    if (!plan) return render(plan.errors());
    const ScheduledKernel& k = plan->kernels.at(0).scheduled;
    if (!k.on_matrix_unit()) return "none";
    std::string out = derived.diagram.axis(k.schedule.tensor_axis).name + ":";
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
