#pragma once
// The simulator: the time that a scheduled kernel takes on a machine's cores. The one time model of a CPU; nothing is
// run or tuned.
//
// A core runs statement after statement, each as its atom says. The pipes that one statement uses (arithmetic, loads,
// stores, the cache behind L1) run beside each other, and beside the levels above, from which its tile comes or into
// which it goes. Tiles of one class (full, ragged) take the same time and are simulated once. All constants are figures
// of the machine.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "schedule/iteration_clocks.hpp"
#include "schedule/scheduled.hpp"
#include "tile/exact.hpp"
#include "tile/work.hpp"

namespace napkin {

struct StreamK;

/// What keeps the core or a pipe busy, and for how long.
struct Busy {
    std::string what;  ///< "tensor", "fma", "exp", "loads", "copies", "L3 to L2", …
    double seconds = 0;
};

/// What crosses from one level of memory to the next below it, and back, over the whole kernel.
struct Traffic {
    std::string path;  ///< "L2 to SMEM"
    double loaded_bytes = 0, stored_bytes = 0;
};

/// Clocks from asking for an operand's tile in a loop until it is there: the answer, and the copy itself.
struct CopyClocks {
    VariableId operand = -1;
    double answer = 0, copy = 0;
};

struct Simulation {
    double seconds = 0;
    double core_seconds = 0;  ///< without waiting for the levels above the core's memory
    double waves = 1;         ///< by how much longer it takes as not all cores have equally many groups
    double transfers = 0;     ///< H, values
    std::int64_t groups = 1;
    double launch_seconds = 0;            ///< of `seconds`, until the first group runs
    std::vector<Busy> busy;               ///< longest first
    std::vector<Traffic> traffic;         ///< by level, outermost first
    std::vector<CopyClocks> copies = {};  ///< of a role; what is kept of a plan has none
};

/// Everything about a kernel on a machine that does not depend on its schedule; simulations of many schedules share it.
class Simulator {
public:
    /// `tiles`: the kernel's tile program, with numbers in place of sizes. `known`: counts of the kernel; it outlives
    /// this.
    Simulator(const Derived& derived, const Kernel& kernel, const TileKernel& tiles, const Extents& extents,
              const Machine& machine, KnownCounts* known = nullptr);
    Simulator(const Simulator&) = delete;  // parts of it point to others
    Simulator& operator=(const Simulator&) = delete;

    /// `walk_limit` as TileCounter has it.
    [[nodiscard]] Simulation run(const ScheduledKernel& kernel, std::int64_t threads,
                                 std::int64_t walk_limit = std::int64_t{1} << 22) const;

    /// Clocks of a full tile's turn of a loop on the matrix unit. Pre: the places are applied.
    [[nodiscard]] IterationClocks iteration_clocks(const ScheduledKernel& kernel, const ScheduledLoop& loop) const;
    /// Clocks of that turn of all warpgroups of a core, of which one that has its core for itself takes so many: units
    /// are shared as in `run`, which has beside them what copies take.
    [[nodiscard]] double interval(const ScheduledKernel& kernel, const IterationClocks& turn, double pace) const;

    [[nodiscard]] static std::string name_of_tensor_core(const ScheduledKernel& k);

    /// Everything loaded or stored carries the axis: grouping it saves no transfers.
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
    /// What one core may use of its memory for tiles.
    [[nodiscard]] double usable_bytes() const { return tile_bytes_a_core(machine_, core_level_); }

private:
    struct Pipes;  // clocks of one statement by pipe
    struct Block;  // how often and on what its atom runs on one tile
    struct Moved;  // what a load or store moves
    /// Work of all groups of a kernel whose blocks share cores: on a block's share of the units, of a block alone, and
    /// in memory.
    struct BlockWork {
        double core_clocks = 0, chain_clocks = 0, memory_seconds = 0;
    };
    /// Seconds that a group takes of its core's units and of the core's share of memory, and those in which its block
    /// waits for itself.
    struct BlockTime {
        double core = 0, memory = 0, chain = 0;
    };
    /// Seconds of all turns, by step: of the units, for all warpgroups of a core, and those for which each of them
    /// waits for its own results.
    struct StepSeconds {
        std::vector<double> core, latency;
    };
    /// Work of warpgroups for which a role copies. Seconds of the whole kernel but for the shares.
    struct WarpgroupWork {
        double unit = 0;     ///< of the matrix unit
        double special = 0;  ///< of the units for exponentials and the like
        double core = 0;     ///< of all statements, those among them
        double latency = 0;  ///< for which each warpgroup waits for its own results
        /// in which an operand's stages are filled, read and freed, one after the other; of all operands the longest
        double stages = 0;
        double alone = 0;  ///< the share of a group's turns that have nothing beside them
        double own = 1;    ///< of all turns of a block, those that a warpgroup runs
    };
    [[nodiscard]] Pipes compute_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                       const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] Pipes fragment_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                        const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] std::pair<double, double> cache_clocks(const ScheduledKernel& k, const Step& step, const Block& block) const;
    [[nodiscard]] double instruction_clocks(OpKind kind) const;
    [[nodiscard]] double answer_clocks(const ScheduledKernel& k, VariableId id) const;
    [[nodiscard]] double chain_of_compute(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                          const std::vector<std::int64_t>& tile) const;
    [[nodiscard]] double chain_of_copy(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile,
                                       bool is_load) const;
    [[nodiscard]] double cycle_seconds(double blocks, const BlockTime& group) const;
    [[nodiscard]] static double latency_of_warpgroups(const ScheduledKernel& k, const Step& step, double instructions);
    [[nodiscard]] double clocks_of_spills(const ScheduledKernel& k) const;
    static void leave_longest_chains(const ScheduledKernel& k, std::vector<double>& latency);
    static bool end_together(const ScheduledKernel& k);
    [[nodiscard]] double seconds_of_warpgroups(const ScheduledKernel& k, const WarpgroupWork& work) const;
    [[nodiscard]] double together_at_pace(const ScheduledKernel& k, const WarpgroupWork& work, double pace) const;
    [[nodiscard]] double share_of_iteration_alone(const ScheduledKernel& k) const;
    [[nodiscard]] double seconds_of_stages(const ScheduledKernel& k, const Moved& moved, double answer, double copy,
                                           const StepSeconds& steps) const;
    [[nodiscard]] double warpgroups_beside(const ScheduledKernel& k) const;
    [[nodiscard]] double clocks_between_groups(const ScheduledKernel& k) const;
    [[nodiscard]] double seconds_of_parts(const ScheduledKernel& k, const StreamK& cut, double workers) const;
    [[nodiscard]] double seconds_of_blocks(double groups, double workers, const BlockWork& work) const;
    [[nodiscard]] double gather_clocks(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile) const;
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
    [[nodiscard]] double waits_of_rows(const ScheduledKernel& k, VariableId id, const Step& step, double bytes_moved) const;
    [[nodiscard]] const CoreVariable& transferred(VariableId id, bool is_load) const;
    [[nodiscard]] double seconds_a_byte(std::size_t level, double workers, const Moved& moved) const;
    [[nodiscard]] std::int64_t threads_of_model(const ScheduledKernel& k, std::int64_t threads, std::int64_t groups) const;
    [[nodiscard]] double seconds_of_arrival(double workers) const;
    [[nodiscard]] double clocks_of_shared(const ScheduledKernel& k, double num_bytes) const;
    [[nodiscard]] double contiguous_bytes(const ScheduledKernel& k, VariableId v, ScopeId scope) const;
    [[nodiscard]] double bytes_out_of_step(const ScheduledKernel& k, const StreamK& cut,
                                           const std::vector<Moved>& moved) const;
    [[nodiscard]] double line_waste(double run) const;
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
    double exponent_ = 1;  ///< of the norm by which pipes join that run beside each other
    std::array<double, num_op_kinds> clocks_a_vector_{};  ///< by OpKind
    std::vector<std::vector<AxisId>> work_axes_;          ///< by statement
    std::vector<std::string> pipe_names_;                 ///< by level: the pipe into it
    double load_clocks_ = 1, store_clocks_ = 1, broadcast_clocks_ = 1, nonpositive_clocks_ = 1;  ///< of one vector
};

}  // namespace napkin
