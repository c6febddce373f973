// Costs on several levels against numbers worked out by hand, and against what moves when the tile program runs.
#include "cost/nested.hpp"

#include <gmock/gmock.h>

#include "derive/parts.hpp"
#include "unit/tile_examples.hpp"

namespace napkin::tile_examples::test_nested {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The sizes of one level by axis name.
struct Level {
    Sizes group, stream;
};

std::vector<TileSizes> sizes_of(const Example& e, const std::vector<Level>& levels) {
    std::vector<TileSizes> sizes;
    for (const Level& level : levels) {
        const PartitionSizes p = partition_for(e.derived.diagram, level.group, level.stream);
        sizes.push_back({p.group, p.stream});
    }
    return sizes;
}

/// The example with its stream in parts.
Example in_parts(Example e, std::int64_t parts) {
    e.derived = with_parts(e.derived, 0, parts).form.value();
    e.extents = with_part_extents(e.derived, e.extents);
    return e;
}

/// The counts of the first kernel, the same by formula and by moving the values. A second one runs whole.
std::vector<Counts> counts(const Example& e, const std::vector<Level>& levels) {
    const std::vector<TileSizes> sizes = sizes_of(e, levels);
    const auto model = nested_costs(e.derived, e.derived.kernels[0], e.extents, sizes);
    std::vector<std::vector<TileSizes>> outer(e.derived.kernels.size());
    outer[0] = {sizes.begin(), sizes.end() - 1};
    Values values = random_inputs(e.derived.diagram, e.extents, 1), expected = values;
    const auto counted = interpret_levels(program_for(e, levels.back().group, levels.back().stream), outer, values);
    EXPECT_EQ(counted.at(0), model);
    evaluate(e.derived.diagram, e.extents, expected);
    for (const ArrayId id : e.derived.diagram.outputs)
        for (std::size_t i = 0; i < expected[id].size(); ++i) EXPECT_NEAR(expected[id][i], values[id][i], 1e-9) << i;
    return model;
}

TEST(Nested, EachLevelMovesByItsOwnSizes) {
    // 7×10 by 10×5. Outer groups of 6×4 in chunks of 8, inner ones of 3×2 in chunks of 4.
    const auto c = counts(matmul(), {{{{"a", 6}, {"c", 4}}, {{"b", 8}}}, {{{"a", 3}, {"c", 2}}, {{"b", 4}}}});
    ASSERT_THAT(c, SizeIs(2));
    EXPECT_EQ(c[0].groups, 2 * 2);
    EXPECT_EQ(c[0].loaded, 7 * 10 * 2 + 10 * 5 * 2);
    EXPECT_EQ(c[0].stored, 7 * 5);
    EXPECT_EQ(c[0].transfers(), c[0].loaded + c[0].stored);
    EXPECT_EQ(c[0].peak_memory, 6 * 8 + 8 * 4) << "a chunk of A and of B; C is collected when they are gone";
    EXPECT_EQ(c[1].groups, 3 * 3);
    EXPECT_EQ(c[1].loaded, 7 * 10 * 3 + 10 * 5 * 3);
    EXPECT_EQ(c[1].peak_memory, 3 * 2 + 3 * 4 + 4 * 2);
}

TEST(Nested, WhatIsCollectedMayBeTheMost) {
    const auto c = counts(matmul(8, 4, 8), {{{}, {{"b", 1}}}, {{{"a", 4}, {"c", 4}}, {{"b", 1}}}});
    EXPECT_EQ(c[0].peak_memory, 8 * 8);
    EXPECT_EQ(c[0].loaded, 8 * 4 + 4 * 8);
}

TEST(Nested, ThreeLevels) {
    const auto c = counts(weighted_mean(), {{{{"q", 6}}, {}}, {{{"q", 6}}, {{"x", 8}}}, {{{"q", 2}}, {{"x", 4}}}});
    ASSERT_THAT(c, SizeIs(3));
    EXPECT_EQ(c[0].groups, 2);
    EXPECT_EQ(c[1].groups, 2);
    EXPECT_EQ(c[2].groups, 4);
    EXPECT_EQ(c[0].loaded, 7 * 11 + 11 * 3 * 2);
    EXPECT_EQ(c[1].loaded, c[0].loaded);
    EXPECT_EQ(c[2].loaded, 7 * 11 + 11 * 3 * 4);
    EXPECT_EQ(c[0].peak_memory, 6 * 11 + 11 * 3) << "A and V whole";
    EXPECT_EQ(c[1].peak_memory, 6 * 8 + 8 * 3);
}

TEST(Nested, AGroupOfAnyLevelRunsOnePart) {
    // Three parts of 11 chunks of 1: those of x from 0, 3 and 7 on. Outer chunks of 3 begin where their part does: 1, 2
    // and 2 of them.
    const auto c = counts(in_parts(weighted_mean(), 3), {{{{"q", 6}}, {{"x", 3}}}, {{{"q", 3}}, {{"x", 1}}}});
    EXPECT_EQ(c[0].groups, 3 * 2);
    EXPECT_EQ(c[0].chunks_run, 2 * (1 + 2 + 2));
    EXPECT_EQ(c[0].loaded, 7 * 11 + 2 * 11 * 3) << "every value of A once, V once for each outer group of q";
    EXPECT_EQ(c[0].stored, 3 * (7 + 7 + 7 * 3)) << "mu, z and U of every part";
    EXPECT_EQ(c[0].peak_memory, 6 * 3 + 3 * 3)
        << "a chunk of A and of V; of the states U alone, 6 * 3, is collected when they are gone";
    EXPECT_EQ(c[1].groups, 3 * 3);
    EXPECT_EQ(c[1].chunks_run, 3 * 11);
    EXPECT_EQ(c[1].loaded, 7 * 11 + 3 * 11 * 3);
    EXPECT_EQ(c[1].stored, c[0].stored);
}

TEST(Nested, PartsSkipWhatTheirOwnChunksDoNotReach) {
    // Two parts of 6 chunks of 2: x from 0 and 6 on, in outer chunks of 4: two each. Groups of 4 reach x = 3 and 6: of
    // the first part 1 and 2 outer chunks, of the second 0 and 1.
    const auto c = counts(in_parts(weighted_mean(true), 2), {{{{"q", 4}}, {{"x", 4}}}, {{{"q", 2}}, {{"x", 2}}}});
    EXPECT_EQ(c[0].chunks_run, 1 + 2 + 0 + 1);
    EXPECT_EQ(c[0].chunks_skipped, 2 * 4 - 4);
    EXPECT_EQ(c[0].loaded, 4 * 4 + 3 * (6 + 4) + (4 + 6 + 4) * 3);
    EXPECT_EQ(c[1].chunks_run, 1 + 2 + 3 + 4) << "as without parts";
    EXPECT_EQ(c[1].loaded, 2 * 2 + 2 * 4 + 2 * 6 + 1 * 8 + (2 + 4 + 6 + 8) * 3);
}

TEST(Nested, OuterChunksAreSkippedByTheirOwnTile) {
    // Outer groups of 4 end at q = 3 and 6: they reach 1 and 2 chunks of 4; inner ones 1 to 4 of 2.
    const auto c = counts(weighted_mean(true), {{{{"q", 4}}, {{"x", 4}}}, {{{"q", 2}}, {{"x", 2}}}});
    EXPECT_EQ(c[0].loaded, 4 * 4 + 3 * 8 + (4 + 8) * 3);
    EXPECT_EQ(c[1].loaded, 2 * 2 + 2 * 4 + 2 * 6 + 1 * 8 + (2 + 4 + 6 + 8) * 3);
}

TEST(Nested, HalosOverlapInsideTheOuterTile) {
    const auto c = counts(convolution(), {{{{"i", 4}}, {}}, {{{"i", 2}}, {}}});
    EXPECT_EQ(c[0].loaded, (6 + 6 + 4) + 3 * 3);
    EXPECT_EQ(c[1].loaded, 4 * 5 + 3 * 5);
    EXPECT_EQ(c[0].peak_memory, 6 + 3);
}

TEST(Nested, AChunkHoldsWhatItStores) {
    const auto c = counts(two_loops(), {{{{"q", 4}}, {{"x", 6}}}, {{{"q", 2}}, {{"x", 3}}}});
    EXPECT_EQ(c[0].peak_memory, 4 * 6 + 4 * 6) << "A and P in the second loop";
    EXPECT_EQ(c[0].stored, 5 * 8);
}

TEST(Nested, WhatALaterStatementNeedsIsHeldBetween) {
    // B = exp(A)·w, then T = B + w: w is held until the second statement, A only until the first.
    const auto c = counts(maps(), {{{{"a", 6}, {"c", 4}}, {}}, {{{"a", 3}, {"c", 2}}, {}}});
    EXPECT_EQ(c[0].peak_memory, 24 + 4) << "A and w, then w and B, then T";
}

TEST(Nested, SizesAreCutDownToTheAxis) {
    const Example e = matmul();
    const auto nested = nest(e.derived, e.derived.kernels[0], e.extents,
                             sizes_of(e, {{{{"a", 100}, {"b", 3}}, {{"b", 100}, {"c", 3}}}, {{{"a", 3}}, {{"b", 4}}}}));
    ASSERT_TRUE(nested.ok());
    EXPECT_EQ(nested.value()[0].group, (std::vector<std::int64_t>{7, 0, 0}));
    EXPECT_EQ(nested.value()[0].stream, (std::vector<std::int64_t>{0, 10, 0}));
}

TEST(Nested, SizesThatDoNotNestAreRefused) {
    const Example e = matmul();
    const auto nested = nest(e.derived, e.derived.kernels[0], e.extents,
                             sizes_of(e, {{{{"a", 4}, {"c", -2}}, {{"b", 6}}}, {{{"a", 3}}, {{"b", 4}}}}));
    ASSERT_FALSE(nested.ok());
    ASSERT_THAT(nested.errors(), SizeIs(3));
    const std::string text = render(nested.errors());
    EXPECT_THAT(text, HasSubstr("the group size of a is 4 at level 1 and 3 at the next inner level"));
    EXPECT_THAT(text, HasSubstr("a multiple of 3, or the whole axis of 7"));
    EXPECT_THAT(text, HasSubstr("the next one is 6"));
    EXPECT_THAT(text, HasSubstr("the stream size of b is 6 at level 1 and 4 at the next inner level"));
    EXPECT_THAT(text, HasSubstr("the group size of c at level 1 is -2"));
    EXPECT_EQ(nested.errors()[0].code, "bad-level-size");

    // A core that does not cut an axis leaves nothing to cut above it.
    EXPECT_FALSE(nest(e.derived, e.derived.kernels[0], e.extents, sizes_of(e, {{{{"a", 4}}, {}}, {{}, {}}})).ok());
}

TEST(Nested, SizesThatDoNotNestAreAnInternalFaultOfTheRun) {
    const Example e = matmul();
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    EXPECT_THROW(interpret_levels(program_for(e, {{"a", 3}}, {}), {sizes_of(e, {{{{"a", 4}}, {}}})}, values), InternalError);
    EXPECT_THROW(
        nested_costs(e.derived, e.derived.kernels[0], e.extents, sizes_of(e, {{{{"a", 4}}, {}}, {{{"a", 3}}, {}}})),
        InternalError);
}

TEST(Nested, ATileThatLeavesWhatTheLevelAboveHoldsIsAnInternalFault) {
    const Example e = convolution();
    SizedProgram program = program_for(e, {{"i", 5}}, {});
    for (Variable& v : program.kernels[0].variables)
        if (v.dims[0].axes().size() > 1)
            v.dims[0] = *v.dims[0].affine() + Affine{{}, 1};  // reaches one place past the array
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    EXPECT_THROW(interpret_levels(program, {sizes_of(e, {{{{"i", 10}}, {}}})}, values), InternalError);
}

}  // namespace
}  // namespace napkin::tile_examples::test_nested
