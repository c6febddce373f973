// A Gemm as the library of GPUs is asked for it: by columns, in batches and calls.
#include "run/gpu/multiply.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "diagram/evaluate.hpp"
#include "run/gpu/driver.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_multiply {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

struct Product {
    Diagram diagram;
    Extents extents;
    Gemm gemm;
};

Product product(const std::string& text) {
    Diagram diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text})).value();
    Extents extents = bind_sizes(diagram).value();
    auto gemm = as_gemm(diagram, diagram.equations.back(), extents);
    EXPECT_TRUE(gemm) << text;
    return {std::move(diagram), std::move(extents), gemm.value_or(Gemm{})};
}

/// The value of op(matrix) in a row and a column, as the library's documentation has it.
double element(const gpu::ColumnMatrix& matrix, const std::vector<double>& values, std::int64_t begin, std::int64_t row,
               std::int64_t column) {
    if (matrix.transposed) std::swap(row, column);
    EXPECT_LT(row, matrix.rows);
    EXPECT_LT(column, matrix.columns);
    EXPECT_GE(matrix.leading, matrix.rows);
    return values.at(static_cast<std::size_t>(begin + row + column * matrix.leading));
}

std::vector<double> numbers(const Values& values, ArrayId array) {
    const Column& column = values[array];
    return {column.begin(), column.end()};
}

/// What the library does, in plain loops, to a target of so many values.
std::vector<double> multiplied(const gpu::ColumnMultiply& m, const Values& values, std::size_t target_values) {
    // What a target held before counts for nothing.
    std::vector<double> target(target_values, 1000);
    const std::vector<double> left = numbers(values, m.left.array), right = numbers(values, m.right.array);
    const std::int64_t inner = m.left.transposed ? m.left.rows : m.left.columns;
    EXPECT_EQ(inner, m.right.transposed ? m.right.columns : m.right.rows);
    for (const gpu::MultiplyCall& call : m.calls)
        for (std::int64_t b = 0; b < m.batch; ++b)
            for (std::int64_t column = 0; column < m.target.columns; ++column)
                for (std::int64_t row = 0; row < m.target.rows; ++row) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < inner; ++i)
                        sum += element(m.left, left, call.left + b * m.left.batch_stride, row, i) *
                               element(m.right, right, call.right + b * m.right.batch_stride, i, column);
                    double& to = target.at(static_cast<std::size_t>(call.target + b * m.target.batch_stride + row +
                                                                    column * m.target.leading));
                    to = m.alpha * sum + (call.adds ? to : 0);
                }
    return target;
}

TEST(ColumnMultiply, IsTheProductOfItsDefinition) {
    for (const char* text : {
             "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]",
             "f(A[i, k], B[j, k]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[j, k]",
             "f(A[k, i], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[k, i] * B[k, j]",
             "f(A[k, i], B[j, k]) -> C[i, j]\n    C[i, j] = sum(k) 0.5 * A[k, i] * B[j, k]",
             "f(A[i, k], B[k, j]) -> C[j, i]\n    C[j, i] = sum(k) A[i, k] * B[k, j]",
             "f(A[b, i, k], B[b, j, k]) -> C[b, i, j]\n    C[b, i, j] = sum(k) A[b, i, k] * B[b, j, k]",
             "f(A[b, c, i, k], B[b, j, k]) -> C[c, b, i, j]\n    C[c, b, i, j] = sum(k) A[b, c, i, k] * B[b, j, k]",
             "f(A[i, b, k], B[j, b, k]) -> C[i, b, j]\n    C[i, b, j] = sum(k) A[i, b, k] * B[j, b, k]",
             "f(A[i, k, l], B[l, k, j]) -> C[i, j]\n    C[i, j] = sum(k, l) A[i, k, l] * B[l, k, j]",
         }) {
        // Letters of the axes that the text has: no other word in it has them.
        std::string sized = std::string(text) + "\nsizes i = 4, j = 5, k = 6";
        for (const auto& [axis, size] : {std::pair('b', 3), {'c', 2}, {'l', 2}})
            if (std::string_view(text).find(axis) != std::string_view::npos)
                sized += fmt::format(", {} = {}", axis, size);
        const Product p = product(sized + "\n");
        const gpu::ColumnMultiply m = gpu::in_columns(p.gemm);
        Values values = random_inputs(p.diagram, p.extents, 7);
        evaluate(p.diagram, p.extents, values);
        const std::vector<double> exact = numbers(values, p.gemm.c), made = multiplied(m, values, exact.size());
        for (std::size_t n = 0; n < made.size(); ++n) EXPECT_NEAR(made[n], exact[n], 1e-12) << text;
    }
}

TEST(ColumnMultiply, HasOneCallWhereOneLoopIsLeft) {
    const Product p = product(
        "f(A[h, i, k], B[h, j, k]) -> C[h, i, j]\n    C[h, i, j] = sum(k) A[h, i, k] * B[h, j, k]\n"
        "sizes h = 16, i = 4, j = 5, k = 8\n");
    const gpu::ColumnMultiply m = gpu::in_columns(p.gemm);
    EXPECT_EQ(m.batch, 16);
    EXPECT_THAT(m.calls, SizeIs(1));
    EXPECT_EQ(m.target.batch_stride, 20);
    // 5 · 8 · 2 bytes from one right operand to the next.
    EXPECT_EQ(gpu::alignment_of(m, m.left, &gpu::MultiplyCall::left, 2), 16);
    EXPECT_EQ(gpu::alignment_of(m, m.target, &gpu::MultiplyCall::target, 2), 8);
}

TEST(LibraryMultiply, IsRefusedAndNeverFatal) {
    const Product p = product(
        "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = 64, j = 64, k = 64\n");
    const auto library = gpu::multiply_library();
    if (!library) {
        EXPECT_EQ(library.errors().front().code, "no-cublaslt");
        GTEST_SKIP() << library.errors().front().message;
    }
    EXPECT_THAT(*library, StartsWith("cuBLASLt 1"));
    const auto integers = gpu::LibraryMultiply::prepare(p.gemm, DType::i32, DType::i32, DType::i32);
    ASSERT_FALSE(integers.ok());
    EXPECT_EQ(integers.errors().front().message, "cuBLASLt takes no product of i32 and i32 in i32");
    if (gpu::device()) return;
    const auto floats = gpu::LibraryMultiply::prepare(p.gemm, DType::f32, DType::f32, DType::f32);
    ASSERT_FALSE(floats.ok());
    EXPECT_THAT(floats.errors().front().message, HasSubstr("cuBLASLt does not start"));
}

}  // namespace
}  // namespace napkin::test_multiply
