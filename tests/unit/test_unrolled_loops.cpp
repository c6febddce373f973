// Loops of a reduction that are unrolled together load no more operands than a thread has registers for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "plan/choose.hpp"
#include "schedule/unrolled_loops.hpp"
#include "support/many_axes.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_unrolled_loops {
namespace {

Plan planned(const char* text, std::int64_t blocks) {
    const Diagram diagram = parse_diagram(std::make_shared<Source>(Source{"a.nk", text})).value();
    const std::vector<ScheduleItem> by_hand{{choice_kind("warps"), "", 8}, {choice_kind("blocks"), "", blocks}};
    return choose_plan(derive(diagram).value(), bind_sizes(diagram).value(), load_machine("h200").value(), by_hand).value();
}

/// Of the reduction's loops those that keep their turns.
std::size_t kept_loops(const Plan& plan) {
    for (const KernelPlan& k : plan.kernels)
        for (const Step& step : k.scheduled.steps) {
            const auto* compute = std::get_if<Compute>(step.statement);
            if (compute && compute->reduce) return first_unrolled(k.scheduled, step, k.scheduled.atom(step).reduced);
        }
    throw std::runtime_error("no reduction");
}

TEST(UnrolledLoops, TakeNoMoreOperandsThanThereAreRegistersFor) {
    // 80 registers and 128: with four rows, nine turns of a window's loops load 45 values.
    const Plan narrow = planned(many_axes::strided_convolution, 3), wide = planned(many_axes::strided_convolution, 2);
    EXPECT_GT(kept_loops(narrow), kept_loops(wide));
    EXPECT_THAT(cuda::emit(narrow.program()).text,
                testing::ContainsRegex("NAPKIN_UNROLL_BY\\(1\\)\n *for \\(Index u = 0; u < 3; \\+\\+u\\)"));
}

}  // namespace
}  // namespace napkin::test_unrolled_loops
