// A diagram's cost on a machine, asked in process as the command line asks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/cost_study.hpp"
#include "study/count_levels.hpp"
#include "study/report.hpp"
#include "support/json.hpp"

namespace napkin::test_cost_study {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* chain = R"(
chain(A[i, j], B[j, k], C[k, l]) -> D[i, l]
    T[i, k] = sum(j) A[i, j] * B[j, k]
    D[i, l] = sum(k) max(T[i, k], 0) * C[k, l]
)";

CostQuery query(const std::string& machine, const std::map<std::string, std::int64_t>& sizes) {
    CostQuery q;
    q.closed_form = true;  // the theory is tried, whatever would run
    q.source = std::make_shared<Source>(Source{"chain.nk", chain});
    q.pipeline.machine = machine;
    q.pipeline.sizes = sizes;
    return q;
}

TEST(CostStudy, LettersNeedNoSizes) {
    const auto study = study_cost(query("", {}));
    ASSERT_TRUE(study.ok()) << render(study.errors());
    EXPECT_FALSE(study->summary.has_value());
    EXPECT_THAT(to_text(report_of(*study)), HasSubstr("no numbers:"));
    EXPECT_EQ(to_json(report_of(*study))["kernels"][0]["streamed"][0], "k");
}

TEST(CostStudy, AMachineNeedsThem) {
    const auto study = study_cost(query("h100-sxm5", {{"i", 64}}));
    ASSERT_FALSE(study.ok());
    EXPECT_EQ(study.errors()[0].code, "missing-size");
    EXPECT_THAT(study.errors()[0].message, HasSubstr("j, k, l"));
}

TEST(CostStudy, SaysWhatBindsAndWhatItTakes) {
    const auto study = study_cost(query("h100-sxm5", {{"i", 65536}, {"j", 128}, {"k", 8192}, {"l", 128}}));
    ASSERT_TRUE(study.ok()) << render(study.errors());
    const CostSummary& s = *study->summary;
    EXPECT_GT(s.flops, 4.0 * 65536 * 8192 * 128);
    // 132 SMs of 128 multiply-adds in FP32: what no plan beats.
    EXPECT_GT(s.seconds, s.flops / (2 * 128 * 132 * 1.83e9) * 0.9);
    EXPECT_EQ(s.bound_by, "arithmetic");
    EXPECT_DOUBLE_EQ(*s.energy_j, 700 * s.seconds);
    const auto kernel = to_json(report_of(*study))["kernels"][0];
    EXPECT_EQ(kernel["levels"][0]["rule"], "Theorem 2");
    EXPECT_EQ(kernel["time"]["bound_by"], "arithmetic");
}

TEST(CostStudy, AWeightBelowZeroIsNoRate) {
    CostQuery q = query("h200", {{"i", 8192}, {"j", 128}, {"k", 8192}, {"l", 128}});
    q.levels.cluster = 2;
    const auto study = study_cost(q);
    ASSERT_TRUE(study.ok()) << render(study.errors());
    EXPECT_THAT(to_text(report_of(*study)), Not(ContainsRegex(" -[0-9]")));
    bool seen = false;
    const auto levels = to_json(report_of(*study))["kernels"][0]["levels"];
    for (const auto& level : levels) {
        if (level["name"] != "cluster") continue;
        seen = true;
        EXPECT_LT(level["weight_s_per_byte"].get<double>(), 0);
        for (const char* of_pipe : {"bytes_per_s", "seconds", "expected_s", "ridge_flop_per_byte"})
            EXPECT_TRUE(level[of_pipe].is_null()) << of_pipe;
    }
    EXPECT_TRUE(seen);
}

TEST(CostStudy, WhatHoldsNoTileHasNoFewestTransfers) {
    CostQuery q = query("h200", {{"i", 64}, {"j", 64}, {"k", 64}, {"l", 64}});
    q.memory_values = 2;
    const auto study = study_cost(q);
    ASSERT_TRUE(study.ok()) << render(study.errors());
    EXPECT_THAT(to_text(report_of(*study)), HasSubstr("M = 2 holds no tile"));
    EXPECT_THAT(to_text(report_of(*study)), Not(HasSubstr("the fewest")));
    const auto numbers = to_json(report_of(*study))["kernels"][0]["numbers"];
    EXPECT_FALSE(numbers["fewest"]["fits"]);
    EXPECT_FALSE(numbers["fewest"].contains("transfers_values"));
}

// One of two sizes by hand alone is changed where that is enough, and by no more than it takes.
TEST(CostStudy, TheSizesThatFitAreNearThoseByHand) {
    CostQuery q;
    q.closed_form = true;  // the theory is tried, whatever would run
    q.source = std::make_shared<Source>(Source{"mm.nk",
                                               "mm(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n"
                                               "    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = n = k = 4096\n"});
    q.pipeline.machine = "h200";
    q.pipeline.schedule = {"group m = 512", "group n = 256"};
    const auto refused = study_cost(q);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors()[0].hint, "m = 192, n = 256 fits");
    q.pipeline.schedule = {"group m = 192", "group n = 256"};
    EXPECT_TRUE(study_cost(q).ok());
    q.pipeline.schedule = {"group m = 128", "group n = 512"};
    const auto other = study_cost(q);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.errors()[0].hint, "m = 128, n = 384 fits");
}

TEST(CostStudy, TypesHalveBytes) {
    CostQuery q = query("h100-sxm5", {{"i", 65536}, {"j", 128}, {"k", 8192}, {"l", 128}});
    q.pipeline.types = DType::f32;
    const auto wide = study_cost(q);
    q.pipeline.types = DType::f16;
    const auto narrow = study_cost(q);
    ASSERT_TRUE(wide.ok() && narrow.ok());
    const double in_f32 = to_json(report_of(*wide))["footprint"]["inputs_bytes"],
                 in_f16 = to_json(report_of(*narrow))["footprint"]["inputs_bytes"];
    EXPECT_EQ(in_f32, 2 * in_f16);
    EXPECT_LT(narrow->summary->seconds, wide->summary->seconds / 4);  // tensor cores take it
}

TEST(CostStudy, CountsWhatItPredictsOnEveryLevel) {
    for (const char* machine : {"h100-sxm5", "mi300x", "generic-cpu"}) {
        CostQuery q = query(machine, {{"i", 50}, {"j", 12}, {"k", 45}, {"l", 9}});
        q.pipeline.schedule = {"group i = 6", "stream k = 7"};
        const auto study = study_cost(q);
        ASSERT_TRUE(study.ok()) << render(study.errors());
        const auto count = count_levels(study->compilation.derived, study->compilation.extents, study->kernels);
        ASSERT_TRUE(count.ok());
        EXPECT_TRUE(count->equal()) << to_text(report_of(*count));
        EXPECT_GE(count->levels.size(), 2U);
        EXPECT_EQ(count->levels.back().counted.groups, 9);
        EXPECT_LT(count->error, 1e-12);
    }
}

// With few groups the model cuts the stream for idle cores, and the merge of many parts of 192 rows fits no SM. So the
// user's tiles are those of the kernel as it is, which runs.
TEST(CostStudy, SizesByHandThatNoMergeHasLeaveTheStreamWhole) {
    for (const char* machine : {"h200", "h100-sxm5", "b200"}) {
        CostQuery q;
        q.source = std::make_shared<Source>(Source{
            "a.nk",
            "f(Q[q, k]: f16, K[x, k]: f16, V[x, d]: f16) -> O[q, d]: f16\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
            "    P[q, x] = softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
            "sizes q = x = 4096, k = d = 128\n"});
        q.pipeline.machine = machine;
        q.closed_form = true;
        const auto cut = study_cost(q);
        ASSERT_TRUE(cut.ok()) << render(cut.errors());
        EXPECT_EQ(cut->kernels.size(), 2U) << machine << ": parts and their merge";
        q.pipeline.schedule = {"group q = 192", "stream x = 128"};
        const auto whole = study_cost(q);
        ASSERT_TRUE(whole.ok()) << machine << render(whole.errors());
        ASSERT_EQ(whole->kernels.size(), 1U);
        const AxisId rows = whole->compilation.derived.diagram.find_axis("q").value();
        EXPECT_EQ(whole->kernels[0].group.at(rows), 192) << machine;
        EXPECT_EQ(whole->kernels[0].splits, 1) << machine;
    }
}

// What cost says of a machine is what its plan takes. Where there is no plan, it says so.
TEST(CostStudy, IsThatOfThePlan) {
    for (const char* machine : {"h200", "a100-sxm-80gb", "b200", "generic-cpu"}) {
        CostQuery q = query(machine, {{"i", 512}, {"j", 64}, {"k", 256}, {"l", 64}});
        q.closed_form = false;
        PipelineOptions options = q.pipeline;
        options.until = Pass::plan;
        const auto planned = run_pipeline(q.source, options);
        const auto cost = cost_summary(q);
        ASSERT_TRUE(cost.ok() && planned.ok()) << machine;
        EXPECT_DOUBLE_EQ(cost->seconds, planned->plan.seconds()) << machine;
        EXPECT_EQ(cost->no_plan, "");
        EXPECT_LE(cost->bound_s, cost->seconds);
    }
    CostQuery q = query("mi300x", {{"i", 512}, {"j", 64}, {"k", 256}, {"l", 64}});
    q.closed_form = false;
    EXPECT_EQ(cost_summary(q)->no_plan, "no kernel is emitted for mi300x");
    q.pipeline.machine = "h200", q.levels.devices = 2;
    EXPECT_EQ(cost_summary(q)->no_plan, "no kernel runs on several devices");
    q = query("b200", {{"i", 512}, {"j", 64}, {"k", 256}, {"l", 64}});
    q.closed_form = false, q.pipeline.types = DType::bf16;
    EXPECT_EQ(cost_summary(q)->unused_instructions, "tcgen05");
}

TEST(CostStudy, CountingIsForSmallSizes) {
    const auto study = study_cost(query("h100-sxm5", {{"i", 65536}, {"j", 128}, {"k", 8192}, {"l", 128}}));
    ASSERT_TRUE(study.ok());
    const auto count = count_levels(study->compilation.derived, study->compilation.extents, study->kernels);
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.errors()[0].code, "too-many-points");
}

TEST(CostStudy, KernelsArePlannedForGpusThatCudaProgramsOnly) {
    const auto made_for = [](const char* machine) {
        PipelineOptions options = query(machine, {{"i", 64}, {"j", 8}, {"k", 64}, {"l", 8}}).pipeline;
        options.until = Pass::plan;
        return run_pipeline(std::make_shared<Source>(Source{"chain.nk", chain}), options);
    };
    const auto planned = made_for("b200");
    ASSERT_TRUE(planned.ok()) << render(planned.errors());
    EXPECT_GT(planned->plan.kernels[0].schedule().warps.value, 0);
    const auto refused = made_for("mi300x");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors()[0].code, "no-emitter");
    EXPECT_EQ(refused.errors()[0].exit_code, ExitCode::machine_lacks);
}

}  // namespace
}  // namespace napkin::test_cost_study
