// The activations of the library keep their digits where they are small, until the result underflows. Compiled kernels
// are compared with long double, over all numbers of 16 bits, and over all exponents of f32 and f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <napkin/napkin.hpp>
#include <numbers>
#include <random>

#include "run/tensor.hpp"

namespace napkin::test_activations {
namespace {

using Wide = long double;

Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide log_of_one_and_exp(Wide x) { return std::log1p(std::exp(-std::fabs(x))); }
Wide elu(Wide x) { return x > 0 ? x : std::expm1(x); }
Wide argument_of_gelu_tanh(Wide x) { return 1.5957691216057308L * (x + 0.044715L * x * x * x); }

struct Activation {
    const char* name;
    std::function<Wide(Wide)> exact;
    /// The argument of its exponential is rounded, which multiplies the relative error of the result.
    std::function<Wide(Wide)> exponent = [](Wide) { return 0.0L; };
    /// A factor may underflow before the result does: by so much the result is larger than that factor.
    std::function<Wide(Wide)> after_underflow = [](Wide) { return 1.0L; };
};

const std::vector<Activation>& activations() {
    static const std::vector<Activation> all = {
        {"sigmoid", sigmoid},
        {"silu", [](Wide x) { return x * sigmoid(x); }},
        {"log_sigmoid", [](Wide x) { return std::min(x, 0.0L) - log_of_one_and_exp(x); }},
        {"softplus", [](Wide x) { return std::max(x, 0.0L) + log_of_one_and_exp(x); }},
        {"mish", [](Wide x) { return x * std::tanh(std::max(x, 0.0L) + log_of_one_and_exp(x)); }},
        {"elu", elu},
        {"selu", [](Wide x) { return 1.0507009873554805L * (x > 0 ? x : 1.6732632423543772L * std::expm1(x)); }},
        {"celu", elu},
        {"quick_gelu", [](Wide x) { return x * sigmoid(1.702L * x); }, [](Wide x) { return 1.702L * x; }},
        {"gelu", [](Wide x) { return x / 2 * std::erfc(-x * std::numbers::sqrt2_v<Wide> / 2); },
         [](Wide x) { return x * x / 2; }, [](Wide x) { return 1 + std::fabs(x) / 2; }},
        {"gelu_tanh", [](Wide x) { return x * sigmoid(argument_of_gelu_tanh(x)); }, argument_of_gelu_tanh},
    };
    return all;
}

/// All finite numbers of 16 bits, every 9973rd of 32 bits and random ones of 64, and more where exponentials are in
/// range.
std::vector<double> arguments(DType type) {
    std::vector<double> x;
    const auto add = [&](const void* bits) {
        if (const double value = decode(type, static_cast<const std::uint8_t*>(bits)); std::isfinite(value))
            x.push_back(value);
    };
    if (bytes(type) == 2)
        for (std::uint32_t b = 0; b < 1U << 16; ++b) {
            const auto bits = static_cast<std::uint16_t>(b);
            add(&bits);
        }
    if (bytes(type) == 4)
        for (std::uint64_t b = 0; b < 1ULL << 32; b += 9973) {
            const auto bits = static_cast<std::uint32_t>(b);
            add(&bits);
        }
    std::mt19937_64 random(3);
    std::uniform_real_distribution<float> tails(-120, 120);
    for (int i = 0; bytes(type) == 4 && i < 40000; ++i) x.push_back(tails(random));
    std::uniform_real_distribution<double> ordinary(-760, 760);
    while (bytes(type) == 8 && x.size() < 40000) {
        const std::uint64_t bits = random();
        add(&bits);
        x.push_back(ordinary(random));
        x.push_back(ordinary(random) / 40);
    }
    return x;
}

/// The distance of neighbours of the type at the value.
Wide last_place(DType type, Wide value) {
    const FormatRange range = format_range(type);
    return std::max<Wide>(std::fabs(value), range.smallest_normal) * range.epsilon;
}

void check(DType type, ElementType element) {
    const std::vector<double> x = arguments(type);
    std::string text = "f(X[i]: " + std::string(name(type)) + ") -> ", equations;
    for (const Activation& a : activations()) {
        text += std::string(text.ends_with("-> ") ? "" : ", ") + "of_" + a.name + "[i]: " + std::string(name(type));
        equations += std::string("    of_") + a.name + "[i] = " + a.name + "(X[i])\n";
    }
    const auto program = compile(text + "\n" + equations + "sizes i = " + std::to_string(x.size()) + "\n");
    ASSERT_TRUE(program) << program.error_text();

    const auto width = static_cast<std::size_t>(bytes(type));
    const auto extent = static_cast<std::int64_t>(x.size());
    std::vector<std::uint8_t> in(x.size() * width);
    for (std::size_t i = 0; i < x.size(); ++i) encode(type, x[i], &in[i * width]);
    std::vector<std::vector<std::uint8_t>> out(activations().size(), std::vector<std::uint8_t>(x.size() * width));
    std::vector<View> views;
    for (auto& column : out) views.push_back({column.data(), element, {extent}, {}});
    const auto errors = program->run(std::vector<ConstView>{{in.data(), element, {extent}, {}}}, views);
    ASSERT_TRUE(errors.empty()) << errors.front().rendered;

    const DType working = type == DType::f64 ? DType::f64 : DType::f32;
    for (std::size_t k = 0; k < out.size(); ++k) {
        const Activation& a = activations()[k];
        for (std::size_t i = 0; i < x.size(); ++i) {
            const Wide exact = a.exact(x[i]);
            const double got = decode(type, &out[k][i * width]);
            // Kernels flush what is below the normal range to 0, an expm1 by halves.
            const Wide flushed = 4 * format_range(working).smallest_normal * a.after_underflow(x[i]);
            const Wide error = (8 + 2 * std::fabs(a.exponent(x[i]))) * last_place(working, exact) +
                               (type == working ? 0 : last_place(type, exact)) + flushed;
            const bool overflows = std::isinf(got) && std::fabs(exact) > format_range(type).largest * (1 - 1e-6);
            ASSERT_TRUE(std::fabs(got - exact) <= error || overflows)
                << a.name << "(" << x[i] << ") of " << name(type) << " is " << got << ", not "
                << static_cast<double>(exact);
        }
    }
}

TEST(Activations, KeepTheirDigitsInF16) { check(DType::f16, ElementType::f16); }
TEST(Activations, KeepTheirDigitsInBf16) { check(DType::bf16, ElementType::bf16); }
TEST(Activations, KeepTheirDigitsInF32) { check(DType::f32, ElementType::f32); }
TEST(Activations, KeepTheirDigitsInF64) { check(DType::f64, ElementType::f64); }

}  // namespace
}  // namespace napkin::test_activations
