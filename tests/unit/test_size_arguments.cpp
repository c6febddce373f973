// Sizes as arguments of a launch: one text serves many sizes, and the numbers beside it tell them apart.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/kernels_by_shape.hpp"
#include "run/pipeline.hpp"
#include "support/parsed.hpp"

namespace napkin {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

const std::string attention =
    "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
    "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
    "    P[h, q, x] = softmax(x) where(x <= q, S[h, q, x] * k^-0.5, -inf)\n"
    "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
    "sizes h = 16, q = x = 4096, k = d = 128\n";
const std::string dense_attention =
    "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
    "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
    "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
    "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
    "sizes h = 16, q = x = 4096, k = d = 128\n";
const std::string product =
    "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = n = k = 4096\n";
const std::string in_single =
    "attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n"
    "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) S[q, x] * k^-0.5\n"
    "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
    "sizes q = x = 4000, k = d = 64\n";
const std::string rows =
    "normed(X[r, c]) -> Y[r, c]\n"
    "    M[r] = sum(c) X[r, c]^2 * size(c)^-1\n"
    "    Y[r, c] = X[r, c] * (M[r] + 1e-6)^-0.5\n"
    "sizes r = 4001, c = 512\n";

PipelineOptions options_of(const Sizes& sizes, bool any_sizes) {
    PipelineOptions options;
    options.sizes = sizes, options.any_sizes = any_sizes, options.until = Pass::emit;
    return options;
}

Compilation planned(const std::string& text, const std::string& machine, bool any_sizes = true) {
    PipelineOptions options = options_of({}, any_sizes);
    options.machine = machine;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"sizes.nk", text}), options);
    if (!made) throw std::runtime_error(render(made.errors()));
    return std::move(*made);
}

struct Lengths {
    const char* name;
    const std::string& text;
    std::string machine;
    std::vector<std::string> axes;  ///< which have one length
    std::int64_t most;              ///< multiples of this are tried, up to eight of it
    std::size_t texts;              ///< that serve all of them
};

class SizeArguments : public ::testing::TestWithParam<Lengths> {};

/// Lengths differ in whether tiles divide them, and in the warps or CTAs that have nothing to do.
TEST_P(SizeArguments, FewTextsServeManyLengths) {
    const auto& [name, text, machine, axes, most, texts] = GetParam();
    const Compilation first = planned(text, machine);
    std::set<std::string> seen{complete(first.code)};
    int served = 0;
    for (std::int64_t length = most; length <= 8 * most; length += most) {
        Sizes sizes;
        for (const std::string& axis : axes) sizes[axis] = length;
        const auto other = at_other_sizes(first, options_of(sizes, true));
        if (!other) continue;  // the schedule breaks a rule there, and another one is planned
        ++served;
        if (seen.insert(complete(other->code)).second) RecordProperty("another text", std::to_string(length));
        for (const std::string& axis : axes) EXPECT_EQ(other->extents[*other->diagram.find_axis(axis)], length);
    }
    EXPECT_LE(seen.size(), texts);
    EXPECT_GE(served, 5);
}

INSTANTIATE_TEST_SUITE_P(Programs, SizeArguments,
                         ::testing::Values(Lengths{"causal", attention, "h200", {"q", "x"}, 768, 2},
                                           Lengths{"dense", dense_attention, "h200", {"q", "x"}, 768, 3},
                                           Lengths{"product", product, "h200", {"m"}, 1024, 2},
                                           Lengths{"in_single_gpu", in_single, "h200", {"q"}, 960, 3},
                                           Lengths{"in_single_cpu", in_single, "generic-cpu", {"q"}, 960, 2},
                                           Lengths{"rows_cpu", rows, "generic-cpu", {"r"}, 1000, 3},
                                           Lengths{"rows_gpu", rows, "h200", {"r"}, 1000, 2}),
                         [](const auto& lengths) { return std::string(lengths.param.name); });

/// Masks and weights with sizes in them, as behind a cache of keys, are numbers of the launch, too.
TEST(TextsForAnySize, HaveSizesOfMasksAsNumbers) {
    std::string text = attention;
    const std::string mask = "x <= q,";
    text.replace(text.find(mask), mask.size(), "x <= q + size(x) - size(q),");
    for (const char* machine : {"h200", "generic-cpu"}) {
        const Compilation first = planned(text, machine);
        std::set<std::string> seen;
        for (const Sizes& sizes : {Sizes{{"q", 1000}, {"x", 4001}}, Sizes{{"q", 1001}, {"x", 4003}},
                                   Sizes{{"q", 77}, {"x", 501}}, Sizes{{"q", 901}, {"x", 901}}}) {
            const auto other = at_other_sizes(first, options_of(sizes, true));
            ASSERT_TRUE(other);
            seen.insert(complete(other->code));
        }
        EXPECT_EQ(seen.size(), 1U) << machine;
    }
}

/// A factor of a row's maximum and the weights that rescaling allows follow from sizes. Whether the last rows leave a
/// warpgroup without work makes no other text.
TEST(TextsForAnySize, HaveFactorsAndLimitsAsFormulas) {
    const Compilation first = planned(
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * size(x)^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 16, k = d = 128, q = x = 4000\n",
        "h200");
    ASSERT_TRUE(first.plan.kernels.front().scheduled.rescale) << "no maximum stays behind";
    std::set<std::string> seen;
    for (const std::int64_t length : {3, 57, 65, 100, 127, 129, 1001, 8191}) {
        const auto other = at_other_sizes(first, options_of({{"q", length}, {"x", length}}, true));
        ASSERT_TRUE(other) << length;
        seen.insert(complete(other->code));
        const auto& one = std::get<cuda::CudaSource>(first.code).entries;
        const auto& two = std::get<cuda::CudaSource>(other->code).entries;
        ASSERT_EQ(one.size(), two.size());
        for (std::size_t k = 0; k < one.size(); ++k) {
            const auto numbers = lower::numbers_at(one[k].formulas, other->program.extents);
            ASSERT_EQ(numbers.size(), two[k].numbers.size());
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                if (!one[k].formulas.numbers[i].is_real) continue;
                EXPECT_EQ(numbers[i], two[k].numbers[i]) << length << " " << i;
            }
        }
    }
    EXPECT_EQ(seen.size(), 1U);
}

/// Tiles may be longer than the axis: short lengths take the text of long ones.
TEST(TextsForAnySize, ServeLengthsBelowATile) {
    for (const char* machine : {"h200", "generic-cpu"}) {
        const Compilation first = planned(attention, machine);
        std::set<std::string> seen;
        for (const std::int64_t length : {3, 57, 127, 1001}) {
            const auto other = at_other_sizes(first, options_of({{"q", length}, {"x", length}}, true));
            ASSERT_TRUE(other) << machine << " " << length;
            seen.insert(complete(other->code));
        }
        EXPECT_EQ(seen.size(), 1U) << machine;
    }
}

/// A stream in parts serves short lengths, too: parts without values are empty. So does a plan whose own length does
/// not give every part a K block.
TEST(TextsForAnySize, ServeEveryLengthInParts) {
    const std::string one_query =
        "attention(Q[h, g, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, g, q, d]: bf16\n"
        "    S[h, g, q, x] = sum(k) Q[h, g, q, k] * K[h, x, k]\n"
        "    P[h, g, q, x] = softmax(x) S[h, g, q, x] * k^-0.5\n"
        "    O[h, g, q, d] = sum(x) P[h, g, q, x] * V[h, x, d]\n"
        "sizes h = 8, g = 4, q = 1, k = d = 128, x = 4001\n";
    const Compilation first = planned(one_query, "h200");
    ASSERT_GT(first.plan.kernels.front().schedule().split.value, 1);
    std::set<std::string> seen;
    std::set<std::int64_t> numbers;  // of parts
    for (std::int64_t power = 1; power <= 1 << 16; power *= 8)
        for (const std::int64_t length : {power, power + power / 2}) {
            const auto other = at_other_sizes(first, options_of({{"x", length}}, true));
            ASSERT_TRUE(other) << length;
            seen.insert(complete(other->code));
            numbers.insert(other->plan.kernels.front().schedule().split.value);
        }
    EXPECT_LE(seen.size(), 2U) << "a constant of length 1 is 0";
    EXPECT_EQ(*numbers.begin(), 2) << "short lengths have few parts";
    EXPECT_GT(numbers.size(), 2U);
}

/// A text with numbers serves one size alone.
TEST(SizesAsNumbers, StandInTheText) {
    Compilation first = planned(product, "h200", false);
    const auto numbers = at_other_sizes(first, options_of({{"m", 8192}}, false));
    ASSERT_TRUE(numbers);
    EXPECT_NE(complete(first.code), complete(numbers->code));
    EXPECT_NE(complete(numbers->code).find("8192"), std::string::npos);
}

/// What is wrong with another size is found, and nothing is emitted for it.
TEST(OtherSizes, AreRefusedWhereTheSchedulesDoNotFit) {
    const Compilation first = planned(product, "h200");
    EXPECT_FALSE(at_other_sizes(first, options_of({{"m", 0}}, true)));
    EXPECT_FALSE(at_other_sizes(first, options_of({{"k", 4099}}, true))) << "rows of 8,198 bytes";
}

/// Sizes may make two dimensions be read as one. Then other sizes get another derivation.
TEST(OtherSizes, AreDerivedAnew) {
    const std::string digits =
        "digits(X[a, b]) -> Y[n]\n    Y[n] = 2 * X[n // 4, n % 4]\nsizes a = 1000, b = 4, n = 4000\n";
    const Compilation first = planned(digits, "generic-cpu");
    const Sizes sizes{{"a", 1000}, {"b", 5}, {"n", 4000}};
    const auto other = at_other_sizes(first, options_of(sizes, true));
    PipelineOptions options = options_of(sizes, true);
    options.machine = "generic-cpu";
    const auto anew = run_pipeline(first.source, options);
    ASSERT_TRUE(anew) << render(anew.errors());
    const auto arrays = [](const Compilation& c) { return c.derived.diagram.arrays; };
    if (other) {
        EXPECT_EQ(arrays(*other), arrays(*anew));
    }
    EXPECT_NE(arrays(first), arrays(*anew)) << "the case shows nothing";
}

}  // namespace
}  // namespace napkin
