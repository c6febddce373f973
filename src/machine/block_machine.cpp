#include "machine/block_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "machine/figures.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// PTX ISA, setmaxnreg: multiples of 8 from 24 to 256; what a thread of 240 cannot use is left to the compiler. A role
/// that copies has at least 32: with 24 the assembler spills some of its counters and addresses where groups come from
/// a queue.
constexpr std::int64_t fewest_registers = 32, most_registers_of_role = 240, register_step = 8;
/// Registers of a thread that computes which hold no values of tiles: addresses, counters, descriptors. Estimated from
/// the kernels of 3 × 64 rows and 160 registers, and of 4 × 64 rows and 112, that the assembler takes without spilling.
constexpr std::int64_t registers_beside_tiles = 20;

/// Clocks from a multiply-add to one that needs its result: those of Volta (Jia et al. 2018, arXiv:1804.06826).
constexpr double fma_latency_clocks = 4;

std::int64_t in_steps(std::int64_t n) { return n / register_step * register_step; }

}  // namespace

RoleRegisters role_registers(std::int64_t block_registers, std::int64_t computing, std::int64_t copying) {
    constexpr std::int64_t threads = 32, most_at_launch = 248;
    const std::int64_t launch = std::min(in_steps(block_registers / (threads * (computing + copying))), most_at_launch),
                       all = launch * (computing + copying);
    // Where every thread has as many, nothing is to be shared out.
    if (launch >= most_registers_of_role)
        return {static_cast<int>(launch), static_cast<int>(launch), static_cast<int>(launch)};
    const std::int64_t share = std::min(in_steps((all - fewest_registers * copying) / computing), most_registers_of_role);
    const std::int64_t rest = std::max(fewest_registers, in_steps((all - share * computing) / copying));
    return {static_cast<int>(launch), static_cast<int>(share), static_cast<int>(std::min(rest, share))};
}

Machine block_machine(const Machine& gpu, int warps, int blocks_a_core, int producer_warps) {
    internal_check(gpu.kind == MachineKind::gpu && gpu.threads.has_value(), "machine: only a GPU has blocks of warps");
    const ThreadLimits& limits = *gpu.threads;
    const std::size_t core = core_memory_level(gpu);
    Machine out = gpu;
    const double share = blocks_a_core, warp = limits.warp_threads.value;
    const auto derived = [](double value, const std::string& source) { return Figure{value, "derived: " + source}; };

    out.cores.value *= share;
    out.vector_bits = derived(32 * warp, "a value of 32 bits in every thread of a warp");
    const double registers = std::min(limits.registers_a_thread.value,
                                      std::floor(limits.registers_a_core.value / (share * warps * warp)));
    out.vector_registers = derived(
        std::floor(share_of_registers * registers),
        fmt::format("3/4 of a thread's {:.0f} registers, the rest being for addresses and operands", registers));
    if (producer_warps > 0) {
        const int computing = role_registers(static_cast<std::int64_t>(limits.registers_a_core.value / share), warps,
                                             producer_warps)
                                  .computing;
        out.vector_registers = derived(static_cast<double>(computing - registers_beside_tiles),
                                       fmt::format("a thread's {} registers less {}", computing, registers_beside_tiles));
    }
    // Warps that take turns hide from each other what one of them waits for.
    const double turns = std::max(1.0, static_cast<double>(warps) * share / schedulers_a_core);
    out.fma_latency_clocks = estimated(
        fma_latency_clocks / turns * share,
        fmt::format("{} clocks, in which the other warps of the scheduler run", fma_latency_clocks));
    out.issue_per_clock = estimated(schedulers_a_core / share, "one instruction of each of an SM's four schedulers");
    out.beside_factor = estimated_beside();
    out.together_share = derived(1, "blocks have even shares of their core");
    out.sustained_share = derived(1, "the units' sustained rates");
    out.loop_exit_clocks = estimated(16 / turns, "a branch and its latency");
    out.call_clocks = estimated(40, "waiting for each other at a barrier, once a statement");
    out.horizontal_clocks = derived(2 * std::log2(warp) * share,
                                    "a shuffle of 32 lanes and an operation for each halving");
    out.copy_run_clocks = estimated(2, "the address of a run");
    // Rows of an odd length leave no bank conflicts (schedule/arena.cpp).
    out.transpose_clocks = derived(10 * share / (32 * schedulers_a_core),
                                   "some ten instructions a value, of 32 lanes each, one a scheduler and clock");
    out.far_transpose_clocks = out.transpose_clocks;

    out.threads->registers_a_core.value = std::floor(limits.registers_a_core.value / share);
    out.levels.resize(core + 1);
    Level& own = out.levels[core];
    own.capacity_bytes.value = std::floor(limits.block_bytes.value / share) -
                               (blocks_a_core > 1 ? limits.reserved_bytes.value : 0);
    own.instances.value *= share;
    own.bandwidth_bytes_per_s.value /= share;
    own.core_bandwidth_bytes_per_s.value /= share;
    own.merging_cores.value *= share;
    for (Level& level : out.levels)
        if (level.caches && !level.reread_bytes.known())
            level.reread_bytes = estimated(level.capacity_bytes.value / 2,
                                           "half of it, the rest being for what passes through");
    for (Level& level : out.levels)
        if (level.sustained.known()) level.bandwidth_bytes_per_s.value *= level.sustained.value;
    for (Unit& unit : out.units)
        for (auto& [type, rate] : unit.per_clock)
            rate.value *= (unit.sustained.known() ? unit.sustained.value : 1) / share;
    return out;
}

}  // namespace napkin
