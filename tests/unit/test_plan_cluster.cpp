// Clusters of blocks in plans: which groups they run, that they are by hand, what their time counts, and how they print
// and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "emit/cuda/emit.hpp"
#include "machine/machine.hpp"
#include "plan/blocks.hpp"
#include "plan/recall.hpp"
#include "schedule/cluster.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::test_plan_cluster {
namespace {

using testing::HasSubstr;

const std::string product =
    "matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n";
const std::string scaled =
    "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]: bf16\n"
    "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
    "    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]\n"
    "sizes m = n = 4096, w = 32, block = 32, k = 128\n";

Machine h200() { return load_machine("h200").value(); }

KernelPlan planned(const std::string& text, const Machine& machine, const std::string& schedule = "") {
    const Derived derived = derived_from(text);
    PlanOptions options;
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    const auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return plan->kernels.at(0);
}
KernelPlan clustered(const std::string& sizes, const std::string& line) {
    return planned(product + "sizes " + sizes + "\n", h200(),
                   "mma_m m\nwarps 8\nrole copies 4\ngroup n = 256\n" + line + "\n");
}

/// Tiles of m and of n of a group.
std::array<std::int64_t, 2> position(const ScheduledKernel& kernel, std::int64_t group) {
    const std::vector<AxisId>& axes = kernel.kernel->group_axes;
    std::array<std::int64_t, 2> out{};
    for (auto digit = kernel.group_order.rbegin(); digit != kernel.group_order.rend(); ++digit) {
        out[digit->axis == axes.front() ? 0 : 1] += group % digit->tiles * digit->stride;
        group /= digit->tiles;
    }
    return out;
}

TEST(PlanCluster, RunsNeighboursAlongItsAxisAndEachGroupOnce) {
    for (const char* sizes : {"m = 2048, n = 2048, k = 512", "m = 256, n = 4096, k = 512", "m = 1500, n = 300, k = 64"})
        for (const auto& [line, axis, blocks] :
             {std::tuple{"cluster m 2", 0, 2}, {"cluster m 4", 0, 4}, {"cluster n 2", 1, 2}}) {
            SCOPED_TRACE(testing::Message() << sizes << ", " << line);
            if (blocks == 4 && std::string(sizes).starts_with("m = 256")) continue;  // two tiles
            const ScheduledKernel kernel = clustered(sizes, line).scheduled;
            EXPECT_EQ(kernel.num_blocks() % blocks, 0);
            std::set<std::array<std::int64_t, 2>> seen;
            for (std::int64_t group = 0; group < kernel.num_groups(); ++group) {
                const auto at = position(kernel, group), first = position(kernel, group / blocks * blocks);
                EXPECT_EQ(at[axis], first[axis] + group % blocks);
                EXPECT_EQ(at[1 - axis], first[1 - axis]);
                seen.insert(at);
            }
            EXPECT_EQ(static_cast<std::int64_t>(seen.size()), kernel.num_groups());
        }
}

// 16 KiB of A and 32 KiB of B a chunk.
TEST(PlanCluster, LoadsOnceWhatItShares) {
    const auto loaded = [](const char* line) {
        return clustered("m = 4096, n = 4096, k = 4096", line).time.traffic.back().loaded_bytes;
    };
    const double alone = loaded("cluster m 1");
    EXPECT_DOUBLE_EQ(loaded("cluster m 2"), alone * 2 / 3);
    EXPECT_DOUBLE_EQ(loaded("cluster m 4"), alone * 1 / 2);
    EXPECT_DOUBLE_EQ(loaded("cluster n 2"), alone * 5 / 6);
}

TEST(PlanCluster, IsByHandAlone) {
    const std::string sizes = "sizes m = n = k = 4096\n";
    EXPECT_FALSE(planned(product + sizes, h200()).scheduled.in_cluster());
    EXPECT_FALSE(planned(product + sizes, load_machine("h100-sxm5").value()).scheduled.in_cluster());
    EXPECT_FALSE(planned(product + sizes, h200(), "cluster m 1").scheduled.in_cluster());
    EXPECT_FALSE(planned(scaled, h200()).scheduled.in_cluster());
}

// What merges the parts of a stream loads no operands.
// Rows of 14,000 bytes begin between lines, and L2 answers line by line.
TEST(PlanCluster, IsTriedWhereRowsBeginBetweenLines) {
    EXPECT_TRUE(planned(product + "sizes m = 3000, n = 5000, k = 7000\n", h200()).scheduled.in_cluster());
    EXPECT_FALSE(planned(product + "sizes m = 3072, n = 5120, k = 7040\n", h200()).scheduled.in_cluster());
}

TEST(PlanCluster, IsOfTheKernelsThatMultiply) {
    const Derived derived = derived_from(product + "sizes m = 512, n = 512, k = 8192\n");
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", "split k = 4\ncluster m 2\n"});
    const auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), h200(), {}, options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    ASSERT_EQ(plan->kernels.size(), 2);
    EXPECT_TRUE(plan->kernels[0].scheduled.in_cluster());
    EXPECT_FALSE(plan->kernels[1].scheduled.in_cluster());
    // Groups of one part and of the next one load other chunks.
    const ScheduledKernel& parts = plan->kernels[0].scheduled;
    EXPECT_FALSE(contains(axes_to_share(parts, 2), parts.kernel->parts.part));
}

TEST(PlanCluster, PrintsAndComesBack) {
    const KernelPlan plan = clustered("m = 2048, n = 2048, k = 512", "cluster m 2");
    const std::string text = to_string(*plan.scheduled.program, *plan.scheduled.kernel, plan.schedule());
    EXPECT_THAT(text, HasSubstr("cluster m"));
    const KernelPlan again = planned(product + "sizes m = 2048, n = 2048, k = 512\n", h200(), text);
    EXPECT_EQ(again.schedule().cluster.value.axis, plan.schedule().cluster.value.axis);
    EXPECT_EQ(again.schedule().cluster.value.ctas, 2);
    // Reasons differ, and stand before the code.
    const auto code_of = [](const KernelPlan& kernel) {
        const std::string source = cuda::emit({{kernel.scheduled}}).text;
        return source.substr(source.find("namespace"));
    };
    EXPECT_EQ(code_of(again), code_of(plan));
}

}  // namespace
}  // namespace napkin::test_plan_cluster
