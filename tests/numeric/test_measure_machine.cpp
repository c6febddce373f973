#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "machine/figures.hpp"
#include "run/measure.hpp"
#include "run/measure_machine.hpp"

namespace napkin {
namespace {

TEST(MeasureMachine, FindsFiguresThatAProcessorCanHave) {
    const auto machine = measure_machine({.seconds = 0.3, .vector_bytes = 16, .jit = {}});
    ASSERT_TRUE(machine.ok()) << render(machine.errors());
    const Machine& m = machine->machine;
    EXPECT_GE(machine->taken, 0);
    EXPECT_EQ(machine->disturbed(), m.description.find("while other work took") != std::string::npos) << m.description;
    EXPECT_EQ(m.name, "host-128");
    EXPECT_GT(m.clock_hz.value, 3e8);
    EXPECT_LT(m.clock_hz.value, 8e9);
    // Bounds of any processor since 2010, not of this one.
    const auto between = [](const Figure& figure, double low, double high) {
        EXPECT_GE(figure.value, low) << figure.source;
        EXPECT_LE(figure.value, high) << figure.source;
        EXPECT_NE(figure.source.find("measured 20"), std::string::npos) << figure.source;
    };
    between(m.fma_latency_clocks, 2, 14);
    between(m.issue_per_clock, 1, 16);
    between(m.beside_factor, 1, 2.01);
    between(m.together_share, 0.1, 1);
    between(m.loop_exit_clocks, 0, 200);
    between(m.call_clocks, 0.5, 50);
    between(m.horizontal_clocks, 1, 100);
    between(m.transpose_clocks, 0.05, 50);
    between(m.launch_s, 1e-9, 0.1);
    between(m.group_s, 0, 1e-4);
    for (const char* unit : {"fma", "simple", "load", "store"}) {
        EXPECT_GT(per_clock(m, unit, DType::f32), 4 * 0.2) << unit;
        EXPECT_LT(per_clock(m, unit, DType::f32), 4 * 6.5) << unit;
        EXPECT_GT(per_clock(m, unit, DType::f32), 1.2 * per_clock(m, unit, DType::f64)) << unit;
        EXPECT_LT(per_clock(m, unit, DType::f32), 4 * per_clock(m, unit, DType::f64)) << unit;
    }
    for (const char* slow : {"exp", "log", "div", "sqrt", "pow"})
        EXPECT_LT(per_clock(m, slow, DType::f32), per_clock(m, "fma", DType::f32)) << slow;
    for (std::size_t l = 1; l < m.levels.size(); ++l) {
        EXPECT_LE(m.levels[l].latency_s.value, m.levels[l - 1].latency_s.value);
        EXPECT_GE(m.levels[l].bandwidth_bytes_per_s.value, m.levels[l].core_bandwidth_bytes_per_s.value);
        between(m.levels[l].core_bandwidth_bytes_per_s, 1e8, 1e12);
        between(m.levels[l].core_copy_bandwidth_bytes_per_s, 1e8, 1e12);
    }
    // What stays of a cache that others use, too, is at most all of it, and no less than what the caches below it hold.
    const Machine host = host_machine(16);
    for (std::size_t l = 1; l < m.levels.size(); ++l)
        EXPECT_LE(m.levels[l].capacity_bytes.value, host.levels[l].capacity_bytes.value);
    for (std::size_t l = 2; l < m.levels.size(); ++l)
        EXPECT_GE(m.levels[l - 1].capacity_bytes.value, m.levels[l].capacity_bytes.value);
    ASSERT_EQ(m.levels[1].runs.size(), 5U);
    double share = 0;
    for (const auto& [lines, figure] : m.levels[1].runs) {
        between(figure, std::max(0.01, share), 1);
        share = figure.value;
    }
    between(m.core_nontemporal_copy_bytes_per_s, 1e8, 1e12);
    EXPECT_GE(m.nontemporal_copy_bytes_per_s.value, m.core_nontemporal_copy_bytes_per_s.value);
    // Measured figures are rounded to four digits.
    between(m.nontemporal_from_bytes, 1, m.levels[0].capacity_bytes.value * 1.001);
    const auto again = read_machine(std::make_shared<Source>(Source{"measured.toml", to_toml(m)}));
    ASSERT_TRUE(again.ok()) << render(again.errors());
    EXPECT_EQ(*again, m);
}

TEST(ShortestTimes, KnowsTheShareThatOtherWorkTook) {
    // With 2 ms and 8 ms alternately, two rounds take 10 ms, and 4 ms if both were the shortest. A machine that is busy
    // itself adds to what was taken.
    int calls = 0;
    ShortestTimes times;
    EXPECT_EQ(times.taken(), 0);
    times.add("disturbed", 1e-4,
              [&](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(++calls % 2 == 0 ? 2 : 8)); });
    times.run(0.2);
    EXPECT_GT(times.taken(), 0.5);
    EXPECT_LT(times["disturbed"], 8e-3);
    ShortestTimes rest;
    rest.add("undisturbed", 1e-4, [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
    rest.run(0.2);
    EXPECT_LT(rest.taken(), times.taken());
}

TEST(MeasureMachine, RefusesVectorsThatTheProcessorLacks) {
    const auto machine = measure_machine({.seconds = 0.1, .vector_bytes = 24, .jit = {}});
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.errors()[0].code, "no-vectors");
}

}  // namespace
}  // namespace napkin
