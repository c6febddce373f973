#pragma once
// A contraction as calls of a general matrix multiply (BLAS gemm): which axes become m, n and k, which are looped over.
#include <cstdint>
#include <optional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// An axis that is looped over around the multiplies, with the distance between neighbours in each array, in values.
struct GemmLoop {
    std::int64_t size = 1;
    std::int64_t a = 0, b = 0, c = 0;
    friend bool operator==(const GemmLoop&, const GemmLoop&) = default;
};

/// For every point of `batch`: C = Σ over points of `accumulate` of alpha · op(A) · op(B), row-major, where A, B and C
/// are the first operand, the second and the target. op(A) is m×k, op(B) k×n.
struct Gemm {
    ArrayId a = -1, b = -1, c = -1;
    double alpha = 1;
    bool transpose_a = false, transpose_b = false;
    std::int64_t m = 1, n = 1, k = 1;
    std::int64_t lda = 1, ldb = 1, ldc = 1;  ///< distance between rows as stored
    std::vector<GemmLoop> batch = {}, accumulate = {};
    friend bool operator==(const Gemm&, const Gemm&) = default;
};

/// The equation as multiplies over dense row-major arrays, when it is one. It must be a sum over the product of two
/// arrays read at plain indices (and constants). Every summed axis must be in both arrays and every other axis in the
/// target, with strides that a gemm takes. Products with a vector (m, n or k of 1) are left to loops.
std::optional<Gemm> as_gemm(const Diagram& diagram, const Equation& equation, const Extents& extents);

/// Two times the multiplications of a sum over a product of arrays, 0 for any other equation: the field's count of
/// operations.
double contraction_flops(const Diagram& diagram, const Equation& equation, const Extents& extents);

/// Row-major strides of a dense array, in values.
std::vector<std::int64_t> dense_strides(const Diagram& diagram, ArrayId array, const Extents& extents);

}  // namespace napkin
