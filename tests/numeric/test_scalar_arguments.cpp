// Every example with arguments in place of its numbers: a scale, a temperature, a cap or an epsilon that is known only
// as the kernel runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "check/small_sizes.hpp"
#include "derive/derive.hpp"
#include "lower/rules.hpp"
#include "machine/machine.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/examples.hpp"
#include "support/parsed.hpp"
#include "support/scalar_arguments.hpp"

namespace napkin {
namespace {

const std::vector<ExampleDiagram>& examples() {
    static const std::vector<ExampleDiagram> all = example_diagrams();
    return all;
}

TEST(ScalarArguments, ComputeTheirDefinition) {
    constexpr double most_points = 60000;
    std::vector<cpu_case::Case> cases;
    std::vector<std::string> texts;
    std::size_t scalars = 0;
    for (const ExampleDiagram& example : examples()) {
        const WithScalarArguments twin = with_scalar_arguments(example.diagram);
        if (twin.values.empty()) continue;
        const Diagram diagram = napkin::parsed(twin.text);
        std::mt19937_64 random(cases.size());
        const auto sizes = small_sizes(diagram, random, most_points);
        ASSERT_TRUE(sizes.has_value()) << twin.text;
        cases.push_back(
            cpu_case::make_case(diagram, extents_of(diagram, *sizes), cases.size(), fmt::format("s{}_", cases.size())));
        cases.back().scalars = twin.values;
        texts.push_back(example.name + "\n" + twin.text);
        scalars += twin.values.size();
    }
    EXPECT_GT(cases.size(), examples().size() / 2);
    EXPECT_GT(scalars, cases.size());
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(failures[k], "") << texts[k] << cpu_case::describe(cases[k]);
}

class ScalarArgumentsOnHopper : public testing::TestWithParam<std::size_t> {};

/// In 16 bits, of which products run on the tensor cores.
TEST_P(ScalarArgumentsOnHopper, HaveALegalPlan) {
    static const Machine hopper = load_machine("h200").value();
    const ExampleDiagram& example = examples().at(GetParam());
    const WithScalarArguments twin = with_scalar_arguments(example.diagram);
    if (twin.values.empty()) GTEST_SKIP() << example.name << " has no numbers";
    Diagram diagram = napkin::parsed(twin.text);
    for (Array& array : diagram.arrays)
        if (array.type == DType::f32 && !twin.values.contains(array.name)) array.type = DType::f16;
    const auto extents = bind_sizes(diagram);
    ASSERT_TRUE(extents.ok()) << twin.text;
    const auto derived = derive(diagram);
    ASSERT_TRUE(derived.ok()) << twin.text;
    const Derived form = choose_form(*derived, *extents, hopper);
    const auto plan = choose_plan(form, *extents, hopper);
    ASSERT_TRUE(plan.ok()) << twin.text << render(plan.errors());
    for (const KernelPlan& kernel : plan->kernels) EXPECT_TRUE(verify(kernel.scheduled).empty()) << twin.text;
    EXPECT_FALSE(cuda::emit(plan->program()).text.empty());
}

INSTANTIATE_TEST_SUITE_P(Examples, ScalarArgumentsOnHopper, testing::Range<std::size_t>(0, examples().size()),
                         [](const auto& tested) { return examples().at(tested.param).name; });

}  // namespace
}  // namespace napkin
