// Kernels whose blocks run in clusters and copy for each other, on the CPU against their definition. A missing wait
// must show, and what cannot be a cluster must be refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>

#include "numeric/planned_on_cpu.hpp"
#include "numeric/without_a_wait.hpp"
#include "run/gpu/compiler.hpp"
#include "schedule/cluster.hpp"

namespace napkin::test_clusters {
namespace {

using cpu_case::Planned;
using cpu_case::Timing;
using testing::HasSubstr;

Planned planned(const std::string& text, const std::string& schedule, const std::string& prefix = "k") {
    return cpu_case::planned(text, schedule, load_machine("h200").value(), prefix);
}

struct Case {
    const char* name;
    std::string text, schedule;
    std::vector<std::string> shared;  ///< operands
};

std::string product(const std::string& b, const std::string& sizes) {
    return "f(A[m, k]: bf16, B[" + b + "]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[" + b +
           "]\nsizes " + sizes + "\n";
}
const std::string
    four = "mma_m m\nwarps 4\nrole copies 4\n",
    eight = "mma_m m\nwarps 8\nrole copies 4\n",
    attention =
        "    S[b, h, q, x] = sum(k) Q[b, h, q, k] * K[b, x, k]\n    P[b, h, q, x] = softmax(x) S[b, h, q, x] * "
        "k^-0.5\n    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, x, d]\n",
    heads = "f(Q[b, h, q, k]: bf16, K[b, x, k]: bf16, V[b, x, d]: bf16) -> O[b, h, q, d]: bf16\n" + attention;

const std::string ahead =
    "slot S order 0, stage_offset 1\nslot P_M_old order 2, stage_offset 1\nslot P_M order 2, stage_offset 1\n"
    "slot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\nslot weight order 2, stage_offset 1\n"
    "slot P_Z_acc order 2, stage_offset 1\nslot O_acc order 1\n";

// Rows and columns that end inside of tiles, more groups than blocks and one block for each, shares of rows and of
// panels.
std::vector<Case> cases() {
    return {
        {"rows of B in turn",
         product("n, k", "m = 250, n = 100, k = 144"),
         four + "group n = 32\nstream k = 32\nthreads 2\ncluster m 2\n",
         {"B"}},
        {"panels of B, a block a group",
         product("k, n", "m = 100, n = 240, k = 80"),
         four + "group n = 128\nstream k = 16\ngrid 4\ncluster m 2\n",
         {"B"}},
        {"A, of two groups of warps",
         product("n, k", "m = 180, n = 64, k = 96"),
         eight + "group n = 32\nstream k = 32\nthreads 2\ncluster n 2\n",
         {"A"}},
        {"four blocks",
         product("n, k", "m = 250, n = 64, k = 96"),
         four + "group n = 64\nstream k = 16\nthreads 4\ncluster m 4\n",
         {"B"}},
        {"a group of warps past the end",
         product("n, k", "m = 180, n = 64, k = 96"),
         eight + "group n = 64\nstream k = 32\nthreads 2\ncluster m 2\n",
         {"B"}},
        {"three clusters for two pairs of blocks",
         product("n, k", "m = 380, n = 40, k = 112"),
         four + "group n = 40\nstream k = 16\nthreads 4\ncluster m 2\n",
         {"B"}},
        {"rows that are normed beside",
         "f(X[m, k]: f16, W[n, k]: f16) -> Y[m, n]\n    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + 1e-5)\n"
         "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes m = 72, n = 56, k = 272\n",
         four + "group n = 32\nstream k = 32\nthreads 2\ncluster n 2\n",
         {"X"}},
        {"a weight for a batch",
         "f(X[b, m, k]: bf16, W[n, k]: bf16) -> Y[b, m, n]: bf16\n    Y[b, m, n] = sum(k) X[b, m, k] * W[n, k]\n"
         "sizes b = 4, m = 60, n = 72, k = 80\n",
         four + "group b = 1\ngroup n = 40\nstream k = 16\nthreads 2\ncluster b 2\n",
         {"W"}},
        {"8 bits, scaled, in parts of columns",
         "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]\n"
         "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
         "    C[m, n] = sum(block) P[m, n, block] * sb[n // 32, block] * sa[m, block]\n"
         "sizes m = 200, n = 208, w = 7, block = 3, k = 64\n",
         eight + "group n = 64\nthreads 2\ncluster m 2\natom P matrix, points m n block, over k, column_parts 2\n",
         {"B"}},
        {"keys of neighbouring queries",
         heads + "sizes b = 1, h = 3, q = 100, x = 100, k = 32, d = 32\n",
         "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 2\ncluster q 2\n" + ahead,
         {"K", "V"}},
        {"keys of heads, queries of their own",
         heads + "sizes b = 2, h = 4, q = 60, x = 80, k = 32, d = 64\n",
         "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 4\ngroup b = 1\ngroup h = 1\ncluster h 2\n",
         {"K", "V"}},
    };
}

TEST(Clusters, AreWhatTheDefinitionSays) {
    std::vector<Planned> all;
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.name);
        all.push_back(planned(c.text, c.schedule, "k" + std::to_string(all.size()) + "_"));
        const ScheduledKernel& k = all.back().plan.kernels.front().scheduled;
        std::vector<std::string> shared;
        for (std::size_t v = 0; v < k.layouts.size(); ++v)
            if (cluster_part(k, VariableId::of(v))) shared.push_back(k.variable(VariableId::of(v)).name);
        EXPECT_EQ(shared, c.shared);
        EXPECT_EQ(all.back().source.entries.front().blocks % k.cluster_blocks(), 0);
        EXPECT_THAT(all.back().source.text, HasSubstr("__cluster_dims__(" + std::to_string(k.cluster_blocks()) + ", 1, 1)"));
    }
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(cases()[i].name);
        const cpu_case::Reference reference = reference_of(all[i]);
        for (const bool late : {false, true})
            for (const bool backwards : {false, true}) {
                Timing timing;
                timing.copies_late = timing.results_late = late, timing.backwards = backwards;
                EXPECT_EQ(fault_of(all[i], reference, *module, timing), "");
            }
    }
}

/// What is wrong once every match of each pattern is replaced in the kernel of the case: by some order in which things
/// are done.
std::string fault_with(const std::vector<std::pair<std::string, std::string>>& changes, std::size_t of = 0) {
    Planned p = planned(cases()[of].text, cases()[of].schedule);
    for (const auto& [pattern, instead] : changes) {
        const std::string changed = std::regex_replace(p.source.text, std::regex(pattern), instead);
        if (changed == p.source.text && pattern != instead) throw std::runtime_error("nothing to replace: " + pattern);
        p.source.text = changed;
    }
    const auto module = cpu_case::compiled_for_cpu(p.source);
    const cpu_case::Reference reference = reference_of(p);
    std::string fault;
    for (const bool late : {false, true})
        for (const bool backwards : {false, true}) {
            Timing timing;
            timing.copies_late = timing.results_late = late, timing.backwards = backwards;
            if (fault.empty()) fault = fault_of(p, reference, *module, timing);
        }
    return fault;
}

TEST(Clusters, TheirFaultsAreSeen) {
    EXPECT_EQ(fault_with({{"wait_phase", "wait_phase"}}), "");
    // Stages that are freed by the block's own warps alone, of which its neighbour knows nothing.
    EXPECT_NE(fault_with({{"init_barrier\\(barriers \\+ 8 \\* i, 8\\)", "init_barrier(barriers + 8 * i, 4)"},
                          {"lane_of_thread\\(\\) < 2\\) arrive_at\\((.*), lane_of_thread\\(\\)\\)",
                           "lane_of_thread() == 0) arrive($1)"}}),
              "");
    // No wait for the neighbour's barriers as they begin, or for its last words as they end.
    EXPECT_NE(fault_with({{"    cluster_sync\\(\\);\n    if", "    __syncthreads();\n    if"}}), "");
    EXPECT_NE(fault_with({{"    cluster_sync\\(\\);\n\\}", "}"}}), "");
    // Both blocks copy the same part, or each to the other's place.
    EXPECT_NE(fault_with({{"n0 \\+ 16 \\* cluster_rank_", "n0"}}), "");
    EXPECT_NE(fault_with({{"\\+ 2048 \\* cluster_rank_", "+ 2048 * (1 - cluster_rank_)"}}), "");
    // A descriptor has no room for the rank in an address, and would have it in the distance of panels.
    EXPECT_NE(fault_with({{"wgmma_descriptor_base\\(shared_address\\(B\\)([^,]*), (\\d+)\\)",
                           "((shared_address(B)$1) >> 4 | $2u >> 4 << 16)"}},
                         1),
              "");
}

// The clocks find each of them, and say what is out of order.
TEST(Clusters, EachWaitIsNeeded) {
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.name);
        const ScheduledKernel kernel = planned(c.text, c.schedule).plan.kernels.front().scheduled;
        EXPECT_EQ(race_text(kernel), "");
        EXPECT_TRUE(kernel.syncs_cluster_before && kernel.syncs_cluster_after);
        EXPECT_GT(expect_each_wait_needed(kernel, c.name), 4);
    }
    ScheduledKernel kernel = planned(cases()[0].text, cases()[0].schedule).plan.kernels.front().scheduled;
    kernel.syncs_cluster_before = false, kernel.syncs_cta_before = true;
    EXPECT_EQ(race_text(kernel), "B is shared with a block whose barriers may not be made yet");
    kernel.syncs_cluster_before = true, kernel.syncs_cluster_after = false;
    EXPECT_EQ(race_text(kernel), "B is freed in a block that may have ended");
}

// Tiles of full size, and every rank of a bulk copy to all.
TEST(Clusters, CompileForHopperWithoutSpills) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const std::string large = "mma_m m\nwarps 8\nrole copies 4\ngroup n = 256\nstream k = 64\n";
    std::vector<Planned> all{
        planned(product("n, k", "m = n = k = 4096"), large + "cluster m 2\n", "a"),
        planned(product("k, n", "m = n = k = 4096"), large + "cluster m 4\n", "b"),
        planned(product("n, k", "m = n = k = 4096"), large + "cluster n 2\n", "c"),
        planned("f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]: bf16\n"
                "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
                "    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]\n"
                "sizes m = n = 4096, w = 32, block = 32, k = 128\n",
                "mma_m m\nwarps 8\nrole copies 4\ngroup n = 256\ncluster m 2\n", "d"),
        planned(heads + "sizes b = 8, h = 4, q = x = 4096, k = d = 128\n",
                "mma_m q\nwarps 8\nrole copies 4\nstream x = 64\ncluster q 2\n" + ahead, "e")};
    const auto cubin = gpu::compile_cuda(cuda::complete(cpu_case::in_one_source(all)), "sm_90a");
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    EXPECT_EQ(cubin->kernels.size(), all.size());
    for (const gpu::AssemblerReport& report : cubin->kernels)
        EXPECT_THAT(gpu::refusals(report), testing::IsEmpty()) << report.kernel;
}

/// Why the schedule is refused.
std::string refusal(const std::string& text, const std::string& schedule) {
    try {
        planned(text, schedule);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

TEST(Clusters, ThatCannotBeAreRefused) {
    const std::string text = product("n, k", "m = 640, n = 128, k = 64"), sizes = "group n = 32\nstream k = 32\n";
    EXPECT_THAT(
        refusal(text, four + sizes + "cluster m 4\n"),
        HasSubstr("4 blocks along m are no cluster: m has 10 groups of 64, no multiple of 4; the nearest number is 2"));
    EXPECT_THAT(refusal(text, four + sizes + "cluster m 3\n"), HasSubstr("the machine joins 2 or 4 or 8 blocks"));
    EXPECT_THAT(refusal(text, four + sizes + "threads 5\ncluster m 2\n"),
                HasSubstr("5 blocks at a time are no multiple of 2; the nearest number is 4"));
    EXPECT_THAT(refusal(text, "mma_m m\nwarps 4\n" + sizes + "cluster m 2\n"),
                HasSubstr("no role asks for bulk copies"));
    EXPECT_THAT(refusal(text, four + sizes + "cluster k 2\n"), HasSubstr("k is no axis of groups"));
    EXPECT_THAT(refusal(text, four + sizes + "cluster j 2\n"), HasSubstr("there is no axis 'j'"));
    EXPECT_THAT(refusal(text, four + sizes + "cluster m 32\n"), HasSubstr("cluster cannot be 32"));
    const std::string batched =
        "f(A[b, m, k]: bf16, B[b, n, k]: bf16) -> C[b, m, n]\n    C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]\n"
        "sizes b = 4, m = 128, n = 64, k = 64\n";
    EXPECT_THAT(
        refusal(batched, four + "group b = 1\n" + sizes + "cluster b 2\n"),
        HasSubstr("every operand depends on b or has no whole part for each block; along m or n one is shared"));
    const std::string causal =
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = where(x <= q, S[h, q, x] / k, -inf)\n"
        "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 5, q = 256, x = 256, k = 32, d = 16\n";
    EXPECT_THAT(refusal(causal, "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\ngroups fixed\ncluster q 2\n"),
                HasSubstr("its groups run different chunks"));
    EXPECT_THAT(
        refusal(causal, "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 2\ngroups queue\ncluster q 2\n"),
        HasSubstr("its blocks take groups from a queue"));
}

}  // namespace
}  // namespace napkin::test_clusters
