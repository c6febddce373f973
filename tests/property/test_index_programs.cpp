// Programs with indices of every kind through the whole pipeline: definition = derivation steps = derived form = tile
// program. The interpreter's counts are those of the model, with padding, quotients and gathered rows.
#include <gtest/gtest.h>

#include <random>

#include "property/pipeline_case.hpp"
#include "support/index_programs.hpp"
#include "syntax/parse.hpp"

namespace napkin::pipeline {
namespace {

/// Small sizes for the axes that have none, and tiles for all; nullopt where they do not fit the program.
std::optional<Case> random_case(const Diagram& diagram, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::map<std::string, std::int64_t> sizes;
    for (const Axis& axis : diagram.axes)
        if (!axis.size) sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % 6);
    const auto extents = bind_sizes(diagram, sizes);
    if (!extents) return std::nullopt;
    Case c;
    c.diagram = diagram;
    c.extents = *extents;
    c.seed = seed;
    for (const std::int64_t extent : c.extents) {
        const auto part = [&] {
            return random() % 4 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent));
        };
        c.sizes.group.push_back(part());
        c.sizes.stream.push_back(part());
    }
    c.fuse = random() % 4 != 0;
    c.rewriting = random_rewriting(seed);
    return c;
}

TEST(IndexPrograms, EveryRoomGivesWhatTheDefinitionGivesAndCountsAlike) {
    Coverage seen;
    for (const std::string& text : index_programs()) {
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
        ASSERT_TRUE(diagram.ok()) << text << render(diagram.errors());
        int tried = 0;
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            const auto c = random_case(*diagram, seed);
            if (!c) continue;
            ++tried;
            ASSERT_EQ(failure_of(*c, seen), "") << "seed " << seed << "\n" << text << describe(*c);
        }
        EXPECT_GT(tried, 20) << text;
    }
}

}  // namespace
}  // namespace napkin::pipeline
