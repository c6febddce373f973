#include "run/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "machine/processor.hpp"
#include "run/blas.hpp"

namespace napkin::test_tensor {
namespace {

TEST(NumberFormats, EveryPatternOfNarrowTypesDecodesAndEncodesBack) {
    for (const DType type : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
        const std::uint32_t count = 1U << (8 * bytes(type));
        for (std::uint32_t i = 0; i < count; ++i) {
            const double x = decode(type, &i);
            if (x != x) continue;
            EXPECT_EQ(round_to(type, x), x) << name(type) << " " << i;
            std::uint32_t back = 0;
            encode(type, x, &back);
            ASSERT_EQ(back, i) << name(type);
        }
    }
}

TEST(NumberFormats, KnownBits) {
    const auto bits = [](DType type, double x) {
        std::uint32_t raw = 0;
        encode(type, x, &raw);
        return raw;
    };
    EXPECT_EQ(bits(DType::f16, 1), 0x3c00U);
    EXPECT_EQ(bits(DType::f16, -65504), 0xfbffU);
    EXPECT_EQ(bits(DType::f16, 65520), 0x7c00U);
    EXPECT_EQ(bits(DType::f16, 0x1p-24), 1U);
    EXPECT_EQ(bits(DType::f16, 0x1p-25), 0U) << "ties to even";
    EXPECT_EQ(bits(DType::bf16, 1), 0x3f80U);
    EXPECT_EQ(bits(DType::bf16, 1e39), 0x7f80U);
    EXPECT_EQ(bits(DType::tf32, 1 + 0x1p-10), 0x3f802000U);
    EXPECT_EQ(bits(DType::tf32, 1 + 0x1p-11), 0x3f800000U) << "ties to even";
    const std::uint32_t with_unused_bits = 0x3f803fffU;
    EXPECT_EQ(decode(DType::tf32, &with_unused_bits), 1 + 0x1p-10);
    EXPECT_EQ(bits(DType::e4m3, 448), 0x7eU);
    EXPECT_EQ(bits(DType::e4m3, 465), 0x7fU) << "no infinity: NaN";
    EXPECT_EQ(bits(DType::e4m3, -0x1p-9), 0x81U);
    EXPECT_EQ(bits(DType::e5m2, 57344), 0x7bU);
    EXPECT_EQ(bits(DType::e5m2, 1e9), 0x7cU);
    EXPECT_EQ(bits(DType::i32, -1.9), 0xffffffffU);
    EXPECT_EQ(bits(DType::i32, 1e99), 0x7fffffffU);
    EXPECT_EQ(bits(DType::i32, NAN), 0U);
    const std::uint32_t nans[] = {bits(DType::f16, NAN), bits(DType::bf16, NAN), bits(DType::e4m3, NAN),
                                  bits(DType::e5m2, NAN)};
    EXPECT_TRUE(std::isnan(decode(DType::f16, &nans[0])) && std::isnan(decode(DType::bf16, &nans[1])) &&
                std::isnan(decode(DType::e4m3, &nans[2])) && std::isnan(decode(DType::e5m2, &nans[3])));
}

TEST(Tensor, ZeroedAndAligned) {
    for (const DType type : all_dtypes) {
        const Tensor tensor = Tensor::make(type, {3, 5}).value();
        EXPECT_EQ(tensor.count(), 15);
        EXPECT_EQ(tensor.size_bytes(), 15 * bytes(type));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
        EXPECT_EQ(tensor.to_doubles(), std::vector<double>(15, 0.0));
    }
    EXPECT_EQ(Tensor::make(DType::f32, {}).value().count(), 1);
    EXPECT_EQ(Tensor::make(DType::f32, {4, 0, 7}).value().count(), 0);
    EXPECT_EQ(Tensor().count(), 0);
}

TEST(Tensor, TooLargeIsAnError) {
    const auto code = [](const Result<Tensor>& r) { return r.ok() ? "" : r.errors()[0].code; };
    EXPECT_EQ(code(Tensor::make(DType::f32, {1 << 30, 1 << 30})), "too-little-memory");
    EXPECT_EQ(code(Tensor::make(DType::f64, {std::int64_t{1} << 62, std::int64_t{1} << 62, 4})), "too-little-memory");
    EXPECT_EQ(code(Tensor::make(DType::f32, {std::int64_t{1} << 45})), "too-little-memory");
    EXPECT_EQ(code(Tensor::make(DType::f32, {3, -1})), "bad-sizes");
    EXPECT_TRUE(Tensor::make(DType::f32, {std::int64_t{1} << 62, 0}).ok());
}

TEST(Tensor, ConvertsWithOneRounding) {
    Tensor wide = Tensor::make(DType::f64, {4}).value();
    wide.set(0, 1.0), wide.set(1, 1.0 + 0x1p-8 + 0x1p-40), wide.set(2, -3e5), wide.set(3, 0.1);
    for (const DType type : all_dtypes) {
        const Tensor narrow = wide.to(type).value();
        EXPECT_EQ(narrow.type(), type);
        for (std::int64_t i = 0; i < 4; ++i) {
            const double wanted = round_to(type, wide.at(i));
            EXPECT_TRUE(narrow.at(i) == wanted || (wanted != wanted && narrow.at(i) != narrow.at(i))) << name(type);
        }
    }
    const Tensor copy = wide.copy().value();
    EXPECT_EQ(copy.to_doubles(), wide.to_doubles());
    EXPECT_NE(copy.data(), wide.data());
}

TEST(Tensor, NormalNumbersDependOnSeedAndPlaceAlone) {
    Tensor small = Tensor::make(DType::f32, {1000}).value();
    Tensor large = Tensor::make(DType::f32, {1000, 300}).value();
    small.fill_normal(5);
    large.fill_normal(5);
    EXPECT_EQ(std::memcmp(small.data(), large.data(), 4000), 0);
    EXPECT_EQ(small.at(17), static_cast<double>(static_cast<float>(normal_number(5, 17))));
    Tensor other = Tensor::make(DType::f32, {1000}).value();
    other.fill_normal(6);
    EXPECT_NE(std::memcmp(small.data(), other.data(), 4000), 0);

    double sum = 0, squares = 0, fourth = 0, neighbours = 0;
    const std::vector<double> x = large.to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isfinite(x[i]));
        sum += x[i];
        squares += x[i] * x[i];
        fourth += x[i] * x[i] * x[i] * x[i];
        if (i > 0) neighbours += x[i] * x[i - 1];
    }
    const auto n = static_cast<double>(x.size());
    EXPECT_NEAR(sum / n, 0, 0.01);
    EXPECT_NEAR(squares / n, 1, 0.015);
    EXPECT_NEAR(fourth / n, 3, 0.1);
    EXPECT_NEAR(neighbours / n, 0, 0.01);

    large.fill_normal(5, 3, 0.5);
    EXPECT_NEAR(large.at(7), 3 + 0.5 * normal_number(5, 7), 1e-6);
}

TEST(Blas, UsesTheProcessorsVectors) {
    if (std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "the environment names the kernels";
    const auto opened = open_blas();
    if (!opened.ok()) GTEST_SKIP() << opened.errors()[0].message;
    if (native_vector_bytes() == 16) GTEST_SKIP() << "every kernel has vectors of 16 bytes";
    for (const char* older : {"Katmai", "Prescott", "Core2", "Penryn", "Nehalem", "Opteron", "Barcelona", "Atom"})
        EXPECT_EQ((*opened)->name().find(older), std::string::npos) << (*opened)->name();
}

TEST(Blas, MultipliesInEveryOrientation) {
    const auto opened = open_blas();
    if (!opened.ok()) {
        EXPECT_EQ(opened.errors()[0].code, "no-blas");
        EXPECT_FALSE(opened.errors()[0].hint.empty());
        EXPECT_EQ(load_blas(), nullptr);
        GTEST_SKIP() << opened.errors()[0].message;
    }
    const Blas& blas = *opened.value();
    EXPECT_NE(blas.name().find("OpenBLAS"), std::string::npos);
    constexpr std::int64_t m = 5, n = 7, k = 11;
    const auto try_all = [&]<class T>(T) {
        for (const bool ta : {false, true}) {
            for (const bool tb : {false, true}) {
                std::vector<T> a(m * k), b(k * n), c(m * n, T(1));
                for (std::int64_t i = 0; i < m * k; ++i)
                    a[static_cast<std::size_t>(i)] = static_cast<T>(normal_number(1, static_cast<std::uint64_t>(i)));
                for (std::int64_t i = 0; i < k * n; ++i)
                    b[static_cast<std::size_t>(i)] = static_cast<T>(normal_number(2, static_cast<std::uint64_t>(i)));
                blas.gemm(ta, tb, m, n, k, T(2), a.data(), ta ? m : k, b.data(), tb ? k : n, T(3), c.data(), n);
                for (std::int64_t i = 0; i < m; ++i) {
                    for (std::int64_t j = 0; j < n; ++j) {
                        double sum = 0;
                        for (std::int64_t l = 0; l < k; ++l) {
                            sum += static_cast<double>(a[static_cast<std::size_t>(ta ? l * m + i : i * k + l)]) *
                                   static_cast<double>(b[static_cast<std::size_t>(tb ? j * k + l : l * n + j)]);
                        }
                        EXPECT_NEAR(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]), 2 * sum + 3,
                                    sizeof(T) == 4 ? 1e-4 : 1e-12);
                    }
                }
            }
        }
    };
    try_all(float());
    try_all(double());
    blas.set_threads(2);
    try_all(double());
    blas.set_threads(1);
}

}  // namespace
}  // namespace napkin::test_tensor
