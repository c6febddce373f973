// What a kernel takes at least is no more than what any plan of it takes, so that forms which are left out for it are
// not faster.
#include <gtest/gtest.h>

#include <limits>

#include "cost/compulsory.hpp"
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "plan/choose.hpp"
#include "plan/kernel_times.hpp"
#include "plan/parts.hpp"
#include "support/examples.hpp"
#include "support/parsed.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {

struct Seen {
    int kernels = 0, tight = 0;  ///< tight: of which the bound is more than half of what is planned
};

/// Every alternative of every region, kernel by kernel.
void check(const std::string& name, const Diagram& diagram, const Extents& extents, const Machine& machine, Seen& seen) {
    const Derived derived = derive(diagram).value();
    for (std::size_t r = 0; r < derived.regions.size(); ++r)
        for (std::size_t a = 0; a < derived.regions[r].alternatives.size(); ++a) {
            std::vector<std::size_t> chosen(derived.regions.size());
            chosen[r] = a;
            const Derived form = rederive(derived, chosen);
            for (const Kernel& kernel : form.kernels) {
                Derived alone = form;
                alone.kernels = {kernel};
                PlanOptions quick;
                quick.quick = true;
                const auto plan = choose_plan(alone, extents, machine, {}, quick);
                if (!plan) continue;
                const double planned = seconds_with_starts(*plan, machine),
                             least = least_seconds(alone, kernel, statement_work(alone, kernel), extents, machine);
                EXPECT_LE(least, planned * (1 + 1e-9)) << name << ", " << kernel.name << "\n" << to_string(*plan);
                ++seen.kernels, seen.tight += least > planned / 2;
            }
        }
}

/// Many cores beside the memory of few, which stores past the caches reach faster than copies do.
Machine with_fast_stores() {
    Machine machine = load_machine("generic-cpu").value();
    machine.cores.value = 32;
    for (Level& level : machine.levels)
        if (level.instances.value > 1) level.instances.value = 32;
    machine.nontemporal_copy_bytes_per_s = machine.levels[1].copy_bandwidth_bytes_per_s;
    machine.nontemporal_copy_bytes_per_s.value *= 1.6;
    machine.core_nontemporal_copy_bytes_per_s = machine.nontemporal_copy_bytes_per_s;
    return machine;
}

/// Exponentials that take longer than all else, but of what is known not to be positive.
Machine with_fast_nonpositive_exponentials() {
    Machine machine = load_machine("generic-cpu").value();
    const double rate = per_clock(machine, "exp", DType::f32);
    std::erase_if(machine.units, [](const Unit& unit) { return unit.name == "exp"; });
    machine.units.push_back({"exp", {{DType::f32, {rate / 16, "test"}}}, {}});
    machine.units.push_back({"exp_nonpositive", {{DType::f32, {rate, "test"}}}, {}});
    return machine;
}

TEST(LeastSeconds, AreNoMoreThanThoseOfAnyPlanOfTheExamples) {
    Seen seen;
    const Machine machines[] = {load_machine("generic-cpu").value(), with_fast_stores(),
                                with_fast_nonpositive_exponentials()};
    int n = 0;
    for (const ExampleDiagram& example : example_diagrams())
        if (const auto extents = bind_sizes(example.diagram))
            check(example.name, example.diagram, *extents, machines[n++ % 3], seen);
    EXPECT_GT(seen.kernels, 200);
    EXPECT_GT(seen.tight, 60) << "a bound that is far below rules nothing out";
}

TEST(LeastSeconds, AreNoMoreThanThoseOfAnyPlanOfRandomDiagrams) {
    Seen seen;
    const Machine machines[] = {load_machine("generic-cpu").value(), with_fast_stores()};
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const Diagram diagram = random_diagram(seed);
        Extents extents = random_extents(diagram, seed);
        for (const AxisId a : extents.ids())
            if (seed % 3 == 0 && !diagram.axes[a].size) extents[a] *= 13;
        check("seed " + std::to_string(seed), diagram, extents, machines[seed % 2], seen);
    }
    EXPECT_GT(seen.kernels, 200);
}

// Equation by equation the scores pass through memory: that takes longer than what is enough, and no kernel has to be
// simulated to know it.
TEST(LeastSeconds, RuleOutFormsBeforeTheirKernelsAreSimulated) {
    const Diagram attention = parsed(
        "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = "
        "softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 8192, k = d = 8\n");
    const Extents extents = bind_sizes(attention).value();
    const Machine machine = load_machine("generic-cpu").value();
    DeriveOptions apart;
    apart.fuse = false;
    const Derived kernels = derive(attention, apart).value();
    const double enough = 1.2 * 8192.0 * 8192 * 4 / machine.levels[1].bandwidth_bytes_per_s.value;
    KernelTimes known;
    EXPECT_GE(estimated_seconds(kernels, extents, machine, known, enough), enough);
    EXPECT_EQ(known.size(), 0);
    EXPECT_GT(estimated_seconds(kernels, extents, machine, known, std::numeric_limits<double>::infinity()), enough);
    EXPECT_EQ(known.size(), kernels.kernels.size());
}

}  // namespace
}  // namespace napkin
