// Rows that lie in registers of all threads: what is planned to lie there, and what may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "schedule/lane_registers.hpp"
#include "support/parsed.hpp"

namespace napkin::test_lane_registers {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

const char* const layer_norm =
    "f(X[r, c]: bf16, G[c]: bf16, B[c]: bf16) -> Y[r, c]: bf16\n"
    "    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c])\n";

Plan planned(const std::string& text, const std::map<std::string, std::int64_t>& sizes) {
    const Diagram diagram = parsed(text);
    const Extents extents = bind_sizes(diagram, sizes).value();
    const Machine machine = load_machine("h200").value();
    const Derived form = choose_form(derive(diagram).value(), extents, machine, {}, nullptr, FormTimes::of_plans);
    const auto plan = choose_plan(form, extents, machine, {});
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return *plan;
}
VariableId named(const ScheduledKernel& kernel, const std::string& name) {
    const auto& all = kernel.kernel->variables;
    return VariableId::of(std::find_if(all.begin(), all.end(), [&](const Variable& v) { return v.name == name; }) -
                          all.begin());
}
std::string refused(const ScheduledKernel& k, const KernelSchedule& s) {
    const auto messages = verify(scheduled(k.program, 0, k.extents, s, k.unit));
    return messages.empty() ? std::string() : messages.front();
}

TEST(LaneRegisters, HoldLongRowsWithoutSharedMemory) {
    const Plan plan = planned(layer_norm, {{"r", 4096}, {"c", 4096}});
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    for (const VariableId v : kernel.layouts.ids()) EXPECT_TRUE(kernel.is_in_lanes(v)) << kernel.variable(v).name;
    const LaneTile x = lane_tile(kernel, named(kernel, "X"));
    EXPECT_EQ(x.values() * kernel.schedule.warps.value * kernel.lanes, 4096);
    EXPECT_FALSE(passes_by_rounds(kernel, named(kernel, "X"))) << "three statements read it";
    EXPECT_TRUE(passes_by_rounds(kernel, named(kernel, "G")));
    EXPECT_TRUE(passes_by_rounds(kernel, named(kernel, "Y")));
    // Registers hold a row of X, and a turn of what passes.
    EXPECT_LT(lane_registers(kernel), x.values() + 4 * x.vectors + 8);
    const std::string code = cuda::emit(plan.program()).text;
    EXPECT_THAT(code, HasSubstr("X_lanes_.load(X);"));
    EXPECT_THAT(code, Not(HasSubstr("copy_in(X")));
}

TEST(LaneRegisters, OwnersAreThreadsInRounds) {
    const LaneTile tile{.axis = AxisId(0), .vectors = 4, .rounds = 2, .values_a_round = 4 * 32 * 2};
    EXPECT_EQ(tile.warp_of(0, 32), 0);
    EXPECT_EQ(tile.warp_of(127, 32), 0);
    EXPECT_EQ(tile.warp_of(128, 32), 1);
    EXPECT_EQ(tile.warp_of(256, 32), 0);
}

TEST(LaneRegisters, AreRefusedWhereAThreadNeedsAnothersValue) {
    const Plan plan = planned(layer_norm, {{"r", 4096}, {"c", 4096}});
    const ScheduledKernel& kernel = plan.kernels.at(0).scheduled;
    KernelSchedule s = kernel.schedule;
    EXPECT_EQ(refused(kernel, s), "");
    // Its statement reads X in lanes and would find G in a buffer, by another distribution.
    s.places[named(kernel, "G")].holding = MemorySpace::buffer;
    EXPECT_THAT(refused(kernel, s), HasSubstr("cannot lie in registers of all threads"));
    // Coordinates, and other places of the row.
    for (const char* text : {"f(X[r, c]) -> Y[r, c]\n    Y[r, c] = where(c < 7, X[r, c], 0) + (sum(c) X[r, c])\n",
                             "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = X[r, (c + 1) % size(c)] - (max(c) X[r, c])\n"}) {
        const Plan other = planned(text, {{"r", 4096}, {"c", 4096}});
        const ScheduledKernel& k = other.kernels.at(0).scheduled;
        EXPECT_FALSE(k.is_in_lanes(named(k, "Y"))) << text;
    }
}

/// Tiles beyond a CTA's share of shared memory have their price, so that CTAs which have the room are chosen. The
/// coordinate keeps the row out of lanes.
TEST(LaneRegisters, RowsInBuffersFitTheirCta) {
    const Plan plan = planned(
        "f(X[r, c]: bf16, G[c]: bf16, B[c]: bf16) -> Y[r, c]: bf16\n"
        "    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c]) + where(c < 7, 1, 0)\n",
        {{"r", 32768}, {"c", 4096}});
    for (const KernelPlan& kernel : plan.kernels) {
        EXPECT_FALSE(kernel.scheduled.is_in_lanes(named(kernel.scheduled, "X")));
        EXPECT_LE(kernel.scheduled.memory_bytes(), kernel.scheduled.unit.share_bytes) << kernel.schedule().kernel;
    }
}

}  // namespace
}  // namespace napkin::test_lane_registers
