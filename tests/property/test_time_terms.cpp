// The terms of predicted times, as `napkin plan --explain-time` prints them.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/explain.hpp"
#include "support/paths.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_time_terms {
namespace {

struct Machines {
    std::string name;
    std::vector<std::string> only = {};  ///< these examples; none: all
};
void PrintTo(const Machines& m, std::ostream* out) { *out << m.name; }

class TimeTerms : public testing::TestWithParam<Machines> {};

void expect_sum(const ExplainedTime& time) {
    double sum = 0;
    for (const TimeTerm& t : time.terms) {
        sum += t.seconds;
        EXPECT_GE(t.seconds, 0) << t.name;
        EXPECT_NE(t.made_of, "") << t.name;
        for (const HiddenTime& h : t.hidden) EXPECT_GE(h.slack, -1e-12 * time.seconds) << h.name;
    }
    EXPECT_NEAR(sum, time.seconds, 1e-12 * time.seconds);
}

/// What binds by the plan is no shorter than any term. Those of CTAs that queue are of the unit for which they do.
void expect_agreement(const Simulation& plan, const ExplainedTime& time) {
    if (plan.bound_by() != plan.busy.front().what) return;
    for (const TimeTerm& t : time.terms)
        if (!t.name.starts_with("other CTAs at ")) {
            EXPECT_LE(t.seconds, plan.busy.front().seconds * (1 + 1e-9)) << t.name << ", bound by " << plan.bound_by();
        }
}

TEST_P(TimeTerms, AreNoneBelowZeroAndSumToTheTime) {
    std::size_t explained = 0;
    const Machine machine = load_machine(GetParam().name).value();
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& text) {
        if (!GetParam().only.empty() && !contains(GetParam().only, name)) return;
        SCOPED_TRACE(name);
        // Without the assembler's reports, which take far longer than plans.
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{name, text}));
        ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
        const auto extents = bind_sizes(*diagram);
        ASSERT_TRUE(extents.ok()) << render(extents.errors());
        const Derived derived = derive(*diagram).value();
        const auto plan = choose_plan(derived, *extents, machine, {}, {});
        ASSERT_TRUE(plan.ok()) << render(plan.errors());
        for (const ExplainedTime& time : explained_times(derived, *extents, machine, *plan)) {
            SCOPED_TRACE(time.kernel);
            expect_sum(time);
            const auto kernel = find_if(plan->kernels,
                                        [&](const KernelPlan& k) { return k.schedule().kernel == time.kernel; });
            ASSERT_NE(kernel, plan->kernels.end());
            expect_agreement(kernel->time, time);
            ++explained;
        }
    });
    EXPECT_GE(explained, GetParam().only.empty() ? 40u : GetParam().only.size());
}

const std::vector<std::string> some = {"attention_bf16", "causal", "layernorm", "matmul"};

INSTANTIATE_TEST_SUITE_P(On, TimeTerms,
                         testing::Values(Machines{"h200"}, Machines{"generic-cpu"}, Machines{"h100-sxm5", some},
                                         Machines{"a100-sxm-80gb", some}));

}  // namespace
}  // namespace napkin::test_time_terms
