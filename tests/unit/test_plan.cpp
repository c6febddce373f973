#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "hand_derived.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"
#include "support/schedules.hpp"
#include "support/text.hpp"
#include "syntax/print.hpp"
#include "tile/exact.hpp"
#include "tile/verify.hpp"

namespace napkin::test_plan {
namespace {

using hand::extents;
using testing::HasSubstr;

/// A Zen 4 server core with AVX-512, as host_machine() describes it, with fixed figures.
Machine avx512_machine(std::int64_t cores = 2) {
    Machine m;
    const auto f = [](double value) { return Figure{value, "test"}; };
    m.name = "test";
    m.clock_hz = f(3.7e9), m.cores = f(static_cast<double>(cores)), m.vector_bits = f(512), m.vector_registers = f(32);
    m.fma_latency_clocks = f(4), m.issue_per_clock = f(6), m.beside_factor = f(1.19),
    m.together_share = m.sustained_share = f(1), m.loop_exit_clocks = f(12);
    m.call_clocks = f(10), m.horizontal_clocks = f(12), m.copy_run_clocks = f(4), m.transpose_clocks = f(0.6),
    m.far_transpose_clocks = f(2);
    m.line_bytes = f(64), m.launch_s = f(1e-5), m.group_s = f(1e-7);
    const auto c = static_cast<double>(cores);
    const auto level = [&](const char* name, double capacity, double instances, double bandwidth, double latency) {
        Level l;
        l.name = name, l.capacity_bytes = f(capacity), l.instances = f(instances), l.latency_s = f(latency);
        if (bandwidth > 0) l.bandwidth_bytes_per_s = f(bandwidth);
        return l;
    };
    m.levels = {level("DRAM", 8e9, 1, 0, 1e-7), level("L3", 32 << 20, 1, 24e9, 2e-8),
                level("L2", 1 << 20, c, 5.9e10, 5e-9), level("L1", 32 << 10, c, 1.18e11, 1e-9)};
    for (const auto& [unit, rate] : std::vector<std::pair<std::string, double>>{
             {"fma", 16}, {"simple", 16}, {"load", 11.04}, {"store", 8}, {"exp", 1.52}}) {
        Unit u;
        u.name = unit, u.per_clock = {{DType::f32, f(rate)}, {DType::f64, f(rate / 2)}};
        m.units.push_back(std::move(u));
    }
    return m;
}

// What a search keeps of candidates changes neither the form nor the plan.
TEST(ChoosePlan, IsTheSameWithWhatTheChoiceOfTheFormFoundOut) {
    int num_alternatives = 0;
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& text) {
        SCOPED_TRACE(name);
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
        ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
        const auto derived = derive(*diagram);
        const auto bound = bind_sizes(*diagram);
        if (!bound.ok()) return;
        for (const Region& region : derived->regions)
            num_alternatives += static_cast<int>(region.alternatives.size()) - 1;
        const Machine machine = avx512_machine();
        const auto ratings = std::make_shared<Estimates>();
        const Derived form = choose_form(*derived, *bound, machine),
                      again = choose_form(*derived, *bound, machine, {}, ratings);
        EXPECT_EQ(names_of(form.kernels), names_of(again.kernels));
        PlanOptions with_ratings;
        with_ratings.ratings = ratings;
        const auto plan = choose_plan(form, *bound, machine), other = choose_plan(again, *bound, machine, {}, with_ratings);
        ASSERT_TRUE(plan.ok() && other.ok());
        EXPECT_EQ(to_string(*plan), to_string(*other));
    });
    EXPECT_GT(num_alternatives, 20);
}

TEST(ChoosePlan, OneQueryOverManyKeysStaysOneKernelWhoseStreamIsSplitOverCores) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(
        Source{"<test>",
               "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
               "    P[q, x] = softmax(x) S[q, x] * k^-0.5\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
               "sizes q = 1, x = 65536, k = d = 128\n"}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto bound = bind_sizes(*diagram);
    const auto derived = derive(*diagram);
    ASSERT_TRUE(derived.ok() && bound.ok());
    Machine machine = avx512_machine();
    machine.levels[1].bandwidth_bytes_per_s.value = 1.2e11;  // one core does not take all that memory gives
    const Derived form = choose_form(*derived, *bound, machine);
    EXPECT_EQ(form.kernels.size(), 1u) << "fused";
    const auto plan = choose_plan(form, *bound, machine);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    ASSERT_EQ(plan->kernels.size(), 2u) << to_string(*plan);
    for (const KernelPlan& kernel : plan->kernels) EXPECT_EQ(kernel.whole, 0u);
    EXPECT_EQ(plan->kernels[0].schedule().threads.value, 2);
}

const Choice& of(const Derived& d, const std::map<AxisId, Choice>& choices, const std::string& axis) {
    return choices.at(d.diagram.find_axis(axis).value());
}
std::string vector_axis(const Derived& d, const KernelPlan& plan) {
    return plan.schedule().vector_axis < 0 ? "" : d.diagram.axis(plan.schedule().vector_axis).name;
}
int most_rows(const KernelPlan& plan) {
    int rows = 1;
    for (const Atom& a : plan.schedule().atoms) rows = std::max(rows, a.rows);
    return rows;
}

KernelPlan plan_of(const Derived& d, const Extents& e, const std::vector<ScheduleItem>& by_user = {},
                   const Machine& m = avx512_machine()) {
    const auto plan = choose_plan(d, e, m, by_user);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return plan.ok() ? plan->kernels.at(0) : KernelPlan{};
}

/// Where a variable of the plan's kernel lies.
Place place_of(const KernelPlan& plan, const std::string& name) {
    const auto& variables = plan.scheduled.kernel->variables;
    for (const VariableId v : variables.ids())
        if (variables[v].name == name) return plan.schedule().places[v];
    throw std::out_of_range(name);
}

ScheduleItem item(const std::string& kind, const std::string& axis, std::optional<std::int64_t> value,
                  const std::string& word = "") {
    return {choice_kind(kind), axis, value, word};
}

Diagnostic refusal(const Derived& d, const Extents& e, const ScheduleItem& i, const Machine& m = avx512_machine()) {
    const auto plan = choose_plan(d, e, m, {i});
    EXPECT_FALSE(plan.ok());
    return plan.ok() ? Diagnostic{} : plan.errors().at(0);
}

Extents large(const Derived& d, std::int64_t head) {
    return extents(d, {{"h", 8}, {"q", 4096}, {"x", 4096}, {"k", head}, {"d", head}});
}

/// M and H of the plan are those of the exact counts, and M fits three quarters of L2.
void expect_consistent(const Derived& d, const Extents& e, const KernelPlan& plan) {
    const Counts costs = exact_costs(d, d.kernels[0], e, plan.scheduled.sizes);
    EXPECT_EQ(plan.memory_values, static_cast<double>(costs.peak_memory));
    EXPECT_EQ(plan.time.transfers, static_cast<double>(costs.transfers()));
    EXPECT_LE(static_cast<double>(plan.scheduled.memory_bytes()), 0.75 * (1 << 20));
    EXPECT_THAT(verify(plan.scheduled), testing::IsEmpty());
    for (const auto* choices : {&plan.schedule().group, &plan.schedule().stream})
        for (const auto& [axis, choice] : *choices) {
            EXPECT_GE(choice.value, 1) << axis;
            EXPECT_LE(choice.value, e[axis]) << axis;
            EXPECT_NE(choice.reason, "") << axis;
        }
}

TEST(Plan, StreamedFoldsTakeOnePanelOfRegisters) {
    const Derived d = hand::streamed({{"h"}, {}});
    for (const std::int64_t head : {64, 128}) {
        const Extents e = large(d, head);
        const KernelPlan plan = plan_of(d, e);
        expect_consistent(d, e, plan);
        EXPECT_EQ(vector_axis(d, plan), "q");
        EXPECT_GE(most_rows(plan) * plan.schedule().panel_vectors, 20) << "accumulators that hide the latency";
        EXPECT_EQ(of(d, plan.schedule().group, "h").value, 1);
        EXPECT_EQ(of(d, plan.schedule().group, "q").value % 48, 0);
        EXPECT_LE(of(d, plan.schedule().group, "q").value, 192);
        EXPECT_FALSE(plan.schedule().group.contains(d.diagram.find_axis("d").value()))
            << "its grouping repeats the scores";
        EXPECT_GE(of(d, plan.schedule().stream, "x").value, 32);
        EXPECT_LE(of(d, plan.schedule().stream, "x").value, 512);
        EXPECT_EQ(plan.schedule().threads.value, 2);
        EXPECT_EQ(plan.time.busy.front().what, "fma");
    }
}

TEST(Plan, PredictsWhatWasMeasured) {
    // On 2 cores of this kind, 8 heads of 4096×4096: 166 ms at d = 64, 319 ms at d = 128; causal 1.88 times faster
    // (2026-11-20).
    const Derived d = hand::streamed({{"h"}, {}}), c = hand::streamed({{"h"}, {}, true});
    const double t64 = plan_of(d, large(d, 64)).time.seconds, t128 = plan_of(d, large(d, 128)).time.seconds;
    EXPECT_NEAR(t64, 0.166, 0.166 * 0.15);
    EXPECT_NEAR(t128, 0.319, 0.319 * 0.15);
    EXPECT_NEAR(t64 / plan_of(c, large(c, 64)).time.seconds, 1.88, 0.15);
}

TEST(Plan, Matmul) {
    const Derived d = hand::matmul();
    const Extents e = extents(d, {{"a", 2048}, {"b", 2048}, {"c", 2048}});
    const KernelPlan plan = plan_of(d, e);
    expect_consistent(d, e, plan);
    EXPECT_EQ(vector_axis(d, plan), "c") << "it is innermost in B and C";
    EXPECT_GE(of(d, plan.schedule().group, "a").value, 128) << "to pay for copying B";
    EXPECT_GE(of(d, plan.schedule().stream, "b").value, 64);
    EXPECT_NEAR(plan.time.seconds, 2.0 * 2048 * 2048 * 2048 / 206e9, 0.012);
}

TEST(Plan, SmallAndRaggedSizes) {
    for (const auto& d : {hand::streamed(), hand::streamed({{"h"}, {"g"}, true}), hand::matmul(), hand::pointwise(),
                          hand::streamed({{}, {}, false, 5})}) {
        std::mt19937 random(7);
        for (int i = 0; i < 12; ++i) {
            Extents e(d.diagram.axes.size());
            for (std::int64_t& n : e) n = 1 + static_cast<std::int64_t>(random() % (i < 6 ? 20 : 300));
            expect_consistent(d, e, plan_of(d, e));
        }
    }
    const Derived d = hand::streamed();
    const KernelPlan one = plan_of(d, extents(d, {{"q", 1}, {"x", 1}, {"k", 1}, {"d", 1}}));
    EXPECT_EQ(one.schedule().threads.value, 1);
    EXPECT_EQ(vector_axis(d, one), "");
}

TEST(Plan, DecodingHasNoQueriesForAVector) {
    const Derived d = hand::streamed({{"h"}, {}});
    const KernelPlan plan = plan_of(d, extents(d, {{"h", 8}, {"q", 1}, {"x", 4096}, {"k", 128}, {"d", 128}}));
    EXPECT_NE(vector_axis(d, plan), "q");
    EXPECT_EQ(plan.time.busy.front().what, "DRAM to L3") << "every key is read once";
}

TEST(Plan, HandMadeChoicesAreKept) {
    const Derived d = hand::streamed({{"h"}, {}});
    const Extents e = large(d, 64);
    const KernelPlan plan = plan_of(d, e,
                                    {item("group", "q", 192), item("stream", "x", 100), item("threads", "", 1),
                                     item("rows", "", 4), item("vectors", "", 2), item("vector", "q", std::nullopt)});
    EXPECT_EQ(of(d, plan.schedule().group, "q").value, 192);
    EXPECT_TRUE(of(d, plan.schedule().group, "q").by_user);
    EXPECT_FALSE(of(d, plan.schedule().group, "h").by_user);
    EXPECT_EQ(of(d, plan.schedule().stream, "x").value, 100);
    EXPECT_TRUE(of(d, plan.schedule().stream, "x").by_user);
    EXPECT_EQ(plan.schedule().threads, (Choice{1, plan.schedule().threads.reason, true}));
    EXPECT_EQ(most_rows(plan), 4);
    EXPECT_EQ(plan.schedule().panel_vectors, 2);
    EXPECT_TRUE(plan.schedule().vector_axis.by_user);
    expect_consistent(d, e, plan);
    // Cutting an axis whose grouping repeats work is allowed by hand only.
    EXPECT_EQ(of(d, plan_of(d, e, {item("group", "d", 32)}).schedule().group, "d").value, 32);
    // The diagram's own schedule counts too, and the command line overrides it.
    Derived scheduled = d;
    scheduled.diagram.schedule = {item("group", "q", 96), item("form", "", std::nullopt, "unscaled")};
    EXPECT_EQ(of(scheduled, plan_of(scheduled, e).schedule().group, "q").value, 96);
    EXPECT_EQ(of(scheduled, plan_of(scheduled, e, {item("group", "q", 64)}).schedule().group, "q").value, 64);
}

TEST(Plan, SubloopsHoldOperandsInParts) {
    const Derived d = hand::streamed({{"h"}, {}});
    const Extents e = large(d, 64);
    const AxisId k_axis = d.diagram.find_axis("k").value(), d_axis = d.diagram.find_axis("d").value();
    const std::vector<ScheduleItem> sizes{item("group", "q", 16), item("stream", "x", 512),
                                          item("vector", "q", std::nullopt)};
    const KernelPlan whole = plan_of(d, e, sizes);
    std::vector<ScheduleItem> items = sizes;
    items.push_back(item("subloop", "k", 7));
    items.push_back(item("subloop", "d", 9));
    const auto plan = choose_plan(d, e, avx512_machine(), items);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const KernelPlan& cut = plan->kernels[0];
    EXPECT_THAT(verify(cut.scheduled), testing::IsEmpty());
    EXPECT_THAT(verify(plan->tiles()), testing::IsEmpty());
    EXPECT_EQ(cut.scheduled.sizes.sub[k_axis], 7);
    EXPECT_EQ(cut.scheduled.sizes.sub[d_axis], 9);
    const Counts counts = exact_costs(plan->tiles(), 0);
    EXPECT_EQ(cut.memory_values, static_cast<double>(counts.peak_memory));
    EXPECT_EQ(cut.time.transfers, static_cast<double>(counts.transfers()));
    EXPECT_EQ(cut.time.transfers, whole.time.transfers) << "the same values, in parts";
    EXPECT_LT(cut.memory_values, whole.memory_values);

    // The printed plan, given as a file, is the same plan.
    PlanOptions from_file;
    from_file.file = std::make_shared<const Source>(Source{"plan", to_string(*plan)});
    const auto again = choose_plan(d, e, avx512_machine(), {}, from_file);
    ASSERT_TRUE(again.ok()) << render(again.errors());
    EXPECT_EQ(again->kernels[0].scheduled.sizes, cut.scheduled.sizes);
    EXPECT_EQ(again->kernels[0].memory_values, cut.memory_values);

    // Along what it cuts, a group would be cut twice.
    items.push_back(item("group", "d", 32));
    const auto both = choose_plan(d, e, avx512_machine(), items);
    ASSERT_FALSE(both.ok());
    EXPECT_EQ(both.errors().at(0).code, "no-subloop");
    EXPECT_THAT(both.errors().at(0).message, HasSubstr("d is cut into groups and by a subloop"));
}

TEST(Plan, HandMadeChoicesThatBreakARule) {
    const Derived d = hand::streamed({{"h"}, {}});
    const Extents e = large(d, 64);
    Diagnostic r = refusal(d, e, item("group", "x", 64));
    EXPECT_EQ(r.code, "not-groupable");
    EXPECT_THAT(r.message, HasSubstr("streams it"));
    EXPECT_THAT(r.expected, HasSubstr("h, q, d"));
    EXPECT_THAT(r.hint, HasSubstr("stream x"));
    r = refusal(d, e, item("group", "k", 64));
    EXPECT_THAT(r.message, HasSubstr("reduces over it for S"));
    r = refusal(d, e, item("stream", "q", 64));
    EXPECT_EQ(r.code, "not-streamed");
    EXPECT_THAT(r.expected, HasSubstr("x"));
    r = refusal(d, e, item("group", "qq", 64));
    EXPECT_EQ(r.code, "unknown-axis");
    EXPECT_THAT(r.hint, HasSubstr("did you mean q?"));
    r = refusal(d, e, item("group", "q", 0));
    EXPECT_EQ(r.code, "size-out-of-range");
    EXPECT_THAT(r.hint, HasSubstr("is 1"));
    r = refusal(d, e, item("stream", "x", 5000));
    EXPECT_THAT(r.message, HasSubstr("4096 values"));
    EXPECT_THAT(r.hint, HasSubstr("is 4096"));
    r = refusal(d, e, item("subloop", "x", 7));
    EXPECT_EQ(r.code, "no-subloop");
    EXPECT_THAT(r.message, HasSubstr("subloop x cuts nothing"));
    EXPECT_THAT(r.message, HasSubstr("a loop cuts x around it already"));
    EXPECT_EQ(refusal(d, e, item("subloop", "k", 65)).code, "size-out-of-range");
}

TEST(Plan, MemoryLimitsHandMadeChoices) {
    const Derived d = hand::streamed({{"h"}, {}});
    const Extents e = large(d, 64);
    const Diagnostic r = refusal(d, e, item("group", "q", 4096));
    EXPECT_EQ(r.code, "memory-exceeded");
    EXPECT_THAT(r.expected, HasSubstr("768 KiB (three quarters of L2)"));
    // The hint's size fits, and the next one does not.
    const auto at = r.hint.rfind(' ');
    const std::int64_t nearest = std::stoll(r.hint.substr(at));
    EXPECT_TRUE(choose_plan(d, e, avx512_machine(), {item("group", "q", nearest)}).ok()) << r.hint;
    EXPECT_FALSE(choose_plan(d, e, avx512_machine(), {item("group", "q", nearest + 1)}).ok()) << r.hint;
}

TEST(Plan, WhereNothingFits) {
    // One row of scores is longer than the cache, and nothing streams it.
    hand::Builder b;
    const AxisId i = b.axis("i"), j = b.axis("j");
    const ArrayId X = b.input("X", {i, j}), m = b.temporary("m", {i}), Y = b.output("Y", {i, j});
    using namespace hand;
    b.kernel.stages.emplace_back(Block{{fold(m, ReduceOp::max, {j}, b.get(X)), map(Y, exp(b.get(X) - b.get(m)))}});
    const Derived d = b.finish("Y", {i});
    const Extents e = extents(d, {{"i", 64}, {"j", 1 << 20}});
    const auto plan = choose_plan(d, e, avx512_machine());
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    EXPECT_EQ(of(d, plan->kernels[0].schedule().group, "i").value, 1);
    EXPECT_THAT(of(d, plan->kernels[0].schedule().group, "i").reason, HasSubstr("no tile fits"));
    PlanOptions strictly;
    strictly.strict = true;
    const auto strict = choose_plan(d, e, avx512_machine(), {}, strictly);
    ASSERT_FALSE(strict.ok());
    EXPECT_EQ(strict.errors()[0].code, "memory-exceeded");
}

TEST(Plan, RecomputedAxesAreCutOnlyWhenNothingElseFits) {
    const Derived d = hand::streamed();
    const Extents e = extents(d, {{"q", 64}, {"x", 64}, {"k", 64}, {"d", 1 << 18}});
    const KernelPlan plan = plan_of(d, e);
    ASSERT_TRUE(plan.schedule().group.contains(d.diagram.find_axis("d").value()));
    EXPECT_LT(of(d, plan.schedule().group, "d").value, 1 << 18);
    EXPECT_THAT(of(d, plan.schedule().group, "d").reason, HasSubstr("repeats work"));
    expect_consistent(d, e, plan);
}

/// Copies with stores past the caches are half as fast again, from 1 KB on.
Machine with_stores_past_caches(double from = 1e3) {
    Machine m = avx512_machine();
    m.levels[1].copy_bandwidth_bytes_per_s = m.levels[1].core_copy_bandwidth_bytes_per_s = {24e9, "test"};
    m.nontemporal_copy_bytes_per_s = m.core_nontemporal_copy_bytes_per_s = {36e9, "test"};
    m.nontemporal_from_bytes = {from, "test"};
    return m;
}

TEST(Plan, LargeResultsGoPastTheCachesAndRowsAreFetchedAhead) {
    const Derived d = hand::softmax();
    const Extents e = extents(d, {{"r", 4096}, {"c", 4096}});
    const double moved = 2.0 * 4096 * 4096 * 4;
    const KernelPlan past = plan_of(d, e, {}, with_stores_past_caches(moved)),
                     usual = plan_of(d, e, {}, with_stores_past_caches(moved + 1));
    EXPECT_TRUE(place_of(past, "Y").non_temporal);
    EXPECT_FALSE(place_of(usual, "Y").non_temporal) << "the caches may hold it";
    EXPECT_LT(past.time.seconds, usual.time.seconds);
    EXPECT_EQ(past.time.transfers, usual.time.transfers) << "H is the same";
    EXPECT_FALSE(place_of(plan_of(d, e), "Y").non_temporal) << "the machine does not say from where on";

    // X comes in while exponentials are computed, and not where it would be waited for at once.
    ASSERT_EQ(past.schedule().prefetches.size(), 1U);
    const Prefetch& p = past.schedule().prefetches[0];
    EXPECT_EQ(past.scheduled.kernel->variables[p.variable].name, "X");
    EXPECT_EQ(atom_names(*past.scheduled.kernel).at(at(p.atom)), "E");
    EXPECT_EQ(p.ahead.value, 1);
    EXPECT_THAT(p.ahead.reason, HasSubstr("slower without"));
    EXPECT_THAT(verify(past.scheduled), testing::IsEmpty());

    // Where memory takes longer to answer than a group to compute, more groups are fetched ahead; by hand none.
    Machine far = with_stores_past_caches(moved);
    far.levels[0].latency_s = {1e-5, "test"};
    EXPECT_GT(plan_of(d, e, {item("group", "r", 1)}, far).schedule().prefetches.at(0).ahead.value, 1);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{
        "a.schedule", "kernel " + d.kernels[0].name + "\n  prefetch X tiles 0, in E\n  storage Y buffer, inner c\n"});
    const auto by_user = choose_plan(d, e, with_stores_past_caches(moved), {}, options);
    ASSERT_TRUE(by_user.ok()) << render(by_user.errors());
    EXPECT_EQ(by_user->kernels[0].schedule().prefetches.at(0).ahead, (Choice{0, "", true}));
    EXPECT_EQ(place_of(by_user->kernels[0], "Y").holding, MemorySpace::buffer);
    EXPECT_GT(by_user->kernels[0].time.seconds, past.time.seconds);
}

// A line that is written in two pieces costs more past the caches than in them: parts of rows go there where they are
// whole lines.
TEST(Plan, PartsOfRowsGoPastTheCachesInWholeLines) {
    const auto goes_past = [](std::int64_t columns, std::int64_t part) {
        const Derived d = derive(parsed("f(A[i], B[j]) -> C[i, j]\n    C[i, j] = A[i] * B[j]\n")).value();
        const KernelPlan plan = plan_of(d, extents(d, {{"i", 512}, {"j", columns}}),
                                        {item("vector", "j", std::nullopt), item("group", "j", part)},
                                        with_stores_past_caches());
        EXPECT_THAT(verify(plan.scheduled), testing::IsEmpty());
        return place_of(plan, "C").non_temporal;
    };
    EXPECT_TRUE(goes_past(4096, 64));
    EXPECT_TRUE(goes_past(4096, 4096));
    EXPECT_FALSE(goes_past(4096, 72)) << "four lines and a half";
    EXPECT_FALSE(goes_past(4095, 64)) << "rows begin within lines";
    EXPECT_TRUE(goes_past(4095, 4095));
}

TEST(Plan, RowsThatSharePagesAreFetchedAhead) {
    const Derived d = hand::streamed();
    const auto of = [&](std::int64_t k, const std::string& file = "") {
        PlanOptions options;
        if (!file.empty())
            options.file = std::make_shared<const Source>(Source{"a.schedule", "kernel " + d.kernels[0].name + "\n" + file});
        auto plan = choose_plan(d, extents(d, {{"q", 1024}, {"x", 8192}, {"k", k}, {"d", 64}}), avx512_machine(),
                                {item("group", "q", 96), item("stream", "x", 64)}, options);
        EXPECT_TRUE(plan.ok()) << render(plan.errors());
        return plan->kernels[0];
    };
    const std::string view = "  storage K global, inner k\n";
    const KernelPlan ahead = of(256, view), apart = of(1024, view),
                     without = of(256, view + "  prefetch K blocks 0, in S\n");
    ASSERT_EQ(ahead.schedule().prefetches.size(), 1U) << "rows of 1 KB";
    const Prefetch& p = ahead.schedule().prefetches[0];
    EXPECT_EQ(p.fetched, Fetched::blocks);
    EXPECT_EQ(ahead.scheduled.kernel->variables[p.variable].name, "K");
    EXPECT_THAT(p.ahead.reason, HasSubstr("slower without"));
    EXPECT_THAT(apart.schedule().prefetches, testing::IsEmpty()) << "rows of 4 KB";
    EXPECT_GT(without.time.seconds, ahead.time.seconds);
    EXPECT_EQ(without.time.transfers, ahead.time.transfers) << "H is the same";
}

// Rows of 8 KiB all begin in the same set of the first cache, whose 8 lines hold no column of 64 rows. Rows of 8,000
// bytes spread over all sets.
TEST(Plan, WhatCrowdsSetsOfTheCacheIsCopied) {
    const Derived d = hand::matmul();
    const auto of = [&](std::int64_t c, std::int64_t chunk) {
        return plan_of(d, extents(d, {{"a", 1024}, {"b", 1024}, {"c", c}}),
                       {item("group", "a", 64), item("group", "c", 64), item("stream", "b", chunk), item("rows", "", 4),
                        item("vectors", "", 2), item("vector", "a", std::nullopt)});
    };
    EXPECT_EQ(place_of(of(2048, 64), "B").holding, MemorySpace::buffer);
    EXPECT_EQ(place_of(of(2000, 64), "B").holding, MemorySpace::global);
    EXPECT_EQ(place_of(of(2048, 8), "B").holding, MemorySpace::global) << "eight rows stay";
}

// The groups of a row of tiles read all of B, one after the other. All of B passes through the cache before the next
// row of tiles begins to read it again. The groups of one row find A's tiles there in any case.
TEST(Plan, TilesThatOtherGroupsReadAgainComeFromACacheThatHoldsWhatPassesMeanwhile) {
    const Derived d = hand::matmul();
    const double array = 4.0 * 2048 * 2048;
    const auto loaded = [&](double capacity) {
        Machine machine = avx512_machine();
        machine.levels[1].capacity_bytes = {capacity, "test"};
        const KernelPlan plan = plan_of(d, extents(d, {{"a", 2048}, {"b", 2048}, {"c", 2048}}),
                                        {item("group", "a", 128), item("group", "c", 256), item("stream", "b", 64)},
                                        machine);
        return plan.time.traffic.at(0).loaded_bytes / array;
    };
    EXPECT_DOUBLE_EQ(loaded(32e6), 2) << "A and B once";
    EXPECT_DOUBLE_EQ(loaded(16e6), 1 + 16) << "B for every row of tiles";
}

// A block of C is read, added to and written at the end of a chunk of b, when its vectors have nothing else to do. With
// two chunks in place of one, C crosses into the first cache and out of it once more. Nothing hides that.
TEST(Plan, SumsThatAreAddedToCrossIntoTheFirstCacheBesideNothing) {
    const Derived d = hand::matmul();
    const double clock = avx512_machine().clock_hz.value, slow_rate = 16 * clock;  // bytes a second of one core
    const auto seconds = [&](std::int64_t chunk, double rate) {
        Machine machine = avx512_machine();
        machine.levels.back().bandwidth_bytes_per_s = {
            rate * machine.cores.value / machine.levels.back().instances.value, "test"};
        return plan_of(d, extents(d, {{"a", 2048}, {"b", 2048}, {"c", 2048}}),
                       {item("group", "a", 128), item("group", "c", 256), item("stream", "b", chunk), item("threads", "", 2),
                        item("rows", "", 8), item("vectors", "", 2), item("vector", "c", std::nullopt)},
                       machine)
            .time.seconds;
    };
    const double more = seconds(64, slow_rate) - seconds(128, slow_rate),
                 otherwise = seconds(64, 1e18) - seconds(128, 1e18);
    const double crossings = 16, bytes_of_c = 4.0 * 2048 * 2048, cores = 2;
    EXPECT_NEAR(more - otherwise, crossings * 2 * bytes_of_c / (cores * slow_rate), 0.1 * more);
}

TEST(Plan, ManyCoresGetManyGroups) {
    const Derived d = hand::matmul();
    const Extents e = extents(d, {{"a", 1024}, {"b", 1024}, {"c", 1024}});
    const KernelPlan plan = plan_of(d, e, {}, avx512_machine(64));
    EXPECT_GE(exact_costs(d, d.kernels[0], e, plan.scheduled.sizes).groups, 64);
    EXPECT_EQ(plan.schedule().threads.value, 64);
}

}  // namespace
}  // namespace napkin::test_plan
