// Statements by runs, as planned for a GPU: they run on the CPU against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_thread_runs {
namespace {

using cpu_case::Planned;

struct Subject {
    std::string name, text;
    std::vector<std::string> words;  ///< that stand in its kernel
};

/// A run's values may lie beside each other, in rows of their own, or at places of their own. One may stand for all of
/// them. Some lie past the ends of arrays and tiles.
std::vector<Subject> subjects() {
    return {
        {"maps",
         "f(X[r, c]: bf16, B[c]: f32, S[r]: f16) -> Y[r, c]: bf16\n    Y[r, c] = X[r, c] * S[r] + B[c]\nsizes r = 11, "
         "c = 40\n",
         {"_.load("}},
        {"a ragged end", "f(X[r, c]: f16) -> Y[r, c]: f32\n    Y[r, c] = X[r, c] * 2\nsizes r = 5, c = 45\n", {"_.load("}},
        {"a transpose", "f(X[r, c]: bf16) -> Y[c, r]: bf16\n    Y[c, r] = X[r, c]\nsizes r = 72, c = 45\n", {"copy_in(X"}},
        {"halves",
         "f(X[t, c]: bf16, A[t, c]: bf16) -> Y[t, c]: bf16\n"
         "    Y[t, c] = X[t, c] * A[t, c] + where(c < size(c) // 2, -1, 1) * X[t, (c + size(c) // 2) % size(c)]\n"
         "sizes t = 6, c = 32\n",
         {"_.load("}},
        {"a shift that is no whole run",
         "f(X[t, c]: bf16) -> Y[t, c]: bf16\n    Y[t, c] = X[t, (c + 5) % size(c)]\nsizes t = 6, c = 32\n",
         {}},
        {"pairs",
         "f(X[t, c]: bf16) -> Y[t, c]: bf16\n    Y[t, c] = X[t, c + 1 - 2 * (c % 2)] - X[t, c]\nsizes t = 6, c = 32\n",
         {}},
        {"each value twice",
         "f(X[y, z, c]: e4m3) -> Y[u, v, c]: e4m3\n    Y[u, v, c] = X[u // 2, v // 2, c]\n"
         "sizes y = 3, z = 4, u = 6, v = 8, c = 24\n",
         {"_.load("}},
        {"every other",
         "f(X[t, d]: bf16) -> Y[t, c]: bf16\n    Y[t, c] = X[t, 2 * c] + X[t, 2 * c + 1]\nsizes t = 7, d = 48, c = "
         "24\n",
         {}},
        {"past the first row",
         "f(X[y, z, c]: bf16) -> Y[y, z, c]: bf16\n    Y[y, z, c] = where(y >= 1, X[y - 1, z, c], 0) + X[y, z, c]\n"
         "sizes y = 5, z = 7, c = 24\n",
         {">= 0 && "}},
        {"past the row's end",
         "f(X[t, c]: bf16) -> Y[t, c]: bf16\n    Y[t, c] = where(c + 3 < size(c), X[t, c + 3], 0) + X[t, c]\n"
         "sizes t = 5, c = 40\n",
         {">= 0 && "}},
        {"unrolled windows",
         "f(X[y, z, c]: bf16) -> Y[u, v, t]: bf16\n    Y[u, v, t] = where(t < 27, X[u + t // 9, v + t // 3 % 3, t % "
         "3], 0)\n"
         "sizes y = 6, z = 7, c = 3, u = 4, v = 5, t = 32\n",
         {">= 0 && "}},
    };
}

TEST(ThreadRuns, ComputeTheirDefinition) {
    std::vector<Planned> all;
    const std::vector<Subject> of = subjects();
    for (std::size_t i = 0; i < of.size(); ++i) {
        SCOPED_TRACE(of[i].name);
        all.push_back(cpu_case::planned_on_hopper(of[i].text, "vector axis -\nwarps 4\nblocks 8\n", fmt::format("k{}_", i)));
        const std::string& text = all.back().source.text;
        EXPECT_THAT(text, testing::HasSubstr("_.store("));
        for (const std::string& word : of[i].words) EXPECT_THAT(text, testing::HasSubstr(word));
    }
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(fault_early_or_late(all[i], cpu_case::reference_of(all[i]), *module), "") << of[i].name << "\n"
                                                                                            << all[i].source.text;
}

}  // namespace
}  // namespace napkin::test_thread_runs
