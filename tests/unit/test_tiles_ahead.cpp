// Groups of rows whose tiles are fetched ahead into the first cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "schedule/rules.hpp"
#include "support/ids.hpp"
#include "syntax/parse.hpp"
#include "tile/verify.hpp"

namespace napkin::test_tiles_ahead {
namespace {

using testing::AllOf, testing::HasSubstr;

/// Rows of 4 KiB.
constexpr const char* norm =
    "f(X[r, c]) -> Y[r, c]\n    M[r] = mean(c) X[r, c]\n    V[r] = mean(c) (X[r, c] - M[r])^2\n"
    "    Y[r, c] = (X[r, c] - M[r]) * (V[r] + 1e-5)^-0.5\nsizes r = 65536, c = 1024\n";

/// Two cores whose memory copies 36 GB/s past the caches.
Machine machine(double first_cache) {
    Machine m = load_machine("generic-cpu").value();
    const auto all = [](double value) { return Figure{value, "test"}; };
    m.cores = all(2);
    for (std::size_t l = 1; l < m.levels.size(); ++l) m.levels[l].instances = all(l == 1 ? 1 : 2);
    m.levels[1].bandwidth_bytes_per_s = all(30e9), m.levels[1].core_bandwidth_bytes_per_s = all(15e9);
    m.levels[1].copy_bandwidth_bytes_per_s = all(24e9), m.levels[1].core_copy_bandwidth_bytes_per_s = all(12e9);
    m.nontemporal_copy_bytes_per_s = all(36e9), m.core_nontemporal_copy_bytes_per_s = all(18e9);
    m.nontemporal_from_bytes = all(1e6);
    m.levels.back().capacity_bytes = all(first_cache);
    return m;
}

std::optional<KernelPlan> plan_for(const Machine& on, const std::string& schedule = "") {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", norm}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto derived = derive(*diagram);
    const auto sizes = bind_sizes(*diagram);
    PlanOptions options;
    if (!schedule.empty())
        options.file = std::make_shared<const Source>(Source{"a.schedule", "kernel Y\n  " + schedule + "\n"});
    auto plan = choose_plan(choose_form(*derived, *sizes, on), *sizes, on, {}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    if (!plan.ok() || plan->kernels.size() != 1) return std::nullopt;
    return std::move(plan->kernels[0]);
}

const Choice& rows(const KernelPlan& plan) { return plan.schedule().group.begin()->second; }

TEST(TilesAhead, AreAsLargeAsTheFirstCacheHoldsBesideThoseAtHand) {
    for (const double first_cache : {32.0 * 1024, 64.0 * 1024, 128.0 * 1024}) {
        SCOPED_TRACE(first_cache);
        const auto plan = plan_for(machine(first_cache));
        ASSERT_TRUE(plan);
        ASSERT_EQ(plan->schedule().prefetches.size(), 1U);
        const std::int64_t ahead = plan->schedule().prefetches[0].ahead.value;
        EXPECT_LE(static_cast<double>((1 + ahead) * rows(*plan).value * 4096), first_cache);
        // The search alone finds larger tiles where the cache is small.
        if (first_cache < 64 * 1024) {
            EXPECT_THAT(rows(*plan).reason,
                        AllOf(HasSubstr("fetched ahead, it fits L1 with the group at hand"), HasSubstr("slower")));
        }
        EXPECT_THAT(verify(plan->scheduled), testing::IsEmpty());
    }
    // A row alone does not fit.
    const auto none = plan_for(machine(4.0 * 1024));
    ASSERT_TRUE(none);
    EXPECT_THAT(rows(*none).reason, testing::Not(HasSubstr("fetched ahead")));
}

// Then a kernel takes about as long as a copy of its bytes; where it waits in one statement after the other it takes longer, and never less.
TEST(TilesAhead, LetWhatComesAndGoesRunBesideAllThatIsComputed) {
    const Machine m = machine(64.0 * 1024);
    const double copy = 2 * 65536.0 * 1024 * 4 / m.nontemporal_copy_bytes_per_s.value / m.sustained_share.value;
    const auto fits = plan_for(m, "group r 4"), exceeds = plan_for(m, "group r 32\n  prefetch X groups 1, in Y"),
               none = plan_for(m, "group r 4\n  prefetch X groups 0, in Y"),
               cached = plan_for(m, "group r 4\n  place Y view, inner c");
    ASSERT_TRUE(fits && exceeds && none && cached);
    EXPECT_GE(fits->time.seconds, copy);
    EXPECT_LT(fits->time.seconds, 1.1 * copy);
    EXPECT_GT(exceeds->time.seconds, 1.1 * fits->time.seconds);
    EXPECT_GT(none->time.seconds, fits->time.seconds);
    EXPECT_GT(cached->time.seconds, 1.2 * fits->time.seconds)
        << "a line that is stored through the caches is read first";
    EXPECT_EQ(rows(*exceeds).value, 32) << "what is by hand stays";
}

}  // namespace
}  // namespace napkin::test_tiles_ahead
