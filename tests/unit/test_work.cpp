// What a check draws follows from a count of its work.
#include "check/work.hpp"

#include <gtest/gtest.h>

#include "check/eliminate.hpp"
#include "check/reference.hpp"
#include "check/small_sizes.hpp"
#include "check/validate.hpp"
#include "diagram/product.hpp"
#include "support/many_axes.hpp"
#include "support/parsed.hpp"

namespace napkin::test_work {
namespace {

constexpr const char* seven_matrices =
    "f(A[a, b], B[b, c], C[c, d], D[d, e], E[e, g], F[g, h]) -> O[a, h]\n"
    "    O[a, h] = sum(b, c, d, e, g) A[a, b] * B[b, c] * C[c, d] * D[d, e] * E[e, g] * 2 * F[g, h]\n"
    "sizes a = 6, b = 8, c = 9, d = 8, e = 7, g = 8, h = 9\n";

TEST(Work, CountsNodesAtPointsAndWhatRowsBeginWith) {
    const Diagram d = parsed("f(X[i, j]) -> Y[i]\n    Y[i] = sum(j) X[i, j] * 2\nsizes i = 1000, j = 1000\n");
    const double square = evaluation_operations(d, bind_sizes(d).value()),
                 tall = evaluation_operations(d, bind_sizes(d, {{"i", 500000}, {"j", 2}}).value());
    EXPECT_GE(square, 3e6) << "three nodes at a million points";
    EXPECT_LT(square, 4e6);
    EXPECT_GT(tall, 3 * square) << "rows of two are begun half a million times";
}

TEST(Work, OfTilesCountsWhatEveryGroupComputesAnew) {
    const Derived derived = derived_from(many_axes::padded_convolution);
    const Extents extents = bind_sizes(derived.diagram, {{"c", 4}, {"o", 4}, {"h", 8}, {"w", 8}}).value();
    PartitionSizes whole, single;
    whole.group.assign(extents.size(), 0), whole.stream.assign(extents.size(), 0);
    single.group.assign(extents.size(), 1), single.stream.assign(extents.size(), 1);
    EXPECT_GT(evaluation_operations(derived, extents, single), 2 * evaluation_operations(derived, extents, whole));
}

TEST(Work, SmallSizesAreFoundForProgramsOfManyAxes) {
    for (const char* text : many_axes::all) {
        const Diagram d = parsed(text);
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            std::mt19937_64 random(seed);
            const auto drawn = small_sizes(d, random,
                                           [&](const Extents& e) { return evaluation_operations(d, e) <= 2e6; });
            ASSERT_TRUE(drawn) << text << seed;
            EXPECT_LE(evaluation_operations(d, extents_of(d, drawn->sizes)), 2e6) << text << seed;
        }
    }
}

TEST(Work, ValidationTriesEveryKindOfInputWithinItsOperations) {
    for (const char* text : many_axes::all) {
        const auto validations = validate(derived_from(text), {.trials = 12, .operations = 1e7});
        for (const StepValidation& v : validations) {
            EXPECT_TRUE(v.good()) << text << v.what << ": " << to_string(*v.wrong);
            EXPECT_GE(v.trials, 11) << text << v.what;
        }
    }
    EXPECT_GT(validate(derived_from(many_axes::shifted_windows), {.trials = 12, .operations = 1e7}).back().cut_trials, 0);
    EXPECT_EQ(validate(derived_from("f(X[i]) -> Y\n    Y = sum(i) X[i]\n"), {.trials = 12}).back().cut_trials, 0);
}

TEST(Work, LongProductsAreSummedAxisByAxis) {
    const Diagram d = parsed(many_axes::eleven_matrices);
    const Extents extents = bind_sizes(d).value();
    EXPECT_LT(evaluation_operations(d, extents), 1e6) << "ten products of 6 by 6 matrices";
    const auto parts = with_axes_eliminated(d, d.equations[0], extents);
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->equations.size(), 11U);
    const Diagram two = parsed(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = j = k = 200\n");
    EXPECT_FALSE(with_axes_eliminated(two, two.equations[0], bind_sizes(two).value())) << "there is nothing to gain";
}

TEST(Work, LongProductsAreWhatTheirTermsAddUpTo) {
    const Diagram d = parsed(seven_matrices);
    const Extents extents = bind_sizes(d).value();
    ASSERT_TRUE(with_axes_eliminated(d, d.equations[0], extents));
    const Execution execution = plain_execution(d, extents);
    for (const bool positive : {false, true}) {
        Values values = random_inputs(d, extents, 4);
        if (positive)
            for (const ArrayId id : d.inputs)
                for (double& x : values[id].reals()) x = std::abs(x);
        const BoundedValues bounded = evaluate_bounded(d, extents, values, execution);
        Values written = values, in_parts = values;
        evaluate(d, extents, written, Precision::exact);
        evaluate(with_all_eliminated(d, extents), extents, in_parts, Precision::stored);
        const ArrayId out = d.outputs[0];
        for (std::size_t i = 0; i < written[out].size(); ++i) {
            const Bounded x = bounded.at(out, i);
            EXPECT_EQ(x.may, 0);
            EXPECT_LE(std::abs(x.value - written[out][i]), x.error) << i;
            EXPECT_LE(std::abs(x.value - in_parts[out][i]), x.error) << "in single precision, " << i;
            // Terms of one sign lose as many roundings as there are terms in turn, and no more than a few times that.
            const double roundings = static_cast<double>(execution.depth[0]) * 0x1p-24;
            if (positive) {
                EXPECT_GT(x.error, 0.9 * roundings * x.value) << i;
                EXPECT_LT(x.error, 2 * roundings * x.value) << i;
            }
        }
        // What is not finite has no bound.
        values[d.inputs[0]].reals()[0] = infinity;
        EXPECT_TRUE(is_unbounded(evaluate_bounded(d, extents, values, execution).at(out, 0)));
    }
}

}  // namespace
}  // namespace napkin::test_work
