// The order of groups that run different numbers of chunks, how many blocks a GPU starts for them, and how long that
// takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <utility>

#include "lower/rules.hpp"
#include "machine/block_machine.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "schedule/group_order.hpp"
#include "support/parsed.hpp"

namespace napkin::test_group_order {
namespace {

using testing::ContainsRegex;
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
/// The same where each section is dealt out back and forth, from the worker on at which its first group stands among
/// all.
double simulated_in_rounds(const std::vector<double>& groups, std::size_t workers, std::size_t sections) {
    std::vector<double> ends(workers);
    for (std::size_t begin = 0, size = groups.size() / sections; begin < groups.size(); begin += size) {
        bool is_back = false;
        for (std::size_t first = 0; first < size; first += workers, is_back = !is_back)
            for (std::size_t place = 0; place < workers; ++place)
                if (const std::size_t group = first + (is_back ? workers - 1 - place : place); group < size)
                    ends[(begin + place) % workers] += groups[begin + group];
    }
    return *std::max_element(ends.begin(), ends.end());
}

TEST(GroupTimes, AreThoseOfASimulationGroupByGroup) {
    std::mt19937_64 random(1);
    const auto some = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    constexpr int cases = 500;
    for (int c = 0; c < cases; ++c) {
        const int tiles = some(1, 100), heads = some(1, 40), base = some(0, 10), step = some(0, 3), sections = some(1, 4);
        const auto workers = static_cast<std::size_t>(some(1, 132));
        GroupTimes given{{}, sections};
        std::vector<double> groups;
        for (int t = tiles; t > 0; --t) given.of_section.push_back({1.0 + base + step * t, static_cast<double>(heads)});
        for (int s = 0; s < sections; ++s)
            for (const GroupTime& g : given.of_section)
                groups.insert(groups.end(), static_cast<std::size_t>(heads), g.time);
        const auto w = static_cast<double>(workers);
        EXPECT_DOUBLE_EQ(time_in_rounds(given, w), simulated_in_rounds(groups, workers, static_cast<std::size_t>(sections)))
            << tiles << " " << heads << " " << w;
        EXPECT_DOUBLE_EQ(time_as_workers_end(given, w), simulated_as_workers_end(groups, workers))
            << tiles << " " << heads << " " << w;
    }
}

TEST(GroupTimes, OfMoreGroupsThanAreDealtOutAreNearThose) {
    GroupTimes given{{}, 4};
    std::vector<double> groups;
    for (int t = 100; t > 0; --t) given.of_section.push_back({10.0 + t, 100});
    for (int s = 0; s < 4; ++s)
        for (const GroupTime& g : given.of_section) groups.insert(groups.end(), 100, g.time);
    ASSERT_GT(groups.size(), 1U << 15);
    EXPECT_NEAR(time_as_workers_end(given, 132) / simulated_as_workers_end(groups, 132), 1, 0.01);
    EXPECT_NEAR(time_in_rounds(given, 132) / simulated_in_rounds(groups, 132, 4), 1, 0.01);
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
const std::string tiles_of_64 = "mma_m q\nwarps 4\ngroup q = 64\ngroup h = 1\nstream x = 64\n";

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

/// The uneven axis' tiles in the order of the groups, and the bytes of keys and values that the groups of each section
/// read.
struct InOrder {
    std::vector<std::int64_t> tiles;
    std::vector<double> bytes_of_sections;
};
InOrder in_order(const ScheduledKernel& k, double bytes_of_head) {
    InOrder out;
    const std::int64_t in_section = k.num_groups() / k.num_sections();
    std::set<std::pair<AxisId, std::int64_t>> heads;
    for (std::int64_t group = 0; group < k.num_groups(); ++group) {
        std::int64_t rest = group;
        std::map<AxisId, std::int64_t> tile;
        for (auto a = k.group_order.rbegin(); a != k.group_order.rend(); ++a) {
            const std::int64_t digit = rest % a->tiles;
            tile[a->axis] += (a->is_backward ? a->tiles - 1 - digit : digit) * a->stride;
            if (a->is_uneven) out.tiles.push_back(tile[a->axis]);
            rest /= a->tiles;
        }
        if (group % in_section == 0) heads.clear();
        for (const auto& [axis, at] : tile)
            if (std::none_of(k.group_order.begin(), k.group_order.end(),
                             [&, a = axis](const GroupAxis& g) { return g.axis == a && g.is_uneven; }))
                heads.emplace(axis, at);
        if ((group + 1) % in_section == 0)
            out.bytes_of_sections.push_back(static_cast<double>(heads.size()) * bytes_of_head);
    }
    return out;
}

// Keys and values of 128 heads are 64 MiB; sections of 64 heads fill the 32 MiB that the L2 holds for tiles that are
// read again.
TEST(GroupOrder, CutsHeadsIntoSectionsWhoseKeysAndValuesStayInTheCache) {
    const auto kernel = [](std::int64_t heads) {
        const std::string sizes = "h = " + std::to_string(heads) + ",";
        std::string text = masked("x <= q");
        return plan_of(text.replace(text.find("h = 16,"), 7, sizes), tiles_of_64).kernels.at(0).scheduled;
    };
    const double bytes_of_head = 2 * 2048 * 64 * 2;
    for (const auto& [heads, sections] : {std::pair{64, 1}, {128, 2}, {130, 5}, {192, 3}, {100, 2}, {67, 67}}) {
        const ScheduledKernel k = kernel(heads);
        EXPECT_EQ(k.num_groups(), heads * 32);
        EXPECT_EQ(k.num_sections(), sections) << heads;
        EXPECT_EQ(order_of(k), sections == 1 ? "-q h" : sections == heads ? "h -q" : "h -q h");
        const InOrder order = in_order(k, bytes_of_head);
        ASSERT_EQ(order.tiles.size(), static_cast<std::size_t>(k.num_groups()));
        ASSERT_EQ(std::ssize(order.bytes_of_sections), sections);
        EXPECT_LE(*std::max_element(order.bytes_of_sections.begin(), order.bytes_of_sections.end()), 32 << 20);
        const std::ptrdiff_t in_section = k.num_groups() / sections;
        for (auto s = order.tiles.begin(); s != order.tiles.end(); s += in_section) {
            EXPECT_TRUE(std::is_sorted(s, s + in_section, std::greater<>())) << heads;
            EXPECT_EQ(*s, 31);
        }
    }
}

// In rounds over all 128 heads, of 1 MiB each, every round would read 128 MiB from memory again.
TEST(GroupOrder, LeavesMemoryIdleWhereSectionsFitTheCache) {
    std::string text = masked("x <= q");
    text.replace(text.find("h = 16"), 6, "h = 128").replace(text.find("d = 64"), 6, "d = 128");
    const Plan plan = plan_of(text);
    const Simulation& time = plan.kernels.at(0).time;
    EXPECT_NE(time.busy.front().what, "GMEM to L2");
    EXPECT_DOUBLE_EQ(time.traffic.at(0).loaded_bytes, 3 * 128 * 2048 * 128 * 2.0) << "Q, K and V once each";
}

// Queries of one group of heads read the same keys, however many heads there are: of 4 groups' keys and values, 8 MiB
// each, three fit.
TEST(GroupOrder, KeepsWhatReadsTheSameTilesInOneSection) {
    const Plan plan = plan_of(
        "grouped(Q[g, h, q, k]: f16, K[g, x, k]: f16, V[g, x, d]: f16) -> O[g, h, q, d]: f16\n"
        "    S[g, h, q, x] = sum(k) Q[g, h, q, k] * K[g, x, k]\n"
        "    M[g, h, q, x] = where(x <= q, S[g, h, q, x] * k^-0.5, -inf)\n"
        "    P[g, h, q, x] = softmax(x) M[g, h, q, x]\n"
        "    O[g, h, q, d] = sum(x) P[g, h, q, x] * V[g, x, d]\n"
        "sizes g = 8, h = 4, q = x = 32768, k = d = 64\n",
        "mma_m q\nwarps 4\ngroup q = 64\ngroup h = 1\ngroup g = 1\nstream x = 64\n");
    const ScheduledKernel& k = plan.kernels.at(0).scheduled;
    EXPECT_EQ(order_of(k), "g -q g h");
    EXPECT_EQ(k.num_sections(), 2);
}

// One head's keys and values are 64 MiB.
TEST(GroupOrder, TakesOneHeadAfterTheOtherWhereNoSectionFits) {
    std::string text = masked("x <= q");
    const Plan plan = plan_of(text.replace(text.find("2048"), 4, "262144"), tiles_of_64);
    EXPECT_EQ(order_of(plan.kernels.at(0).scheduled), "h -q");
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

/// Causal attention of 16,384 tokens of 2,048, planned for an H200.
Plan attention_of(std::int64_t length, std::int64_t d, const std::string& schedule = "") {
    std::string text = masked("x <= q");
    text.erase(text.find("sizes"));
    const auto s = [](std::int64_t n) { return std::to_string(n); };
    return plan_of(
        text + "sizes h = " + s(16384 / length * 2048 / d) + ", q = x = " + s(length) + ", k = d = " + s(d) + "\n",
        schedule);
}

TEST(Grid, IsOfBlocksInTurnWhereGroupsAreShort) {
    const Plan brief = attention_of(512, 64, "scheduler static\n"),
               lasting = attention_of(16384, 64, "scheduler static\n");
    const ScheduledKernel &in_turn = brief.kernels.at(0).scheduled, &one_each = lasting.kernels.at(0).scheduled;
    EXPECT_EQ(in_turn.schedule.grid.value, 132);
    EXPECT_EQ(in_turn.num_blocks(), 132);
    EXPECT_TRUE(in_turn.alternates_direction());
    EXPECT_THAT(in_turn.schedule.grid.reason, HasSubstr("in turn, back and forth; a block for each of 2048 groups is"));
    EXPECT_EQ(one_each.schedule.grid.value, one_each.num_groups());
    EXPECT_EQ(one_each.num_blocks(), one_each.num_groups());
    EXPECT_FALSE(one_each.alternates_direction());
    EXPECT_THAT(one_each.schedule.grid.reason, HasSubstr("a block for each group; 132 in turn are"));
}

TEST(Queue, IsOfGroupsOfWhichMasksSayHowLongTheyRun) {
    const Plan plan = attention_of(512, 64);
    const ScheduledKernel& k = plan.kernels.at(0).scheduled;
    EXPECT_TRUE(k.is_dynamic());
    EXPECT_FALSE(k.alternates_direction());
    EXPECT_FALSE(k.has_block_a_group());
    EXPECT_EQ(k.num_blocks(), 132);
    EXPECT_EQ(barrier_bytes(k), 8 * num_barriers(k) + queue_stages * queue_stage_bytes);
    EXPECT_THAT(k.schedule.scheduler.reason, HasSubstr("masks say how many chunks a group runs"));
    const std::string text = to_string(*k.program, *k.kernel, k.schedule);
    EXPECT_THAT(text, ContainsRegex("scheduler +dynamic  masks say"));
    const ScheduledKernel again = attention_of(512, 64, text).kernels.at(0).scheduled;
    EXPECT_TRUE(again.is_dynamic());
    EXPECT_EQ(again.arena_bytes(), k.arena_bytes());

    const Plan fixed = attention_of(512, 64, "scheduler static\n");
    EXPECT_FALSE(fixed.kernels.at(0).scheduled.is_dynamic());
    EXPECT_THAT(to_string(*fixed.kernels.at(0).scheduled.program, *fixed.kernels.at(0).scheduled.kernel,
                          fixed.kernels.at(0).scheduled.schedule),
                ContainsRegex("scheduler +static"));
}

// Three kernels are not dynamic. Groups of one length leave nothing to even out. With a block for each group, none is
// taken from a queue. A producer that has no second stage for the group's tiles has nothing to copy meanwhile.
TEST(Queue, IsOfNothingElse) {
    const Plan even = plan_of(masked("x >= 0"), tiles_of_64 + "threads 132\n");
    EXPECT_FALSE(even.kernels.at(0).scheduled.is_dynamic());
    EXPECT_FALSE(attention_of(512, 64, "group q = 128\ngrid 4096\n").kernels.at(0).scheduled.is_dynamic());
    EXPECT_FALSE(attention_of(512, 64, "threads 1\n").kernels.at(0).scheduled.is_dynamic());
    const ScheduledKernel wide = attention_of(512, 256).kernels.at(0).scheduled;
    ASSERT_EQ(wide.place(wide.operand_loaded(*wide.operand_loads(0).front())).stages, 1);
    EXPECT_FALSE(wide.is_dynamic());
}

TEST(Queue, IsAskedByARole) {
    ScheduledKernel k = attention_of(512, 64).kernels.at(0).scheduled;
    EXPECT_THAT(verify(k), testing::IsEmpty());
    k.schedule.grid.value = 5000;
    EXPECT_THAT(verify(k), testing::Contains(HasSubstr("none is left in a queue")));
    k.schedule.grid.value = 0, k.schedule.roles.clear();
    EXPECT_THAT(verify(k), testing::Contains(HasSubstr("a queue of groups needs a role that copies")));
}

TEST(Grid, MayBeSetByHandAndIsReadBack) {
    for (const auto& [length, grid] : {std::pair{512, 4096}, {16384, 132}, {512, 100}}) {
        const Plan plan = attention_of(length, 64, "group q = 128\ngrid " + std::to_string(grid) + "\n");
        const ScheduledKernel& k = plan.kernels.at(0).scheduled;
        EXPECT_EQ(k.num_blocks(), grid);
        EXPECT_EQ(k.has_block_a_group(), grid == 4096);
        EXPECT_TRUE(k.schedule.grid.by_user);
        const Plan again = attention_of(length, 64, to_string(*k.program, *k.kernel, k.schedule));
        EXPECT_EQ(again.kernels.at(0).scheduled.num_blocks(), grid);
    }
    const Plan chosen = attention_of(16384, 64);
    const ScheduledKernel& k = chosen.kernels.at(0).scheduled;
    const Plan again = attention_of(16384, 64, to_string(*k.program, *k.kernel, k.schedule));
    EXPECT_EQ(again.kernels.at(0).scheduled.num_blocks(), k.num_blocks());
}

TEST(Grid, IsOfBlocksThatAllRunAtOnceOrHaveAGroupEach) {
    ScheduledKernel k = attention_of(512, 64, "scheduler static\n").kernels.at(0).scheduled;
    const auto broken = [&](std::int64_t grid) {
        k.schedule.grid.value = grid;
        const std::vector<std::string> all = verify(k);
        return all.empty() ? "" : all.front();
    };
    for (const std::int64_t grid : {1, 132, 2048, 5000}) EXPECT_EQ(broken(grid), "");
    EXPECT_THAT(broken(133),
                HasSubstr("at most the 132 that run at once take groups in turn, or each of 2048 groups has one"));
    EXPECT_THAT(broken(2047), HasSubstr("grid of 2047 blocks"));
    k.unit.block_bytes = 0, k.schedule.grid.value = 2048;
    EXPECT_THAT(verify(k), testing::Contains(
                               HasSubstr("a grid of 2048 blocks is more than the 132 that have an arena in memory")));
    k.schedule.warps.value = 0;
    EXPECT_THAT(verify(k), testing::Contains(HasSubstr("a CPU's threads each run whole groups")));
}

// A row of 56 tiles that 132 blocks go along loads all 56 of B and 3 of A. A band of 16 rows and 9 columns of tiles
// loads fewer bytes than any other.
TEST(GroupOrder, GoesThroughBandsInWhichBlocksLoadTheFewestBytes) {
    const auto order = [](const std::string& sizes) {
        const Plan plan = plan_of(
            "matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes " +
                sizes + "\n",
            "mma_m m\nwarps 8\ngroup m = 128\ngroup n = 256\nthreads 132\n");
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

// The width by hand replaces the rule's. Every tile is still taken once, whatever the width.
TEST(GroupOrder, TakesBandsByHand) {
    const std::string text =
        "matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
        "sizes m = 4096, n = 14336, k = 4096\n";
    const std::string tiles = "mma_m m\nwarps 8\ngroup m = 128\ngroup n = 256\nthreads 132\n";
    for (const std::int64_t width : {2, 4, 8}) {
        const ScheduledKernel k = plan_of(text, tiles + fmt::format("band {}\n", width)).kernels.at(0).scheduled;
        EXPECT_EQ(order_of(k), "m n m");
        EXPECT_EQ(k.group_order.front().stride, width);
        EXPECT_EQ(k.group_order.back().tiles, width);
        EXPECT_EQ(k.num_groups(), 32 * 56);
        EXPECT_THAT(verify(k), testing::IsEmpty());
    }
    ScheduledKernel k = plan_of(text, tiles + "band 1\n").kernels.at(0).scheduled;
    EXPECT_EQ(order_of(k), "m n") << "there are no bands";
    k.schedule.band.value = 12;
    const std::vector<BrokenRule> broken = broken_rules(k);
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_EQ(broken[0].message, "kernel C: bands of 12 tiles: m has 32 tiles, which are no multiple of it");
    EXPECT_EQ(broken[0].nearest, "the nearest legal width is 8");
    k.schedule.warps.value = 0;
    EXPECT_THAT(verify(k), testing::Contains(HasSubstr("threads take tiles in the order of the tile program")));
}

TEST(GroupOrder, SaysAfterHowManyGroupsATileIsReadAgain) {
    const std::vector<GroupAxis> order{{0, 16, 1}, {1, 1, 1}, {2, 8, 1}};
    const auto of = [&](const std::vector<AxisId>& axes) {
        Variable v;
        for (const AxisId a : axes) v.dims.emplace_back(Affine::axis(a));
        return groups_between_uses(order, v);
    };
    EXPECT_EQ(of({0, 3}), 1) << "the next one has the same rows";
    EXPECT_EQ(of({3, 2}), 8) << "that of the next row";
    EXPECT_EQ(of({1, 2}), 8) << "an axis with one tile tells no groups apart";
    EXPECT_EQ(of({0, 2}), 128) << "no other one does";
    EXPECT_EQ(of({}), 1);
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
    EXPECT_NEAR(waves_of(causal, 1, false), 1, 1e-9);
    // In four turns, back and forth, all have as much; in three, the last of which is short, some have the longest
    // tiles but one of each.
    EXPECT_NEAR(waves_of(causal, 128, true), 1, 1e-9);
    EXPECT_LT(waves_of(causal, 128, false), 1.05);
    EXPECT_GT(waves_of(causal, 200, true), 1.1);
}

}  // namespace
}  // namespace napkin::test_group_order
