// The place of an extremum: one traversal of the stream, compiled for every width of vectors, with NumPy's answers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "diagram/evaluate.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "support/parsed.hpp"

namespace napkin {
namespace {

const std::string places =
    "places(X[a, t], Z[a, t]: i32, W[a, t]: f16, U[a, t, u]) -> I[a]: i32, J[a]: i64, K[a]: i32, L[a], N[a]: i32\n"
    "    I[a] = argmax(t) X[a, t]\n"
    "    J[a] = argmin(t) X[a, t]\n"
    "    K[a] = argmax(t) Z[a, t]\n"
    "    L[a] = argmin(t) W[a, t]\n"
    "    N[a] = argmax(t, u) U[a, t, u]\n";

/// The first NaN, else the first of the extremum, as numpy.argmax and numpy.argmin have it.
double place(const Column& values, std::size_t begin, std::size_t count, bool is_max) {
    std::size_t best = begin;
    for (std::size_t i = begin; i < begin + count; ++i) {
        if (std::isnan(values[i])) return static_cast<double>(i - begin);
        if (is_max ? values[i] > values[best] : values[i] < values[best]) best = i;
    }
    return static_cast<double>(best - begin);
}

TEST(Argmax, IsOneTraversal) {
    const char* programs[] = {
        "f(X[a, t]) -> I[a]: i32\n    I[a] = argmax(t) X[a, t]\n",
        "f(X[a, t]: i32) -> I[a]: i32\n    I[a] = argmin(t) X[a, t]\n",
        "f(X[a, t, u]) -> I[a]: i64\n    I[a] = argmax(t, u) X[a, t, u]\n",
        "f(X[a, t], V[a, t]) -> I[a], M[a], P[a]\n    I[a] = argmax(t) X[a, t] * 2 + V[a, t]\n"
        "    M[a] = max(t) X[a, t] * 2 + V[a, t]\n    P[a] = sum(t) exp(X[a, t] * 2 + V[a, t] - M[a])\n",
    };
    for (const char* text : programs) {
        const auto derived = derive(parsed(text));
        ASSERT_TRUE(derived.ok()) << render(derived.errors());
        EXPECT_TRUE(derived->refusals.empty()) << text << derived->refusals.front().reason;
        ASSERT_EQ(derived->kernels.size(), 1U) << text;
        const auto& stages = derived->kernels[0].stages;
        EXPECT_EQ(
            std::count_if(stages.begin(), stages.end(), [](const Stage& s) { return std::holds_alternative<Loop>(s); }), 1)
            << text;
    }
}

TEST(Argmax, OfTheDefinitionIsTheFirstPlace) {
    const Diagram diagram = parsed(places);
    for (const Probe probe : all_probes)
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const auto extents = bind_sizes(diagram, {{"a", 7}, {"t", 1 + static_cast<std::int64_t>(seed) * 3}, {"u", 4}});
            Values values = probe_inputs(diagram, *extents, probe, seed);
            const std::vector<Column> in(values.begin(), values.begin() + 4);
            evaluate(diagram, *extents, values);
            for (std::size_t output = 0; output < 5; ++output) {
                const Column& operand = in[std::array{0, 0, 1, 2, 3}[output]];
                const Column& found = values[diagram.outputs[output]];
                const std::size_t count = operand.size() / found.size();
                for (std::size_t a = 0; a < found.size(); ++a)
                    ASSERT_EQ(found[a], place(operand, a * count, count, output != 1 && output != 3))
                        << name(probe) << " seed " << seed << " output " << output << " at " << a;
            }
        }
}

TEST(Argmax, CompilesForEveryWidth) {
    const Diagram diagram = parsed(places);
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            const auto size = static_cast<std::int64_t>(seed);
            const auto extents = bind_sizes(diagram, {{"a", 1 + 7 * size}, {"t", 37 + 31 * size}, {"u", 3}});
            ASSERT_TRUE(extents.ok()) << render(extents.errors());
            cases.push_back(cpu_case::make_case(diagram, *extents, seed, fmt::format("p{}_", seed), {}, width));
            cases.back().probes.assign(std::begin(all_probes), std::end(all_probes));
        }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
}

}  // namespace
}  // namespace napkin
