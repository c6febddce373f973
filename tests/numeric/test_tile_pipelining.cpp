// Statements that run for the group before, in the loops of another one: random rows against their definition, at every
// width.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "support/ranges.hpp"
#include "support/whole_rows.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// Rows that are reduced, mapped, and reduced and mapped again, in two or three dimensions. Some of the last maps read
/// what is gone by the next group.
std::string random_rows(std::mt19937_64& random) {
    const auto any = [&](const std::vector<const char*>& choices) {
        return std::string(choices[random() % choices.size()]);
    };
    const bool is_deep = random() % 3 == 0;
    const std::string i = is_deep ? "b, r" : "r";
    const auto size = [&] { return 1 + random() % (random() % 3 == 0 ? 40 : 9); };
    std::string text = fmt::format("f(X[{0}, c], A[c], B[{0}]) -> Y[{0}, c]\n", i);
    text += fmt::format("    M[{0}] = {1}(c) X[{0}, c]\n", i, any({"max", "mean", "sum"}));
    text += fmt::format(
        "    E[{0}, c] = {1}\n", i,
        fmt::format(
            fmt::runtime(any({"exp(X[{0}, c] - M[{0}])", "tanh(X[{0}, c]) + M[{0}]", "X[{0}, c] * A[c] + M[{0}]"})), i));
    text += fmt::format("    L[{0}] = {1}(c) {2}E[{0}, c]\n", i, any({"max", "mean", "sum"}), any({"", "3 * "}));
    text += fmt::format("    Y[{0}, c] = {1}\n", i,
                        fmt::format(fmt::runtime(any({"E[{0}, c] / (2.5 + L[{0}]^2)", "(E[{0}, c] - L[{0}]) * A[c]",
                                                      "abs(E[{0}, c]) + L[{0}]", "E[{0}, c] * B[{0}]",
                                                      "E[{0}, c] + X[{0}, c]", "E[{0}, c] + M[{0}] * L[{0}]",
                                                      "E[{0}, c] * L[{0}] + c", "E[{0}, c] * L[{0}] + r"})),
                                    i));
    return text + fmt::format("sizes {}r = {}, c = {}\n", is_deep ? fmt::format("b = {}, ", size()) : "", size(), size());
}

std::vector<KernelSchedule> random_groups(const Derived& derived, const Extents& extents, std::mt19937_64& random) {
    std::vector<KernelSchedule> schedules;
    for (const Kernel& kernel : derived.kernels) {
        KernelSchedule k;
        k.kernel = kernel.name;
        for (const AxisId axis : kernel.group_axes) {
            const auto extent = static_cast<std::uint64_t>(extents[axis]);
            if (contains(kernel.recompute_axes, axis)) continue;  // groups have whole rows
            k.group[axis] = {static_cast<std::int64_t>(1 + random() % (random() % 3 == 0 ? extent : 1)), "", false};
        }
        if (random() % 4 == 0) k.vector_axis.value = AxisId::of(random() % extents.size());
        k.rows.value = static_cast<std::int64_t>(1 + random() % 8);
        schedules.push_back(std::move(k));
    }
    return schedules;
}

TEST(Deferrals, ComputeTheDefinitionAtEveryWidth) {
    std::uint64_t seed = 0;
    for (const cpu_case::Width& width : cpu_case::widths()) {
        SCOPED_TRACE(width.name);
        std::vector<cpu_case::Case> cases;
        int deferred = 0;
        // Sizes of even seeds are numbers: where any size may come, some groups may have fewer points.
        for (int n = 0; n < 100; ++n, seed += 2) {
            std::mt19937_64 random(seed);
            const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", random_rows(random)}));
            ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
            const auto extents = bind_sizes(*diagram);
            ASSERT_TRUE(extents.ok()) << render(extents.errors());
            const auto derived = derive(*diagram);
            ASSERT_TRUE(derived.ok()) << render(derived.errors());
            const Derived form = in_whole_rows(*derived);
            cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("d{}", seed), form,
                                                random_groups(form, *extents, random), width));
            deferred += cases.back().num_deferred;
        }
        EXPECT_GE(deferred, 5);
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
    }
}

}  // namespace
}  // namespace napkin
