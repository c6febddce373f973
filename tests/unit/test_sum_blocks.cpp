// Sums over blocks of a scale each, and casts that round nothing.
#include <gmock/gmock.h>

#include <stdexcept>

#include "check/execution.hpp"
#include "derive/normal_form.hpp"
#include "diagram/blocks.hpp"
#include "diagram/sizes.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/parsed.hpp"

namespace napkin::test_sum_blocks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A product of matrices in `type` whose factors have the scales.
std::string scaled_product(const std::string& scales, const std::string& sizes = "k = 128 * block, block = 4") {
    return "f(A[m, k]: e4m3, B[n, k]: e4m3, s[m, block], t[w, block]) -> C[m, n]\n"
           "    C[m, n] = sum(k) f32(A[m, k]) * f32(B[n, k])" +
           scales + "\nsizes m = 256, n = 128 * w, w = 2, " + sizes + "\n";
}

std::vector<std::string> normal_equations(const std::string& text) {
    std::vector<DerivationStep> steps;
    const Diagram normal = normal_form(parsed(text), {}, steps);
    std::vector<std::string> out;
    for (const Equation& e : normal.equations) out.push_back(to_string(normal, e));
    return out;
}

TEST(SumBlocks, AFactorOfEachBlockLeavesTheSumOverIt) {
    EXPECT_THAT(normal_equations(scaled_product(" * s[m, k // 128] * t[n // 128, k // 128]")),
                ElementsAre("C_block[m, n, block] = sum(k_128) A[m, 128*block + k_128] * B[n, 128*block + k_128]",
                            "C[m, n] = sum(block) C_block[m, n, block] * (s[m, block] * t[n // 128, block])"));
}

TEST(SumBlocks, WhatIsToldApartOtherwiseStays) {
    // By the value's place in its block, by a block of another length, by a quotient of an axis that has no blocks.
    for (const char* scales : {" * s[m, k % 4]", " * s[m, k // 64 % 4]"})
        EXPECT_THAT(normal_equations(scaled_product(scales)).back(), HasSubstr("sum(k)")) << scales;
    EXPECT_THAT(normal_equations(scaled_product(" * s[m, k // 128] * t[n // 128, k // 256]")).front(),
                HasSubstr("t[n // 128, (128 * block + k_128) // 256]"));
    EXPECT_THAT(normal_equations(scaled_product(" * s[m, k // 128]", "k = 512, block = 4")).back(),
                HasSubstr("sum(k)"));
    EXPECT_THAT(normal_equations(scaled_product("")), ElementsAre("C[m, n] = sum(k) A[m, k] * B[n, k]"));
}

TEST(SumBlocks, CastsThatRoundStay) {
    EXPECT_THAT(
        normal_equations("f(A[m]: f16, B[m]) -> C[m], D[m]\n    C[m] = f32(A[m]) + 1\n    D[m] = f32(f16(B[m]))\n"),
        ElementsAre("C[m] = A[m] + 1", "D[m] = f32(f16(B[m]))"));
}

TEST(SumBlocks, BlocksAreWhole) {
    const Diagram diagram = parsed(scaled_product(" * s[m, k // 128]"));
    EXPECT_TRUE(bind_sizes(diagram, {{"block", 9}}).ok());
    for (const auto& [axis, size, expected] : {std::tuple{"k", 500, "512"}, {"k_128", 64, "128"}}) {
        const auto refused = bind_sizes(diagram, {{axis, size}});
        ASSERT_FALSE(refused.ok()) << axis;
        EXPECT_EQ(refused.errors().front().code, "bad-size");
        EXPECT_THAT(refused.errors().front().message, HasSubstr("k is read in 4 blocks of 128"));
        EXPECT_EQ(refused.errors().front().expected, expected);
    }
}

struct OnH200 {
    explicit OnH200(const std::string& text, const std::string& schedule = "")
        : diagram(parsed(text)), derived(derived_from(text)), extents(bind_sizes(derived.diagram, {}).value()) {
        PlanOptions options;
        if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
        plan = choose_blocks(derived, extents, load_machine("h200").value(), {}, options).value();
    }
    [[nodiscard]] const ScheduledKernel& kernel() const { return plan.kernels.front().scheduled; }
    [[nodiscard]] VariableId variable(const std::string& name) const {
        for (const VariableId v : kernel().layouts.ids())
            if (kernel().kernel->variables[v].name == name) return v;
        throw std::out_of_range(name);
    }
    Diagram diagram;
    Derived derived;
    Extents extents;
    Plan plan;
};

const std::string two_scales = " * s[m, k // 128] * t[n // 128, k // 128]";

TEST(SumBlocks, RunOnTheMatrixUnitBlockByBlock) {
    const OnH200 p(scaled_product(two_scales));
    ASSERT_EQ(p.plan.kernels.size(), 1U);
    EXPECT_TRUE(p.kernel().on_tensor_cores());
    for (const char* name : {"A", "B", "s", "t"}) {
        const bool is_operand = *name == 'A' || *name == 'B';
        EXPECT_EQ(p.kernel().is_operand(p.variable(name)), is_operand) << name;
        EXPECT_EQ(p.kernel().is_read_by_threads(p.variable(name)), !is_operand) << name;
    }
}

/// 48 values of a block are one and a half instructions, and behind them lie the next block's.
TEST(SumBlocks, BlocksThatAreNoWholeInstructionsAreLeftToThreads) {
    EXPECT_FALSE(OnH200(scaled_product(" * s[m, k // 48]", "k = 48 * block, block = 8")).kernel().on_tensor_cores());
    EXPECT_TRUE(OnH200(scaled_product(" * s[m, k // 64]", "k = 64 * block, block = 8")).kernel().on_tensor_cores());
}

/// Tiles of 128 columns have one scale, those of 192 have two.
TEST(SumBlocks, AScaleIsReadOnceWhereATileHasOne) {
    for (const auto& [columns, is_one] : {std::pair{"128", true}, {"192", false}}) {
        const OnH200 p(scaled_product(two_scales),
                       std::string("mma_m axis m\nwarps 8\nrole copies 4\ngroup n ") + columns + "\n");
        ASSERT_TRUE(p.kernel().on_tensor_cores()) << columns;
        EXPECT_TRUE(is_read_by_rows(p.kernel(), p.variable("s"))) << columns;
        EXPECT_EQ(is_read_by_rows(p.kernel(), p.variable("t")), is_one) << columns;
    }
}

TEST(SumBlocks, TheirErrorIsThatOfTheUnit) {
    const OnH200 p(scaled_product(two_scales));
    const Execution execution = execution_of(p.diagram, bind_sizes(p.diagram, {}).value(), p.plan.tiles(),
                                             {reduction_trees(p.kernel())});
    // Four instructions of 32 values a block.
    EXPECT_EQ(execution.factor_unit, std::vector<double>{4 * accumulation_unit_of_8_bits});
}

}  // namespace
}  // namespace napkin::test_sum_blocks
