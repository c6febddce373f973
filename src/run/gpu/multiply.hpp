#pragma once
// cuBLASLt, opened at run time: the multiply that kernels on a GPU are measured against. Building napkin does not need
// it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/contraction.hpp"
#include "support/dtype.hpp"
#include "support/result.hpp"

namespace napkin::gpu {

/// A matrix as the library sees it, by columns: `leading` values from one column to the next.
struct ColumnMatrix {
    ArrayId array = -1;
    std::int64_t rows = 1, columns = 1, leading = 1;
    bool transposed = false;
    std::int64_t batch_stride = 0;  ///< values from one multiply of a batch to the next
};

/// One call: where each matrix begins, in values, and whether the product is added to what the target holds.
struct MultiplyCall {
    std::int64_t left = 0, right = 0, target = 0;
    bool adds = false;
};

/// target = alpha · op(left) · op(right), for `batch` multiplies at a time, once for each call. Rows read as columns
/// are the transposed matrix: the left one is the Gemm's second operand, the right one its first, and the target is its
/// target transposed.
struct ColumnMultiply {
    ColumnMatrix left, right, target;
    double alpha = 1;
    std::int64_t batch = 1;
    std::vector<MultiplyCall> calls = {};
};
ColumnMultiply in_columns(const Gemm& gemm);

/// The largest power of two, at most 256, that divides every address of the matrix. Addresses are `begin` of every call
/// and the stride of a batch, in values of `value_bytes`, from memory that begins at a multiple of 256.
std::int64_t alignment_of(const ColumnMultiply& multiply, const ColumnMatrix& matrix,
                          std::int64_t MultiplyCall::* begin, std::int64_t value_bytes);

/// Memory that a multiply may use beside its operands.
constexpr std::int64_t multiply_workspace_bytes = std::int64_t{64} << 20;

/// "cuBLASLt 13.0.2". Error no-cublaslt (machine_lacks): where it was looked for. Needs no GPU.
Result<std::string> multiply_library();

/// A multiply by the algorithm that the library thinks the fastest.
class LibraryMultiply {
public:
    /// Pre: device() has succeeded. Errors (machine_lacks): no-cublaslt; not-multiplied, where the library does not
    /// take it, as such types.
    static Result<std::shared_ptr<const LibraryMultiply>> prepare(const Gemm& gemm, DType left, DType right, DType target);
    ~LibraryMultiply();
    LibraryMultiply(const LibraryMultiply&) = delete;
    LibraryMultiply& operator=(const LibraryMultiply&) = delete;

    /// Addresses of the Gemm's arrays a, b and c. It runs after this returns. Errors: gpu-failed.
    [[nodiscard]] Status launch(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t workspace) const;

private:
    struct Impl;
    explicit LibraryMultiply(std::unique_ptr<const Impl> impl);
    std::unique_ptr<const Impl> impl_;
};

}  // namespace napkin::gpu
