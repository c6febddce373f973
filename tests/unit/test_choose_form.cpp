// The choice among forms, by several threads and by whole searches.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/kernel_times.hpp"
#include "support/parsed.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_choose_form {
namespace {

// Costs that lie within the least gain of each other, known in any order, some of them only as "not less than what is enough".
TEST(WithLeastCost, IsTheSameForAnyNumberOfThreads) {
    int changed = 0, alternatives = 0;
    for_each_example([&](const std::string& name, const std::string& text) {
        SCOPED_TRACE(name);
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
        ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
        const auto derived = derive(*diagram);
        ASSERT_TRUE(derived.ok()) << render(derived.errors());
        for (unsigned seed = 1; seed <= 6; ++seed) {
            std::atomic<unsigned> asked = 0;
            const auto cost = [&](const Derived& form, double enough) {
                std::size_t form_number = seed;
                for (const Kernel& kernel : form.kernels)
                    form_number = form_number * 31 + std::hash<std::string>()(kernel.name) + kernel.equations.size();
                std::mt19937_64 random(form_number);
                const double true_cost = 1 + 0.005 * static_cast<double>(random() % 20);
                // Whoever is asked first may answer last.
                std::this_thread::sleep_for(std::chrono::microseconds((asked++ * 7919 + seed) % 5 * 60));
                return true_cost >= enough && random() % 2 == 0 ? enough : true_cost;
            };
            const Derived one = with_least_cost(*derived, cost), two = with_least_cost(*derived, cost, 2),
                          many = with_least_cost(*derived, cost, 16);
            EXPECT_EQ(names_of(one.kernels), names_of(two.kernels)) << seed;
            EXPECT_EQ(names_of(one.kernels), names_of(many.kernels)) << seed;
            changed += names_of(one.kernels) == names_of(derived->kernels) ? 0 : 1;
        }
        for (const Region& region : derived->regions) alternatives += static_cast<int>(region.alternatives.size()) - 1;
    });
    EXPECT_GT(alternatives, 20);
    EXPECT_GT(changed, 20);
}

// Quick searches take decode for slower in one kernel, where whole ones find it faster.
TEST(ChooseForm, TakesNoFormThatIsSlowerThanTheWholeFold) {
    const Machine machine = load_machine("generic-cpu").value();
    int others = 0;
    for_each_example([&](const std::string& name, const std::string& text) {
        SCOPED_TRACE(name);
        const Derived derived = derived_from(text);
        const auto extents = bind_sizes(derived.diagram);
        if (!extents) return;
        const Derived form = choose_form(derived, *extents, machine);
        if (name == "decode") {
            EXPECT_EQ(form.kernels.size(), 1U);
        }
        if (names_of(form.kernels) == names_of(derived.kernels)) return;
        ++others;
        const auto whole = choose_plan(derived, *extents, machine), chosen = choose_plan(form, *extents, machine);
        ASSERT_TRUE(whole.ok() && chosen.ok());
        EXPECT_LE(chosen->seconds(), whole->seconds());
    });
    EXPECT_GE(others, 3);
}

// Those who ask for the same kernel at a time wait for one answer, also where that is an exception.
TEST(KernelTimes, AreFoundOutOnceWhoeverAsks) {
    KernelTimes times;
    std::atomic<int> found = 0, thrown = 0;
    EXPECT_FALSE(times.known("good").has_value());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const double seconds = times.seconds("good", [&] {
                ++found;
                EXPECT_TRUE(times.is_under_way("good"));
                EXPECT_FALSE(times.known("good").has_value());
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                return 2.5;
            });
            EXPECT_EQ(seconds, 2.5);
            try {
                static_cast<void>(times.seconds("bad", [&]() -> double { throw std::runtime_error("no time"); }));
            } catch (const std::runtime_error&) {
                ++thrown;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(found, 1);
    EXPECT_EQ(thrown, 4);
    EXPECT_EQ(times.known("good"), 2.5);
    EXPECT_FALSE(times.is_under_way("good"));
    EXPECT_EQ(times.size(), 2);
}

}  // namespace
}  // namespace napkin::test_choose_form
