// What a bound takes from the program that runs.
#include "check/execution.hpp"

#include <gtest/gtest.h>

#include "plan/choose.hpp"
#include "support/parsed.hpp"

namespace napkin::test_execution {
namespace {

TEST(Execution, KeepsWhatIsWrittenTwiceAsTheOneArrayThatTheProgramHas) {
    const Derived derived = derived_from(
        "f(W[h, n]: f16) -> A, B\n"
        "    L[h]: f16 = sum(n) W[h, n]\n    A = sum(h) L[h]\n"
        "    K[h]: f16 = sum(n) W[h, n]\n    B = sum(h) K[h] * K[h]\nsizes h = 11, n = 2\n");
    const Diagram& source = derived.source;
    const Extents extents = bind_sizes(derived.diagram).value();
    const auto plan = choose_plan(derived, extents, load_machine("generic-cpu").value());
    ASSERT_TRUE(plan.ok());
    const Execution execution = execution_of(source, bind_sizes(source).value(), plan->tiles());
    EXPECT_EQ(execution.kept[*source.find_array("L")], DType::f16);
    EXPECT_EQ(execution.kept[*source.find_array("K")], DType::f16);
}

}  // namespace
}  // namespace napkin::test_execution
