// Few plans serve all lengths, each of them nearly as fast as the plan for that length alone.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "plan/other_sizes.hpp"
#include "study/size_classes.hpp"

namespace napkin {
namespace {

struct OpenText {
    const char* name;
    std::string text, machine;
};

std::shared_ptr<const Source> source_of(const OpenText& open) {
    return std::make_shared<const Source>(Source{"open.nk", open.text});
}
PipelineOptions options_at(const OpenText& open, const std::vector<std::string>& axes = {}, std::int64_t length = 1) {
    PipelineOptions options;
    options.machine = open.machine, options.until = Pass::plan;
    for (const std::string& axis : axes) options.sizes[axis] = length;
    return options;
}
double seconds_at(const OpenText& open, const std::vector<std::string>& axes, std::int64_t length) {
    const auto made = run_pipeline(source_of(open), options_at(open, axes, length));
    if (!made) throw std::runtime_error(render(made.errors()));
    return made->plan.seconds();
}

class SizeClassesOf : public ::testing::TestWithParam<OpenText> {};

TEST_P(SizeClassesOf, CoverAllLengthsWithPlansThatAreNearTheirOwn) {
    const OpenText& open = GetParam();
    const std::vector<std::string> axes = open_axes(source_of(open), options_at(open));
    ASSERT_FALSE(axes.empty());
    const auto found = size_classes(source_of(open), options_at(open), axes);
    ASSERT_TRUE(found) << render(found.errors());
    EXPECT_LE(found->num_plans, most_kernels_of_classes);
    std::int64_t next = 1;
    for (const SizeClass& one : found->classes) {
        EXPECT_EQ(one.from, next);
        EXPECT_LE(one.from, one.to);
        next = one.to + 1;
    }
    EXPECT_EQ(next, found->longest + 1);
    std::mt19937_64 random(7);
    for (const SizeClass& one : found->classes) {
        // Plans for long lengths take long to simulate.
        const std::int64_t most = std::min<std::int64_t>(one.to, 16384);
        if (one.from > most) continue;
        const auto plan = run_pipeline(source_of(open), options_at(open, axes, one.planned_at));
        ASSERT_TRUE(plan);
        for (int k = 0; k < 3; ++k) {
            const std::int64_t length = std::uniform_int_distribution<std::int64_t>(one.from, most)(random);
            const auto taken = at_other_sizes(*plan, options_at(open, axes, length));
            ASSERT_TRUE(taken) << length;
            EXPECT_LE(taken->plan.seconds(), (1 + 2 * most_slower(length)) * seconds_at(open, axes, length)) << length;
        }
    }
}

const std::string open_product =
    "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = any, n = k = 4096\n";
const std::string open_rows =
    "softmaxes(X[r, c]) -> Y[r, c]\n"
    "    Y[r, c] = softmax(c) X[r, c]\n"
    "sizes r = any, c = 4096\n";
INSTANTIATE_TEST_SUITE_P(Programs, SizeClassesOf,
                         ::testing::Values(OpenText{"product_h200", open_product, "h200"},
                                           OpenText{"rows_cpu", open_rows, "generic-cpu"},
                                           OpenText{"rows_h200", open_rows, "h200"}),
                         [](const auto& open) { return std::string(open.param.name); });

TEST(OpenAxes, AreThoseOfAnySizeThatNobodyGives) {
    const auto open = [](const std::string& sizes, const std::map<std::string, std::int64_t>& given = {}) {
        const std::string text = "f(X[q, x]) -> Y[q]\n    Y[q] = sum(x) X[q, x]\n" + sizes;
        PipelineOptions options;
        options.sizes = given;
        return open_axes(std::make_shared<const Source>(Source{"f.nk", text}), options);
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(open("sizes q = x = any\n"), (Names{"q", "x"}));
    EXPECT_EQ(open("sizes q = any, x = any(64)\n"), (Names{"q"}));
    EXPECT_EQ(open("sizes q = x = any\n", {{"x", 3}}), (Names{"q"}));
    EXPECT_EQ(open("sizes q = 4\n"), Names{});
    EXPECT_EQ(open("sizes q = any = 4\n"), Names{}) << "an axis may have the name";
}

}  // namespace
}  // namespace napkin
