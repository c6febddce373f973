// Random programs compiled for every width of vectors, many to a module, on inputs of every kind: each value within the
// bound of its definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "numeric/cpu_kernel_case.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "support/seeds.hpp"

namespace napkin {
namespace {

constexpr int shards = 4;
constexpr std::uint64_t random_programs_a_module = 60;

class CompiledPrograms : public testing::TestWithParam<int> {};

TEST_P(CompiledPrograms, ComputeTheirDefinition) {
    const auto [from, to] = seeds(160);
    // Widths that do not run here are compiled and not run.
    const cpu_case::Width& width = cpu_case::widths().at(static_cast<std::size_t>(GetParam()) % cpu_case::widths().size());
    const std::uint64_t shard = static_cast<std::uint64_t>(GetParam());
    const std::uint64_t first = from + (to - from) * shard / shards, last = from + (to - from) * (shard + 1) / shards;
    int failures = 0, kernels = 0;
    for (std::uint64_t seed = first; seed < last;) {
        std::vector<cpu_case::Case> cases;
        for (; seed < last && cases.size() < random_programs_a_module; ++seed) {
            const Diagram diagram = parsed_program(random_program(seed));
            cases.push_back(
                cpu_case::make_case(diagram, random_extents(diagram, seed), seed, fmt::format("k{}", seed), {}, width));
            cases.back().probes = {seed % 2 == 0 ? Probe::normal : all_probes[seed / 2 % std::size(all_probes)]};
            kernels += static_cast<int>(cases.back().derived.kernels.size());
        }
        const auto found = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k) {
            const std::uint64_t number = cases[k].seed;
            if (found[k].empty()) continue;
            ++failures;
            ADD_FAILURE() << fmt::format("seed {}: {}\n", number, found[k])
                          << (failures <= 2 ? random_program(number) + cpu_case::describe(cases[k]) : "");
        }
    }
    RecordProperty("first_seed", std::to_string(first));
    RecordProperty("programs", std::to_string(last - first));
    RecordProperty("failures", std::to_string(failures));
    RecordProperty("kernels", std::to_string(kernels));
}

// A tile has one value along the vector axis: a reduction that is fused into a map still reads the map's vectors. The
// seed draws such a schedule.
TEST(FusedStatements, GiveVectorsAlongAxesOfOneValue) {
    constexpr std::uint64_t seed = 3005183;
    const Diagram diagram = parsed_program(
        "random(B[d], W[d, k], A[k]: u8, B_2[d]: i8) -> S2, X1_2[k, d], W1_2[k, d], mu_2[d], S2_2[d]\n"
        "    X1[d] = (d <= d and d > d - 3) * B[d]\n"
        "    W1[d] = where(d <= 1, 0.5 + B[d] * B[d], 0)\n"
        "    N = sum(d) W1[d]\n"
        "    F = sum(d) W1[d] * X1[d]\n"
        "    mu = F / N\n"
        "    S2 = sum(d) W1[d] * (X1[d] - mu)^2\n"
        "    X1_2[k, d] = 0.00390625 * (mu * W[d, k])\n"
        "    W1_2[k, d] = where(B_2[d] == A[k], exp(tanh(W1[d])), 0)\n"
        "    N_2[d] = sum(k) W1_2[k, d]\n"
        "    F_2[d] = sum(k) W1_2[k, d] * X1_2[k, d]\n"
        "    mu_2[d] = F_2[d] / N_2[d]\n"
        "    S2_2[d] = sum(k) W1_2[k, d] * (X1_2[k, d] - mu_2[d])^3\n");
    for (const cpu_case::Width& width : cpu_case::widths()) {
        const auto c = cpu_case::make_case(diagram, random_extents(diagram, seed), seed, "fused", {}, width);
        EXPECT_EQ(cpu_case::failures({c}, width).front(), "") << cpu_case::describe(c);
    }
}

INSTANTIATE_TEST_SUITE_P(Shards, CompiledPrograms, testing::Range(0, shards));

}  // namespace
}  // namespace napkin
