// What a kernel takes at least is no more than what any plan of it takes, so that forms which are left out for it are
// not faster.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "cost/compulsory.hpp"
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/block_machine.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/estimates.hpp"
#include "plan/parts.hpp"
#include "support/examples.hpp"
#include "support/parsed.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {

struct Seen {
    int kernels = 0, tight = 0;  ///< tight: of which the bound is more than half of what is planned
};

/// Every alternative of every region, kernel by kernel; on a GPU's block_machine in blocks of so many warps.
void check(const std::string& name, const Diagram& diagram, const Extents& extents, const Machine& machine, Seen& seen,
           std::int64_t warps = 0) {
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
                if (warps > 0) quick.warps = {warps, "", false}, quick.completion = Completion::for_estimate;
                const auto plan = choose_plan(alone, extents, machine, {}, quick);
                if (!plan) continue;
                const bool by_unit = any_of(plan->kernels,
                                            [](const KernelPlan& k) { return k.scheduled.on_tensor_cores(); });
                const double planned = plan->seconds(),
                             least = least_seconds(alone, kernel, statement_work(alone, kernel), extents, machine,
                                                   by_unit ? ComputedBy::tensor_cores : ComputedBy::cores);
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

// What is left out of a search over shapes of blocks, and of forms that are planned, is left out for it.
TEST(LeastSeconds, AreNoMoreThanThoseOfAnyPlanInBlocks) {
    Seen seen;
    struct Shape {
        std::string machine;
        int warps, blocks;
    };
    const Shape shapes[] = {
        {"h200", 8, 1}, {"h100-sxm5", 8, 2}, {"a100-sxm-80gb", 4, 8}, {"h200", 4, 12}, {"rtx-4090", 8, 1}};
    std::size_t n = 0;
    for (const ExampleDiagram& example : example_diagrams())
        if (const auto extents = bind_sizes(example.diagram)) {
            const Shape& shape = shapes[n++ % std::size(shapes)];
            const Machine machine = block_machine(load_machine(shape.machine).value(), shape.warps, shape.blocks, 0);
            check(example.name, example.diagram, *extents, machine, seen, shape.warps);
        }
    EXPECT_GT(seen.kernels, 200);
    EXPECT_GT(seen.tight, 20) << "a bound that is far below rules nothing out";
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

// A kernel of no use is known by its bound, before any of its candidates is simulated.
TEST(LeastSeconds, LeaveKernelsOfNoUseUnplanned) {
    const Diagram attention = parsed(
        "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = "
        "softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 2048, k = d = 64\n");
    const Extents extents = bind_sizes(attention).value();
    const Machine machine = block_machine(load_machine("h200").value(), 8, 1, 0);
    const Derived fused = derive(attention).value();
    PlanOptions quick;
    quick.quick = true, quick.completion = Completion::for_estimate, quick.warps = {8, "", false};
    quick.ratings = std::make_shared<Estimates>();
    quick.useless = 1e-6;
    const Plan bound = choose_plan(fused, extents, machine, {}, quick).value();
    EXPECT_TRUE(bound.is_bound());
    EXPECT_GT(bound.seconds(), quick.useless);
    EXPECT_EQ(quick.ratings->num_simulated(), 0);
    quick.useless = 1;
    const Plan plan = choose_plan(fused, extents, machine, {}, quick).value();
    EXPECT_FALSE(plan.is_bound());
    EXPECT_LE(bound.seconds(), plan.seconds());
    EXPECT_GT(quick.ratings->num_simulated(), 0);
}

// Equation by equation the scores pass through memory: that takes longer than the fused form, and no kernel has to be
// simulated to know it.
TEST(LeastSeconds, RuleOutFormsBeforeTheirKernelsAreSimulated) {
    const Diagram attention = parsed(
        "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = "
        "softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 8192, k = d = 8\n");
    const Extents extents = bind_sizes(attention).value();
    const Machine machine = load_machine("generic-cpu").value();
    PlanOptions options;
    options.completion = Completion::for_estimate, options.ratings = std::make_shared<Estimates>();
    const Derived form = choose_form(derive(attention).value(), extents, machine, {}, options.ratings);
    EXPECT_EQ(form.kernels.size(), 1U);
    DeriveOptions apart;
    apart.fuse = false;
    const Derived kernels = derive(attention, apart).value();
    for (std::size_t k = 0; k < kernels.kernels.size(); ++k) {
        const std::size_t simulated = options.ratings->num_simulated();
        options.only = {k};
        ASSERT_TRUE(choose_plan(kernels, extents, machine, {}, options).ok());
        EXPECT_GT(options.ratings->num_simulated(), simulated) << kernels.kernels[k].name << " is known";
    }
}

}  // namespace
}  // namespace napkin
