#pragma once
// The schedule: every degree of freedom of a tile program on one machine, as plain data with a reason beside each
// value. It prints (to_string) and comes back (schedule_overrides), and any field of it may be fixed by hand;
// scheduled.hpp has what follows from it.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diagram/diagram.hpp"
#include "support/result.hpp"
#include "tile/program.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// A chosen value and why; `by_user` when the user fixed it.
struct Choice {
    std::int64_t value = 0;
    std::string reason;
    bool by_user = false;
    friend bool operator==(const Choice&, const Choice&) = default;
};

/// What runs a compute statement.
enum class AtomKind : std::uint8_t {
    block,  ///< a register block of vectors, of a thread of a CPU or of a warp
    /// every thread computes the values that are its own in the accumulator's layout of the machine's matrix
    /// instruction
    fragment,
    matrix,  ///< the matrix instruction
};

inline constexpr std::string_view atom_kind_names[] = {"block", "fragment", "matrix"};
constexpr std::string_view name(AtomKind kind) { return atom_kind_names[at(kind)]; }

/// The atom of a statement. A register block of vectors, and the loops in which the statement runs it: a block holds
/// rows × vectors accumulators (of a map: values); the loops over the target's points stand around those over what is
/// reduced. Of the other kinds only the loops are named: which values are whose is the instruction's.
struct Atom {
    AtomKind kind = AtomKind::block;
    AxisId vector_axis = -1;  ///< whose neighbours share a vector; -1: scalar code
    bool across = false;      ///< the vector axis is reduced: lanes are partial results, combined at the end
    bool shared = false;      ///< and so are the warps of a block: each takes vectors of every row, in turn
    int vectors = 1;          ///< of the block, beside each other along the vector axis
    AxisId row_axis = -1;     ///< of the target, along which the block has rows; -1: one row
    int rows = 1;
    /// the loop over the vector axis is the innermost of those over points, else the outermost
    bool vector_inner = false;
    std::vector<AxisId> points;  ///< the loops over the target's other axes, outermost first
    /// the loops over reduced axes, outermost first; without a vector axis that is reduced
    std::vector<AxisId> reduced;
    /// the loop over reduced values that is cut: the target takes up the block's sums after each part
    AxisId cut_axis = -1;
    std::int64_t cut = 0;  ///< values of a part
    /// For a matrix atom: its columns are computed in so many parts, each with what its turn makes of them
    /// (column_parts.hpp), so that registers hold one part at a time.
    int parts = 1;
    int run = -1;  ///< statements of one run take one panel of the kernel's vector axis after the other; -1: by itself
    bool follows = false;     ///< a reduction that rides in the loops of the statement before it
    std::string reason = {};  ///< why it is of its kind, where others may do; "": nothing else does, or nobody asked
    bool by_user = false;
    friend bool operator==(const Atom&, const Atom&) = default;
};

/// How a variable is held at the core.
enum class MemorySpace : std::uint8_t {
    buffer,     ///< a tile of its own in the arena
    panel,      ///< the same for one panel of the vector axis, of a variable that lives within one run
    packed,     ///< a tile whose panels of the vector axis lie one after the other, each by itself without gaps
    view,       ///< read where it lies in memory, or written where it goes
    registers,  ///< every thread has the values that are its own in the accumulator's layout of the matrix instruction
    /// a tile in its type in memory, as the matrix instruction reads it: rows of 128 bytes, whose 16-byte parts are
    /// swizzled
    operand,
};

inline constexpr std::string_view memory_space_names[] = {"buffer", "panel", "packed", "view", "registers", "operand"};
constexpr std::string_view name(MemorySpace holding) { return memory_space_names[at(holding)]; }

struct Place {
    MemorySpace holding = MemorySpace::buffer;
    int innermost = -1;         ///< the dimension whose neighbours lie beside each other; -1: a single value
    int stages = 1;             ///< tiles of a stream that are held at a time
    bool non_temporal = false;  ///< of a view that is written: past the caches
    /// For a variable in registers that is stored: boxes of 16 rows and 128 bytes that every warp has for it in shared
    /// memory, out of which bulk copies bring it to memory; 0: every thread stores its own values.
    int boxes = 0;
    bool by_user = false;
    friend bool operator==(const Place&, const Place&) = default;
};

/// What is fetched ahead into the caches in the loops of a statement.
enum class Fetched : std::uint8_t {
    groups,  ///< the tile of a group to come, by a statement that computes at the same points
    /// the rows of a block to come, by a statement that reduces several rows at once: the line after the one that it
    /// reads
    blocks,
};

struct Prefetch {
    VariableId variable = -1;
    AtomId atom = {};
    Choice ahead;  ///< groups or blocks; 0: it is not fetched ahead
    Fetched fetched = Fetched::groups;
    int cache = 1;  ///< that it is fetched into, counted from the core: 1 or 2
    friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

/// A statement that runs for the group before, in the loops of another one, so that what it stores goes out beside what
/// that one computes.
struct TilePipelining {
    AtomId atom = {};
    AtomId in = {};  ///< the atom of the other statement
    Choice groups;   ///< by how many groups: 1; 0: it runs in its own group
    friend bool operator==(const TilePipelining&, const TilePipelining&) = default;
};

/// Warps of a block that run statements of their own, beside those that compute (KernelSchedule::warps), which run all
/// others.
struct Role {
    std::string name;
    int workers = 1;
    std::string reason = {};
    bool by_user = false;
    friend bool operator==(const Role&, const Role&) = default;
};

/// A statement in its loop's modulo schedule: which role runs it, after how many others of an iteration, and by how
/// many iterations it is ahead of the loop.
struct Slot {
    int role = -1;  ///< index into KernelSchedule::roles; -1: the warps that compute
    /// statements of one role and loop run in ascending order of positions, and those of one position as they stand
    int position = 0;
    int ahead = 0;
    friend bool operator==(const Slot&, const Slot&) = default;
};

/// How the blocks of a GPU come to their groups.
enum class TileScheduler : std::uint8_t {
    fixed,  ///< a block's number says which ones it runs
    queue,  ///< a block takes the next one of a queue as its role has asked for the copies of the last one
    /// a block's number says it, and groups of the last rounds are cut, so that all blocks end together (stream_k.hpp)
    cut,
};
constexpr std::string_view name(TileScheduler dealing) { return tile_scheduler_words[at(dealing)]; }

/// How a running maximum to which weights refer moves (conditional_rescale.hpp).
enum class RescaleMode : std::uint8_t {
    exact,  ///< in every chunk
    /// where weights grow large: finite ones are multiplied by what corrects the sums, all others are computed again
    rescaled,
};

/// The schedule of one kernel. `atoms` stand in the order of the kernel's compute statements, `places` in that of its
/// variables.
struct KernelSchedule {
    std::string kernel;
    std::map<AxisId, Choice> group;    ///< group sizes; an axis that is missing is not grouped
    std::map<AxisId, Choice> stream;   ///< sizes of chunks
    std::map<AxisId, Choice> subloop;  ///< sizes of the parts of a statement
    Choice split{1, "", false};  ///< parts of the stream that run at the same time: the size of TileKernel::parts' axis
    Choice threads{1, "", false};
    Choice grid{0, "", false};  ///< blocks of a GPU's grid: one for each group, or as many as run at once; 0: by rule
    Choice dealing{0, "", false};  ///< of a GPU's groups, a TileScheduler
    /// On a GPU: the groups that lie beside each other along this axis, so many at a time, are run by a cluster of
    /// blocks, in which what does not depend on the axis is loaded once (cluster.hpp); -1: every block loads for
    /// itself.
    AxisId cluster_axis = -1;
    Choice cluster{1, "", false};
    Choice warps{0, "", false};   ///< of a GPU's block, which runs a group together; 0: a CPU's thread runs it alone
    Choice blocks{0, "", false};  ///< of a GPU's core, which share its memory and its registers; 0: of a CPU
    AxisId vector_axis = -1;      ///< the kernel's own: runs go along its panels; -1: every statement goes its own way
    std::string vector_axis_reason;
    int panel_vectors = 1;  ///< vectors of a panel
    /// For a kernel on a matrix unit: the axis along which every warp takes 16 rows of all tiles; -1: no statement uses
    /// the unit.
    AxisId mma_m_axis = -1;
    std::string mma_m_axis_reason;
    bool panel_by_user = false;
    /// For a kernel on a matrix unit: how its running maximum moves, a RescaleMode.
    Choice lazy{0, "", false};
    /// For a kernel on a matrix unit that several warps run together: 1 where they take turns at it, so that one group
    /// of them computes beside the products of another.
    Choice turns{0, "", false};
    Choice rows{1, "", false};  ///< the most that a block has
    By<AtomId, Atom> atoms;
    ByVariable<Place> places;
    std::vector<Prefetch> prefetches;             ///< of views that are read, at most one each
    std::vector<TilePipelining> tile_pipelining;  ///< at most one of each statement, and in each
    std::vector<Role> roles;
    /// by statement, as statement_names counts them; one that is missing has the default
    std::map<StepId, Slot> slots;
    friend bool operator==(const KernelSchedule&, const KernelSchedule&) = default;
};

/// The atoms and places that are printed and parsed by name: of the compute statements, by what each defines (S, and
/// S#2 where a variable is defined again), and of the variables.
std::vector<std::string> atom_names(const TileKernel& kernel);

/// Names of all statements in order: "load K", "init P_M", "S", "store O"; a name that comes again has #2.
std::vector<std::string> statement_names(const TileKernel& kernel);

/// Before the reason of what the user fixed.
inline constexpr std::string_view override_mark = "[by hand]";
/// One line for each field, with its reason; syntax/parse_schedule.cpp reads it.
std::string to_string(const TileProgram& program, const TileKernel& kernel, const KernelSchedule& schedule);

/// What a schedule says of its readings, which no kernel follows from: what units take besides operations, and which of
/// them a chart shows.
bool is_of_views(const ScheduleItem& item);
/// What it says of the paper's steps, which no kernel follows from either.
bool is_of_steps(const ScheduleItem& item);
/// The machine that a schedule's file is for: its line `machine`, or none.
const ScheduleItem* machine_line(const std::vector<ScheduleItem>& items);

/// What the items fix, a schedule for each kernel of the program; the rest is left open. Errors: unknown-kernel,
/// unknown-axis, unknown-statement, unknown-variable (nearest names), bad-schedule (what was expected).
Result<std::vector<KernelSchedule>> schedule_overrides(const std::vector<ScheduleItem>& items, const TileProgram& program);
/// The same of items as to_string prints them: with their reasons, and by hand only where they are marked so.
Result<std::vector<KernelSchedule>> schedules_as_printed(const std::vector<ScheduleItem>& items, const TileProgram& program);

}  // namespace napkin
