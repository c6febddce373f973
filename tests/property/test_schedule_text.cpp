// Plans as text and back: what `napkin plan` prints of every example, with reductions cut by subloops and streams cut into parts too, reads
// back as the same schedule, from a file and from the diagram's own text, and planning by it gives it again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/examples.hpp"
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

TEST(ScheduleText, EveryPlanReadsBack) {
    std::mt19937_64 random(1);
    Machine machine = load_machine("generic-cpu").value();
    machine.cores.value = 2;
    PlanOptions options;
    options.quick = true;
    int plans = 0, split = 0, subloops = 0;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto derived = derive(example.diagram);
        ASSERT_TRUE(derived.ok()) << example.name;
        const auto extents = bind_sizes(derived->diagram);
        if (!extents) continue;
        for (int cut = 0; cut < 8; ++cut) {
            std::vector<ScheduleItem> by_hand;
            if (cut > 0) {
                const Axis& axis = derived->diagram.axes[random() % derived->diagram.axes.size()];
                by_hand.push_back(
                    {cut % 2 == 0 ? "subloop" : "split", axis.name, 1 + static_cast<std::int64_t>(random() % 5), "", {}});
            }
            const auto plan = choose_plan(*derived, *extents, machine, by_hand, options);
            if (!plan) continue;  // there is nothing to cut
            const std::string text = to_string(*plan);
            const TileProgram& program = *plan->kernels.at(0).scheduled.program;
            const std::vector<KernelSchedule> wanted = as_file(*plan);
            PlanOptions from_file = options;
            from_file.file = std::make_shared<const Source>(Source{"a.schedule", text});
            const auto items = parse_schedule_file(from_file.file);
            ASSERT_TRUE(items.ok()) << example.name << "\n" << render(items.errors()) << text;
            const auto read = schedules_by_hand(*items, program);
            ASSERT_TRUE(read.ok()) << example.name << "\n" << render(read.errors()) << text;
            ASSERT_EQ(*read, wanted) << example.name << "\n" << text;

            const auto block = as_block(example.diagram, *items);
            ASSERT_TRUE(block.ok()) << example.name << "\n" << render(block.errors()) << text;
            ASSERT_EQ(*block, *items) << example.name << "\n" << text;

            const auto by_file = choose_plan(*derived, *extents, machine, {}, from_file);
            ASSERT_TRUE(by_file.ok()) << example.name << "\n" << render(by_file.errors()) << text;
            ASSERT_EQ(as_file(*by_file), wanted) << example.name << "\n" << text << to_string(*by_file);
            const auto by_block = choose_plan(*derived, *extents, machine, *block, options);
            ASSERT_TRUE(by_block.ok()) << example.name << "\n" << render(by_block.errors()) << text;
            ASSERT_EQ(as_file(*by_block), wanted) << example.name << "\n" << text;
            ++plans;
            for (const KernelSchedule& s : wanted) split += s.split.value > 1, subloops += s.subloop.empty() ? 0 : 1;
        }
    }
    fmt::print("{} plans, {} kernels of parts, {} with subloops\n", plans, split, subloops);
    EXPECT_GT(plans, 60);
    EXPECT_GT(split, 10);
    EXPECT_GT(subloops, 10);
}

}  // namespace
}  // namespace napkin
