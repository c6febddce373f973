// The search of integer sizes: divisors, sizes by hand, groups for all nodes, huge and odd axes.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "cost/optimum.hpp"
#include "cost/search.hpp"
#include "hand_derived.hpp"

namespace napkin::test_search {
namespace {

using hand::extents;

struct Case {
    Derived derived;
    KernelCost cost;
    SizedCost sized;
    Case(const Derived& d, const Extents& e)
        : derived(d), cost(symbolic_cost(d, d.kernels[0], default_grouped(d.kernels[0]))), sized(cost, e) {}
};

Case matmul(std::int64_t a, std::int64_t b, std::int64_t c) {
    const Derived d = hand::matmul();
    return {d, extents(d, {{"a", a}, {"b", b}, {"c", c}})};
}

SearchOptions with_memory(double memory) {
    SearchOptions options;
    options.memory = memory;
    return options;
}

TEST(Search, SquareTiles) {
    // g² + 2g ≤ 120: 10 by 10, which divides.
    const Case m = matmul(1000, 64, 1000);
    const SearchResult found = search_sizes(m.sized, with_memory(120));
    EXPECT_TRUE(found.fits);
    EXPECT_EQ(found.sizes, (SizedCost::Sizes{10, 10, 1}));
    EXPECT_DOUBLE_EQ(found.transfers, 2.0 * 1000 * 1000 * 64 / 10 + 1000 * 1000);
    EXPECT_DOUBLE_EQ(found.memory, 120);
}

TEST(Search, RaggedTilesCountAsWhatTheyAre) {
    const Case m = matmul(10, 7, 9);
    // ⌈10/4⌉ and ⌈9/5⌉ tiles.
    EXPECT_DOUBLE_EQ(m.sized.transfers({4, 5, 1}), 10 * 7 * 2 + 7 * 9 * 3 + 90);
    EXPECT_DOUBLE_EQ(m.sized.transfers({4, 5, 1}, false), 10 * 7 * 9 / 5.0 + 7 * 9 * 10 / 4.0 + 90);
    EXPECT_DOUBLE_EQ(m.sized.num_groups({4, 5, 1}), 6);
    EXPECT_DOUBLE_EQ(m.sized.memory({4, 5, 2}), 4 * 5 + 2 * 4 + 2 * 5);
}

TEST(Search, WhatDoesNotFitIsSaid) {
    const Case m = matmul(100, 100, 100);
    const SearchResult found = search_sizes(m.sized, with_memory(2));
    EXPECT_FALSE(found.fits);
    EXPECT_EQ(found.sizes, (SizedCost::Sizes{1, 1, 1}));
    EXPECT_DOUBLE_EQ(found.memory, 3);
}

TEST(Search, DivisorsAndSizesByHand) {
    const Case m = matmul(1000, 64, 1000);
    const AxisId a = m.cost.grouped[0], c = m.cost.grouped[1];
    SearchOptions options = with_memory(5000);
    options.group_divisor = {{a, 64}, {c, 16}};
    const SearchResult found = search_sizes(m.sized, options);
    EXPECT_EQ(found.sizes[0] % 64, 0);
    EXPECT_EQ(found.sizes[1] % 16, 0);
    EXPECT_LE(found.memory, 5000);
    options.fixed = {{a, 5000}};
    EXPECT_EQ(search_sizes(m.sized, options).sizes[0], 1000) << "no more than the axis";
    options.fixed = {{a, 7}};
    options.group_divisor.erase(c);
    const SearchResult fixed = search_sizes(m.sized, options);
    EXPECT_EQ(fixed.sizes[0], 7);
    EXPECT_EQ(fixed.sizes[1], 500) << "8·c + 7 ≤ 5000 holds up to 624; 500 is as good and smaller";
    // An axis that is shorter than its divisor runs whole.
    const Case small = matmul(10, 64, 10);
    SearchOptions wide = with_memory(1e6);
    wide.group_divisor = {{small.cost.grouped[0], 64}};
    EXPECT_EQ(search_sizes(small.sized, wide).sizes[0], 10);
}

TEST(Search, AllNodesHaveWork) {
    const Case m = matmul(1024, 64, 1024);
    SearchOptions options = with_memory(1e9);
    EXPECT_EQ(m.sized.num_groups(search_sizes(m.sized, options).sizes), 1);
    options.least_groups = 100;
    EXPECT_GE(m.sized.num_groups(search_sizes(m.sized, options).sizes), 100);
    options.least_groups = 1e12;
    EXPECT_EQ(m.sized.num_groups(search_sizes(m.sized, options).sizes), 1024.0 * 1024) << "as many as there are";
}

TEST(Search, AnObjectiveInPlaceOfTransfers) {
    const Case m = matmul(512, 64, 512);
    SearchOptions options = with_memory(1e6);
    // Far from the largest tiles: 132 groups a wave.
    options.objective = [](const SizedCost& cost, const SizedCost::Sizes& sizes) {
        return std::abs(cost.num_groups(sizes) - 128) + 1e-9 * cost.transfers(sizes);
    };
    const SearchResult found = search_sizes(m.sized, options);
    EXPECT_EQ(m.sized.num_groups(found.sizes), 128);
}

TEST(Search, NoAxesToGroup) {
    hand::Builder b;
    const AxisId i = b.axis("i");
    const ArrayId X = b.input("X", {i}), Y = b.output("Y", {});
    b.kernel.stages.emplace_back(Loop{i, {}, {{Y, 0.0}}, {hand::fold(Y, ReduceOp::sum, {i}, b.get(X), b.get(Y))}});
    const Derived d = b.finish("Y", {});
    const Case total(d, extents(d, {{"i", 1000}}));
    const SearchResult found = search_sizes(total.sized, with_memory(10));
    EXPECT_TRUE(found.fits);
    EXPECT_DOUBLE_EQ(found.transfers, 1001);
    EXPECT_FALSE(search_sizes(total.sized, with_memory(1)).fits);
    const Optimum best = optimum(total.cost);
    ASSERT_TRUE(best.closed);
    EXPECT_EQ(best.transfers, Size(axis_symbol(0)) + Size(1));
}

TEST(Search, SizesOfOneAndPrimes) {
    const SearchResult ones = search_sizes(matmul(1, 1, 1).sized, with_memory(3));
    EXPECT_TRUE(ones.fits);
    EXPECT_DOUBLE_EQ(ones.transfers, 3);
    // 1009 is prime: 3 by 337 groups rather than 1009 of 1.
    const SearchResult primes = search_sizes(matmul(1009, 31, 1).sized, with_memory(800));
    EXPECT_EQ(primes.sizes[0], 337);
}

TEST(Search, HugeAxesTakeNoTime) {
    for (const std::int64_t size : {std::int64_t{1} << 31, (std::int64_t{1} << 40) - 87, std::int64_t{1} << 60}) {
        const Case m = matmul(size, 64, size);
        for (const double memory : {1e5, 1e9, 1e18}) {
            const auto start = std::chrono::steady_clock::now();
            const SearchResult found = search_sizes(m.sized, with_memory(memory));
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            EXPECT_LT(seconds, 0.25) << size << " at " << memory;
            EXPECT_LE(found.memory, memory);
            const double n = static_cast<double>(size);
            const double closed = n * n * (2 * 64 / std::min(n, std::sqrt(memory)) + 1);
            EXPECT_NEAR(found.transfers / closed, 1, 0.01) << size << " at " << memory;
        }
    }
}

}  // namespace
}  // namespace napkin::test_search
