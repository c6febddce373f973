#pragma once
// A machine as data: a tree of memory levels joined by pipes (paper.md §2), the units of its cores and what they do in
// a clock. Read from machines/*.toml, a user's file, or the machine at hand; every figure says where it comes from.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algebra/layout.hpp"
#include "machine/register_tile.hpp"
#include "support/dtype.hpp"
#include "support/result.hpp"

namespace napkin {

/// The basis of a figure: a statement of somebody, a measurement of the machine or of one of its kind, or an estimate
/// by a formula or another machine.
enum class Origin : std::uint8_t { stated, measured, estimated };

/// A number and its source: a datasheet, a paper, a measurement with its date, or the formula that estimates it.
struct Figure {
    double value = 0;
    std::string source;
    Origin origin = Origin::stated;
    [[nodiscard]] bool known() const { return !source.empty(); }
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
    Figure sustained;              ///< of a GPU: the share of this bandwidth that programs reach; unknown: all
    /// The share of the rate that is left where data are read in contiguous runs of this many lines (share_of_runs).
    std::map<std::int64_t, Figure> runs;
    /// of a GPU's cache: bytes of tiles that later blocks read again, which it holds while others pass through
    Figure reread_bytes;
    /// L2 request coalescing width of a GPU: this many neighbouring SMs get common data from the level above with one
    /// request. Unknown: each SM has requests of its own.
    Figure merging_cores;
    /// the same pipe as one core sees it, if the others leave all of it; of a GPU unknown: all
    Figure core_bandwidth_bytes_per_s;
    // A CPU's copies within the level above, read and written bytes together, by all cores and by one.
    Figure copy_bandwidth_bytes_per_s;
    Figure core_copy_bandwidth_bytes_per_s;
    /// Holds what passes to the level below and need not hold a group's results: intermediate caching (Theorem 2). In a
    /// file `cache = true`.
    bool caches = false;
    friend bool operator==(const Level&, const Level&) = default;
};

/// Links over which the instances of one level exchange data among themselves: a cross-transfer level (Theorem 3).
struct CrossTransfer {
    std::string name;   ///< "cluster", "NVLink"
    std::string level;  ///< whose instances it joins: "SMEM"; the first level: several devices
    /// what one instance receives, by how many are joined (from 2 on)
    std::map<std::int64_t, Figure> bandwidth_bytes_per_s;
    friend bool operator==(const CrossTransfer&, const CrossTransfer&) = default;
};

/// from, from + step, …, to.
struct IntegerRange {
    std::int64_t from = 1, to = 1, step = 1;
    friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// A type in which an instruction adds products.
struct Accumulator {
    DType type = DType::f32;
    /// significant ones that a sum keeps while the instruction adds to it; unknown: all that the type has
    Figure bits;
    friend bool operator==(const Accumulator&, const Accumulator&) = default;
};

/// An instruction that multiplies an m×k tile by a k×n tile and adds to m×n.
struct Instruction {
    std::string name;                 ///< "wgmma", "mma", "mfma"
    std::string unit;                 ///< the unit that runs it: "tensor"
    std::int64_t threads = 32;        ///< that issue it together
    IntegerRange m, n;                ///< the sizes it takes
    std::map<DType, std::int64_t> k;  ///< by the operands' type
    /// by the operands' type, one at least for each of k's, each type once
    std::map<DType, std::vector<Accumulator>> accumulators;
    /// Who has A, B or D in registers: (lane, value) → row + rows · column, of one warp; other warps of the instruction
    /// have the rows below. Values of D are numbers, those of A and B words of 4 bytes along k. B's rows are its
    /// columns in the product. None: it is not in registers, or nothing is known of them.
    std::optional<layouts::Layout> a, b, d;
    bool a_in_shared = false, b_in_shared = false;  ///< it may be a tile in shared memory
    std::vector<DType> either_major;  ///< types whose operands may be contiguous along k or along the other axis
    std::vector<DType> mixed;         ///< types of which A and B may have different ones (multiplies)
    Figure overhead_clocks;           ///< on top of its work, when waited for at once; 0 where it is not known
    Figure sustained;                 ///< the share of what its unit sustains that it reaches; unknown: all
    std::string source;

    std::optional<RegisterTile> tile;  ///< what follows from D; none: kernels are not written for it
    std::vector<DType> result_types;   ///< types in which results are A as they lie, once they are rounded
    /// Finds these two. Pre: the other members are read.
    void find_tile();
    friend bool operator==(const Instruction&, const Instruction&) = default;
};
/// Whether sums of its products of operands of one type are of the other. Pre: it multiplies the operands' type.
bool adds_in(const Instruction& instruction, DType operands, DType sum);
/// Whether it multiplies A and B of these types: one type, or two of Instruction::mixed that are both real or both not.
bool multiplies(const Instruction& instruction, DType a, DType b);

/// An instruction of a GPU that moves values between two levels, or between the threads of a warp: from the registers
/// to the registers. Loads and stores by single threads are no entries: every GPU has them.
struct CopyInstruction {
    std::string name;             ///< "cp.async.bulk.tensor", "ldmatrix", "shfl"
    std::string from, to;         ///< names of levels
    std::int64_t threads = 1;     ///< that issue it together
    std::int64_t bytes = 1;       ///< it moves a multiple of these, from and to multiples of these
    std::int64_t dimensions = 1;  ///< of the boxes that it moves, at most; 1: it moves bytes that lie beside each other
    std::int64_t box = 0;         ///< values of a box along each dimension, at most; 0: it moves no boxes
    Figure latency_clocks;        ///< until what it moves can be used; unknown: as the levels say
    Figure cached_latency_clocks;  ///< the same of what the cache above its level has; unknown: as of all
    /// the same while all cores copy as fast as they can; unknown: no longer than of all
    Figure loaded_latency_clocks;
    std::string source;
    friend bool operator==(const CopyInstruction&, const CopyInstruction&) = default;
};

/// What a GPU's core (SM, compute unit) hands out to blocks of threads.
struct ThreadLimits {
    Figure warp_threads;   ///< threads in a warp (32; 64 on CDNA)
    Figure warps_a_core;   ///< resident
    Figure blocks_a_core;  ///< resident
    Figure threads_a_block;
    Figure registers_a_core;  ///< of 32 bits
    Figure registers_a_thread;
    Figure register_unit;  ///< registers are handed to a warp in multiples of this
    /// of 32 bits: registers, where the others hold addresses and operands on their way, or a memory for them
    Figure accumulators_a_core;
    Figure block_bytes;     ///< of the core's memory that one block may use
    Figure reserved_bytes;  ///< of the core's memory, for every block, on top of what it asks for
    friend bool operator==(const ThreadLimits&, const ThreadLimits&) = default;
};

/// A unit of a core and its rate: operations a clock by type. All but "tensor" and "dot" count values.
struct Unit {
    /// The kind of operation, one of
    /// - an operation kind of tile/work.hpp, or "exp_nonpositive" (schedule/maxima.hpp);
    /// - "max" (and minimum, which keep NaN);
    /// - "load", "store", "broadcast" (one value loaded into all lanes);
    /// - "widen" and "narrow" (conversion of a storage type as it is loaded and stored);
    /// - "tensor", which counts multiply-adds, as "fma" does;
    /// - "dot" of a CPU, which counts them too, by the operands' type: its lanes add up several products
    ///   (schedule/lane_product.hpp).
    std::string name;
    std::map<DType, Figure> per_clock;
    Figure sustained;  ///< of a GPU: the share of these rates that programs reach; unknown: all
    friend bool operator==(const Unit&, const Unit&) = default;
};

struct Machine {
    std::string name;  ///< as load_machine finds it
    std::string description;
    MachineKind kind = MachineKind::cpu;
    /// of a GPU: what its code is compiled for, such as "sm_90a"; empty where its file does not say
    std::string architecture;
    Figure clock_hz;  ///< at which the datasheet's rates hold
    Figure cores;     ///< of a GPU: SMs or compute units
    // ---- of a CPU's core
    Figure vector_bits;
    Figure vector_registers;
    Figure fma_latency_clocks;
    Figure issue_per_clock;  ///< instructions that the front end hands on
    /// of two equally busy pipes that work at the same time: how much longer they take than one of them alone
    Figure beside_factor;
    Figure together_share;  ///< of its rates that a core sustains while all others compute as well
    /// the share of the time in which the cores compute at these rates; other work and the host take the rest
    Figure sustained_share;
    Figure loop_exit_clocks;      ///< leaving a short loop whose end is mispredicted
    Figure call_clocks;           ///< calling a function that is not inlined
    Figure horizontal_clocks;     ///< reducing a vector of f32 to one value
    Figure copy_run_clocks;       ///< beginning a contiguous run in the copy of a tile
    Figure transpose_clocks;      ///< a value of f32, copied with neighbours in a column becoming neighbours in a row
    Figure far_transpose_clocks;  ///< the same where a column's step is a page or more
    // Stores past the caches (non-temporal ones) read no line before they write it, and leave none behind for who reads
    // it next.
    Figure nontemporal_copy_bytes_per_s;       ///< copies in memory with such stores, read and written bytes, all cores
    Figure core_nontemporal_copy_bytes_per_s;  ///< of one core alone
    Figure nontemporal_from_bytes;  ///< read and written together, from which such copies are the faster ones
    // ---- of all machines
    Figure line_bytes;    ///< what a coalesced access moves between levels
    Figure sector_bytes;  ///< the least that moves; the line where a file does not say
    Figure launch_s;      ///< from calling a kernel on all cores to the first group running
    Figure group_s;       ///< handing out one group to a core
    /// Seconds for two CTAs to hand over a split tile, without the data. Unknown: splitting is not known to be worth
    /// it.
    Figure meeting_s;
    /// Clocks of a core for each sector of which one store writes only a part. Unknown: as for whole sectors.
    Figure partial_store_clocks;
    std::vector<Level> levels;  ///< from the largest memory to the one nearest to the core
    std::vector<Unit> units;
    std::vector<CrossTransfer> cross_transfers;
    std::vector<Instruction> instructions;
    std::vector<CopyInstruction> copies;
    std::optional<ThreadLimits> threads;  ///< of a GPU
    Figure power_watts;                   ///< at full load; may be unknown, as the price
    Figure price_usd_per_hour;            ///< rent
    friend bool operator==(const Machine&, const Machine&) = default;

    [[nodiscard]] std::int64_t num_cores() const { return static_cast<std::int64_t>(cores.value); }
    /// Values of the type in one vector; a GPU's warp has one in every thread.
    [[nodiscard]] std::int64_t lanes(DType type) const {
        if (kind == MachineKind::gpu) return threads ? static_cast<std::int64_t>(threads->warp_threads.value) : 1;
        return static_cast<std::int64_t>(vector_bits.value) / (8 * bytes(type));
    }
};

/// Operations of the unit in one clock of one core. What the machine does not name is estimated from its rate of fused
/// multiply-adds: a special function takes as many of them as a polynomial of its accuracy. A GPU's narrow types run at
/// the rate of f32 where they have none of their own. The units "tensor" and "dot" are never estimated: they are 0
/// where the machine has none for the type.
double per_clock(const Machine& machine, const std::string& unit, DType type);

/// The index of the level in which a core keeps its working set: the largest level of which every core has its own. It
/// is the ℓ1 whose capacity limits M. If every level is shared, it is the last one.
std::size_t core_memory_level(const Machine& machine);
/// Bytes of a level that one core may use. The capacity is shared evenly if several cores share an instance, and added
/// up if a core has several.
double bytes_a_core(const Machine& machine, std::size_t level);
/// The part of bytes_a_core that may hold tiles. On a CPU it is three quarters, since code, stacks and lines in flight
/// take the rest. A GPU's shared memory has nothing else in it.
double tile_bytes_a_core(const Machine& machine, std::size_t level);

/// The share of a unit's nominal rate that programs reach: 1 where the file does not say.
double sustained_rate_of(const Machine& machine, std::string_view unit);

/// The share of its rate that the pipe into the level keeps where data are read in contiguous runs of `lines` lines. It
/// is interpolated between the level's figures along the logarithm of the lines. Behind the last figure, the loss
/// halves with each doubling. It is 1 where the level has no figures.
double share_of_runs(const Level& level, double lines);

/// The machine at hand, from hwloc and the processor's own description, for code with vectors of so many bytes (0: the
/// widest). It is deterministic, as nothing is timed. What a timing would tell is estimated, and its source says so.
Machine host_machine(int vector_bytes = 0);

/// Loads one of
/// - "host" or "": the machine at hand, as `napkin machines measure` found it, or as host_machine() describes it;
/// - "host-128" to "host-512": the same for code with vectors of so many bits;
/// - a built-in machine by name;
/// - a file by path: a name with a '/' or ending in ".toml".
/// Nothing is timed. Errors: unknown-machine (nearest names), unreadable-file, and those of read_machine.
Result<Machine> load_machine(const std::string& name_or_path);
/// The names that load_machine knows: "host" and the built-in machines.
std::vector<std::string> machine_names();

/// Errors, with line and key: bad-toml, unknown-key (nearest key), missing-key, bad-value (with the unit expected),
/// missing-source, impossible-figure (why no such machine exists).
Result<Machine> read_machine(std::shared_ptr<const Source> text);
/// The machine as a file that read_machine reads back to the same machine.
std::string to_toml(const Machine& machine);

}  // namespace napkin
