// Arrays of i8, u8, i16 and bool: what is computed with them wraps or saturates as the definition does, for every width
// of vectors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "numeric/cpu_kernel_case.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

const char* const narrow_programs[] = {
    // sums and products that wrap
    "f(A[i, j]: i8, B[i, j]: u8) -> S[i, j]: i8, P[i, j]: u8, Q[i, j]: i16\n"
    "    S[i, j] = A[i, j] * 40 + B[i, j] * 33\n    P[i, j] = A[i, j] * 77 - B[i, j]\n"
    "    Q[i, j] = A[i, j] * 9000 + B[i, j] * 7000\n",
    // real numbers that saturate
    "f(X[i, j]) -> A[i, j]: i8, B[i, j]: u8, C[i, j]: i16, D[i, j]: bool\n    A[i, j] = X[i, j] * 100\n"
    "    B[i, j] = X[i, j] * 200\n    C[i, j] = X[i, j] * 30000\n    D[i, j] = floor(X[i, j])\n",
    "f(X[i, j]: f64, A[i, j]: i8) -> B[i, j]: i8, C[i, j]: f64, D[i, j]: u8\n    B[i, j] = X[i, j] * 100\n"
    "    C[i, j] = A[i, j] * X[i, j]\n    D[i, j] = A[i, j] * 100\n",
    // quantised products
    "f(A[i, k]: i8, B[k, j]: i8, s: f32) -> C[i, j]: i32, D[i, j]: i8, E[i, j]\n"
    "    C[i, j] = sum(k) (A[i, k] - 3) * B[k, j]\n    D[i, j] = sum(k) A[i, k] * B[k, j] * 7\n"
    "    E[i, j] = i8(C[i, j] * 0.37 * s) * 0.5\n",
    // masks
    "f(Q[q, k], K[x, k], V[x, d], M[q, x]: bool) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) where(M[q, x] or x == 0, S[q, x], -inf)\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n",
    "f(M[i, j]: bool, N[j]: bool, X[i, j]) -> A[i, j]: bool, B[i, j], C[i]: i32, D[i]: bool\n"
    "    A[i, j] = M[i, j] and not N[j]\n    B[i, j] = where(A[i, j], X[i, j], M[i, j] + N[j])\n"
    "    C[i] = sum(j) M[i, j]\n    D[i] = max(j) M[i, j]\n",
    // rows chosen by narrow indices, and of narrow tables
    "f(T[v, c], a[t]: i8, b[t]: u8, d[t]: i16) -> Y[t, c]\n    Y[t, c] = T[a[t], c] + T[b[t], c] * T[d[t], c]\n",
    "f(T[v, c]: i8, U[v, c]: bool, i[t]: i32) -> Y[t, c]: i16, Z[t, c]\n    Y[t, c] = T[i[t], c] * 12345\n"
    "    Z[t, c] = where(U[i[t], c], 1.5, T[i[t], c])\n",
    // wide integers into narrow ones
    "f(X[i]: i64, Y[i]: i32) -> A[i]: i8, B[i]: u8, C[i]: bool, D[i]: i16\n    A[i] = X[i] * 12345678901\n"
    "    B[i] = u8(X[i] * Y[i] * 1000003)\n    C[i] = X[i] % 2\n    D[i] = i16(Y[i] * 16777217) // 3\n",
    // reductions
    "f(A[i, j]: i8, M[i, j]: bool) -> S[i]: i8, P[i]: u8, X[i]: i8, N[i]: i16, R[i]\n    S[i] = sum(j) A[i, j] * 9\n"
    "    P[i] = prod(j) A[i, j] + M[i, j]\n    X[i] = max(j) A[i, j]\n    N[i] = min(j) A[i, j] * 20000\n"
    "    R[i] = max(j) where(M[i, j], A[i, j], -7)\n",
    // through a temporary that wraps
    "f(A[i, j]: i16) -> B[i]: i32\n    T[i, j]: i8 = A[i, j] * 50\n    B[i] = sum(j) T[i, j] * T[i, j]\n",
};

TEST(NarrowIntegers, ComputeForEveryWidth) {
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const char* text : narrow_programs) {
            const Diagram diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text})).value();
            for (std::uint64_t seed = 0; seed < 4; ++seed) {
                std::mt19937_64 random(seed);
                std::map<std::string, std::int64_t> sizes;
                for (const Axis& axis : diagram.axes) sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % 41);
                cases.push_back(cpu_case::make_case(diagram, bind_sizes(diagram, sizes).value(), seed,
                                                    fmt::format("n{}_", cases.size()), {}, width));
            }
        }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
}

}  // namespace
}  // namespace napkin
