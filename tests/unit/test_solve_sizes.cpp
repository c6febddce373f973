// Sizes that follow from those of arrays: bind_sizes and the pipeline solve the text's equations for what has no size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagram/sizes.hpp"
#include "diagram/solve_sizes.hpp"
#include "run/pipeline.hpp"
#include "support/parsed.hpp"

namespace napkin::test_solve_sizes {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Sizes = std::map<std::string, std::int64_t>;

const std::string strided = "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[2*i + w] * W[w]\n";

Result<Sizes> solved(const std::string& text, const Sizes& given) { return with_solved_sizes(parsed(text), given); }
std::string refusal(const std::string& text, const Sizes& given) {
    const auto result = solved(text, given);
    return result.ok() ? "" : render(result.errors());
}

TEST(SolveSizes, TheOneUnknownOfAnEquation) {
    const std::string text = strided + "sizes n = 2 * i + w - 2\n";
    EXPECT_EQ(solved(text, {{"n", 20}, {"w", 4}}).value().at("i"), 9);
    EXPECT_EQ(bind_sizes(parsed(text), {{"n", 20}, {"w", 4}}).value()[*parsed(text).find_axis("i")], 9);
    EXPECT_EQ(solved(text, {{"n", 20}, {"i", 8}}).value().at("w"), 6) << "whichever it is";
    EXPECT_EQ(solved(text, {{"n", 20}}).value().size(), 1U) << "two unknowns are not solved";
    EXPECT_EQ(solved(text, {{"i", 3}, {"w", 4}}).value().size(), 2U) << "n is computed as ever";
}

TEST(SolveSizes, ThroughOtherSizesAndSeveralEquations) {
    const std::string chain =
        "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[2*i + w] * W[w]\nsizes n = 2 * j + w, j = i - 1\n";
    EXPECT_EQ(solved(chain, {{"n", 20}, {"w", 4}}).value().at("i"), 9);
    const std::string two =
        "f(X[n], Z[m]) -> Y[i, j]\n    Y[i, j] = X[2*i] * Z[i + 3*j]\nsizes n = 2 * i, m = i + 3 * j\n";
    const Sizes all = solved(two, {{"n", 8}, {"m", 19}}).value();
    EXPECT_EQ(all.at("i"), 4);
    EXPECT_EQ(all.at("j"), 5);
    const std::string product = "f(X[n], Z[b, k]) -> Y[b]\n    Y[b] = sum(k) X[k] * Z[b, k]\nsizes n = b * k\n";
    EXPECT_EQ(solved(product, {{"n", 12}, {"k", 4}}).value().at("b"), 3);
    const std::string square = "f(X[n]) -> Y[b]\n    Y[b] = X[b]\nsizes n = b^2\n";
    EXPECT_EQ(solved(square, {{"n", 16}}).value().size(), 1U) << "not affine";
}

TEST(SolveSizes, ADefaultYieldsToWhatIsGiven) {
    const std::string text = strided + "sizes n = 2 * i + w - 2, i = 64, w = 4\n",
                      one = strided + "sizes n = 2 * i, i = 64\n";
    EXPECT_EQ(solved(text, {{"n", 20}, {"w", 6}}).value().at("i"), 8);
    EXPECT_EQ(solved(one, {{"n", 20}}).value().at("i"), 10);
    EXPECT_FALSE(solved(one, {{"n", 128}}).value().contains("i")) << "it agrees";
    EXPECT_FALSE(solved(text, {{"n", 20}}).value().contains("i")) << "it may be either of two";
    EXPECT_FALSE(solved(strided + "sizes i = n - w + 1, n = 10\n", {{"i", 4}, {"w", 1}}).value().contains("n"));
    EXPECT_THAT(refusal(one, {{"n", 21}}), HasSubstr("n = 20 or 22"));
    EXPECT_EQ(solved(one, {{"n", 20}, {"i", 64}}).value().at("i"), 64) << "both are given";
}

TEST(SolveSizes, ARestIsRefused) {
    EXPECT_THAT(refusal(strided + "sizes n = 2 * i + w - 2\n", {{"n", 21}, {"w", 4}}),
                AllOf(HasSubstr("bad-size"), HasSubstr("n = 2*i + w - 2 is given as 21"), HasSubstr("for i"),
                      HasSubstr("with w = 4"), HasSubstr("n = 20 or 22")));
    EXPECT_THAT(refusal(strided + "sizes n = 2 * i + w - 2\n", {{"n", 1}, {"w", 4}}), HasSubstr("n = 2, say"));
    EXPECT_EQ(solved(strided + "sizes n = 2 * i + w - 2\n", {{"n", 2}, {"w", 4}}).value().at("i"), 0)
        << "there are empty arrays";
    EXPECT_THAT(
        refusal("f(X[n], Z[m]) -> Y[i]\n    Y[i] = X[2*i] * Z[3*i]\nsizes n = 2 * i, m = 3 * i\n", {{"n", 8}, {"m", 15}}),
        AllOf(HasSubstr("m = 3*i is given as 15"), HasSubstr("i = 4"), HasSubstr("n = 2*i"), HasSubstr("m = 12")));
}

TEST(SolveSizes, ThePipelineDoesItBeforeItForgetsTheText) {
    const auto source = std::make_shared<const Source>(Source{"a.nk", strided + "sizes n = 2 * i + w - 2\n"});
    PipelineOptions options;
    options.sizes = {{"n", 20}, {"w", 4}};
    options.until = Pass::size;
    const auto made = run_pipeline(source, options);
    ASSERT_TRUE(made.ok()) << render(made.errors());
    EXPECT_EQ(made->extents[*made->diagram.find_axis("i")], 9);
    options.sizes["n"] = 21;
    EXPECT_THAT(render(run_pipeline(source, options).errors()), HasSubstr("n = 2*i + w - 2 is given as 21"));
}

}  // namespace
}  // namespace napkin::test_solve_sizes
