#include "run/blas.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "machine/processor.hpp"
#include "run/library.hpp"
#include "run/workers.hpp"

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

/// By which OpenBLAS is told, as it is loaded, which processor's kernels to use.
constexpr const char* core_setting = "OPENBLAS_CORETYPE";

/// The plainest processor of OpenBLAS' list (TargetList.txt) whose kernels use vectors of so many bytes; null where
/// that is none.
const char* core_of_vectors(int vector_bytes) {
    if (vector_bytes == 64) return "SkylakeX";
    if (vector_bytes == 32) return "Haswell";
    return nullptr;
}

/// The least seconds of a few multiplies of 256×256 values on one thread, which is enough to tell kernels apart that
/// differ in their vectors.
double seconds_of_multiply(const Blas::Impl& blas) {
    constexpr int n = 256;
    const std::vector<float> a(n * n, 0.5F), b(n * n, 0.25F);
    std::vector<float> c(n * n);
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 4; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        Blas::Impl::call(blas.sgemm, false, false, n, n, n, 1.0F, a.data(), n, b.data(), n, 0.0F, c.data(), n);
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return least;
}

std::unique_ptr<Blas::Impl> open_library() {
    auto impl = std::make_unique<Blas::Impl>();
    if (!impl->library.is_open()) return impl;
    char* (*const config)() = impl->library.function("openblas_get_config");
    impl->name = config != nullptr ? config() : "OpenBLAS";
    while (!impl->name.empty() && impl->name.back() == ' ') impl->name.pop_back();
    impl->set_threads(1);
    return impl;
}

/// OpenBLAS takes a processor that is newer than itself for an old one, whose kernels may be several times slower. The
/// library is opened again with kernels for the processor's vectors, and stays so where these are clearly faster than
/// those of its own choice.
std::unique_ptr<Blas::Impl> with_the_faster_kernels(std::unique_ptr<Blas::Impl> chosen) {
    const char* core = core_of_vectors(native_vector_bytes());
    if (core == nullptr || std::getenv(core_setting) != nullptr) return chosen;
    const double by_its_choice = seconds_of_multiply(*chosen);
    chosen->library.close();
    ::setenv(core_setting, core, 1);
    auto told = open_library();
    constexpr double clearly = 1.25;  // beyond the scatter of so short a measurement
    if (told->library.is_open() && seconds_of_multiply(*told) * clearly < by_its_choice) return told;
    told->library.close();
    ::unsetenv(core_setting);
    return open_library();
}

Result<std::shared_ptr<const Blas>> open_once() {
    // An idle worker of OpenBLAS spins for 2^26 cycles by default and slows whatever runs next; it reads this when it
    // is loaded.
    ::setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
    // It starts a thread for each processor as it is loaded, and ends the process where it gets none.
    if (const Status threads = Workers(static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))).all_started();
        !threads)
        return threads.errors();
    auto impl = open_library();
    if (impl->library.is_open())
        return std::shared_ptr<const Blas>(std::make_shared<Blas>(with_the_faster_kernels(std::move(impl))));
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
