// What copies of tiles take on a CPU: conversions at the rate of their type, and tiles that do not stay in the first
// cache.
#include <gtest/gtest.h>

#include "plan/choose.hpp"
#include "support/parsed.hpp"

namespace napkin::test_simulate_copies {
namespace {

/// Two cores with vectors of 16 values, a first cache of 48 KiB, and pipes and units at the rates of a Zen 5 core.
Machine machine() {
    Machine m = load_machine("generic-cpu").value();
    const auto f = [](double value) { return Figure{value, "test"}; };
    m.cores = f(2), m.vector_bits = f(512), m.vector_registers = f(32), m.clock_hz = f(4.2e9);
    m.beside_factor = f(1.03), m.copy_run_clocks = f(4.5), m.transpose_clocks = f(0.22), m.far_transpose_clocks = f(0.47);
    m.levels[1].bandwidth_bytes_per_s = f(8e10), m.levels[1].instances = f(1);
    m.levels[2].capacity_bytes = f(1 << 20), m.levels[2].bandwidth_bytes_per_s = f(1.3e11), m.levels[2].instances = f(2);
    m.levels[3].capacity_bytes = f(48 << 10), m.levels[3].bandwidth_bytes_per_s = f(2e11), m.levels[3].instances = f(2);
    for (Unit& unit : m.units)
        for (auto& [type, rate] : unit.per_clock) rate.value *= 2;
    return m;
}

std::string sums(const std::string& type) {
    return "f(P[h, x], V[h, x, d]: " + type +
           ") -> O[h, d]\n    O[h, d] = sum(x) P[h, x] * V[h, x, d]\n"
           "sizes h = 32, x = 8192, d = 128\n";
}

KernelPlan plan_of(const std::string& text, const Machine& m, const std::string& schedule = "") {
    const Derived derived = derived_from(text);
    PlanOptions options;
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    return choose_plan(derived, bind_sizes(derived.diagram).value(), m, {}, options).value().kernels.at(0);
}

const std::string by_user = "group h = 2\ngroup d = 128\nstream x = ";

TEST(SimulatedCopies, ConvertAtTheRateOfTheirType) {
    Machine slow = machine();
    slow.units.push_back({"widen", {{DType::f16, {0.5, "test"}}}, {}});
    const auto seconds = [](const std::string& type, const Machine& m) {
        return plan_of(sums(type), m, by_user + "16\n").time.core_seconds;
    };
    EXPECT_EQ(seconds("f32", slow), seconds("f32", machine())) << "nothing is converted";
    EXPECT_EQ(seconds("bf16", slow), seconds("bf16", machine())) << "another type";
    // 32 · 8192 · 128 values at one in two clocks on two cores, where that is the longest of all that a copy does.
    EXPECT_NEAR(seconds("f16", slow), 32.0 * 8192 * 128 * 2 / 2 / slow.clock_hz.value, 1.2e-3);
    EXPECT_GT(seconds("f16", slow), 5 * seconds("f16", machine()));
}

// Two inputs and a result pass the memory's pipe one after the other, also where one of them is fetched ahead and the
// result goes past the caches.
TEST(SimulatedTransfers, ShareTheMemorysPipe) {
    Machine m = machine();
    m.levels[1].copy_bandwidth_bytes_per_s = m.nontemporal_copy_bytes_per_s = m.levels[1].bandwidth_bytes_per_s;
    m.core_nontemporal_copy_bytes_per_s = m.levels[1].core_copy_bandwidth_bytes_per_s = m.levels[1].bandwidth_bytes_per_s;
    m.nontemporal_from_bytes = {1e3, "test"};
    for (const char* type : {"f32", "f64"}) {
        const std::string t = type;
        const KernelPlan plan = plan_of("axpy(X[i]: " + t + ", Y[i]: " + t + ", a: " + t + " = 2) -> Z[i]: " + t +
                                            "\n    Z[i] = a * X[i] + Y[i]\nsizes i = 4194304\n",
                                        m);
        for (const Busy& busy : plan.time.busy) EXPECT_GE(plan.time.seconds, busy.seconds) << type << " " << busy.what;
        EXPECT_GE(plan.time.seconds, 3 * 4194304.0 * (t == "f32" ? 4 : 8) / m.levels[1].bandwidth_bytes_per_s.value);
    }
}

TEST(SimulatedThreads, TakeTurnsOnTheCoresThatThereAre) {
    const std::string text =
        "mm(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\nsizes a = b = c = 1024\n";
    const auto seconds = [&](int threads) {
        return plan_of(text, machine(),
                       "group a = 64\ngroup c = 64\nstream b = 64\nthreads = " + std::to_string(threads) + "\n")
            .time.seconds;
    };
    const double on_two = seconds(2);
    EXPECT_GT(seconds(1), 1.8 * on_two);
    for (const int threads : {3, 4, 8, 16, 64, 1000}) EXPECT_GE(seconds(threads), on_two * (1 - 1e-9)) << threads;
    EXPECT_NEAR(seconds(16), on_two, 1e-9 * on_two) << "as many groups for each";
}

TEST(SimulatedCopies, AreSlowerIntoTilesThatLeaveTheFirstCache) {
    // On one Zen 5 core 16-bit values that become a tile of 16 KiB came from memory at 35 GB/s, of a tile of 64 KiB at
    // 15 GB/s.
    const auto seconds = [](const std::string& chunk) {
        return plan_of(sums("f16"), machine(), by_user + chunk + "\nthreads = 1\n").time.seconds;
    };
    const double stays = seconds("16"), spills = seconds("64");
    EXPECT_GT(spills, 1.4 * stays);
    // Each line comes and goes: 2 · 4 bytes of a value through the pipe into the first cache, beside nothing.
    EXPECT_NEAR(spills - stays, 32.0 * 8192 * 128 * 8 / 2e11, 0.3e-3);
}

TEST(SimulatedCopies, LeadThePlanToTilesThatStay) {
    const KernelPlan plan = plan_of(sums("f16"), machine());
    for (const VariableId v : plan.scheduled.kernel->variables.ids())
        if (plan.scheduled.kernel->variables[v].name == "V") {
            EXPECT_LE(plan.scheduled.layouts[v].count * 4, 48 << 10) << to_string(Plan{"test", {}, {plan}});
        }
}

TEST(SimulatedTransfers, TakeLongerInShortRuns) {
    const auto from_memory = [](const Machine& m, const std::string& schedule) {
        const Simulation time = plan_of(sums("f16"), m, schedule).time;
        for (const Busy& busy : time.busy)
            if (busy.what == "DRAM to L3") return busy.seconds;
        return 0.0;
    };
    Machine short_runs = machine();
    short_runs.levels[1].runs = {{1, {0.25, "test"}}, {4, {0.75, "test"}}};
    // Half a row of V has two lines, halfway between one and four; a row and all that follow it in a chunk of 16 have
    // 64. P comes in single lines and has a 64th of the bytes.
    for (const auto& [group, share] : {std::pair{"64", 0.5}, {"128", 1 - 0.25 / 16}}) {
        const std::string schedule = "group h = 2\ngroup d = " + std::string(group) + "\nstream x = 16\n";
        EXPECT_NEAR(from_memory(machine(), schedule) / from_memory(short_runs, schedule), share, 0.05) << group;
    }
    // Left to the plan, whole rows.
    const auto columns = [](const KernelPlan& plan) {
        const ScheduledKernel& k = plan.scheduled;
        for (const VariableId v : k.kernel->variables.ids())
            if (k.kernel->variables[v].name == "V") return k.layouts[v].count;
        return std::int64_t{0};
    };
    EXPECT_GE(columns(plan_of(sums("f16"), short_runs, "stream x = 16\n")), 16 * 128);
}

/// What else runs takes as large a share of what comes from memory and leaves for it as of what the cores compute.
TEST(SimulatedTransfers, TakeLongerBesideOtherWork) {
    Machine disturbed = machine();
    disturbed.sustained_share = {0.5, "test"};
    const std::string schedule = "group h = 2\ngroup d = 128\nstream x = 16\n";
    const Simulation calm = plan_of(sums("f16"), machine(), schedule).time,
                     busy = plan_of(sums("f16"), disturbed, schedule).time;
    ASSERT_GT(calm.transfers, 0);
    std::size_t pipes = 0;
    for (const Busy& alone : calm.busy) {
        if (alone.what.find(" to ") == std::string::npos || alone.seconds <= 0) continue;
        for (const Busy& beside : busy.busy) {
            if (alone.what != beside.what) continue;
            ++pipes;
            EXPECT_NEAR(beside.seconds / alone.seconds, 2, 0.01) << alone.what;
        }
    }
    EXPECT_GE(pipes, 2U);
}

}  // namespace
}  // namespace napkin::test_simulate_copies
