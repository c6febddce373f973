#pragma once
// The kernel program: a kernel as a tree of statements, each with what it waits for and what it releases. Emitters
// print it statement by statement and decide nothing. The proof of its order (prove.hpp) walks the same tree.
//
// A kernel has one or two roles. The consumer's warps compute. The producer's warps, where there are any, copy operands
// into shared memory ahead of them. Each role is a loop over output tiles. In it stand loops over K blocks, copies,
// products, maps, reductions, and the synchronization between them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lower/select_math.hpp"
#include "lower/shapes.hpp"
#include "schedule/scheduled.hpp"

namespace napkin::lower {

struct Statement;
using Block = std::vector<Statement>;

/// An iteration of a scope's loop: where its counter stands, and so many further. Scope 0: the loop over output tiles.
struct Iteration {
    ScopeId scope = 0;
    int offset = 0;
};
/// The tile of an operand that an iteration uses. It lies in the iteration's stage.
struct TileRef {
    VariableId operand = -1;
    Iteration iteration;
};

// ---- loops and branches

/// Who takes which output tile.
enum class TileOrder : std::uint8_t {
    range,        ///< a thread of a CPU takes a range
    strided,      ///< a CTA takes the tiles whose numbers are a grid apart
    alternating,  ///< one round forward, the next one backward
    stream_k,     ///< shares of K blocks
    queue,        ///< the next tile that no CTA has taken
};
struct ForTiles {
    TileOrder order = TileOrder::strided;
    Block body;
};
/// What the K blocks of a loop share: its bounds and the copies of its operands.
struct LoopScope {
    LoopId loop = {};
    Block body;
};
/// The first K block of the loop and the one past its last. Own: those that the warpgroup's own rows need.
struct Bounds {
    LoopId loop = {};
    bool is_own = false;
};
enum class KBlocks : std::uint8_t {
    all,
    but_last,    ///< the last one's statements stand behind the loop
    before_own,  ///< those of the CTA before the warpgroup's own
    after_own,   ///< those behind them
};
struct ForBlocks {
    LoopId loop = {};
    KBlocks blocks = KBlocks::all;
    Block body;
};
struct If {
    enum Condition : std::uint8_t {
        any_k_block,     ///< the loop runs at all
        tile_is_split,   ///< another CTA has the rest of the output tile
        arrives_second,  ///< this warp merges the states of both parts; else it leaves its own to the other CTA
        goes_on,         ///< this warp has all of the tile
    };
    Condition condition = any_k_block;
    LoopId loop = {};
    Block body, otherwise;
};
/// Statements that run for an iteration some way ahead of the loop's counter.
struct At {
    LoopId loop = {};
    Iteration iteration;
    Block body;
};
/// Once for each part of the columns (ColumnParts).
struct ForParts {
    Block body;
};
/// Once for each panel of the vector axis.
struct ForPanels {
    StepId first = {};  ///< the first statement
    Block body;
};
/// Once for each staging tile of a result.
struct ForStaging {
    StepId step = {};
    Block body;
};
/// Names the stage in which the iteration's tile lies.
struct UseStage {
    TileRef tile;
};
/// The scope's counter goes to the next iteration.
struct Advance {
    ScopeId scope = 0;
};

// ---- copies

struct Copy {
    enum Way : std::uint8_t {
        bulk,          ///< one thread issues bulk copies of the operand's tile
        by_threads,    ///< each thread copies its part of the operand's tile asynchronously
        load,          ///< threads load the tile
        load_rows,     ///< threads load their rows into registers
        store,         ///< threads store the tile
        to_staging,    ///< a warp writes a staging tile
        from_staging,  ///< one thread issues the bulk copy of a staging tile
        leave_states,  ///< stream-K: a warp leaves its states in global memory
    };
    StepId step = {};
    Way way = load;
    TileRef tile = {};
    bool is_elected = false;          ///< one of the consumer's threads issues it
    bool has_barrier_inside = false;  ///< all warps wait between the tile's zeros and what is copied over them
};
/// The operands of iterations to come, by the consumer's threads: of the first ones, before the loop. Or of the one
/// that is as many iterations ahead as there are further stages.
struct CopyAhead {
    LoopId loop = {};
    bool is_first = false;
};
/// Prefetches of output tiles to come.
struct PrefetchTiles {};
/// The rows of a loop's first iterations, which threads load ahead.
struct LoadFirstRows {
    StepId step = {};
    LoopId loop = {};
};

// ---- computation

struct Init {
    StepId step = {};
};
struct Mma {
    StepId step = {};
    Iteration iteration;
};
/// A map or a reduction.
struct Map {
    StepId step = {};
    bool has_barrier_inside = false;  ///< all warps wait between partial results and the result
};
/// The running maximum, the weights and their sum, with conditional rescaling.
struct Rescale {
    bool is_first = false;  ///< of a tile's first iteration: the maximum moves
    Iteration iteration;
};
/// Sums that each thread keeps for itself become those of rows.
struct SumRows {
    ScopeId scope = 0;
};
/// What the iteration computed is rounded for the product that takes it.
struct Round {
    ScopeId scope = 0;
    int ahead = 0;
};
/// The statement of the last output tile, which runs in the loops of the next one elsewhere.
struct FinishPipelined {
    StepId step = {};
};
/// Stream-K: the states of both parts become those of the tile.
struct MergeStates {};

// ---- synchronization

/// The CTA's barriers in shared memory are made.
struct InitBarriers {};
enum class BarrierKind : std::uint8_t {
    full,        ///< the tile has arrived
    empty,       ///< all consumers are done with the stage
    tile_full,   ///< the queue's stage has a number
    tile_empty,  ///< all consumer warps have read it
};
struct BarrierRef {
    BarrierKind kind = BarrierKind::full;
    TileRef tile = {};
};
struct Wait {
    BarrierRef barrier;
};
/// One arrival of a warp, or of the producer's thread.
struct Arrive {
    enum When : std::uint8_t { always, no_k_block, last_part };
    BarrierRef barrier;
    When when = always;
    LoopId loop = {};          ///< for no_k_block
    bool if_deferred = false;  ///< only where the iteration before has left the release to this one
};
/// Whether the loop's next iteration has releases of this one to make.
struct Defer {
    VariableId operand = -1;
    bool value = false;
};
/// Each thread waits until at most so many of its later copies are outstanding.
struct WaitCopies {
    int outstanding = 0;
};
/// Each warp waits until at most so many of its products are outstanding.
struct WaitProducts {
    int outstanding = 0;
    std::vector<VariableId> results;  ///< of the products that are done after it
};
/// Each warp waits until bulk copies still read at most so many of its staging tiles.
struct WaitStaging {
    int outstanding = 0;
};
/// Bulk copies and products see what the warp has written to shared memory.
struct FenceProxy {};
/// Stores past the caches are visible to others.
struct FenceStores {};
/// All consumer warps wait for each other.
struct Sync {};
/// All warps of the CTA wait for each other.
struct CtaBarrier {};
/// All warps of the cluster wait for each other.
struct ClusterBarrier {};
/// Ping-pong: a warpgroup waits for the tensor cores, or passes them on.
struct NamedBarrier {
    enum What : std::uint8_t {
        wait,
        pass,
        start,  ///< the last warpgroup passes them to the first one at the beginning
    };
    What what = wait;
};
/// The producer asks for the next tile of the queue, which no other CTA gets.
struct AskTile {
    bool is_with_last_copies = false;  ///< else it asks where it has not asked yet
    LoopId loop = {};
};
/// The producer writes the number of the next tile into the queue's stage; a consumer warp reads it.
struct WriteTile {};
struct ReadTile {};
/// Stream-K: the warp says that it has come to the split tile, and learns whether it is the second one.
struct ClaimStates {};
/// Its states are visible to whoever sees it in the tile's word.
struct SignalStates {};
/// The second warp waits for the states of the first.
struct WaitStates {};

struct Statement {
    using Kind = std::variant<ForTiles, LoopScope, Bounds, ForBlocks, If, At, ForParts, ForPanels, ForStaging, UseStage,
                              Advance, Copy, CopyAhead, PrefetchTiles, LoadFirstRows, Init, Mma, Map, Rescale, SumRows,
                              Round, FinishPipelined, MergeStates, InitBarriers, Wait, Arrive, Defer, WaitCopies,
                              WaitProducts, WaitStaging, FenceProxy, FenceStores, Sync, CtaBarrier, ClusterBarrier,
                              NamedBarrier, AskTile, WriteTile, ReadTile, ClaimStates, SignalStates, WaitStates>;
    Kind kind;
    template <class T>
    Statement(T statement) : kind(std::move(statement)) {}  // NOLINT(google-explicit-constructor): it is one of them
};

struct Role {
    std::int64_t first_warp = 0, warps = 0;
    Block body;      ///< of all its threads, or of one where the role is a producer
    Block end = {};  ///< of all its threads, behind that
};
struct KernelProgram {
    std::shared_ptr<const ScheduledKernel> kernel;
    Block entry;  ///< before the roles part
    std::optional<Role> producer;
    Role consumer;
    KernelShapes shapes = {};
    KernelMath math = {};
    /// Axes whose extents are arguments of a launch, so that its text serves other extents, too. Others are numbers.
    std::vector<AxisId> size_arguments = {};
};

/// Calls f for each list of statements inside of a statement.
template <class F>
void each_block(const Statement& statement, F f) {
    std::visit(
        [&](const auto& s) {
            if constexpr (requires { s.body; }) f(s.body);
            if constexpr (requires { s.otherwise; }) f(s.otherwise);
        },
        statement.kind);
}
/// Calls f for each statement of the list and inside of it, in order.
template <class F>
void each_statement(const Block& list, const F& f) {
    for (const Statement& statement : list) {
        f(statement);
        each_block(statement, [&](const Block& inner) { each_statement(inner, f); });
    }
}
/// The kernels of a plan, in the order in which they run.
struct LoweredProgram {
    std::vector<KernelProgram> kernels;
};

/// The program as text, a line for each statement.
std::string to_string(const KernelProgram& program);
/// One of its statements.
std::string to_string(const KernelProgram& program, const Statement& statement);

}  // namespace napkin::lower
