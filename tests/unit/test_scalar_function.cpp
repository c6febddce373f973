// Every row of the table of functions against the function's values.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "algebra/number.hpp"
#include "algebra/scalar_function.hpp"

namespace napkin::test_scalar_function {
namespace {

/// Finite numbers of all sizes at which no function leaves the range of doubles by being far.
std::vector<double> arguments() {
    std::vector<double> x = {0, 0.5, 1, 1.5, 2, 2.5, 3};
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    for (int i = 0; i < 2000; ++i) x.push_back(normal(random) * std::pow(10, i % 6 - 4));
    for (std::size_t i = 0, n = x.size(); i < n; ++i) x.push_back(-x[i]);
    return x;
}

TEST(ScalarFunction, NamesDiffer) {
    std::set<std::string_view> names;
    for (const ScalarFunction& f : scalar_functions()) {
        EXPECT_TRUE(names.insert(f.name).second) << f.name;
        EXPECT_EQ(&scalar_function(f.op), &f);
    }
}

TEST(ScalarFunction, ImagesHoldTheirValues) {
    for (const ScalarFunction& f : scalar_functions())
        for (const double x : arguments()) {
            if (std::abs(x) > 25) continue;  // what vanishes there is not 0
            const ValueClass image = x < 0   ? f.is.image.of_negative
                                     : x > 0 ? f.is.image.of_positive
                                             : f.is.image.of_zero;
            const ValueClass is = value_class(f.value(x));
            EXPECT_EQ(image | is, image) << f.name << "(" << x << ") = " << f.value(x);
        }
}

TEST(ScalarFunction, OrdersHold) {
    std::vector<double> x = arguments();
    std::sort(x.begin(), x.end());
    for (const ScalarFunction& f : scalar_functions()) {
        if (!f.is.order) continue;
        double before = std::numeric_limits<double>::quiet_NaN();
        for (const double at : x) {
            if (f.is.order->domain == Order::Domain::not_negative && std::signbit(at)) continue;
            const double value = f.value(at);
            EXPECT_FALSE(f.is.order->increasing ? value < before : value > before) << f.name << "(" << at << ")";
            before = value;
        }
    }
}

TEST(ScalarFunction, InversesTakeBack) {
    for (const ScalarFunction& f : scalar_functions()) {
        if (!f.is.inverse) continue;
        EXPECT_EQ(scalar_function(*f.is.inverse).is.inverse, f.op) << f.name;
        for (const double x : arguments()) {
            const double inner = apply(*f.is.inverse, x);
            if (!std::isfinite(inner) || std::abs(x) > 10) continue;
            EXPECT_NEAR(f.value(inner), x, 1e-9 * (1 + std::abs(x))) << f.name;
        }
    }
}

TEST(ScalarFunction, IntegersHaveTheValuesOfRealNumbers) {
    for (const ScalarFunction& f : scalar_functions()) {
        if (f.is.of_integer == OfInteger::real) {
            EXPECT_EQ(kind_of(f.op, Kind::i32), Kind::real) << f.name;
            continue;
        }
        for (std::int64_t a = -5; a <= 5; ++a)
            EXPECT_EQ(static_cast<double>(apply_integer(f.op, Kind::i64, a)), f.value(static_cast<double>(a))) << f.name;
    }
}

TEST(ScalarFunction, RowsAreTheValues) {
    const std::vector<double> x = arguments();
    std::vector<float> narrow(x.begin(), x.end()), floats(x.size());
    std::vector<double> doubles(x.size());
    for (const ScalarFunction& f : scalar_functions()) {
        f.fill(doubles.data(), x.data(), static_cast<std::int64_t>(x.size()));
        f.fill(floats.data(), narrow.data(), static_cast<std::int64_t>(x.size()));
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double value = f.value(x[i]), of_narrow = f.value(narrow[i]);
            EXPECT_TRUE(doubles[i] == value || std::isnan(value)) << f.name << "(" << x[i] << ")";
            if (!std::isfinite(of_narrow) || std::abs(of_narrow) > 1e38 || std::abs(of_narrow) < 1e-37) continue;
            EXPECT_NEAR(floats[i], of_narrow, 1e-6 * std::abs(of_narrow)) << f.name << "(" << x[i] << ")";
        }
    }
}

}  // namespace
}  // namespace napkin::test_scalar_function
