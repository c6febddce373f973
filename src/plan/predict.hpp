#pragma once
// The time of a kernel on a machine's cores, from the model: no execution, no tuning.
//
// A core runs statement after statement. The pipes that one statement uses (arithmetic, loads, stores, the cache behind L1) run beside
// each other, so a statement takes a little longer than its busiest pipe. Memory levels above the core's own run beside the cores.
// The code that it times: statements whose target carries the kernel's vector axis fill vectors along it, others along their last or a
// reduced axis; reductions keep a block of rows × vectors accumulators in registers; tiles that carry the vector axis are copied
// with that axis innermost, others of the compute type are read in place.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cost/exact.hpp"
#include "cost/work.hpp"
#include "machine/machine.hpp"

namespace napkin {

/// How code fills the vector unit.
struct VectorShape {
    AxisId axis = -1;                    ///< its neighbouring values fill a vector; -1: scalar code
    std::int64_t rows = 1, vectors = 1;  ///< of a register block
    friend bool operator==(const VectorShape&, const VectorShape&) = default;
};

/// The number of vectors in a block, at most `most` and more than half of that, with which blocks that cover `vectors` waste least.
std::int64_t fitting_vectors(std::int64_t vectors, std::int64_t most);

/// What keeps the core or a pipe busy, and for how long.
struct Busy {
    std::string_view what;  ///< "fma", "exp", "loads", "copies", "L3 to L2", …; lives as long as the KernelModel
    double seconds = 0;
};

struct Prediction {
    double seconds = 0;
    double core_seconds = 0;           ///< without waiting for the levels above the core's memory
    double transfers = 0, memory = 0;  ///< H and M, values
    std::int64_t groups = 1;
    std::vector<Busy> busy;  ///< longest first
};

/// Everything about a kernel that does not depend on the sizes of tiles; predictions for many sizes share it.
class KernelModel {
public:
    KernelModel(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine);
    KernelModel(const KernelModel&) = delete;  // parts of it point to others
    KernelModel& operator=(const KernelModel&) = delete;

    /// `walk_limit` as TileCounter has it. Where M exceeds `memory_limit` values the time is infinite, and the rest is left out.
    [[nodiscard]] Prediction predict(const TileSizes& sizes, const VectorShape& shape, std::int64_t threads,
                                     std::int64_t walk_limit = std::int64_t{1} << 22,
                                     double memory_limit = std::numeric_limits<double>::infinity()) const;
    /// Clocks of one run of a statement on tiles of these extents.
    [[nodiscard]] double statement_clocks(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                          const VectorShape& shape) const;
    /// Of a register block: its loads for one step of the statement's reduction, and its accumulators.
    [[nodiscard]] double block_loads(const StatementWork& s, const VectorShape& shape) const;
    [[nodiscard]] std::int64_t block_accumulators(const StatementWork& s, const VectorShape& shape) const;
    /// The shape with as many vectors as waste least on the group's tile.
    [[nodiscard]] VectorShape fitted(const VectorShape& shape, const TileSizes& sizes) const;
    /// M in values, without the rest.
    [[nodiscard]] std::int64_t memory(const TileSizes& sizes) const;

    /// Everything loaded or stored carries the axis: grouping it saves no transfers.
    [[nodiscard]] bool carried_by_all_memory(AxisId axis) const;

    [[nodiscard]] const Derived& derived() const { return derived_; }
    [[nodiscard]] const Kernel& kernel() const { return kernel_; }
    [[nodiscard]] const Extents& extents() const { return extents_; }
    [[nodiscard]] const Machine& machine() const { return machine_; }
    [[nodiscard]] const Liveness& live() const { return live_; }
    [[nodiscard]] const std::vector<StatementWork>& work() const { return work_; }
    [[nodiscard]] DType compute_type() const { return type_; }
    [[nodiscard]] std::int64_t lanes() const { return lanes_; }
    /// Bytes of a value at the core.
    [[nodiscard]] std::int64_t value_bytes() const { return bytes(type_); }
    [[nodiscard]] std::string level_name() const { return machine_.levels[core_level_].name; }
    /// The pipe from the level above into the core's memory, as Busy names it.
    [[nodiscard]] std::string_view core_pipe() const { return pipe_names_[core_level_]; }
    /// What one core may use of its memory for tiles: three quarters of it, the rest being for code, stacks and lines on their way.
    [[nodiscard]] double usable_bytes() const { return 0.75 * bytes_a_core(machine_, core_level_); }

private:
    struct Pipes;  // clocks of one statement by pipe
    struct Nest;   // how code runs one statement
    [[nodiscard]] Nest nest_of(const StatementWork& s, const std::vector<std::int64_t>& tile, const VectorShape& shape) const;
    [[nodiscard]] double loads_a_step(const StatementWork& s, const Nest& nest, AxisId vector_axis) const;
    [[nodiscard]] Pipes statement_pipes(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                        const VectorShape& shape) const;
    /// A variable that is loaded or stored.
    struct Moved {
        const CoreVariable* variable;
        std::vector<AxisId> axes;
        int stage;            ///< the loop in whose iterations it moves, or -1
        double unique_bytes;  ///< of its array, for the first variable of an array
    };
    [[nodiscard]] double copy_clocks(const Moved& m, double values, const std::vector<std::int64_t>& tile,
                                     const VectorShape& shape) const;
    [[nodiscard]] double line_waste(const TileCounter& counter, const Moved& m) const;

    const Derived& derived_;
    const Kernel& kernel_;
    const Extents& extents_;
    const Machine& machine_;
    Liveness live_;
    std::vector<StatementWork> work_;
    DType type_ = DType::f32;
    std::int64_t lanes_ = 1;
    std::size_t core_level_ = 0;
    std::array<double, num_op_kinds> clocks_a_vector_{};  ///< by OpKind
    std::vector<std::vector<AxisId>> work_axes_;          ///< by statement
    std::vector<Moved> moved_;
    std::vector<std::string> pipe_names_;        ///< by level: the pipe into it
    double load_clocks_ = 1, store_clocks_ = 1;  ///< of one vector
};

}  // namespace napkin
