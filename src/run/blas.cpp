#include "run/blas.hpp"

#include <cstdlib>
#include <vector>

#include "run/library.hpp"

namespace napkin {
namespace {

/// What NAPKIN_BLAS names, else OpenBLAS by the names that distributions give it.
std::vector<std::string> library_names() {
    if (const char* chosen = std::getenv("NAPKIN_BLAS")) return {chosen};
    return {"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblaso.so.0"};
}

// CBLAS' own numbers.
constexpr int cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112;

template <class T>
using GemmFunction = void (*)(int order, int op_a, int op_b, int m, int n, int k, T alpha, const T* a, int lda,
                              const T* b, int ldb, T beta, T* c, int ldc);

}  // namespace

struct Blas::Impl {
    SharedLibrary library{library_names(), {"cblas_sgemm", "cblas_dgemm", "openblas_set_num_threads"}};
    std::string name;
    GemmFunction<float> sgemm = library.function("cblas_sgemm");
    GemmFunction<double> dgemm = library.function("cblas_dgemm");
    void (*set_threads)(int) = library.function("openblas_set_num_threads");

    template <class T>
    static void call(GemmFunction<T> gemm, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                     std::int64_t k, T alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c,
                     std::int64_t ldc) {
        gemm(cblas_row_major, transpose_a ? cblas_trans : cblas_no_trans, transpose_b ? cblas_trans : cblas_no_trans,
             static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
             static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
    }
};

Blas::Blas(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Blas::~Blas() = default;
const std::string& Blas::name() const { return impl_->name; }
void Blas::set_threads(int threads) const { impl_->set_threads(threads); }

void Blas::gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                std::int64_t ldc) const {
    Impl::call(impl_->sgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void Blas::gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
                std::int64_t ldc) const {
    Impl::call(impl_->dgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

namespace {

Result<std::shared_ptr<const Blas>> open_once() {
    // An idle worker of OpenBLAS spins for 2^26 cycles by default and slows whatever runs next; it reads this when it is loaded.
    ::setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
    auto impl = std::make_unique<Blas::Impl>();
    if (impl->library.is_open()) {
        char* (*const config)() = impl->library.function("openblas_get_config");
        impl->name = config != nullptr ? config() : "OpenBLAS";
        while (!impl->name.empty() && impl->name.back() == ' ') impl->name.pop_back();
        impl->set_threads(1);
        return std::shared_ptr<const Blas>(std::make_shared<Blas>(std::move(impl)));
    }
    Diagnostic error{.code = "no-blas", .message = "OpenBLAS cannot be opened: " + impl->library.why_not()};
    error.expected =
        "libopenblas.so.0 where the loader finds it (ldconfig, LD_LIBRARY_PATH), or its path in NAPKIN_BLAS";
    error.hint =
        "Debian and Ubuntu: apt install libopenblas0-pthread; Fedora: dnf install openblas-threads; conda: conda "
        "install libopenblas";
    error.exit_code = ExitCode::machine_lacks;
    return error;
}

}  // namespace

Result<std::shared_ptr<const Blas>> open_blas() {
    static const Result<std::shared_ptr<const Blas>> opened = open_once();
    return opened;
}

std::shared_ptr<const Blas> load_blas() {
    const Result<std::shared_ptr<const Blas>> opened = open_blas();
    return opened.ok() ? opened.value() : nullptr;
}

}  // namespace napkin
