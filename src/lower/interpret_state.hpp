#pragma once
// What the agents of the interpreter share (interpret.hpp): memory at its levels, barriers, and the state of a warp.
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lower/interpret.hpp"
#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/stream_k.hpp"
#include "support/function_ref.hpp"
#include "support/ids.hpp"
#include "tile/buffer.hpp"

namespace napkin::lower::interpreter {

/// What stops a run. interpret() returns it as an error.
struct Stop {
    std::string code, what;
};
/// What was never written, and what a late copy or product has yet to write.
inline constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
[[noreturn]] void unsupported(const std::string& what);

/// An expression as a list of nodes, each after what it is made of.
class PointProgram {
public:
    PointProgram(const Expr& e, Kinds& kinds, const Extents& extents);
    using Element = FunctionRef<Number(const Read&)>;
    Number at(const std::vector<std::int64_t>& point, Element element);
    [[nodiscard]] Kind kind() const { return nodes_.back().kind; }

private:
    struct Node {
        Expr e;
        Kind kind = Kind::real;
        std::array<std::size_t, 3> of = {};
        Number value;
    };
    std::size_t add(const Expr& e, Kinds& kinds, const Extents& extents);
    std::vector<Node> nodes_;
    std::unordered_map<const ExprNode*, std::size_t> known_;
};

/// Shared memory by its bytes: a value is found at its first one. What was never written is NaN.
class SharedMemory {
public:
    explicit SharedMemory(std::int64_t bytes);
    /// NaN outside of the memory.
    [[nodiscard]] double read(std::int64_t byte) const;
    void write(std::int64_t byte, std::int64_t bytes, double value);
    [[nodiscard]] std::int64_t read_whole(std::int64_t byte) const;
    void write_whole(std::int64_t byte, std::int64_t value);

private:
    std::vector<double> reals_;
    std::unordered_map<std::int64_t, std::int64_t> wholes_;
};

/// Rows of 128 bytes that a copy brings to shared memory.
struct BulkCopy {
    std::int64_t to = 0, rows = 0, width = 0, bytes = 0;  ///< `bytes` of a value
    std::vector<double> values;
    std::int64_t moved = 0, past_tile = 0;  ///< of them values of the array, and of these values past the tile's end
};

/// A barrier in shared memory (PTX ISA, mbarrier).
struct MemoryBarrier {
    bool is_made = false;
    std::int64_t needed = 1, arrivals = 0, bytes = 0, phases = 0;
    std::deque<BulkCopy> pending = {};  ///< copies that it will be told of

    [[nodiscard]] bool has_passed(std::int64_t parity) const { return phases % 2 != parity; }
    void arrive();
    void settle();
};

/// A barrier at which so many warps meet.
struct Meeting {
    std::int64_t arrived = 0, generation = 0;
    /// Returns the generation that the warp then waits to end.
    std::int64_t arrive(std::int64_t needed);
};

struct Cta {
    Cta(std::int64_t number, std::int64_t rank, std::int64_t bytes) : number(number), rank(rank), shared(bytes) {}
    std::int64_t number, rank;
    SharedMemory shared;
    ByVariable<std::vector<MemoryBarrier>> full, empty;  ///< of operands, by stage
    struct QueueStage {
        MemoryBarrier full, empty;
        std::int64_t tile = -1;
    };
    std::array<QueueStage, queue_stages> queue;
    Meeting consumers, all, cluster_barrier;
    std::vector<Meeting> ping_pong;      ///< by warpgroup
    std::vector<Cta*> cluster;           ///< by rank
    std::int64_t running_consumers = 0;  ///< its shared memory ends with the last one
    [[nodiscard]] bool has_ended() const { return running_consumers == 0; }
};

/// What the agents ask of a variable again and again.
struct VariableFact : VariableShape {
    bool in_registers = false, is_operand = false, is_view = false, is_whole = false, is_passing = false;
    std::int64_t bytes = 0;  ///< of a value in memory
    /// Threads of a CTA without tensor cores have it, in lanes or in accumulators.
    [[nodiscard]] bool is_in_threads() const { return lanes || added_by; }
    /// What a register with this value holds, and back.
    [[nodiscard]] Number number(double held) const;
    [[nodiscard]] double held(const Number& number) const;
};

/// A product of the kernel as it runs.
struct ProductFact {
    MmaProduct product;
    std::int64_t columns = 0, depth = 0;
    bool a_along_k = true, b_along_k = true, is_padded = false;
};

/// The K blocks that the data leave to a tile of rows (k_block_ranges.hpp).
struct KBlockRange {
    std::int64_t first = 0, last = 0, whole_first = 0, whole_last = 0;
};

/// What all CTAs share.
struct Grid {
    Grid(const KernelProgram& program, Values& memory, Completion completion);
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    const KernelProgram& program;
    const ScheduledKernel& kernel;
    Values& memory;
    bool is_late;
    bool is_stuck = false;  ///< nobody goes on, so that late warps do not wait for others
    Movement moved;
    ByVariable<VariableFact> facts;
    const std::optional<StreamK>& stream_k;
    std::vector<std::int64_t> lane_row, lane_column;  ///< of a lane's first value in a tile of registers
    std::int64_t row_step = 0, column_step = 0;       ///< between a thread's rows, and between its columns
    std::int64_t next_claim = 0;                      ///< counter of the tile queue
    std::map<std::int64_t, std::int64_t> words;       ///< of pairs of warps that share a tile
    std::map<std::pair<std::int64_t, int>, std::vector<double>> states;  ///< that they leave, by state
    std::map<LoopId, std::vector<KBlockRange>> ranges;

    [[nodiscard]] const VariableFact& fact(VariableId v) const { return facts[v]; }
    [[nodiscard]] const Variable& variable(VariableId v) const { return kernel.variable(v); }
    PointProgram& compiled(const Expr& e);
    const ProductFact& product_of(StepId step);
    std::int64_t stages(ScopeId scope);
    const StatementMath& math(const Step& step) const { return program.math.statements.at(step.statement); }

    /// The array's cell; none outside of it.
    [[nodiscard]] std::optional<std::size_t> cell(ArrayId array, const std::vector<std::int64_t>& coordinates) const;
    /// Unset outside of the array.
    [[nodiscard]] Number load(ArrayId array, const std::vector<std::int64_t>& coordinates) const;
    /// Rounds to the array's type. Outside of the array nothing happens; returns whether it is inside.
    bool store(ArrayId array, const std::vector<std::int64_t>& coordinates, const Number& value);
    /// Bounds of a form over a tile; with `own` rows of the M axis: the first one in the tile, and how many.
    [[nodiscard]] std::int64_t bound(const Affine& form, const Tile& tile, bool high,
                                     const std::pair<std::int64_t, std::int64_t>* own) const;
    /// By number; null where data leave out no K blocks.
    const KBlockRange* ranges_of(LoopId loop);

private:
    void find_ranges(LoopId loop, const KBlockRanges& ranges);
    Kinds kinds_;
    std::unordered_map<Expr, PointProgram> programs_;
    std::map<StepId, ProductFact> products_;
    std::map<ScopeId, std::int64_t> stages_;
};

/// Where an operand's tile lies, for one side of a product.
struct Factor {
    VariableId operand = -1;
    std::int64_t byte = 0;   ///< of the tile in its stage
    std::int64_t first = 0;  ///< row or column of the product that its number 0 is
    bool along_k = true;
};
/// A product that a warp has asked for.
struct Product {
    StepId step = {};
    VariableId target = -1;
    bool adds = false, chains = false;  ///< chains: an earlier one computes what it adds to
    Factor a = {}, b = {};
    VariableId rounded = -1;            ///< A is what this one was rounded to
    std::vector<double> a_values = {};  ///< else A as its registers had it; empty: in shared memory
    std::vector<double> held = {};      ///< what the target held
};

/// K blocks of a loop, as values of its axis.
struct BlockRange {
    std::int64_t begin = 0, end = 0, all_end = 0, own_first = 0, own_last = 0, at = 0, iteration = 0, next = 0, x = 0;
    std::int64_t whole_first = 0, whole_last = 0;
    bool has_own = false;
};

/// A warp's state: its place, its registers, and what it has asked for.
struct Warp {
    Warp(Grid& grid, Cta& cta, std::int64_t number, bool is_producer);

    Grid& grid;
    const ScheduledKernel& kernel;
    Cta& cta;
    std::int64_t number;
    bool is_producer;
    std::vector<Tile> at;  ///< where tiles stand, by scope
    std::map<ScopeId, std::int64_t> counters;
    std::map<LoopId, BlockRange> ranges;
    std::map<VariableId, std::int64_t> stage;  ///< in which an operand's current tile lies
    std::map<VariableId, bool> deferred;
    ByVariable<std::vector<double>> registers;  ///< lane after lane
    std::map<VariableId, std::vector<double>> rounded;
    ByVariable<std::vector<double>> in_lanes;        ///< by the place in the tile; only the warp's own are ever written
    std::map<VariableId, std::vector<Number>> rows;  ///< that it has read in place, lane after lane
    std::map<VariableId, std::deque<std::vector<Number>>> rows_ahead;  ///< of iterations to come
    std::deque<Product> products;
    std::deque<std::vector<BulkCopy>> own_copies;                 ///< what its threads copy, in groups
    std::deque<std::pair<StepId, std::int64_t>> stores;           ///< staging tiles that are to be stored
    std::deque<Tile> store_tiles;                                 ///< where the tile stood as each was sent
    std::vector<std::pair<std::int64_t, std::int64_t>> unfenced;  ///< bytes that bulk copies do not see yet
    std::int64_t part = 0, staging_tile = 0, tile = 0, queue_iteration = 0;
    std::int64_t share_begin = 0, share_end = 0;  ///< stream-K: the warp's part of the tile's stream
    bool moves = true, stays = false;             ///< of a reference with conditional rescaling

    static constexpr std::int64_t lanes = 32;
    [[nodiscard]] std::int64_t warps() const { return kernel.schedule.warps.value; }
    [[nodiscard]] std::int64_t counter(const Iteration& i) const;
    [[nodiscard]] std::int64_t stage_of(const Iteration& i) const;
    [[nodiscard]] std::int64_t parity_of(const Iteration& i) const;
    [[nodiscard]] std::int64_t warpgroup() const { return number / kernel.unit.matrix.warps_together(); }
    [[nodiscard]] const RegisterTile& fragments() const { return kernel.fragments(); }
    double& value(VariableId v, std::int64_t lane, std::int64_t n) {
        return registers[v][static_cast<std::size_t>(lane * grid.fact(v).registers + n)];
    }
    /// The coordinate at which the variable's tile begins along a dimension.
    [[nodiscard]] std::int64_t origin(VariableId v, std::size_t dimension) const;
    /// Where the tile of an arena variable has the value, in bytes.
    [[nodiscard]] std::int64_t byte_of(VariableId v, const std::vector<std::int64_t>& coordinates) const;
    [[nodiscard]] Number read_arena(VariableId v, std::int64_t byte) const;
    void write_arena(VariableId v, std::int64_t byte, const Number& value);
    /// The warp's value in lanes, or in accumulators, at these coordinates of the variable's box, which lies so far
    /// from the tile's begin.
    [[nodiscard]] std::int64_t place_in_lanes(VariableId v, const std::vector<std::int64_t>& coordinates) const;
    [[nodiscard]] Number read_lanes(VariableId v, const std::vector<std::int64_t>& coordinates) const;
    void write_lanes(VariableId v, const std::vector<std::int64_t>& coordinates, const Number& value);
    /// Whether the warp has the value in lanes that lies so far from the tile's begin.
    [[nodiscard]] bool has_lane(const LaneTile& tile, std::int64_t local) const {
        return tile.axis < 0 || tile.warp_of(local, kernel.lanes) == number;
    }
    /// The first byte of the operand's stage, and the value at a row and a column of the tile there.
    [[nodiscard]] std::int64_t stage_byte(VariableId operand, std::int64_t stage) const;
    /// The byte of a value in a tile of an operand that begins at `byte`; and the value.
    [[nodiscard]] std::int64_t operand_byte(VariableId v, std::int64_t byte, std::int64_t row, std::int64_t column) const;
    [[nodiscard]] double operand(VariableId v, std::int64_t byte, std::int64_t row, std::int64_t column) const;
    /// The index in the variable's array of coordinates of its box, gathered where it is. It may lie outside.
    [[nodiscard]] std::vector<std::int64_t> index_in_array(VariableId v, const std::vector<std::int64_t>& box) const;
    /// The same where it lies inside.
    [[nodiscard]] std::optional<std::vector<std::int64_t>> place_in_array(VariableId v,
                                                                          const std::vector<std::int64_t>& box) const;
    [[nodiscard]] std::vector<std::int64_t> coordinates(const std::vector<Index>& indices,
                                                        const std::vector<std::int64_t>& point) const;
};

/// Calls f(row in the thread, tile of columns, column in the thread) for a thread's values; rows or columns may be left
/// out.
template <class F>
void for_each_own_value(const RegisterTile& tile, bool has_rows, std::int64_t columns, F f) {
    for (std::int64_t r = 0; r < (has_rows ? tile.rows_a_thread : 1); ++r)
        for (std::int64_t j = 0; j < (columns > 0 ? columns / tile.columns : 1); ++j)
            for (std::int64_t c = 0; c < (columns > 0 ? tile.columns_a_thread : 1); ++c) f(r, j, c);
}

// ---- copies (interpret_copies.cpp)

void copy_operand(Warp& warp, VariableId operand, ScopeId scope, std::int64_t stage, const Tile& at);
/// A group of copies that copies nothing where there is no tile.
void copy_own_part(Warp& warp, VariableId operand, ScopeId scope, std::int64_t stage, const Tile* at);
void complete_own_copies(Warp& warp, std::int64_t outstanding);
/// The part of a load before the barrier inside of it, and the one behind.
void clear_tile(Warp& warp, const Step& load);
void load_tile(Warp& warp, const Step& load);
void load_rows(Warp& warp, const Step& load);
void load_first_rows(Warp& warp, const Step& load, std::int64_t begin);
void store_tile(Warp& warp, const Step& store);
void write_staging(Warp& warp, const Step& store);
void send_staging(Warp& warp, const Step& store);
void complete_stores(Warp& warp, std::int64_t outstanding);
void leave_states(Warp& warp);

// ---- computation (interpret_compute.cpp, interpret_blocks.cpp)

void run_init(Warp& warp, const Init& init);
void run_product(Warp& warp, const Mma& product);
void complete_products(Warp& warp, std::int64_t outstanding);
void run_fragment(Warp& warp, StepId step);
void run_rescale(Warp& warp, const Rescale& rescale);
void sum_rows(Warp& warp, ScopeId scope);
void round_ahead(Warp& warp, const Round& round);
void merge_states(Warp& warp);
/// A statement of blocks: the part before the barrier inside of it, and the one behind.
void run_block(Warp& warp, StepId step);
void finish_block(Warp& warp, StepId step);
/// Number of the value among those of a thread.
std::int64_t number_in_thread(const Warp& warp, VariableId v, const Step* step, std::int64_t r, std::int64_t j,
                              std::int64_t c);
/// Pair of warps of two CTAs that share the current tile.
std::int64_t pair_of(const Warp& warp);

}  // namespace napkin::lower::interpreter
