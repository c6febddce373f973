// The time of kernels without tensor cores on a GPU, and what is planned by it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/explain.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_simulate_blocks {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;

const std::string softmax_of_rows = "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\n";
const std::string layernorm_of_rows =
    "f(X[r, c], G[c], B[c]) -> Y[r, c]\n    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c])\n";
const std::string logsumexp_of_rows = "f(X[r, c]) -> L[r]\n    L[r] = logsumexp(c) X[r, c]\n";

KernelPlan planned_rows(const std::string& text, std::int64_t rows, std::int64_t columns,
                        const std::vector<ScheduleItem>& by_user = {}) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    const Derived derived = derive(*diagram).value();
    const Extents extents = bind_sizes(derived.diagram, {{"r", rows}, {"c", columns}}).value();
    const Machine machine = load_machine("h200").value();
    const Derived form = choose_form(derived, extents, machine, by_user, nullptr, FormTimes::of_plans);
    const auto plan = choose_plan(form, extents, machine, by_user);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return plan->kernels.at(0);
}

ScheduleItem fixed(const std::string& kind, const std::string& axis, std::int64_t value) {
    return {choice_kind(kind), axis, value};
}

struct Measured {
    std::string text;
    std::int64_t rows, columns;
    double microseconds;
};

/// Medians of one H200 on 2026-11-30, the first on 2026-11-22, between two events, the caches flushed before each.
TEST(BlocksTime, IsNearWhatWasMeasured) {
    for (const Measured& m : std::vector<Measured>{{softmax_of_rows, 64, 64, 4.54},
                                                   {softmax_of_rows, 1024, 1024, 6.34},
                                                   {softmax_of_rows, 4096, 4096, 38.14},
                                                   {softmax_of_rows, 8192, 16384, 280.13},
                                                   {softmax_of_rows, 32768, 1024, 70.66},
                                                   {softmax_of_rows, 65536, 64, 17.50},
                                                   {layernorm_of_rows, 1024, 1024, 6.78},
                                                   {layernorm_of_rows, 8192, 4096, 74.11},
                                                   {layernorm_of_rows, 32768, 1024, 72.90},
                                                   {logsumexp_of_rows, 4096, 8192, 43.42}}) {
        const double predicted = planned_rows(m.text, m.rows, m.columns).time.seconds * 1e6;
        EXPECT_THAT(predicted / m.microseconds, AllOf(Ge(1 / 1.4), Le(1.4))) << m.rows << " × " << m.columns << ":\n"
                                                                             << m.text;
    }
}

/// Whole rows, several blocks of few warps an SM: while one waits for memory others compute.
TEST(BlocksTime, LeadsToWholeRowsInManyBlocks) {
    const KernelPlan plan = planned_rows(softmax_of_rows, 32768, 1024);
    const SizesByAxis& stream = plan.schedule().stream;
    EXPECT_TRUE(stream.empty() || stream.begin()->second.value == 1024);
    EXPECT_GE(plan.scheduled.unit.blocks_a_core, 4);
    EXPECT_EQ(plan.scheduled.program->diagram.axis(plan.schedule().vector_axis).name, "c");
}

TEST(BlocksTime, HasRegistersForAllBlocksOfACore) {
    const KernelPlan plan = planned_rows(softmax_of_rows, 32768, 1024);
    const std::string source = cuda::emit({{plan.scheduled}}, "k").text;
    EXPECT_THAT(source, HasSubstr("__launch_bounds__(" + std::to_string(32 * plan.schedule().warps.value) + ", " +
                                  std::to_string(plan.scheduled.unit.blocks_a_core) + ")"));
}

/// A block that has a core for itself waits for every load; four of them hide most of that.
TEST(BlocksTime, FewerThanFillACoreTakeLonger) {
    const auto seconds = [](std::int64_t rows) { return planned_rows(softmax_of_rows, rows, 4096).time.seconds; };
    EXPECT_LT(seconds(4096), 4 * seconds(1024)) << "the launch and the first loads are paid once";
    EXPECT_GT(seconds(4096), 2 * seconds(1024)) << "four times as much is moved";
}

/// Every SM has at most one of 128 tiles of 256 rows. A causal mask makes all but the last tiles shorter, and the
/// kernel no faster.
TEST(BlocksTime, UnequalTilesEndWithTheLongest) {
    const auto seconds = [](const std::string& mask) {
        return planned_rows(
                   "f(A[r, k], B[c, k], V[c, k]) -> O[r, k]\n    S[r, c] = sum(k) A[r, k] * B[c, k]\n"
                   "    W[r, c] = " +
                       mask + "\n    O[r, k] = sum(c) W[r, c] * V[c, k]\nsizes k = 64\n",
                   32768, 32768, {fixed("group", "r", 256), fixed("stream", "c", 64), fixed("split", "c", 1)})
            .time.seconds;
    };
    EXPECT_GT(seconds("where(c <= r, exp(S[r, c]), 0)"), 0.9 * seconds("exp(S[r, c])"));
}

/// The first loads of a launch find no translation of their addresses, nor do those that wait for statements between.
TEST(BlocksTime, CountsGroupsOfLoads) {
    const auto seconds = [](const std::string& text) {
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
        const Derived derived = derive(*diagram).value();
        const Extents extents = bind_sizes(derived.diagram, {{"r", 64}, {"c", 64}}).value();
        const Machine machine = load_machine("h200").value();
        const auto plan = choose_plan(derived, extents, machine);
        EXPECT_TRUE(plan.ok()) << render(plan.errors());
        const std::vector<ExplainedTime> times = explained_times(derived, extents, machine, *plan);
        double sum = 0;
        for (const TimeTerm& term : times.at(0).terms)
            if (term.name == "first translations of addresses") sum += term.seconds;
        return sum;
    };
    const double one = seconds("f(X[r, c]) -> Y[r, c]\n    Y[r, c] = 2 * X[r, c]\n"), two = seconds(layernorm_of_rows);
    EXPECT_GT(one, 0);
    EXPECT_GT(two, one) << "of G and B, behind the sums of X";
}

/// Threads of a warp copy along memory's rows: with an even distance in between all of a column would lie in one bank.
TEST(CopiesByColumns, HaveRowsOfOddLength) {
    const ScheduleItem vector{ChoiceKind::vector, "r", {}};
    const KernelPlan plan = planned_rows(softmax_of_rows, 4096, 1024,
                                         {vector, fixed("group", "r", 128), fixed("stream", "c", 128)});
    const ScheduledKernel& k = plan.scheduled;
    bool found = false;
    for (std::size_t v = 0; v < k.layouts.size(); ++v) {
        const auto id = VariableId::of(v);
        if (k.variable(id).name != "X" || k.is_view(id)) continue;
        found = true;
        EXPECT_EQ(k.layout(id).strides.at(1) % 2, 1) << "from one value of c to the next";
    }
    EXPECT_TRUE(found);
    const KernelPlan along = planned_rows(softmax_of_rows, 4096, 1024);
    for (const VariableId v : along.scheduled.layouts.ids()) {
        if (along.scheduled.variable(v).name != "X") continue;
        EXPECT_EQ(along.scheduled.layouts[v].strides.at(0) % 4, 0) << "copied 16 bytes at a time";
    }
}

TEST(Division, OfAGpuDoesNotBranch) {
    const auto text = [](const std::string& body) {
        const KernelPlan plan = planned_rows("f(X[r, c], Z[r, c]) -> Y[r, c]\n    Y[r, c] = " + body + "\n", 64, 64);
        return cuda::emit({{plan.scheduled}}, "k").text;
    };
    EXPECT_THAT(text("X[r, c] / Z[r, c]"), HasSubstr("divide("));
    EXPECT_THAT(text("X[r, c] / 3"), HasSubstr("divide("));
    EXPECT_THAT(text("X[r, c] / 4"), Not(HasSubstr("divide("))) << "a multiplication by 1/4, which is exact";
    EXPECT_THAT(text("X[r, c] // Z[r, c]"), HasSubstr("floor(")) << "of the rounded quotient, as its definition says";
    EXPECT_THAT(text("X[r, c] // Z[r, c]"), Not(HasSubstr("divide(")));
}

}  // namespace
}  // namespace napkin::test_simulate_blocks
