// Every example by the plan of other sizes than it runs at: right kernels are never bad.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>

#include "lower/lower.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "numeric/ragged_sizes.hpp"
#include "run/gpu/driver.hpp"
#include "run/pipeline.hpp"
#include "support/examples.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include "support/seeds.hpp"

namespace napkin {
namespace {

constexpr double most_points_of_both = 400000;
constexpr std::uint64_t most_length = 300;

PipelineOptions options_for(const ExampleDiagram& example, const SizesByName& sizes, const std::string& machine) {
    PipelineOptions options;
    options.diagram = example.diagram.name, options.machine = machine, options.until = Pass::emit;
    options.sizes.insert(sizes.begin(), sizes.end());
    options.any_sizes = true;
    return options;
}

/// The example planned at small sizes, and at others by that plan. `tried`: whether it has a plan to begin with.
std::optional<Compilation> at_others(const ExampleDiagram& example, std::uint64_t seed, const std::string& machine,
                                     bool& tried) {
    tried = false;
    std::mt19937_64 random(seed);
    const auto first = ragged_sizes(example.diagram, random, most_length, most_points_of_both),
               second = ragged_sizes(example.diagram, random, most_length, most_points_of_both);
    const auto text = read_file(in_sources("examples/" + example.name + ".nk"));
    if (!first || !second || !text) return std::nullopt;
    const auto planned = run_pipeline(std::make_shared<const Source>(Source{example.name, *text}),
                                      options_for(example, *first, machine));
    if (!planned) return std::nullopt;
    tried = true;
    return at_other_sizes(*planned, options_for(example, *second, machine));
}

std::optional<cpu_case::Case> taken_over(const ExampleDiagram& example, std::uint64_t seed, const std::string& machine,
                                         bool& tried) {
    const auto other = at_others(example, seed, machine, tried);
    if (!other) return std::nullopt;
    cpu_case::Case c{other->diagram,        other->extents, seed, other->derived,
                     other->plan.program(), other->program, {},   {}};
    const std::string prefix = fmt::format("k{}_", seed);
    if (other->machine.kind == MachineKind::gpu)
        c.gpu_source = cuda::emit(other->lowered, prefix);
    else
        c.source = cpu::emit(other->lowered, prefix);
    c.nan_is_open = false;
    return c;
}

void are_never_bad(const std::string& machine, bool on_gpu) {
    const std::vector<ExampleDiagram> examples = example_diagrams();
    const auto [first, last] = seeds(examples.size());
    std::vector<cpu_case::Case> cases;
    std::size_t num_tried = 0;
    for (std::uint64_t seed = first; seed < last; ++seed) {
        bool tried = false;
        if (auto c = taken_over(examples[seed % examples.size()], seed, machine, tried)) cases.push_back(std::move(*c));
        num_tried += tried ? 1 : 0;
    }
    const auto found = on_gpu ? cpu_case::failures_on_gpu(cases) : cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k)
        if (!found[k].empty())
            ADD_FAILURE() << fmt::format("seed {}: {}\n{}", cases[k].seed, found[k], describe(cases[k]));
    testing::Test::RecordProperty("programs", std::to_string(cases.size()));
    // Some schedules fit no other sizes.
    EXPECT_GE(2 * cases.size(), num_tried) << "of " << num_tried << " plans";
}

TEST(OtherSizes, AreNeverBadOnAProcessor) { are_never_bad(in_sources("tests/machines/cpu-256.toml"), false); }

/// The same without a GPU, as far as a plan goes.
TEST(OtherSizes, AreServedByMostPlansOfAGpu) {
    const std::vector<ExampleDiagram> examples = example_diagrams();
    std::size_t num_tried = 0, served = 0;
    const auto [first, last] = seeds(examples.size() / 2);
    for (std::uint64_t seed = first; seed < last; ++seed) {
        bool tried = false;
        served += at_others(examples[2 * seed % examples.size()], seed, "h200", tried) ? 1 : 0;
        num_tried += tried ? 1 : 0;
    }
    EXPECT_GE(10 * served, 7 * num_tried) << "of " << num_tried << " plans";
}

TEST(OtherSizes, AreNeverBadOnTheGpu) {
    if (!gpu::device()) GTEST_SKIP() << "no GPU";
    are_never_bad("gpu", true);
}

}  // namespace
}  // namespace napkin
