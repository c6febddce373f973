#pragma once
// The schedule: every degree of freedom of a tile program on one machine, as plain data with a reason beside each
// value. to_string prints it, and schedules_as_printed reads it back. The user may override any field
// (schedule_overrides). What follows from a schedule is in scheduled.hpp.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "diagram/diagram.hpp"
#include "support/result.hpp"
#include "tile/program.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// A chosen value and its reason. `by_user`: the user overrides it.
template <class T>
struct Chosen {
    T value = {};
    std::string reason = {};
    bool by_user = false;

    operator const T&() const { return value; }
    friend bool operator==(const Chosen&, const Chosen&) = default;
};
using Choice = Chosen<std::int64_t>;
using SizesByAxis = std::map<AxisId, Choice>;

/// What executes a compute statement.
enum class AtomKind : std::uint8_t {
    block,  ///< a register block of vectors, in a thread of a CPU or in a warp
    /// each thread computes its own register fragment, in the accumulator layout of the mma
    fragment,
    mma,  ///< of the tensor cores
    /// threads compute an operand's tile in shared memory, 16 bytes of a row at a time
    tile,
};

inline constexpr std::string_view atom_kind_names[] = {"block", "fragment", "mma", "tile"};
constexpr std::string_view name(AtomKind kind) { return atom_kind_names[at(kind)]; }

/// How a statement is executed. A block atom is a register block of vectors with the loops around it. It holds rows ×
/// vectors accumulators, or as many values of a map. The loops over the target's points stand around those over the
/// reduced axes. Atoms of other kinds only name their loops: the instruction decides which thread has which values.
struct Atom {
    AtomKind kind = AtomKind::block;
    AxisId vector_axis = -1;  ///< its neighbours share a vector; -1: scalar code
    bool across = false;      ///< the vector axis is reduced: lanes hold partial results, combined at the end
    /// the warps of a CTA share the reduction, too: they take vectors of every row round-robin
    bool shared = false;
    int vectors = 1;       ///< in the block, side by side along the vector axis
    AxisId row_axis = -1;  ///< the target's axis along which the block has rows; -1: one row
    int rows = 1;
    /// true: the loop over the vector axis is the innermost of the loops over points; false: the outermost
    bool vector_inner = false;
    std::vector<AxisId> points;  ///< the loops over the target's other axes, outermost first
    /// the loops over reduced axes, outermost first, without a reduced vector axis
    std::vector<AxisId> reduced;
    /// The reduction loop that is cut into parts: after each part the target takes up the block's sums. -1: none.
    AxisId cut_axis = -1;
    std::int64_t cut = 0;  ///< values in a part
    /// For an mma: it computes its columns in so many parts. What the iteration computes from a part follows it
    /// (column_parts.hpp), so that registers hold one part at a time.
    int parts = 1;
    /// Statements of one run are fused: together they take one panel of the kernel's vector axis after the other. -1:
    /// not fused.
    int run = -1;
    bool follows = false;  ///< a reduction fused into the loops of the statement before it
    /// The choice keeps `across`, `shared` and the cut, and the axis and the vectors of a reduction across the lanes.
    bool keeps_order = false;
    /// why it is of its kind, where others are possible; "": there is no other, or nobody asked
    std::string reason = {};
    bool by_user = false;
    int terms = 1;  ///< of the sum that one instruction adds up in each lane (lane_product.hpp)
    friend bool operator==(const Atom&, const Atom&) = default;
};

/// Where the core (SM) holds a variable.
enum class MemorySpace : std::uint8_t {
    buffer,  ///< its own tile in the arena
    /// the same for one panel of the vector axis, for a variable that lives within fused statements
    register_panel,
    packed_panel,  ///< a tile whose panels of the vector axis lie one after the other, each contiguous
    global,        ///< read in place in memory, or written in place
    registers,     ///< each thread holds its register fragment, in the accumulator layout of the mma
    /// a shared-memory operand tile in its type in memory, as the mma reads it: rows of 128 bytes with swizzled 16-byte
    /// parts
    operand,
    /// each thread of a CTA without tensor cores holds the values that it computes with (lane_registers.hpp)
    lanes,
    written,  ///< a shared-memory tile that lies as an operand's, which threads compute
    /// a sum over a stream, in the registers of those who add it up (accumulators.hpp)
    accumulators,
};

inline constexpr std::string_view memory_space_names[] = {
    "buffer", "register_panel", "packed_panel", "global", "registers", "operand", "lanes", "written", "accumulators"};
constexpr std::string_view name(MemorySpace holding) { return memory_space_names[at(holding)]; }

struct Place {
    MemorySpace holding = MemorySpace::buffer;
    int innermost = -1;         ///< the dimension that is contiguous; -1: a single value
    int stages = 1;             ///< tiles of a stream that are held at the same time
    bool non_temporal = false;  ///< for a variable in global memory that is written: stores bypass the caches
    /// For a variable in registers that is stored: each warp's staging tiles for it in shared memory. A staging tile
    /// has 16 rows of 128 bytes, and bulk copies store it. 0: each thread stores its own values.
    int staging_tiles = 0;
    bool by_user = false;
    friend bool operator==(const Place&, const Place&) = default;
};

/// What the loops of a statement prefetch into the caches.
enum class Fetched : std::uint8_t {
    groups,  ///< the tile for a later output tile, by a statement that computes at the same points
    /// The rows of a later register block, by a statement that reduces several rows at once. It fetches one line of
    /// them for each line that it reads.
    blocks,
};

struct Prefetch {
    VariableId variable = -1;
    AtomId atom = {};
    Choice ahead;  ///< by so many output tiles or register blocks; 0: no prefetch
    Fetched fetched = Fetched::groups;
    int cache = 1;  ///< the cache to fill, counted from the core: 1 or 2
    friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

/// A statement of one output tile that runs in the loops of another statement, of the next output tile. Its stores then
/// overlap what that statement computes.
struct TilePipelining {
    AtomId atom = {};
    AtomId in = {};  ///< the atom of the other statement
    Choice groups;   ///< by how many output tiles: 1; 0: it runs with its own
    friend bool operator==(const TilePipelining&, const TilePipelining&) = default;
};

/// Warps of a CTA that run statements of their own: producer warps. The consumer warps (KernelSchedule::warps) run all
/// other statements.
struct Role {
    std::string name;
    int workers = 1;
    std::string reason = {};
    bool by_user = false;
    friend bool operator==(const Role&, const Role&) = default;
};

/// A statement's place in its loop's modulo schedule: the role that runs it, its order in an iteration, and the number
/// of iterations that it runs ahead of the loop.
struct Slot {
    int role = -1;  ///< index into KernelSchedule::roles; -1: the consumer warps
    /// Statements of one role and loop run in ascending order. Those of one number keep the program's order.
    int order = 0;
    int stage_offset = 0;
    friend bool operator==(const Slot&, const Slot&) = default;
};

/// How the CTAs of a GPU get their output tiles.
enum class TileScheduler : std::uint8_t {
    static_tiles,  ///< the CTA's number says which ones it runs
    dynamic,       ///< a CTA takes the next one from a queue when its producer has issued the copies for the last one
    /// The CTA's number says it, and tiles of the last rounds are split so that all CTAs end together (stream_k.hpp).
    stream_k,
};
constexpr std::string_view name(TileScheduler scheduler) { return tile_scheduler_words[at(scheduler)]; }

/// When the running maximum moves to which weights refer (conditional_rescale.hpp).
enum class RescaleMode : std::uint8_t {
    always,  ///< in every K block
    /// Only where weights grow large. Finite weights are multiplied by the correction of the sums, all others are
    /// computed again.
    rescale,
};

/// Neighbouring CTAs that share what they load (cluster.hpp).
struct CtaCluster {
    AxisId axis = -1;  ///< along which they run neighbouring output tiles; -1: each CTA loads for itself
    std::int64_t ctas = 1;
    friend bool operator==(const CtaCluster&, const CtaCluster&) = default;
};

/// The schedule of one kernel. `atoms` are in the order of the kernel's compute statements, `places` in that of its
/// variables.
struct KernelSchedule {
    std::string kernel;
    SizesByAxis group;    ///< sizes of the output tile; an axis without one is not cut
    SizesByAxis stream;   ///< sizes of K blocks
    SizesByAxis subloop;  ///< sizes of the parts of a statement
    /// Axes of any size, with the size that they were planned at. Tiles cut them, and are as long whatever their size.
    SizesByAxis any;
    /// split-K: parts of the stream that run at the same time; the size of TileKernel::parts' axis
    Choice split{1, "", false};
    Choice threads{1, "", false};
    /// CTAs of a GPU's grid: one for each output tile, or as many as run at once; 0: a rule decides
    Choice grid;
    /// Width of the bands in which a GPU's CTAs take CTA tiles (group_order.hpp), in tiles of the outer one of the two
    /// innermost axes; 0: a rule decides
    Choice band;
    Chosen<TileScheduler> scheduler;  ///< of a GPU
    Chosen<CtaCluster> cluster;       ///< of a GPU
    Choice warps;   ///< of a CTA, which compute an output tile together; 0: a CPU's thread computes it alone
    Choice blocks;  ///< resident CTAs of an SM, which share its shared memory and registers; 0: on a CPU
    std::vector<Role> roles;
    Chosen<AxisId> vector_axis{-1, "", false};  ///< fused statements go along its panels; -1: each has its own
    /// For a kernel on tensor cores: the M axis of the mma, along which each warp takes 16 rows of all tiles. -1: no
    /// statement uses tensor cores.
    Chosen<AxisId> mma_m{-1, "", false};
    Chosen<RescaleMode> rescaling;  ///< of a kernel on tensor cores
    /// The bits of a row may not depend on how many rows there are. So sums are added up once a K block: whether they
    /// could stay in accumulators depends on the tile.
    bool is_batch_invariant = false;
    /// For a kernel on tensor cores with several warpgroups: one of them computes beside the products of another.
    Chosen<bool> ping_pong;
    Chosen<int> panel_vectors{1, "", false};  ///< vectors of a panel
    Choice rows{1, "", false};                ///< most rows of a register block
    By<AtomId, Atom> atoms;
    ByVariable<Place> places;
    std::vector<Prefetch> prefetches;             ///< of views that are read: at most one for each
    std::vector<TilePipelining> tile_pipelining;  ///< at most one for each statement, and at most one in each
    /// By statement, as statement_names counts them. A statement that is missing has the default.
    std::map<StepId, Slot> slots;
    friend bool operator==(const KernelSchedule&, const KernelSchedule&) = default;
};

/// A field that one line of a schedule fixes: how it is read, printed and merged. A new field is a member above, a row
/// here, and its word (choice_fields in diagram/schedule_item.hpp).
struct FieldRow {
    using Member = std::variant<SizesByAxis KernelSchedule::*, Choice KernelSchedule::*, Chosen<int> KernelSchedule::*,
                                Chosen<bool> KernelSchedule::*, Chosen<AxisId> KernelSchedule::*,
                                Chosen<TileScheduler> KernelSchedule::*, Chosen<RescaleMode> KernelSchedule::*,
                                Chosen<CtaCluster> KernelSchedule::*, std::vector<Role> KernelSchedule::*>;
    ChoiceKind kind;
    Member member;
    /// The search gives the field its value, overrides included (CandidateSchedules). Others keep the override.
    bool is_searched = false;
    bool is_always_printed = false;
    std::string_view printed = {}, printed_on_gpu = {};  ///< in place of the word
};
/// In the order in which they are printed.
inline constexpr FieldRow schedule_fields[] = {
    {ChoiceKind::group, &KernelSchedule::group, true},
    {ChoiceKind::stream, &KernelSchedule::stream, true},
    {ChoiceKind::subloop, &KernelSchedule::subloop, true},
    {ChoiceKind::any, &KernelSchedule::any},
    {ChoiceKind::split, &KernelSchedule::split, true},
    {ChoiceKind::threads, &KernelSchedule::threads, true, true, {}, gpu_threads},
    {ChoiceKind::grid, &KernelSchedule::grid},
    {ChoiceKind::band, &KernelSchedule::band},
    {ChoiceKind::scheduler, &KernelSchedule::scheduler},
    {ChoiceKind::cluster, &KernelSchedule::cluster, true},
    {ChoiceKind::warps, &KernelSchedule::warps, true},
    {ChoiceKind::blocks, &KernelSchedule::blocks, true},
    {ChoiceKind::role, &KernelSchedule::roles, true},
    {ChoiceKind::vector, &KernelSchedule::vector_axis, true, true, "vector axis"},
    {ChoiceKind::mma_m, &KernelSchedule::mma_m, true, false, "mma_m axis"},
    {ChoiceKind::rescaling, &KernelSchedule::rescaling},
    {ChoiceKind::ping_pong, &KernelSchedule::ping_pong},
    {ChoiceKind::vectors, &KernelSchedule::panel_vectors, true, true, "panel vectors"},
    {ChoiceKind::rows, &KernelSchedule::rows, false, true, {}, gpu_rows},
};
/// Sets the field to what a line says: `said` has its number, or the index of its word, and `axis` is the one that it
/// names, if it names one.
void set_field(KernelSchedule& schedule, const FieldRow& field, const ScheduleItem& item, AxisId axis, const Choice& said);

/// Names by which atoms are printed and parsed, in the order of the compute statements. A name is the variable that the
/// statement defines: S, and S#2 where S is defined again.
std::vector<std::string> atom_names(const TileKernel& kernel);

/// Names of all statements in order: "load K", "init P_M", "S", "store O". A name that comes again has #2.
std::vector<std::string> statement_names(const TileKernel& kernel);

/// Stands before the reason of a field that the user overrides.
inline constexpr std::string_view override_mark = "[override]";
inline constexpr std::string_view override_marks[] = {override_mark, "[by hand]"};  ///< that are read
/// One line for each field, with its reason. syntax/parse_schedule.cpp reads it.
std::string to_string(const TileProgram& program, const TileKernel& kernel, const KernelSchedule& schedule);

/// The item is about views: what units take besides operations, and which units a chart shows. No kernel depends on it.
bool is_of_views(const ScheduleItem& item);
/// The item is about the paper's steps. No kernel depends on it either.
bool is_of_steps(const ScheduleItem& item);
/// The item `machine`: the machine that a schedule file is for. Null without one.
const ScheduleItem* machine_line(const std::vector<ScheduleItem>& items);

/// The fields that the items fix, as a schedule for each kernel of the program. All other fields are open. Errors:
/// unknown-kernel, unknown-axis, unknown-statement, unknown-variable (nearest names), bad-schedule (what was expected).
Result<std::vector<KernelSchedule>> schedule_overrides(const std::vector<ScheduleItem>& items, const TileProgram& program);
/// The same for items as to_string prints them: with reasons, and as overrides only where they are marked so.
Result<std::vector<KernelSchedule>> schedules_as_printed(const std::vector<ScheduleItem>& items, const TileProgram& program);

}  // namespace napkin
