#pragma once
// A machine as data: a tree of memory levels joined by pipes (paper.md §2), the units of its cores and what they do in a clock.
// Read from machines/*.toml, a user's file, or the machine at hand; every figure says where it comes from.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/dtype.hpp"
#include "support/result.hpp"

namespace napkin {

/// A number and its source: a datasheet, a paper, a measurement with its date, or the formula that estimates it.
struct Figure {
    double value = 0;
    std::string source;
    friend bool operator==(const Figure&, const Figure&) = default;
};

enum class MachineKind : std::uint8_t { cpu, gpu };

/// A memory level. `instances` of it share the machine's cores evenly; the pipe joins one instance to the level above.
struct Level {
    std::string name;       ///< "DRAM", "L3", "L2", "L1"; "GMEM", "L2", "SMEM", "registers"
    Figure capacity_bytes;  ///< of one instance: what a program may use of it
    Figure instances;
    Figure bandwidth_bytes_per_s;  ///< from the level above into one instance; 0 for the first level
    Figure latency_s;              ///< of a load that this level serves
    /// Holds what passes to the level below and need not hold a group's results: intermediate caching (Theorem 2). In a file `cache = true`.
    bool caches = false;
    friend bool operator==(const Level&, const Level&) = default;
};

/// Links over which the instances of one level exchange data among themselves: a cross-transfer level (Theorem 3).
struct CrossTransfer {
    std::string name;   ///< "cluster", "NVLink"
    std::string level;  ///< whose instances it joins: "SMEM"; the first level: several devices
    std::map<std::int64_t, Figure> bandwidth_bytes_per_s;  ///< what one instance receives, by how many are joined (from 2 on)
    friend bool operator==(const CrossTransfer&, const CrossTransfer&) = default;
};

/// from, from + step, …, to.
struct IntegerRange {
    std::int64_t from = 1, to = 1, step = 1;
    friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// An instruction that multiplies an m×k tile by a k×n tile and adds to m×n.
struct Instruction {
    std::string name;                 ///< "wgmma", "mma", "mfma"
    std::string unit;                 ///< the unit that runs it: "tensor"
    std::int64_t threads = 32;        ///< that issue it together
    IntegerRange m, n;                ///< the sizes it takes
    std::map<DType, std::int64_t> k;  ///< by the operands' type
    Figure overhead_clocks;           ///< on top of its work, when waited for at once; 0 where it is not known
    std::string source;
    friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// What a GPU's core (SM, compute unit) hands out to blocks of threads.
struct ThreadLimits {
    Figure warp_threads;   ///< threads in a warp (32; 64 on CDNA)
    Figure warps_a_core;   ///< resident
    Figure blocks_a_core;  ///< resident
    Figure threads_a_block;
    Figure registers_a_core;  ///< of 32 bits
    Figure registers_a_thread;
    Figure register_unit;   ///< registers are handed to a warp in multiples of this
    Figure block_bytes;     ///< of the core's memory that one block may use
    Figure reserved_bytes;  ///< of the core's memory, for every block, on top of what it asks for
    friend bool operator==(const ThreadLimits&, const ThreadLimits&) = default;
};

/// A unit of a core and its rate: operations a clock by type. "fma", "simple", "load" and "store" count values.
struct Unit {
    std::string name;  ///< an operation kind of cost/work.hpp, "load", "store", …; "tensor" counts multiply-adds, as "fma" does
    std::map<DType, Figure> per_clock;
    friend bool operator==(const Unit&, const Unit&) = default;
};

struct Machine {
    std::string name;  ///< as load_machine finds it
    std::string description;
    MachineKind kind = MachineKind::cpu;
    Figure clock_hz;     ///< at which the datasheet's rates hold
    Figure cores;        ///< of a GPU: SMs or compute units
    Figure vector_bits;  ///< of a CPU, as the next two
    Figure vector_registers;
    Figure fma_latency_clocks;
    Figure line_bytes;          ///< what a coalesced access moves between levels
    Figure sector_bytes;        ///< the least that moves; the line where a file does not say
    Figure launch_s;            ///< from calling a kernel on all cores to the first group running
    Figure group_s;             ///< handing out one group to a core
    std::vector<Level> levels;  ///< from the largest memory to the one nearest to the core
    std::vector<Unit> units;
    std::vector<CrossTransfer> cross_transfers;
    std::vector<Instruction> instructions;
    std::optional<ThreadLimits> threads;       ///< of a GPU
    std::optional<Figure> power_watts;         ///< at full load
    std::optional<Figure> price_usd_per_hour;  ///< rent
    friend bool operator==(const Machine&, const Machine&) = default;

    [[nodiscard]] std::int64_t num_cores() const { return static_cast<std::int64_t>(cores.value); }
    /// Values of the type in one vector.
    [[nodiscard]] std::int64_t lanes(DType type) const {
        return static_cast<std::int64_t>(vector_bits.value) / (8 * bytes(type));
    }
};

/// Operations of the unit in one clock of one core. What the machine does not name is estimated from its rate of fused
/// multiply-adds: a special function takes as many of them as a polynomial of its accuracy does. A GPU's narrow types run
/// at the rate of f32 where they have none of their own. "tensor" is never estimated: 0 where the machine has none for the type.
double per_clock(const Machine& machine, const std::string& unit, DType type);

/// The level in which a core keeps what it works on: the largest of which every core has its own (index into levels).
/// It is the ℓ1 whose capacity limits M. Where every level is shared, the last one.
std::size_t core_memory_level(const Machine& machine);
/// What one core may use of a level: its capacity, shared evenly where several cores share an instance, and taken together where a
/// core has several.
double bytes_a_core(const Machine& machine, std::size_t level);

/// The machine at hand, from hwloc and the processor's own description. Deterministic: nothing is timed, and the clock is what the
/// system says, which may be below what the core reaches. `clock_hz` replaces it, as measured_clock_hz() gives it.
Machine host_machine(std::optional<double> clock_hz = std::nullopt);
/// The clock that one core runs at now, from a chain of dependent additions (about a millisecond).
double measured_clock_hz();

/// "host" (or nothing: the machine at hand), a built-in machine by name, or a file by path (a name with a '/' or ending in ".toml").
/// Errors: unknown-machine (nearest names), unreadable-file, and those of read_machine.
Result<Machine> load_machine(const std::string& name_or_path);
/// The names that load_machine knows: "host" and the built-in machines.
std::vector<std::string> machine_names();

/// Errors, with line and key: bad-toml, unknown-key (nearest key), missing-key, bad-value (with the unit expected), missing-source,
/// impossible-figure (why no such machine exists).
Result<Machine> read_machine(std::shared_ptr<const Source> text);
/// The machine as a file that read_machine reads back to the same machine.
std::string to_toml(const Machine& machine);

}  // namespace napkin
