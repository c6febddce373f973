// The fewest transfers against searches through all whole sizes of tiles. The memory and transfers of the tiles are
// written out here as formulas, so that what a tile holds and moves is checked too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "cost/least.hpp"
#include "derive/derive.hpp"
#include "derive/stream_choices.hpp"
#include "diagram/sizes.hpp"
#include "support/parsed.hpp"

namespace napkin::test_fewest {
namespace {

using Whole = std::int64_t;
constexpr double none = std::numeric_limits<double>::infinity();

Whole tiles(Whole axis, Whole size) { return (axis + size - 1) / size; }

/// The last kernel's fewest transfers, over all of its tilings.
LeastTransfers fewest(const std::string& text, const std::map<std::string, std::int64_t>& sizes, Whole memory) {
    const Diagram diagram = parsed(text);
    const Derived derived = derive(diagram).value();
    const Extents extents = bind_sizes(diagram, sizes).value();
    return least_transfers(StreamChoices(derived).of(derived.kernels.size() - 1), extents, static_cast<double>(memory));
}
double transfers(const LeastTransfers& least) { return least.numeric.fits ? least.numeric.transfers : none; }

/// C[b, m, n] = ⊕ over k of what A[b, m, k] and B[k, n] give, and so many arrays more of the size of C, moved at their
/// own points. Tiles of C stay while k is streamed one by one, or each value of C is made at once of whole rows of A
/// and columns of B.
double fewest_of_product(Whole b, Whole m, Whole n, Whole k, Whole memory, Whole more = 0) {
    double least = none;
    for (Whole g_b = 1; g_b <= b; ++g_b)
        for (Whole g_m = 1; g_m <= m; ++g_m)
            for (Whole g_n = 1; g_n <= n; ++g_n) {
                const Whole rows = g_b * g_m, streamed = rows * g_n + rows + g_n, at_once = (rows + g_n) * k;
                if (std::min(streamed, at_once) > memory) continue;
                const Whole moved = (1 + more) * b * m * n + tiles(n, g_n) * b * m * k +
                                    tiles(b, g_b) * tiles(m, g_m) * k * n;
                least = std::min(least, static_cast<double>(moved));
            }
    return least;
}

constexpr Whole memories[] = {3, 40, 150, 600, 1500, 5000};

TEST(Fewest, OfAProductIsThatOfAllTiles) {
    for (const Whole memory : memories)
        EXPECT_EQ(transfers(fewest("f(A[m, k], B[k, n]) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n",
                                   {{"m", 45}, {"n", 61}, {"k", 29}}, memory)),
                  fewest_of_product(1, 45, 61, 29, memory))
            << memory;
}

TEST(Fewest, OfRaggedBatchesIsThatOfAllTiles) {
    for (const Whole memory : memories)
        EXPECT_EQ(
            transfers(fewest("f(A[b, m, k], B[k, n]) -> C[b, m, n]\n    C[b, m, n] = sum(k) A[b, m, k] * B[k, n]\n",
                             {{"b", 5}, {"m", 23}, {"n", 37}, {"k", 21}}, memory)),
            fewest_of_product(5, 23, 37, 21, memory))
            << memory;
}

TEST(Fewest, ATailThatReadsAnArrayAtItsPointsHoldsNoTileOfIt) {
    for (const char* tail : {"R[m, n] + D[m, n]", "R[m, n] + tanh(D[m, n]) * D[m, n]"})
        for (const Whole memory : memories)
            EXPECT_EQ(
                transfers(fewest("f(A[m, k], B[k, n], R[m, n]) -> C[m, n]\n    D[m, n] = sum(k) A[m, k] * B[k, n]\n"
                                 "    C[m, n] = " +
                                     std::string(tail) + "\n",
                                 {{"m", 45}, {"n", 61}, {"k", 29}}, memory)),
                fewest_of_product(1, 45, 61, 29, memory, 1))
                << tail << ", " << memory;
}

TEST(Fewest, OfASumOfDistancesIsThatOfAllTiles) {
    for (const Whole memory : memories)
        EXPECT_EQ(transfers(fewest("f(A[m, k], B[n, k]) -> D[m, n]\n    D[m, n] = sum(k) abs(A[m, k] - B[n, k])\n",
                                   {{"m", 31}, {"n", 59}, {"k", 27}}, memory)),
                  fewest_of_product(1, 31, 59, 27, memory))
            << memory;
}

/// The least of attention in groups of g_q rows and g_d columns, of which a row holds its query, its columns of the sum
/// and two states. While keys pass, or with keys and values whole and a query at a time. `beside_rows(g_q, g_d)`,
/// `beside_keys(g_d)`: what it needs on top.
template <class BesideRows, class BesideKeys>
double fewest_of_attention(Whole q, Whole x, Whole k, Whole d, Whole memory, BesideRows beside_rows, BesideKeys beside_keys) {
    double least = none;
    for (Whole g_d = 1; g_d <= d; ++g_d) {
        for (Whole g_q = 1; g_q <= q; ++g_q) {
            if (g_q * (k + g_d + 2) + beside_rows(g_q, g_d) > memory) continue;
            const Whole num_q = tiles(q, g_q), num_d = tiles(d, g_d);
            const Whole moved = q * d + num_d * q * k + num_q * num_d * x * k + num_q * x * d;
            least = std::min(least, static_cast<double>(moved));
        }
        if (x * (k + g_d) + beside_keys(g_d) > memory) continue;
        const Whole moved = q * d + tiles(d, g_d) * (q * k + x * k) + x * d;
        least = std::min(least, static_cast<double>(moved));
    }
    return least;
}

TEST(Fewest, OfAttentionLiesBetweenWhatItsRowsHoldAndThatWithAFewRowsBesideThem) {
    constexpr Whole q = 40, x = 90, k = 4, d = 24;
    for (const Whole memory : {60, 100, 150, 200, 300, 400, 700, 1000, 2000, 5000}) {
        const double found = transfers(
            fewest("f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
                   "    P[q, x] = softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n",
                   {{"q", q}, {"x", x}, {"k", k}, {"d", d}}, memory));
        const auto nothing = [](auto...) { return Whole{0}; };
        EXPECT_GE(found, fewest_of_attention(q, x, k, d, memory, nothing, nothing)) << memory;
        // A key and a row of values, and the score and the weight of the row at hand; whole rows of these where keys
        // are whole.
        const auto a_row = [=](Whole, Whole g_d) { return k + g_d + 2; };
        const auto whole_rows = [=](Whole g_d) { return k + g_d + 4 * x; };
        EXPECT_LE(found, fewest_of_attention(q, x, k, d, memory, a_row, whole_rows)) << memory;
        // Or all rows' scores first, and then the rest row by row: a key, or a row of values and the row's weight, and
        // a score a row.
        const auto a_column = [=](Whole g_q, Whole g_d) { return g_q + std::max(k, g_d + 1); };
        EXPECT_LE(found, fewest_of_attention(q, x, k, d, memory, a_column, whole_rows)) << memory;
    }
}

/// Every window's chunk loads what it spans: Y[c, i] = ⊕ over w of X[c, i + w].
double fewest_of_windows(Whole c, Whole n, Whole w, Whole memory) {
    double least = none;
    for (Whole g_c = 1; g_c <= c; ++g_c)
        for (Whole g_i = 1; g_i <= n; ++g_i)
            for (Whole s_w = 1; s_w <= w; ++s_w) {
                const Whole spanned = g_c * (g_i + s_w - 1);
                // Where the window comes at once, results need not wait.
                if (spanned + (s_w < w ? g_c * g_i : 0) > memory) continue;
                Whole moved = c * n;
                for (Whole i = 0; i < n; i += g_i)
                    for (Whole at = 0; at < w; at += s_w)
                        moved += c * (std::min(g_i, n - i) + std::min(s_w, w - at) - 1);
                least = std::min(least, static_cast<double>(moved));
            }
    return least;
}

TEST(Fewest, ChunksOfAWindowAreAsLongAsIsBest) {
    for (const Whole memory : {2, 5, 9, 20, 40, 60, 100, 500})
        EXPECT_EQ(transfers(fewest("f(X[c, j]) -> Y[c, i]\n    Y[c, i] = max(w) X[c, i + w]\n",
                                   {{"c", 3}, {"i", 40}, {"w", 7}, {"j", 46}}, memory)),
                  fewest_of_windows(3, 40, 7, memory))
            << memory;
}

}  // namespace
}  // namespace napkin::test_fewest
