// Emitted CUDA: compiled where NVRTC is found, and run against the definition of its diagrams where there is a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <random>

#include "check/sample.hpp"
#include "check/small_sizes.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "run/gpu/kernel.hpp"
#include "support/examples.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t batch_size = 40;
/// Batches that are compiled where no GPU runs them.
constexpr int compiled_batches = 5;

std::uint64_t first_gpu_seed() {
    const char* given = std::getenv("NAPKIN_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 1;
}

/// Runs the cases where there is a GPU; else they must compile for Hopper, with what their assembler may not say left unsaid.
void check(const std::vector<cpu_case::Case>& cases) {
    if (gpu::device()) {
        const auto failures = cpu_case::failures_on_gpu(cases);
        for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
        return;
    }
    const auto cubin = gpu::compile_cuda(cuda::complete(cpu_case::in_one_source(cases)), "sm_90a");
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    EXPECT_TRUE(cubin->remarks.empty()) << cubin->remarks.front();
    std::size_t kernels = 0;
    for (const cpu_case::Case& c : cases) kernels += c.gpu_source.entries.size();
    EXPECT_EQ(cubin->kernels.size(), kernels);
}

class GpuKernels : public testing::TestWithParam<int> {};
TEST_P(GpuKernels, ComputeTheirDefinition) {
    const int batch = GetParam();
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    if (!gpu::device() && batch >= compiled_batches) GTEST_SKIP() << "there is no GPU";
    RandomDiagramOptions options;
    if (batch % 3 == 1) options.types = {DType::f32, DType::f16, DType::bf16};
    if (batch % 3 == 2) options.types = {DType::f64, DType::f32};
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t k = 0; k < batch_size; ++k) {
        const std::uint64_t seed = first_gpu_seed() + static_cast<std::uint64_t>(batch) * batch_size + k;
        const Diagram diagram = random_diagram(seed, options);
        cases.push_back(cpu_case::make_case(diagram, cpu_case::some_extents(diagram, seed), seed,
                                            fmt::format("k{}", seed), {}, cpu_case::warps()));
    }
    check(cases);
}
INSTANTIATE_TEST_SUITE_P(Batches, GpuKernels, testing::Range(0, 25));

TEST(GpuExamples, AreNeverBadAtRaggedSizes) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    constexpr double most_points = 60000;
    std::vector<cpu_case::Case> cases;
    std::uint64_t seed = first_gpu_seed();
    for (const ExampleDiagram& example : example_diagrams()) {
        std::mt19937_64 random(++seed);
        const auto sizes = small_sizes(example.diagram, random, most_points);
        if (!sizes) continue;
        cases.push_back(cpu_case::make_case(example.diagram, extents_of(example.diagram, *sizes), seed,
                                            fmt::format("k{}_", seed), {}, cpu_case::warps()));
        cases.back().probes.assign(std::begin(all_probes), std::end(all_probes));
        cases.back().nan_is_open = false;
    }
    EXPECT_GE(cases.size(), 40u);
    check(cases);
}

}  // namespace
}  // namespace napkin
