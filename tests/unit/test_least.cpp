// H* at numbers against every choice of integer group sizes, output axes that repeat work included, and when its
// formula holds.
#include "cost/least.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "derive/stream_choices.hpp"
#include "run/pipeline.hpp"
#include "tile/exact.hpp"

namespace napkin::test_least {
namespace {

struct Found {
    Derived derived;
    Extents extents;
    LeastTransfers least;
};

Found least(const std::string& text, const std::map<std::string, std::int64_t>& sizes, double memory) {
    PipelineOptions options;
    options.until = Pass::parse;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<text>", text}), options);
    if (!made) throw InternalError(render(made.errors()));
    Found out{derive(made->diagram).value(), bind_sizes(made->diagram, sizes).value(), {}};
    out.least = least_transfers(StreamChoices(out.derived).of(out.derived.kernels.size() - 1), out.extents, memory);
    return out;
}

/// The fewest transfers over the products of all sizes of two grouped axes, counted.
double brute_force(const Found& f, double memory) {
    const KernelCost& cost = f.least.cost;
    EXPECT_EQ(cost.grouped.size(), 2U);
    const SizedCost sized(cost, f.extents);
    double fewest = std::numeric_limits<double>::infinity();
    SizedCost::Sizes sizes(sized.num_sizes(), 1), best;
    for (sizes[0] = 1; sizes[0] <= sized.extent(0); ++sizes[0])
        for (sizes[1] = 1; sizes[1] <= sized.extent(1) && sized.memory(sizes) <= memory; ++sizes[1])
            if (const double moved = sized.transfers(sizes); moved < fewest) fewest = moved, best = sizes;
    TileSizes tiles{std::vector<std::int64_t>(f.extents.size(), 0), std::vector<std::int64_t>(f.extents.size(), 0)};
    for (std::size_t i = 0; i < 2; ++i) tiles.group[cost.grouped[i]] = best.at(i);
    for (const AxisId axis : cost.streamed) tiles.stream[axis] = 1;
    const Counts counted = exact_costs(f.least.form, f.least.form.kernels.back(), f.extents, tiles);
    EXPECT_DOUBLE_EQ(static_cast<double>(counted.transfers()), fewest);
    return fewest;
}

const char* const attention = R"(
f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";

TEST(Least, ALongOutputAxisIsCutThoughItRepeatsWork) {
    const Found f = least(attention, {{"q", 4096}, {"x", 4096}, {"k", 16}, {"d", 512}}, 8192);
    const double fewest = brute_force(f, 8192);
    EXPECT_NEAR(f.least.numeric.transfers / fewest, 1, 0.01);
    EXPECT_LT(fewest, 90e6);
    // With d whole, every row of a group takes k + d values: the formula in letters is another grouping's.
    EXPECT_FALSE(f.least.formula_holds());
    EXPECT_GT(*f.least.formula, 500e6);
    EXPECT_EQ(f.least.mismatch, Misfit::not_least);
}

TEST(Least, TheFormulaHoldsWhereMemoryIsLarge) {
    const Found f = least(attention, {{"q", 65536}, {"x", 65536}, {"k", 64}, {"d", 64}}, 1 << 18);
    EXPECT_TRUE(f.least.formula_holds()) << reason(f.least.mismatch, "M");
    // 33 groups of whole rows for the formula's 32, as a row holds two states beside its query and its sum.
    EXPECT_NEAR(f.least.numeric.transfers / *f.least.formula, 33.0 / 32, 0.01);
}

TEST(Least, NeverBelowTheCompulsoryTransfers) {
    // The formula of a large contraction, where everything fits at once.
    for (const double memory : {2e3, 2e4, 2e5, 2e6}) {
        const Found f = least(
            "f(X[i, j, k], B[j, r], C[k, r]) -> Y[i, r]\n    Y[i, r] = sum(j, k) X[i, j, k] * B[j, r] * C[k, r]\n",
            {{"i", 64}, {"j", 64}, {"k", 64}, {"r", 256}}, memory);
        if (!f.least.numeric.fits) continue;
        EXPECT_GE(f.least.numeric.transfers, f.least.compulsory) << memory;
        if (!f.least.formula_holds()) continue;
        EXPECT_GE(*f.least.formula * 1.01, f.least.compulsory) << memory;
    }
    const Found f = least("f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n",
                          {{"a", 16}, {"b", 16}, {"c", 16}}, 1e6);
    EXPECT_EQ(f.least.mismatch, Misfit::compulsory);
    EXPECT_DOUBLE_EQ(f.least.numeric.transfers, 3 * 256);
}

}  // namespace
}  // namespace napkin::test_least
