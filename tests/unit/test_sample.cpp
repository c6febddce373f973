// A sample of the outputs is exactly the full evaluation at the kept places.
#include "check/sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "syntax/parse.hpp"

namespace napkin::test_sample {
namespace {

void expect_same_values(const std::string& text, double max_points, bool thinned) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto extents = bind_sizes(*diagram);
    ASSERT_TRUE(extents.ok());
    Values full = random_inputs(*diagram, *extents, 3);

    const Sample sample = sample_outputs(*diagram, *extents, max_points, 5);
    const auto left_out = [](const std::vector<std::int64_t>& values) { return !values.empty(); };
    EXPECT_EQ(std::any_of(sample.kept.begin(), sample.kept.end(), left_out), thinned) << text;
    if (thinned) {
        EXPECT_LT(evaluation_points(sample.diagram, sample.extents), evaluation_points(*diagram, *extents));
    }
    Values part(sample.diagram.arrays.size());
    for (const ArrayId id : diagram->inputs) part[id] = take_sample(sample, id, *extents, full[id]);
    fill_coordinates(sample, part);
    evaluate(*diagram, *extents, full);
    evaluate(sample.diagram, sample.extents, part);
    for (const ArrayId id : diagram->outputs) {
        EXPECT_EQ(part[id], take_sample(sample, id, *extents, full[id])) << text;
    }
}

TEST(Sample, keeps_some_values_of_woven_axes) {
    expect_same_values(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = 50, k = 6, j = 40\n", 600, true);
}

TEST(Sample, coordinates_and_sizes_stay_those_of_the_whole) {
    expect_same_values(
        "f(S[q, x]) -> O[q]\n    O[q] = sum(x) where(x <= q, S[q, x] * size(q) + q, 0)\nsizes q = 60, x = 60\n", 500, true);
}

TEST(Sample, reduced_and_shifted_axes_stay_whole) {
    expect_same_values(
        "f(X[c, n], W[w]) -> Y[c, i]\n    Y[c, i] = sum(w) X[c, i + w] * W[w]\nsizes c = 30, n = 20, w = 5, i = 16\n",
        800, true);
    expect_same_values("f(X[i]) -> Y[i]\n    M = sum(i) X[i]\n    Y[i] = X[i] - M\nsizes i = 100\n", 10, false);
    // The same array read at two axes.
    expect_same_values("f(X[i, k]) -> S[i, j]\n    S[i, j] = sum(k) X[i, k] * X[j, k]\nsizes i = j = 30, k = 4\n", 10,
                       false);
}

TEST(Sample, asks_for_the_kept_places_alone) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(
        Source{"<test>", "f(X[i, k]: i32) -> Y[i, k]: i32\n    Y[i, k] = X[i, k] + 1\nsizes i = 1000, k = 1000\n"}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const Extents extents = bind_sizes(*diagram).value();
    const ArrayId input = diagram->inputs[0];
    const Column full = random_inputs(*diagram, extents, 3)[input];
    const Sample sample = sample_outputs(*diagram, extents, 10000, 5);
    std::size_t asked = 0;
    const Column part = take_sample(sample, input, extents, [&](std::int64_t place) {
        ++asked;
        return full.at(static_cast<std::size_t>(place));
    });
    EXPECT_EQ(part, take_sample(sample, input, extents, full));
    EXPECT_EQ(asked, part.size());
    EXPECT_LT(asked, full.size() / 50);
}

TEST(Sample, small_diagrams_are_evaluated_whole) {
    expect_same_values("f(X[i]) -> Y[i]\n    Y[i] = exp(X[i])\nsizes i = 100\n", 1000, false);
}

}  // namespace
}  // namespace napkin::test_sample
