#include "machine/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/quantity.hpp"
#include "support/ids.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

Diagnostic bad_block(std::string message, std::string expected) {
    return Diagnostic{.code = "bad-block", .message = std::move(message), .expected = std::move(expected)};
}

std::int64_t whole(const Figure& figure) { return static_cast<std::int64_t>(figure.value); }

/// Register files of a core: the last level's, where that is nearer than the memory that blocks share.
std::int64_t register_files(const Machine& machine) {
    const std::size_t last = machine.levels.size() - 1;
    if (last == core_memory_level(machine)) return 1;
    return std::max<std::int64_t>(1, whole(machine.levels[last].instances) / machine.num_cores());
}

std::string bytes_text(std::int64_t bytes) { return quantity_text(static_cast<double>(bytes), Dimension::bytes); }

std::vector<Diagnostic> faults(const Machine& machine, const ThreadLimits& limits, const BlockShape& block) {
    std::vector<Diagnostic> out;
    const std::int64_t most_threads = whole(limits.threads_a_block), most_registers = whole(limits.registers_a_thread),
                       most_bytes = whole(limits.block_bytes);
    if (block.threads < 1 || block.threads > most_threads)
        out.push_back(bad_block(fmt::format("a block of {} threads on {}", block.threads, machine.name),
                                fmt::format("1 to {} threads", most_threads)));
    if (block.registers_a_thread < 0 || block.registers_a_thread > most_registers)
        out.push_back(bad_block(fmt::format("{} registers a thread on {}", block.registers_a_thread, machine.name),
                                fmt::format("0 to {} registers", most_registers)));
    if (block.bytes < 0 || block.bytes > most_bytes)
        out.push_back(bad_block(fmt::format("{} of memory for a block on {}", bytes_text(block.bytes), machine.name),
                                fmt::format("0 B to {}", bytes_text(most_bytes))));
    return out;
}

}  // namespace

std::string_view name(OccupancyLimit limit) {
    switch (limit) {
        case OccupancyLimit::blocks: return "blocks a core";
        case OccupancyLimit::warps: return "warps a core";
        case OccupancyLimit::registers: return "registers";
        case OccupancyLimit::memory: return "memory";
    }
    throw InternalError("unknown limit of occupancy");
}

Result<Occupancy> occupancy(const Machine& machine, const BlockShape& block) {
    if (!machine.threads) {
        return Diagnostic{.code = "no-thread-limits",
                          .message = fmt::format("{} has no blocks of threads: it is a CPU", machine.name),
                          .expected = "a machine of kind \"gpu\""};
    }
    const ThreadLimits& limits = *machine.threads;
    if (auto errors = faults(machine, limits, block); !errors.empty()) return errors;

    Occupancy out;
    const std::int64_t warp = whole(limits.warp_threads);
    out.warps_a_block = (block.threads + warp - 1) / warp;
    const std::int64_t registers_a_warp = round_up(block.registers_a_thread * warp, whole(limits.register_unit));
    // A core's memory is what its programs may use and what one block's reserve takes beside that.
    const auto memory = static_cast<std::int64_t>(bytes_a_core(machine, core_memory_level(machine))) +
                        whole(limits.reserved_bytes);
    const std::int64_t bytes_a_block = block.bytes + whole(limits.reserved_bytes);
    out.allowed[0] = whole(limits.blocks_a_core);
    out.allowed[1] = whole(limits.warps_a_core) / out.warps_a_block;
    // A warp lies in one of the core's register files, and a block's warps are dealt out evenly over them.
    const std::int64_t files = register_files(machine);
    out.allowed[2] = registers_a_warp == 0 ? -1
                                           : whole(limits.registers_a_core) / files / registers_a_warp * files /
                                                 round_up(out.warps_a_block, files);
    out.allowed[3] = bytes_a_block == 0 ? -1 : memory / bytes_a_block;
    out.blocks = out.allowed[0];
    out.limit = OccupancyLimit::blocks;
    for (const OccupancyLimit limit : {OccupancyLimit::warps, OccupancyLimit::registers, OccupancyLimit::memory}) {
        const std::int64_t allowed = out.allowed[at(limit)];
        if (allowed < 0 || allowed >= out.blocks) continue;
        out.blocks = allowed;
        out.limit = limit;
    }
    if (out.blocks == 0)
        return bad_block(fmt::format("{} threads with {} registers each need {} registers, and a core of {} has {}",
                                     block.threads, block.registers_a_thread, registers_a_warp * out.warps_a_block,
                                     machine.name, whole(limits.registers_a_core)),
                         "fewer threads or registers");
    out.active_warps = out.blocks * out.warps_a_block;
    out.occupancy = static_cast<double>(out.active_warps) / limits.warps_a_core.value;
    return out;
}

}  // namespace napkin
