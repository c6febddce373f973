// Random diagrams through the whole pipeline: definition = every derivation step = derived form = merged streams = tile program, and the
// interpreter's counts = the model's H and M, exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "property/pipeline_case.hpp"
#include "support/random_diagram.hpp"

namespace napkin::pipeline {
namespace {

/// A failing case made small. Sizes come from the seed and change as axes go, so a few seeds are tried for each variant.
std::string report(const Case& c, const std::string& failure) {
    constexpr std::uint64_t tries = 6;
    Coverage ignored;
    const auto failing_seed = [&](const Diagram& d) {
        for (std::uint64_t s = c.seed; s < c.seed + tries; ++s)
            if (!failure_of(make_case(d, s), ignored).empty()) return s;
        return c.seed + tries;
    };
    const Diagram small = reduce_failure(c.diagram, [&](const Diagram& d) { return failing_seed(d) < c.seed + tries; });
    const Case least = make_case(small, failing_seed(small));
    return "seed " + std::to_string(c.seed) + ": " + failure + "\nreduced to\n" + describe(least) +
           failure_of(least, ignored) + "\n";
}

/// NAPKIN_SEEDS=from:to runs other seeds than those of every day.
std::pair<std::uint64_t, std::uint64_t> seeds() {
    const char* given = std::getenv("NAPKIN_SEEDS");
    if (!given) return {0, 2500};
    char* end = nullptr;
    const std::uint64_t from = std::strtoull(given, &end, 10);
    return {from, *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1};
}

TEST(Pipeline, EveryRoomGivesWhatTheDefinitionGives) {
    const auto [from, to] = seeds();
    RecordProperty("first_seed", std::to_string(from));
    RecordProperty("last_seed", std::to_string(to - 1));
    Coverage seen;
    int failures = 0;
    for (std::uint64_t seed = from; seed < to && failures < 5; ++seed) {
        const Case c = make_case(random_diagram(seed), seed);
        const std::string failure = failure_of(c, seen);
        if (failure.empty()) continue;
        ADD_FAILURE() << report(c, failure);
        ++failures;
    }
    fmt::print(
        "seeds {} to {}: {} kernels ({} of several statements), {} loops, {} states, {} merges, {} steps, {} chunks "
        "skipped, {} halos\n",
        from, to - 1, seen.kernels, seen.fused_kernels, seen.loops, seen.states, seen.merges, seen.steps,
        seen.chunks_skipped, seen.halos);
    if (failures > 0) return;
    if (to - from < 1000) return;
    // The property means little where nothing of its kind occurs.
    EXPECT_GT(seen.fused_kernels, 200);
    EXPECT_GT(seen.states, 500);
    EXPECT_GT(seen.merges, 500);
    EXPECT_GT(seen.steps, 1000);
    EXPECT_GT(seen.chunks_skipped, 50);
    EXPECT_GT(seen.halos, 50);
}

}  // namespace
}  // namespace napkin::pipeline
