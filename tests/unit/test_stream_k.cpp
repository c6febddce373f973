// Groups that are cut along their stream: who runs what, when that pays, what it costs, and where it may not be.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "derive/derive.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "schedule/reduction_trees.hpp"
#include "schedule/stream_k.hpp"
#include "support/parsed.hpp"
#include "tile/expand.hpp"

namespace napkin::test_cut_groups {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Every chunk runs once; a block has one group's chunks at least, so that no group is cut twice, and none has more than
// its even share, rounded up.
TEST(StreamK, AreEvenStretchesOfWholeGroupsLength) {
    for (const std::int64_t blocks : {2, 3, 132, 264})
        for (const std::int64_t chunks : {2, 7, 64})
            for (std::int64_t left = blocks + 1; left < 2 * blocks; left += blocks > 8 ? 17 : 1) {
                const StreamK cut{0, blocks, 3, left, chunks, 68};
                EXPECT_EQ(cut.begin(0), 0);
                EXPECT_EQ(cut.begin(blocks), left * chunks);
                std::int64_t most = 0, cuts = 0;
                for (std::int64_t block = 0; block < blocks; ++block) {
                    const std::int64_t some = cut.begin(block + 1) - cut.begin(block);
                    EXPECT_GE(some, chunks);
                    EXPECT_LE(some, (left * chunks + blocks - 1) / blocks);
                    most = std::max(most, some), cuts += block > 0 && cut.begin(block) % chunks != 0;
                }
                EXPECT_EQ(cut.most_k_blocks(), 3 * chunks + most);
                EXPECT_EQ(cut.num_split_tiles(), cuts);
            }
}

std::string attention(std::int64_t length, std::int64_t d, const std::string& logits = "S[h, q, x] * k^-0.5") {
    const auto s = [](std::int64_t n) { return std::to_string(n); };
    return "f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n"
           "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = " +
           logits +
           "\n"
           "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
           "sizes h = " +
           s(16384 / length * 2048 / d) + ", q = x = " + s(length) + ", k = d = " + s(d) + "\n";
}
Result<Plan> planned(const std::string& text, const std::string& schedule = "", const std::string& machine = "h200",
                     bool knows_meetings = true) {
    const Derived derived = derived_from(text);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    Machine known = load_machine(machine).value();
    known.meeting_s = knows_meetings ? Figure{1.5e-6, "assumed for this test"} : Figure{};
    return choose_plan(derived, bind_sizes(derived.diagram, {}).value(), known, {}, options);
}
const std::string tile_of_192 = "mma_m q\nwarps 12\nrole copies 4\ngroup q = 192\nstream x = 64\n";

TEST(StreamK, AreChosenByNoMachineThatDoesNotSayWhatBlocksThatMeetTake) {
    EXPECT_FALSE(planned(attention(16384, 128), tile_of_192, "h200", false).value().kernels.at(0).scheduled.uses_stream_k());
    EXPECT_TRUE(planned(attention(16384, 128), tile_of_192 + "scheduler stream_k\n", "h200", false)
                    .value()
                    .kernels.at(0)
                    .scheduled.uses_stream_k());
}

TEST(StreamK, AreChosenWhereTheLastRoundIsShort) {
    const Plan cut = planned(attention(16384, 128), tile_of_192).value(),
               whole = planned(attention(16384, 128), tile_of_192 + "scheduler static\n").value();
    const ScheduledKernel& k = cut.kernels.at(0).scheduled;
    ASSERT_TRUE(k.uses_stream_k());
    const StreamK found = chosen_stream_k(k).value();
    EXPECT_EQ(found.blocks, 132);
    EXPECT_EQ(found.rounds, 9) << "1376 groups";
    EXPECT_EQ(found.groups, 1376 - 9 * 132);
    EXPECT_EQ(found.chunks, 256);
    EXPECT_EQ(found.registers, 64 + 2 + 2) << "sums of 128 columns, of weights, a maximum";
    EXPECT_THAT(k.schedule.scheduler.reason,
                HasSubstr("1376 groups of 256 chunks, 10.4 for each of 132 blocks; whole ones are"));
    const Simulation &fast = cut.kernels.at(0).time, &slow = whole.kernels.at(0).time;
    EXPECT_NEAR(slow.waves, 11 * 132 / 1376.0, 1e-9);
    EXPECT_NEAR(fast.waves, found.most_k_blocks() * 132 / (1376.0 * 256), 1e-9);
    EXPECT_LT(fast.seconds, 0.97 * slow.seconds);
    EXPECT_GT(fast.seconds, slow.seconds * 1376 / (11 * 132.0)) << "what parts leave for each other takes time";
    EXPECT_DOUBLE_EQ(fast.transfers - slow.transfers, 2.0 * static_cast<double>(stream_k_values(k, found)));
    EXPECT_DOUBLE_EQ(fast.traffic.back().loaded_bytes - slow.traffic.back().loaded_bytes,
                     4.0 * static_cast<double>(stream_k_values(k, found)));

    const std::string text = to_string(*k.program, *k.kernel, k.schedule);
    EXPECT_THAT(text, HasSubstr("stream_k  1376 groups of 256 chunks"));
    EXPECT_THAT(text, HasSubstr("1376 groups, 10.4 a core"));
    const Plan again = planned(attention(16384, 128), text).value();
    EXPECT_TRUE(again.kernels.at(0).scheduled.uses_stream_k());
    EXPECT_EQ(again.kernels.at(0).time.seconds, fast.seconds);
    // What is said of one kernel alone counts as what is said of all.
    const ScheduledKernel& fixed = whole.kernels.at(0).scheduled;
    EXPECT_FALSE(fixed.uses_stream_k());
    const Plan again_whole = planned(attention(16384, 128), to_string(*fixed.program, *fixed.kernel, fixed.schedule)).value();
    EXPECT_FALSE(again_whole.kernels.at(0).scheduled.uses_stream_k());
}

TEST(StreamK, AreLeftWholeWhereThatTakesNoLonger) {
    // The states of two parts take longer than a short group's share of the last round; and 528 groups are four rounds
    // of 132.
    EXPECT_FALSE(planned(attention(1024, 128), tile_of_192).value().kernels.at(0).scheduled.uses_stream_k());
    const auto even = planned(
                          "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
                          "sizes m = 8448, n = 2048, k = 4096\n",
                          "mma_m m\nwarps 8\nrole copies 4\ngroup m = 128\ngroup n = 256\nthreads 132\n")
                          .value();
    EXPECT_FALSE(even.kernels.at(0).scheduled.uses_stream_k());
}

TEST(StreamK, AddOneMergeToTheRoundingsOfASum) {
    const auto trees = [](const std::string& dealing) {
        return reduction_trees(planned(attention(16384, 128), tile_of_192 + dealing).value().kernels.at(0).scheduled);
    };
    const std::vector<ReductionTree> cut = trees("scheduler stream_k\n"), whole = trees("scheduler static\n");
    ASSERT_EQ(cut.size(), whole.size());
    EXPECT_EQ(cut.back().splits, 1) << "what follows the stream has none";
    int merged = 0;
    for (std::size_t i = 0; i < cut.size(); ++i) merged += cut[i].splits == 2 && whole[i].splits == 1;
    EXPECT_GT(merged, 0);
}

/// What is wrong with a kernel's groups once the schedule says that they are cut.
std::string why_not(Plan plan) {
    ScheduledKernel& k = plan.kernels.at(0).scheduled;
    k.schedule.scheduler.value = TileScheduler::stream_k;
    for (const BrokenRule& rule : broken_rules(k))
        if (rule.field.kind == "scheduler") return rule.message;
    return "";
}

TEST(StreamK, AreRefusedWithTheReason) {
    EXPECT_EQ(why_not(planned(attention(16384, 128), tile_of_192).value()), "");
    EXPECT_THAT(why_not(planned(attention(2048, 128, "where(x <= q, S[h, q, x], -inf)"), tile_of_192).value()),
                HasSubstr("masks say how many chunks a group runs"));
    EXPECT_THAT(why_not(planned(attention(16384, 128), "", "generic-cpu").value()),
                HasSubstr("registers of the tensor cores"));
    EXPECT_THAT(why_not(planned(attention(16384, 128), "", "a100-sxm-80gb").value()), HasSubstr("no role copies"));
    EXPECT_THAT(why_not(planned(attention(16384, 128), tile_of_192 + "threads 86\n").value()),
                HasSubstr("1376 groups for 86 blocks leave no round unfinished"));
    EXPECT_THAT(why_not(planned(attention(16384, 128), tile_of_192 + "grid 1376\n").value()),
                HasSubstr("each group has a block of its own"));
    // How many points have arrived, a loop over the whole stream knows from where it stands.
    const Derived moments = derived_from("f(X[r, c]) -> V[r]\n    V[r] = var(c) X[r, c]\nsizes r = 64, c = 2048\n");
    EXPECT_THAT(expand(moments).kernels.at(0).why_no_merge, HasSubstr("is known from where the stream stands"));
    const auto refused = planned(attention(2048, 128, "where(x <= q, S[h, q, x], -inf)"),
                                 tile_of_192 + "scheduler stream_k\n");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors().front().code, "broken-schedule");
    EXPECT_THAT(refused.errors().front().message, HasSubstr("no groups are cut: masks say"));
    const auto in_step = planned(attention(16384, 128), tile_of_192 + "scheduler stream_k\ncluster q 2\n");
    ASSERT_FALSE(in_step);
    EXPECT_THAT(render(in_step.errors()),
                HasSubstr("groups of its last rounds are cut, so that its blocks do not keep step"));
    const auto misspelt = planned(attention(2048, 128), "groups cuts\n");
    ASSERT_FALSE(misspelt.ok());
    EXPECT_THAT(render(misspelt.errors()), HasSubstr("scheduler static or scheduler dynamic or scheduler stream_k"));
}

std::string scaled_product(std::int64_t m, std::int64_t n, std::int64_t k) {
    return fmt::format(
        "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]: bf16\n"
        "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
        "    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]\n"
        "sizes m = {}, n = {}, w = {}, block = {}, k = 128\n",
        m, n, n / 128, k / 128);
}
double loaded_from_memory(const Plan& plan) { return plan.kernels.at(0).time.traffic.front().loaded_bytes; }
double busy(const Plan& plan, const std::string& what) {
    for (const Busy& b : plan.kernels.at(0).time.busy)
        if (b.what == what) return b.seconds;
    return 0;
}

// 236 groups of 4096×7168×16384 read 97 MB in the rounds that are cut, three times what the cache holds for them; those
// of 4096³ fit.
TEST(StreamK, ReadFromMemoryWhatBlocksNoLongerShare) {
    const auto ratio = [](const std::string& text) {
        return loaded_from_memory(planned(text, "scheduler stream_k\n").value()) /
               loaded_from_memory(planned(text, "scheduler static\n").value());
    };
    EXPECT_GT(ratio(scaled_product(4096, 7168, 16384)), 2);
    EXPECT_EQ(ratio(scaled_product(4096, 4096, 4096)), 1);
}

TEST(Queue, IsWhereBlocksKeepDifferentPaces) {
    const std::string text = scaled_product(8192, 8192, 8192);
    const Plan plan = planned(text).value();
    EXPECT_TRUE(plan.kernels.at(0).scheduled.is_dynamic());
    EXPECT_THAT(plan.kernels.at(0).schedule().scheduler.reason, HasSubstr("blocks keep different paces"));
    // The model alone would have them.
    EXPECT_LT(planned(text, "scheduler stream_k\n").value().seconds(), 0.985 * plan.seconds());
    const ScheduledKernel in_cluster = planned(text, "cluster m 2\n").value().kernels.at(0).scheduled;
    EXPECT_TRUE(in_cluster.in_cluster());
    EXPECT_FALSE(in_cluster.is_dynamic()) << "its blocks keep step";
}

// The last one of three tiles of 192 rows has 128 of 512: its third group of warps has nothing to do.
TEST(Queue, EvensOutTilesThatEndEarly) {
    const Plan brief = planned(attention(512, 128), tile_of_192).value(), even = planned(attention(512, 64)).value();
    EXPECT_THAT(brief.kernels.at(0).schedule().scheduler.reason, HasSubstr("end before their tiles do"));
    EXPECT_TRUE(brief.kernels.at(0).scheduled.is_dynamic());
    EXPECT_FALSE(even.kernels.at(0).scheduled.is_dynamic());
}

// What threads multiply and add is beside what the tensor cores do, and neither bounds the other.
TEST(Busy, TellsTheMatrixUnitFromThreads) {
    const Plan plan = planned(scaled_product(4096, 4096, 4096)).value();
    const double sms = 132, hz = 1.83e9, sustained_unit = 0.92;
    EXPECT_NEAR(busy(plan, "tensor"), 4096.0 * 4096 * 4096 / (sms * hz * 4096 * sustained_unit),
                0.1 * busy(plan, "tensor"));
    EXPECT_GT(busy(plan, "fma"), 0);
    EXPECT_LT(busy(plan, "fma"), busy(plan, "tensor") / 2);
}

/// How often a list says that the operand is free.
std::int64_t frees(const std::vector<Node>& nodes, VariableId operand) {
    std::int64_t n = 0;
    for (const Node& node : nodes)
        if (const auto* settle = std::get_if<WaitGroup>(&node))
            n += std::count_if(settle->frees.begin(), settle->frees.end(),
                               [&](const Release& freed) { return freed.operand == operand; });
    return n;
}

// The last turn's product reads no Q: the next group's comes while it runs. Where warps have no chunks, they say so in
// place of all turns.
TEST(Settles, FreeATileOfTheGroupBeforeTheLastProducts) {
    struct Case {
        std::string text, schedule;
        bool may_have_none;
    };
    for (const Case& c : {Case{attention(2048, 256), "", false},
                          {attention(512, 128), tile_of_192, true},
                          {attention(2048, 256, "where(x <= q, S[h, q, x] * k^-0.5, -inf)"), "", true}}) {
        SCOPED_TRACE(c.text + c.schedule);
        const Plan plan = planned(c.text, c.schedule).value();
        const ScheduledKernel& k = plan.kernels.at(0).scheduled;
        ASSERT_EQ(k.loops.size(), 1);
        ASSERT_FALSE(k.loops[0].epilogue.empty());
        const VariableId q = k.operand_loaded(*k.operand_loads(0).front());
        EXPECT_EQ(frees(k.loops[0].epilogue, q), 1);
        EXPECT_TRUE(std::holds_alternative<WaitGroup>(k.loops[0].epilogue.front()));
        EXPECT_EQ(frees(k.loops[0].skipped, q), c.may_have_none ? 1 : 0);
        EXPECT_EQ(frees(k.loops[0].body, q) + frees(k.body, q), 0);
    }
}

std::string name_of(const TileKernel& tiles, VariableId id) { return tiles.variables[id].name; }

// The merge of a softmax's states refers both parts to the larger maximum.
TEST(StreamK, AreMergedByTheFold) {
    const Plan plan = planned(attention(16384, 128), tile_of_192).value();
    const ScheduledKernel& k = plan.kernels.at(0).scheduled;
    const TileKernel& tiles = *k.kernel;
    EXPECT_EQ(tiles.why_no_merge, "");
    ASSERT_EQ(tiles.merges.size(), 3);
    const auto text = [&](const StateMerge& merge) {
        const Diagram& diagram = k.program->diagram;
        const auto name = [&](VariableId id) {
            return is_in_part(id) ? name_of(tiles, variable_in_part(id)) + "_of_part" : name_of(tiles, id);
        };
        return fmt::format("{} = {} of {}", name(merge.state), napkin::name(merge.op),
                           to_string(merge.given, {[&](AxisId a) { return diagram.axis(a).name; },
                                                   [&](ArrayId read) { return name(as_variable(read)); }}));
    };
    EXPECT_EQ(text(tiles.merges[0]), "P_M = max of P_M_of_part[h, q]");
    EXPECT_EQ(
        text(tiles.merges[2]),
        "O_acc = sum of O_acc_of_part[h, q, d] * exp(P_M_of_part[h, q] - where(P_M[h, q] == -inf, 0, P_M[h, q]))");
}

}  // namespace
}  // namespace napkin::test_cut_groups
