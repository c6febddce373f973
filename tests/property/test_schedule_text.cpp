// Plans as text and back. What `napkin plan` prints of every example, with reductions cut by subloops and streams cut
// into parts too, reads back as the same schedule. It does so from a file and from the diagram's own text. Planning by
// it gives the same schedule and predicted time again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "lower/rules.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/examples.hpp"
#include "support/random_diagram.hpp"
#include "support/schedules.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

std::vector<KernelSchedule> as_file(const Plan& plan) {
    std::vector<KernelSchedule> out;
    for (const KernelPlan& kernel : plan.kernels) out.push_back(as_file(kernel.schedule()));
    return out;
}

/// The items as a `schedule` block of the diagram's text gives them.
Result<std::vector<ScheduleItem>> as_block(Diagram diagram, const std::vector<ScheduleItem>& items) {
    diagram.schedule = items;
    auto again = parse_diagram(std::make_shared<const Source>(Source{"a.nk", print(diagram)}));
    if (!again) return again.errors();
    return std::move(again->schedule);
}

std::string text_of(const TileProgram& program, const std::vector<KernelSchedule>& schedules) {
    std::string out;
    for (std::size_t k = 0; k < schedules.size(); ++k) out += to_string(program, program.kernels[k], schedules[k]);
    return out;
}

struct PlansRead {
    int plans = 0, blocks = 0, split = 0, subloops = 0;
    int idle = 0;  ///< kernels with fewer groups than cores
};

void expect_same_plan_again(const std::string& name, const Diagram& diagram, const Derived& derived,
                            const Extents& extents, const Machine& machine, const std::vector<ScheduleItem>& by_user,
                            const PlanOptions& options, PlansRead& seen) {
    const auto plan = choose_plan(derived, extents, machine, by_user, options);
    if (!plan) return;  // there is nothing to cut
    for (const KernelPlan& kernel : plan->kernels)
        for (const BrokenRule& rule : broken_rules(kernel.scheduled)) ADD_FAILURE() << name << ": " << rule.message;
    const std::string text = to_string(*plan);
    const TileProgram& program = *plan->kernels.at(0).scheduled.program;
    const std::vector<KernelSchedule> wanted = as_file(*plan);
    PlanOptions from_file = options;
    from_file.file = std::make_shared<const Source>(Source{"a.schedule", text});
    const auto items = parse_schedule_file(from_file.file);
    ASSERT_TRUE(items.ok()) << name << "\n" << render(items.errors()) << text;
    const auto read = schedule_overrides(*items, program);
    ASSERT_TRUE(read.ok()) << name << "\n" << render(read.errors()) << text;
    ASSERT_EQ(text_of(program, *read), text_of(program, wanted)) << name;
    ASSERT_EQ(*read, wanted) << name << "\n" << text;

    const auto by_file = choose_plan(derived, extents, machine, {}, from_file);
    ASSERT_TRUE(by_file.ok()) << name << "\n" << render(by_file.errors()) << text;
    ASSERT_EQ(text_of(program, as_file(*by_file)), text_of(program, wanted)) << name;
    ASSERT_EQ(as_file(*by_file), wanted) << name << "\n" << text << to_string(*by_file);
    ASSERT_EQ(by_file->seconds(), plan->seconds()) << name << "\n" << text << to_string(*by_file);
    // A random diagram may have a reduction over an axis of which its operand has no index, which the language refuses.
    if (as_block(diagram, {}).ok()) {
        const auto block = as_block(diagram, *items);
        ASSERT_TRUE(block.ok()) << name << "\n" << render(block.errors()) << text;
        ASSERT_EQ(*block, *items) << name << "\n" << text;
        const auto by_block = choose_plan(derived, extents, machine, *block, options);
        ASSERT_TRUE(by_block.ok()) << name << "\n" << render(by_block.errors()) << text;
        ASSERT_EQ(as_file(*by_block), wanted) << name << "\n" << text;
        ++seen.blocks;
    }
    ++seen.plans;
    for (const KernelSchedule& s : wanted) {
        seen.split += s.split.value > 1, seen.subloops += s.subloop.empty() ? 0 : 1;
        seen.idle += s.threads.value > 1 && s.threads.value < machine.num_cores();
    }
}

/// What the file says by hand is in the plan.
void expect_kept(const KernelSchedule& by_user, const KernelSchedule& planned, const std::string& name) {
    for (const auto& [axis, choice] : by_user.group) EXPECT_EQ(planned.group.at(axis).value, choice.value) << name;
    for (const auto& [axis, choice] : by_user.stream) EXPECT_EQ(planned.stream.at(axis).value, choice.value) << name;
    for (const AtomId i : by_user.atoms.ids())
        EXPECT_TRUE(!by_user.atoms[i].by_user || planned.atoms[i] == by_user.atoms[i]) << name << "atom " << i;
    for (const VariableId v : by_user.places.ids())
        EXPECT_TRUE(!by_user.places[v].by_user || planned.places[v] == by_user.places[v]) << name << "place " << v;
    EXPECT_TRUE(!by_user.panel_vectors.by_user || planned.panel_vectors == by_user.panel_vectors) << name;
    EXPECT_TRUE(!by_user.vector_axis.by_user || planned.vector_axis == by_user.vector_axis) << name;
}

TEST(ScheduleText, EveryPlanReadsBack) {
    std::mt19937_64 random(1);
    Machine machine = load_machine("generic-cpu").value();
    PlanOptions options;
    options.quick = true;
    PlansRead seen;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto derived = derive(example.diagram);
        ASSERT_TRUE(derived.ok()) << example.name;
        const auto extents = bind_sizes(derived->diagram);
        if (!extents) continue;
        for (int cut = 0; cut < 8; ++cut) {
            // A plan says as many threads as have groups: of few cores all, and of many often some.
            machine.cores.value = cut % 4 < 2 ? 2 : 64;
            std::vector<ScheduleItem> by_user;
            if (cut > 0) {
                const Axis& axis = derived->diagram.axes[AxisId::of(random() % derived->diagram.axes.size())];
                by_user.push_back({cut % 2 == 0 ? ChoiceKind::subloop : ChoiceKind::split, axis.name,
                                   1 + static_cast<std::int64_t>(random() % 5)});
            }
            expect_same_plan_again(example.name, example.diagram, *derived, *extents, machine, by_user, options, seen);
        }
    }
    fmt::print("{} plans, {} kernels of parts, {} with subloops, {} with idle cores\n", seen.plans, seen.split,
               seen.subloops, seen.idle);
    EXPECT_GT(seen.plans, 60);
    EXPECT_GT(seen.split, 10);
    EXPECT_GT(seen.subloops, 10);
    EXPECT_GT(seen.idle, 10);
}

/// Sizes of 1 to 9, or up to some hundreds.
Extents random_sizes(const Diagram& diagram, std::uint64_t seed) {
    Extents extents = random_extents(diagram, seed);
    for (const AxisId a : extents.ids())
        if (seed % 3 != 0 && !diagram.axes[a].size) extents[a] *= 29;
    return extents;
}

/// Checks a program of f32 or of mixed types.
void check_random(std::uint64_t seed, const Machine& machine, PlansRead& seen) {
    RandomDiagramOptions random;
    if (seed % 5 == 1) random.types = {DType::f32, DType::f16, DType::bf16};
    const Diagram diagram = random_diagram(seed, random);
    const Extents extents = random_sizes(diagram, seed);
    const auto derived = derive(diagram);
    ASSERT_TRUE(derived.ok()) << seed;
    expect_same_plan_again("seed " + std::to_string(seed), diagram, *derived, extents, machine, {}, {}, seen);
}

TEST(ScheduleText, EveryPlanOfARandomDiagramReadsBack) {
    Machine machine = load_machine("generic-cpu").value();
    PlansRead seen;
    const auto check = [&](std::uint64_t seed) {
        machine.cores.value = seed % 2 == 0 ? 2 : 16;
        check_random(seed, machine, seen);
    };
    for (std::uint64_t seed = 1; seed <= 280; ++seed) check(seed);
    check(2557);  // a tile is stored after a run of statements, and one that stands before the run reads it
    EXPECT_EQ(seen.plans, 281);
    EXPECT_GT(seen.blocks, 250);
    EXPECT_GT(seen.idle, 10);
}

// Blocks of one shape of those that fit, and kernels whose parts and merges stand in blocks of other shapes than their
// neighbours.
TEST(ScheduleText, EveryPlanOfARandomDiagramOnAGpuReadsBack) {
    const Machine gpu = load_machine("h200").value();
    PlansRead seen;
    for (std::uint64_t seed = 41; seed <= 118; ++seed) check_random(seed, gpu, seen);
    check_random(121, gpu, seen), check_random(145, gpu, seen);
    EXPECT_EQ(seen.plans, 80);
    EXPECT_GT(seen.split, 5);
}

TEST(ScheduleText, WhatIsLeftOfATamperedPlanIsKeptOrRefused) {
    std::mt19937_64 random(5);
    const Machine machine = load_machine("generic-cpu").value();
    std::map<std::string, int> ends;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        const Diagram diagram = random_diagram(seed);
        const Extents extents = random_sizes(diagram, seed);
        const Derived derived = derive(diagram).value();
        const Plan plan = choose_plan(derived, extents, machine).value();
        PlanOptions from_file;
        from_file.file = std::make_shared<const Source>(Source{"a.schedule", tampered(to_string(plan), random)});
        const auto again = choose_plan(derived, extents, machine, {}, from_file);
        ++ends[again.ok() ? "planned" : again.errors().front().code];
        if (!again) continue;
        const auto said = schedule_overrides(parse_schedule_file(from_file.file).value(),
                                             *again->kernels[0].scheduled.program);
        ASSERT_TRUE(said.ok()) << render(said.errors());
        for (std::size_t k = 0; k < said->size(); ++k) {
            const std::string name = "seed " + std::to_string(seed) + "\n" + from_file.file->text;
            expect_kept((*said)[k], again->kernels[k].schedule(), name);
            EXPECT_THAT(verify(again->kernels[k].scheduled), testing::IsEmpty()) << name;
        }
    }
    for (const auto& [end, count] : ends) fmt::print("{}: {}\n", end, count);
    EXPECT_GT(ends["planned"], 100);
    EXPECT_GT(ends["broken-schedule"], 20);
}

}  // namespace
}  // namespace napkin
