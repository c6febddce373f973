// Reductions that the warps of a GPU's block share, and tiles that stay at the core from one pass over them to the
// next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_shared_reductions {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string row_shares = "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\n";

ScheduleItem size_of(const std::string& kind, const std::string& axis, std::int64_t value) {
    return {choice_kind(kind), axis, value};
}

/// Tiles of so many rows of so many values, on a GPU or on a CPU.
ScheduledKernel planned(const std::string& text, std::int64_t rows, std::int64_t values,
                        const std::string& machine = "h200") {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    const Derived derived = derive(*diagram).value();
    PlanOptions options;
    options.quick = true;
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {{"r", 4096}, {"c", 4096}}).value(),
                                  load_machine(machine).value(),
                                  {size_of("group", "r", rows), size_of("stream", "c", values)}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    EXPECT_THAT(verify(plan->kernels[0].scheduled), IsEmpty());
    return plan->kernels[0].scheduled;
}

std::vector<std::string> shared_in(const ScheduledKernel& k) {
    std::vector<std::string> out;
    const auto names = atom_names(*k.kernel);
    for (const AtomId i : k.schedule.atoms.ids())
        if (k.schedule.atoms[i].shared) out.push_back(names[i]);
    return out;
}

std::vector<bool> staying_loads(const ScheduledKernel& k) {
    std::vector<bool> out;
    for (const Step& step : k.steps)
        if (std::holds_alternative<Load>(*step.statement)) out.push_back(step.stays);
    return out;
}

TEST(SharedReductions, WarpsThatWouldHaveNoRowShareThoseThatThereAre) {
    EXPECT_THAT(shared_in(planned(row_shares, 1, 4096)), ElementsAre("Y_M", "Y_Z_acc"));
    EXPECT_THAT(shared_in(planned(row_shares, 2, 4096)), ElementsAre("Y_M", "Y_Z_acc"));
    EXPECT_THAT(shared_in(planned(row_shares, 16, 512)), IsEmpty()) << "each warp has rows of its own";
    EXPECT_THAT(shared_in(planned(row_shares, 1, 128)), IsEmpty()) << "four vectors are not worth a barrier";
    EXPECT_THAT(shared_in(planned(row_shares, 1, 4096, "generic-cpu")), IsEmpty());
}

TEST(SharedReductions, EachWarpHasItsTermsAndItsPlace) {
    const ScheduledKernel k = planned(row_shares, 2, 4096);
    const auto trees = reduction_trees(k);
    int shared = 0;
    for (const Step& step : k.steps) {
        if (step.atom < 0 || !k.atom(step).shared) {
            EXPECT_EQ(k.partials(step), 0);
            continue;
        }
        ++shared;
        const ReductionTree& tree = trees[static_cast<std::size_t>(step.atom)];
        EXPECT_EQ(tree.lanes * tree.blocks, 32 * k.atom(step).vectors * k.schedule.warps.value);
        EXPECT_EQ(tree.chain * tree.lanes * tree.blocks, 4096);
        EXPECT_TRUE(step.synchronizes_inside);
        const std::int64_t of_warp = k.layout(std::get<Compute>(*step.statement).variable).count;
        EXPECT_GE(of_warp, 2);
        EXPECT_EQ(k.partials(step), of_warp * k.schedule.warps.value);
        EXPECT_LE(k.partials_offset + k.partials(step), k.arena_values);
    }
    EXPECT_EQ(shared, 2);
}

TEST(SharedReductions, AScheduleWithoutOneOfItsBarriersIsRefused) {
    ScheduledKernel k = planned(row_shares, 1, 4096);
    std::vector<std::string> faults;
    for (Step& step : k.steps)
        for (const auto barrier : {&Step::synchronizes, &Step::synchronizes_inside}) {
            if (!std::exchange(step.*barrier, false)) continue;
            ASSERT_EQ(verify(k).size(), 1u);
            faults.push_back(verify(k).front());
            step.*barrier = true;
        }
    EXPECT_THAT(verify(k), IsEmpty());
    EXPECT_THAT(
        faults,
        testing::Contains(
            "kernel Y: the statement of Y_M reads the parts of Y_M before all warps are done with it in that of Y_M"));
    EXPECT_THAT(faults, testing::Contains(
                            "kernel Y: the statement of Y_M reads X before all warps are done with it in that of X"));
}

TEST(SharedReductions, PrintAndParse) {
    const ScheduledKernel k = planned(row_shares, 1, 4096);
    const std::string text = to_string(*k.program, *k.kernel, k.schedule);
    EXPECT_THAT(text, HasSubstr("vectors c 4 across shared"));
    const auto read = schedules_in(text, *k.program);
    ASSERT_TRUE(read.ok()) << render(read.errors());
    EXPECT_EQ(read->front().atoms, as_file(k.schedule).atoms);
}

TEST(SharedReductions, AreOfABlockAndAcrossLanesAndInABuffer) {
    const auto broken = [](const ScheduledKernel& k, const auto& change) {
        KernelSchedule s = k.schedule;
        change(s);
        const auto messages = verify(scheduled(k.program, 0, k.extents, s, k.unit));
        return messages.empty() ? std::string() : messages.front();
    };
    const ScheduledKernel k = planned(row_shares, 1, 4096), cpu = planned(row_shares, 1, 4096, "generic-cpu");
    const auto names = atom_names(*k.kernel), cpu_names = atom_names(*cpu.kernel);
    const auto of = [](const std::vector<std::string>& list, const std::string& name) {
        return AtomId::of(std::find(list.begin(), list.end(), name) - list.begin());
    };
    EXPECT_THAT(broken(cpu, [&](KernelSchedule& s) { s.atoms[of(cpu_names, "Y_M")].shared = true; }),
                HasSubstr("Y_M is shared by warps, and a CPU's thread computes alone"));
    EXPECT_THAT(broken(k, [&](KernelSchedule& s) { s.atoms[of(names, "Y")].shared = true; }),
                HasSubstr("Y is shared by warps, and only what is reduced across lanes can be"));
    EXPECT_THAT(broken(k, [&](KernelSchedule& s) { s.atoms[of(names, "Y_M")].shared = false; }),
                HasSubstr("cannot lie in registers of all threads: some statement accesses it otherwise"));
    const auto in_buffers = [](KernelSchedule& s) {
        for (Place& place : s.places)
            if (place.holding == MemorySpace::lanes) place.holding = MemorySpace::buffer;
    };
    EXPECT_EQ(broken(k, [&](KernelSchedule& s) { s.atoms[of(names, "Y_M")].shared = false, in_buffers(s); }), "");
    // A result that could be written where it goes is not, where warps share it.
    const ScheduledKernel sums = planned("f(X[r, c]) -> Y[r]\n    Y[r] = max(c) X[r, c]\n", 2, 4096);
    ASSERT_THAT(shared_in(sums), Not(IsEmpty()));
    const auto& variables = sums.kernel->variables;
    const auto y = std::find_if(variables.begin(), variables.end(), [](const Variable& v) { return v.name == "Y"; });
    const auto target = VariableId::of(y - variables.begin());
    EXPECT_EQ(sums.schedule.places.at(target).holding, MemorySpace::buffer);
    EXPECT_THAT(broken(sums, [&](KernelSchedule& s) { s.places[target].holding = MemorySpace::global; }),
                HasSubstr("is shared by warps, which meet in a buffer, and it is held as global"));
}

TEST(StayingTiles, ATileIsLoadedOnceWhereNoLoopCutsIt) {
    EXPECT_THAT(staying_loads(planned(row_shares, 1, 4096)), ElementsAre(false, true));
    EXPECT_THAT(staying_loads(planned(row_shares, 1, 2048)), ElementsAre(false, false))
        << "the second pass begins with the first chunk";
    const ScheduledKernel k = planned(row_shares, 1, 4096);
    const std::string text = cuda::emit({{k}}).text;
    EXPECT_EQ(text.find("copy_in("), text.rfind("copy_in(")) << text;
    // It lives from its load to its last use, so that nothing takes its place.
    for (const VariableId v : k.layouts.ids())
        if (k.kernel->variables[v].name == "X") {
            ASSERT_EQ(k.layouts[v].lives.size(), 1u);
            EXPECT_EQ(k.layouts[v].lives[0].last, k.steps.back().position);
        }
}

TEST(StayingTiles, WhatAMaskMayLeaveOutIsLoadedAgain) {
    // No chunk of c has a value for the first row, as far as the loop's bounds say.
    const ScheduledKernel k = planned(
        "f(X[r, c]) -> Y[r, c]\n    S[r, c] = where(c < r, X[r, c], -inf)\n"
        "    Y[r, c] = softmax(c) S[r, c]\n",
        1, 4096);
    std::vector<bool> never(staying_loads(k).size(), false);
    for (const ScheduledLoop& loop : k.loops)
        if (iterations_of(k, loop).least == 0) {
            EXPECT_EQ(staying_loads(k), never);
            return;
        }
    ADD_FAILURE() << "no loop is bounded by the mask";
}

}  // namespace
}  // namespace napkin::test_shared_reductions
