// The sizes of a plan beside their neighbours: the reasons that a plan prints speak for it.
#include <gtest/gtest.h>

#include <regex>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/examples.hpp"

namespace napkin {
namespace {

/// By how many per cent the reason says that half or twice the size is faster; 0 where neither is.
double faster_beside(const std::string& reason) {
    static const std::regex faster(R"(is ([0-9.e+]+)% faster)");
    double most = 0;
    for (auto found = std::sregex_iterator(reason.begin(), reason.end(), faster); found != std::sregex_iterator(); ++found)
        most = std::max(most, std::stod((*found)[1]));
    return most;
}

TEST(PlanSizes, AreAtMostATenthSlowerThanTheirHalvesAndDoubles) {
    Machine machine = load_machine("generic-cpu").value();
    int sizes = 0, turn = 0;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto extents = bind_sizes(example.diagram);
        if (!extents) continue;
        // A whole row of two short axes lies behind a ragged one only for narrow vectors.
        for (const int bits : {128, 128 << (1 + turn++ % 2)}) {
            machine.vector_bits = {static_cast<double>(bits), "test"};
            machine.cores = {turn % 3 == 0 ? 8.0 : 2.0, "test"};
            for (Level& level : machine.levels)
                if (level.instances.value > 1) level.instances = machine.cores;
            const Derived derived = derive(example.diagram).value();
            const auto plan = choose_plan(choose_form(derived, *extents, machine), *extents, machine);
            ASSERT_TRUE(plan.ok()) << example.name;
            for (const KernelPlan& kernel : plan->kernels)
                for (const auto* chosen : {&kernel.schedule().group, &kernel.schedule().stream})
                    for (const auto& [axis, choice] : *chosen) {
                        ++sizes;
                        EXPECT_LE(faster_beside(choice.reason), 10)
                            << example.name << ", " << bits << " bits, " << machine.cores.value
                            << " cores: " << derived.diagram.axis(axis).name << " " << choice.value << ": "
                            << choice.reason;
                    }
        }
    }
    EXPECT_GT(sizes, 250);
}

}  // namespace
}  // namespace napkin
