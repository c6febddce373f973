// Kernels over integers: exact at both widths, wrapping as the definition does, beside real numbers in one program.
#include <gtest/gtest.h>
#include <napkin/napkin.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "diagram/evaluate.hpp"
#include "run/tensor.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// Integers of every size of the type, its ends among them; small ones are likely.
std::int64_t any_integer(DType type, std::mt19937_64& random) {
    const auto bits = static_cast<std::int64_t>(random());
    switch (random() % 5) {
        case 0: return wrap(type, bits);
        case 1: return wrap(type, facts(type).least + static_cast<std::int64_t>(random() % 3));
        case 2: return wrap(type, facts(type).most - static_cast<std::int64_t>(random() % 3));
        case 3: return wrap(type, 16777216 + static_cast<std::int64_t>(random() % 4));
        default: return wrap(type, static_cast<std::int64_t>(random() % 9) - 4);
    }
}

/// Compiles and runs the text, and compares every integer with the definition, bit for bit, and every real number
/// closely.
void expect_definition(const std::string& text, const CompileOptions& options = {}) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const Extents extents = bind_sizes(*diagram).value();
    const auto program = compile(text, options);
    ASSERT_TRUE(program) << program.error_text();
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        std::mt19937_64 random(seed);
        Values values = random_inputs(*diagram, extents, seed);
        std::vector<Tensor> memory;
        std::vector<ConstView> inputs;
        std::vector<View> outputs;
        const auto sizes_of = [&](ArrayId id) {
            std::vector<std::int64_t> sizes;
            for (const AxisId a : diagram->array(id).axes) sizes.push_back(extents[a]);
            return sizes;
        };
        for (const ArrayId id : diagram->inputs) {
            const DType type = diagram->array(id).type;
            Column& column = values[id];
            if (column.is_whole())
                for (std::int64_t& x : column.wholes()) x = any_integer(type, random);
            Tensor& tensor = memory.emplace_back(Tensor::make(type, sizes_of(id)).value());
            for (std::size_t i = 0; i < column.size(); ++i) tensor.set(static_cast<std::int64_t>(i), column.at(i));
            inputs.push_back({tensor.data(), static_cast<ElementType>(type), tensor.sizes(), {}});
        }
        for (const ArrayId id : diagram->outputs) {
            Tensor& tensor = memory.emplace_back(Tensor::make(diagram->array(id).type, sizes_of(id)).value());
            outputs.push_back({tensor.data(), static_cast<ElementType>(tensor.type()), tensor.sizes(), {}});
        }
        const auto errors = program->run(inputs, outputs);
        ASSERT_TRUE(errors.empty()) << errors[0].rendered;
        evaluate(*diagram, extents, values);
        for (std::size_t k = 0; k < diagram->outputs.size(); ++k) {
            const ArrayId id = diagram->outputs[k];
            const Column made = memory[diagram->inputs.size() + k].to_column();
            const Column& wanted = values[id];
            for (std::size_t i = 0; i < made.size(); ++i) {
                if (made.is_whole())
                    ASSERT_EQ(made.wholes()[i], wanted.wholes()[i])
                        << diagram->array(id).name << " at " << i << ", seed " << seed << "\n"
                        << text << program->source();
                else
                    ASSERT_NEAR(made[i], wanted[i], 1e-5 * std::max(1.0, std::abs(wanted[i])))
                        << diagram->array(id).name << " at " << i << ", seed " << seed << "\n"
                        << text;
            }
        }
    }
}

TEST(Integers, ArithmeticWrapsAtTheWidthOfItsType) {
    for (const char* type : {"i32", "i64", "i8", "u8", "i16", "bool"}) {
        const std::string t = type;
        expect_definition(
            "f(X[i, j]: " + t + ", Y[i, j]: " + t + ") -> A[i, j]: " + t + ", B[i, j]: " + t + ", C[i, j]: " + t +
            "\n    A[i, j] = X[i, j] * 3 + Y[i, j] - 7\n    B[i, j] = abs(-X[i, j]) * Y[i, j] + X[i, j]^2\n"
            "    C[i, j] = max(X[i, j] // Y[i, j], X[i, j] % Y[i, j])\nsizes i = 5, j = 37\n");
    }
}

TEST(Integers, MixedWidthsMeetInTheWiderOne) {
    expect_definition(
        "f(X[i]: i32, Y[i]: i64) -> A[i]: i64, B[i]: i32\n    A[i] = X[i] + Y[i]\n    B[i] = X[i] + Y[i]\nsizes i = "
        "37\n");
}

TEST(Integers, ReductionsAreExact) {
    for (const char* type : {"i32", "i64", "i8", "u8", "i16", "bool"}) {
        const std::string t = type;
        expect_definition("f(X[i, j]: " + t + ") -> S[i]: " + t + ", M[i]: " + t + ", N[i]: " + t + ", P[i]: " + t +
                          "\n    S[i] = sum(j) X[i, j]\n    M[i] = max(j) X[i, j]\n    N[i] = min(j) X[i, j]\n"
                          "    P[i] = prod(j) X[i, j]\nsizes i = 5, j = 67\n");
    }
}

TEST(Integers, NarrowOnesAndMasksMeetTheOthers) {
    expect_definition(
        "f(A[i]: i8, B[i]: u8, C[i]: i16, D[i]: i64, M[i]: bool) -> V[i]: i8, W[i]: u8, X[i]: i64, Y[i], Z[i]: bool\n"
        "    V[i] = A[i] * B[i] + C[i]\n    W[i] = C[i] - D[i]\n    X[i] = A[i] * C[i] + D[i]\n"
        "    Y[i] = where(M[i], A[i], B[i]) / 3\n    Z[i] = M[i] and A[i] < B[i] or not D[i]\nsizes i = 300\n");
    expect_definition(
        "f(X[i]) -> A[i]: i8, B[i]: u8, C[i]: bool\n    A[i] = i8(X[i] * 90) * 3\n"
        "    B[i] = u8(X[i] * 300)\n    C[i] = bool(floor(X[i]))\nsizes i = 300\n");
}

TEST(Integers, IdsAreComparedExactly) {
    expect_definition("f(X[i]: i32, Y[j]: i32) -> N[i]\n    N[i] = sum(j) X[i] == Y[j]\nsizes i = 40, j = 50\n");
    expect_definition("f(X[i]: i64) -> Y[i]\n    Y[i] = where(X[i] == 9007199254740993, 1, 0)\nsizes i = 40\n");
}

TEST(Integers, IntegersAndRealNumbersMeet) {
    expect_definition(
        "f(S[r, v], label[r]: i32) -> L[r]\n    L[r] = sum(v) where(v == label[r], S[r, v], 0)\nsizes r = 20, v = "
        "33\n");
    expect_definition(
        "f(X[i]: i32, Y[i]) -> A[i], B[i]: i32\n    A[i] = (X[i] * 2) * Y[i] * 1e-9\n"
        "    B[i] = Y[i] * 1000\nsizes i = 37\n");
    expect_definition("f(X[i]: i32) -> A\n    A = (sum(i) X[i]) * 1e-9\nsizes i = 100\n");
}

TEST(Integers, AnInlinedIntegerStaysOne) {
    expect_definition("f(Y[i]) -> B[i]\n    T[i]: i32 = Y[i] * 3\n    B[i] = T[i] * 0.5\nsizes i = 37\n");
}

TEST(Integers, CoordinatesAreExactPastTheIntegersOfAFloat) {
    expect_definition("f(X[i]: i32) -> A[i]: i32\n    A[i] = X[i] + i * 50000000\nsizes i = 100\n");
    expect_definition("f(X[i]) -> A[i]: i64\n    A[i] = (i + 16777217) * 3\nsizes i = 20\n");
}

TEST(Integers, ThePlaceOfAnExtremumIsTheFirst) {
    expect_definition(
        "f(S[q, x]) -> A[q]: i32, B[q]: i64\n    A[q] = argmax(x) S[q, x]\n    B[q] = argmin(x) -S[q, x]\n"
        "sizes q = 9, x = 70\n");
    expect_definition("f(S[q, x]: i32) -> A[q]: i32\n    A[q] = argmax(x) S[q, x]\nsizes q = 9, x = 70\n");
    expect_definition("f(S[q, x, y]) -> A[q]: i32\n    A[q] = argmax(x, y) S[q, x, y]\nsizes q = 5, x = 7, y = 11\n");
}

}  // namespace
}  // namespace napkin
