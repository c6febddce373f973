#pragma once
// How the variables, statements and loops of a kernel lie on the machine: what follows from a schedule and is asked for
// at many places. It is found once, with the kernel program, and then only read.
#include <optional>
#include <vector>

#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/lane_product.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/scheduled.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/thread_runs.hpp"
#include "schedule/tile_copy.hpp"
#include "schedule/window_copy.hpp"

namespace napkin::lower {

struct VariableShape {
    bool has_rows = true;  ///< else each thread has values of its own columns, or one
    AxisId columns = -1;   ///< the axis of its columns; -1: it has none
    // For a variable in registers:
    std::int64_t registers = 0;        ///< of a thread
    DType register_type = DType::f32;  ///< f32 or i32
    bool is_kept_by_threads = false;   ///< a sum that stays with each thread until its loop ends
    bool is_rounded_ahead = false;     ///< it is rounded as its iteration ends
    // For one that threads read in global memory:
    bool is_read_by_rows = false;         ///< where it is loaded, a value for each row
    std::int64_t row_values = 0;          ///< numbers of it that a thread has then
    std::optional<OperandTile> tile;      ///< of an operand in shared memory
    std::optional<WindowCopy> window;     ///< of that, where its rows walk over dimensions of its array
    std::optional<ClusterPart> part;      ///< of that, what one CTA of a cluster copies for all
    std::optional<StagingTiles> staging;  ///< of a result that bulk copies store
    std::optional<GatheredCopy> gathered;
    std::optional<LaneTile> lanes;   ///< of one in lanes
    std::optional<StepId> added_by;  ///< of one in accumulators: the step whose register blocks these are
    bool passes_by_rounds = false;   ///< of that: registers hold a round of it at a time
};

struct StepShape {
    AxisId columns = -1;                ///< of a statement on fragments: of its target, or of what it reduces
    std::optional<MmaProduct> product;  ///< on the tensor cores
    std::optional<MmaProduct> by_warp;  ///< the same by the instruction that every warp runs by itself
    bool outlasts_iteration = false;    ///< the product may still be adding as the next iteration begins
    int iterations_ahead = 0;           ///< of a load by rows: how many iterations before its use it is issued
    std::int64_t runs_together = 1;     ///< segments of a row that a thread asks for before it waits for one
    std::vector<const Read*> in_runs;   ///< arrays of which threads read contiguous segments of rows, each once
    std::vector<const Read*> beside;    ///< of a statement by runs: what a run has beside each other in memory
    std::vector<const Read*> aligned;   ///< of those: what begins at a multiple of a run along its last dimension
    std::vector<const Read*> fetched;   ///< those that are fetched into L2 as the tile begins
    std::optional<LaneTile> lanes;      ///< of a statement that goes through values in lanes
};

struct LoopShape {
    std::optional<KBlockRanges> ranges;  ///< where masks are data
    std::vector<MaskForm> bounds = {};   ///< that the tile itself looks up
    int unrolled = 1;                    ///< iterations that stand one after the other
    bool has_own_k_blocks = false;       ///< each warpgroup runs its own
};

struct KernelShapes {
    ByVariable<VariableShape> variables;
    By<StepId, StepShape> steps;
    By<LoopId, LoopShape> loops;
    std::optional<StreamK> stream_k;
    std::int64_t stream_k_words_bytes = 0, stream_k_bytes = 0;
    std::int64_t range_bytes = 0;                      ///< of scratch memory, for ranges of K blocks
    std::int64_t num_barriers = 0, barrier_bytes = 0;  ///< at the end of the arena
    std::int64_t staging_bytes = 0;                    ///< of one staging tile of a warp
    std::int64_t run_columns = 0;  ///< of a contiguous segment that the threads of a row read together
};

/// Pre: all passes of the schedule are applied.
KernelShapes shapes_of(const ScheduledKernel& kernel);

}  // namespace napkin::lower
