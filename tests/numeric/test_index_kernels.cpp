// Emitted kernels that read at indices of every kind, behind guards and without, against the definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "numeric/cpu_kernel_case.hpp"
#include "support/index_programs.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

TEST(IndexKernels, ComputeTheirDefinition) {
    std::vector<cpu_case::Case> cases;
    std::vector<std::string> texts;
    for (const std::string& text : index_programs()) {
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
        ASSERT_TRUE(diagram.ok()) << text;
        int tried = 0;
        for (std::uint64_t seed = 0; seed < 40 && tried < 5; ++seed) {
            std::mt19937_64 random(seed);
            std::map<std::string, std::int64_t> sizes;
            for (const Axis& axis : diagram->axes)
                if (!axis.size)
                    sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % (random() % 3 == 0 ? 37 : 7));
            const auto extents = bind_sizes(*diagram, sizes);
            if (!extents) continue;
            cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("k{}_", cases.size())));
            texts.push_back(text);
            ++tried;
        }
    }
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(failures[k], "") << texts[k] << cpu_case::describe(cases[k]);
}

/// Reads that a condition keeps inside, halves of an axis, and integers that are counted, for every width of vectors: tiles that lie inside
/// of their array, tiles that its edge cuts, rows of a map in the order of memory.
TEST(IndexKernels, ComputeForEveryWidth) {
    const char* programs[] = {
        "f(X[b, t, c], mix[c]) -> Y[b, t, c]\n"
        "    Y[b, t, c] = mix[c] * X[b, t, c] + (1 - mix[c]) * where(t > 0, X[b, t - 1, c], 0)\n",
        "f(X[t, r], F[h]) -> Y[t, r]\n"
        "    Y[t, r] = where(r < h, X[t, r] * F[r % size(h)] - X[t, r + size(r)/2],\n"
        "                           X[t, r] * F[r % size(h)] + X[t, r - size(r)/2])\nsizes r = 2 * h\n",
        "f(A[i]: i64, B[j]: i64) -> N[i]: i32, M[i]: i64\n    N[i] = sum(j) where(A[i] == B[j], 1, 0)\n"
        "    M[i] = max(j) where(A[i] == B[j], B[j] * 3, A[i] - j)\n",
        "f(X[n, c], K[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) K[w, c] * where(n - w >= 0, X[n - w, c], 0)\n",
    };
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const char* text : programs) {
            const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
            ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
            for (std::uint64_t seed = 0; seed < 4; ++seed) {
                std::mt19937_64 random(seed);
                std::map<std::string, std::int64_t> sizes;
                for (const Axis& axis : diagram->axes)
                    if (!axis.size) sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % 41);
                const auto extents = bind_sizes(*diagram, sizes);
                ASSERT_TRUE(extents.ok()) << render(extents.errors());
                cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("w{}_", cases.size()), {}, width));
            }
        }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
}

/// Loops that move a tile have counters of their own, whatever the axes and arrays are called.
TEST(IndexKernels, NamesAreTheReadersOwn) {
    const std::string text =
        "f(t1[b, t, t0_, c], X[b, t, t0_, c], X_first1_[c]) -> Y[b, t, t0_, c]\n"
        "    Y[b, t, t0_, c] = t1[b, t, t0_, c] + where(t > 0, X[b, t - 1, t0_, c], 0) * X_first1_[c]\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    ASSERT_TRUE(diagram.ok());
    const auto extents = bind_sizes(*diagram, {{"b", 3}, {"t", 9}, {"t0_", 4}, {"c", 21}});
    ASSERT_TRUE(extents.ok());
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("n{}_", seed)));
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

/// A user's names are kept apart from every name that is made of another one: of a copy, strides, a count, a running value.
TEST(IndexKernels, NamesMadeOfOthersAreUnique) {
    const std::string text =
        "f(K_copy[q, k], K[x, k], V_in_s[x], V_in[x, k], V_copy[q], V[x, d], x0_first[d]) -> O[q, d], EACH[q], nq[q]\n"
        "    S[q, x] = sum(k) K_copy[q, k] * (K[x, k] + V_in[x, k])\n"
        "    P[q, x] = softmax(x) where(x <= q, S[q, x] * V_in_s[x], -inf)\n"
        "    EACH[q] = V_copy[q] + max(x) where(x <= q, S[q, x], -inf)\n"
        "    q0[q] = (sum(k) K_copy[q, k]) / size(k)\n"
        "    nq[q] = sum(k) (K_copy[q, k] - q0[q])^2\n"
        "    O[q, d] = x0_first[d] * sum(x) P[q, x] * V[x, d]\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        const auto extents = bind_sizes(*diagram,
                                        {{"q", 5 + static_cast<std::int64_t>(seed)}, {"x", 37}, {"k", 19}, {"d", 21}});
        ASSERT_TRUE(extents.ok()) << render(extents.errors());
        cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("u{}_", seed)));
    }
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

}  // namespace
}  // namespace napkin
