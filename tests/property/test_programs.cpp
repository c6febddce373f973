// Random programs through every room, on inputs of every kind. Text = diagram = every derivation step = derived form =
// merged streams = tile program. The interpreter's counts are exactly the model's H and M.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "property/pipeline_case.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "support/seeds.hpp"

namespace napkin::pipeline {
namespace {

constexpr int shards = 4;
constexpr std::uint64_t most_made_small = 100;  ///< programs of a shard

/// Half of the programs see N(0, 1), the others each other kind of inputs in turn.
Probe probe_of(std::uint64_t seed) {
    return seed % 2 == 0 ? Probe::normal : all_probes[seed / 2 % std::size(all_probes)];
}

class Programs : public testing::TestWithParam<int> {};

TEST_P(Programs, EveryRoomGivesWhatTheDefinitionGives) {
    const auto [from, to] = seeds(2000);
    const std::uint64_t shard = static_cast<std::uint64_t>(GetParam());
    const std::uint64_t first = from + (to - from) * shard / shards, last = from + (to - from) * (shard + 1) / shards;
    Coverage seen;
    int failures = 0;
    for (std::uint64_t seed = first; seed < last; ++seed) {
        const Case c = make_case(parsed_program(random_program(seed)), seed, probe_of(seed));
        const std::string failure = failure_of(c, seen);
        if (failure.empty()) continue;
        ++failures;
        // To make a failure small takes long: a campaign says the seeds, and each run alone is made small.
        ADD_FAILURE() << (last - first <= most_made_small
                              ? fmt::format("seed {}: {}\n{}{}", seed, failure, random_program(seed), made_small(c))
                              : fmt::format("seed {}: {}", seed, failure));
    }
    RecordProperty("first_seed", std::to_string(first));
    RecordProperty("programs", std::to_string(last - first));
    RecordProperty("failures", std::to_string(failures));
    RecordProperty("kernels", std::to_string(seen.kernels));
    RecordProperty("steps", std::to_string(seen.steps));
    RecordProperty("merges", std::to_string(seen.merges));
    if (last - first < 400) return;
    EXPECT_GT(seen.fused_kernels, 200);
    EXPECT_GT(seen.states, 400);
    EXPECT_GT(seen.merges, 400);
    EXPECT_GT(seen.steps, 1000);
    EXPECT_GT(seen.chunks_skipped, 10);
}

INSTANTIATE_TEST_SUITE_P(Shards, Programs, testing::Range(0, shards));

}  // namespace
}  // namespace napkin::pipeline
