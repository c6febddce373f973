// The order of groups that run different numbers of chunks, how many blocks a GPU starts for them, and how long that takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <random>

#include "machine/block_machine.hpp"
#include "plan/blocks.hpp"
#include "schedule/group_order.hpp"
#include "support/parsed.hpp"

namespace napkin::test_group_order {
namespace {

using testing::HasSubstr;

// ---- how long workers take

/// What each worker has to do in the end, where each group, in order, goes to the one that is free first.
double simulated_as_workers_end(const std::vector<double>& groups, std::size_t workers) {
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;
    for (std::size_t w = 0; w < workers; ++w) ends.push(0);
    double last = 0;
    for (const double time : groups) {
        const double end = ends.top() + time;
        ends.pop();
        ends.push(end);
        last = std::max(last, end);
    }
    return last;
}
double simulated_in_turn(const std::vector<double>& groups, std::size_t workers) {
    std::vector<double> ends(workers);
    for (std::size_t g = 0; g < groups.size(); ++g) ends[g % workers] += groups[g];
    return *std::max_element(ends.begin(), ends.end());
}

TEST(GroupTimes, AreThoseOfASimulationGroupByGroup) {
    std::mt19937_64 random(1);
    const auto some = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    double error = 0, gained = 0;
    constexpr int cases = 500;
    for (int c = 0; c < cases; ++c) {
        const int tiles = some(1, 100), heads = some(1, 40), base = some(0, 10), step = some(0, 3);
        const auto workers = static_cast<std::size_t>(some(1, 132));
        std::vector<GroupTime> given;
        std::vector<double> groups;
        for (int t = tiles; t > 0; --t) {
            given.push_back({1.0 + base + step * t, static_cast<double>(heads)});
            groups.insert(groups.end(), static_cast<std::size_t>(heads), given.back().time);
        }
        const auto w = static_cast<double>(workers);
        const double in_turn = simulated_in_turn(groups, workers), as_they_end = simulated_as_workers_end(groups, workers);
        EXPECT_DOUBLE_EQ(time_in_turn(given, w), in_turn) << tiles << " " << heads << " " << workers;
        const double found = time_as_workers_end(given, w);
        EXPECT_NEAR(found, as_they_end, 0.3 * groups.front()) << tiles << " " << heads << " " << workers;
        if (step == 0 || groups.size() <= workers) {
            EXPECT_DOUBLE_EQ(found, as_they_end);
        }
        error += std::abs(found - as_they_end) / as_they_end / cases;
        gained += (in_turn - as_they_end) / in_turn / cases;
    }
    EXPECT_LT(error, 0.01);
    EXPECT_GT(gained, 0.02) << "the two ways are not told apart";
}

// ---- which order

Plan plan_of(const std::string& text, const std::string& schedule = "") {
    const Derived derived = derived_from(text);
    PlanOptions options;
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    const Machine machine = load_machine("h200").value();
    auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return std::move(plan).value();
}

/// Attention where the condition holds, in tiles of 64 queries: 32 of them for each of 16 heads.
std::string masked(const std::string& condition) {
    return "masked(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n"
           "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
           "    M[h, q, x] = where(" +
           condition +
           ", S[h, q, x] * k^-0.5, -inf)\n"
           "    P[h, q, x] = softmax(x) M[h, q, x]\n"
           "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
           "sizes h = 16, q = x = 2048, k = d = 64\n";
}
const std::string tiles_of_64 = "tensor q\nwarps 4\ngroup q = 64\ngroup h = 1\nstream x = 64\n";

std::string order_of(const ScheduledKernel& k) {
    std::string out;
    for (const GroupAxis& a : k.group_order)
        if (a.tiles > 1)
            out += std::string(out.empty() ? "" : " ") + (a.is_uneven ? (a.is_backward ? "-" : "+") : "") +
                   k.program->diagram.axis(a.axis).name;
    return out;
}

TEST(GroupOrder, PutsTheLongestGroupsFirst) {
    const auto of = [](const std::string& condition) {
        const Plan plan = plan_of(masked(condition), tiles_of_64);
        return order_of(plan.kernels.at(0).scheduled);
    };
    EXPECT_EQ(of("x <= q"), "-q h") << "later queries have more keys";
    EXPECT_EQ(of("x >= q"), "+q h") << "earlier ones have";
    EXPECT_EQ(of("x >= 0"), "h q") << "all have all";
    EXPECT_EQ(of("x <= q and x >= q - 500"), "h q") << "all have about as many";
    EXPECT_EQ(of("x <= 2 * q and x >= q"), "-q h") << "the stream's end runs ahead of its begin";
}

TEST(GroupOrder, GivesUnevenGroupsABlockEach) {
    const Plan causal = plan_of(masked("x <= q"), tiles_of_64),
               full = plan_of(masked("x >= 0"), tiles_of_64 + "threads 132\n");
    const ScheduledKernel &uneven = causal.kernels.at(0).scheduled, &even = full.kernels.at(0).scheduled;
    ASSERT_EQ(uneven.num_groups(), 16 * 32);
    EXPECT_EQ(uneven.num_blocks(), 16 * 32);
    ASSERT_EQ(even.num_groups(), 16 * 32);
    EXPECT_EQ(even.num_blocks(), 132) << "they take the groups in turn";
    EXPECT_THAT(uneven.schedule.threads.reason, HasSubstr("512 uneven groups, the longest first"));

    ScheduledKernel one = uneven, far = uneven;
    one.schedule.threads.value = 1;
    EXPECT_EQ(one.num_blocks(), 1) << "one block was asked for";
    far.unit.block_bytes = 0;
    EXPECT_EQ(far.num_blocks(), far.schedule.threads.value) << "each block has its arena in memory";
}

// 132 blocks that go along a row of 56 tiles load all 56 of B and 3 of A; 16 rows and 9 columns of tiles are fewer bytes than any other band.
TEST(GroupOrder, GoesThroughBandsInWhichBlocksLoadTheFewestBytes) {
    const auto order = [](const std::string& sizes) {
        const Plan plan = plan_of(
            "matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes " +
                sizes + "\n",
            "tensor m\nwarps 8\ngroup m = 128\ngroup n = 256\nthreads 132\n");
        return plan.kernels.at(0).scheduled;
    };
    const ScheduledKernel wide = order("m = 4096, n = 14336, k = 4096");
    EXPECT_EQ(order_of(wide), "m n m");
    EXPECT_EQ(wide.group_order.back().tiles, 16);
    EXPECT_EQ(wide.group_order.front().stride, 16);
    EXPECT_EQ(wide.num_groups(), 32 * 56);
    const auto of = [&](const char* name) {
        for (const Variable& v : wide.kernel->variables)
            if (v.name == name) return different_tiles(wide.group_order, v, 132);
        return 0.0;
    };
    EXPECT_DOUBLE_EQ(of("A"), 16.0 / 132);
    EXPECT_DOUBLE_EQ(of("B"), 9.0 / 132);
    EXPECT_EQ(order_of(order("m = 128, n = 14336, k = 4096")), "n") << "there is one row of tiles";
    EXPECT_EQ(order_of(order("m = 1664, n = 512, k = 512")), "m n") << "all of them run at the same time";
}

TEST(GroupOrder, IsThatOfTheProgramOnACpu) {
    const Derived derived = derived_from(masked("x <= q"));
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("generic-cpu").value(), {});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    for (const KernelPlan& k : plan->kernels) {
        EXPECT_FALSE(k.scheduled.has_uneven_groups());
        std::vector<AxisId> axes;
        for (const GroupAxis& a : k.scheduled.group_order) {
            axes.push_back(a.axis);
            EXPECT_FALSE(a.is_backward);
        }
        std::vector<AxisId> expected;
        for (const auto& [axis, size] : groups_of(*k.scheduled.kernel, k.scheduled.sizes)) expected.push_back(axis);
        EXPECT_EQ(axes, expected);
    }
}

// ---- what the simulator makes of it

double waves_of(const std::string& text, std::int64_t workers, bool in_turn) {
    const Derived derived = derived_from(text);
    const Extents extents = bind_sizes(derived.diagram, {}).value();
    const Machine machine = block_machine(load_machine("h200").value(), 4, 1, 0);
    const Plan plan = plan_of(text, tiles_of_64);
    ScheduledKernel k = plan.kernels.at(0).scheduled;
    if (in_turn) k.unit.block_bytes = 0;
    const SizedProgram program = plan.tiles();
    return Simulator(derived, derived.kernels.at(0), program.kernels.at(0), extents, machine).run(k, workers).waves;
}

TEST(GroupOrder, DecidesWhatUnevenGroupsCost) {
    const std::string causal = masked("x <= q"), full = masked("x >= 0");
    EXPECT_DOUBLE_EQ(waves_of(full, 128, false), 1);
    // The longest has 32 chunks, and all together 16.5 on average, besides what every group begins with.
    EXPECT_GT(waves_of(causal, 512, false), 1.5);
    EXPECT_LT(waves_of(causal, 512, false), 32 / 16.5);
    EXPECT_DOUBLE_EQ(waves_of(causal, 512, true), waves_of(causal, 512, false));
    EXPECT_DOUBLE_EQ(waves_of(causal, 1, false), 1);
    // In four turns worker 0 has the longest tiles of each, seven and a half more than the average.
    EXPECT_GT(waves_of(causal, 128, true), 1.1);
    EXPECT_LT(waves_of(causal, 128, false), 1.05);
}

}  // namespace
}  // namespace napkin::test_group_order
