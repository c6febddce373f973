// The CPU prelude against the C library and against the library's own number formats, at every vector width that this
// processor runs, and by every compiler that is installed.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "algebra/power.hpp"
#include "emit/cpu/prelude.hpp"
#include "machine/processor.hpp"
#include "run/jit.hpp"
#include "run/tensor.hpp"
#include "support/compilers.hpp"

namespace napkin::test_cpu_prelude {
namespace {

/// Exports the prelude's functions over arrays; n is a multiple of the lanes.
constexpr const char* harness = R"(
namespace napkin_cpu {
#define OVER(name, T)                                                                                                              \
    extern "C" void name##_##T(const T* x, T* y, long n) { for (long i = 0; i < n; i += lanes<T>) store(y + i, name(load(x + i))); } \
    extern "C" void name##_single_##T(const T* x, T* y, long n) { for (long i = 0; i < n; ++i) y[i] = name(x[i]); }
#define OVER_BOTH(name) OVER(name, float) OVER(name, double)
OVER_BOTH(exp) OVER_BOTH(exp2) OVER_BOTH(log) OVER_BOTH(tanh) OVER_BOTH(erf) OVER_BOTH(sin) OVER_BOTH(cos) OVER_BOTH(sqrt) OVER_BOTH(rsqrt)
OVER_BOTH(floor) OVER_BOTH(abs) OVER_BOTH(exp_nonpositive) OVER_BOTH(ceil) OVER_BOTH(round) OVER_BOTH(trunc) OVER_BOTH(log2)
OVER_BOTH(log1p) OVER_BOTH(expm1) OVER_BOTH(sinh) OVER_BOTH(cosh) OVER_BOTH(atan) OVER_BOTH(asinh) OVER_BOTH(erfc)
OVER_BOTH(round_f64) OVER_BOTH(round_f32) OVER_BOTH(round_f16) OVER_BOTH(round_bf16) OVER_BOTH(round_tf32) OVER_BOTH(round_e4m3) OVER_BOTH(round_e5m2)
#define OVER2(name, T) extern "C" void name##_##T(const T* x, const T* y, T* z, long n) { \
    for (long i = 0; i < n; i += lanes<T>) store(z + i, name(load(x + i), load(y + i))); }
OVER2(pow, float) OVER2(pow, double) OVER2(maximum, float) OVER2(maximum, double) OVER2(minimum, float) OVER2(minimum, double)
#define STORAGE(S, T) \
    extern "C" void in_##S##_##T(T* to, long to_row, const S* from, long row, long column, long rows, long columns) { \
        copy_in(to, to_row, from, row, column, rows, columns); } \
    extern "C" void out_##S##_##T(S* to, long row, long column, const T* from, long from_row, long rows, long columns) { \
        copy_out(to, row, column, from, from_row, rows, columns); }
#define STORAGE_BOTH(S) STORAGE(S, float) STORAGE(S, double)
using f64 = double; using f32 = float;
STORAGE_BOTH(f64) STORAGE_BOTH(f32) STORAGE_BOTH(f16) STORAGE_BOTH(bf16) STORAGE_BOTH(tf32) STORAGE_BOTH(e4m3) STORAGE_BOTH(e5m2)
#define LANES(T)                                                                                          \
    extern "C" long lanes_##T() { return lanes<T>; }                                                      \
    extern "C" void over_lanes_##T(const T* x, T* y) {                                                    \
        y[0] = sum(load(x)); y[1] = prod(load(x)); y[2] = max_of(load(x)); y[3] = min_of(load(x)); }      \
    extern "C" void masks_##T(const T* x, T* y) {                                                         \
        store(y, where((load(x) > splat(T(0))) & ~(load(x) > splat(T(2))), load(x), splat(infinity<T>))); \
        store(y + lanes<T>, number<T>(truth(load(x))));                                                   \
        store(y + 2 * lanes<T>, iota<T>() + T(5));                                                        \
        store(y + 3 * lanes<T>, load_strided(x, 2));                                                      \
        store(y + 4 * lanes<T>, where(splat_mask<T>(x[0] > 0), splat(T(1)), splat(not_a_number<T>)));     \
        store_strided(y + 5 * lanes<T>, 3, load(x));                                                      \
        y[9 * lanes<T>] = where(truth(x[0]), number<T>(true), T(7)); }
LANES(float) LANES(double)
extern "C" void products_while_flushing(const float* x, float* y, long n) {
    { const FlushToZero flush_to_zero; for (long i = 0; i < n; i += lanes<float>) store(y + i, load(x + i) * splat(0.5f)); }
    asm volatile("" ::: "memory");
    for (long i = 0; i < n; i += lanes<float>) store(y + n + i, load(x + i) * splat(0.5f)); }
#define QUOTIENTS(T) extern "C" void quotients_##T(const T* x, const T* y, T* z, long n) { \
    for (long i = 0; i < n; i += lanes<T>) store(z + i, load(x + i) * scale_of_divisor(y[0]) * scaled_reciprocal(y[0])); }
QUOTIENTS(float) QUOTIENTS(double)
extern "C" long floor_div_(long a, long b) { return floor_div(a, b); }
}
)";

struct Target {
    const char* name;
    int vector_bytes;
    std::vector<std::string> flags;
    std::vector<const char*> features;  ///< of the processor that it needs
};

constexpr std::size_t num_targets = 3;

std::vector<Target> targets() {
    return {{"native", native_vector_bytes(), flags_for_vectors(native_vector_bytes()), {}},
            {"AVX2", 32, {"-march=x86-64-v3"}, {"avx2", "fma", "f16c"}},
            {"SSE2", 16, {"-march=x86-64"}, {}}};
}

bool runs_here([[maybe_unused]] const Target& target) {
#if defined(__x86_64__)
    for (const char* feature : target.features) {
        if (std::strcmp(feature, "avx2") == 0 && !__builtin_cpu_supports("avx2")) return false;
        if (std::strcmp(feature, "fma") == 0 && !__builtin_cpu_supports("fma")) return false;
    }
    return true;
#else
    return target.flags.empty();
#endif
}

class Prelude : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        const auto index = static_cast<std::size_t>(GetParam());
        const Target target = targets()[index % num_targets];
        if (!runs_here(target)) GTEST_SKIP() << "this processor lacks " << target.name;
        const std::string name = tested_compilers()[index / num_targets];
        const auto compiler = installed_compiler(name);
        if (!compiler) GTEST_SKIP() << name << " is not installed, or is the one that was tested before";
        const std::string source = "#define NAPKIN_VECTOR_BYTES " + std::to_string(target.vector_bytes) + "\n" +
                                   std::string(cpu::prelude_text()) + harness;
        JitOptions options;
        options.compiler = compiler->path;
        options.optimization = "-O1";
        options.flags = target.flags;
        auto compiled = jit_compile(source, options);
        ASSERT_TRUE(compiled.ok()) << render(compiled.errors());
        module_ = compiled.value();
    }

    template <class T>
    static std::string suffix() {
        return sizeof(T) == 4 ? "_float" : "_double";
    }
    template <class F>
    F* function(const std::string& name) const {
        return reinterpret_cast<F*>(module_->symbol(name));
    }
    template <class T>
    std::vector<T> apply(const std::string& name, std::vector<T> x) const {
        const std::size_t wanted = (x.size() + 15) / 16 * 16;
        x.resize(wanted, T(1));
        std::vector<T> y(wanted), single(wanted);
        function<void(const T*, T*, long)>(name + suffix<T>())(x.data(), y.data(), static_cast<long>(wanted));
        function<void(const T*, T*, long)>(name + "_single" + suffix<T>())(x.data(), single.data(),
                                                                           static_cast<long>(wanted));
        // Alone, a number may be contracted differently.
        for (std::size_t i = 0; i < wanted; ++i) {
            const bool near = y[i] == single[i] || (y[i] != y[i] && single[i] != single[i]) ||
                              std::fabs(y[i] - single[i]) <= std::fabs(y[i]) * 2 * std::numeric_limits<T>::epsilon();
            EXPECT_TRUE(near) << name << "(" << x[i] << ") alone is " << single[i] << ", in a vector " << y[i];
            if (!near) break;
        }
        return y;
    }

    std::shared_ptr<const JitModule> module_;
};

template <class T>
std::vector<T> special_values() {
    using L = std::numeric_limits<T>;
    // clang-format off
    std::vector<T> values = {
        T(0), T(1), T(0.5), T(2), T(3), T(0.1), T(10), T(88.7), T(88.73), T(103.9), T(104.1), T(127), T(128), T(149),
        T(150), T(709.7), T(709.8), T(745.1), T(745.2), T(1e4), T(1e6), T(1048576), T(2147483647.0), T(2147483648.0),
        T(4e9), T(8388608), T(8388607.5), T(65504), T(65519.9), T(65520), T(448), T(464), T(465), T(57344), T(61440),
        L::min(), L::denorm_min(), L::min() / 2, L::max(), L::infinity(), L::epsilon(), T(1) + L::epsilon(),
        T(1) - L::epsilon(), T(0.95), T(4), T(9.1), T(0x1p-9), T(0x1p-10), T(0x1.8p-10), T(0x1p-24), T(0x1p-25)};
    // clang-format on
    const std::size_t positive = values.size();
    for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
    values.push_back(L::quiet_NaN());
    return values;
}

/// Special values, values of ordinary size, and random bit patterns.
template <class T>
std::vector<T> samples(std::size_t count) {
    std::mt19937_64 random(7);
    std::vector<T> values = special_values<T>();
    std::uniform_real_distribution<T> ordinary(T(-12), T(12));
    while (values.size() < count) {
        values.push_back(ordinary(random));
        const std::uint64_t bits = random();
        T value;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
    }
    return values;
}

/// The distance |got - exact| in units of the last place of T at `exact`; 0 when both are the same special value,
/// infinity when only one is.
template <class T>
double ulps(T got, long double exact) {
    const T rounded = static_cast<T>(exact);
    const double wrong = std::numeric_limits<double>::infinity();
    if (rounded != rounded) return got != got ? 0 : wrong;
    if (got != got) return wrong;
    if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : wrong;
    if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(rounded) ? 0 : wrong;
    int exponent = 0;
    std::frexp(exact, &exponent);
    const int least = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                               std::ldexp(1.0L, std::max(exponent - std::numeric_limits<T>::digits, least)));
}

struct Accuracy {
    const char* name;
    long double (*exact)(long double);
    double ulps;
};

const Accuracy accuracies[] = {
    {"exp", std::exp, 1.4},       {"exp2", std::exp2, 1.15},
    {"log", std::log, 0.85},      {"tanh", std::tanh, 2.7},
    {"erf", std::erf, 1.45},      {"sin", std::sin, 1.65},
    {"cos", std::cos, 1.65},      {"sqrt", std::sqrt, 0.5},
    {"log2", std::log2, 1.9},     {"log1p", std::log1p, 0.85},
    {"expm1", std::expm1, 2.4},   {"sinh", std::sinh, 2.6},
    {"cosh", std::cosh, 1.6},     {"atan", std::atan, 1.9},
    {"asinh", std::asinh, 2.5},   {"erfc", std::erfc, 4.9},
    {"floor", std::floor, 0},     {"ceil", std::ceil, 0},
    {"round", std::nearbyint, 0}, {"trunc", std::trunc, 0},
    {"abs", std::fabs, 0},        {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1.5}};

template <class T>
void expect_accurate(const std::vector<T>& x, const std::vector<T>& y, const Accuracy& wanted) {
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(y[i], wanted.exact(static_cast<long double>(x[i])));
        if (error > worst) worst = error, at = i;
    }
    EXPECT_LE(worst, wanted.ulps) << wanted.name << "(" << x[at] << ") = " << y[at] << " in " << 8 * sizeof(T) << " bits";
}

TEST_P(Prelude, FunctionsAreAsAccurateAsTheySay) {
    const std::vector<float> x = samples<float>(40000);
    const std::vector<double> wide = samples<double>(20000);
    for (const Accuracy& a : accuracies) {
        expect_accurate(x, apply(a.name, x), a);
        expect_accurate(wide, apply(a.name, wide), a);
    }
}

TEST_P(Prelude, FunctionsAreAsAccurateAsTheySayAtAllExponents) {
    std::vector<float> x;
    for (std::uint64_t b = 0; b < 1ULL << 32; b += 40009) {
        const auto bits = static_cast<std::uint32_t>(b);
        x.push_back(std::bit_cast<float>(bits));
    }
    x.resize(x.size() / 16 * 16);
    for (const Accuracy& a : accuracies) expect_accurate(x, apply(a.name, x), a);
}

// Vectors whose lanes all have results in the normal range take another path than those with one lane that has not. The
// results must be the same. Otherwise they would depend on the values beside them, which may pad a row.
TEST_P(Prelude, ExponentialsOfOrdinaryNumbersAreAccurateWhateverIsBesideThem) {
    std::vector<float> x;
    for (int i = 0; i <= 40000; ++i) x.push_back(-87.0f + 174.0f * static_cast<float>(i) / 40000);
    const std::vector<float> alone = apply("exp", x);
    expect_accurate(x, alone, accuracies[0]);
    // One lane of each vector at most is out of range.
    std::vector<float> mixed = x;
    for (std::size_t i = 0; i < x.size(); i += 17) mixed[i] = i % 2 == 0 ? 88.5f : -100.0f;
    const std::vector<float> beside = apply("exp", mixed);
    expect_accurate(mixed, beside, accuracies[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (mixed[i] != x[i]) continue;
        ASSERT_EQ(beside[i], alone[i]) << x[i];
    }
}

// An exponential of a difference is off by less than half of what the rounding of that changes. What is below the
// normal range is 0, or comes out as it is.
TEST_P(Prelude, ExponentialsOfDifferencesAreAccurateUpToWhatThoseAreRounded) {
    std::vector<float> x;
    for (int i = 0; i < 40000; ++i) x.push_back(-87.3f * static_cast<float>(i) / 40000);
    for (float size = 0x1p-149f; size < 1; size *= 2) x.push_back(-size);
    const std::vector<float> y = apply("exp_nonpositive", x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(ulps(y[i], std::exp(static_cast<long double>(x[i]))), 1.4 + 0.225 * std::fabs(x[i])) << x[i];
        ASSERT_LE(y[i], 1.0f) << x[i];
    }
    const float infinity = std::numeric_limits<float>::infinity(), undefined = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> far = {-87.34f, -87.5f, -88.0f, -88.03f, -89.0f, -104.0f, -1e9f, -1e38f, -infinity};
    const std::vector<float> small = apply("exp_nonpositive", far);
    for (std::size_t i = 0; i < far.size(); ++i) {
        EXPECT_GE(small[i], 0.0f) << far[i];
        EXPECT_LT(small[i], std::numeric_limits<float>::min()) << far[i];
        if (far[i] < -105) {
            EXPECT_EQ(small[i], 0.0f) << far[i];
        }
    }
    EXPECT_TRUE(std::isnan(apply("exp_nonpositive", std::vector<float>{undefined})[0]));
    const std::vector<double> wide = {0.0, -1.0, -700.0, -std::numeric_limits<double>::infinity()};
    expect_accurate(wide, apply("exp_nonpositive", wide), accuracies[0]);
}

TEST_P(Prelude, PowAgreesWithTheCLibrary) {
    const std::vector<float> values = special_values<float>();
    std::vector<float> x, y;
    for (const float a : values) {
        for (const float b : values) x.push_back(a), y.push_back(b);
    }
    std::mt19937 random(3);
    std::uniform_real_distribution<float> ordinary(-9, 9);
    while (x.size() % 16 != 0 || x.size() < 40000)
        x.push_back(ordinary(random)), y.push_back(random() % 2 == 0 ? ordinary(random) : std::round(ordinary(random)));
    std::vector<float> z(x.size());
    function<void(const float*, const float*, float*, long)>("pow_float")(x.data(), y.data(), z.data(),
                                                                          static_cast<long>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = real_power(static_cast<double>(x[i]), static_cast<double>(y[i]));
        EXPECT_LE(ulps(z[i], static_cast<long double>(exact)), 0.52)
            << x[i] << "^" << y[i] << " = " << z[i] << ", not " << exact;
    }
}

template <class T>
void expect_extrema(const std::shared_ptr<const JitModule>& module, const std::string& suffix) {
    const std::vector<T> values = special_values<T>();
    for (const bool is_max : {true, false}) {
        const auto f = reinterpret_cast<void (*)(const T*, const T*, T*, long)>(
            module->symbol((is_max ? "maximum" : "minimum") + suffix));
        for (const T a : values) {
            std::vector<T> x((values.size() + 15) / 16 * 16, a), y(x.size(), T(0)), z(x.size());
            std::copy(values.begin(), values.end(), y.begin());
            f(x.data(), y.data(), z.data(), static_cast<long>(x.size()));
            for (std::size_t i = 0; i < x.size(); ++i) {
                if (x[i] != x[i] || y[i] != y[i]) {
                    EXPECT_NE(z[i], z[i]) << "NaN is lost";
                } else {
                    EXPECT_EQ(z[i], is_max ? std::max(x[i], y[i]) : std::min(x[i], y[i]));
                }
            }
        }
    }
}

TEST_P(Prelude, ExtremaPropagateNaN) {
    expect_extrema<float>(module_, "_float");
    expect_extrema<double>(module_, "_double");
}

TEST_P(Prelude, RoundingEqualsTheNumberFormats) {
    const std::vector<float> x = samples<float>(20000);
    const std::vector<double> wide = samples<double>(20000);
    for (const DType type : all_dtypes) {
        if (!is_float(type)) continue;
        const std::vector<float> y = apply("round_" + std::string(name(type)), x);
        const std::vector<double> wide_y = apply("round_" + std::string(name(type)), wide);
        const auto expect = [&](double value, double got, double exact) {
            EXPECT_TRUE(got == exact || (got != got && exact != exact))
                << name(type) << "(" << value << ") = " << got << ", not " << exact;
            if (exact == 0) {
                EXPECT_EQ(std::signbit(got), std::signbit(exact)) << name(type) << "(" << value << ")";
            }
        };
        for (std::size_t i = 0; i < x.size(); ++i)
            expect(x[i], y[i], static_cast<double>(static_cast<float>(round_to(type, x[i]))));
        for (std::size_t i = 0; i < wide.size(); ++i) expect(wide[i], wide_y[i], round_to(type, wide[i]));
    }
}

template <class T>
void expect_storage(const std::shared_ptr<const JitModule>& module, DType type, const std::string& suffix) {
    using In = void(T*, long, const void*, long, long, long, long);
    using Out = void(void*, long, long, const T*, long, long, long);
    const auto in = reinterpret_cast<In*>(module->symbol("in_" + std::string(name(type)) + suffix));
    const auto out = reinterpret_cast<Out*>(module->symbol("out_" + std::string(name(type)) + suffix));
    const auto width = static_cast<std::size_t>(bytes(type));

    // Every bit pattern of the narrow types widens as decode() says.
    if (width <= 2) {
        const std::size_t count = std::size_t{1} << (8 * width);
        std::vector<std::uint8_t> raw(count * width);
        for (std::size_t i = 0; i < count; ++i) std::memcpy(&raw[i * width], &i, width);
        std::vector<T> wide(count);
        in(wide.data(), 0, raw.data(), 0, 1, 1, static_cast<long>(count));
        for (std::size_t i = 0; i < count; ++i) {
            const double exact = decode(type, &raw[i * width]);
            EXPECT_TRUE(static_cast<double>(wide[i]) == exact || (wide[i] != wide[i] && exact != exact))
                << name(type) << " " << i << " is " << exact << ", not " << wide[i];
        }
    }
    // Narrowing gives encode()'s bits, but for which NaN it is.
    const std::vector<T> x = samples<T>(20000);
    std::vector<std::uint8_t> narrow(x.size() * width);
    out(narrow.data(), 0, 1, x.data(), 0, 1, static_cast<long>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::uint8_t exact[8];
        encode(type, static_cast<double>(x[i]), exact);
        const double got = decode(type, &narrow[i * width]);
        const bool both_nan = got != got && decode(type, exact) != decode(type, exact);
        EXPECT_TRUE(both_nan || std::memcmp(exact, &narrow[i * width], width) == 0)
            << name(type) << "(" << x[i] << ") = " << got << ", not " << decode(type, exact);
    }
}

TEST_P(Prelude, StorageEqualsTheNumberFormats) {
    for (const DType type : all_dtypes) {
        if (!is_float(type)) continue;
        expect_storage<float>(module_, type, "_float");
        expect_storage<double>(module_, type, "_double");
    }
}

TEST_P(Prelude, CopiesMoveEveryShapeAndStride) {
    // Memory is rows × columns with either one contiguous, or neither.
    for (const auto& [rows, columns] :
         {std::pair{1L, 1L}, {3L, 5L}, {16L, 16L}, {17L, 31L}, {48L, 64L}, {5L, 40L}, {33L, 8L}, {64L, 3L}}) {
        for (const auto& [row, column] :
             {std::pair{columns + 3, 1L}, {1L, rows + 2}, {2 * columns + 1, 2L}, {2L, 2 * rows + 3}}) {
            const auto size = static_cast<std::size_t>((rows - 1) * row + (columns - 1) * column + 1);
            std::vector<float> memory(size);
            for (std::size_t i = 0; i < size; ++i) memory[i] = static_cast<float>(i + 1);
            const long pad = columns + 7;
            std::vector<float> tile(static_cast<std::size_t>(rows * pad), -1.0F);
            function<void(float*, long, const float*, long, long, long, long)>("in_f32_float")(
                tile.data(), pad, memory.data(), row, column, rows, columns);
            for (long r = 0; r < rows; ++r) {
                for (long c = 0; c < pad; ++c) {
                    const float wanted = c < columns ? memory[static_cast<std::size_t>(r * row + c * column)] : -1.0F;
                    ASSERT_EQ(tile[static_cast<std::size_t>(r * pad + c)], wanted)
                        << rows << "×" << columns << " strides " << row << " " << column;
                }
            }
            std::vector<float> back(size, 0.0F);
            function<void(float*, long, long, const float*, long, long, long)>("out_f32_float")(
                back.data(), row, column, tile.data(), pad, rows, columns);
            float copied = 0;
            for (std::size_t i = 0; i < size; ++i) {
                ASSERT_TRUE(back[i] == 0 || back[i] == memory[i]) << "writes outside";
                copied += back[i] != 0 ? 1.0F : 0.0F;
            }
            ASSERT_EQ(copied, static_cast<float>(rows * columns));
        }
    }
}

template <class T>
void expect_lanes(const std::shared_ptr<const JitModule>& module, const std::string& suffix) {
    const auto n = static_cast<std::size_t>(reinterpret_cast<long (*)()>(module->symbol("lanes" + suffix))());
    std::vector<T> x(2 * n + 1), y(10 * n, T(0));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 4) - T(0.5);
    reinterpret_cast<void (*)(const T*, T*)>(module->symbol("over_lanes" + suffix))(x.data(), y.data());
    T sum = 0, prod = 1;
    for (std::size_t i = 0; i < n; ++i) sum += x[i], prod *= x[i];
    EXPECT_EQ(y[0], sum);
    EXPECT_EQ(y[1], prod);
    EXPECT_EQ(y[2], *std::max_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)));
    EXPECT_EQ(y[3], T(-0.5));

    x[1] = 0;
    reinterpret_cast<void (*)(const T*, T*)>(module->symbol("masks" + suffix))(x.data(), y.data());
    for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(y[i], x[i] > 0 && x[i] <= 2 ? x[i] : std::numeric_limits<T>::infinity());
        EXPECT_EQ(y[n + i], x[i] != 0 ? T(1) : T(0));
        EXPECT_EQ(y[2 * n + i], static_cast<T>(i + 5));
        EXPECT_EQ(y[3 * n + i], x[2 * i]);
        EXPECT_NE(y[4 * n + i], y[4 * n + i]);
        EXPECT_EQ(y[5 * n + 3 * i], x[i]);
    }
    EXPECT_EQ(y[9 * n], T(1));
}

TEST_P(Prelude, LanesAndMasks) {
    expect_lanes<float>(module_, "_float");
    expect_lanes<double>(module_, "_double");
    const auto floor_div = function<long(long, long)>("floor_div_");
    for (long a = -9; a <= 9; ++a)
        EXPECT_EQ(floor_div(a, 4), static_cast<long>(std::floor(static_cast<double>(a) / 4)));
}

TEST_P(Prelude, SubnormalResultsAreFlushedWhileAKernelRunsAndNotAfterwards) {
    const std::vector<float> x = {1.5e-38F, 3e-38F, -1.5e-38F, 1e-40F};
    std::vector<float> in(16), out(32);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = x[i % x.size()];
    function<void(const float*, float*, long)>("products_while_flushing")(in.data(), out.data(), 16);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const float half = in[i] / 2;
#ifdef __x86_64__
        EXPECT_EQ(out[i], std::fabs(half) < std::numeric_limits<float>::min() ? 0 : half) << in[i];
#endif
        EXPECT_EQ(out[16 + i], half) << in[i];
    }
}

template <class T>
void expect_quotients(void (*run)(const T*, const T*, T*, long)) {
    using L = std::numeric_limits<T>;
    std::vector<T> x = samples<T>(4000), z(x.size());
    x.resize(x.size() / 16 * 16), z.resize(x.size());
    std::vector<T> divisors = samples<T>(200);
    for (const T edge :
         {1 / L::min(), std::nextafter(1 / L::min(), L::infinity()), L::min(), std::nextafter(L::min(), T(0))})
        divisors.insert(divisors.end(), {edge, -edge});
    for (const T y : divisors) {
        run(x.data(), &y, z.data(), static_cast<long>(x.size()));
        for (std::size_t i = 0; i < x.size(); ++i) {
            const T wanted = x[i] / y;
            const bool is_finite = std::isfinite(wanted) && std::fabs(wanted) < L::max() * (1 - 2 * L::epsilon());
            // Two roundings, and one more where the result is subnormal.
            const bool agrees = is_finite
                                    ? std::fabs(z[i] - wanted) <= std::fabs(wanted) * L::epsilon() + 2 * L::denorm_min()
                                    : std::isnan(wanted) == std::isnan(z[i]) && std::signbit(wanted) == std::signbit(z[i]);
            const bool is_infinite = std::isinf(wanted) && x[i] != 0 && !std::isnan(z[i]);
            ASSERT_TRUE(agrees || std::isnan(wanted)) << x[i] << " / " << y << " is " << wanted << ", not " << z[i];
            ASSERT_EQ(std::isnan(z[i]), std::isnan(wanted)) << x[i] << " / " << y << ": " << z[i];
            ASSERT_TRUE(!is_infinite || std::isinf(z[i])) << x[i] << " / " << y << ": " << z[i];
        }
    }
}

TEST_P(Prelude, QuotientsByAReciprocalAreThoseOfADivision) {
    expect_quotients(function<void(const float*, const float*, float*, long)>("quotients_float"));
    expect_quotients(function<void(const double*, const double*, double*, long)>("quotients_double"));
}

INSTANTIATE_TEST_SUITE_P(Targets, Prelude, testing::Range(0, static_cast<int>(num_targets* tested_compilers().size())));

TEST(PreludeText, IncludesNothing) { EXPECT_EQ(cpu::prelude_text().find("#include"), std::string_view::npos); }

}  // namespace
}  // namespace napkin::test_cpu_prelude
