// Indices: their kinds, values and intervals; boxes; reads that conditions keep inside; values that lead outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "diagram/box.hpp"
#include "diagram/check_indices.hpp"
#include "diagram/evaluate.hpp"
#include "support/parsed.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin::test_indices {
namespace {

using ::testing::HasSubstr;

Expr number(std::int64_t n) { return constant(static_cast<double>(n)); }

const Read& first_read(const Diagram& d, const std::string& array) {
    const Read* found = nullptr;
    for (const Equation& e : d.equations)
        visit(e.body, [&](const Expr& node) {
            if (const auto* r = as<Read>(node); r && !found && d.array(r->array).name == array) found = r;
        });
    return *found;
}

/// A random index over the axes 0 and 1.
Expr random_index(std::mt19937_64& random, int depth) {
    const auto pick = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
    if (depth == 0) return pick(3) == 0 ? number(pick(7) - 3) : axis_index(AxisId::of(pick(2)));
    const auto sub = [&] { return random_index(random, depth - 1); };
    switch (pick(7)) {
        case 0: return binary(BinaryOp::add, sub(), sub());
        case 1: return binary(BinaryOp::sub, sub(), sub());
        case 2: return binary(BinaryOp::mul, number(pick(7) - 3), sub());
        case 3: return binary(BinaryOp::floor_div, sub(), number(1 + pick(4)));
        case 4: return binary(BinaryOp::mod, sub(), number(1 + pick(4)));
        case 5: return binary(BinaryOp::min, sub(), sub());
        default: return binary(BinaryOp::max, sub(), unary(UnaryOp::neg, sub()));
    }
}

TEST(Index, ValuesAreThoseOfTheExpressionAndLieInTheInterval) {
    const Diagram none;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        std::mt19937_64 random(seed);
        const Expr e = random_index(random, 3);
        const Index index = Index::of(e);
        const std::vector<std::int64_t> begin{static_cast<std::int64_t>(random() % 9),
                                              static_cast<std::int64_t>(random() % 9)},
            count{1 + static_cast<std::int64_t>(random() % 7), 1 + static_cast<std::int64_t>(random() % 7)};
        const Interval range = range_of(index, begin, count);
        Kinds kinds = kinds_of(none);
        for (std::int64_t x = begin[0]; x < begin[0] + count[0]; ++x) {
            for (std::int64_t y = begin[1]; y < begin[1] + count[1]; ++y) {
                const std::int64_t value = value_at(index, {x, y}, {});
                ASSERT_EQ(value, evaluate_at(e, kinds, none, {}, {}, {x, y}).as_whole(Kind::i64)) << "seed " << seed;
                ASSERT_GE(value, range.low) << "seed " << seed;
                ASSERT_LE(value, range.high) << "seed " << seed;
            }
        }
        if (index.affine()) {
            EXPECT_EQ(Index::of(index.value()), index) << "seed " << seed;
        }
    }
}

TEST(Index, NumbersInPlaceOfSizesMakeWhatTheyCanAffine) {
    const Index half = Index::of(binary(BinaryOp::add, axis_index(0), binary(BinaryOp::div, axis_size(1), number(2))));
    EXPECT_FALSE(half.affine());
    EXPECT_EQ(with_sizes(half, {4, 10}), Index(Affine{{{AxisId(0), 1}}, 5}));
    const Index flat = Index::of(binary(BinaryOp::mul, axis_index(0), axis_size(1)));
    EXPECT_EQ(with_sizes(flat, {4, 10}), Index(Affine{{{AxisId(0), 10}}, 0}));
}

TEST(Index, SubstitutionReachesIntoElements) {
    const Diagram d = parsed("f(X[n], a[m]: i32) -> Y[i]\n    Y[i] = X[a[i + 1] + i // 2]\nsizes m = i + 1\n");
    const Read& r = first_read(d, "X");
    const AxisId i = *d.find_axis("i"), m = *d.find_axis("m");
    const Index moved = substitute(
        r.indices[0], [&](AxisId axis) { return axis == i ? std::optional<Index>(Affine::axis(m) * 2) : std::nullopt; });
    EXPECT_EQ(to_string(moved, d.names()), "a[2*m + 1] + 2 * m // 2");
}

TEST(Index, PrintsAndReadsBack) {
    const Diagram d = parsed(
        "f(X[n, c], a[t]: i32) -> Y[t, c]\n    Y[t, c] = X[a[t // 2] + t % size(t), max(c - 1, 0)] + X[size(n)/2 - -t, "
        "c]\n"
        "sizes n = 64, t = 8, c = 3\n");
    const auto again = parse_diagram(std::make_shared<const Source>(Source{"again.nk", print(d)}));
    ASSERT_TRUE(again.ok()) << print(d) << render(again.errors());
    EXPECT_EQ(canonical(*again), canonical(d)) << print(d);
}

TEST(Index, AnOffsetOfZeroReadsAPartOfADimension) {
    const Diagram d = parsed(
        "f(X[n], Z[m, n]) -> Y[j], W[j]\n    Y[j] = X[j + 0]\n    W[j] = sum(m) Z[m, j + 0] * X[0 + j]\n"
        "sizes n = 5, j = 2\n");
    EXPECT_EQ(parsed(print(d)), d);
    EXPECT_EQ(*bind_sizes(d, {{"m", 3}}), *bind_sizes(d, {{"m", 3}, {"n", 5}, {"j", 2}}));
    // Without a size of its own the axis does not take that of the dimension.
    EXPECT_FALSE(bind_sizes(parsed("f(X[n]) -> Y[j]\n    Y[j] = X[j + 0]\n"), {{"n", 5}}).ok());
}

TEST(Box, GatheredDimensionsRunOverWhatTheIndexIsMadeOf) {
    const auto shown = [](const std::string& text, const std::string& array) {
        const Diagram d = parsed(text);
        const Box box = box_of(d, first_read(d, array));
        std::string out;
        for (const Index& dim : box.dims) out += (out.empty() ? "" : ", ") + to_string(dim, d.names());
        return out;
    };
    EXPECT_EQ(shown("f(T[v, c], i[t]: i32) -> Y[t, c]\n    Y[t, c] = T[i[t], c]\n", "T"), "t, c");
    EXPECT_EQ(shown("f(K[p, l, k], t[b, n]: i32) -> Y[b, x, k]\n    Y[b, x, k] = K[t[b, x // 16], x % 16, k]\n", "K"),
              "b, x // 16, x % 16, k");
    EXPECT_EQ(shown("f(X[n], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t] + t]\n", "X"), "t");
    EXPECT_EQ(shown("f(K[n, k], t[b, n]: i32) -> Y[b, x, k]\n    Y[b, x, k] = K[t[b, x // 16] * 16 + x % 16, k]\n", "K"),
              "b, x // 16, x % 16, k");
    EXPECT_EQ(shown("f(X[n], i[r]: i32) -> Y[s, t]\n    Y[s, t] = X[i[s // 8] + t]\n", "X"), "s // 8, t");
    // Rows of blocks that overlap, and quotients and rests by two numbers, are those of the axis.
    EXPECT_EQ(shown("f(X[n], i[r]: i32) -> Y[t]\n    Y[t] = X[i[t // 8] + t]\n", "X"), "t");
    EXPECT_EQ(shown("f(X[n], i[r]: i32) -> Y[t]\n    Y[t] = X[i[t // 8] + t % 4]\n", "X"), "t");
    EXPECT_EQ(shown("f(X[n, m], i[t]: i32, j[t]: i32) -> Y[t]\n    Y[t] = X[i[t], j[t]]\n", "X"), "t");
    EXPECT_EQ(shown("f(X[n], a[m]: i32, b[t]: i32) -> Y[t]\n    Y[t] = X[a[b[t]]]\n", "X"), "t");
}

TEST(Box, HasItsDimensionsInOneOrderWhateverItsSizesAre) {
    const Diagram d = parsed("f(X[n], a[s, t]: i32) -> Y[t]\n    Y[t] = sum(s) X[a[s, size(t) - 1 - t] % size(n)]\n");
    const Read& with_names = first_read(d, "X");
    const Expr sized = with_sizes(read(with_names.array, with_names.indices),
                                  bind_sizes(d, {{"n", 3}, {"s", 4}, {"t", 5}}).value());
    EXPECT_EQ(box_of(d, with_names).dims, box_of(d, *as<Read>(sized)).dims);
}

std::string size_error(const std::string& text) {
    const auto bound = bind_sizes(parsed(text));
    return bound ? "" : render(bound.errors());
}

TEST(Guards, ReadsThatAConditionKeepsInsideAreAllowed) {
    const std::string sizes = "sizes n = 12, w = 3\n";
    const auto tried = [&](const std::string& body) {
        return size_error("f(X[n], W[w]) -> Y[n]\n    Y[n] = sum(w) W[w] * " + body + "\n" + sizes);
    };
    EXPECT_EQ(tried("where(n - w >= 0, X[n - w], 0)"), "");
    EXPECT_EQ(tried("where(w <= n, X[n - w], 0)"), "");
    EXPECT_EQ(tried("where(n < w, 0, X[n - w])"), "");
    EXPECT_EQ(tried("where(not (n < w), X[n - w], 0)"), "");
    EXPECT_EQ(tried("where(n + w - 1 >= 0 and n + w - 1 < size(n), X[n + w - 1], 0)"), "");
    EXPECT_EQ(tried("where(n < w or n > 8, 0, X[n - w])"), "");
    EXPECT_EQ(tried("where(2*n >= 2*w, X[n - w], 0)"), "");
    EXPECT_EQ(tried("where(n % 4 == 3, X[n - w], 0)"), "");
    EXPECT_THAT(tried("X[n - w]"), HasSubstr("index-out-of-range"));
    EXPECT_THAT(tried("where(n - w >= -1, X[n - w], 0)"), HasSubstr("index-out-of-range"));
    EXPECT_THAT(tried("where(n + w - 1 >= 0, X[n + w - 1], 0)"), HasSubstr("index-out-of-range"));
    EXPECT_THAT(tried("(where(n - w >= 0, X[n - w], 0) + X[n - w])"), HasSubstr("index-out-of-range"));
    EXPECT_THAT(tried("X[n - w]"), HasSubstr("where(n - w >= 0, X[…], 0)"));
}

TEST(Guards, SizesInAnIndexDivideAsTheyMust) {
    EXPECT_EQ(size_error("f(X[n]) -> Y[i]\n    Y[i] = X[i + size(n)/2]\nsizes n = 8, i = 4\n"), "");
    EXPECT_THAT(size_error("f(X[n]) -> Y[i]\n    Y[i] = X[i + size(n)/2]\nsizes n = 9, i = 4\n"),
                HasSubstr("size(n) / 2 in an index is 9/2"));
    EXPECT_THAT(size_error("f(X[n]) -> Y[i]\n    Y[i] = X[i % (size(n) - 8)]\nsizes n = 8, i = 4\n"),
                HasSubstr("bad-divisor"));
}

TEST(CheckIndices, NamesTheValueThatLeadsOutside) {
    const Diagram d = parsed("f(T[v], i[t]: i32) -> Y[t]\n    Y[t] = T[i[t]]\nsizes v = 5, t = 3\n");
    const Extents extents = *bind_sizes(d);
    Values values(d.arrays.size());
    const auto check = [&](std::vector<std::int64_t> indices) {
        values[*d.find_array("i")] = Column(std::move(indices));
        const auto found = check_indices(d, extents, values);
        return found ? found->message : "";
    };
    EXPECT_EQ(check({0, 4, 2}), "");
    EXPECT_EQ(check({0, 5, 2}), "i[t] is 5 at t = 1, but v of T has 5 values");
    EXPECT_EQ(check({0, 1, -1}), "i[t] is -1 at t = 2, but v of T has 5 values");
}

TEST(CheckIndices, WhatAConditionKeepsOutMayLeadOutside) {
    const Diagram d = parsed(
        "f(T[v], i[t]: i32) -> Y[t]\n    Y[t] = where(i[t] >= 0, T[i[t]], 0)\nsizes v = 5, t = 3\n");
    const Extents extents = *bind_sizes(d);
    Values values(d.arrays.size());
    values[*d.find_array("i")] = Column(std::vector<std::int64_t>{0, -1, 2});
    EXPECT_FALSE(check_indices(d, extents, values));
    values[*d.find_array("i")] = Column(std::vector<std::int64_t>{0, -1, 7});
    EXPECT_TRUE(check_indices(d, extents, values));
}

TEST(CheckIndices, AnIndexThatIsReadByAnotherLeadsInsideToo) {
    const Diagram d = parsed(
        "f(X[n], a[m]: i32, b[t]: i32) -> Y[t]\n    Y[t] = X[a[b[t]]]\nsizes n = 9, m = 3, t = 2\n");
    Values values(d.arrays.size());
    const auto found = [&](std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
        values[*d.find_array("a")] = Column(std::move(a));
        values[*d.find_array("b")] = Column(std::move(b));
        const auto wrong = check_indices(d, *bind_sizes(d), values);
        return wrong ? wrong->message : "";
    };
    EXPECT_EQ(found({0, 8, 4}, {0, 2}), "");
    EXPECT_EQ(found({0, 9, 4}, {0, 2}), "") << "nothing reads the element that leads outside";
    EXPECT_EQ(found({0, 9, 4}, {0, 1}), "a[b[t]] is 9 at t = 1, but n of X has 9 values");
    EXPECT_EQ(found({0, 8, 4}, {3, 1}), "a[b[t]] is outside of its own array at t = 0, but n of X has 9 values");
    EXPECT_EQ(found({0, 8, 4}, {0, -1}), "a[b[t]] is outside of its own array at t = 1, but n of X has 9 values");
}

TEST(CheckIndices, ComputedOnesAreLookedAtOnceTheyAreKnown) {
    const Diagram d = parsed(
        "f(X[a, t], K[t]: i32, V[m]) -> Y[a], Z[a]\n    I[a] = argmax(t) X[a, t]\n    J[a] = K[I[a]] - 1\n"
        "    Y[a] = V[J[a]]\n    Z[a] = where(J[a] >= 0, V[J[a]], 5)\nsizes a = 2, t = 3, m = 2\n");
    const Extents extents = *bind_sizes(d);
    const auto id = [&](const char* name) { return *d.find_array(name); };
    Values values(d.arrays.size());
    values[id("X")] = Column{0, 1, 0, 7, 1, 0};
    values[id("K")] = Column(std::vector<std::int64_t>{0, 2, 3});
    values[id("V")] = Column{10, 11};
    EXPECT_FALSE(check_indices(d, extents, values));
    evaluate(d, extents, values);
    const auto found = check_indices(d, extents, values);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->message, "J[a] is -1 at a = 1, but m of V has 2 values");
    EXPECT_EQ(found->hint, "a condition keeps such reads out: where(J[a] >= 0, V[J[a]], 0)");
    EXPECT_FALSE(check_indices(d, extents, values, {id("I")}));
    EXPECT_TRUE(check_indices(d, extents, values, {id("J")}));
    EXPECT_EQ(values[id("Y")][0], 11);
    EXPECT_TRUE(std::isnan(values[id("Y")][1])) << "what is not there has no value";
}

TEST(CheckIndices, RandomInputsLeadInside) {
    const Diagram d = parsed(
        "f(K[p, l], t[b]: i32, u[b]: i32) -> Y[b]\n    Y[b] = K[t[b], u[b] % 4] + K[2 * t[b], 3 - u[b]]\nsizes p = 9, "
        "l = 4, b = 200\n");
    const Extents extents = *bind_sizes(d);
    EXPECT_FALSE(check_indices(d, extents, random_inputs(d, extents, 3)));
}

}  // namespace
}  // namespace napkin::test_indices
