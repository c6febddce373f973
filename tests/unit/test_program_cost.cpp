// The cost of the program that a plan makes of a kernel, several of parts and one with subloops, against numbers worked
// out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/cost_study.hpp"
#include "study/count_levels.hpp"
#include "study/report.hpp"
#include "support/json.hpp"
#include "support/ranges.hpp"

namespace napkin::test_program_cost {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

CostStudy study_of(const std::string& text, const std::vector<std::string>& schedule,
                   const std::map<std::string, std::int64_t>& sizes, const std::string& machine = "generic-cpu") {
    CostQuery q;
    q.source = std::make_shared<Source>(Source{"program.nk", text});
    if (!sizes.empty()) q.pipeline.machine = machine;
    q.pipeline.sizes = sizes;
    q.pipeline.schedule = schedule;
    auto study = study_cost(q);
    EXPECT_TRUE(study.ok()) << render(study.errors());
    return std::move(study).value();
}

void expect_counted(const CostStudy& study) {
    const Compilation& made = study.compilation;
    const auto count = count_levels(made.derived, made.extents, study.kernels, study.tiles);
    ASSERT_TRUE(count.ok()) << render(count.errors());
    EXPECT_TRUE(count->equal()) << to_text(report_of(*count));
    EXPECT_GE(count->levels.size(), 2 * study.kernels.size());
    EXPECT_LT(count->error, 1e-12);
}

constexpr const char* attention = R"(
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x]
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";

TEST(ProgramCost, AKernelInPartsIsItsPartsAndTheirMerge) {
    const CostStudy study = study_of(attention, {"group q = 2", "stream x = 4", "split x = 3"},
                                     {{"q", 4}, {"k", 2}, {"x", 24}, {"d", 3}});
    const Json out = to_json(report_of(study)), part = out["kernels"][0], merge = out["kernels"][1];
    ASSERT_EQ(out["kernels"].size(), 2U);
    EXPECT_EQ(part["name"], "O_part");
    EXPECT_EQ(part["groups"], "q·x_part·g_q⁻¹");
    // Q once for each of 3 parts, K and V once for each of 2 groups; the maximum, the sum and the row of O of every
    // part and q.
    EXPECT_EQ(part["numbers"]["loaded_values"], 3 * 4 * 2 + 2 * 24 * (2 + 3));
    EXPECT_EQ(part["numbers"]["stored_values"], 3 * 4 * (1 + 1 + 3));
    EXPECT_EQ(part["transfers"], "2·q·x_part + q·x_part·d + k·q·x_part + q·x·d·g_q⁻¹ + k·q·x·g_q⁻¹");
    EXPECT_EQ(part["numbers"]["groups"], 2 * 3);
    EXPECT_EQ(part["numbers"]["chunks_run"], 2 * 6);
    // At the product with V: Q and O of 2 rows, three values a row (maximum, correction, sum), the weights and V of a
    // chunk.
    EXPECT_EQ(part["numbers"]["memory_values"], 2 * (2 + 3) + 3 * 2 + 2 * 4 + 4 * 3);
    // Both products of 2 operations, and the row of O by the correction in every one of 6 chunks.
    EXPECT_THAT(std::string(part["work"]["operations"]["fma"]), HasSubstr("k·q·x"));
    EXPECT_EQ(part["numbers"]["operations"]["exp"], 4 * 24 + 4 * 6) << "a weight each, a correction a row and chunk";
    EXPECT_EQ(part["work"]["operations"]["exp"], "q·x + q·x·s_x⁻¹");
    EXPECT_EQ(merge["name"], "O");
    EXPECT_EQ(merge["transfers"], "q·d + 2·q·x_parts + q·x_parts·d");
    EXPECT_EQ(merge["numbers"]["transfers_values"], 4 * 3 + 2 * 4 * 3 + 4 * 3 * 3);
    EXPECT_EQ(merge["numbers"]["operations"]["exp"], 4 * 3);
    EXPECT_EQ(out["total"]["transfers_values"], 264 + 60 + 72);
    EXPECT_EQ(out["footprint"]["arrays"].size(), 4U + 3) << "the states of parts lie in memory too";
    EXPECT_EQ(study.summary->num_kernels, 2U);
    EXPECT_FALSE(part["numbers"]["group"].contains("x_part")) << "no size that anyone could choose";
    EXPECT_THAT(to_text(report_of(study)), AllOf(HasSubstr("kernel O_part   grouped x_part, q · streamed x"),
                                                 Not(HasSubstr("g_x_part")), Not(HasSubstr("and merged"))));
    expect_counted(study);
}

TEST(ProgramCost, WhatStandsInPartsIsWhatThePlanHas) {
    const std::map<std::string, std::int64_t> sizes{{"q", 1}, {"k", 128}, {"x", 8192}, {"d", 128}};
    const CostStudy study = study_of(attention, {}, sizes);
    PipelineOptions options;
    options.machine = "generic-cpu";
    options.sizes = sizes;
    options.until = Pass::plan;
    const auto made = run_pipeline(std::make_shared<Source>(Source{"program.nk", attention}), options);
    ASSERT_TRUE(made.ok()) << render(made.errors());
    ASSERT_EQ(study.kernels.size(), made->plan.kernels.size());
    ASSERT_EQ(study.kernels.size(), 2U) << "one row for eight cores";
    const Json kernels = to_json(report_of(study))["kernels"];
    for (std::size_t k = 0; k < study.kernels.size(); ++k) {
        EXPECT_EQ(kernels[k]["name"], made->plan.kernels[k].schedule().kernel);
        EXPECT_EQ(kernels[k]["numbers"]["memory_values"], made->plan.kernels[k].memory_values);
        EXPECT_EQ(study.kernels[k].seconds, made->plan.kernels[k].time.seconds);
    }
}

// Where the user says how many parts there are, that many are made. A form whose other kernels have groups for all
// cores is then the fastest one.
TEST(ProgramCost, OnAGpuIdleCoresAreWorthPartsUnlessByHand) {
    const std::map<std::string, std::int64_t> sizes{{"q", 1}, {"k", 128}, {"x", 8192}, {"d", 128}};
    const CostStudy parts = study_of(attention, {}, sizes, "h200"),
                    by_user = study_of(attention, {"split x = 4"}, sizes, "h200"),
                    whole = study_of(attention, {"split x = 1"}, sizes, "h200");
    const auto most_parts = [](const CostStudy& study) {
        std::int64_t most = 1;
        for (const KernelPlan& kernel : study.compilation.plan.kernels)
            most = std::max(most, kernel.schedule().split.value);
        return most;
    };
    ASSERT_EQ(parts.kernels.size(), 2U);
    EXPECT_GE(parts.kernels[0].num_groups, 132) << "a part of the one row for every core";
    EXPECT_GE(most_parts(parts), 132);
    EXPECT_EQ(parts.kernels[0].kernel, "O_part");
    EXPECT_EQ(parts.summary->seconds, parts.kernels[0].seconds + parts.kernels[1].seconds);
    EXPECT_EQ(most_parts(by_user), 4);
    EXPECT_EQ(most_parts(whole), 1);
    for (const CostStudy* study : {&by_user, &whole}) {
        EXPECT_TRUE(any_of(study->kernels, [](const KernelOnMachine& k) { return k.num_groups >= 132; }));
        EXPECT_LT(parts.summary->seconds, study->summary->seconds);
        EXPECT_LT(study->summary->seconds, 2 * parts.summary->seconds) << "one kernel takes 3 times as long and more";
    }
}

TEST(ProgramCost, ASplitByHandOfAnotherAxisIsRefusedOnEveryMachine) {
    for (const char* machine : {"generic-cpu", "h200"}) {
        CostQuery q;
        q.source = std::make_shared<Source>(Source{"program.nk", attention});
        q.pipeline.machine = machine;
        q.pipeline.sizes = {{"q", 4}, {"k", 2}, {"x", 24}, {"d", 3}};
        q.pipeline.schedule = {"split d = 3"};
        const auto study = study_cost(q);
        ASSERT_FALSE(study.ok()) << machine;
        EXPECT_EQ(study.errors()[0].code, "not-streamed") << machine;
    }
}

constexpr const char* chain = R"(
chain(A[i, j], B[j, k], C[k, l]) -> D[i, l]
    T[i, k] = sum(j) A[i, j] * B[j, k]
    D[i, l] = sum(k) T[i, k] * T[i, k] * C[k, l]
)";

TEST(ProgramCost, LettersHaveSubloops) {
    const Json letters = to_json(report_of(study_of(chain, {"subloop j = 2"}, {})))["kernels"][0];
    const Json whole = to_json(report_of(study_of(chain, {}, {})))["kernels"][0];
    EXPECT_EQ(letters["transfers"], whole["transfers"]) << "every part is loaded as often as the whole";
    EXPECT_EQ(letters["memory"][0]["values"], "g_i·j + g_i·l + g_i·s_k + s_k·u_j");
    EXPECT_EQ(whole["memory"][0]["values"], "g_i·j + g_i·l + g_i·s_k + j·s_k");
    EXPECT_EQ(letters["optimum"], whole["optimum"]);
}

TEST(ProgramCost, SubloopsTakeThePartsThatTheyLoad) {
    const std::map<std::string, std::int64_t> sizes{{"i", 8}, {"j", 60}, {"k", 10}, {"l", 3}};
    const std::vector<std::string> cut{"group i = 4", "stream k = 5", "subloop j = 20"};
    const CostStudy study = study_of(chain, cut, sizes);
    const Json kernel = to_json(report_of(study))["kernels"][0], numbers = kernel["numbers"];
    EXPECT_EQ(numbers["transfers_values"], 8 * 60 + 2 * 60 * 10 + 2 * 10 * 3 + 8 * 3);
    EXPECT_EQ(numbers["memory_values"], 4 * 60 + 4 * 3 + 4 * 5 + 20 * 5) << "A, D, T and a third of a chunk of B, at T";
    EXPECT_EQ(numbers["subloop"]["j"], 20);
    EXPECT_EQ(numbers["operations"]["fma"], 8 * 60 * 10 + 8 * 10 * 3);
    EXPECT_EQ(study.kernels[0].memory_bytes, 4 * (4 * 60 + 4 * 3 + 4 * 5 + 20 * 5));
    expect_counted(study);
    const Json on_gpu = to_json(report_of(study_of(chain, cut, sizes, "h100-sxm5")))["kernels"][0]["numbers"];
    EXPECT_EQ(on_gpu["memory_values"], numbers["memory_values"]);
    const Json whole = to_json(
        report_of(study_of(chain, {"group i = 4", "stream k = 5"}, sizes)))["kernels"][0]["numbers"];
    EXPECT_EQ(whole["memory_values"], 4 * 60 + 4 * 3 + 4 * 5 + 60 * 5);
}

}  // namespace
}  // namespace napkin::test_program_cost
