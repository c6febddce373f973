#pragma once
// OpenBLAS, opened at run time: the baseline that kernels are measured against. Building napkin does not need it.
#include <cstdint>
#include <memory>
#include <string>

#include "support/result.hpp"

namespace napkin {

/// An open BLAS library. Calls may come from several threads at a time.
class Blas {
public:
    /// Row-major C = alpha · op(A) · op(B) + beta · C with op(A) m×k and op(B) k×n; lda, ldb, ldc are distances between
    /// rows as stored, in values. Every size and distance fits 31 bits.
    void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
              const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
              std::int64_t ldc) const;
    void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
              const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
              std::int64_t ldc) const;

    /// Threads of its own that a call uses; 1 after opening, as its idle threads spin beside whatever runs next.
    void set_threads(int threads) const;

    /// "OpenBLAS 0.3.21 … Cooperlake".
    [[nodiscard]] const std::string& name() const;

    struct Impl;
    explicit Blas(std::unique_ptr<const Impl> impl);
    ~Blas();

private:
    std::unique_ptr<const Impl> impl_;
};

/// Opens the library, once in a process. Error no-blas (machine_lacks) says how to get it.
Result<std::shared_ptr<const Blas>> open_blas();

/// The library, or null where there is none.
std::shared_ptr<const Blas> load_blas();

}  // namespace napkin
