#include "run/gpu/multiply.hpp"

#include <fmt/format.h>

#include <optional>

#include "run/gpu/cuda_library.hpp"
#include "run/library.hpp"
#include "support/ranges.hpp"

namespace napkin::gpu {
namespace {

// What of the library's interface is called, with its constants (cublasLt.h, cublas_api.h, library_types.h of CUDA 12
// and 13).
using LtHandle = void*;
using LtDescriptor = void*;
enum : int { lt_success = 0 };
enum ComputeType : int { compute_32f = 68, compute_64f = 70, compute_32f_fast_tf32 = 77 };
enum DescriptorAttribute : int { transpose_left = 3, transpose_right = 4 };
enum LayoutAttribute : int { batch_count = 5, batch_offset = 6 };
enum PreferenceAttribute : int {
    most_workspace_bytes = 1,
    least_alignment_left = 5,
    least_alignment_right = 6,
    least_alignment_source = 7,
    least_alignment_target = 8
};

struct LtAlgorithm {
    std::uint64_t data[8];
};
struct LtHeuristic {
    LtAlgorithm algorithm;
    std::size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/// cudaDataType; nothing where the library has no such numbers.
std::optional<int> lt_type(DType type) {
    const int code = facts(type).cuda_data_type;
    return code < 0 ? std::nullopt : std::optional(code);
}

struct Lt {
    SharedLibrary library{cuda_library_paths("NAPKIN_CUBLASLT",
                                             {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                                             {"nvidia/cu13/lib", "nvidia/cublas/lib"})};
    int (*create)(LtHandle*) = library.function("cublasLtCreate");
    std::size_t (*version)() = library.function("cublasLtGetVersion");
    const char* (*words)(int) = library.function("cublasLtGetStatusString");
    int (*descriptor)(LtDescriptor*, int, int) = library.function("cublasLtMatmulDescCreate");
    int (*set_descriptor)(LtDescriptor, int, const void*,
                          std::size_t) = library.function("cublasLtMatmulDescSetAttribute");
    int (*free_descriptor)(LtDescriptor) = library.function("cublasLtMatmulDescDestroy");
    int (*layout)(LtDescriptor*, int, std::uint64_t, std::uint64_t,
                  std::int64_t) = library.function("cublasLtMatrixLayoutCreate");
    int (*set_layout)(LtDescriptor, int, const void*,
                      std::size_t) = library.function("cublasLtMatrixLayoutSetAttribute");
    int (*free_layout)(LtDescriptor) = library.function("cublasLtMatrixLayoutDestroy");
    int (*preference)(LtDescriptor*) = library.function("cublasLtMatmulPreferenceCreate");
    int (*set_preference)(LtDescriptor, int, const void*,
                          std::size_t) = library.function("cublasLtMatmulPreferenceSetAttribute");
    int (*free_preference)(LtDescriptor) = library.function("cublasLtMatmulPreferenceDestroy");
    int (*heuristic)(LtHandle, LtDescriptor, LtDescriptor, LtDescriptor, LtDescriptor, LtDescriptor, LtDescriptor, int,
                     LtHeuristic*, int*) = library.function("cublasLtMatmulAlgoGetHeuristic");
    int (*multiply)(LtHandle, LtDescriptor, const void*, const void*, LtDescriptor, const void*, LtDescriptor,
                    const void*, const void*, LtDescriptor, void*, LtDescriptor, const LtAlgorithm*, void*, std::size_t,
                    void*) = library.function("cublasLtMatmul");

    [[nodiscard]] bool is_whole() const {
        return library.is_open() && create && version && words && descriptor && set_descriptor && free_descriptor &&
               layout && set_layout && free_layout && preference && set_preference && free_preference && heuristic &&
               multiply;
    }
    [[nodiscard]] std::string name() const {
        const std::size_t v = version();
        return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
    }
};

Result<const Lt*> open_lt() {
    static const Lt* const it = new Lt;  // it outlives every static that frees descriptors
    if (it->is_whole()) return it;
    Diagnostic d{.code = "no-cublaslt",
                 .message = it->library.is_open() ? it->library.path() + " lacks functions of CUDA 12's cuBLASLt"
                                                  : "cuBLASLt is not found: " + it->library.why_not()};
    d.expected =
        "libcublasLt.so of CUDA 12 or 13: on the loader's path, in /usr/local/cuda, or from pip's nvidia-cublas";
    d.hint = "set NAPKIN_CUBLASLT to the library's path";
    d.exit_code = ExitCode::machine_lacks;
    return d;
}

Diagnostic lt_failure(const Lt& lt, const char* code, const std::string& what, int status) {
    return Diagnostic{.code = code,
                      .message = fmt::format("{}: {} (cuBLAS status {})", what, lt.words(status), status),
                      .exit_code = ExitCode::machine_lacks};
}

/// The library's handle on the device's primary context. It is kept until the process ends.
Result<LtHandle> lt_handle(const Lt& lt) {
    static LtHandle handle = nullptr;
    static const int status = lt.create(&handle);
    if (status != lt_success) return lt_failure(lt, "no-cublaslt", "cuBLASLt does not start", status);
    return handle;
}

}  // namespace

ColumnMultiply in_columns(const Gemm& g) {
    ColumnMultiply out{.left = {g.b, g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, g.ldb, g.transpose_b, 0},
                       .right = {g.a, g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, g.lda, g.transpose_a, 0},
                       .target = {g.c, g.n, g.m, g.ldc, false, 0},
                       .alpha = g.alpha};
    // The longest loop is the library's batch; the others are calls.
    std::vector<GemmLoop> loops = g.batch;
    if (!loops.empty()) {
        const auto longest = max_element(loops, [](const GemmLoop& a, const GemmLoop& b) { return a.size < b.size; });
        out.batch = longest->size;
        out.left.batch_stride = longest->b, out.right.batch_stride = longest->a, out.target.batch_stride = longest->c;
        loops.erase(longest);
    }
    out.calls = {{}};
    const auto walk = [&](const GemmLoop& loop, bool adds) {
        std::vector<MultiplyCall> calls;
        for (const MultiplyCall& call : out.calls)
            for (std::int64_t i = 0; i < loop.size; ++i)
                calls.push_back({call.left + i * loop.b, call.right + i * loop.a, call.target + i * loop.c,
                                 call.adds || (adds && i > 0)});
        out.calls = std::move(calls);
    };
    for (const GemmLoop& loop : loops) walk(loop, false);
    for (const GemmLoop& loop : g.accumulate) walk(loop, true);
    return out;
}

std::int64_t alignment_of(const ColumnMultiply& multiply, const ColumnMatrix& matrix,
                          std::int64_t MultiplyCall::* begin, std::int64_t value_bytes) {
    std::int64_t common = std::gcd(std::int64_t{256}, matrix.batch_stride * value_bytes);
    for (const MultiplyCall& call : multiply.calls) common = std::gcd(common, call.*begin * value_bytes);
    return common;
}

Result<std::string> multiply_library() {
    const auto lt = open_lt();
    if (!lt) return lt.errors();
    return (*lt)->name();
}

struct LibraryMultiply::Impl {
    const Lt* lt = nullptr;
    LtHandle handle = nullptr;
    ColumnMultiply multiply;
    std::int64_t left_bytes = 1, right_bytes = 1, target_bytes = 1;  ///< of a value
    bool in_double = false, in_tf32 = false;
    LtDescriptor operation = nullptr, left = nullptr, right = nullptr, target = nullptr;
    LtAlgorithm algorithm = {};

    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        if (operation != nullptr) static_cast<void>(lt->free_descriptor(operation));
        for (const LtDescriptor layout : {left, right, target})
            if (layout != nullptr) static_cast<void>(lt->free_layout(layout));
    }
    int describe(int left_type, int right_type, int target_type);
    int choose_algorithm(int& found);
};

/// Makes the descriptors. Returns the first status that is not success.
int LibraryMultiply::Impl::describe(int left_type, int right_type, int target_type) {
    const int computes = in_double ? compute_64f : in_tf32 ? compute_32f_fast_tf32 : compute_32f;
    int status = lt->descriptor(&operation, computes, *lt_type(in_double ? DType::f64 : DType::f32));
    const auto then = [&](auto&& call) {
        if (status == lt_success) status = call();
    };
    for (const auto& [matrix, attribute] : {std::pair(&multiply.left, transpose_left), {&multiply.right, transpose_right}})
        then([&] {
            const std::int32_t transposes = matrix->transposed ? 1 : 0;  // CUBLAS_OP_T, CUBLAS_OP_N
            return lt->set_descriptor(operation, attribute, &transposes, sizeof transposes);
        });
    const auto lay_out = [&](LtDescriptor& layout, const ColumnMatrix& matrix, int type) {
        then([&] {
            return lt->layout(&layout, type, static_cast<std::uint64_t>(matrix.rows),
                              static_cast<std::uint64_t>(matrix.columns), matrix.leading);
        });
        const auto count = static_cast<std::int32_t>(multiply.batch);
        then([&] { return lt->set_layout(layout, batch_count, &count, sizeof count); });
        then([&] { return lt->set_layout(layout, batch_offset, &matrix.batch_stride, sizeof matrix.batch_stride); });
    };
    lay_out(left, multiply.left, left_type);
    lay_out(right, multiply.right, right_type);
    lay_out(target, multiply.target, target_type);
    return status;
}

/// The first algorithm of the library's own ranking. `found`: how many it has.
int LibraryMultiply::Impl::choose_algorithm(int& found) {
    LtDescriptor preference = nullptr;
    int status = lt->preference(&preference);
    if (status != lt_success) return status;
    const auto set = [&](int attribute, const auto& value) {
        if (status == lt_success) status = lt->set_preference(preference, attribute, &value, sizeof value);
    };
    set(most_workspace_bytes, static_cast<std::uint64_t>(multiply_workspace_bytes));
    const auto align = [&](int attribute, const ColumnMatrix& matrix, std::int64_t MultiplyCall::* begin,
                           std::int64_t bytes) {
        set(attribute, static_cast<std::uint32_t>(alignment_of(multiply, matrix, begin, bytes)));
    };
    align(least_alignment_left, multiply.left, &MultiplyCall::left, left_bytes);
    align(least_alignment_right, multiply.right, &MultiplyCall::right, right_bytes);
    align(least_alignment_source, multiply.target, &MultiplyCall::target, target_bytes);
    align(least_alignment_target, multiply.target, &MultiplyCall::target, target_bytes);
    LtHeuristic best = {};
    if (status == lt_success)
        status = lt->heuristic(handle, operation, left, right, target, target, preference, 1, &best, &found);
    if (status == lt_success && found > 0) status = best.state;
    algorithm = best.algorithm;
    static_cast<void>(lt->free_preference(preference));
    return status;
}

LibraryMultiply::LibraryMultiply(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
LibraryMultiply::~LibraryMultiply() = default;

Result<std::shared_ptr<const LibraryMultiply>> LibraryMultiply::prepare(const Gemm& gemm, DType a, DType b, DType c) {
    const auto lt = open_lt();
    if (!lt) return lt.errors();
    const std::string what = fmt::format("cuBLASLt takes no product of {} and {} in {}", name(a), name(b), name(c));
    const auto a_type = lt_type(a), b_type = lt_type(b), c_type = lt_type(c);
    if (!a_type || !b_type || !c_type) {
        return Diagnostic{.code = "not-multiplied", .message = what, .exit_code = ExitCode::machine_lacks};
    }
    const auto handle = lt_handle(**lt);
    if (!handle) return handle.errors();
    auto impl = std::make_unique<Impl>();
    impl->lt = *lt, impl->handle = *handle;
    impl->multiply = in_columns(gemm);
    impl->left_bytes = bytes(b), impl->right_bytes = bytes(a), impl->target_bytes = bytes(c);
    impl->in_double = c == DType::f64, impl->in_tf32 = a == DType::tf32 && b == DType::tf32;
    int status = impl->describe(*b_type, *a_type, *c_type), found = 0;
    if (status == lt_success) status = impl->choose_algorithm(found);
    if (status != lt_success || found == 0)
        return lt_failure(**lt, "not-multiplied", fmt::format("{} of {} × {} × {}", what, gemm.m, gemm.n, gemm.k), status);
    return std::shared_ptr<const LibraryMultiply>(new LibraryMultiply(std::move(impl)));
}

Status LibraryMultiply::launch(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t workspace) const {
    const Impl& i = *impl_;
    const auto pointer = [](std::uint64_t base, std::int64_t values, std::int64_t value_bytes) {
        // NOLINT: addresses of the device
        return reinterpret_cast<void*>(base + static_cast<std::uint64_t>(values * value_bytes));
    };
    const double factor = i.multiply.alpha, zero = 0, one = 1;
    const float narrow_factor = static_cast<float>(factor), narrow_zero = 0, narrow_one = 1;
    for (const MultiplyCall& call : i.multiply.calls) {
        void* const target = pointer(c, call.target, i.target_bytes);
        const void* const alpha = i.in_double ? static_cast<const void*>(&factor) : &narrow_factor;
        const void* const kept = i.in_double ? static_cast<const void*>(call.adds ? &one : &zero)
                                             : (call.adds ? &narrow_one : &narrow_zero);
        const int status = i.lt->multiply(i.handle, i.operation, alpha, pointer(b, call.left, i.left_bytes), i.left,
                                          pointer(a, call.right, i.right_bytes), i.right, kept, target, i.target,
                                          target, i.target, &i.algorithm, pointer(workspace, 0, 1),
                                          static_cast<std::size_t>(multiply_workspace_bytes), nullptr);
        if (status != lt_success) return lt_failure(*i.lt, "gpu-failed", "multiplying by cuBLASLt", status);
    }
    return Done{};
}

}  // namespace napkin::gpu
