// Diagrams whose products read arrays that are made for them: they are what the text says.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "diagram/evaluate.hpp"
#include "diagram/factor_conditions.hpp"
#include "diagram/grouped_rows.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/packed_terms.hpp"
#include "diagram/padded_reads.hpp"
#include "diagram/phases.hpp"
#include "diagram/same_size.hpp"
#include "diagram/sizes.hpp"
#include "diagram/unrolled_windows.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

std::vector<std::string> new_arrays(const Diagram& before, const Diagram& after) {
    std::vector<std::string> out;
    for (std::size_t i = before.arrays.size(); i < after.arrays.size(); ++i)
        out.push_back(after.array(ArrayId::of(i)).name);
    return out;
}

/// Sums of a hundred doubles in another order differ by less.
constexpr double rounding = 1e-14;

/// The rewritten diagram has these arrays more, and the values of the text.
void expect_alike(const std::string& text, Diagram (*rewrite)(Diagram), const std::vector<std::string>& arrays) {
    SCOPED_TRACE(text);
    const Diagram d = parsed(text), other = rewrite(d);
    EXPECT_THAT(new_arrays(d, other), testing::ElementsAreArray(arrays));
    const Extents extents = bind_sizes(d).value();
    for (const std::uint64_t seed : {1, 2, 3}) {
        Values first = random_inputs(d, extents, seed), second = first;
        second.resize(other.arrays.size());
        evaluate(d, extents, first), evaluate(other, extents, second);
        for (const ArrayId id : d.outputs)
            for (std::size_t i = 0; i < first[id].size(); ++i)
                ASSERT_NEAR(first[id][i], second[id][i], rounding * (1 + std::abs(first[id][i]))) << i;
    }
}

const std::string inside_of_image =
    "where(y + i >= 1, where(y + i <= size(y), where(z + j - 1 >= 0, where(z + j - 1 < size(z), "
    "X[n, y + i - 1, z + j - 1, c], 0), 0), 0), 0)";

TEST(PaddedReads, AreWhatTheTextSays) {
    const auto convolution = [](const std::string& factor, const std::string& sizes) {
        return fmt::format(
            "f(X[n, y, z, c]: bf16, W[f, i, j, c]: bf16) -> O[n, y, z, f]\n"
            "    O[n, y, z, f] = sum(i, j, c) {} * W[f, i, j, c]\nsizes {}\n",
            factor, sizes);
    };
    expect_alike(convolution(inside_of_image, "n = 2, y = 5, z = 4, i = j = 3, c = 3, f = 2"), with_padded_reads,
                 {"X_padded"});
    // With a number for the size, and a condition that says more, which stays.
    expect_alike(convolution("where(y + i < 6, where(y + i >= 1, where(z >= 2, X[n, y + i - 1, z, c], 0), 0), 0)",
                             "n = 2, y = 5, z = 4, i = 3, j = 1, c = 3, f = 2"),
                 with_padded_reads, {"X_padded"});
    // Strides, and two factors that need the same array.
    expect_alike(
        "f(X[a, c], W[i, c], V[i, c]) -> O[p], R[p]\n"
        "    O[p] = sum(i, c) where(2 * p + i - 2 >= 0, where(2 * p + i - 2 < size(a), X[2 * p + i - 2, c], 0), 0) * "
        "W[i, c]\n"
        "    R[p] = sum(i, c) V[i, c] * where(2 * p + i >= 2, where(2 * p + i - 2 < size(a), X[2 * p + i - 2, c], 0), "
        "0)\n"
        "sizes a = 9, p = 5, i = 4, c = 3\n",
        with_padded_reads, {"X_padded"});
}

// Looking back, and with zeros between the values, as a convolution that is transposed.
TEST(PaddedReads, MayFallAndHaveGaps) {
    expect_alike(
        "f(X[n, c], W[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) where(n - w >= 0, X[n - w, c], 0) * W[w, c]\n"
        "sizes n = 7, w = 3, c = 2\n",
        with_padded_reads, {"X_padded"});
    expect_alike(
        "f(X[b, y, x, c], W[o, r, s, c]) -> Y[b, h, w, o]\n"
        "    Y[b, h, w, o] = sum(r, s, c) where((h - r) % 2 == 0 and w != s and 2 * w - 2 * s >= 0 and (w - s) // 3 < "
        "size(x), X[b, (h - r) // 2 + 1, (w - s) // 3, c], 0) * W[o, r, s, c]\n"
        "sizes b = 2, y = 6, x = 2, c = 2, o = 3, r = 3, s = 2, h = 9, w = 8\n",
        with_padded_reads, {"X_padded"});
}

TEST(PaddedReads, StayWhereConditionsSayMore) {
    expect_alike(
        "f(X[n, c], W[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) where(n + w >= 2, X[n, c], 0) * W[w, c]\n"
        "sizes n = 7, w = 3, c = 2\n",
        with_padded_reads, {});
    expect_alike(
        "f(X[m, c], W[w, n, c]) -> Y[n, c]\n    Y[n, c] = sum(w) where(n != 2, X[n + w, c], 0) * W[w, n, c]\n"
        "sizes m = 9, n = 7, w = 3, c = 2\n",
        with_padded_reads, {});
}

/// The body of the last equation, with conditions at factors.
std::string split(const std::string& body, const std::string& before = "") {
    const std::string text = fmt::format(
        "f(A[i, k], B[j, k], C[k, n]: bf16, I[k]: i32, L0[j]: i32) -> Y[i, j]\n{}    Y[i, j] = sum(k) {}\n"
        "sizes i = 4, j = 3, k = 6, n = 6\n",
        before, body);
    expect_alike(text, with_conditions_at_factors, {});
    const Diagram d = with_conditions_at_factors(parsed(text));
    return to_string(d.equations.back().body, d.names());
}

TEST(FactorConditions, MoveToTheFactorsWithTheirAxes) {
    EXPECT_EQ(split("where(k <= i and k < 4, A[i, k] * B[j, k], 0)"), "where(k <= i and k < 4, A[i, k], 0) * B[j, k]");
    EXPECT_EQ(split("where(k <= j, where(i != 2, A[i, k] * B[j, k], 0), 0)"),
              "where(i != 2, A[i, k], 0) * where(k <= j, B[j, k], 0)");
    // No factor has both axes, and the first has the summed one.
    EXPECT_EQ(split("where(k <= i + j, A[i, k] * B[j, k], 0)"), "where(k <= i + j, A[i, k], 0) * B[j, k]");
    // Numbers of the result alone stay outside, and so does what a read needs that is at no one factor.
    EXPECT_EQ(split("where(i < j, where(k > 1, A[i, k] * B[j, k], 0), 0)"),
              "where(i < j, where(k > 1, A[i, k], 0) * B[j, k], 0)");
    // What a length that is data leaves out of one factor, it leaves out of the other one.
    EXPECT_EQ(split("where(k < L0[j], A[i, k] * B[j, k], 0)"),
              "where(k < L0[j], A[i, k], 0) * where(k < L0[j], B[j, k], 0)");
    // Each read keeps what keeps it inside.
    EXPECT_EQ(split("where(k >= 1, A[i, k] * B[j, k - 1] * A[i, k - 1], 0)"),
              "A[i, k] * where(k >= 1, B[j, k - 1], 0) * where(k >= 1, A[i, k - 1], 0)");
}

TEST(FactorConditions, StayWhereAFactorMayOverflow) {
    const std::string body = "where(k > 1, A[i, k] * L[j, k], 0)";
    EXPECT_EQ(split(body, "    L[j, k] = log(B[j, k] * B[j, k])\n"), body);
}

TEST(GroupedRows, AreWhatTheTextSays) {
    const std::vector<std::string> of{"of_count",  "of_start", "of_rank",  "of_place",
                                      "of_source", "of_begun", "of_matrix"};
    const auto with = [&](std::vector<std::string> more) {
        std::vector<std::string> out = of;
        append(out, more);
        return out;
    };
    for (const int tokens : {1, 40, 300})
        expect_alike(fmt::format("f(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32) -> Y[t, h]: bf16\n"
                                 "    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\nsizes t = {}, c = 5, h = 3, e = 4\n",
                                 tokens),
                     with_grouped_rows, with({"X_rows", "Y_rows"}));
    // Integers that are computed, two products of them, and rows in the middle of their array.
    expect_alike(
        "f(X[a, t, c]: bf16, S[t, e], W[e, h, c]: bf16, V[e, h, d]: bf16) -> Z[a, t, d]: bf16\n"
        "    of[t] = argmax(e) S[t, e]\n    Y[a, t, h]: bf16 = sum(c) W[of[t], h, c] * X[a, t, c]\n"
        "    Z[a, t, d] = sum(h) Y[a, t, h] * V[of[t], h, d]\nsizes a = 2, t = 37, c = 4, h = 3, d = 5, e = 3\n",
        with_grouped_rows, with({"X_rows", "Y_rows", "Y_rows_2", "Z_rows"}));
}

// Tokens choose several experts each, whose results are weighted and added up.
TEST(GroupedRows, MayHaveSeveralAxes) {
    const std::vector<std::string> made{"of_flat",   "of_count", "of_start",  "of_rank", "of_place",
                                        "of_source", "of_begun", "of_matrix", "X_rows",  "Y_rows"};
    const auto choosing = [](const std::string& result, const std::string& rows, const std::string& body) {
        return fmt::format(
            "f({}: bf16, W[e, h, c]: bf16, G[t, j], of[t, j]: i32) -> {}: bf16\n    {} = {}\n"
            "sizes t = 37, j = 2, c = 5, h = 3, e = 4\n",
            rows, result, result, body);
    };
    expect_alike(choosing("Y[t, j, h]", "X[t, c]", "sum(c) X[t, c] * W[of[t, j], h, c]"), with_grouped_rows, made);
    expect_alike(choosing("Y[h, j, t]", "X[t, c, j]", "sum(c) W[of[t, j], h, c] * X[t, c, j]"), with_grouped_rows, made);
    expect_alike(choosing("Y[t, h]", "X[j, c]", "sum(j, c) X[j, c] * W[of[t, j], h, c]"), with_grouped_rows, made);
    expect_alike(choosing("Y[h]", "X[t, c]", "sum(t, j, c) where(t + j < 30, X[t, c] * W[of[t, j], h, c] * G[t, j], 0)"),
                 with_grouped_rows,
                 {"of_chosen", "of_flat", "of_count", "of_start", "of_rank", "of_place", "of_source", "of_begun",
                  "of_matrix", "X_rows", "Y_rows"});
    expect_alike(choosing("Y[t, h]", "X[t, c]", "sum(j, c) G[t, j] * X[t, c] * W[of[t, j], h, c]"), with_grouped_rows, made);
}

// Behind the last of packed sequences rows are 0, whatever matrix they choose.
TEST(GroupedRows, AreThoseOfPackedSequences) {
    expect_alike(
        "f(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32, n[t]: i32) -> Y[t, h]: bf16\n"
        "    Y[t, h] = sum(c) where(t < n[t] + 3, X[t, c] * W[of[t], h, c], 0)\nsizes t = 40, c = 5, h = 3, e = 4\n",
        with_grouped_rows,
        {"of_chosen", "of_count", "of_start", "of_rank", "of_place", "of_source", "of_begun", "of_matrix", "X_rows",
         "Y_rows"});
}

TEST(GroupedRows, StayWhereMatricesAreNoneOrTypesAreWide) {
    expect_alike(
        "f(X[t, c]: bf16, E[v, c]: bf16, of[t]: i32) -> Y[t]: bf16\n    Y[t] = sum(c) X[t, c] * E[of[t], c]\n"
        "sizes t = 20, c = 5, v = 40\n",
        with_grouped_rows, {});
    expect_alike(
        "f(X[t, c], W[e, h, c], of[t]: i32) -> Y[t, h]\n    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\n"
        "sizes t = 20, c = 5, h = 3, e = 4\n",
        with_grouped_rows, {});
    expect_alike(
        "f(X[t, c]: bf16, W[t, e, c]: bf16, of[t]: i32) -> Y[t]: bf16\n    Y[t] = sum(c) X[t, c] * W[t, of[t], c]\n"
        "sizes t = 20, c = 5, e = 4\n",
        with_grouped_rows, {});
}

// As many places as terms or other numbers of them, of which some have no term, and terms without a place.
TEST(PackedTerms, AreWhatTheTextSays) {
    for (const int places : {1, 9, 60})
        expect_alike(fmt::format("f(dY[n, d], I[n]: i32) -> dT[v, d]\n"
                                 "    dT[v, d] = sum(n) where(I[n] == v, dY[n, d], 0)\nsizes n = 20, d = 3, v = {}\n",
                                 places),
                     with_packed_terms, {"I_rank", "I_order", "I_begin", "dY_packed"});
    // Another condition, a factor, an element that says where is read, and two sums of the same terms.
    expect_alike(
        "f(to[e]: i32, from[e]: i32, X[s, d], w[e]) -> Y[v, d], Z[d, v]\n"
        "    Y[v, d] = sum(e) where(e > 3 and v == to[e], X[from[e], d] * w[e], 0)\n"
        "    Z[d, v] = sum(e) where(to[e] == v, 1, 0) * exp(w[e]) * d\nsizes e = 30, s = 5, d = 2, v = 7\n",
        with_packed_terms, {"to_rank", "to_order", "to_begin", "from_packed", "w_packed"});
    // Terms of several axes, beside a summed axis that is none of theirs, and a read past their own axes.
    expect_alike(
        "f(I[n, m]: i32, X[m, n, k], Y[n], Z[a]) -> O[v]\n"
        "    O[v] = sum(n, m, k) where(I[n, m] == v, where(n > 0, X[m, n, k] * Y[n - 1] * Z[m + 2] + n, 0), 0)\n"
        "sizes n = 5, m = 4, k = 3, v = 6, a = 6\n",
        with_packed_terms, {"I_flat", "I_rank", "I_order", "I_begin", "X_packed"});
}

TEST(PackedTerms, StayWhereNothingElseIsDoneOrNumbersAreReal) {
    expect_alike("f(I[n]: i32, w[n]) -> O[v]\n    O[v] = sum(n) where(I[n] == v, w[n], 0)\nsizes n = 9, v = 4\n",
                 with_packed_terms, {});
    expect_alike(
        "f(X[n], w[n, d]) -> O[v, d]\n    O[v, d] = sum(n) where(X[n] == v, w[n, d], 0)\nsizes n = 9, v = 4, d = 2\n",
        with_packed_terms, {});
    expect_alike(
        "f(I[n]: i32, w[n, d]) -> O[v, d]\n    O[v, d] = max(n) where(I[n] == v, w[n, d], 0)\nsizes n = 9, v = 4, d = "
        "2\n",
        with_packed_terms, {});
}

/// Rows of unrolled windows are whole. What they read past a window's end is no value of the array.
TEST(UnrolledWindows, AreInWholeRows) {
    const Diagram d = parsed(
        "f(X[y, x, c]: bf16, W[o, r, s, c]: bf16) -> Y[h, w, o]\n"
        "    Y[h, w, o] = sum(r, s, c) X[h + r, w + s, c] * W[o, r, s, c]\n"
        "sizes h = 3, w = 4, c = 3, o = 2, r = 3, s = 2, y = 5, x = 5\n");
    const Diagram unrolled = with_unrolled_windows(d);
    const Extents extents = bind_sizes(unrolled).value();
    const ArrayId rows = *unrolled.find_array("X_unrolled");
    EXPECT_EQ(extents[unrolled.array(rows).axes.back()], 32) << "3 * 2 * 3 values in rows of 16";
    const AxisId t = unrolled.array(rows).axes.back();
    EXPECT_EQ(size_by_axes(unrolled, t), Size(axis_symbol(t))) << "no product of three sizes";
}

TEST(UnrolledWindows, AreWhatTheTextSays) {
    expect_alike(
        "f(X[b, y, x, c]: bf16, W[o, r, s, c]: bf16) -> Y[b, h, w, o]\n"
        "    Y[b, h, w, o] = sum(r, s, c) W[o, r, s, c] * X[b, 2 * h + r, w + s, c]\n"
        "sizes b = 2, h = 3, w = 4, c = 3, o = 2, r = 3, s = 2, y = 8, x = 5\n",
        with_unrolled_windows, {"X_unrolled", "W_unrolled"});
    // No narrow types, or no window.
    expect_alike(
        "f(X[y, c], W[o, r, c]) -> Y[h, o]\n    Y[h, o] = sum(r, c) X[h + r, c] * W[o, r, c]\n"
        "sizes h = 3, c = 3, o = 2, r = 3, y = 5\n",
        with_unrolled_windows, {});
    expect_alike(
        "f(X[h, r, c]: bf16, W[o, r, c]: bf16) -> Y[h, o]\n    Y[h, o] = sum(r, c) X[h, r, c] * W[o, r, c]\n"
        "sizes h = 3, c = 3, o = 2, r = 3\n",
        with_unrolled_windows, {});
}

/// Nobody sees axes over which no array of the text runs.
// Transposed convolutions. They have as many taps as phases or others, are padded, have conditions at the product or a
// factor, or taps that count up.
TEST(Phases, AreWhatTheTextSays) {
    const auto transposed = [](int number, int padding, const char* sizes) {
        const std::string place = fmt::format("(u - i + {})", padding), other = fmt::format("(v - j + {})", padding);
        return fmt::format(
            "f(X[n, y, z, c], W[f, i, j, c]) -> O[n, u, v, f]\n    O[n, u, v, f] = sum(i, j, c) where({0} % {2} == 0 "
            "and "
            "{1} % {2} == 0 and {0} >= 0 and {0} // {2} < size(y) and {1} >= 0 and {1} // {2} < size(z), "
            "X[n, {0} // {2}, {1} // {2}, c] * W[f, i, j, c], 0)\nsizes {3}\n",
            place, other, number, sizes);
    };
    for (const std::string& text : {transposed(2, 0, "n = 2, y = 4, z = 3, u = 8, v = 7, i = j = 2, c = 3, f = 2"),
                                    transposed(2, 1, "n = 1, y = 4, z = 3, u = 8, v = 6, i = 4, j = 3, c = 2, f = 2"),
                                    transposed(3, 2, "n = 1, y = 3, z = 3, u = 9, v = 11, i = 5, j = 3, c = 2, f = 2")})
        expect_alike(text, with_phases, {"O_phases"});
    expect_alike(
        "f(X[y, c], W[i, c]) -> O[u]\n    O[u] = sum(i, c) where((u + i) % 3 == 1, X[(u + i) // 3, c], 0) * W[i, c]\n"
        "sizes y = 4, u = 7, i = 5, c = 2\n",
        with_phases, {"O_phases"});
}

TEST(Phases, StayWhereTapsAreNoneOrConditionsAreOthers) {
    const auto of = [](const char* condition) {
        return fmt::format(
            "f(X[y, c], W[i, c]) -> O[u]\n    O[u] = sum(i, c) where({}, X[u, c], 0) * W[i, c]\n"
            "sizes y = u = 6, i = 3, c = 2\n",
            condition);
    };
    for (const char* condition : {"(u - 2 * i) % 2 == 0", "u % 2 == 0", "(u - i) % 2 >= 1", "(u - i) // 2 == 0"})
        expect_alike(of(condition), with_phases, {});
}

TEST(HiddenAxes, AreNoneOfTheText) {
    const Diagram d = parsed(
        "f(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32) -> Y[t, h]: bf16\n"
        "    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\nsizes t = 20, c = 5, h = 3, e = 4\n");
    EXPECT_EQ(axes_of_text(d).size(), 4U);
    EXPECT_GT(d.axes.size(), 4U);
    EXPECT_EQ(with_hidden_axes(d).axes, d.axes);
}

}  // namespace
}  // namespace napkin
