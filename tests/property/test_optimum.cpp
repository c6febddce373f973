// Optima against brute force, for diagrams that are not among the examples. The integer search equals trying every
// size, and the closed form equals what integer sizes can reach at large M.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cost/optimum_text.hpp"
#include "property/optimum_case.hpp"

namespace napkin::optima {
namespace {
using Sizes = std::map<std::string, std::int64_t>;

struct Subject {
    const char* text;
    Sizes small;  ///< every combination of group sizes can be tried
    Sizes large;
    std::vector<int> memory;  ///< log2 of M for the large sizes
};

const std::vector<Subject> subjects{
    {R"(chain(A[n, a, b], B[n, b, c], C[n, c, d]) -> D[n, a, d]
    T[n, a, c] = sum(b) A[n, a, b] * B[n, b, c]
    D[n, a, d] = sum(c) T[n, a, c] * C[n, c, d]
)",
     {{"n", 3}, {"a", 12}, {"b", 3}, {"c", 7}, {"d", 4}},
     {{"n", 4}, {"a", 1 << 22}, {"b", 64}, {"c", 1 << 20}, {"d", 32}},
     {16, 20}},
    {R"(triple(A[i, k], B[k, l], C[l, j]) -> D[i, j]
    D[i, j] = sum(k, l) A[i, k] * B[k, l] * C[l, j]
)",
     {{"i", 11}, {"j", 9}, {"k", 3}, {"l", 4}},
     {{"i", 1 << 20}, {"j", 1 << 20}, {"k", 4}, {"l", 8}},
     {20, 24}},
    {R"(outer_three(A[i, l], B[j, l], C[k, l]) -> Y[i, j, k]
    Y[i, j, k] = sum(l) A[i, l] * B[j, l] * C[k, l]
)",
     {{"i", 7}, {"j", 6}, {"k", 5}, {"l", 4}},
     {{"i", 1 << 15}, {"j", 1 << 15}, {"k", 1 << 15}, {"l", 1 << 14}},
     {21, 24}},
    {R"(mttkrp(X[i, j, k], B[j, r], C[k, r]) -> A[i, r]
    A[i, r] = sum(j, k) X[i, j, k] * B[j, r] * C[k, r]
)",
     {{"i", 9}, {"j", 3}, {"k", 4}, {"r", 10}},
     {{"i", 1 << 18}, {"j", 8}, {"k", 1 << 14}, {"r", 1 << 18}},
     {22, 24}},
    {R"(linear(Q[h, q, k], K[h, x, k], V[h, x, d]) -> O[h, q, d]
    A[h, k, d] = sum(x) K[h, x, k] * V[h, x, d]
    O[h, q, d] = sum(k) Q[h, q, k] * A[h, k, d]
)",
     {{"h", 2}, {"q", 9}, {"x", 8}, {"k", 4}, {"d", 5}},
     {{"h", 8}, {"q", 1 << 20}, {"x", 1 << 20}, {"k", 64}, {"d", 64}},
     {16, 20}},
    {R"(conv(X[b, c, n], W[o, c, w]) -> Y[b, o, i]
    Y[b, o, i] = sum(c, w) X[b, c, i + w] * W[o, c, w]
sizes n = i + w - 1
)",
     {{"b", 2}, {"c", 3}, {"o", 6}, {"w", 3}, {"i", 13}},
     {{"b", 64}, {"c", 1 << 10}, {"o", 1 << 16}, {"w", 5}, {"i", 1 << 20}},
     {18, 20, 22}},
    {R"(strided(X[b, c, n], W[o, c, w]) -> Y[b, o, i]
    Y[b, o, i] = sum(c, w) X[b, c, 3 * i + w] * W[o, c, w]
sizes n = 3 * i + w - 3
)",
     {{"b", 2}, {"c", 3}, {"o", 6}, {"w", 5}, {"i", 13}},
     {{"b", 64}, {"c", 1 << 10}, {"o", 1 << 16}, {"w", 7}, {"i", 1 << 20}},
     {20, 22}},
    {R"(holes(X[b, c, n], W[o, c, w]) -> Y[b, o, i]
    Y[b, o, i] = sum(c, w) X[b, c, 4 * i + w] * W[o, c, w]
sizes n = 4 * i + w - 4
)",
     {{"b", 2}, {"c", 3}, {"o", 6}, {"w", 2}, {"i", 13}},
     {{"b", 64}, {"c", 1 << 10}, {"o", 1 << 16}, {"w", 2}, {"i", 1 << 20}},
     {20, 22}},
    {R"(plane(X[c, m, n], W[o, c, v, w]) -> Y[o, i, j]
    Y[o, i, j] = sum(c, v, w) X[c, i + v, 2 * j + w] * W[o, c, v, w]
sizes m = i + v - 1, n = 2 * j + w - 2
)",
     {{"c", 2}, {"o", 5}, {"v", 3}, {"w", 3}, {"i", 7}, {"j", 6}},
     {{"c", 1 << 10}, {"o", 1 << 14}, {"v", 3}, {"w", 5}, {"i", 1 << 15}, {"j", 1 << 15}},
     {22, 24}},
    {R"(alone(X[n], W[w]) -> Y[i]
    Y[i] = sum(w) X[2 * i + w] * W[w]
sizes n = 2 * i + w - 2
)",
     {{"w", 5}, {"i", 40}},
     {{"w", 7}, {"i", 1 << 20}},
     {16}},
    {R"(two_layers(X[r, c], W[c, h], V[h, d]) -> Y[r, d]
    A[r, h] = sum(c) X[r, c] * W[c, h]
    H[r, h] = max(A[r, h], 0)
    Y[r, d] = sum(h) H[r, h] * V[h, d]
)",
     {{"r", 30}, {"c", 4}, {"h", 6}, {"d", 3}},
     {{"r", 1 << 22}, {"c", 64}, {"h", 1 << 16}, {"d", 64}},
     {16, 20}},
    {R"(gated(X[r, c], W[c, h], U[c, h], V[h, d]) -> Y[r, d]
    A[r, h] = sum(c) X[r, c] * W[c, h]
    B[r, h] = sum(c) X[r, c] * U[c, h]
    H[r, h] = A[r, h] / (1 + exp(-A[r, h])) * B[r, h]
    Y[r, d] = sum(h) H[r, h] * V[h, d]
)",
     {{"r", 30}, {"c", 4}, {"h", 6}, {"d", 3}},
     {{"r", 1 << 22}, {"c", 64}, {"h", 1 << 16}, {"d", 32}},
     {16, 20}},
    {R"(grouped(Q[b, h, g, q, k], K[b, h, x, k], V[b, h, x, d]) -> O[b, h, g, q, d]
    S[b, h, g, q, x] = sum(k) Q[b, h, g, q, k] * K[b, h, x, k]
    P[b, h, g, q, x] = softmax(x) S[b, h, g, q, x] * 0.125
    O[b, h, g, q, d] = sum(x) P[b, h, g, q, x] * V[b, h, x, d]
)",
     {{"b", 1}, {"h", 2}, {"g", 3}, {"q", 8}, {"x", 7}, {"k", 3}, {"d", 4}},
     {{"b", 4}, {"h", 8}, {"g", 8}, {"q", 1 << 20}, {"x", 1 << 18}, {"k", 64}, {"d", 64}},
     {16, 20, 22}},
    {R"(one_key_head(Q[h, q, k], K[x, k], V[x, d]) -> O[h, q, d]
    S[h, q, x] = sum(k) Q[h, q, k] * K[x, k]
    P[h, q, x] = softmax(x) S[h, q, x] * 0.125
    O[h, q, d] = sum(x) P[h, q, x] * V[x, d]
)",
     {{"h", 4}, {"q", 9}, {"x", 7}, {"k", 3}, {"d", 5}},
     {{"h", 32}, {"q", 1 << 20}, {"x", 1 << 18}, {"k", 64}, {"d", 128}},
     {16, 20, 22}},
    {R"(two_queries(Q[q, k], R[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    T[q, x] = sum(k) R[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * T[q, x]
    O[q, d] = sum(x) P[q, x] * V[x, d]
)",
     {{"q", 25}, {"x", 7}, {"k", 3}, {"d", 4}},
     {{"q", 1 << 22}, {"x", 1 << 18}, {"k", 64}, {"d", 64}},
     {16, 20}},
    {R"(biased(Q[h, q, k], K[h, x, k], V[h, x, d], B[q, x]) -> O[h, q, d]
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k] + B[q, x]
    P[h, q, x] = softmax(x) S[h, q, x]
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
)",
     {{"h", 4}, {"q", 9}, {"x", 7}, {"k", 3}, {"d", 4}},
     {{"h", 64}, {"q", 1 << 20}, {"x", 1 << 18}, {"k", 16}, {"d", 16}},
     {16, 20, 24}},
    {R"(tensors(A[i, j, k, l], B[k, l, m, n]) -> Y[i, j, m, n]
    Y[i, j, m, n] = sum(k, l) A[i, j, k, l] * B[k, l, m, n]
)",
     {{"i", 3}, {"j", 4}, {"k", 2}, {"l", 3}, {"m", 4}, {"n", 3}},
     {{"i", 5000}, {"j", 5000}, {"k", 2}, {"l", 1 << 8}, {"m", 5000}, {"n", 5000}},
     {20, 22}},
    {R"(pairs(A[i, j, a], B[j, k, a], C[k, i, a]) -> Y[i, j, k]
    Y[i, j, k] = sum(a) A[i, j, a] * B[j, k, a] * C[k, i, a]
)",
     {{"i", 6}, {"j", 5}, {"k", 7}, {"a", 3}},
     {{"i", 1 << 15}, {"j", 1 << 15}, {"k", 1 << 15}, {"a", 1 << 10}},
     {24, 27}},
    {R"(distances(A[i, k], B[j, k]) -> Y[i, j]
    Y[i, j] = sum(k) abs(A[i, k] - B[j, k])
)",
     {{"i", 13}, {"j", 11}, {"k", 4}},
     {{"i", 1 << 20}, {"j", 1 << 20}, {"k", 1 << 10}},
     {16, 20}},
    {R"(outer(A[i], B[j]) -> Y[i, j]
    Y[i, j] = A[i] * B[j]
)",
     {{"i", 13}, {"j", 17}},
     {{"i", 1 << 20}, {"j", 1 << 20}},
     {16, 20}},
    {R"(stencil(X[m, n]) -> Y[i, j]
    Y[i, j] = X[i, j] + X[i + 1, j] + X[i, j + 1] + X[i + 2, j + 2]
sizes m = i + 2, n = j + 2
)",
     {{"i", 9}, {"j", 11}},
     {{"i", 1 << 20}, {"j", 1 << 20}},
     {16}},
};

/// "" or how the search differs from trying everything, at several M.
std::string small_failure(const Sized& s) {
    const std::vector<std::int64_t> ones(s.cost.grouped.size(), 1);
    const double least = counted(s, ones).memory;
    std::vector<std::int64_t> whole;
    for (const AxisId axis : s.cost.grouped) whole.push_back(s.extent(axis));
    const double most = counted(s, whole).memory;
    std::string failures;
    for (const double memory : {least - 1, least, least + (most - least) * 0.1, least + (most - least) * 0.4, most}) {
        const auto whole_memory = static_cast<std::int64_t>(memory);
        const Best best = exhaustive(s, whole_memory);
        SearchOptions options;
        options.memory = static_cast<double>(whole_memory);
        const SearchResult found = search_sizes(s.sized, options);
        if (found.fits != best.fits)
            failures += fmt::format("  M = {}: fits {} and {}\n", memory, found.fits, best.fits);
        if (!best.fits || !found.fits) continue;
        const std::vector<std::int64_t> groups(found.sizes.begin(),
                                               found.sizes.begin() + static_cast<std::ptrdiff_t>(ones.size()));
        const Counted at = counted(s, groups);
        if (at.transfers != best.transfers || std::abs(found.transfers - at.transfers) > 1e-9 * at.transfers ||
            at.memory > memory)
            failures += fmt::format("  M = {}: found {} (counted {}, M {}) at {}; least {} at {}\n", memory,
                                    found.transfers, at.transfers, at.memory, fmt::join(groups, " "), best.transfers,
                                    fmt::join(best.sizes, " "));
    }
    return failures;
}

TEST(Optimum, SearchIsExhaustiveAtSmallSizes) {
    for (const Subject& subject : subjects)
        for (const bool fuse : {true, false}) {
            const Compilation c = derived(subject.text, subject.small, fuse);
            for (std::size_t k = 0; k < c.derived.kernels.size(); ++k) {
                const Sized s(c, k);
                EXPECT_EQ(small_failure(s), "") << c.diagram.name << ", kernel " << s.kernel.name;
            }
        }
}

/// A product of two or three arrays over random axes of five, some of them summed.
std::string random_contraction(std::mt19937& random, std::vector<std::string>& axes) {
    const std::size_t n = 3 + random() % 3, operands = 2 + random() % 2;
    axes.assign({"a", "b", "c", "d", "e"});
    axes.resize(n);
    std::vector<std::vector<std::string>> of(operands);
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < n; ++i) {
        // Every axis is somewhere; most are in more than one operand.
        bool anywhere = false;
        for (std::size_t o = 0; o < operands; ++o)
            if (random() % 2 == 0 || (o + 1 == operands && !anywhere)) of[o].push_back(axes[i]), anywhere = true;
        if (i == 0 || random() % 3 != 0) kept.push_back(axes[i]);
    }
    if (kept.size() == n) kept.pop_back();
    std::string head = "f(", body;
    for (std::size_t o = 0; o < operands; ++o) {
        const std::string name(1, static_cast<char>('P' + o));
        const std::string indices = of[o].empty() ? name : fmt::format("{}[{}]", name, fmt::join(of[o], ", "));
        head += (o == 0 ? "" : ", ") + indices;
        body += (o == 0 ? "" : " * ") + indices;
    }
    std::vector<std::string> summed;
    for (const std::string& axis : axes)
        if (!contains(kept, axis)) summed.push_back(axis);
    return fmt::format("{}) -> Y[{}]\n    Y[{}] = sum({}) {}\n", head, fmt::join(kept, ", "), fmt::join(kept, ", "),
                       fmt::join(summed, ", "), body);
}

TEST(Optimum, SearchIsExhaustiveForRandomContractions) {
    const unsigned seed = 7;
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 150; ++i) {
        std::vector<std::string> axes;
        const std::string text = random_contraction(random, axes);
        Sizes sizes;
        for (const std::string& axis : axes) sizes[axis] = 1 + static_cast<std::int64_t>(random() % 7);
        const Compilation c = derived(text, sizes);
        for (std::size_t k = 0; k < c.derived.kernels.size(); ++k)
            EXPECT_EQ(small_failure(Sized(c, k)), "") << text << testing::PrintToString(sizes);
    }
}

/// Finer where there are fewer axes to try it on.
int steps_for(std::size_t grouped) { return grouped <= 2 ? 64 : grouped == 3 ? 12 : 3; }

std::string text(const Optimum& best, const Size& size, const Diagram& diagram) {
    return to_string(size, names_in(best, diagram));
}

/// The standard form is H*, its exponents rational numbers that are not negative.
void expect_standard_form(const Optimum& best, const Diagram& diagram) {
    Size sum;
    Rational last = -1;
    for (const StandardTerm& term : best.standard_form()) {
        EXPECT_GE(term.beta, Rational(0));
        EXPECT_LT(last, term.beta);
        EXPECT_LE(term.beta.denominator(), 12);
        last = term.beta;
        sum += term.alpha * Size(memory_symbol, Rational(0) - term.beta);
    }
    EXPECT_EQ(sum, best.transfers) << text(best, sum, diagram) << " and " << text(best, best.transfers, diagram);
}

TEST(Optimum, ClosedFormIsWhatIntegerSizesReachAtLargeMemory) {
    for (const Subject& subject : subjects) {
        const Compilation c = derived(subject.text, subject.large, true, std::exp2(subject.memory.front()));
        for (std::size_t k = 0; k < c.derived.kernels.size(); ++k) {
            const Sized s(c, k);
            for (const int log_memory : subject.memory) {
                const double memory = std::exp2(log_memory);
                SCOPED_TRACE(fmt::format("{}, kernel {}, M = 2^{}", c.diagram.name, s.kernel.name, log_memory));
                SearchOptions options;
                options.memory = memory;
                const SearchResult found = search_sizes(s.sized, options);
                const Best tried = geometric(s, memory, steps_for(s.cost.grouped.size()));
                ASSERT_TRUE(found.fits && tried.fits);
                EXPECT_LE(found.transfers, tried.transfers * 1.01) << fmt::format("{}", fmt::join(tried.sizes, " "));
                const Optimum best = optimum_at(s.cost, [&](Symbol symbol) { return s.value(symbol, memory); });
                if (!best.closed) {
                    EXPECT_NE(best.obstacle, Obstacle::none);
                    continue;
                }
                expect_standard_form(best, c.derived.diagram);
                const double closed = s.value(best, best.transfers, memory).value();
                EXPECT_NEAR(closed / std::min(found.transfers, tried.transfers), 1, 0.01)
                    << text(best, best.transfers, c.derived.diagram)
                    << testing::PrintToString(reached_at(best, c.derived.diagram));
            }
        }
    }
}

TEST(Optimum, ClosedFormOfRandomContractionsIsNeverAboveWhatSizesReach) {
    const unsigned seed = 11;
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    int closed = 0, near = 0, count = 0;
    for (int i = 0; i < 200; ++i) {
        std::vector<std::string> axes;
        const std::string spelled = random_contraction(random, axes);
        Sizes sizes;
        for (const std::string& axis : axes) sizes[axis] = std::int64_t{1} << (6 + random() % 7);
        const Compilation c = derived(spelled, sizes);
        const Sized s(c, 0);
        if (const Optimum large = optimum(s.cost); large.closed) expect_standard_form(large, c.derived.diagram);
        const double memory = std::exp2(22);
        SearchOptions options;
        options.memory = memory;
        const SearchResult found = search_sizes(s.sized, options);
        if (!found.fits) continue;
        ++count;
        const Optimum best = optimum_at(s.cost, [&](Symbol symbol) { return s.value(symbol, memory); });
        if (!best.closed) {
            EXPECT_NE(best.obstacle, Obstacle::none);
            continue;
        }
        ++closed;
        const double ratio = s.value(best, best.transfers, memory).value() / found.transfers;
        EXPECT_LE(ratio, 1.001) << spelled << testing::PrintToString(sizes)
                                << text(best, best.transfers, c.derived.diagram);
        near += ratio > 0.99 ? 1 : 0;
    }
    fmt::print("{} of {} random contractions have a closed form, {} of them within 1% of integer sizes\n", closed,
               count, near);
    EXPECT_GT(closed, count * 9 / 10);
    EXPECT_GT(near, closed * 8 / 10);
}

}  // namespace
}  // namespace napkin::optima
