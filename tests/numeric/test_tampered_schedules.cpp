// Schedules of which lines are missing, or numbers and words are others: what is planned by them computes the
// definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "machine/machine.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "plan/choose.hpp"
#include "support/random_diagram.hpp"
#include "support/schedules.hpp"

namespace napkin {
namespace {

/// A processor with these vectors, and one core, so that no stream is cut into parts.
Machine processor(const cpu_case::Width& width) {
    Machine machine = load_machine("generic-cpu").value();
    machine.cores.value = 1;
    machine.vector_bits.value = 8 * width.vector_bytes, machine.vector_registers.value = width.vector_registers;
    return machine;
}

TEST(TamperedSchedules, ComputeTheDefinitionAtEveryWidth) {
    constexpr int programs = 50;  // for each width
    std::uint64_t seed = 0;
    for (const cpu_case::Width& width : cpu_case::widths()) {
        SCOPED_TRACE(width.name);
        const Machine machine = processor(width);
        std::vector<cpu_case::Case> cases;
        std::vector<std::string> texts;
        for (int n = 0; n < programs; ++n, ++seed) {
            std::mt19937_64 random(seed);
            cpu_case::Case c{random_diagram(seed), {}, seed, {}, {}, {}, {}, {}};
            c.extents = cpu_case::some_extents(c.diagram, seed);
            c.derived = derive(c.diagram).value();
            PlanOptions options;
            const Plan plan = choose_plan(c.derived, c.extents, machine, {}, options).value();
            texts.push_back(tampered(to_string(plan), random));
            options.file = std::make_shared<const Source>(Source{"a.schedule", texts.back()});
            const auto again = choose_plan(c.derived, c.extents, machine, {}, options);
            if (!again) {
                texts.pop_back();
                continue;
            }
            c.scheduled = again->program();
            c.program = again->tiles();
            c.source = cpu::emit(c.scheduled, fmt::format("t{}_", seed));
            cases.push_back(std::move(c));
        }
        EXPECT_GT(cases.size(), 12U);
        fmt::print("{} of {} are planned\n", cases.size(), programs);
        const std::vector<std::string> failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]) << texts[k];
    }
}

}  // namespace
}  // namespace napkin
