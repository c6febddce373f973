// Random diagrams through the whole pipeline: definition = every derivation step = derived form = merged streams = tile
// program. The interpreter's counts are exactly the model's H and M, also with subloops and streams in parts. H, M and
// the work in letters are the same where sizes divide.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "property/pipeline_case.hpp"
#include "support/random_diagram.hpp"
#include "support/seeds.hpp"

namespace napkin::pipeline {
namespace {

TEST(Pipeline, EveryRoomGivesWhatTheDefinitionGives) {
    const auto [from, to] = seeds(1000);
    RecordProperty("first_seed", std::to_string(from));
    RecordProperty("last_seed", std::to_string(to - 1));
    Coverage seen;
    int failures = 0;
    for (std::uint64_t seed = from; seed < to && failures < 5; ++seed) {
        const Case c = make_case(random_diagram(seed), seed);
        const std::string failure = failure_of(c, seen);
        if (failure.empty()) continue;
        ADD_FAILURE() << fmt::format("seed {}: {}\n{}", seed, failure, made_small(c));
        ++failures;
    }
    fmt::print(
        "seeds {} to {}: {} kernels ({} of several statements), {} loops, {} states, {} merges, {} steps, {} chunks "
        "skipped, {} halos, {} subloops, {} streams in parts, H and M in letters {} times exactly and {} times as "
        "bounds\n",
        from, to - 1, seen.kernels, seen.fused_kernels, seen.loops, seen.states, seen.merges, seen.steps,
        seen.chunks_skipped, seen.halos, seen.subloops, seen.parts, seen.exact_letters, seen.bounding_letters);
    if (failures > 0) return;
    if (to - from < 1000) return;
    // The property means little where nothing of its kind occurs.
    EXPECT_GT(seen.fused_kernels, 200);
    EXPECT_GT(seen.states, 500);
    EXPECT_GT(seen.merges, 500);
    EXPECT_GT(seen.steps, 1000);
    EXPECT_GT(seen.chunks_skipped, 50);
    EXPECT_GT(seen.halos, 50);
    EXPECT_GT(seen.subloops, 500);
    EXPECT_GT(seen.parts, 300);
    EXPECT_GT(seen.exact_letters, 500);
    EXPECT_GT(seen.bounding_letters, 500);
}

}  // namespace
}  // namespace napkin::pipeline
