// Overlap charts: their rules, their bounds on random programs, and FlashAttention-3 from the schedules of
// examples/schedules.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "costed.hpp"
#include "plan/overrides.hpp"
#include "stepped.hpp"
#include "steps/report.hpp"
#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"

namespace napkin::test_chart {
namespace {

using stepped::replaced;
using stepped::steps;

const std::string folder = in_sources("examples/schedules/");
std::string file(const std::string& name) { return read_file(folder + name).value(); }

/// One of the file's two diagrams.
std::string diagram(const std::string& name) {
    const std::string text = file("flash-attention-3.nk");
    const std::size_t first = text.find("fp16("), second = text.find("fp8("), sizes = text.find("sizes");
    return (name == "fp16" ? text.substr(first, second - first) : text.substr(second, sizes - second)) + text.substr(sizes);
}

StreamChart chart(const std::string& text, const std::string& schedule, const std::string& machine = "h100-sxm5") {
    auto report = steps(text, schedule, machine);
    EXPECT_TRUE(report.ok()) << render(report.errors());
    const StreamChart out = report.value().kernels.at(0).charts.at(0);
    EXPECT_EQ(verify(out.chart), std::vector<std::string>());
    return out;
}
const UnitShare& unit(const StreamChart& c, const std::string& name) {
    for (const UnitShare& u : c.chart.units)
        if (u.unit == name) return u;
    throw InternalError("no unit " + name);
}
const std::string intra = "flash-attention-3-intra.schedule", inter = "flash-attention-3-inter.schedule";

/// Operations on a few units, each of which reads some before it, of this iteration or the last one.
ChartProgram random_program(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    ChartProgram program;
    program.num_warpgroups = 1 + below(3);
    const int n = 2 + below(5);
    for (int o = 0; o < n; ++o) {
        ChartOperation op{
            .name = fmt::format("o{}", o), .uses = {}, .is_async = below(2) == 0, .needs = {}, .ahead = below(2)};
        op.uses.push_back({fmt::format("u{}", below(3)), 1.0 + below(9)});
        if (below(4) == 0) op.uses.push_back({"v", 1.0 + below(9)});
        if (below(2) == 0) op.needs.push_back({below(static_cast<std::uint64_t>(n)), 1 + below(2), "carries"});
        if (o > 0) op.needs.push_back({below(static_cast<std::uint64_t>(o)), below(2), "reads"});
        program.operations.push_back(op);
    }
    // Some are transfers, of a warpgroup each or of all together: each is read, and its place is written again when it
    // was, or the reverse.
    std::vector<int> issued, transfers;
    for (int o = 0; o < n; ++o) (below(4) == 0 ? transfers : issued).push_back(o);
    for (const int o : transfers) {
        if (issued.empty()) break;
        ChartOperation& op = program.operations[at(o)];
        op.is_transfer = op.is_async = true, op.is_shared = below(2) == 0, op.ahead = 0;
        const int other = issued[random() % issued.size()];
        program.operations[at(std::max(o, other))].needs.push_back({std::min(o, other), 0, "reads"});
        program.operations[at(std::min(o, other))].needs.push_back({std::max(o, other), 1 + below(2), "place"});
    }
    if (below(3) == 0 && !issued.empty()) program.turn = {issued[random() % issued.size()]};
    if (below(6) == 0 && issued.size() > 1) program.turn = {issued.front(), issued.back()};
    return program;
}

/// The largest ratio of time to distance among cycles of needs, over all ways through the operations.
double largest_cycle(const ChartProgram& p) {
    double most = 0;
    const auto walk = [&](const auto& self, int start, int now, double clocks, int distance, std::vector<int> seen) -> void {
        for (const ChartNeed& need : p.operations[at(now)].needs) {
            const double sum = clocks + p.operations[at(need.operation)].clocks();
            if (need.operation == start)
                most = std::max(most, sum / (distance + need.distance));
            else if (!contains(seen, need.operation)) {
                std::vector<int> longer = seen;
                longer.push_back(need.operation);
                self(self, start, need.operation, sum, distance + need.distance, longer);
            }
        }
    };
    for (std::size_t o = 0; o < p.operations.size(); ++o)
        walk(walk, static_cast<int>(o), static_cast<int>(o), 0, 0, {static_cast<int>(o)});
    return most;
}

TEST(Chart, RandomProgramsKeepTheRulesAndTheBounds) {
    std::mt19937_64 random(5);
    int ran = 0, by_units = 0, by_cycles = 0, stuck = 0, shared = 0;
    for (int i = 0; i < 600; ++i) {
        const ChartProgram program = random_program(random);
        if (!deadlocks(program).empty()) continue;
        if (!comes_to_its_end(program)) {
            // Only turns make warpgroups wait for each other for ever.
            EXPECT_FALSE(program.turn.empty()) << i;
            ++stuck;
            continue;
        }
        ++ran;
        const Chart c = run_chart(program);
        EXPECT_EQ(verify(c), std::vector<std::string>()) << i;
        std::map<std::string, double> clocks;
        for (const ChartOperation& o : program.operations)
            for (const ChartUse& use : o.uses)
                clocks[use.unit] += use.clocks * (o.is_shared ? 1 : program.num_warpgroups);
        shared += std::any_of(program.operations.begin(), program.operations.end(),
                              [](const ChartOperation& o) { return o.is_shared; });
        for (const auto& [name, sum] : clocks) EXPECT_GE(c.interval, sum * (1 - 1e-9)) << i << " " << name;
        EXPECT_GE(c.interval, largest_cycle(program) * (1 - 1e-9)) << i;
        EXPECT_GE(c.recurrence_bound, largest_cycle(program) * (1 - 1e-9)) << i;
        by_units += c.interval <= c.resource_bound * (1 + 1e-9);
        by_cycles += c.interval <= c.recurrence_bound * (1 + 1e-9);
    }
    EXPECT_GT(ran, 150);
    EXPECT_GT(by_units, 20);
    EXPECT_GT(by_cycles, 20);
    EXPECT_GT(shared, 50);
    EXPECT_LT(stuck, ran / 4);
}

/// A transfer waits for the readers of its place, and its readers for it: with another place it runs beside them.
TEST(Chart, TransfersRunBesideWhatReadsTheChunkBefore) {
    ChartProgram program;
    program.num_warpgroups = 2;
    program.operations = {{"load K", {{"SMEM", 6}}, true, true, true, {{1, 1, "K has one place", "K"}}, 0},
                          {"S", {{"tensor", 4}}, true, false, false, {{0, 0, "it reads K"}}, 0}};
    const Chart one = run_chart(program);
    EXPECT_EQ(verify(one), std::vector<std::string>());
    EXPECT_DOUBLE_EQ(one.interval, 6 + 2 * 4);
    program.operations[0].needs[0].distance = 2;
    const Chart two = run_chart(program);
    EXPECT_EQ(verify(two), std::vector<std::string>());
    EXPECT_DOUBLE_EQ(two.interval, 8);
    EXPECT_EQ(two.bound_by, "tensor");
    program.operations[0].uses[0].clocks = 9;
    EXPECT_EQ(run_chart(program).bound_by, "SMEM");
    // The verifier looks at the readers of every warpgroup.
    Chart early = two;
    for (ChartRow& r : early.rows)
        if (r.operation == 1 && r.warpgroup == 1 && r.iteration == 5) r.begin += 20, r.end += 20;
    const auto broken = verify(early);
    EXPECT_TRUE(std::any_of(broken.begin(), broken.end(), [](const std::string& b) {
        return b.find("load K of iteration 7") != std::string::npos && b.find("before S is done") != std::string::npos;
    })) << testing::PrintToString(broken);
}

/// What is issued ahead reads what is loaded into the place of something that is read later.
TEST(Chart, AnOrderThatATransferCannotFollowIsADeadlock) {
    ChartProgram program;
    program.operations = {{"load K", {{"SMEM", 6}}, true, true, true, {{2, 0, "K takes the place of V"}}, 0},
                          {"S", {{"tensor", 4}}, true, false, false, {{0, 0, "it reads K"}}, 1},
                          {"O", {{"tensor", 4}}, true, false, false, {}, 0}};
    ASSERT_EQ(deadlocks(program).size(), 1u);
    EXPECT_EQ(deadlocks(program)[0].operation, 1);
    program.operations[0].needs[0].distance = 1;
    EXPECT_EQ(deadlocks(program).size(), 1u);
    program.operations[0].needs[0].distance = 2;
    EXPECT_TRUE(deadlocks(program).empty());
}

TEST(Chart, TheVerifierFindsWhatBreaksItsRules) {
    ChartProgram program;
    program.operations = {{"a", {{"u", 4}}, true, false, false, {}, 0},
                          {"b", {{"v", 2}}, false, false, false, {{0, 0, "it reads a"}}, 0}};
    program.num_warpgroups = 2;
    const Chart good = run_chart(program);
    EXPECT_TRUE(verify(good).empty());
    const auto moved = [&](int operation, double by) {
        Chart c = good;
        for (ChartRow& r : c.rows)
            if (r.operation == operation && r.iteration == 3 && r.warpgroup == 1) r.begin += by, r.end += by;
        return verify(c);
    };
    const auto has = [](const std::vector<std::string>& broken, const std::string& text) {
        return std::any_of(broken.begin(), broken.end(),
                           [&](const std::string& b) { return b.find(text) != std::string::npos; });
    };
    EXPECT_TRUE(has(moved(0, -1), "u is used by a of iteration")) << testing::PrintToString(moved(0, -1));
    EXPECT_TRUE(has(moved(1, -1), "before a is done: it reads a")) << testing::PrintToString(moved(1, -1));
    program.operations[0].is_async = false;
    Chart early = run_chart(program);
    for (ChartRow& r : early.rows)
        if (r.operation == 1 && r.iteration == 3) r.begin -= 1, r.end -= 1;
    EXPECT_TRUE(has(verify(early), "before a is issued and done"));
}

TEST(Chart, WhatIsIssuedLaterIsADeadlock) {
    ChartProgram program;
    program.operations = {{"a", {{"u", 4}}, true, false, false, {{1, 0, "it reads b"}}, 0},
                          {"b", {{"v", 2}}, false, false, false, {}, 0}};
    ASSERT_EQ(deadlocks(program).size(), 1u);
    EXPECT_EQ(deadlocks(program)[0].operation, 0);
    program.operations[1].ahead = 1;
    EXPECT_TRUE(deadlocks(program).empty());
}

TEST(Chart, FlashAttention3InFp16) {
    const StreamChart within = chart(diagram("fp16"), file(intra));
    EXPECT_NEAR(within.tensor_share, 0.75, 0.005);
    EXPECT_NEAR(within.tensor_flop_per_s / 1e12, 740, 0.5);
    EXPECT_NEAR(unit(within, "exp").room, 0, 0.001);
    EXPECT_EQ(within.chart.in_flight, 2);
    EXPECT_EQ(within.chart.bound_by, "what waits for what");
    const StreamChart between = chart(diagram("fp16"), file(inter));
    EXPECT_NEAR(between.tensor_share, 1, 1e-9);
    EXPECT_NEAR(unit(between, "exp").room, 1, 0.02);
    EXPECT_FALSE(between.chart.barriers.empty());
}

TEST(Chart, FlashAttention3InFp8) {
    const StreamChart between = chart(diagram("fp8"), file(inter));
    EXPECT_NEAR(between.tensor_share, 0.6, 0.005);
    EXPECT_NEAR(between.tensor_flop_per_s / 1e15, 1.2, 0.05);
    EXPECT_EQ(between.chart.bound_by, "exp");
    const StreamChart within = chart(diagram("fp8"), file(intra));
    EXPECT_NEAR(1 - unit(within, "exp").ideal_busy, 0.33, 0.005);
}

/// With FlashAttention-3's types and what its charts count, the model's own sizes do no worse than its order between
/// warpgroups. The special function unit binds both: a longer chunk saves corrections alone.
TEST(Chart, NapkinsOwnInFp8) {
    const StreamChart between = chart(diagram("fp8"), file(inter)),
                      own = chart(diagram("fp8"), file("napkin-own-fp8.schedule"));
    EXPECT_GE(own.tensor_flop_per_s, between.tensor_flop_per_s);
    EXPECT_LE(own.tensor_flop_per_s, 1.01 * between.tensor_flop_per_s);
    EXPECT_EQ(own.chart.bound_by, "exp");
}

TEST(Chart, EveryFigureFollowsFromWhatItDependsOn) {
    const StreamChart usual = chart(diagram("fp16"), file(intra));
    // The overhead: 16 clocks a row of products, and what of 8.06·(1 + overhead) is longer than the product beside it.
    for (const int percent : {25, 100}) {
        const StreamChart other = chart(diagram("fp16"), replaced(file(intra), "exp 66", fmt::format("exp {}", percent)));
        EXPECT_NEAR(other.tensor_share, 16 / (8 + 8.0625 * (1 + percent / 100.0)), 1e-9) << percent;
        EXPECT_DOUBLE_EQ(other.chart.ideal_interval, usual.chart.ideal_interval);
    }
    // A type, a size, a machine, a unit, the order of issue.
    EXPECT_LT(chart(diagram("fp8"), file(intra)).tensor_share, 0.5);
    EXPECT_LT(chart(diagram("fp16"), replaced(file(intra), "stream x 128", "stream x 64")).chart.interval,
              usual.chart.interval);
    const StreamChart wide = chart(replaced(diagram("fp16"), "k = d = 128", "k = d = 64"), file(intra));
    EXPECT_NEAR(wide.tensor_share, 8 / (4 + 8.0625 * 1.66), 1e-9);
    EXPECT_NE(chart(diagram("fp16"), file(intra), "h100-pcie").tensor_flop_per_s, usual.tensor_flop_per_s);
    EXPECT_LT(chart(diagram("fp16"), replaced(file(intra), "units tensor, exp\n", "")).tensor_share, usual.tensor_share);
    const StreamChart in_order = chart(diagram("fp16"),
                                       replaced(file(intra), "issue S 1, O_acc_delta, weight 1, O_acc\n", "issue S\n"));
    EXPECT_NEAR(in_order.tensor_share, 16 / (16 + 8.0625 * 1.66), 1e-9);
    EXPECT_EQ(in_order.chart.in_flight, 1);
}

TEST(Chart, Figure34KeepsTheMatrixUnitBusy) {
    const StreamChart c = chart(file("napkin.nk"), file("napkin-figure-34.schedule"));
    EXPECT_EQ(c.chart.program.num_warpgroups, 3);
    EXPECT_EQ(c.chart.in_flight, 2);
    EXPECT_NEAR(c.tensor_share, 1, 1e-9);
    EXPECT_NEAR(c.tensor_flop_per_s / 1e15, 1.32, 0.005);
    // Threads correct the output beside the second half of Q·K, and then all that the unit has left is room.
    EXPECT_NEAR(unit(c, "exp").room, 6 / 4.0625 - 1, 1e-4);
    EXPECT_EQ(std::ranges::count_if(c.chart.program.operations, [](const ChartOperation& o) { return o.name == "S"; }), 2);
    const std::string whole = replaced(file("napkin-figure-34.schedule"), ", S 1, O_acc", ", O_acc");
    EXPECT_LT(unit(chart(file("napkin.nk"), whole), "exp").room, 0.46);
    EXPECT_GT(unit(c, "fma").room, 1);
}

/// Without a line `units` all that a core has is charted: transfers among it, of Table 1's tiles over the pipes into
/// shared memory and registers.
TEST(Chart, TransfersOfTable1) {
    const StreamChart c = chart(file("napkin.nk"), file("napkin-table-1.schedule"));
    const Machine machine = load_machine("h100-sxm5").value();
    const double into_smem = 12e12 / 132 / machine.clock_hz.value;
    EXPECT_NEAR(unit(c, "SMEM").clocks, 64 * (128 + 2 * 128) / into_smem, 0.01 * unit(c, "SMEM").clocks);
    // S, the weights, and what is added to O leave registers and come back to them, but the weights, which the matrix
    // unit reads there.
    EXPECT_NEAR(unit(c, "registers").clocks, 3 * 128.0 * (2 * 64 + 64 + 2 * 128) * 2 / 128, 1);
    int shared = 0;
    for (const ChartOperation& o : c.chart.program.operations) shared += o.is_shared && o.is_transfer;
    EXPECT_EQ(shared, 2);
    // A place each, and loads wait for all warpgroups; a slower pipe binds.
    const std::string alone = replaced(file("napkin-table-1.schedule"), "384", "128") + "units tensor, SMEM\n";
    const double two_places = chart(file("napkin.nk"), alone).chart.interval;
    EXPECT_DOUBLE_EQ(two_places, 128 * 6);
    const std::string one = "storage K operand, stages 1\nplace V operand, stages 1\n";
    // V comes while Q is multiplied by K, which is shorter.
    EXPECT_NEAR(chart(file("napkin.nk"), alone + one).chart.interval, 128 * 6 + 64 * 256 / into_smem - 256, 1e-6);
    EXPECT_EQ(chart(file("napkin.nk"), file("napkin-table-1.schedule") + "overhead SMEM 900  a test\n").chart.bound_by,
              "SMEM");
    EXPECT_THAT(to_text(report_of(c, "x")), testing::HasSubstr("beside them, as places are free: "));
    EXPECT_EQ(to_json(report_of(c, "x"))["charts"][0]["rows"][0].contains("warpgroup"), true);
}

/// Where no schedule says an order, the one with the shortest steady state is taken; FlashAttention-3's two are among
/// those that are tried.
TEST(Chart, TheOrderOfIssueIsTheModelsWhereItIsOpen) {
    const std::string lines = replaced(replaced(replaced(file(intra), "issue S 1, O_acc_delta, weight 1, O_acc\n", ""),
                                                "storage delta operand, stages 2\n", ""),
                                       "overhead exp 66  §6.1: SoftMax beside its exponentials\n", "");
    const auto open = steps(diagram("fp16"), lines);
    ASSERT_TRUE(open.ok()) << render(open.errors());
    const KernelSteps& k = open.value().kernels.at(0);
    EXPECT_NEAR(k.charts.at(0).tensor_share, 16 / 16.0625, 1e-9);  // 8.06 clocks of SoftMax beside the 8 of a product
    EXPECT_THAT(k.order, testing::HasSubstr("products a chunk ahead, the fastest"));
    const auto in_order = steps(diagram("fp16"), lines + "issue S\n");
    ASSERT_TRUE(in_order.ok());
    EXPECT_EQ(in_order.value().kernels.at(0).order, "");
    EXPECT_GT(in_order.value().kernels.at(0).charts.at(0).chart.interval, k.charts.at(0).chart.interval);
    // By hand, what was chosen gives the same.
    const auto again = steps(diagram("fp16"), k.schedule);
    ASSERT_TRUE(again.ok()) << render(again.errors());
    EXPECT_DOUBLE_EQ(again.value().kernels.at(0).charts.at(0).chart.interval, k.charts.at(0).chart.interval);
}

void expect_error(const std::string& schedule, const std::string& code, const std::string& says, const std::string& near) {
    const auto report = steps(diagram("fp16"), schedule);
    ASSERT_FALSE(report.ok()) << schedule;
    const Diagnostic& d = report.errors().front();
    EXPECT_EQ(d.code, code) << d.message;
    EXPECT_NE(d.message.find(says), std::string::npos) << d.message;
    EXPECT_NE((d.hint + d.expected).find(near), std::string::npos) << d.hint << " / " << d.expected;
}

TEST(Chart, AnOrderThatCannotBeSaysWhoWaits) {
    const std::string s = file(intra);
    expect_error(replaced(s, "issue S 1", "issue S"), "issue-deadlock",
                 "S_smem would wait for ever for S, which is issued after it: it reads S", "S_smem behind S");
    expect_error(replaced(s, "storage delta operand, stages 2\n", ""), "issue-deadlock", "which is issued after it",
                 "stages 2");
    expect_error(replaced(s, "weight 1", "wieght 1"), "unknown-variable", "the stream computes no 'wieght'", "weight");
    expect_error(replaced(s, "units tensor, exp", "units tensor, expo"), "unknown-unit", "no unit 'expo'", "exp");
    expect_error(replaced(s, "weight 1", "weight 1, weight 1"), "bad-schedule", "weight is named more often", "once");
    expect_error(replaced(s, "issue S 1, O_acc_delta", "issue S, O_acc_delta, S 1"), "issue-deadlock", "S would wait",
                 "");
    expect_error(replaced(s, "units tensor, exp", "units exp, exp"), "bad-schedule", "units names exp twice", "once");
    expect_error(replaced(s, "issue S 1", "issue S 9"), "bad-schedule", "issue takes names", "at most 8");
}

TEST(Chart, TheReportsScheduleGivesTheSameChart) {
    for (const std::string& name : {intra, inter}) {
        const auto first = steps(diagram("fp8"), file(name));
        ASSERT_TRUE(first.ok());
        const auto again = steps(diagram("fp8"), first.value().kernels[0].schedule);
        ASSERT_TRUE(again.ok()) << render(again.errors());
        EXPECT_EQ(to_text(report_of(*first)), to_text(report_of(*again)));
    }
}

}  // namespace
}  // namespace napkin::test_chart
