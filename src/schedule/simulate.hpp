#pragma once
// The simulator: the time that a scheduled kernel takes on a machine. It is the only time model of a CPU; nothing is
// run or tuned.
//
// A core runs statement after statement, each as its atom says. The pipes that a statement uses (arithmetic, loads,
// stores, the cache behind L1) work in parallel. They also overlap the levels above, from which its tile comes or into
// which it goes. Tiles of one class (full, ragged) take the same time and are simulated once. Rates and latencies are
// figures of the machine.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"
#include "schedule/iteration_clocks.hpp"
#include "schedule/scheduled.hpp"
#include "schedule/time_terms.hpp"
#include "tile/exact.hpp"
#include "tile/work.hpp"

namespace napkin {

struct MmaProduct;
struct StreamK;

/// What keeps the core or a pipe busy, and for how long.
struct Busy {
    std::string what;  ///< "tensor", "fma", "exp", "loads", "copies", "L3 to L2", …
    double seconds = 0;
};

/// Bytes that cross from one level of memory to the next below it, and back, over the whole kernel.
struct Traffic {
    std::string path;  ///< "L2 to SMEM"
    double loaded_bytes = 0, stored_bytes = 0;
};

/// Clocks from issuing the copy of an operand's tile in a loop until the tile is there: the latency (`answer`), and the
/// copy itself.
struct CopyClocks {
    VariableId operand = -1;
    double answer = 0, copy = 0;
};

struct Simulation {
    double seconds = 0;
    double core_seconds = 0;  ///< without waits for the levels above the core's memory
    /// wave quantization factor: how much longer it takes as cores have unequal numbers of tiles
    double waves = 1;
    double transfers = 0;  ///< H of the paper, in values
    std::int64_t groups = 1;
    double launch_seconds = 0;            ///< the part of `seconds` until the first output tile runs
    std::vector<Busy> busy;               ///< longest first
    std::vector<Traffic> traffic;         ///< by level, outermost first
    std::vector<CopyClocks> copies = {};  ///< of the producer warps; what is kept of a plan has none
    std::vector<TimeTerm> terms = {};     ///< whose sum is `seconds`; only of Simulator::explain
    /// The busiest unit or pipe, where it is busy for half of the time or more. Else what waits, starts and runs one
    /// after the other takes most of the time, and less work for that unit may change nothing.
    [[nodiscard]] std::string bound_by() const {
        return 2 * busy.front().seconds >= seconds ? busy.front().what : "no unit alone";
    }
};

/// Bytes in a row in memory of what a load or a store moves at a time.
double contiguous_bytes(const ScheduledKernel& kernel, const Step& transfer);
/// Bytes that cross the pipe above the core's memory for one byte of a tile: each contiguous segment takes whole lines.
double line_waste(double contiguous_bytes, double line_bytes);

/// Everything about a kernel on a machine that does not depend on its schedule. Simulations of many schedules share it.
class Simulator {
public:
    /// `tiles`: the kernel's tile program, with numbers in place of sizes. `known`: counts of the kernel, which outlive
    /// this object.
    Simulator(const Derived& derived, const Kernel& kernel, const TileKernel& tiles, const Extents& extents,
              const Machine& machine, KnownCounts* known = nullptr);
    Simulator(const Simulator&) = delete;  // parts of it point to others
    Simulator& operator=(const Simulator&) = delete;

    /// `walk_limit` as TileCounter has it.
    [[nodiscard]] Simulation run(const ScheduledKernel& kernel, std::int64_t threads,
                                 std::int64_t walk_limit = std::int64_t{1} << 22) const;
    /// `run` with terms.
    [[nodiscard]] Simulation explain(const ScheduledKernel& kernel, std::int64_t threads) const;

    /// Clocks of one iteration of a loop on tensor cores, in a full tile. Pre: the places are applied.
    [[nodiscard]] IterationClocks iteration_clocks(const ScheduledKernel& kernel, const ScheduledLoop& loop) const;
    /// Clocks of one iteration of all warpgroups that share an SM: the initiation interval. A warpgroup that has the SM
    /// for itself takes `pace`. Units are shared as in `run`, which also counts copies.
    [[nodiscard]] double interval(const ScheduledKernel& kernel, const IterationClocks& turn, double pace) const;

    [[nodiscard]] static std::string name_of_tensor_core(const ScheduledKernel& k);

    /// Everything loaded or stored carries the axis: cutting it into tiles saves no transfers.
    [[nodiscard]] bool carried_by_all_memory(AxisId axis) const;
    [[nodiscard]] const Machine& machine() const { return machine_; }
    [[nodiscard]] const std::vector<StatementWork>& work() const { return work_; }
    [[nodiscard]] const Liveness& live() const { return live_; }
    [[nodiscard]] const Kernel& kernel() const { return kernel_; }
    [[nodiscard]] const Derived& derived() const { return derived_; }
    [[nodiscard]] const Extents& extents() const { return extents_; }
    [[nodiscard]] std::int64_t lanes() const { return lanes_; }
    /// Clocks of a core for a vector of multiply-adds.
    [[nodiscard]] double fma_clocks() const { return clocks_a_vector_[0]; }
    [[nodiscard]] std::string level_name() const { return machine_.levels[core_level_].name; }
    /// Bytes of its memory that one core may use for tiles.
    [[nodiscard]] double usable_bytes() const { return tile_bytes_a_core(machine_, core_level_); }

private:
    struct Pipes;  // clocks of one statement, by pipe
    struct Block;  // one statement's register block on one tile
    struct Moved;  // one load or store, and what it moves
    struct Run;    // the sums of one simulation
    /// Work of all output tiles of a kernel whose CTAs share SMs: on a CTA's share of the units, in the dependence
    /// chain of a lone CTA, and in memory.
    struct BlockWork {
        double core_clocks = 0, chain_clocks = 0;
        double memory_seconds = 0;      ///< of what CTAs wait for
        double all_memory_seconds = 0;  ///< of the busiest level, whoever waits
        bool in_bursts = false;         ///< a CTA asks for all that it needs at once
        double load_phases = 1;         ///< loads of a CTA that wait for what it computes in between
        double uneven_waves = 0;        ///< wave quantization factor where output tiles differ in length; 0: none does
    };
    /// Seconds of an output tile: on its SM's units, on the SM's share of memory, and those for which its CTA waits for
    /// its own results. Then those in which it waits for other CTAs at the units and at memory.
    struct BlockTime {
        double core = 0, memory = 0, chain = 0;
        double all_memory = 0;
        double core_queue = 0, memory_queue = 0;
        double cycle = 0;  ///< until the CTA's next tile begins
    };
    /// What the work on units and in memory consists of.
    struct BlockTerms {
        TimeSum core, memory;
    };
    /// Seconds of all iterations, by step: of the units, for all warpgroups of an SM, and of the latency for which each
    /// warpgroup waits.
    struct StepSeconds {
        std::vector<double> core, latency;
    };
    /// Work of warpgroups beside producer warps. In seconds of the whole kernel, but for the shares.
    struct WarpgroupWork {
        double unit = 0;     ///< of the tensor cores
        double special = 0;  ///< of the special function unit (SFU)
        double core = 0;     ///< of all statements, the two above among them
        double latency = 0;  ///< for which each warpgroup waits for its own results
        /// in which the stages of one operand are filled, read and released, one after the other: the longest of all
        /// operands
        double stages = 0;
        double alone = 0;  ///< fraction of a tile's iterations that nothing overlaps
        double own = 1;    ///< fraction of a CTA's iterations that one warpgroup runs
        // Where terms are kept: what their texts say of the cores, the tensor cores, and K blocks of all output tiles.
        const CoresText* text = nullptr;
        std::string unit_name = {};
        double k_blocks = 1;
        [[nodiscard]] TimeSum part(std::string_view name, double seconds) const;
        [[nodiscard]] TimeSum own_pace(double seconds, double warpgroups) const;
    };
    [[nodiscard]] Pipes compute_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                       const std::vector<std::int64_t>& tile) const;
    void share_among_lanes(double targets, double rows, const StatementWork& work, Pipes& pipes) const;
    [[nodiscard]] Pipes fragment_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                        const std::vector<std::int64_t>& tile) const;
    static void share_among_warps(const ScheduledKernel& k, double blocks, Pipes& pipes);
    /// Clocks of the tensor core, or of the warps that feed it, for one product.
    [[nodiscard]] double issue_share(const ScheduledKernel& k, const Step& step) const;
    void add_written_tile(const ScheduledKernel& k, const Step& step, double values, Pipes& pipes) const;
    void add_product(const ScheduledKernel& k, const Step& step, const MmaProduct& product,
                     const std::vector<std::int64_t>& tile, Pipes& pipes) const;
    [[nodiscard]] std::optional<double> clocks_of_term(const ScheduledKernel& k, const Step& step) const;
    void add_addresses_of_blocks(const Step& step, const Atom& atom, double targets, Pipes& pipes) const;
    void add_addresses_of_runs(const ScheduledKernel& k, const Step& step, const Block& block, double targets,
                               Pipes& pipes) const;
    [[nodiscard]] double prefetch_clocks(const ScheduledKernel& k, const Step& step, const Block& block, double targets) const;
    [[nodiscard]] std::pair<double, double> cache_clocks(const ScheduledKernel& k, const Step& step, const Block& block) const;
    [[nodiscard]] double instruction_clocks(OpKind kind) const;
    [[nodiscard]] double answer_clocks(const ScheduledKernel& k, VariableId id) const;
    [[nodiscard]] double chain_of_compute(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                          const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] double chain_of_copy(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile,
                                       bool is_load) const;
    [[nodiscard]] static BlockTime cycle_of(double blocks, const BlockTime& group);
    [[nodiscard]] static BlockTime cycle_in_bursts(double blocks, const BlockTime& group);
    [[nodiscard]] static TimeSum rounds_of(const BlockTime& cycle, double times, double blocks, double clock,
                                           const BlockTerms& terms);
    [[nodiscard]] static double latency_of_warpgroups(const ScheduledKernel& k, const Step& step, double instructions);
    [[nodiscard]] double clocks_of_spills(const ScheduledKernel& k) const;
    static void leave_longest_chains(const ScheduledKernel& k, std::vector<double>& latency);
    static bool end_together(const ScheduledKernel& k);
    [[nodiscard]] TimeSum seconds_of_warpgroups(const ScheduledKernel& k, const WarpgroupWork& work) const;
    [[nodiscard]] TimeSum together_at_pace(const ScheduledKernel& k, const WarpgroupWork& work, const TimeSum& pace) const;
    [[nodiscard]] double share_of_iteration_alone(const ScheduledKernel& k) const;
    [[nodiscard]] double seconds_of_stages(const ScheduledKernel& k, const Moved& moved, double answer, double copy,
                                           const StepSeconds& steps) const;
    [[nodiscard]] double warpgroups_beside(const ScheduledKernel& k) const;
    [[nodiscard]] double clocks_between_groups(const ScheduledKernel& k) const;
    [[nodiscard]] double seconds_of_parts(const ScheduledKernel& k, const StreamK& cut, double workers) const;
    [[nodiscard]] TimeSum seconds_of_blocks(double groups, double workers, const BlockWork& work,
                                            const BlockTerms* terms = nullptr) const;
    [[nodiscard]] double gather_clocks(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] static double values_of_piece(const ScheduledKernel& k, VariableId id,
                                                const std::vector<std::int64_t>& tile);
    [[nodiscard]] static double values_of_access(const ScheduledKernel& k, VariableId id);
    [[nodiscard]] bool stays_in_l1(const ScheduledKernel& k, VariableId id) const;
    [[nodiscard]] bool tables_stay(const ScheduledKernel& k) const;
    [[nodiscard]] static std::int64_t groups_ahead(const ScheduledKernel& k, VariableId id);
    [[nodiscard]] bool flows_through_first_cache(const ScheduledKernel& k, const std::vector<Moved>& moved) const;
    [[nodiscard]] double copy_clocks(const ScheduledKernel& k, VariableId v, const std::vector<std::int64_t>& tile,
                                     bool is_load) const;
    [[nodiscard]] double partial_sectors_a_value(const ScheduledKernel& k, VariableId v) const;
    [[nodiscard]] double clocks_of_nearest(double num_bytes) const;
    [[nodiscard]] double clocks_of_copy(const ScheduledKernel& k, const Variable& variable, double values, bool is_load,
                                        double waste = 1) const;
    [[nodiscard]] double clocks_of_spilled_tile(const ScheduledKernel& k, VariableId id,
                                                const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] double clocks_of_conversion(const ScheduledKernel& k, const Variable& variable, double vectors,
                                              bool is_load) const;
    [[nodiscard]] StepId step_of_transfer(const ScheduledKernel& k, StepId transfer) const;
    [[nodiscard]] std::vector<Moved> transfers(const ScheduledKernel& k, const TileCounter& counter, double workers,
                                               double& values_moved) const;
    [[nodiscard]] double wave_quantization_of_uneven(const ScheduledKernel& k, const TileCounter& counter,
                                                     const std::vector<double>& core, double starts, double workers) const;
    [[nodiscard]] double far_clocks(const ScheduledKernel& k, const Read& r, AxisId axis) const;
    [[nodiscard]] double waits_of_rows(const ScheduledKernel& k, VariableId id, const Step& step, double bytes_moved) const;
    [[nodiscard]] const CoreVariable& transferred(VariableId id, bool is_load) const;
    [[nodiscard]] double seconds_a_byte(std::size_t level, double workers, const Moved& moved) const;
    [[nodiscard]] std::int64_t threads_of_model(const ScheduledKernel& k, std::int64_t threads, std::int64_t groups) const;
    [[nodiscard]] double seconds_of_arrival(double workers) const;
    [[nodiscard]] double clocks_of_shared(const ScheduledKernel& k, double num_bytes) const;
    [[nodiscard]] double bytes_out_of_step(const ScheduledKernel& k, const StreamK& cut,
                                           const std::vector<Moved>& moved) const;
    [[nodiscard]] double beside(std::initializer_list<double> clocks) const;
    /// The norm with this exponent.
    [[nodiscard]] static double together(std::initializer_list<double> clocks, double exponent);

    const Derived& derived_;
    const Kernel& kernel_;
    const Extents& extents_;
    const Machine& machine_;
    KnownCounts* known_;
    Liveness live_;
    std::vector<StatementWork> work_;
    DType type_ = DType::f32;
    std::int64_t lanes_ = 1;
    std::size_t core_level_ = 0;
    double exponent_ = 1;                                 ///< of the norm that joins pipes which work in parallel
    std::array<double, num_op_kinds> clocks_a_vector_{};  ///< of a core, by OpKind
    std::vector<std::vector<AxisId>> work_axes_;          ///< by statement
    std::vector<std::string> pipe_names_;                 ///< by level: the name of the pipe into it
    double load_clocks_ = 1, store_clocks_ = 1, broadcast_clocks_ = 1, nonpositive_clocks_ = 1;  ///< of one vector
};

}  // namespace napkin
