// Integers are exact and wrap as NumPy's do, whatever evaluates them.
#include "algebra/number.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "diagram/evaluate.hpp"
#include "diagram_builder.hpp"

namespace napkin::test_number {
namespace {

constexpr std::int64_t least32 = -2147483648LL, largest32 = 2147483647LL;
constexpr std::int64_t least64 = std::numeric_limits<std::int64_t>::min(),
                       largest64 = std::numeric_limits<std::int64_t>::max();

TEST(Number, WrapsAtTheWidthOfItsKind) {
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i32, largest32, 1), least32);
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i64, largest32, 1), 2147483648LL);
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i64, largest64, 1), least64);
    EXPECT_EQ(apply_integer(BinaryOp::mul, Kind::i32, 65536, 65536), 0);
    EXPECT_EQ(apply_integer(BinaryOp::mul, Kind::i32, 46341, 46341), 46341LL * 46341 - (1LL << 32));
    EXPECT_EQ(apply_integer(UnaryOp::neg, Kind::i32, least32), least32);
    EXPECT_EQ(apply_integer(UnaryOp::abs, Kind::i64, least64), least64);
    EXPECT_EQ(apply_integer(BinaryOp::pow, Kind::i32, 3, 21), wrap(Kind::i32, 10460353203LL));
}

TEST(Number, QuotientsAndRemaindersRoundTowardMinusInfinity) {
    const std::int64_t cases[][4] = {{7, 2, 3, 1},    {-7, 2, -4, 1}, {7, -2, -4, -1},
                                     {-7, -2, 3, -1}, {6, 3, 2, 0},   {-6, 3, -2, 0},
                                     {5, 0, 0, 0},    {0, 5, 0, 0},   {least64, -1, least64, 0}};
    for (const auto& [a, b, quotient, remainder] : cases) {
        EXPECT_EQ(apply_integer(BinaryOp::floor_div, Kind::i64, a, b), quotient) << a << " // " << b;
        EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, a, b), remainder) << a << " % " << b;
    }
}

TEST(Number, RemaindersByTheLeastIntegerAreExact) {
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, 5, least64), least64 + 5);
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, largest64, least64), -1);
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, -1, least64), -1);
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, least64, least64), 0);
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i64, least64, largest64), largest64 - 1);
    EXPECT_EQ(apply_integer(BinaryOp::floor_div, Kind::i64, largest64, least64), -1);
}

TEST(Number, RealNumbersBecomeIntegersTowardZeroAndSaturate) {
    EXPECT_EQ(whole_of(Kind::i32, -2.7), -2);
    EXPECT_EQ(whole_of(Kind::i32, 3e9), largest32);
    EXPECT_EQ(whole_of(Kind::i32, -3e9), least32);
    EXPECT_EQ(whole_of(Kind::i64, 1e30), largest64);
    EXPECT_EQ(whole_of(Kind::i64, std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(Number, NarrowIntegersWrapAndSaturateAtTheirOwnRange) {
    EXPECT_EQ(wrap(DType::i8, 128), -128);
    EXPECT_EQ(wrap(DType::u8, -1), 255);
    EXPECT_EQ(wrap(DType::i16, 98304 + 5), -32768 + 5);
    EXPECT_EQ(wrap(DType::i32, 4294967296 + 7), 7);
    EXPECT_EQ(wrap(DType::i64, least64), least64);
    EXPECT_EQ(wrap(DType::boolean, 256), 1);
    EXPECT_EQ(whole_of(DType::i8, -200.5), -128);
    EXPECT_EQ(whole_of(DType::u8, 300), 255);
    EXPECT_EQ(whole_of(DType::u8, -0.5), 0);
    EXPECT_EQ(whole_of(DType::i16, -2.9), -2);
    EXPECT_EQ(whole_of(DType::i8, std::numeric_limits<double>::quiet_NaN()), 0);
    EXPECT_EQ(whole_of(DType::boolean, std::numeric_limits<double>::quiet_NaN()), 1);
    EXPECT_EQ(whole_of(DType::boolean, -0.0), 0);
    EXPECT_EQ(whole_of(DType::i64, 1e30), largest64);
    // A real number is converted once, an integer wraps.
    EXPECT_EQ(Number::real(1000).to(DType::i8).as_whole(Kind::i64), 127);
    EXPECT_EQ(Number::whole(Kind::i32, 1000).to(DType::i8).as_whole(Kind::i64), -24);
    EXPECT_EQ(Number::whole(Kind::i32, 1000).to(DType::i8).kind(), Kind::i32) << "arithmetic is done in i32";
    for (const DType type : all_dtypes)
        if (!is_float(type)) {
            EXPECT_TRUE(is_in_range(type, facts(type).least) && is_in_range(type, facts(type).most)) << name(type);
            EXPECT_EQ(wrap(type, facts(type).least), facts(type).least) << name(type);
            EXPECT_EQ(wrap(type, facts(type).most), facts(type).most) << name(type);
        }
}

TEST(Number, AConstantIsExactPastTheIntegersOfADouble) {
    const Expr large = integer_constant(9007199254740993);  // 2^53 + 1
    EXPECT_EQ(whole_of(*as<Constant>(large)), 9007199254740993);
    EXPECT_FALSE(equal(large, integer_constant(9007199254740992)));
    EXPECT_EQ(whole_of(*as<Constant>(integer_constant(largest64))), largest64);
    EXPECT_EQ(whole_of(*as<Constant>(integer_constant(least64))), least64);
    EXPECT_FALSE(whole_of(*as<Constant>(constant(0x1p63))));
    EXPECT_FALSE(whole_of(*as<Constant>(constant(-0.0))));
    EXPECT_EQ(to_string(large, {}), "9007199254740993");
    const Expr sum = simplify(binary(BinaryOp::add, large, constant(1)));
    EXPECT_EQ(whole_of(*as<Constant>(sum)), 9007199254740994);
}

TEST(Number, EvaluationIsExactInBothWidths) {
    Builder b;
    const AxisId i = b.axis("i", 3);
    const ArrayId x = b.input("X", {i}, DType::i32), y = b.input("Y", {i}, DType::i64);
    const ArrayId next = b.map("A", {i}, binary(BinaryOp::add, b.self(x), constant(1)));
    b.d.arrays[next].type = DType::i32;
    const ArrayId wide = b.map("B", {i}, binary(BinaryOp::add, b.self(x), b.self(y)));
    b.d.arrays[wide].type = DType::i64;
    const ArrayId same = b.map("C", {i}, binary(BinaryOp::eq, b.self(y), integer_constant(9007199254740993)));
    const ArrayId total = b.reduce("D", {}, ReduceOp::sum, {i}, b.self(y));
    b.d.arrays[total].type = DType::i64;
    const ArrayId least = b.reduce("E", {}, ReduceOp::min, {i}, b.self(x));
    b.d.arrays[least].type = DType::i32;
    Values values(b.d.arrays.size());
    values[x] = {16777217, 2147483647, -5};
    values[y] = std::vector<std::int64_t>{9007199254740992, 9007199254740993, 1};
    for (const Precision precision : {Precision::exact, Precision::stored}) {
        evaluate(b.d, bind_sizes(b.d).value(), values, precision);
        const auto cells = [&](ArrayId id) { return values[id].wholes(); };
        using Whole = std::vector<std::int64_t>;
        EXPECT_EQ(cells(next), (Whole{16777218, least32, -4}));
        EXPECT_EQ(cells(wide), (Whole{9007199271518209, 9007201402224640, -4}));
        EXPECT_EQ(values[same], (Column{0, 1, 0}));
        EXPECT_EQ(cells(total), (Whole{18014398509481986}));
        EXPECT_EQ(cells(least), (Whole{-5}));
    }
}

}  // namespace
}  // namespace napkin::test_number
