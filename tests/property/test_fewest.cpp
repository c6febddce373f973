// What is said to be least is no more than what any sizes of the same kernel move within as much memory, whatever is
// streamed.
#include <gtest/gtest.h>

#include <random>

#include "cost/bounds.hpp"
#include "cost/compulsory.hpp"
#include "cost/least.hpp"
#include "derive/derive.hpp"
#include "derive/stream_choices.hpp"
#include "support/examples.hpp"
#include "support/random_diagram.hpp"
#include "support/ranges.hpp"
#include "tile/exact.hpp"

namespace napkin::test_fewest {
namespace {

struct Seen {
    int kernels = 0, exact = 0, skipping = 0, tight = 0;  ///< tight: sizes that move no more than 1.1 times the fewest
};

TileSizes random_tiles(const Kernel& kernel, const Extents& extents, std::mt19937_64& random) {
    TileSizes tiles{std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 0)};
    const auto size = [&](AxisId axis) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extents[axis])) + 1;
    };
    for (const AxisId axis : kernel.group_axes) tiles.group[axis] = size(axis);
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) tiles.stream[loop->axis] = size(loop->axis);
    return tiles;
}

void check(const std::string& name, const Derived& derived, const Extents& extents, std::mt19937_64& random, Seen& seen) {
    StreamChoices streams(derived);
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        const Kernel& kernel = derived.kernels[k];
        const TileSizes tiles = random_tiles(kernel, extents, random);
        const Counts counts = exact_costs(derived, kernel, extents, tiles);
        const auto memory = static_cast<double>(counts.peak_memory), moved = static_cast<double>(counts.transfers());
        const LeastTransfers least = least_transfers(streams.of(k), extents, memory);
        const std::string where = name + ", " + kernel.name + ", M = " + std::to_string(counts.peak_memory);
        ++seen.kernels, seen.skipping += least.cost.may_skip ? 1 : 0;
        for (const IoBound& bound : io_bounds(derived, kernel, extents, memory, least.cost.may_skip || may_skip(kernel)))
            EXPECT_LE(bound.values, moved * (1 + 1e-9)) << where << ": " << bound.formula;
        if (!why_upper_bound(least.cost).empty() || !least.cost.assumptions.empty()) continue;
        ASSERT_TRUE(least.numeric.fits) << where;
        // Where axes are too long to try every size, the search takes some.
        EXPECT_LE(least.numeric.transfers, moved * (1 + 1e-9)) << where;
        ++seen.exact, seen.tight += moved <= 1.1 * least.numeric.transfers ? 1 : 0;
    }
}

/// Every alternative of every region, with which axes stream differs.
void check_alternatives(const std::string& name, const Diagram& diagram, const Extents& extents, std::uint64_t seed,
                        Seen& seen) {
    std::mt19937_64 random(seed);
    const Derived derived = derive(diagram).value();
    for (std::size_t r = 0; r < derived.regions.size(); ++r)
        for (std::size_t a = 0; a < derived.regions[r].alternatives.size(); ++a) {
            std::vector<std::size_t> chosen(derived.regions.size());
            chosen[r] = a;
            check(name, rederive(derived, chosen), extents, random, seen);
        }
}

TEST(Fewest, IsNoMoreThanWhatAnySizesOfRandomDiagramsMove) {
    Seen seen;
    for (std::uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
        const Diagram diagram = random_diagram(seed);
        check_alternatives("seed " + std::to_string(seed) + "\n" + describe(diagram), diagram,
                           random_extents(diagram, seed), seed, seen);
    }
    EXPECT_GT(seen.exact, 500);
    EXPECT_GT(seen.skipping, 20);
    EXPECT_GT(seen.tight, 100);
}

TEST(Fewest, IsNoMoreThanWhatAnySizesOfTheExamplesMove) {
    Seen seen;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto extents = bind_sizes(example.diagram, {});
        if (!extents) continue;
        check_alternatives(example.name, example.diagram, *extents, 7, seen);
    }
    EXPECT_GT(seen.exact, 50);
    EXPECT_GT(seen.skipping, 5);
}

TEST(Fewest, DoesNotDependOnWhatAKernelStreams) {
    // The same equations with each of their axes streamed: what is held and moved is of all ways.
    int compared = 0;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto extents = bind_sizes(example.diagram, {});
        if (!extents) continue;
        const Derived derived = derive(example.diagram).value();
        for (std::size_t r = 0; r < derived.regions.size(); ++r) {
            std::map<std::vector<ArrayId>, double> known;
            for (std::size_t a = 0; a < derived.regions[r].alternatives.size(); ++a) {
                const auto& kernels = derived.regions[r].alternatives[a].kernels;
                if (kernels.size() != 1) continue;
                std::vector<std::size_t> chosen(derived.regions.size());
                chosen[r] = a;
                const Derived form = rederive(derived, chosen);
                for (std::size_t k = 0; k < form.kernels.size(); ++k) {
                    if (!contains(form.kernels[k].equations, kernels[0].targets.back())) continue;
                    const double found = least_transfers(StreamChoices(form).of(k), *extents, 4000).numeric.transfers;
                    const auto [at, fresh] = known.emplace(kernels[0].targets, found);
                    EXPECT_EQ(at->second, found) << example.name << ", " << form.kernels[k].name;
                    compared += fresh ? 0 : 1;
                }
            }
        }
    }
    EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace napkin::test_fewest
