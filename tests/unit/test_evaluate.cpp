// The meaning of diagrams: small ones by hand, precision by precision.
#include "diagram/evaluate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "diagram/verifier.hpp"
#include "diagram_builder.hpp"

namespace napkin::test_evaluate {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

Values run(const Diagram& d, Values inputs, Precision precision = Precision::exact) {
    EXPECT_EQ(verify(d), std::vector<std::string>{});
    evaluate(d, bind_sizes(d).value(), inputs, precision);
    return inputs;
}

TEST(Evaluate, MmaProduct) {
    Builder b;
    const AxisId i = b.axis("i", 2), j = b.axis("j", 2), k = b.axis("k", 3);
    const ArrayId x = b.input("X", {i, k}), y = b.input("Y", {k, j});
    const ArrayId z = b.reduce("Z", {i, j}, ReduceOp::sum, {k}, b.self(x) * b.self(y));
    const Values v = run(b.d, {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, 1}, {}});
    EXPECT_EQ(v[z], (std::vector<double>{4, 5, 10, 11}));
}

TEST(Evaluate, EveryReductionOverOneAndTwoAxes) {
    for (const auto& [op, rows, all] : {std::tuple{ReduceOp::sum, std::vector<double>{3, 11}, 14.0},
                                        std::tuple{ReduceOp::prod, std::vector<double>{-4, 24}, -96.0},
                                        std::tuple{ReduceOp::max, std::vector<double>{4, 6}, 6.0},
                                        std::tuple{ReduceOp::min, std::vector<double>{-1, 1}, -1.0}}) {
        Builder b;
        const AxisId i = b.axis("i", 2), j = b.axis("j", 3);
        const ArrayId x = b.input("X", {i, j});
        const ArrayId r = b.reduce("R", {i}, op, {j}, b.self(x));
        const ArrayId s = b.reduce("S", {}, op, {i, j}, b.self(x));
        const std::vector<double> data = op == ReduceOp::sum    ? std::vector<double>{-1, 0, 4, 6, 4, 1}
                                         : op == ReduceOp::prod ? std::vector<double>{-1, 1, 4, 6, 4, 1}
                                                                : std::vector<double>{-1, 0, 4, 6, 4, 1};
        const Values v = run(b.d, {data, {}, {}});
        EXPECT_EQ(v[r], rows) << name(op);
        EXPECT_EQ(v[s], std::vector<double>{all}) << name(op);
    }
}

TEST(Evaluate, RowsLongerThanOneBlock) {
    Builder b;
    const AxisId i = b.axis("i", 3), j = b.axis("j", 1000);
    const ArrayId x = b.input("X", {i, j});
    const ArrayId m = b.map("D", {i, j}, b.self(x) * constant(2) + axis_index(j));
    const ArrayId s = b.reduce("S", {i}, ReduceOp::sum, {j}, b.self(m));
    std::vector<double> data(3000);
    for (std::size_t k = 0; k < data.size(); ++k) data[k] = static_cast<double>(k);
    const Values v = run(b.d, {data, {}, {}});
    EXPECT_EQ(v[m][2345], 2 * 2345 + 345);
    double sum = 0;
    for (int k = 1000; k < 2000; ++k) sum += 2 * k + (k - 1000);
    EXPECT_EQ(v[s][1], sum);
}

TEST(Evaluate, SelectDropsTheSideNotTaken) {
    Builder b;
    const AxisId q = b.axis("q", 3), x = b.axis("x", 3);
    const ArrayId s = b.input("S", {q, x});
    const Expr causal = binary(BinaryOp::le, axis_index(x), axis_index(q));
    const ArrayId m = b.map("M", {q, x}, select(causal, b.self(s), constant(-inf)));
    const ArrayId z = b.reduce("z", {q}, ReduceOp::sum, {x}, select(causal, b.self(s), constant(0)));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Values v = run(b.d, {{1, nan, nan, 2, 3, nan, 4, 5, 6}, {}, {}});
    EXPECT_EQ(v[m], (std::vector<double>{1, -inf, -inf, 2, 3, -inf, 4, 5, 6}));
    EXPECT_EQ(v[z], (std::vector<double>{1, 5, 15}));
}

TEST(Evaluate, NaNStaysInMaximaAndMinima) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t place = 0; place < 20; ++place) {
        Builder b;
        const AxisId i = b.axis("i", 20);
        const ArrayId x = b.input("X", {i});
        const ArrayId high = b.reduce("high", {}, ReduceOp::max, {i}, b.self(x));
        const ArrayId low = b.reduce("low", {}, ReduceOp::min, {i}, b.self(x));
        std::vector<double> data(20, 1.0);
        data[place] = nan;
        const Values v = run(b.d, {data, {}, {}});
        EXPECT_TRUE(std::isnan(v[high][0])) << place;
        EXPECT_TRUE(std::isnan(v[low][0])) << place;
    }
}

TEST(Evaluate, AffineReadsSizesAndIndices) {
    Builder b;
    const AxisId i = b.axis("i", 3), w = b.axis("w", 2), n = b.axis("n", 6);
    const ArrayId x = b.input("X", {n});
    Affine at = Affine::axis(i) * 2;
    at.add(w, 1);
    const ArrayId y = b.reduce("Y", {i}, ReduceOp::sum, {w}, read(x, {at}));
    const ArrayId z = b.map("Z", {i}, axis_index(i) * constant(10) + axis_size(n));
    const ArrayId reversed = b.map("R", {n}, read(x, {Affine{{{n, -1}}, 5}}));
    const Values v = run(b.d, {{1, 2, 3, 4, 5, 6}, {}, {}, {}});
    EXPECT_EQ(v[y], (std::vector<double>{3, 7, 11}));
    EXPECT_EQ(v[z], (std::vector<double>{6, 16, 26}));
    EXPECT_EQ(v[reversed], (std::vector<double>{6, 5, 4, 3, 2, 1}));
}

TEST(Evaluate, ScalarsAreArraysOfNoAxis) {
    Builder b;
    const AxisId i = b.axis("i", 2);
    const ArrayId t = b.input("t", {}), x = b.input("X", {i});
    const ArrayId u = b.map("u", {}, b.self(t) * constant(3));
    const ArrayId y = b.map("Y", {i}, b.self(x) / b.self(u));
    const Values v = run(b.d, {{2}, {6, 12}, {}, {}});
    EXPECT_EQ(v[y], (std::vector<double>{1, 2}));
}

TEST(Evaluate, StoredPrecisionRoundsEveryResultOnce) {
    Builder b;
    const AxisId i = b.axis("i", 4096);
    const ArrayId x = b.input("X", {i}, DType::f16);
    const ArrayId s = b.reduce("s", {}, ReduceOp::sum, {i}, b.self(x), DType::f16);
    const ArrayId third = b.map("t", {}, b.self(s) / constant(3), DType::bf16);
    const Values exact = run(b.d, {std::vector<double>(4096, 1.0), {}, {}});
    EXPECT_EQ(exact[s][0], 4096);
    EXPECT_EQ(exact[third][0], 4096.0 / 3);
    const Values stored = run(b.d, {std::vector<double>(4096, 1.0), {}, {}}, Precision::stored);
    EXPECT_EQ(stored[s][0], 4096);  // a sum in f16 itself would stop at 2048
    EXPECT_EQ(stored[third][0], round_to(DType::bf16, 4096.0 / 3));
}

TEST(Evaluate, StoredPrecisionComputesInFloatUnlessAnArrayIsDouble) {
    for (const DType type : {DType::f32, DType::f64}) {
        Builder b;
        const ArrayId x = b.input("x", {}, type);
        const ArrayId y = b.map("y", {}, (b.self(x) + constant(1)) - constant(1), type);
        const Values v = run(b.d, {{0x1p-30}, {}}, Precision::stored);
        EXPECT_EQ(v[y][0], type == DType::f32 ? 0 : 0x1p-30);
    }
}

TEST(Evaluate, CastsRoundInStoredPrecisionAndIntegersAlways) {
    Builder b;
    const ArrayId x = b.input("x", {});
    const ArrayId y = b.map("y", {}, cast(DType::bf16, b.self(x)));
    const ArrayId z = b.map("z", {}, cast(DType::i32, b.self(x)));
    const ArrayId w = b.map("w", {}, b.self(x), DType::i32);
    const double value = 2.7109375 + 0x1p-20;
    const Values exact = run(b.d, {{value}, {}, {}, {}});
    EXPECT_EQ(exact[y][0], value);
    EXPECT_EQ(exact[z][0], 2);
    EXPECT_EQ(exact[w][0], 2);
    const Values stored = run(b.d, {{value}, {}, {}, {}}, Precision::stored);
    EXPECT_EQ(stored[y][0], round_to(DType::bf16, value));
    EXPECT_EQ(stored[z][0], 2);
}

TEST(Evaluate, OnePointAgreesWithTheWhole) {
    Builder b;
    const AxisId q = b.axis("q", 5), k = b.axis("k", 300);
    const ArrayId x = b.input("X", {q, k}), y = b.input("Y", {k});
    const Expr body = select(binary(BinaryOp::lt, b.self(x), axis_index(q)), unary(UnaryOp::exp, b.self(x) - b.self(y)),
                             unary(UnaryOp::tanh, b.self(x)) / axis_size(k));
    const ArrayId z = b.map("Z", {q, k}, body);
    const Extents extents = bind_sizes(b.d).value();
    Values v = random_inputs(b.d, extents, 7);
    evaluate(b.d, extents, v);
    Kinds kinds = kinds_of(b.d);
    for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t j = 0; j < 300; ++j) {
            EXPECT_EQ(v[z][i * 300 + j], evaluate_at(body, kinds, b.d, extents, v, {i, j}).as_real());
        }
    }
}

TEST(Evaluate, RandomInputsAreNormalDeterministicAndRepresentable) {
    Builder b;
    const AxisId i = b.axis("i", 20001);
    b.input("X", {i});
    b.input("Y", {i}, DType::f16);
    b.input("K", {i}, DType::i32);
    const Extents extents = bind_sizes(b.d).value();
    const Values v = random_inputs(b.d, extents, 42);
    EXPECT_EQ(v, random_inputs(b.d, extents, 42));
    EXPECT_NE(v[0], random_inputs(b.d, extents, 43)[0]);
    EXPECT_NE(v[0], v[1]);
    for (const auto& data : {v[0], v[1]}) {
        double mean = 0, square = 0;
        for (double x : data) {
            mean += x / 20001;
            square += x * x / 20001;
        }
        EXPECT_NEAR(mean, 0, 0.03);
        EXPECT_NEAR(square, 1, 0.05);
    }
    for (double x : v[0]) EXPECT_EQ(x, round_to(DType::f32, x));
    for (double x : v[1]) EXPECT_EQ(x, round_to(DType::f16, x));
    for (double x : v[2]) EXPECT_TRUE(x == std::floor(x) && std::fabs(x) <= 4);
}

TEST(Evaluate, EightMillionPointsTakeWellUnderASecond) {
    Builder b;
    const AxisId h = b.axis("h", 8), q = b.axis("q", 128), x = b.axis("x", 128), k = b.axis("k", 64);
    const ArrayId a = b.input("Q", {h, q, k}), c = b.input("K", {h, x, k});
    b.reduce("S", {h, q, x}, ReduceOp::sum, {k}, b.self(a) * b.self(c));
    const Extents extents = bind_sizes(b.d).value();
    Values v = random_inputs(b.d, extents, 1);
    const auto start = std::chrono::steady_clock::now();
    evaluate(b.d, extents, v);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    RecordProperty("seconds", std::to_string(took.count()));
    EXPECT_LT(took.count(), 2.0);  // far above what it takes, for machines under load
}

}  // namespace
}  // namespace napkin::test_evaluate
