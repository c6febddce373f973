// Sums over a stream in accumulators, as planned for a GPU: they run on the CPU against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_accumulators {
namespace {

using cpu_case::Planned;

struct Subject {
    std::string name, text, schedule;
    std::vector<std::string> words;  ///< that stand in its kernels
};

/// Tiles are whole and ragged, blocks have rows and vectors or one of them, and a map may follow the sum.
std::vector<Subject> subjects() {
    const std::string product = "f(A[m, k], B[k, n]) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n";
    const std::string biased =
        "f(A[m, k], B[k, n], b[n], R[m, n]) -> C[m, n]\n    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
        "    C[m, n] = max(S[m, n] + b[n], 0) + R[m, n]\n";
    const std::string tiles = "vector axis n\npanel vectors 2\ngroup m 16\ngroup n 64\nstream k 8\nwarps 4\nblocks 2\n";
    return {
        {"a product", product + "sizes m = 32, n = 64, k = 24\n", tiles, {"// in those who add it up", "store_C("}},
        {"ragged tiles", product + "sizes m = 21, n = 91, k = 19\n", tiles, {"if (m + i < nm && ", "store_C("}},
        {"one vector a row",
         product + "sizes m = 4, n = 32, k = 24\n",
         "vector axis n\npanel vectors 1\ngroup m 4\ngroup n 32\nstream k 8\nwarps 4\nblocks 2\n",
         {"& acc = C;"}},
        {"a bias and a residual", biased + "sizes m = 21, n = 91, k = 19\n", tiles, {"S[i][j]", "auto& acc = S;"}},
        {"the largest product",
         "f(A[m, k], B[k, n]) -> C[m, n]\n    C[m, n] = max(k) A[m, k] * B[k, n]\nsizes m = 21, n = 91, k = 19\n",
         tiles,
         {"auto& acc = C;"}},
        {"a result in 16 bits",
         "f(A[m, k], B[k, n]) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\nsizes m = 21, n = 91, k = 19\n",
         tiles,
         {"convert<bf16>(C[i][j])"}},
        {"a sum by runs",
         "f(X[r, c]: bf16) -> Y[c]: f32\n    Y[c] = sum(r) X[r, c]\nsizes r = 37, c = 520\n",
         "vector axis -\ngroup c 256\nstream r 8\nwarps 4\nblocks 2\n",
         {"_.load(", "auto& acc = Y;"}},
        {"parts of a sum by runs",
         "f(X[r, c]: bf16) -> Y[c]: bf16\n    Y[c] = sum(r) X[r, c] * X[r, c]\nsizes r = 64, c = 256\n",
         "kernel Y_part\nsplit r 4\nvector axis -\ngroup c 256\nwarps 4\nblocks 2\n",
         {"_.load(", "_.store(Y_part_out"}},
    };
}

TEST(Accumulators, ComputeTheirDefinition) {
    std::vector<Planned> all;
    const std::vector<Subject> of = subjects();
    for (std::size_t i = 0; i < of.size(); ++i) {
        SCOPED_TRACE(of[i].name);
        all.push_back(cpu_case::planned_on_hopper(of[i].text, of[i].schedule, fmt::format("k{}_", i)));
        for (const std::string& word : of[i].words) EXPECT_THAT(all.back().source.text, testing::HasSubstr(word));
    }
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(fault_early_or_late(all[i], cpu_case::reference_of(all[i]), *module), "") << of[i].name << "\n"
                                                                                            << all[i].source.text;
}

}  // namespace
}  // namespace napkin::test_accumulators
