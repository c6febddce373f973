// Emitted kernels of programs with guards, gathers and reads that share other axes, as a user writes them. They run on
// a CPU for every width of vectors, and a GPU's thread by thread.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "numeric/cpu_kernel_case.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "support/parsed.hpp"

namespace napkin {
namespace {

struct GuardedProgram {
    const char* text;
    std::vector<const char*> sizes;
};

const std::vector<GuardedProgram>& programs() {
    static const std::vector<GuardedProgram> all{
        // a causal convolution of what is normalised
        {"f(X[n, c], W[w, c], G[c]) -> Y[n, c]\n    Z[n, c] = rmsnorm(c)(X[n, c], G[c])\n"
         "    Y[n, c] = sum(w) where(n - w >= 0, Z[n - w, c], 0) * W[w, c]\n",
         {"n = 7, c = 5, w = 3", "n = 40, c = 33, w = 4", "n = 3, c = 64, w = 6"}},
        {"f(X[n, c], W[w, c]) -> Y[n, c]\n"
         "    Y[n, c] = sum(w) where(n - w >= 0, silu(X[n - w, c]), 0) * W[w, c]\n",
         {"n = 9, c = 19, w = 4", "n = 2, c = 40, w = 4"}},
        {"f(X[c, b], Z[a]) -> R[a]\n    T[b, a] = tanh(sum(c) X[c, b]) * Z[a]\n"
         "    R[a] = sum(b) where(b >= 1, T[b - 1, a], 0)\n",
         {"a = 9, b = 6, c = 5", "a = 35, b = 17, c = 3", "a = 4, b = 1, c = 2"}},
        // attention to the last keys
        {"f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, w] = where(q - w >= 0, sum(k) Q[q, k] * K[q - w, k], "
         "-inf)\n"
         "    O[q, d] = sum(w) (softmax(w) S[q, w]) * where(q - w >= 0, V[q - w, d], 0)\n",
         {"q = x = 11, w = 3, k = 8, d = 5", "q = x = 34, w = 9, k = 16, d = 32", "q = x = 3, w = 5, k = 4, d = 4"}},
        {"f(X[n, m], W[m, k]) -> Y[n]\n    Y[n] = where(n < 2, -1, logsumexp(m) X[n - 2, m]\n"
         "                 + (max(k) sum(m) X[n - 1, m] * W[m, k]))\n",
         {"n = 6, m = 7, k = 3", "n = 33, m = 20, k = 17"}},
        {"f(T[v, c], i[t]: i32, X[c]) -> Y[t]\n    Y[t] = where(i[t] >= 2, sum(c) T[i[t] - 2, c] * X[c], -1)\n",
         {"v = 7, c = 9, t = 5", "v = 30, c = 40, t = 37"}},
        // an index read from an index that a condition keeps inside
        {"f(X[x, c], T[m]: i32, G[n]: i32, W[c]) -> Y[n]\n"
         "    Y[n] = where(G[n] >= 2, sum(c) X[T[G[n] - 2], c] * W[c], -1)\n",
         {"x = 7, c = 9, m = 5, n = 8", "x = 30, c = 40, m = 11, n = 37"}},
        // heads that share keys, and keys of a sequence's own
        {"f(P[h, x], V[g, x]) -> O[h]\n    W[h, x] = softmax(x) P[h, x]\n    O[h] = sum(x) W[h, x] * V[h // 2, x]\n",
         {"h = 4, g = 2, x = 300", "h = 38, g = 19, x = 7"}},
        {"f(P[b, x], V[s, x, d], n[b]: i32) -> O[b, d]\n    W[b, x] = softmax(x) P[b, x]\n"
         "    O[b, d] = sum(x) W[b, x] * V[n[b], x, d]\n",
         {"b = 5, s = 3, x = 20, d = 7", "b = 3, s = 9, x = 70, d = 33"}},
        {"f(Z[d, c], I[e]: i32) -> R[e]\n    R[e] = sum(d) (softmax(d) Z[d, I[e]])\n",
         {"d = 9, c = 4, e = 7", "d = 40, c = 20, e = 35"}},
        {"f(S[h, x], V[g, x]) -> O[h]\n    Z[h] = max(x) S[h, x]\n    O[h] = sum(x) Z[h] * V[h // 2, x]\n",
         {"h = 6, g = 3, x = 9", "h = 34, g = 17, x = 50"}},
        {"f(X[i, j]) -> Y[i, j]\n    Y[i, j] = X[i, j] / (1 + abs(sum(j) X[i, j])) - logsumexp(j) X[i, j]\n",
         {"i = 5, j = 9", "i = 33, j = 70"}},
        // comparisons that several columns of a block of rows share
        {"f(S[h, r]: f64, V[h, t]) -> C[r, t]\n    M[r] = min(h) S[h, r]\n"
         "    C[r, t] = sum(h) where(S[h, r] == M[r], V[h, t], 0)\n",
         {"h = 11, r = 5, t = 6", "h = 20, r = 37, t = 33"}},
        // indices of elements that differ in letters, and may be the same in numbers
        {"f(G[d, e, n], Q[d]: i32, X[e]: i64) -> Y[n]\n"
         "    Y[n] = G[Q[(n + 2) % size(d)], X[(n + 2) % size(e)], n]\n",
         {"d = 7, e = 7, n = 6", "d = 7, e = 5, n = 40"}},
    };
    return all;
}

TEST(GuardedKernels, ComputeTheirDefinitionForEveryWidth) {
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const GuardedProgram& program : programs())
            for (const char* sizes : program.sizes) {
                const Diagram diagram = parsed(fmt::format("{}sizes {}\n", program.text, sizes));
                const std::uint64_t seed = cases.size();
                cases.push_back(cpu_case::make_case(diagram, bind_sizes(diagram).value(), seed,
                                                    fmt::format("g{}_", seed), {}, width));
            }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
}

TEST(GuardedKernels, ComputeTheirDefinitionOnAGpu) {
    std::vector<cpu_case::Planned> all;
    for (const GuardedProgram& program : programs())
        for (const char* sizes : program.sizes)
            all.push_back(cpu_case::planned_on_hopper(fmt::format("{}sizes {}\n", program.text, sizes), "",
                                                      fmt::format("g{}_", all.size())));
    for (std::size_t shard = 0; shard < 3; ++shard) EXPECT_EQ(cpu_case::fault_on_probes(all, shard, 6), "");
}

}  // namespace
}  // namespace napkin
