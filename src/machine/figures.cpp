#include "machine/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace napkin {

std::span<const FigureKey<Machine>> machine_figures() {
    using enum Dimension;
    using M = Machine;
    static constexpr FigureKey<Machine> table[] = {
        {"clock", "clock_hz", &M::clock_hz, hertz},
        {"cores", "cores", &M::cores, number, Need::always, 1, 1e6},
        {"vector_bits", "vector_bits", &M::vector_bits, number, Need::of_cpus},
        {"vector_registers", "vector_registers", &M::vector_registers, number, Need::of_cpus, 4, 4096},
        {"fma_latency", "fma_latency_clocks", &M::fma_latency_clocks, number, Need::of_cpus},
        {"issue", "issue_per_clock", &M::issue_per_clock, number, Need::never},
        {"beside", "beside_factor", &M::beside_factor, number, Need::never},
        {"together", "together_share", &M::together_share, number, Need::never},
        {"sustained", "sustained_share", &M::sustained_share, number, Need::never},
        {"loop_exit", "loop_exit_clocks", &M::loop_exit_clocks, number, Need::never, 0, 0, true},
        {"call", "call_clocks", &M::call_clocks, number, Need::never, 0, 0, true},
        {"horizontal", "horizontal_clocks", &M::horizontal_clocks, number, Need::never, 0, 0, true},
        {"copy_run", "copy_run_clocks", &M::copy_run_clocks, number, Need::never, 0, 0, true},
        {"transpose", "transpose_clocks", &M::transpose_clocks, number, Need::never},
        {"far_transpose", "far_transpose_clocks", &M::far_transpose_clocks, number, Need::never},
        {"nontemporal_copy", "nontemporal_copy_bytes_per_s", &M::nontemporal_copy_bytes_per_s, bytes_per_s, Need::never},
        {"core_nontemporal_copy", "core_nontemporal_copy_bytes_per_s", &M::core_nontemporal_copy_bytes_per_s,
         bytes_per_s, Need::never},
        {"nontemporal_from", "nontemporal_from_bytes", &M::nontemporal_from_bytes, bytes, Need::never},
        {"line", "line_bytes", &M::line_bytes, bytes},
        {"sector", "sector_bytes", &M::sector_bytes, bytes, Need::never},
        {"launch", "launch_s", &M::launch_s, seconds},
        {"group", "group_s", &M::group_s, seconds},
        {"meeting", "meeting_s", &M::meeting_s, seconds, Need::never},
        {"partial_store", "partial_store_clocks", &M::partial_store_clocks, number, Need::never},
        {"power", "power_watts", &M::power_watts, watts, Need::never},
        {"price", "price_usd_per_hour", &M::price_usd_per_hour, usd_per_hour, Need::never},
    };
    return table;
}

std::span<const FigureKey<Level>> level_figures() {
    using enum Dimension;
    static constexpr FigureKey<Level> table[] = {
        {"capacity", "capacity_bytes", &Level::capacity_bytes, bytes},
        {"instances", "instances", &Level::instances, number, Need::always, 1, 1e6},
        {"core_bandwidth", "core_bandwidth_bytes_per_s", &Level::core_bandwidth_bytes_per_s, bytes_per_s, Need::never},
        {"copy_bandwidth", "copy_bandwidth_bytes_per_s", &Level::copy_bandwidth_bytes_per_s, bytes_per_s, Need::never},
        {"core_copy_bandwidth", "core_copy_bandwidth_bytes_per_s", &Level::core_copy_bandwidth_bytes_per_s, bytes_per_s,
         Need::never},
        {"latency", "latency_s", &Level::latency_s, seconds},
        {"sustained", "sustained_share", &Level::sustained, number, Need::never},
        {"reread", "reread_bytes", &Level::reread_bytes, bytes, Need::never},
        {"merging_cores", "merging_cores", &Level::merging_cores, number, Need::never, 1, 1e6},
    };
    return table;
}

std::span<const FigureKey<ThreadLimits>> thread_figures() {
    using T = ThreadLimits;
    constexpr auto count = Dimension::number, size = Dimension::bytes;
    static constexpr FigureKey<ThreadLimits> table[] = {
        {"warp_threads", "warp_threads", &T::warp_threads, count, Need::always, 1, 1024},
        {"warps_a_core", "warps_a_core", &T::warps_a_core, count, Need::always, 1, 1024},
        {"blocks_a_core", "blocks_a_core", &T::blocks_a_core, count, Need::always, 1, 1024},
        {"threads_a_block", "threads_a_block", &T::threads_a_block, count, Need::always, 1, 65536},
        {"registers_a_core", "registers_a_core", &T::registers_a_core, count, Need::always, 1, 1 << 24},
        {"registers_a_thread", "registers_a_thread", &T::registers_a_thread, count, Need::always, 1, 65536},
        {"register_unit", "register_unit", &T::register_unit, count, Need::always, 1, 65536},
        {"accumulators_a_core", "accumulators_a_core", &T::accumulators_a_core, count, Need::never, 1, 1 << 24},
        {"block_memory", "block_bytes", &T::block_bytes, size},
        {"reserved_memory", "reserved_bytes", &T::reserved_bytes, size, Need::always, 0, 0, true},
    };
    return table;
}

Origin origin_of(std::string_view source) {
    return source.starts_with("measured")    ? Origin::measured
           : source.starts_with("estimated") ? Origin::estimated
                                             : Origin::stated;
}

Figure estimated(double value, const std::string& formula) {
    return {value, "estimated: " + formula, Origin::estimated};
}

Figure estimated_beside() {
    return estimated(1.19, "the fourth root of 2: the fourth powers of the pipes' times add up");
}

namespace {

void estimate(Figure& figure, double value, const std::string& formula) {
    if (!figure.known()) figure = estimated(value, formula);
}

/// Cache lines that a core of a CPU waits for at a time, with its prefetchers and by its own loads alone. They were
/// found by `napkin machines measure`: a core of one Zen 5 reads runs of up to 4 lines at 0.34 to 0.40 of its rate.
/// That is 12 of 32 lines (2026-11-25, nine times).
constexpr double lines_in_flight = 32, lines_of_loads = 12;
/// Lines of a row before prefetchers run ahead of its loads, from the same measurements.
constexpr std::int64_t lines_until_prefetched = 4;

/// The pipe into level l of a CPU, as one core sees it and as copies see it.
void complete_pipe(Machine& machine, std::size_t l) {
    Level& level = machine.levels[l];
    const double all = level.bandwidth_bytes_per_s.value, sharing = machine.cores.value / level.instances.value;
    const double latency = machine.levels[l - 1].latency_s.value;
    if (sharing <= 1)
        estimate(level.core_bandwidth_bytes_per_s, all, "the instance is one core's");
    else
        estimate(level.core_bandwidth_bytes_per_s,
                 std::min(all, latency > 0 ? lines_in_flight * machine.line_bytes.value / latency : all),
                 fmt::format("{} lines in flight over the latency of {}, at most the whole rate", lines_in_flight,
                             machine.levels[l - 1].name));
    estimate(level.copy_bandwidth_bytes_per_s, all, "as loads alone");
    estimate(level.core_copy_bandwidth_bytes_per_s, level.core_bandwidth_bytes_per_s.value, "as loads alone");
}

/// What the loads of all cores get of the memory's rate where no prefetcher helps them, if that is less than all of it.
void complete_runs(const Machine& machine, Level& outermost) {
    const double latency = machine.levels[0].latency_s.value, all = outermost.bandwidth_bytes_per_s.value,
                 cores = machine.cores.value / outermost.instances.value;
    if (!outermost.runs.empty() || !(latency > 0) || !(all > 0)) return;
    const double share = cores * lines_of_loads * machine.line_bytes.value / latency / all;
    if (share < 1)
        outermost.runs[lines_until_prefetched] = estimated(
            share, fmt::format("{} lines in flight a core without prefetchers, over the latency of {}", lines_of_loads,
                               machine.levels[0].name));
}

}  // namespace

Machine middle_of(const std::vector<Machine>& measurements) {
    Machine out = measurements.front();
    // `of` finds the figure in each of the machines.
    const auto take_middle = [&](const auto& of) {
        std::vector<const Figure*> figures;
        for (const Machine& machine : measurements) figures.push_back(&of(machine));
        const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
        std::nth_element(figures.begin(), middle, figures.end(),
                         [](const Figure* a, const Figure* b) { return a->value < b->value; });
        of(out) = **middle;
    };
    for (const FigureKey<Machine>& key : machine_figures())
        take_middle([&](auto& m) -> auto& { return m.*key.figure; });
    for (std::size_t l = 0; l < out.levels.size(); ++l) {
        for (const FigureKey<Level>& key : level_figures())
            take_middle([&](auto& m) -> auto& { return m.levels[l].*key.figure; });
        take_middle([&](auto& m) -> auto& { return m.levels[l].bandwidth_bytes_per_s; });
        for (const auto& run : measurements.front().levels[l].runs)
            take_middle([&](auto& m) -> auto& { return m.levels[l].runs.at(run.first); });
    }
    for (std::size_t u = 0; u < out.units.size(); ++u)
        for (const auto& rate : measurements.front().units[u].per_clock)
            take_middle([&](auto& m) -> auto& { return m.units[u].per_clock.at(rate.first); });
    return out;
}

void complete_figures(Machine& machine) {
    if (!machine.sector_bytes.known()) machine.sector_bytes = machine.line_bytes;
    if (machine.threads)
        estimate(machine.threads->accumulators_a_core, std::floor(0.75 * machine.threads->registers_a_core.value),
                 "3/4 of the registers: three warpgroups of 64 rows with results 128 wide fill them");
    if (machine.kind != MachineKind::cpu) return;
    const auto lanes = static_cast<double>(machine.lanes(DType::f32));
    estimate(machine.issue_per_clock, 4, "4 instructions a clock on processors since 2015");
    if (!machine.beside_factor.known()) machine.beside_factor = estimated_beside();
    estimate(machine.together_share, 1, "cores have units of their own and one clock");
    estimate(machine.sustained_share, 1, "nothing else runs on the computer");
    estimate(machine.loop_exit_clocks, 16, "a mispredicted branch takes 15 to 20 clocks");
    estimate(machine.call_clocks, 5, "a call, a return and the registers that they save");
    estimate(machine.horizontal_clocks, 2 * std::log2(lanes), "2 clocks for each halving of a vector");
    estimate(machine.copy_run_clocks, 4, "4 clocks to begin a contiguous run");
    estimate(machine.transpose_clocks, 0.6, "log2(lanes) permutations for each vector, one or two a clock");
    estimate(machine.far_transpose_clocks, 2, "lanes that lie pages apart miss the address translation");
    for (std::size_t l = 1; l < machine.levels.size(); ++l) complete_pipe(machine, l);
    if (machine.levels.size() < 2) return;
    Level& outermost = machine.levels[1];
    complete_runs(machine, outermost);
    estimate(machine.nontemporal_copy_bytes_per_s, outermost.copy_bandwidth_bytes_per_s.value, "as other copies");
    estimate(machine.core_nontemporal_copy_bytes_per_s,
             std::round(outermost.core_copy_bandwidth_bytes_per_s.value / 1e7) * 1e7, "as other copies, in 10 MB/s");
    estimate(machine.nontemporal_from_bytes, outermost.capacity_bytes.value * outermost.instances.value,
             "what the outermost caches hold");
}

}  // namespace napkin
