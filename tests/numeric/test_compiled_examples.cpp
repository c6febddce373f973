// Every example compiled at ragged sizes and random plans for every width of vectors, many to a module, on every kind
// of inputs: right kernels are never bad.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "numeric/cpu_kernel_case.hpp"
#include "numeric/ragged_sizes.hpp"
#include "support/examples.hpp"
#include "support/ids.hpp"
#include "support/seeds.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t programs_a_module = 48;
constexpr double most_points = 60000;

std::optional<Extents> ragged_extents(const Diagram& diagram, std::mt19937_64& random) {
    if (const auto drawn = ragged_sizes(diagram, random, 90, most_points)) return bind_sizes(diagram, *drawn).value();
    const auto sizes = small_sizes(diagram, random, most_points);
    if (!sizes) return std::nullopt;
    return extents_of(diagram, *sizes);
}

class CompiledExamples : public testing::TestWithParam<std::size_t> {};

TEST_P(CompiledExamples, AreNeverBad) {
    const cpu_case::Width& width = cpu_case::widths().at(GetParam());
    if (!width.runs_here) GTEST_SKIP() << "this processor lacks " << width.name;
    const std::vector<ExampleDiagram> examples = example_diagrams();
    // A seed is one example, in turn, at sizes of its own.
    const auto [first, last] = seeds(examples.size());
    int failures = 0, programs = 0, runs = 0;
    for (std::uint64_t seed = first; seed < last;) {
        std::vector<cpu_case::Case> cases;
        std::vector<std::string> names;
        for (; seed < last && cases.size() < programs_a_module; ++seed) {
            const ExampleDiagram& example = examples[seed % examples.size()];
            std::mt19937_64 random(seed);
            const auto extents = ragged_extents(example.diagram, random);
            if (!extents) continue;
            cases.push_back(cpu_case::make_case(example.diagram, *extents, seed, fmt::format("k{}_", seed), {}, width));
            cases.back().probes.assign(std::begin(all_probes), std::end(all_probes));
            cases.back().nan_is_open = false;
            names.push_back(example.name);
        }
        const auto found = cpu_case::failures(cases, width);
        programs += static_cast<int>(cases.size());
        runs += static_cast<int>(cases.size() * std::size(all_probes));
        for (std::size_t k = 0; k < cases.size(); ++k) {
            if (found[k].empty()) continue;
            ++failures;
            ADD_FAILURE() << fmt::format("seed {}: {}, {}\n", cases[k].seed, names[k], found[k])
                          << (failures <= 2 ? cpu_case::describe(cases[k]) : "");
        }
    }
    // Hardly any example has no sizes that are small.
    EXPECT_GE(programs, static_cast<int>((last - first) * 9 / 10));
    RecordProperty("first_seed", std::to_string(first));
    RecordProperty("programs", std::to_string(programs));
    RecordProperty("runs", std::to_string(runs));
    RecordProperty("failures", std::to_string(failures));
}

INSTANTIATE_TEST_SUITE_P(Widths, CompiledExamples, testing::Range<std::size_t>(0, cpu_case::widths().size()),
                         [](const auto& tested) {
                             return std::to_string(cpu_case::widths()[tested.param].vector_bytes) +
                                    (tested.param == 0 ? "_bytes_of_this_processor" : "_bytes");
                         });

}  // namespace
}  // namespace napkin
