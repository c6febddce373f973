// Loops of a reduction that are unrolled together load no more operands than a thread has registers for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "plan/choose.hpp"
#include "schedule/scheduled.hpp"
#include "support/many_axes.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_unrolled_loops {
namespace {

/// In blocks of two warps, each of whose threads has rows for values of several lanes.
Plan planned(const std::string& text) {
    const Diagram diagram = parse_diagram(std::make_shared<Source>(Source{"a.nk", text})).value();
    const std::vector<ScheduleItem> by_user{{choice_kind("warps"), "", 2}};
    return choose_plan(derive(diagram).value(), bind_sizes(diagram).value(), load_machine("h200").value(), by_user).value();
}

/// Those of the reduction's three loops that keep their turns where tiles may have so many registers.
std::size_t kept_loops(ScheduledKernel kernel, int registers) {
    kernel.unit.registers = registers;
    for (const Step& step : kernel.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (compute && compute->reduce) return first_unrolled(kernel, step, kernel.atom(step).reduced);
    }
    throw std::runtime_error("no reduction");
}

TEST(UnrolledLoops, TakeNoMoreOperandsThanThereAreRegistersFor) {
    std::string text = many_axes::strided_convolution;
    text.replace(text.find("o = 8"), 5, "o = 64");
    Plan plan = planned(text);
    ScheduledKernel& kernel = plan.kernels[0].scheduled;
    EXPECT_EQ(kept_loops(kernel, 10), 2U) << "the innermost may always be unrolled";
    EXPECT_EQ(kept_loops(kernel, 40), 2U) << "nine iterations load 36 values where there are two rows of two vectors";
    EXPECT_EQ(kept_loops(kernel, 200), 1U);
    EXPECT_EQ(kept_loops(kernel, 10000), 0U);
    kernel.unit.registers = 40;
    EXPECT_THAT(cuda::emit(plan.program()).text,
                testing::ContainsRegex("NAPKIN_UNROLL_BY\\(1\\)\n *for \\(Index u = 0; u < 3; \\+\\+u\\)"));
}

}  // namespace
}  // namespace napkin::test_unrolled_loops
