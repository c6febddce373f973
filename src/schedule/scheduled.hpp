#pragma once
// The scheduled program: a kernel's tile program under its schedule, with all that follows from the two: how every axis
// runs in every loop, in which order statements run, where every variable lies. What is planned, costed, counted,
// printed and emitted is this; it is made once, and after it everything only reads.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "machine/machine.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {

/// What of a machine's copy instructions the emitter writes.
struct CopyAtoms {
    /// One instruction copies a box of a tensor into the core's memory, of at most `bulk_box` values along each
    /// dimension; 0: threads copy.
    int bulk_dimensions = 0, bulk_box = 0;
    int bulk_store_dimensions = 0;  ///< the same from the core's memory; 0: threads store
    /// bytes that a thread copies into the core's memory and goes on meanwhile; 0: it waits for them
    int past_registers = 0;
    int vector_bytes = 0;           ///< that one load of a thread brings to its registers, at most
    double bulk_clocks = 0;         ///< from asking for a box to its first values, which come from the memory of all
    double cached_bulk_clocks = 0;  ///< the same of what the cache of all has
    double exchange_clocks = 0;     ///< until a thread has what another thread of its warp shows
    bool loads_fragments = false,
         stores_fragments = false;  ///< a warp's instructions between the core's memory and operands' fragments
    double loaded_bulk_clocks = 0;  ///< from asking for a box while all cores copy as fast as they can; 0: not known
    std::vector<std::int64_t> clusters = {};  ///< of so many blocks one bulk copy fills the memories of all
    friend bool operator==(const CopyAtoms&, const CopyAtoms&) = default;
};
/// By the names that PTX gives them. Pre: a GPU.
CopyAtoms copy_atoms(const Machine& gpu);

/// Instructions that many kernels share, so that copies of a kernel copy none of them.
class SharedInstructions {
public:
    SharedInstructions() = default;
    SharedInstructions(std::vector<Instruction> all)  // NOLINT(google-explicit-constructor): it stands for them
        : all_(all.empty() ? nullptr : std::make_shared<const std::vector<Instruction>>(std::move(all))) {}
    [[nodiscard]] bool empty() const { return all_ == nullptr; }
    [[nodiscard]] const Instruction* begin() const { return all_ ? all_->data() : nullptr; }
    [[nodiscard]] const Instruction* end() const { return all_ ? all_->data() + all_->size() : nullptr; }
    friend bool operator==(const SharedInstructions& a, const SharedInstructions& b) {
        return a.all_ == b.all_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    std::shared_ptr<const std::vector<Instruction>> all_;  ///< null: there are none
};

/// What of a processor decides on code: bytes and number of its vector registers, and of a line of its caches. A GPU's
/// warp is a vector with a value in every thread, whatever its type.
struct VectorUnit {
    int bytes = 64, registers = 32, line_bytes = 64;
    int warp_threads = 0;  ///< 0: vectors of so many bytes
    /// of the core's memory that a block of warps may use; a larger arena lies in memory
    std::int64_t block_bytes = 0;
    std::int64_t share_bytes = 0;      ///< of it that one has where several share a core
    std::int64_t block_registers = 0;  ///< of the core's registers that a block of warps may use
    SharedInstructions matrix = {};    ///< instructions that multiply tiles
    CopyAtoms copies = {};
    int blocks_a_core = 1;  ///< that a core is to hold at a time: a thread may have so many registers that they fit
    /// of tiles that later blocks read again, which the cache of all cores holds meanwhile
    std::int64_t reread_bytes = 0;
    int chains = 8;  ///< of dependent multiply-adds that keep a CPU's unit busy: their latency over the clocks of one
    friend bool operator==(const VectorUnit&, const VectorUnit&) = default;
};

/// How an axis runs in one scope: from 0 or from where its tile begins, over `tile` values or, when ragged, over at
/// most as many. Whichever blocks statements take along it, none reaches past `padded`.
struct Span {
    std::int64_t tile = 1, padded = 1;
    bool begins = false, ragged = false;
    /// A subloop cuts it. Tiles of the whole axis are then read and written in parts, which blocks must not leave.
    bool is_part = false;
};
using Scope = ByAxis<Span>;

/// A statement that runs: Load, Store, Init or Compute.
struct Step {
    const TileStatement* statement = nullptr;
    std::vector<const Read*> reads = {};  ///< of a Compute: those of its body, then those of its carry
    ScopeId scope = 0;
    AtomId atom = {};      ///< of a Compute
    StepId follower = {};  ///< the step that rides in this one's loops; -1: none
    StepId deferred = {};  ///< the step that runs in this one's loops for the group before; -1: none
    /// It runs for the group before, in the loops of this step, and for the last group behind all of them; -1: in its
    /// own group.
    StepId pipelined_into = {};
    bool is_whole = false;      ///< it computes integers that real numbers may not hold: scalar code
    bool synchronizes = false;  ///< of a block of warps: all wait for each other before it
    /// And once more inside: between the zeros of a load's tile and what is copied over them, or between what the warps
    /// that share a reduction each find and its result.
    bool synchronizes_inside = false;
    bool stays = false;  ///< of a load: its buffer has had the group's tile since an earlier one
    bool waits = false;  ///< of a load of an operand: all wait for its copy
    /// For a load of an operand that threads copy themselves: each waits until at most so many of its later copies are
    /// under way, then all wait for each other; -1: a bulk copy says itself what it has filled, or the next step waits
    /// for both.
    int copies_behind = -1;
    /// For a store by boxes: before a warp writes to a box, it waits until at most so many of those that it has sent
    /// are still being read; -1: it does not wait.
    int staging_behind = -1;
    /// of a store by boxes: what a warp has written to a box is made visible to the bulk copy that it asks for then
    bool fences_proxy = false;
    /// of a load of an operand in a role: its warps wait until those that compute are done with what it overwrites
    bool acquires = false;
    int ahead = 0;  ///< it runs for so many turns to come of its loop
    /// in order of execution; a follower has that of its leader, and what is deferred that of the step in whose loops
    /// it runs
    int position = -1;
    [[nodiscard]] bool is_tile_pipelined() const { return pipelined_into >= 0; }
};

/// Compute statements that run one after the other for each panel of the kernel's vector axis.
struct FusedStatements {
    std::vector<StepId> steps;
};
/// An operand whose tile those that compute are done with: of the turn that is so many ahead of the loop, -1 of the one
/// before it, if there was one.
struct Release {
    VariableId operand = -1;
    int ahead = 0;
    friend bool operator==(const Release&, const Release&) = default;
};
/// A wait for products of the matrix unit, which runs them while its warps go on.
struct WaitGroup {
    int pending = -1;                      ///< at most so many are under way after it; -1: it does not wait
    std::vector<VariableId> results = {};  ///< what those that end here computed, and no other product is computing
    std::vector<Release> frees = {};
};
using Node = std::variant<StepId, FusedStatements, LoopId, WaitGroup>;
struct ScheduledLoop {
    const TileLoop* loop = nullptr;
    ScopeId scope = 0, outer_scope = 0;
    /// For a loop that copies operands ahead: all warps wait for each other before its first copies, and before each
    /// turn's.
    bool synchronizes_before = false, synchronizes = false;
    std::vector<Node> body = {};
    /// Where steps run ahead: what runs before the first turn's body, and in place of the last one's.
    std::vector<Node> prologue = {}, epilogue = {};
    /// What runs in place of all turns, where such a loop may have none.
    std::vector<Node> skipped = {};
};

/// Positions of execution between which a variable has its values, both included. One that is loaded in two loops has
/// two lives.
struct Life {
    int first, last;
    [[nodiscard]] bool has(int position) const { return first <= position && position <= last; }
    [[nodiscard]] bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

/// Where a variable lies at the core.
struct Layout {
    ScopeId scope = {};  ///< in which it is defined: its tile and origin
    /// How many values of an axis the statements that touch it take at a time, each once.
    std::vector<std::pair<AxisId, std::int64_t>> blocks;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t panel_stride = 0;  ///< packed: from one panel to the next
    std::int64_t count = 1;         ///< values with padding
    std::int64_t tile = 1;          ///< values of the full tile that are held
    /// in the arena, in values; of a variable in registers where its boxes are (Place::boxes)
    std::int64_t offset = 0;
    VariableId over = -1;  ///< the variable whose place this one takes as that one dies; -1: it has its own
    /// of a view: some tiles' padding would lie past the array's end; these are copied, with the same strides
    bool may_overrun = false;
    std::int64_t reach = 0;   ///< of a view: values from the first to past the last that a padded tile reads
    std::vector<Life> lives;  ///< in order; none of a variable that no step touches
};

/// A digit of a group's number: of so many tiles of an axis, or of as many bands of it, each of `stride` tiles, of
/// which another digit counts the tiles.
struct GroupAxis {
    AxisId axis = -1;
    std::int64_t tiles = 1;
    std::int64_t stride = 1;
    bool is_uneven = false;    ///< groups that stand elsewhere along it run more chunks of a stream, or fewer
    bool is_backward = false;  ///< its last tile comes first
    friend bool operator==(const GroupAxis&, const GroupAxis&) = default;
};

/// A running maximum that may lag, and the steps around it, all of one loop (conditional_rescale.hpp).
struct ConditionalRescale {
    VariableId maximum = -1;
    /// the steps that move it: what it was, the maximum, the same without infinities, the correction
    std::vector<StepId> moving;
    VariableId correction = -1;
    StepId weights = {};  ///< the step exp(A − m)
    StepId sum = {};      ///< the step by which threads add up the weights of a row
    /// The steps that compute what A is made of in the same turn, which run again where the weights are to be computed
    /// again: their results' registers may be those of the weights.
    std::vector<StepId> again;
    /// Largest sum of weights that a thread may hold of a row. A maximum whose move scales weights by more than that
    /// may move again soon.
    double limit = 0;
    double largest = 1;  ///< weight of a row as the reference moves to its maximum

    /// What the step computes is corrected as the maximum moves.
    [[nodiscard]] bool is_corrected(const Step& step) const;
    [[nodiscard]] bool moves(StepId step) const { return contains(moving, step); }
};

/// Products whose columns a loop's turn computes in parts, one after the other, each with all that the turn makes of it
/// (column_parts.hpp).
struct ColumnParts {
    AxisId axis = -1;                     ///< of the columns
    ScopeId scope = 0;                    ///< of the loop
    std::int64_t parts = 1, columns = 0;  ///< columns of one part
    std::vector<StepId> steps;            ///< that run for each part, in order
    std::vector<VariableId> passing;      ///< what no other steps touch: registers hold one part of it

    [[nodiscard]] bool has(StepId step) const { return contains(steps, step); }
    [[nodiscard]] bool is_passing(VariableId id) const { return contains(passing, id); }
};

/// What of a variable no schedule changes.
struct VariableFacts {
    bool is_whole = false;  ///< its buffer holds 64-bit integers, not real numbers (whole.hpp)
    bool is_cut = false;    ///< a load has to look where the array ends along one of its dimensions
    /// It is loaded, and its elements say what other loads bring in; no statement computes with them. Loads read them
    /// in memory, where they are exact.
    bool is_only_gathered = false;
    std::optional<ScopeId> load_scope = {};  ///< of the first step that loads it; none of what is computed
    std::vector<Index> source = {};          ///< of what data decide on: Box::source, by the array's dimensions
};

struct ScheduledKernel {
    std::shared_ptr<const TileProgram> program;
    const TileKernel* kernel = nullptr;
    Extents extents;
    TileSizes sizes;
    VectorUnit unit;
    KernelSchedule schedule;

    bool is_double = false;
    int lanes = 16;
    By<ScopeId, Scope> scopes;  ///< of the group; then one for each loop
    By<StepId, Step> steps;
    std::vector<Node> body;
    By<LoopId, ScheduledLoop> loops;
    std::optional<ConditionalRescale> lazy;   ///< where the schedule lets one lag
    std::optional<ColumnParts> column_parts;  ///< where the schedule has products in parts
    /// In a cluster, all threads meet before any block copies for the others or tells them what is free, and no block
    /// ends before all have met again.
    bool syncs_cluster_before = false, syncs_cluster_after = false;
    /// at its end, until bulk copies have read all boxes: shared memory ends with the block
    bool waits_for_staging = false;
    /// the digits of a group's number, outermost first: the last one's next tile is the next group
    std::vector<GroupAxis> group_order;
    ByVariable<Layout> layouts;
    ByVariable<VariableFacts> variable_facts;
    std::vector<ArrayId> inputs, outputs;
    /// inputs that must have row-major strides, because a view or an operand's copy reads them
    std::vector<bool> packed;
    std::vector<bool> dense;        ///< outputs that must have row-major strides, because a view writes them
    std::int64_t arena_values = 0;  ///< of the compute type
    /// where in the arena the warps that share a reduction leave what each of them found
    std::int64_t partials_offset = 0;
    std::int64_t held_values = 0;    ///< the most values of tiles that the arena holds at a time, without padding
    std::int64_t memory_values = 0;  ///< the same with tiles that are read or written in place

    [[nodiscard]] const Variable& variable(VariableId id) const { return kernel->variables[id]; }
    [[nodiscard]] const VariableFacts& facts(VariableId id) const { return variable_facts[id]; }
    [[nodiscard]] const Layout& layout(VariableId id) const { return layouts[id]; }
    [[nodiscard]] const Place& place(VariableId id) const { return schedule.places[id]; }
    [[nodiscard]] bool is_view(VariableId id) const { return place(id).holding == MemorySpace::view; }
    /// The prefetches in the loops of the statement.
    [[nodiscard]] std::vector<const Prefetch*> prefetches_in(const Step& step) const {
        std::vector<const Prefetch*> found;
        for (const Prefetch& p : schedule.prefetches)
            if (p.ahead.value > 0 && p.atom == step.atom) found.push_back(&p);
        return found;
    }
    /// Bulk copies store it.
    [[nodiscard]] bool is_staged_out(VariableId id) const { return place(id).boxes > 0; }
    /// Threads read its values where they lie, whatever their type, in a kernel on the matrix unit, whose statements
    /// write nothing in place.
    [[nodiscard]] bool is_read_by_threads(VariableId id) const { return on_tensor_cores() && is_view(id); }
    [[nodiscard]] bool is_panel(VariableId id) const { return place(id).holding == MemorySpace::panel; }
    [[nodiscard]] bool is_packed(VariableId id) const { return place(id).holding == MemorySpace::packed; }
    [[nodiscard]] bool is_in_registers(VariableId id) const { return place(id).holding == MemorySpace::registers; }
    [[nodiscard]] bool is_operand(VariableId id) const { return place(id).holding == MemorySpace::operand; }
    [[nodiscard]] bool on_tensor_cores() const { return schedule.mma_m_axis >= 0; }
    /// The operand whose tile the step loads; -1: it loads none.
    [[nodiscard]] VariableId operand_loaded(const Step& step) const {
        const auto* load = std::get_if<Load>(step.statement);
        return load && is_operand(load->variable) ? load->variable : VariableId();
    }
    [[nodiscard]] bool loads_operand(const Step& step) const { return operand_loaded(step) >= 0; }
    /// The steps of the scope that load operands, in their order.
    [[nodiscard]] std::vector<const Step*> operand_loads(ScopeId in_scope) const {
        std::vector<const Step*> out;
        for (const Step& s : steps)
            if (s.scope == in_scope && loads_operand(s)) out.push_back(&s);
        return out;
    }
    /// Operands come by bulk copies, of which one thread asks for each; else all threads copy them.
    [[nodiscard]] bool has_bulk_copies() const { return unit.copies.bulk_dimensions > 0; }
    /// The role that loads operands, which runs ahead of the warps that compute; null: one of these asks for the
    /// copies.
    [[nodiscard]] const Role* producer_role() const {
        return schedule.roles.empty() ? nullptr : &schedule.roles.front();
    }
    /// Threads of a block, which stand in rows: all of them in one, or in rows as long as the role's, which is the last
    /// one.
    [[nodiscard]] std::int64_t num_threads() const {
        return (schedule.warps.value + (producer_role() ? producer_role()->workers : 0)) * unit.warp_threads;
    }
    [[nodiscard]] std::int64_t threads_a_row() const {
        return (producer_role() ? producer_role()->workers : schedule.warps.value) * unit.warp_threads;
    }
    /// It has values in the arena.
    [[nodiscard]] bool is_held(VariableId id) const {
        return !layout(id).lives.empty() && !is_in_registers(id) && (!is_view(id) || layout(id).may_overrun);
    }
    /// Warps share the work of every statement; else one thread does all of it.
    [[nodiscard]] bool in_blocks() const { return schedule.warps.value > 0; }
    [[nodiscard]] bool arena_in_core() const { return !in_blocks() || arena_bytes() <= unit.block_bytes; }
    [[nodiscard]] const Scope& scope(ScopeId id) const { return scopes[id]; }
    [[nodiscard]] const Span& span(AxisId axis, ScopeId at_scope) const { return scope(at_scope)[axis]; }
    [[nodiscard]] const ScheduledLoop& loop(LoopId id) const { return loops[id]; }
    [[nodiscard]] const Step& step(StepId id) const { return steps[id]; }
    [[nodiscard]] StepId number(const Step& step) const { return StepId::of(&step - steps.data()); }
    /// The step runs once for each part of its columns.
    [[nodiscard]] bool runs_in_parts(const Step& step) const { return column_parts && column_parts->has(number(step)); }
    [[nodiscard]] const Atom& atom(const Step& step) const { return schedule.atoms[step.atom]; }
    /// Warps that share a reduction leave a copy of its target each: so many values in all.
    [[nodiscard]] std::int64_t partials(const Step& step) const {
        if (step.atom < 0 || atom(step).kind != AtomKind::block || !atom(step).shared) return 0;
        return layout(std::get<Compute>(*step.statement).variable).count * schedule.warps.value;
    }
    /// How far the statements that touch the variable reach along one of its axes, of `count` values.
    [[nodiscard]] std::int64_t reach(VariableId id, AxisId axis, std::int64_t count) const;
    [[nodiscard]] std::int64_t extent(AxisId id) const { return extents[id]; }
    /// Both have their values at some position.
    [[nodiscard]] bool live_together(VariableId a, VariableId b) const;
    [[nodiscard]] bool is_whole(VariableId id) const { return facts(id).is_whole; }
    [[nodiscard]] std::int64_t panel() const { return static_cast<std::int64_t>(lanes) * schedule.panel_vectors; }
    /// Values of the compute type that one number takes.
    [[nodiscard]] std::int64_t cell_values(bool is_integer) const { return is_integer && !is_double ? 2 : 1; }
    [[nodiscard]] std::int64_t value_bytes() const { return is_double ? 8 : 4; }
    [[nodiscard]] std::int64_t arena_bytes() const { return arena_values * value_bytes(); }
    /// What the core's memory holds: the arena, and where it is a cache the tiles that are read or written in place.
    /// What a block of warps reads or writes in place passes by its shared memory.
    [[nodiscard]] std::int64_t memory_bytes() const {
        return arena_bytes() + (in_blocks() ? 0 : memory_values - held_values) * value_bytes();
    }
    [[nodiscard]] std::int64_t num_groups() const;
    /// Some groups run more chunks than others, as group_order says.
    [[nodiscard]] bool has_uneven_groups() const {
        return any_of(group_order, [](const GroupAxis& a) { return a.is_uneven; });
    }
    /// The groups run one section after the other: all values of the uneven axes, at the same values of the axes
    /// outside of them.
    [[nodiscard]] std::int64_t num_sections() const;
    /// Each group has a block of its own, which the hardware starts as another one ends; else as many blocks as run at
    /// once take the groups in turn: where the grid says so, blocks of a number by hand, and blocks with an arena in
    /// memory, which each of them has for itself.
    [[nodiscard]] bool has_block_a_group() const {
        if (!in_blocks() || !arena_in_core() || is_dynamic()) return false;
        return schedule.grid.value > 0 ? schedule.grid.value >= num_groups()
                                       : has_uneven_groups() && !schedule.threads.by_user;
    }
    /// Blocks take the uneven groups of each section in turn, one round forth and the next one back, as time_in_rounds
    /// says.
    [[nodiscard]] bool alternates_direction() const {
        return in_blocks() && has_uneven_groups() && !has_block_a_group() && !is_dynamic();
    }
    /// As many blocks as run at once take the groups in their order, each the next one as it is done with asking for
    /// the tiles of its last.
    [[nodiscard]] bool is_dynamic() const { return schedule.dealing.value == static_cast<int>(TileScheduler::queue); }
    /// Blocks share the last rounds' chunks evenly, and groups are cut for it: as stream_k.hpp says, where that may be.
    [[nodiscard]] bool uses_stream_k() const { return schedule.dealing.value == static_cast<int>(TileScheduler::cut); }
    /// Blocks of a cluster, which run as many groups beside each other at the same time; 1: every block is by itself.
    [[nodiscard]] std::int64_t cluster_blocks() const { return schedule.cluster_axis < 0 ? 1 : schedule.cluster.value; }
    [[nodiscard]] bool in_cluster() const { return cluster_blocks() > 1; }
    /// Blocks of a GPU's grid: a multiple of a cluster's.
    [[nodiscard]] std::int64_t num_blocks() const;
    /// Values of the axis that one pass of its loop in the atom covers.
    [[nodiscard]] std::int64_t block_size(const Atom& atom, AxisId axis) const;
    /// Whether blocks of as many values may stand along the axis.
    [[nodiscard]] bool takes_blocks(AxisId axis, ScopeId at_scope, std::int64_t size) const {
        return !span(axis, at_scope).is_part || span(axis, at_scope).tile % size == 0;
    }
};

struct ScheduledProgram {
    std::vector<ScheduledKernel> kernels;
};

/// The axes of a variable that a compute statement defines, in the order of its dimensions.
std::vector<AxisId> target_axes(const Variable& variable);
bool carries(const Variable& variable, AxisId axis);
/// The variable that a step computes, sets to its first value, loads or stores.
VariableId variable_of(const Step& step);
bool reads(const Step& step, VariableId variable);
/// What the statement computes is added to the target's own values, as they are.
bool adds_in_place(const Compute& compute);
/// Plain reads of the statement's body and carry.
std::vector<const Read*> reads_of(const Compute& compute);
/// Terms of the statement's reduction over all chunks, at most 2^40.
std::int64_t total_terms(const ScheduledKernel& kernel, const Compute& compute);
/// Whether a load has to look where the array ends: an index is not affine, or leaves the array for some values of its
/// axes.
bool is_cut(const ScheduledKernel& kernel, const Variable& variable, std::size_t dimension);
/// The most values that an index takes over a scope's tile, padding included, wherever the tile stands.
std::int64_t most_values(const ScheduledKernel& kernel, const Index& index, ScopeId scope);

/// How far apart the elements lie that neighbouring values of the axis read.
enum class LaneStep : std::uint8_t { same, near, far };
LaneStep lane_step(const ScheduledKernel& kernel, const Read& r, AxisId axis);

/// Steps, loops and facts of variables, which are those of all its schedules; it has none yet. Pre: the program's index
/// expressions hold numbers in place of sizes.
ScheduledKernel unscheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                            const Extents& extents, const VectorUnit& unit);
/// Scopes and the order of groups: what the sizes alone decide. Atoms and places are those of a schedule that has none
/// yet.
ScheduledKernel with_sizes(ScheduledKernel unscheduled, KernelSchedule schedule);
/// From the schedule's atoms: what axes are padded to, runs, followers, what is deferred. Pre: it has an atom for each
/// compute statement.
void apply_atoms(ScheduledKernel& kernel);
/// Sizes, strides and count of a variable's layout, from its place. Pre: the atoms are applied.
void shape(ScheduledKernel& kernel, VariableId id);
/// From the schedule's places: strides, lifetimes, the arena. Pre: it has a place for each variable, and the atoms are
/// applied.
void apply_storage(ScheduledKernel& kernel);
/// The order of the statements of loops that have slots, with what runs ahead before and after them. Pre: slots are
/// chosen.
void apply_slots(ScheduledKernel& kernel);
/// What is wrong with slots: statements that would run before what they need, or after it is overwritten. Pre: slots
/// are applied.
std::vector<std::string> slot_faults(const ScheduledKernel& kernel);
/// Some of its statements run ahead of their loop.
bool runs_ahead(const ScheduledKernel& kernel);
/// The step is a product that its warps do not wait for.
bool runs_beside(const ScheduledKernel& kernel, const Step& step);
/// Waits for products, and when operands are free (WaitGroup). Pre: places are applied.
void wait_for_products(ScheduledKernel& kernel);
/// The fewest and the most chunks that a group runs of a loop: none where masks may leave all of them out.
struct Iterations {
    std::int64_t least = 1, most = 1;
};
Iterations iterations_of(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Its chunks run in a loop; else it has one, which always runs.
bool is_repeated(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// Finds, for a kernel in blocks, which steps all warps wait for each other before, since they read or write what
/// others wrote or read after the last time (Step::synchronizes). The one place that decides it. Pre: the places are
/// applied.
void synchronize(ScheduledKernel& kernel);
/// All of them.
ScheduledKernel scheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Extents& extents,
                          const KernelSchedule& schedule, const VectorUnit& unit);

}  // namespace napkin
