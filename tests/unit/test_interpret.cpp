// The interpreter of the kernel program: what kernels store is what the definition says, with asynchronous work done
// early or late. A statement of synchronization that is left out shows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <memory>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"
#include "lower/interpret.hpp"
#include "lower/lower.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_interpret {
namespace {

using lower::Completion;

/// A text with sizes, and lines of a schedule that fix a part of its plan.
struct Subject {
    std::string name;
    std::string text, schedule = "";
};

struct Planned {
    Diagram diagram;
    Extents extents;
    Plan plan;
    lower::LoweredProgram program;
};

Planned planned(const Subject& subject, const Machine& machine) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{subject.name, subject.text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    Planned out{*diagram, bind_sizes(*diagram).value(), {}, {}};
    PlanOptions options;
    if (!subject.schedule.empty())
        options.file = std::make_shared<const Source>(Source{"a.schedule", subject.schedule});
    auto plan = choose_plan(derive(*diagram).value(), out.extents, machine, {}, options);
    if (!plan) throw std::runtime_error(subject.name + ": " + render(plan.errors()));
    out.plan = std::move(*plan);
    out.program = lower::lowered(out.plan.program());
    return out;
}

/// Runs all kernels. Returns what is wrong with the outputs; empty: nothing.
std::string fault_of(const Planned& p, const lower::LoweredProgram& program, Completion completion) {
    const SizedProgram tiles = p.plan.tiles();
    Values given = random_inputs(p.diagram, p.extents, 1), memory(tiles.diagram.arrays.size());
    for (const ArrayId a : tiles.diagram.inputs) memory[a] = given[*p.diagram.find_array(tiles.diagram.array(a).name)];
    for (const lower::KernelProgram& kernel : program.kernels)
        if (const auto moved = lower::interpret(kernel, memory, completion); !moved)
            return moved.errors().front().code + ": " + moved.errors().front().message;
    evaluate(p.diagram, p.extents, given);
    for (const ArrayId a : tiles.diagram.outputs) {
        const ArrayId known = *p.diagram.find_array(tiles.diagram.array(a).name);
        const Column &want = given[known], &got = memory[a];
        if (want.size() != got.size()) return "sizes differ";
        double largest = 0, worst = 0;
        for (std::size_t i = 0; i < want.size(); ++i) largest = std::max(largest, std::abs(want[i]));
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) continue;
            const double e = std::abs(want[i] - got[i]) / (std::abs(want[i]) + largest);
            if (!(e <= worst)) worst = e;
            if (std::isnan(worst)) break;
        }
        if (!(worst <= 0.02)) return fmt::format("{}: off by {}", tiles.diagram.array(a).name, worst);
    }
    return "";
}

TEST(Interpret, Quick) {
    const char* file = std::getenv("INTERPRET_FILE");
    if (!file) GTEST_SKIP();
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    std::string schedule = std::getenv("INTERPRET_SCHEDULE") ? std::getenv("INTERPRET_SCHEDULE") : "";
    const Machine machine = load_machine(std::getenv("INTERPRET_MACHINE") ? std::getenv("INTERPRET_MACHINE") : "h200").value();
    const Planned p = planned({file, text.str(), schedule}, machine);
    for (const auto& k : p.program.kernels) fmt::print("{}\n", to_string(k));
    for (const Completion c : {Completion::early, Completion::late}) EXPECT_EQ(fault_of(p, p.program, c), "");
}

}  // namespace
}  // namespace napkin::test_interpret
