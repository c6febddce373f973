// Sums over a stream in accumulators: where they stay there, where they do not, and what the rules refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "schedule/accumulators.hpp"
#include "support/parsed.hpp"

namespace napkin::test_accumulators {
namespace {

using testing::HasSubstr;

constexpr const char* biased =
    "f(A[m, k], B[k, n], b[n]) -> C[m, n]\n    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
    "    C[m, n] = max(S[m, n] + b[n], 0)\nsizes m = n = k = 4096\n";

Plan planned(const std::string& text, const PlanOptions& options = {}) {
    const Diagram diagram = parsed(text);
    const auto plan = choose_plan(derive(diagram).value(), bind_sizes(diagram).value(), load_machine("h200").value(),
                                  {}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return *plan;
}

VariableId named(const ScheduledKernel& kernel, const std::string& name) {
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.variable(v).name == name) return v;
    ADD_FAILURE() << "no variable " << name;
    return -1;
}

/// The first message of the rules on the kernel with this schedule; "": there is none.
std::string refused(const ScheduledKernel& k, const KernelSchedule& s) {
    const auto messages = verify(scheduled(k.program, 0, k.extents, s, k.unit));
    return messages.empty() ? std::string() : messages.front();
}

TEST(Accumulators, HoldASumForTheMapBehindIt) {
    const Plan plan = planned(biased);
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    const VariableId sum = named(kernel, "S");
    ASSERT_TRUE(kernel.is_in_accumulators(sum));
    EXPECT_FALSE(kernel.is_held(sum));
    const Step* const adds = accumulating_step(kernel, sum);
    ASSERT_NE(adds, nullptr);
    for (const Step& step : kernel.steps)
        if (reads(step, sum) && &step != adds) {
            EXPECT_EQ(followed_sum(kernel, step), adds);
            EXPECT_EQ(kernel.atom(step).rows, kernel.atom(*adds).rows);
            EXPECT_EQ(kernel.atom(step).vectors, kernel.atom(*adds).vectors);
        }
    EXPECT_TRUE(kernel.is_view(named(kernel, "C"))) << "the map stores it where it goes";
}

/// A row's maximum reads other threads' sums.
TEST(Accumulators, HoldNothingThatIsReadElsewhere) {
    const Plan plan = planned(
        "f(A[m, k], B[k, n]) -> C[m, n]\n    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
        "    C[m, n] = S[m, n] - (max(n) S[m, n])\nsizes m = k = 4096, n = 64\n");
    for (const KernelPlan& kernel : plan.kernels)
        for (const VariableId v : kernel.scheduled.layouts.ids()) {
            EXPECT_FALSE(kernel.scheduled.is_in_accumulators(v)) << kernel.scheduled.variable(v).name;
        }
}

TEST(Accumulators, AreRefusedWhereAWarpHasTwoBlocks) {
    const Plan plan = planned(biased);
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    KernelSchedule s = kernel.schedule;
    EXPECT_EQ(refused(kernel, s), "");
    Atom& atom = s.atoms[accumulating_step(kernel, named(kernel, "S"))->atom];
    ASSERT_EQ(atom.rows % 2, 0);
    atom.rows /= 2;
    EXPECT_THAT(refused(kernel, s), HasSubstr("S cannot stay in accumulators"));
}

/// The map that reads the sum must go through the sum's own blocks.
TEST(Accumulators, AreRefusedWhereAMapGoesAnotherWay) {
    const Plan plan = planned(biased);
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    KernelSchedule s = kernel.schedule;
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && followed_sum(kernel, step)) s.atoms[step.atom].rows /= 2;
    EXPECT_THAT(refused(kernel, s), HasSubstr("S cannot stay in accumulators"));
}

/// Whether a tile's sums fit registers may depend on the number of rows, and with it the order of additions.
TEST(Accumulators, AreNotForRowsThatStandAlone) {
    PlanOptions options;
    options.is_batch_invariant = true;
    const Plan plan = planned(biased, options);
    for (const KernelPlan& kernel : plan.kernels)
        for (const VariableId v : kernel.scheduled.layouts.ids()) EXPECT_FALSE(kernel.scheduled.is_in_accumulators(v));
}

}  // namespace
}  // namespace napkin::test_accumulators
