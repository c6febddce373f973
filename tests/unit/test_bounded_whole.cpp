// The intervals of integers hold. Operands move inside of theirs, and the operation is done on integers that wrap. The
// result is inside of the result's interval, at every size and where only a part of an interval wraps.
#include "check/bounded_whole.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace napkin::test_bounded_whole {
namespace {

constexpr Kind kinds[] = {Kind::i32, Kind::i64};

class Draw {
public:
    explicit Draw(std::uint64_t seed) : random_(seed) {}
    std::int64_t integer(Kind kind) {
        const auto few = static_cast<std::int64_t>(random_() % 9) - 4;
        switch (random_() % 5) {
            case 0: return wrap(kind, static_cast<std::int64_t>(random_()));
            case 1: return whole_of(kind, infinity) - std::abs(few);
            case 2: return whole_of(kind, -infinity) + std::abs(few);
            default: return few;
        }
    }
    BoundedWhole interval(Kind kind) {
        const std::int64_t value = integer(kind);
        if (random_() % 3 == 0) return BoundedWhole::exactly(value);
        const std::int64_t a = integer(kind), b = integer(kind);
        const bool near = random_() % 2 == 0;
        const auto reach = [&](std::int64_t other) {
            if (!near) return other;
            const std::int64_t moved = wrap(
                kind, static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + random_() % 5 - 2));
            return std::abs(static_cast<double>(moved) - static_cast<double>(value)) < 1e6 ? moved : value;
        };
        const std::int64_t x = reach(a), y = reach(b);
        return {value, std::min({value, x, y}), std::max({value, x, y})};
    }
    std::int64_t inside(const BoundedWhole& a) {
        const auto room = static_cast<std::uint64_t>(a.high) - static_cast<std::uint64_t>(a.low);
        switch (random_() % 4) {
            case 0: return a.low;
            case 1: return a.high;
            case 2: return a.value;
            default: break;
        }
        const std::uint64_t moved = room == std::numeric_limits<std::uint64_t>::max() ? random_() : random_() % (room + 1);
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.low) + moved);
    }
    std::uint64_t next() { return random_(); }

private:
    std::mt19937_64 random_;
};

void expect_inside(const BoundedWhole& bound, std::int64_t made, const std::string& what) {
    ASSERT_LE(bound.low, made) << what;
    ASSERT_GE(bound.high, made) << what;
    ASSERT_LE(bound.low, bound.value) << what;
    ASSERT_GE(bound.high, bound.value) << what;
}

TEST(BoundedWhole, OperationsStayInsideOfTheirIntervals) {
    constexpr BinaryOp ops[] = {BinaryOp::add, BinaryOp::sub,         BinaryOp::mul,       BinaryOp::floor_div,
                                BinaryOp::mod, BinaryOp::min,         BinaryOp::max,       BinaryOp::lt,
                                BinaryOp::le,  BinaryOp::gt,          BinaryOp::ge,        BinaryOp::eq,
                                BinaryOp::ne,  BinaryOp::logical_and, BinaryOp::logical_or};
    constexpr UnaryOp unary_ops[] = {UnaryOp::neg, UnaryOp::abs, UnaryOp::floor, UnaryOp::logical_not};
    Draw draw(1);
    for (int trial = 0; trial < 300000; ++trial) {
        const Kind kind = kinds[draw.next() % 2];
        const BoundedWhole a = draw.interval(kind), b = draw.interval(kind);
        const std::int64_t x = draw.inside(a), y = draw.inside(b);
        const std::string of = std::to_string(x) + " in [" + std::to_string(a.low) + ", " + std::to_string(a.high) +
                               "], " + std::to_string(y) + " in [" + std::to_string(b.low) + ", " +
                               std::to_string(b.high) + "]";
        const BinaryOp op = ops[draw.next() % std::size(ops)];
        expect_inside(apply_integer(op, kind, a, b), apply_integer(op, kind, x, y), std::string(name(op)) + " of " + of);
        const UnaryOp one = unary_ops[draw.next() % std::size(unary_ops)];
        expect_inside(apply_integer(one, kind, a), apply_integer(one, kind, x), std::string(name(one)) + " of " + of);
        const BoundedWhole n = BoundedWhole::exactly(static_cast<std::int64_t>(draw.next() % 5));
        expect_inside(apply_integer(BinaryOp::pow, kind, a, n), apply_integer(BinaryOp::pow, kind, x, n.value),
                      "power of " + of);
        expect_inside(wrapped(Kind::i32, a), wrap(Kind::i32, x), "i32 of " + of);
        if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(BoundedWhole, ExactOperandsGiveExactResultsAtEverySize) {
    Draw draw(2);
    for (int trial = 0; trial < 10000; ++trial) {
        const Kind kind = kinds[draw.next() % 2];
        const std::int64_t x = draw.integer(kind), y = draw.integer(kind);
        for (const BinaryOp op : {BinaryOp::add, BinaryOp::mul, BinaryOp::floor_div, BinaryOp::mod, BinaryOp::lt})
            ASSERT_EQ(apply_integer(op, kind, BoundedWhole::exactly(x), BoundedWhole::exactly(y)),
                      BoundedWhole::exactly(apply_integer(op, kind, x, y)));
    }
}

TEST(BoundedWhole, AnIntervalThatDoesNotWrapOrWrapsAsAWholeStaysNarrow) {
    const BoundedWhole near{100, 99, 101}, end{2147483647, 2147483646, 2147483647}, one = BoundedWhole::exactly(1),
                                                                                    three = BoundedWhole::exactly(3);
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i32, near, three), (BoundedWhole{103, 102, 104}));
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i32, end, three), (BoundedWhole{-2147483646, -2147483647, -2147483646}));
    EXPECT_EQ(apply_integer(BinaryOp::add, Kind::i32, end, one), any_whole(Kind::i32, -2147483648LL));
    EXPECT_EQ(apply_integer(BinaryOp::floor_div, Kind::i32, near, three), (BoundedWhole{33, 33, 33}));
    EXPECT_EQ(apply_integer(BinaryOp::mod, Kind::i32, near, BoundedWhole::exactly(50)), (BoundedWhole{0, 0, 49}));
    EXPECT_EQ(apply_integer(BinaryOp::lt, Kind::i32, near, BoundedWhole::exactly(102)), one);
}

TEST(BoundedWhole, ACastSaturatesOnce) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(truncated(DType::i32, {1e30, 1e20, 0}), BoundedWhole::exactly(2147483647));
    EXPECT_EQ(truncated(DType::i64, {-infinity, 0, 0}), BoundedWhole::exactly(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(truncated(DType::i32, {nan, 0, 0}), BoundedWhole::exactly(0));
    EXPECT_EQ(truncated(DType::i32, {2.5, 1, 0}), (BoundedWhole{2, 1, 3}));
    EXPECT_EQ(truncated(DType::i32, {5, 0, may_be_nan}), (BoundedWhole{5, 0, 5}));
    EXPECT_EQ(truncated(DType::i32, {5, 0, may_be_infinite}), (BoundedWhole{5, 5, 2147483647}));
    EXPECT_EQ(truncated(DType::i32, anything(5)), any_whole(Kind::i32, 5));
    EXPECT_TRUE(is_unbounded(distance_of(DType::i32, any_whole(Kind::i32, 5))));
    EXPECT_EQ(truncated(DType::i8, {300, 100, 0}), BoundedWhole::exactly(127));
    EXPECT_EQ(truncated(DType::u8, {-3, 1, 0}), BoundedWhole::exactly(0));
    EXPECT_EQ(wrapped(DType::i8, {300, 299, 301}), (BoundedWhole{44, 43, 45}));
    EXPECT_EQ(wrapped(DType::u8, {255, 255, 256}), any_whole(DType::u8, 255));
    EXPECT_EQ(wrapped(DType::boolean, {3, 1, 5}), BoundedWhole::exactly(1));
    EXPECT_EQ(wrapped(DType::boolean, {3, -1, 5}), (BoundedWhole{1, 0, 1}));
}

}  // namespace
}  // namespace napkin::test_bounded_whole
