// Emitted CPU kernels against the definition of their diagrams.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "numeric/cpu_kernel_case.hpp"
#include "property/random_diagram.hpp"

namespace napkin {
namespace {

std::uint64_t first_seed() {
    const char* given = std::getenv("NAPKIN_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 1;
}

/// Extents that fill vectors and leave remainders, most of them small.
Extents some_extents(const Diagram& diagram, std::uint64_t seed) {
    std::map<std::string, std::int64_t> sizes;
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (const Axis& a : diagram.axes) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::uint64_t bits = state >> 33;
        if (!a.size) sizes[a.name] = 1 + static_cast<std::int64_t>(bits % 4 == 0 ? bits / 4 % 37 : bits / 4 % 10);
    }
    const auto bound = bind_sizes(diagram, sizes);
    return bound ? *bound : random_extents(diagram, seed);
}

/// 40 random diagrams in one translation unit.
void check_batch(std::uint64_t batch, const RandomDiagramOptions& options) {
    constexpr std::uint64_t batch_size = 40;
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t k = 0; k < batch_size; ++k) {
        const std::uint64_t seed = first_seed() + batch * batch_size + k;
        const Diagram diagram = random_diagram(seed, options);
        cases.push_back(cpu_case::make_case(diagram, some_extents(diagram, seed), seed, fmt::format("k{}", seed)));
    }
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

class RandomKernels : public testing::TestWithParam<int> {};
TEST_P(RandomKernels, ComputeTheirDefinition) {
    const int batch = GetParam();
    RandomDiagramOptions options;
    if (batch % 3 == 1) options.types = {DType::f32, DType::f16, DType::bf16};
    if (batch % 3 == 2) options.types = {DType::f64, DType::f32};
    check_batch(static_cast<std::uint64_t>(batch), options);
}
INSTANTIATE_TEST_SUITE_P(Batches, RandomKernels, testing::Range(0, 6));

}  // namespace
}  // namespace napkin
