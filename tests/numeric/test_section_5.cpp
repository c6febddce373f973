// The kernel in the configuration of FlashAttention on a Napkin's §5, Table 1.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "check/probe.hpp"
#include "machine/machine.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "schedule/scheduled.hpp"
#include "support/paths.hpp"

namespace napkin {
namespace {

std::string file(const std::string& name) {
    std::ifstream in(in_sources("examples/schedules/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The text with two groups, and a last chunk that is not full.
cpu_case::Planned small_section_5() {
    std::string text = file("napkin-section-5.nk");
    const std::string sizes = "m = 43, q = 192, x = 16384, k = d = 128";
    text.replace(text.find(sizes), sizes.size(), "m = 2, q = 192, x = 264, k = d = 128");
    return cpu_case::planned(text, file("napkin-section-5.schedule"), load_machine("h100-sxm5").value());
}

TEST(SectionFive, HasTheConfigurationOfTableOne) {
    const cpu_case::Planned p = small_section_5();
    ASSERT_EQ(p.plan.kernels.size(), 1u);
    const ScheduledKernel& k = p.plan.kernels[0].scheduled;
    EXPECT_TRUE(k.on_tensor_cores());
    EXPECT_EQ(k.schedule.warps.value, 12);
    for (const auto& [axis, size] : {std::pair{"q", 192}, {"x", 64}, {"m", 1}}) {
        const AxisId a = *k.program->diagram.find_axis(axis);
        const auto& sizes = axis == std::string("x") ? k.schedule.stream : k.schedule.group;
        EXPECT_EQ(sizes.at(a).value, size) << axis;
    }
    const std::map<std::string, int> stages{{"K", 2}, {"V", 2}, {"Q", 1}, {"lower_Q", 1}};
    for (const VariableId v : k.layouts.ids())
        if (const auto tile = stages.find(k.variable(v).name); tile != stages.end()) {
            EXPECT_EQ(k.place(v).stages, tile->second) << tile->first;
        }
}

TEST(SectionFive, ComputesTheDefinition) {
    const cpu_case::Planned p = small_section_5();
    // Where no values of V cancel, a result of 22% more is beyond what types of 8 and 16 bits round off.
    Values given = probe_inputs(p.diagram, p.extents, Probe::normal, 1);
    for (double& value : given[*p.diagram.find_array("V")].reals()) value = std::abs(value);
    const auto module = cpu_case::compiled_for_cpu(p.source);
    EXPECT_EQ(cpu_case::fault_early_or_late(p, cpu_case::reference_of(p), *module), "");
    EXPECT_EQ(cpu_case::fault_early_or_late(p, cpu_case::reference_of(p, given), *module), "");
    cpu_case::Planned wrong = p;
    for (int i = 0; i < 20; ++i) wrong = cpu_case::with_larger_call(std::move(wrong), "near_quotient(");
    const auto wrong_module = cpu_case::compiled_for_cpu(wrong.source);
    EXPECT_NE(cpu_case::fault_early_or_late(wrong, cpu_case::reference_of(wrong, given), *wrong_module), "");
}

}  // namespace
}  // namespace napkin
