// Products whose lanes add up several terms at a time, for every width of vectors: of bf16, and of 8 bits with and
// without a sign. Where the processor lacks the instruction, other ones compute the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "numeric/cpu_kernel_case.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_lane_products {
namespace {

const char* const programs[] = {
    "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n",
    "f(A[k, m]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[k, m] * B[k, n]\n",
    "f(A[m, k]: i8, B[n, k]: i8) -> C[m, n]: i32\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n",
    "f(A[m, k]: u8, B[k, n]: i8) -> C[m, n]: i32\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n",
    "f(A[m, k]: i8, B[n, k]: u8) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n",
    // quantised: the sums are read by another statement
    "f(A[m, k]: i8, B[n, k]: i8, s[m], t[n]) -> C[m, n]\n    S[m, n]: i32 = sum(k) A[m, k] * B[n, k]\n"
    "    C[m, n] = S[m, n] * s[m] * t[n]\n",
    // a convolution, and a product of each of several matrices
    "f(X[y, c]: bf16, W[f, i, c]: bf16) -> O[u, f]\n    O[u, f] = sum(i, c) X[u + i, c] * W[f, i, c]\n",
    "f(A[b, m, k]: i8, B[b, n, k]: i8) -> C[b, m, n]: i32\n    C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]\n",
};

TEST(LaneProducts, ComputeForEveryWidth) {
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        int num_products = 0;
        for (const char* text : programs) {
            const Diagram diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text})).value();
            for (std::uint64_t seed = 0; seed < 12; seed += 2) {
                std::mt19937_64 random(seed);
                std::map<std::string, std::int64_t> sizes;
                for (const Axis& axis : diagram.axes) sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % 41);
                if (sizes.contains("i")) sizes["i"] = 3, sizes["y"] = sizes["u"] + 2;
                cases.push_back(cpu_case::make_case(diagram, bind_sizes(diagram, sizes).value(), seed,
                                                    fmt::format("l{}_", cases.size()), {}, width));
                for (const ScheduledKernel& kernel : cases.back().scheduled.kernels)
                    num_products += std::ranges::any_of(kernel.schedule.atoms, [](const Atom& a) { return a.terms > 1; });
            }
        }
        EXPECT_GT(num_products, static_cast<int>(cases.size()) / 3) << width.name;
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
}

}  // namespace
}  // namespace napkin::test_lane_products
