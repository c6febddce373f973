// A kernel that is refused gives place to the search's next candidate for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "derive/derive.hpp"
#include "plan/accepted.hpp"
#include "plan/estimates.hpp"
#include "support/ids.hpp"
#include "support/schedules.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_accepted {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* rows_of_sums =
    "f(X[i, j]) -> Y[i]\n"
    "    Y[i] = sum(j) X[i, j]\n"
    "sizes i = 4096, j = 512\n";
constexpr const char* products =
    "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = n = 4096, k = 1024\n";
constexpr const char* two_kernels =
    "f(X[i, j]) -> Y[j]\n"
    "    S[i] = sum(j) X[i, j]\n"
    "    Y[j] = max(i) X[i, j] * S[i]\n"
    "sizes i = 4096, j = 512\n";

/// A diagram planned for an H200, and what is asked of the planner on the way.
struct Planned {
    explicit Planned(const std::string& text, std::vector<ScheduleItem> items = {})
        : diagram(parse_diagram(std::make_shared<Source>(Source{"a.nk", text})).value()),
          derived(derive(diagram).value()),
          extents(bind_sizes(diagram).value()),
          machine(load_machine("h200").value()),
          by_user(std::move(items)) {}

    Result<Plan> plan(const std::vector<KernelCandidate>& refused = {}) const {
        PlanOptions options;
        options.refused = refused;
        return choose_plan(derived, extents, machine, by_user, options);
    }
    AcceptedPlan accepted(const std::function<bool(const KernelPlan&)>& is_refused, bool may_last = false,
                          std::size_t at_a_time = 1) {
        auto made = accepted_plan([&](const auto& refused) { return plan(refused); },
                                  [&](const Plan& plan) {
                                      std::vector<KernelRefusal> why(plan.kernels.size());
                                      for (std::size_t k = 0; k < why.size(); ++k)
                                          if (is_refused(plan.kernels[k]))
                                              why[k] = {{"it spills", "it waits"}, may_last};
                                      const std::lock_guard lock(mutex);
                                      seen.push_back(plan);
                                      return why;
                                  },
                                  at_a_time);
        return std::move(made).value();
    }

    Diagram diagram;
    Derived derived;
    Extents extents;
    Machine machine;
    std::vector<ScheduleItem> by_user;
    std::mutex mutex;
    std::vector<Plan> seen;
};

ScheduleItem item(const std::string& kind, const std::string& axis, std::int64_t value) {
    return {choice_kind(kind), axis, value};
}

TEST(AcceptedPlan, IsTheFastestWhereNothingIsRefused) {
    Planned p(rows_of_sums);
    const AcceptedPlan accepted = p.accepted([](const KernelPlan&) { return false; });
    EXPECT_EQ(to_string(accepted.plan), to_string(*p.plan()));
    EXPECT_THAT(accepted.notes, IsEmpty());
    EXPECT_THAT(p.seen, SizeIs(1));
}

TEST(AcceptedPlan, HasTheNextCandidateInPlaceOfOneThatIsRefused) {
    for (const char* text : {rows_of_sums, products}) {
        Planned p(text);
        const KernelCandidate first = candidate_of(p.plan()->kernels[0].scheduled);
        const AcceptedPlan accepted = p.accepted([&](const KernelPlan& k) { return candidate_of(k.scheduled) == first; });
        ASSERT_THAT(p.seen, SizeIs(2)) << text;
        EXPECT_NE(candidate_of(accepted.plan.kernels[0].scheduled), first);
        EXPECT_GE(accepted.plan.seconds(), p.seen[0].seconds() * 0.99) << "the search stops within 1% of the fastest";
        EXPECT_LE(accepted.plan.seconds(), p.seen[0].seconds() * 2) << "there is nothing much slower between them";
        EXPECT_THAT(accepted.notes, ElementsAre(StartsWith("the assembler's report speaks against kernel ")));
        EXPECT_THAT(accepted.notes[0], HasSubstr(": it spills; it waits"));
    }
}

TEST(AcceptedPlan, IsTheFirstOneWhereAllAreRefused) {
    Planned p(rows_of_sums, {item("split", "j", 1)});
    const AcceptedPlan accepted = p.accepted([](const KernelPlan&) { return true; });
    ASSERT_THAT(p.seen, SizeIs(most_plans));
    std::vector<KernelCandidate> candidates;
    for (const Plan& plan : p.seen) {
        const KernelCandidate candidate = candidate_of(plan.kernels[0].scheduled);
        EXPECT_FALSE(contains(candidates, candidate)) << to_string(plan);
        candidates.push_back(candidate);
    }
    EXPECT_EQ(to_string(accepted.plan), to_string(*p.plan()));
    ASSERT_THAT(accepted.notes, SizeIs(most_plans + 1));
    EXPECT_THAT(
        accepted.notes.back(),
        HasSubstr(
            "is taken all the same: 4 other candidates of it are no better, and no more than 5 plans are compiled"));
}

TEST(AcceptedPlan, IsTheFirstOneAfterTwoThatAreRefusedForWhatTheyCompute) {
    Planned p(rows_of_sums, {item("split", "j", 1)});
    const AcceptedPlan accepted = p.accepted([](const KernelPlan&) { return true; }, true);
    EXPECT_THAT(p.seen, SizeIs(2));
    EXPECT_EQ(to_string(accepted.plan), to_string(*p.plan()));
    EXPECT_THAT(accepted.notes.back(), HasSubstr("is taken all the same: 1 other candidate of it is no better"));
}

TEST(AcceptedPlan, IsTheOneThatIsRefusedWhereTheKernelHasNoOther) {
    Planned p(rows_of_sums, {item("split", "j", 1)});
    const Diagnostic none_left{"memory-exceeded", {}, "nothing fits", "", "", {}, ExitCode::bad_input};
    const Refusals all = [](const Plan& plan) {
        return std::vector<KernelRefusal>(plan.kernels.size(), KernelRefusal{{"it spills"}});
    };
    const PlanWithout fails = [&](const auto& refused) { return refused.empty() ? p.plan() : Result<Plan>(none_left); };
    const PlanWithout repeats = [&](const auto&) { return p.plan(); };
    for (const PlanWithout& plan : {fails, repeats}) {
        const auto accepted = accepted_plan(plan, all);
        ASSERT_TRUE(accepted.ok());
        EXPECT_EQ(to_string(accepted->plan), to_string(*p.plan()));
        ASSERT_THAT(accepted->notes, SizeIs(2));
        EXPECT_THAT(accepted->notes.back(), EndsWith("is taken all the same: there is no other candidate of it"));
    }
}

TEST(AcceptedPlan, ChangesOnlyWhatIsRefusedWhereItsBlocksAreFixed) {
    Planned p(two_kernels, {item("warps", "", 8), item("split", "i", 1), item("split", "j", 1)});
    const Plan first = *p.plan();
    ASSERT_THAT(first.kernels, SizeIs(2));
    const KernelCandidate second = candidate_of(first.kernels[1].scheduled);
    const AcceptedPlan accepted = p.accepted([&](const KernelPlan& k) { return candidate_of(k.scheduled) == second; });
    ASSERT_THAT(accepted.plan.kernels, SizeIs(2));
    EXPECT_EQ(candidate_of(accepted.plan.kernels[0].scheduled).group, candidate_of(first.kernels[0].scheduled).group);
    EXPECT_NE(candidate_of(accepted.plan.kernels[1].scheduled), second);
}

TEST(AcceptedPlan, HasTheFewestRefusedKernelsWhereSomeAlwaysAre) {
    Planned p(two_kernels, {item("split", "i", 1), item("split", "j", 1)});
    const Plan first = *p.plan();
    const std::string always = first.kernels[0].schedule().kernel;
    const KernelCandidate second = candidate_of(first.kernels[1].scheduled);
    const AcceptedPlan accepted = p.accepted(
        [&](const KernelPlan& k) { return k.schedule().kernel == always || candidate_of(k.scheduled) == second; });
    EXPECT_NE(candidate_of(accepted.plan.kernels[1].scheduled), second);
    EXPECT_THAT(accepted.notes.back(), StartsWith("kernel " + always + " with"));
}

// Plans that are asked for before it is known that they are needed change neither what is taken nor what is said of it.
TEST(AcceptedPlan, IsTheSameWherePlansAreTriedSideBySide) {
    const std::vector<ScheduleItem> one_part{item("split", "i", 1), item("split", "j", 1)};
    for (const char* text : {rows_of_sums, two_kernels}) {
        Planned p(text, text == two_kernels ? one_part : std::vector{item("split", "j", 1)});
        const Plan first = *p.plan();
        const std::string last = first.kernels.back().schedule().kernel;
        std::vector<KernelCandidate> bad;  // the first three of the last kernel
        AcceptedPlan found = p.accepted([&](const KernelPlan& k) {
            if (k.schedule().kernel == last && bad.size() < 3) bad.push_back(candidate_of(k.scheduled));
            return contains(bad, candidate_of(k.scheduled));
        });
        ASSERT_THAT(bad, SizeIs(3));
        const std::size_t needed = p.seen.size();
        EXPECT_EQ(needed, 4u);
        const auto is_bad = [&](const KernelPlan& k) { return contains(bad, candidate_of(k.scheduled)); };
        for (const std::size_t at_a_time : {2, 3, 8}) {
            p.seen.clear();
            const AcceptedPlan again = p.accepted(is_bad, false, at_a_time);
            EXPECT_EQ(to_string(again.plan), to_string(found.plan)) << text << at_a_time;
            EXPECT_EQ(again.notes, found.notes) << text << at_a_time;
            EXPECT_GE(p.seen.size(), needed);
        }
    }
}

// What is found out of candidates is kept between the turns, and the plans of all turns are those of searches that know
// nothing.
TEST(AcceptedPlan, IsTheSameWithRatingsOfEarlierTurns) {
    for (const char* text : {rows_of_sums, products, two_kernels}) {
        Planned p(text);
        PlanOptions knowing;
        knowing.ratings = std::make_shared<Estimates>();
        for (int turn = 0; turn < 4; ++turn) {
            const auto plan = choose_plan(p.derived, p.extents, p.machine, {}, knowing);
            ASSERT_TRUE(plan.ok());
            EXPECT_EQ(to_string(*plan), to_string(*p.plan(knowing.refused))) << text << turn;
            for (const KernelPlan& kernel : plan->kernels) knowing.refused.push_back({candidate_of(kernel.scheduled)});
        }
    }
}

/// Sizes, warps and the axis by hand leave the number of blocks that share an SM, and the width of a panel.
TEST(AcceptedPlan, TriesAllBlocksThatShareAnSMBeforeItTakesWhatIsRefused) {
    Planned p(rows_of_sums, {item("warps", "", 8), item("split", "j", 1), item("group", "i", 32),
                             item("stream", "j", 64), item("vector", "i", 0), item("vectors", "", 1)});
    const AcceptedPlan accepted = p.accepted([](const KernelPlan&) { return true; });
    EXPECT_GE(p.seen.size(), 3u);
    std::vector<std::int64_t> shares;
    for (const Plan& plan : p.seen) shares.push_back(plan.kernels[0].scheduled.unit.share_bytes);
    EXPECT_NE(*std::min_element(shares.begin(), shares.end()), *std::max_element(shares.begin(), shares.end()));
    EXPECT_EQ(to_string(accepted.plan), to_string(*p.plan()));
}

TEST(AcceptedPlan, HasTheErrorsOfThePlanner) {
    const Diagnostic why{"no-warps", {}, "why", "", "", {}, ExitCode::bad_input};
    const auto made = accepted_plan([&](const auto&) { return Result<Plan>(why); },
                                    [](const Plan&) { return std::vector<KernelRefusal>(); });
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.errors().front().code, "no-warps");
}

}  // namespace
}  // namespace napkin::test_accepted
