// A machine's levels as Theorems 2 and 3 and A.2.3 weigh them, against figures worked out by hand.
#include <gtest/gtest.h>

#include "cost/levels.hpp"
#include "cost/report.hpp"
#include "costed.hpp"

namespace napkin::test_levels_model {
namespace {

Machine machine(const std::string& name) { return load_machine(name).value(); }

double kib(double n) { return n * 1024; }

TEST(LevelsModel, ACacheHoldsWhatItsChildrenHold) {
    const auto levels = model_levels(machine("h100-sxm5"));
    ASSERT_TRUE(levels.ok());
    ASSERT_EQ(levels->size(), 3U);
    const ModelLevel &l2 = (*levels)[0], &smem = (*levels)[1], &registers = (*levels)[2];
    EXPECT_EQ(l2.rule, LevelRule::cache);
    EXPECT_DOUBLE_EQ(l2.memory_bytes, 132 * kib(227)) << "not the 50 MiB that it has";
    EXPECT_DOUBLE_EQ(l2.seconds_per_byte, 1 / 3352e9);
    EXPECT_EQ(smem.rule, LevelRule::pipe);
    EXPECT_TRUE(smem.is_core);
    EXPECT_DOUBLE_EQ(smem.memory_bytes, kib(227));
    EXPECT_DOUBLE_EQ(smem.seconds_per_byte, 1 / 12e12);
    EXPECT_DOUBLE_EQ(registers.memory_bytes, smem.memory_bytes) << "four parts of 64 KiB hold more, and groups nest";
    EXPECT_DOUBLE_EQ(registers.seconds_per_byte, 1 / (528 * 58.56e9));
}

TEST(LevelsModel, ClustersTakeFromThePipeWhatTheyExchange) {
    // The paper's H800: 2.04 TB/s from memory, 3.27 TB/s among 2 and 2.65 TB/s among 4.
    const Machine h800 = machine("h800");
    const double from_l2 = 1 / (h800.levels[2].bandwidth_bytes_per_s.value * h800.levels[2].instances.value);
    const auto levels = model_levels(h800, {2, 1});
    ASSERT_TRUE(levels.ok());
    const ModelLevel &x = (*levels)[1], &core = (*levels)[2];
    EXPECT_EQ(x.rule, LevelRule::link);
    EXPECT_EQ(core.rule, LevelRule::link);
    EXPECT_DOUBLE_EQ(x.memory_bytes, 2 * core.memory_bytes);
    EXPECT_NEAR(x.seconds_per_byte, from_l2 - 1 / 3.27e12, 1e-22);
    EXPECT_NEAR(core.seconds_per_byte, 1 / 3.27e12, 1e-22);
    EXPECT_TRUE(core.is_core);

    const auto options = core_links(h800);
    const auto beside_memory = std::find_if(options.begin(), options.end(),
                                            [](const LinkOption& o) { return o.from == "GMEM"; });
    ASSERT_NE(beside_memory, options.end());
    ASSERT_EQ(beside_memory->choices.size(), 2U);
    EXPECT_NEAR(beside_memory->pipe_bytes_per_s, 2.04e12, 1e9);
    EXPECT_NEAR(beside_memory->choices[0].saved_seconds_per_byte, 1 / 2.04e12 - 1 / 3.27e12, 1e-16);
    EXPECT_NEAR(beside_memory->choices[1].saved_seconds_per_byte, 1 / 2.04e12 - 1 / 2.65e12, 1e-16);
}

TEST(LevelsModel, TheClusterThatSavesMost) {
    // ΔT(N) = ΔḢ⁻¹(N)·α·M⁻¹·(1 − 1/N) for attention: 0.184·(1 − 1/2) against 0.113·(1 − 1/4) s/TB, so 2 of them.
    const Compilation c = costed::compile(costed::attention_f16, "h800",
                                          {{"q", 1 << 16}, {"x", 1 << 16}, {"k", 128}, {"d", 128}});
    const auto savings = link_savings(c.derived, c.derived.kernels[0], c.extents, c.machine, costed::place(c).value());
    const auto beside_memory = std::find_if(savings.begin(), savings.end(),
                                            [](const LinkSaving& s) { return s.from == "GMEM"; });
    ASSERT_NE(beside_memory, savings.end());
    EXPECT_EQ(beside_memory->best, 2);
    const auto &two = beside_memory->choices[0], &four = beside_memory->choices[1];
    const double by_user = (two.link.saved_seconds_per_byte * (1 - 1.0 / 2)) /
                           (four.link.saved_seconds_per_byte * (1 - 1.0 / 4));
    EXPECT_NEAR(two.saved_s / four.saved_s, by_user, 1e-9);
    // A row takes 2·d bytes of Q and 4·d of O's sums, and fourteen of its state and four of its weights, which take the
    // place of its scores: M ≥ g·(6·d + 18), and every group loads 4·x·d bytes.
    const double alpha = 65536.0 * 65536 * 4 * 128 * (6 * 128 + 18);
    EXPECT_NEAR(two.saved_s, two.link.saved_seconds_per_byte * alpha / kib(227) / 2, 1e-9);
}

TEST(LevelsModel, DevicesExchangeWhatTheyHold) {
    const auto levels = model_levels(machine("h100-sxm5"), {1, 4});
    ASSERT_TRUE(levels.ok());
    const ModelLevel &top = (*levels)[0], &child = (*levels)[1], &l2 = (*levels)[2];
    EXPECT_EQ(top.rule, LevelRule::devices);
    EXPECT_DOUBLE_EQ(top.memory_bytes, 4 * 80e9);
    EXPECT_DOUBLE_EQ(top.seconds_per_byte, -1 / (4 * 450e9)) << "its data is already there";
    EXPECT_DOUBLE_EQ(child.memory_bytes, 80e9);
    EXPECT_DOUBLE_EQ(child.seconds_per_byte, 1 / (4 * 450e9));
    EXPECT_DOUBLE_EQ(l2.seconds_per_byte, 1 / (4 * 3352e9));
    EXPECT_DOUBLE_EQ(l2.memory_bytes, 132 * kib(227)) << "of one device";
    EXPECT_EQ(l2.nodes, 4);
}

TEST(LevelsModel, AnyLinkOfALevelMayJoin) {
    // An H100 PCIe has NVLink for two cards, and PCIe for more.
    const auto levels = model_levels(machine("h100-pcie"), {1, 4});
    ASSERT_TRUE(levels.ok());
    EXPECT_EQ((*levels)[0].name, "PCIe");
    EXPECT_EQ(model_levels(machine("h100-pcie"), {1, 2}).value()[0].name, "NVLink");
}

TEST(LevelsModel, WhatNoLinkJoins) {
    const auto cluster = model_levels(machine("h100-sxm5"), {3, 1});
    ASSERT_FALSE(cluster.ok());
    EXPECT_EQ(cluster.errors()[0].code, "bad-cluster");
    EXPECT_EQ(cluster.errors()[0].expected, "one of 1, 2, 4, 8 (cluster)");
    EXPECT_EQ(cluster.errors()[0].hint, "the nearest is 2");
    const auto devices = model_levels(machine("h100-pcie"), {1, 3});
    ASSERT_FALSE(devices.ok());
    EXPECT_EQ(devices.errors()[0].code, "bad-devices");
    EXPECT_EQ(devices.errors()[0].expected, "one of 1, 2 (NVLink), 2, 4, 8 (PCIe)");
    const auto none = model_levels(machine("generic-cpu"), {2, 1});
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.errors()[0].expected, "1: the machine file has no cross_transfer that joins cores");
    EXPECT_FALSE(model_levels(machine("h100-sxm5"), {0, 1}).ok());
    EXPECT_FALSE(model_levels(machine("h100-sxm5"), {1, -2}).ok());
}

}  // namespace
}  // namespace napkin::test_levels_model
