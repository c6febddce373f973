// Expansion and the counting interpreter on derived forms written by hand: values against the diagram's meaning, counts
// against numbers worked out by hand.
#include <gmock/gmock.h>

#include "tile/subloops.hpp"
#include "unit/tile_examples.hpp"

namespace napkin::tile_examples::test_tile {
namespace {

using ::testing::IsEmpty;

/// Every output of the diagram, from its definition.
Values defined(const Example& e) {
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    Diagram diagram = e.derived.diagram;
    evaluate(diagram, e.extents, values);
    return values;
}

void expect_outputs(const Example& e, const Values& expected, const Values& actual, const std::string& how) {
    for (const ArrayId id : e.derived.diagram.outputs) {
        const auto& want = expected[id];
        const auto& have = actual[id];
        ASSERT_EQ(want.size(), have.size()) << how;
        for (std::size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(want[i], have[i], 1e-12 * (1 + std::abs(want[i])))
                << how << ": " << e.derived.diagram.array(id).name << " at " << i;
    }
}

std::vector<Counts> run(const Example& e, const Sizes& group, const Sizes& stream) {
    const SizedProgram program = program_for(e, group, stream);
    EXPECT_THAT(verify(program), IsEmpty());
    const Values expected = defined(e);
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    std::vector<Counts> counts = interpret(program, values);
    expect_outputs(e, expected, values, "interpreter");

    values = random_inputs(e.derived.diagram, e.extents, 1);
    const PartitionSizes sizes = partition_for(e.derived.diagram, group, stream);
    evaluate(e.derived, e.extents, sizes, values);
    expect_outputs(e, expected, values, "evaluation of the derived form");
    for (const double split : {0.2, 0.5, 0.9}) {
        values = random_inputs(e.derived.diagram, e.extents, 1);
        evaluate_by_merge(e.derived, e.extents, sizes, split, values);
        expect_outputs(e, expected, values, "merged streams");
    }
    return counts;
}

TEST(Tile, StreamedContractionMovesWhatTheFormulaSays) {
    // N_g = 3·3 ragged groups; A is moved once for each tile of c, B once for each tile of a.
    const Example e = matmul();
    const Counts c = run(e, {{"a", 3}, {"c", 2}}, {{"b", 4}}).at(0);
    EXPECT_EQ(c.groups, 9);
    EXPECT_EQ(moved(e, c, "A"), 7 * 10 * 3);
    EXPECT_EQ(moved(e, c, "B"), 10 * 5 * 3);
    EXPECT_EQ(moved(e, c, "C"), 7 * 5);
    EXPECT_EQ(c.loaded, 7 * 10 * 3 + 10 * 5 * 3);
    EXPECT_EQ(c.stored, 7 * 5);
    EXPECT_EQ(c.peak_memory, 3 * 2 + 3 * 4 + 4 * 2);  // g_a g_c + g_a s_b + s_b g_c
    EXPECT_EQ(c.chunks_run, 9 * 3);
    EXPECT_EQ(c.chunks_skipped, 0);
}

TEST(Tile, AnAxisWithoutASizeIsNotCut) {
    const Example e = matmul();
    const Counts c = run(e, {}, {}).at(0);
    EXPECT_EQ(c.groups, 1);
    EXPECT_EQ(c.loaded, 7 * 10 + 10 * 5);
    EXPECT_EQ(c.peak_memory, 7 * 5 + 7 * 10 + 10 * 5);
    EXPECT_EQ(run(matmul(), {{"a", 100}, {"c", 5}}, {{"b", 100}}).at(0), c);
}

TEST(Tile, AFoldWithRescalingStreams) {
    const Example e = weighted_mean();
    const Counts c = run(e, {{"q", 2}}, {{"x", 4}}).at(0);
    EXPECT_EQ(c.groups, 4);
    EXPECT_EQ(moved(e, c, "A"), 7 * 11);
    EXPECT_EQ(moved(e, c, "V"), 11 * 3 * 4);
    EXPECT_EQ(moved(e, c, "O"), 7 * 3);
    // At `S = A`: states 2 + 2 + 2·3, A and S 2·4 each. At `U = …`: states, P 2·4, V 4·3 and the correction 2.
    EXPECT_EQ(c.peak_memory, std::max(10 + 16, 10 + 8 + 12 + 2));
    EXPECT_EQ(c.chunks_run, 4 * 3);
}

TEST(Tile, OneValueATime) { run(weighted_mean(), {{"q", 1}, {"d", 1}}, {{"x", 1}}); }

TEST(Tile, ChunksOutsideOfTheSupportAreSkipped) {
    const Example e = weighted_mean(true);
    const Counts c = run(e, {{"q", 2}}, {{"x", 4}}).at(0);
    // Groups end at q = 1, 3, 5, 6: they reach 1, 1, 2, 2 of the three chunks.
    EXPECT_EQ(c.chunks_run, 6);
    EXPECT_EQ(c.chunks_skipped, 6);
    EXPECT_EQ(moved(e, c, "A"), 2 * 4 + 2 * 4 + 2 * 8 + 1 * 8);
    EXPECT_EQ(moved(e, c, "V"), (4 + 4 + 8 + 8) * 3);
}

TEST(Tile, AnOutputIsReadWhereItWasComputed) {
    const Example e = maps();
    const Counts c = run(e, {{"a", 3}, {"c", 4}}, {}).at(0);
    EXPECT_EQ(c.groups, 3 * 2);
    EXPECT_EQ(moved(e, c, "w"), 5 * 3);
    EXPECT_EQ(c.loaded, 7 * 5 + 5 * 3);
    EXPECT_EQ(c.stored, 2 * 7 * 5);
    EXPECT_EQ(c.peak_memory, 12 + 4 + 12);
}

TEST(Tile, TilesHaveHalos) {
    const Example e = convolution();
    const Counts c = run(e, {{"i", 4}}, {}).at(0);
    EXPECT_EQ(moved(e, c, "X"), 6 + 6 + 4);
    EXPECT_EQ(moved(e, c, "F"), 3 * 3);
    EXPECT_EQ(c.peak_memory, 6 + 3 + 4);
}

TEST(Tile, ASecondLoopLoadsAgainAndStoresEachChunk) {
    const Example e = two_loops();
    const Counts c = run(e, {{"q", 2}}, {{"x", 3}}).at(0);
    EXPECT_EQ(moved(e, c, "A"), 2 * 5 * 8);
    EXPECT_EQ(moved(e, c, "P"), 5 * 8);
    EXPECT_EQ(c.chunks_run, 3 * 3 * 2);
    // Largest at `E = exp(A - mu)` of the first loop: mu, z, mu_old, A and E.
    EXPECT_EQ(c.peak_memory, 2 + 2 + 2 + 6 + 6);
}

/// The weighted mean whose accumulator is cut over d, and a product cut over what it sums.
TEST(Tile, SubloopsCutWhatOneStatementLoads) {
    const Example e = weighted_mean();
    SizedProgram program = program_for(e, {{"q", 2}}, {{"x", 4}});
    const auto variable = [&](const std::string& name) {
        const auto& all = program.kernels[0].variables;
        const auto is = [&](const Variable& v) { return v.name == name; };
        return VariableId::of(std::find_if(all.begin(), all.end(), is) - all.begin());
    };
    const AxisId x = e.derived.diagram.find_axis("x").value(), d = e.derived.diagram.find_axis("d").value();
    const auto cut = with_subloops(program.diagram, program.kernels[0], {{variable("U"), d}});
    ASSERT_TRUE(cut.ok()) << render(cut.errors());
    program.kernels[0] = *cut;
    program.sizes[0].sub[d] = 2;
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_THAT(to_string(program), ::testing::HasSubstr("for each part of d (2 at a time):"));
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    const Counts c = interpret(program, values).at(0);
    expect_outputs(e, defined(e), values, "interpreter");
    EXPECT_EQ(moved(e, c, "V"), 11 * 3 * 4) << "the same values, in parts";
    // At `U = …` only two of the three columns of V lie at the core; without them S or P would be the most.
    EXPECT_EQ(c.peak_memory, std::max(10 + 16, 10 + 8 + 8 + 2));

    const auto why_not = [&](const std::string& name, AxisId axis) {
        return render(with_subloops(program.diagram, program.kernels[0], {{variable(name), axis}}).errors());
    };
    EXPECT_THAT(why_not("U", x), ::testing::HasSubstr("a loop cuts x around it already"));
    EXPECT_THAT(why_not("U", d), ::testing::HasSubstr("a loop cuts d around it already"));
    EXPECT_THAT(why_not("S", d), ::testing::HasSubstr("no reduction of the kernel computes it"));
    EXPECT_THAT(why_not("z", d), ::testing::HasSubstr("it neither reduces over d nor has it"));
    EXPECT_THAT(why_not("U", 0), ::testing::HasSubstr("it alone loads nothing along q"));
}

TEST(Tile, AnArrayOfAnEarlierKernelIsLoadedByPattern) {
    const Example e = two_kernels();
    const auto counts = run(e, {{"i", 4}}, {});
    EXPECT_EQ(moved(e, counts.at(1), "T"), 6 + 2);
    const SizedProgram program = program_for(e, {{"i", 4}}, {});
    ASSERT_EQ(program.kernels.at(1).variables.size(), 3U);
    EXPECT_EQ(program.kernels.at(1).variables[0].name, "T");
    EXPECT_EQ(program.kernels.at(1).variables[1].name, "T_2");
}

TEST(Tile, WhatIsNotThereIsAnInternalFault) {
    const Example e = matmul();
    Values none(e.derived.diagram.arrays.size());
    EXPECT_THROW(interpret(program_for(e, {}, {}), none), InternalError);

    SizedProgram program = program_for(e, {}, {});
    program.kernels[0].body.erase(program.kernels[0].body.begin());  // the state's initialisation
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    EXPECT_THROW(interpret(program, values), InternalError);
}

TEST(Tile, FoldsAreMerged) {
    const Example e = weighted_mean();
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    EXPECT_EQ(
        evaluate_by_merge(e.derived, e.extents, partition_for(e.derived.diagram, {{"q", 2}}, {{"x", 2}}), 0.5, values), 4);
}

TEST(Tile, AWrongMergeShows) {
    Example e = weighted_mean();
    // Without its correction the merge is wrong, though the stream is right.
    FoldState& z = e.derived.kernels[0].folds[0].states[1];
    z.carry = e.self(z.old);
    Values values = random_inputs(e.derived.diagram, e.extents, 1);
    evaluate_by_merge(e.derived, e.extents, partition_for(e.derived.diagram, {}, {}), 0.5, values);
    const ArrayId O = e.derived.diagram.outputs[0];
    EXPECT_GT(std::abs(values[O][0] - defined(e)[O][0]), 1e-6);
}

TEST(Tile, AMillionPointsTakeNoTime) { run(matmul(100, 100, 100), {{"a", 32}, {"c", 32}}, {{"b", 32}}); }

}  // namespace
}  // namespace napkin::tile_examples::test_tile
