// Floating-point numbers of 8 bits on a GPU: every value, and f32 between, at and beside the middles of two. Hopper's
// instructions and the code for GPUs without them make what round_to makes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "machine/machine.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "support/dtype.hpp"

namespace napkin::test_narrow_floats {
namespace {

constexpr int capability_8_0 = 800, capability_9_0 = 900;

/// All finite values of a type of 8 bits, not negative, in order.
std::vector<double> values_of(DType type) {
    std::vector<double> out{0};
    for (float x = 0x1p-20f; x < 0x1p17f; x = x + x / 64)
        if (const double y = round_to(type, x); std::isfinite(y) && y > out.back()) out.push_back(y);
    return out;
}

/// Numbers of f32 around the values of the type and around the middles of two, of both signs, and special ones.
std::vector<double> inputs_of(DType type) {
    std::vector<double> out{std::nan(""), std::numeric_limits<double>::infinity(), 1e30, std::numeric_limits<float>::max()};
    std::vector<double> values = values_of(type);
    values.push_back(2 * values.back() - values[values.size() - 2]);  // the first one that is too large
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
        for (const double x : {values[i], (values[i] + values[i + 1]) / 2})
            for (const float toward : {-1e9F, 1e9F})
                out.push_back(x), out.push_back(std::nextafter(static_cast<float>(x), toward));
    const std::size_t n = out.size();
    for (std::size_t i = 0; i < n; ++i) out.push_back(-out[i]);
    // What is below the normal numbers of f32 is 0 on a GPU.
    for (double& x : out)
        if (std::abs(x) < std::numeric_limits<float>::min()) x = 0;
    return out;
}

/// `text` with its size i on a GPU's emulation.
cpu_case::Planned planned(const std::string& text, std::size_t size, const std::string& prefix) {
    return cpu_case::planned_on_hopper(text + "sizes i = " + std::to_string(size) + "\n", "", prefix);
}

std::vector<Tensor> made(const cpu_case::Planned& p, const std::vector<double>& inputs, int architecture) {
    Values given = cpu_case::reference_of(p).given;
    const auto x = *p.diagram.find_array("X");
    for (std::size_t i = 0; i < inputs.size(); ++i) given[x].set(i, Number::real(inputs[i]));
    const cpu_case::Reference reference{given, {}};
    return cpu_case::outputs_of(p, reference, *cpu_case::compiled_for_cpu(p.source, architecture), {}).value();
}

bool is_same(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(NarrowFloats, AreRoundedOnceAndReadAsTheyAre) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
        const std::vector<double> inputs = inputs_of(type);
        ASSERT_GT(inputs.size(), 1000U);
        const std::string t(name(type));
        const auto written = planned(
            "f(X[i]) -> A[i]: " + t + ", B[i]\n    A[i] = X[i]\n    B[i] = " + t + "(X[i]) * 2\n", inputs.size(), "w");
        const auto read = planned("f(X[i]: " + t + ") -> A[i]\n    A[i] = X[i]\n", inputs.size(), "r");
        for (const int architecture : {capability_8_0, capability_9_0}) {
            const std::vector<Tensor> outputs = made(written, inputs, architecture),
                                      numbers = made(read, inputs, architecture);
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                const double rounded = round_to(type, inputs[i]);
                EXPECT_TRUE(is_same(rounded, outputs[0].at(at))) << t << " of " << inputs[i] << " on " << architecture;
                EXPECT_TRUE(is_same(2 * rounded, outputs[1].at(at))) << "twice " << t << " of " << inputs[i];
                EXPECT_TRUE(is_same(rounded, numbers[0].at(at))) << t << " " << rounded << " on " << architecture;
            }
        }
    }
}

}  // namespace
}  // namespace napkin::test_narrow_floats
