// Which equations are matrix multiplies, and over which sizes and strides.
#include "run/contraction.hpp"

#include <gtest/gtest.h>

#include "syntax/parse.hpp"

namespace napkin::test_contraction {
namespace {

struct Parsed {
    Diagram diagram;
    Extents extents;
};

Parsed parse(const std::string& text) {
    auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    auto extents = bind_sizes(*diagram);
    EXPECT_TRUE(extents.ok()) << render(extents.errors());
    return {*diagram, *extents};
}

std::optional<Gemm> gemm(const std::string& text) {
    const Parsed p = parse(text);
    return as_gemm(p.diagram, p.diagram.equations.back(), p.extents);
}

std::string name(const Parsed& p, ArrayId id) { return p.diagram.array(id).name; }

TEST(Contraction, plain_matmul) {
    const auto g = gemm(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = 3, k = 5, j = 7\n");
    ASSERT_TRUE(g);
    EXPECT_EQ(std::tie(g->m, g->n, g->k), std::make_tuple(3, 7, 5));
    EXPECT_EQ(std::tie(g->lda, g->ldb, g->ldc), std::make_tuple(5, 7, 7));
    EXPECT_FALSE(g->transpose_a || g->transpose_b);
    EXPECT_TRUE(g->batch.empty() && g->accumulate.empty());
    EXPECT_EQ(g->alpha, 1);
}

TEST(Contraction, transposes_are_read_from_the_indices) {
    const auto g = gemm(
        "f(A[k, i], B[j, k]) -> C[i, j]\n    C[i, j] = sum(k) A[k, i] * B[j, k]\nsizes i = 3, k = 5, j = 7\n");
    ASSERT_TRUE(g);
    EXPECT_TRUE(g->transpose_a && g->transpose_b);
    EXPECT_EQ(std::tie(g->lda, g->ldb), std::make_tuple(3, 5));
}

TEST(Contraction, operands_are_exchanged_for_a_transposed_target) {
    const Parsed p = parse(
        "f(A[i, k], B[k, j]) -> C[j, i]\n    C[j, i] = sum(k) A[i, k] * B[k, j]\nsizes i = 3, k = 5, j = 7\n");
    const auto g = as_gemm(p.diagram, p.diagram.equations.back(), p.extents);
    ASSERT_TRUE(g);
    EXPECT_EQ(name(p, g->a), "B");
    EXPECT_EQ(std::tie(g->m, g->n), std::make_tuple(7, 3));
}

TEST(Contraction, axes_of_all_three_arrays_are_batches) {
    const auto g = gemm(
        "f(Q[h, q, k], K[h, x, k]) -> S[h, q, x]\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\nsizes h = 2, q = 3, "
        "x = 4, k = 5\n");
    ASSERT_TRUE(g);
    ASSERT_EQ(g->batch.size(), 1U);
    EXPECT_EQ(g->batch[0], (GemmLoop{2, 15, 20, 12}));
}

TEST(Contraction, neighbouring_axes_become_one) {
    // h and q lie behind each other in Q and in S, and K does not have h: one multiply of h·q rows.
    const auto g = gemm(
        "f(Q[h, q, k], K[x, k]) -> S[h, q, x]\n    S[h, q, x] = sum(k) Q[h, q, k] * K[x, k]\nsizes h = 2, q = 3, x = "
        "4, k = 5\n");
    ASSERT_TRUE(g);
    EXPECT_EQ(g->m, 6);
    EXPECT_TRUE(g->batch.empty());
}

TEST(Contraction, reduced_axes_that_do_not_join_accumulate) {
    const auto g = gemm(
        "f(A[a, i, b], B[b, a, j]) -> C[i, j]\n    C[i, j] = sum(a, b) A[a, i, b] * B[b, a, j]\nsizes a = 2, b = 3, i "
        "= 4, j = 5\n");
    ASSERT_TRUE(g);
    EXPECT_EQ(g->k, 3);
    ASSERT_EQ(g->accumulate.size(), 1U);
    EXPECT_EQ(g->accumulate[0], (GemmLoop{2, 12, 5, 0}));
}

TEST(Contraction, constants_and_sizes_become_alpha) {
    const auto g = gemm(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) 2 * A[i, k] * (size(k) * B[k, j])\nsizes i = 3, k = 5, j "
        "= 7\n");
    ASSERT_TRUE(g);
    EXPECT_EQ(g->alpha, 10);
}

TEST(Contraction, everything_else_is_loops) {
    const std::string sizes = "\nsizes i = 3, k = 5, j = 7\n";
    EXPECT_FALSE(gemm("f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = max(k) A[i, k] * B[k, j]" + sizes));
    EXPECT_FALSE(gemm("f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] + B[k, j]" + sizes));
    EXPECT_FALSE(gemm("f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) exp(A[i, k]) * B[k, j]" + sizes));
    EXPECT_FALSE(gemm("f(A[i, k], B[k]) -> C[i]\n    C[i] = sum(k) A[i, k] * B[k]\nsizes i = 3, k = 5\n"));
    EXPECT_FALSE(gemm("f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + w] * W[w]\nsizes n = 12, w = 5, i = 8\n"));
    EXPECT_FALSE(gemm("f(A[i, k], B[i, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[i, j]" + sizes));
}

TEST(Contraction, flops_are_twice_the_multiplications) {
    const Parsed p = parse(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    E[i, k] = exp(A[i, k])\n    C[i, j] = sum(k) E[i, k] * B[k, j]\nsizes i = "
        "3, k = 5, j = 7\n");
    EXPECT_EQ(contraction_flops(p.diagram, p.diagram.equations[0], p.extents), 0);
    EXPECT_EQ(contraction_flops(p.diagram, p.diagram.equations[1], p.extents), 210);
}

}  // namespace
}  // namespace napkin::test_contraction
