// Streams cut into parts that run at the same time and are merged: the form, its tile program, and the field of the
// schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "derive/parts.hpp"
#include "derive/verify.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "machine/block_machine.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"
#include "tile/exact.hpp"
#include "tile_examples.hpp"

namespace napkin::test_parts {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using tile_examples::Example;

std::vector<std::string> kernel_names(const Derived& derived) {
    std::vector<std::string> names;
    for (const Kernel& kernel : derived.kernels) names.push_back(kernel.name);
    return names;
}

Derived derived_of(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    auto derived = derive(*diagram);
    EXPECT_TRUE(derived.ok()) << render(derived.errors());
    return std::move(derived).value();
}

ScheduleItem item(const std::string& kind, const std::string& axis, std::int64_t value) {
    return {choice_kind(kind), axis, value};
}

/// One row of so many values.
const std::string row_maximum = "f(X[r, c]) -> L[r]\n    L[r] = logsumexp(c) X[r, c]\n";
const std::string row_softmax = "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\n";

Extents sizes_of(const Derived& derived, std::int64_t r, std::int64_t c) {
    return bind_sizes(derived.diagram, {{"r", r}, {"c", c}}).value();
}

TEST(Parts, ChunksAreSharedOutEvenly) {
    // 10 values in chunks of 3 are four, of which three parts have 1, 1 and 2; the last chunk is ragged.
    const auto stretch = [](std::int64_t part) { return stretch_of_parts(part, part + 1, 3, 10, 3); };
    EXPECT_EQ(stretch(0).begin, 0);
    EXPECT_EQ(stretch(0).end, 3);
    EXPECT_EQ(stretch(1).begin, 3);
    EXPECT_EQ(stretch(1).end, 6);
    EXPECT_EQ(stretch(2).begin, 6);
    EXPECT_EQ(stretch(2).end, 10);
}

TEST(Parts, StatesGoThroughMemoryAndAreMerged) {
    Example e = tile_examples::weighted_mean();
    const Parted cut = with_parts(e.derived, 0, 3);
    ASSERT_TRUE(cut.form.has_value()) << cut.refusal;
    EXPECT_THAT(kernel_names(*cut.form), ElementsAre("O_part", "O"));
    const Extents extents = with_part_extents(*cut.form, e.extents);
    const SizedProgram program = program_with(*cut.form, extents, {{"q", 4}}, {{"x", 2}});
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_THAT(to_string(program),
                AllOf(HasSubstr("for each group of x_part (1 at a time), q (4 at a time):"),
                      HasSubstr("for each chunk of x (2 at a time) in x_part:"),
                      HasSubstr("U[q, d] = sum over x_parts: weight[q, x_parts] * U_part[x_parts, q, d]")));
    Values values = random_inputs(cut.form->diagram, extents, 1), wanted = random_inputs(e.derived.diagram, e.extents, 1);
    const auto counts = interpret(program, values);
    evaluate(e.derived.diagram, e.extents, wanted);
    const auto O = e.derived.diagram.outputs[0];
    for (std::size_t i = 0; i < wanted[O].size(); ++i) EXPECT_NEAR(values[O][i], wanted[O][i], 1e-12) << i;
    // Each value of A and V is read as often as without parts; three parts store mu, z and U of every q, which the
    // merge loads.
    EXPECT_EQ(counts[0].loaded, 7 * 11 + 2 * 11 * 3);
    EXPECT_EQ(counts[0].stored, 3 * (7 + 7 + 7 * 3));
    EXPECT_EQ(counts[1].loaded, counts[0].stored);
    EXPECT_EQ(counts[0].groups, 3 * 2);
    EXPECT_EQ(counts[0].chunks_run, 2 * 6) << "each chunk in one part";
    EXPECT_EQ(counts[0].chunks_skipped, 0);
    for (std::size_t k = 0; k < counts.size(); ++k) EXPECT_EQ(counts[k], exact_costs(program, k));
}

TEST(Parts, AWrongMergeShows) {
    Example e = tile_examples::weighted_mean();
    FoldState& z = e.derived.kernels[0].folds[0].states[1];
    z.carry = e.self(z.old);  // without its correction
    const Parted cut = with_parts(e.derived, 0, 2);
    const Extents extents = with_part_extents(*cut.form, e.extents);
    Values values = random_inputs(cut.form->diagram, extents, 1), wanted = random_inputs(e.derived.diagram, e.extents, 1);
    interpret(program_with(*cut.form, extents, {}, {{"x", 2}}), values);
    evaluate(e.derived.diagram, e.extents, wanted);
    const auto O = e.derived.diagram.outputs[0];
    EXPECT_GT(std::abs(values[O][0] - wanted[O][0]), 1e-6);
}

TEST(Parts, ALoopThatOnlyStoresMergesForItself) {
    const Derived d = derived_of(row_softmax);
    const Parted cut = with_parts(d, 0, 4);
    ASSERT_TRUE(cut.form.has_value()) << cut.refusal;
    EXPECT_THAT(kernel_names(*cut.form), ElementsAre("Y_part", "Y"));
    for (const Kernel& kernel : cut.form->kernels) EXPECT_TRUE(kernel.parts.any()) << kernel.name;
    EXPECT_THAT(verify(*cut.form), IsEmpty());
}

TEST(Parts, WhatCannotBeCutIsRefusedWithItsReason) {
    const auto refusal = [](const Derived& derived, std::size_t kernel = 0) {
        return with_parts(derived, kernel, 2).refusal;
    };
    EXPECT_EQ(refusal(tile_examples::maps().derived), "kernel maps streams no axis");
    Example no_merge = tile_examples::two_loops();  // it has no fold
    EXPECT_EQ(refusal(no_merge.derived), "the running mu has no merge");
    Example stored = tile_examples::weighted_mean();
    // What it stores of a chunk is computed from a value that later chunks change.
    const ArrayId R = stored.output("R", {0, 1});
    Kernel& kernel = stored.derived.kernels[0];
    std::get<Loop>(kernel.stages[0]).body.push_back(tile_examples::map(R, stored.self(*stored.diagram().find_array("mu"))));
    kernel.outputs.push_back(R);
    EXPECT_EQ(refusal(stored.derived), "R is stored from the running mu");
    Example whole = tile_examples::weighted_mean();
    const ArrayId W = whole.output("W", {1});
    whole.derived.kernels[0].stages.emplace_back(Block{{tile_examples::map(W, constant(1))}});
    EXPECT_EQ(refusal(whole.derived), "W runs over all of x at once");
    const Parted once = with_parts(tile_examples::weighted_mean().derived, 0, 2);
    EXPECT_EQ(refusal(*once.form), "kernel O_part runs one part of x already");
}

/// A machine of two cores, each of which has half of the way to memory.
Machine two_cores() {
    Machine m = load_machine("generic-cpu").value();
    m.cores.value = 2;
    return m;
}

TEST(Parts, OneRowIsSharedAmongCoresAndManyRowsAreNot) {
    const Derived d = derived_of(row_maximum);
    const auto one = choose_plan(d, sizes_of(d, 1, 1 << 22), two_cores());
    ASSERT_TRUE(one.ok()) << render(one.errors());
    ASSERT_THAT(one->kernels, SizeIs(2));
    const KernelSchedule& s = one->kernels[0].schedule();
    EXPECT_EQ(s.split.value, 2);
    EXPECT_EQ(s.threads.value, 2);
    EXPECT_THAT(s.split.reason, AllOf(HasSubstr("1 group for 2 cores"), HasSubstr("with the merge")));
    EXPECT_EQ(one->kernels[1].whole, 0U);
    for (const KernelPlan& kernel : one->kernels) EXPECT_THAT(verify(kernel.scheduled), IsEmpty());
    EXPECT_THAT(verify(one->tiles()), IsEmpty());
    const auto whole = choose_plan(d, sizes_of(d, 1, 1 << 22), two_cores(), {item("split", "c", 1)});
    ASSERT_TRUE(whole.ok());
    EXPECT_THAT(whole->kernels, SizeIs(1));
    EXPECT_LT(one->seconds(), whole->seconds());

    EXPECT_THAT(choose_plan(d, sizes_of(d, 4096, 1024), two_cores())->kernels, SizeIs(1)) << "groups fill the cores";
    EXPECT_THAT(choose_plan(d, sizes_of(d, 1, 1024), two_cores())->kernels, SizeIs(1))
        << "starting a core takes longer";
}

TEST(Parts, APrintedPlanGivenAsAFileIsTheSamePlan) {
    const Derived d = derived_of(row_softmax);
    const Extents e = sizes_of(d, 3, 1 << 12);
    const auto plan = choose_plan(d, e, two_cores(), {item("split", "c", 5)});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    ASSERT_THAT(plan->kernels, SizeIs(2));
    EXPECT_EQ(plan->kernels[0].schedule().split.value, 5);
    EXPECT_TRUE(plan->kernels[0].schedule().split.by_user);
    PlanOptions from_file;
    from_file.file = std::make_shared<const Source>(Source{"plan", to_string(*plan)});
    const auto again = choose_plan(d, e, two_cores(), {}, from_file);
    ASSERT_TRUE(again.ok()) << render(again.errors()) << to_string(*plan);
    ASSERT_THAT(again->kernels, SizeIs(2));
    for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(again->kernels[k].scheduled.sizes, plan->kernels[k].scheduled.sizes);
        EXPECT_EQ(again->kernels[k].schedule().atoms.size(), plan->kernels[k].schedule().atoms.size());
        EXPECT_EQ(again->kernels[k].scheduled.arena_values, plan->kernels[k].scheduled.arena_values);
    }
    // A file that names the whole kernel leaves it whole.
    from_file.file = std::make_shared<const Source>(Source{"plan", "kernel Y\n  threads 2\n"});
    const auto whole = choose_plan(d, sizes_of(d, 1, 1 << 22), two_cores(), {}, from_file);
    ASSERT_TRUE(whole.ok()) << render(whole.errors());
    EXPECT_THAT(whole->kernels, SizeIs(1));
}

TEST(Parts, ChoicesByHandThatBreakARule) {
    const Derived d = derived_of(row_maximum);
    const Extents e = sizes_of(d, 1, 1000);
    const auto said = [&](const std::vector<ScheduleItem>& items) {
        const auto plan = choose_plan(d, e, two_cores(), items);
        return plan.ok() ? std::string("nothing") : plan.errors().front().code + ": " + render(plan.errors());
    };
    EXPECT_THAT(said({item("split", "c", 9), item("stream", "c", 128)}),
                AllOf(HasSubstr("too-many-parts"), HasSubstr("split c = 9, but c has 8 chunks of 128"),
                      HasSubstr("the nearest legal number is 8, or chunks of at most 111")));
    EXPECT_EQ(said({item("split", "c", 8), item("stream", "c", 128)}), "nothing");
    EXPECT_EQ(said({item("split", "c", 9), item("stream", "c", 111)}), "nothing") << "the other way that was named";
    EXPECT_THAT(said({item("split", "r", 2)}), AllOf(HasSubstr("not-streamed"), HasSubstr("r cannot be split")));
    EXPECT_THAT(said({item("split", "c", 1001)}), HasSubstr("the nearest legal size is 1000"));
    EXPECT_THAT(said({item("split", "z", 2)}), HasSubstr("unknown-axis"));
    const Example no_merge = tile_examples::two_loops();
    const auto refused = choose_plan(no_merge.derived, no_merge.extents, two_cores(), {item("split", "x", 2)});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors().front().code, "no-split");
    EXPECT_THAT(refused.errors().front().message, HasSubstr("kernel P cannot be cut: the running mu has no merge"));
}

TEST(Parts, ASplitStandsBesideAKernelsNameOrIsOfAllKernels) {
    const Derived d = derived_of(row_maximum);
    const auto planned = [&](std::vector<ScheduleItem> items, const std::string& file = "") {
        PlanOptions options;
        if (!file.empty()) options.file = std::make_shared<const Source>(Source{"plan", file});
        return choose_plan(d, sizes_of(d, 1, 1 << 22), two_cores(), items, options);
    };
    const auto num_parts = [&](const std::vector<ScheduleItem>& items, const std::string& file = "") -> std::int64_t {
        const auto plan = planned(items, file);
        return plan.ok() ? plan->kernels.front().schedule().split.value : -1;
    };
    const auto code = [&](const std::vector<ScheduleItem>& items) {
        const auto plan = planned(items);
        return plan.ok() ? std::string("none") : plan.errors().front().code;
    };
    const auto of = [&](const std::string& kernel, std::int64_t value, const std::string& axis = "c") {
        ScheduleItem out = item("split", axis, value);
        out.kernel = kernel;
        return out;
    };
    EXPECT_EQ(num_parts({of("", 3)}), 3);
    EXPECT_EQ(num_parts({of("L", 3)}), 3) << "the kernel that is cut";
    EXPECT_EQ(num_parts({of("L_part", 3)}), 3) << "the kernel of its parts";
    EXPECT_EQ(num_parts({of("L", 5), of("", 3)}), 5) << "what is said of one kernel goes first";
    EXPECT_EQ(num_parts({}, "split c 3\n"), 3);
    EXPECT_EQ(num_parts({of("", 5)}, "split c 3\n"), 3) << "a file goes first";
    ScheduleItem rows = item("rows", "", 4);
    rows.kernel = "L";
    EXPECT_EQ(num_parts({rows}), 1) << "who names the kernel names it as it is";
    EXPECT_EQ(num_parts({rows, of("", 3)}), 3) << "but where a split is said, it is the merge that has the name";
    EXPECT_EQ(num_parts({of("", 3)}, "kernel L\n  rows 4\n"), 1);
    EXPECT_EQ(num_parts({of("", 3)}, "kernel L\n  rows 4\nkernel L_part\n  split c 2\n"), 2);
    EXPECT_EQ(code({of("L", 3, "r")}), "not-streamed");
    EXPECT_EQ(code({of("L_part", 3, "z")}), "unknown-axis");
    EXPECT_EQ(code({of("L", (1 << 22) + 1)}), "size-out-of-range");
    EXPECT_EQ(code({of("L", 3), of("L_part", 2)}), "duplicate-schedule");
    EXPECT_EQ(code({of("M", 3)}), "unknown-kernel");
    EXPECT_EQ(code({of("L_part", 1)}), "unknown-kernel");
}

/// Faults of the kernel under a schedule that `change` changes; "": none is broken.
template <class F>
std::string first_broken_rule(const ScheduledKernel& k, F change) {
    KernelSchedule s = k.schedule;
    change(s);
    const auto messages = verify(scheduled(k.program, 0, k.extents, s, k.unit));
    return messages.empty() ? std::string() : messages.front();
}

TEST(Parts, ScheduledKernelsKeepTheRules) {
    const Derived d = derived_of(row_maximum);
    const auto plan = choose_plan(d, sizes_of(d, 1, 1000), two_cores(), {item("split", "c", 4), item("stream", "c", 100)});
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const ScheduledKernel& k = plan->kernels[0].scheduled;
    const auto broken = [&](const auto& change) { return first_broken_rule(k, change); };
    EXPECT_THAT(verify(k), IsEmpty());
    EXPECT_THAT(broken([](KernelSchedule& s) { s.split.value = 3; }),
                HasSubstr("its stream is cut in 3 parts, where its program has 4"));
    EXPECT_THAT(broken([](KernelSchedule& s) { s.stream.begin()->second.value = 500; }),
                HasSubstr("its stream is cut in 4 parts, but c has 2 chunks of 500: 2 parts fit"));
    EXPECT_THAT(broken([](KernelSchedule& s) { s.roles.push_back({"producer", 4}); }),
                HasSubstr("it has role producer: a CPU's threads each run whole groups, and have no roles"));
    EXPECT_THAT(broken([](KernelSchedule& s) { s.slots[2] = {-1, 1, 1}; }),
                HasSubstr("has order 1, 1 ahead: a CPU's core runs statements one after the other, as they stand"));
    EXPECT_EQ(broken([](KernelSchedule& s) { s.slots[2] = {}; }), "") << "the default, written out";
    EXPECT_THAT(broken([](KernelSchedule& s) { s.places[0].stages = 2; }),
                HasSubstr("has 2 stages, and can have 1 alone: a CPU's loads are done when they return"));
    SizedProgram tiles = plan->tiles();
    tiles.sizes[0].stream[*d.diagram.find_axis("c")] = 500;
    EXPECT_THAT(verify(tiles), ElementsAre(HasSubstr("4 parts of c cannot each have one of 2 chunks")));
}

TEST(Parts, WhatBreaksTheRulesOfABlockIsSaidOfABlock) {
    const Derived d = derived_of(row_maximum);
    const auto plan = choose_plan(d, sizes_of(d, 1024, 1000), load_machine("h200").value());
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const ScheduledKernel& k = plan->kernels[0].scheduled;
    const auto broken = [&](const auto& change) { return first_broken_rule(k, change); };
    EXPECT_THAT(verify(k), IsEmpty());
    EXPECT_THAT(
        broken([](KernelSchedule& s) { s.roles.push_back({"producer", 4}); }),
        HasSubstr("it has role producer: a block's warps all run every statement where no bulk copies bring operands"));
    EXPECT_THAT(broken([](KernelSchedule& s) { s.slots[2] = {-1, 1, 1}; }),
                HasSubstr("1 ahead: a GPU's block runs statements one after the other, as they stand"));
    EXPECT_THAT(broken([](KernelSchedule& s) { s.places[0].stages = 2; }),
                HasSubstr("has 2 stages, and can have 1 alone: a block's loads are done before its warps go on"));
}

TEST(Parts, TheRoleThatCopiesDoesNothingElse) {
    const Derived d = derived_of(
        "matmul(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n");
    const Extents extents = *bind_sizes(d.diagram, {{"m", 512}, {"n", 512}, {"k", 512}});
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"a.schedule", "warps 8\nrole copies 4\nstream k = 64\n"});
    const auto plan = choose_plan(d, extents, load_machine("h200").value(), {}, options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    const ScheduledKernel& k = plan->kernels[0].scheduled;
    ASSERT_NE(k.producer_role(), nullptr);
    EXPECT_THAT(verify(k), IsEmpty());
    EXPECT_EQ(k.num_threads(), 384);
    const auto names = statement_names(*k.kernel);
    const auto load = StepId::of(std::find(names.begin(), names.end(), "load A") - names.begin());
    const auto broken = [&](const auto& change) { return first_broken_rule(k, change); };
    EXPECT_THAT(
        broken([&](KernelSchedule& s) { s.slots.erase(load); }),
        HasSubstr("load A runs outside of role copies, which asks for the copies of operands and does nothing else"));
    EXPECT_THAT(broken([&](KernelSchedule& s) { s.slots[StepId::of(load + 2)] = {0, 0, 0}; }),
                HasSubstr("runs in role copies"));
    EXPECT_THAT(broken([&](KernelSchedule& s) { s.roles[0].workers = 3; }), HasSubstr("not whole warpgroups of 4"));
    EXPECT_THAT(broken([&](KernelSchedule& s) { s.roles[0].workers = 12; }),
                HasSubstr("of which 8 warps are a multiple"));
    EXPECT_THAT(broken([&](KernelSchedule& s) { s.roles.push_back({"more", 4}); }),
                HasSubstr("role more beside role copies"));
    options.file = std::make_shared<const Source>(Source{"a.schedule", "warps 8\nrole copies 64\n"});
    const auto many = choose_plan(d, extents, load_machine("h200").value(), {}, options);
    ASSERT_FALSE(many.ok());
    EXPECT_EQ(many.errors().front().code, "too-many-warps");
}

TEST(Parts, RegistersOfRolesAreTheBlocks) {
    for (const auto& [computing, copying] : {std::pair{4, 4}, {8, 4}, {12, 4}, {16, 4}}) {
        const RoleRegisters r = role_registers(65536, computing, copying);
        EXPECT_LE(32 * (computing + copying) * r.launch, 65536);
        EXPECT_LE(computing * r.computing + copying * r.copying, (computing + copying) * r.launch);
        EXPECT_GE(r.copying, 32);
        EXPECT_EQ(r.computing % 8 + r.copying % 8 + r.launch % 8, 0);
    }
    EXPECT_EQ(role_registers(65536, 4, 4).computing, role_registers(65536, 4, 4).launch) << "nothing to share out";
    // The kernels of FlashAttention-3 and CUTLASS have 160 and 32 for twelve consumer warps, too. For eight they have
    // 240 and 24, which leaves the producer too few for a queue of groups.
    EXPECT_EQ(role_registers(65536, 8, 4).computing, 232);
    EXPECT_EQ(role_registers(65536, 8, 4).copying, 40);
    EXPECT_EQ(role_registers(65536, 12, 4).computing, 160);
    EXPECT_EQ(role_registers(65536, 12, 4).copying, 32);
}

TEST(Parts, RolesAndSlotsPrintAndParse) {
    const Derived d = derived_of(row_maximum);
    const auto plan = choose_plan(d, sizes_of(d, 64, 1000), two_cores());
    ASSERT_TRUE(plan.ok());
    const ScheduledKernel& k = plan->kernels[0].scheduled;
    EXPECT_THAT(to_string(*k.program, *k.kernel, k.schedule),
                Not(AnyOf(HasSubstr("role"), HasSubstr("slot"), HasSubstr("split"))));
    KernelSchedule s = k.schedule;
    s.roles = {{"producer", 1, "", true}, {"consumer", 8, "", true}};
    const auto names = statement_names(*k.kernel);
    const auto of = [&](const std::string& name) {
        return StepId::of(std::find(names.begin(), names.end(), name) - names.begin());
    };
    s.slots = {{of("load X"), {0, 0, 1}}, {of("L_M"), {1, 3, 0}}};
    const std::string text = to_string(*k.program, *k.kernel, s);
    EXPECT_THAT(text, AllOf(HasSubstr("role consumer"), HasSubstr("order 0, role producer, stage_offset 1"),
                            HasSubstr("order 3, role consumer")));
    const auto parsed = schedules_in(text, *k.program);
    ASSERT_TRUE(parsed.ok()) << render(parsed.errors());
    EXPECT_EQ(parsed->front().roles, s.roles);
    EXPECT_EQ(parsed->front().slots, s.slots);
    const auto code = [&](const std::string& line) {
        const auto wrong = schedules_in("kernel L\n  role one 1\n  " + line + "\n", *k.program);
        return wrong.ok() ? "none" : wrong.errors().front().code;
    };
    EXPECT_EQ(code("slot nobody order 1"), "unknown-statement");
    EXPECT_EQ(code("slot load X role two"), "unknown-role");
    EXPECT_EQ(code("slot load X sideways 1"), "bad-schedule");
    EXPECT_EQ(code("slot load X order 1 2"), "bad-schedule");
    EXPECT_EQ(code("slot load X position -1"), "bad-schedule");
    EXPECT_EQ(code("slot load X order 1.5"), "bad-schedule");
    EXPECT_EQ(code("slot load X order 4097"), "bad-schedule") << "too large";
    EXPECT_EQ(code("slot load X order 1"), "none");
    EXPECT_EQ(code("slot L_M role one 1"), "bad-schedule");
    EXPECT_EQ(code("role two none"), "bad-schedule");
    EXPECT_EQ(code("role 2"), "bad-schedule") << "no name";
    EXPECT_EQ(code("role two 0"), "bad-schedule-value");
    EXPECT_EQ(code("role one 2"), "duplicate-schedule");
    EXPECT_EQ(code("split c 2"), "bad-schedule") << "this kernel's stream is whole";
    EXPECT_EQ(code("split c 1"), "none");
    // A plan from such a file is refused on a CPU.
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"a", text});
    const auto refused = choose_plan(d, sizes_of(d, 64, 1000), two_cores(), {}, options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors().front().code, "broken-schedule");
}

}  // namespace
}  // namespace napkin::test_parts
