#pragma once
// The scheduled program: a kernel's tile program under its schedule, with all that follows from the two. That is how
// each axis runs in each loop, the order of statements, and where each variable lies. Plans, costs, counts, print and
// emitted source all come from it. It is made once and then only read.
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

/// What the emitter uses of a machine's copy instructions.
struct CopyAtoms {
    /// Bulk copies of tensor boxes into shared memory: a box's dimensions at most, and its values along each dimension
    /// at most. 0: threads copy.
    int bulk_dimensions = 0, bulk_box = 0;
    int window_box = 0;             ///< the same along rows, of copies of windows (window_copy.hpp); 0: there are none
    int bulk_store_dimensions = 0;  ///< the same out of shared memory; 0: threads store
    /// bytes that a thread copies into shared memory asynchronously (cp.async); 0: threads wait for their copies
    int past_registers = 0;
    int vector_bytes = 0;           ///< that one load of a thread brings to its registers, at most
    double bulk_clocks = 0;         ///< from issuing a bulk copy to its first values, from global memory
    double cached_bulk_clocks = 0;  ///< the same for what is in L2
    double exchange_clocks = 0;     ///< until a thread has a value of another thread of its warp (a shuffle)
    bool loads_fragments = false,
         stores_fragments = false;  ///< instructions of a warp between shared memory and register fragments
    double loaded_bulk_clocks = 0;  ///< from issuing a bulk copy while all SMs copy as fast as they can; 0: not known
    /// cluster sizes: one bulk copy fills the shared memories of so many CTAs
    std::vector<std::int64_t> clusters = {};
    friend bool operator==(const CopyAtoms&, const CopyAtoms&) = default;
};
/// Finds them by their PTX names. Pre: a GPU.
CopyAtoms copy_atoms(const Machine& gpu);

/// The instructions for which kernels are written, shared by many kernels. They leave results in one layout, so that
/// each statement finds in its thread's registers what another one computed.
class SharedInstructions {
public:
    SharedInstructions() = default;
    /// Keeps those with the tile of the first one that has any.
    SharedInstructions(std::vector<Instruction> all);  // NOLINT(google-explicit-constructor): it stands for them
    [[nodiscard]] bool empty() const { return all_ == nullptr; }
    [[nodiscard]] const Instruction* begin() const { return all_ ? all_->data() : nullptr; }
    [[nodiscard]] const Instruction* end() const { return all_ ? all_->data() + all_->size() : nullptr; }
    /// Pre: not empty.
    [[nodiscard]] const RegisterTile& tile() const { return *all_->front().tile; }
    /// The most warps that run one instruction together: those of a warpgroup.
    [[nodiscard]] std::int64_t warps_together() const;
    friend bool operator==(const SharedInstructions& a, const SharedInstructions& b) {
        return a.all_ == b.all_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    std::shared_ptr<const std::vector<Instruction>> all_;  ///< null: there are none
};

/// The properties of a processor that decide on code: bytes and number of its vector registers, bytes of a cache line.
/// A GPU's warp is a vector with a value in each thread, whatever its type.
struct VectorUnit {
    int bytes = 64, registers = 32, line_bytes = 64;
    int warp_threads = 0;  ///< 0: a CPU, with vectors of `bytes`
    /// shared memory that a CTA may use; a larger arena lies in global memory
    std::int64_t block_bytes = 0;
    std::int64_t share_bytes = 0;      ///< the part of it that a CTA has where several share an SM
    std::int64_t block_registers = 0;  ///< registers of an SM that a CTA may use
    SharedInstructions matrix = {};    ///< the mma instructions
    CopyAtoms copies = {};
    int blocks_a_core = 1;  ///< resident CTAs of an SM; a thread may have so many registers that they fit
    /// bytes of tiles that later CTAs read again and that L2 keeps until then
    std::int64_t reread_bytes = 0;
    /// types of which an instruction multiplies several values in each lane and adds them up (lane_product.hpp)
    std::vector<DType> lane_products = {};
    int chains = 8;  ///< of dependent multiply-adds that keep a CPU's unit busy: their latency over the clocks of one
    friend bool operator==(const VectorUnit&, const VectorUnit&) = default;
};

/// How an axis runs in one scope: over `tile` values, from 0 or from where its tile begins. When ragged, some tile has
/// fewer. No register block of a statement reaches past `padded`.
struct Span {
    std::int64_t tile = 1, padded = 1;
    bool begins = false, ragged = false;
    /// A subloop cuts it. Tiles of the whole axis are then read and written in parts, and no register block may cross
    /// the end of a part.
    bool is_part = false;
};
using Scope = ByAxis<Span>;

/// A statement that runs: Load, Store, Init or Compute.
struct Step {
    const TileStatement* statement = nullptr;
    std::vector<const Read*> reads = {};  ///< for a Compute: those of its body, then those of its carry
    ScopeId scope = 0;
    AtomId atom = {};      ///< for a Compute
    StepId follower = {};  ///< the step of a reduction that is fused into this one's loops; -1: none
    StepId deferred = {};  ///< the step of the previous output tile that runs in this one's loops; -1: none
    /// The step in whose loops it runs for the previous output tile. For the last tile it runs after all tiles. -1: it
    /// runs with its own tile.
    StepId pipelined_into = {};
    bool is_whole = false;      ///< it computes integers that floating-point numbers may not hold: scalar code
    bool synchronizes = false;  ///< all warps of the CTA wait for each other before it
    /// They also wait inside of it. In a load that is between the zeros of the tile and what is copied over them. In a
    /// reduction that warps share it is between their partial results and the result.
    bool synchronizes_inside = false;
    bool stays = false;  ///< for a load: its buffer has had the output tile's data since an earlier load
    bool waits = false;  ///< for a load of an operand: all wait for its copy
    /// For an operand that threads copy themselves. Each thread waits until at most so many of its later copies are
    /// outstanding. -1: it does not wait. A bulk copy signals its own completion, or the next step waits for both.
    int copies_behind = -1;
    bool synchronizes_behind = false;  ///< then all warps of the CTA wait for each other
    /// For a store through staging tiles. Before a warp writes to one, it waits until bulk copies still read at most so
    /// many of its others. -1: it does not wait.
    int staging_behind = -1;
    /// for a store through staging tiles: a proxy fence makes what a warp wrote visible to the bulk copy that it then
    /// issues
    bool fences_proxy = false;
    /// for a load of an operand by producer warps: they wait until the consumers have released what it overwrites
    bool acquires = false;
    int ahead = 0;  ///< iterations that it runs ahead of its loop
    /// In order of execution. A fused reduction has the position of its leader. A step of the previous output tile has
    /// that of the step in whose loops it runs.
    int position = -1;
    [[nodiscard]] bool is_tile_pipelined() const { return pipelined_into >= 0; }
};

/// Compute statements that run one after the other for each panel of the kernel's vector axis.
struct FusedStatements {
    std::vector<StepId> steps;
};
/// A consumer release: the consumers are done with an operand's tile. `ahead` names the iteration relative to the
/// loop's. With -1 it is the one before, if there was one: a deferred release.
struct Release {
    VariableId operand = -1;
    int ahead = 0;
    bool is_left_out = false;  ///< it is not made, and the one that comes after it is not either
    friend bool operator==(const Release&, const Release&) = default;
};
/// A wait for outstanding products of the tensor cores, which run while their warps go on (wgmma.wait_group).
struct WaitGroup {
    int pending = -1;  ///< at most so many are outstanding after it; -1: it does not wait
    /// what the products that end here computed, unless an outstanding one computes it
    std::vector<VariableId> results = {};
    std::vector<Release> frees = {};
};
using Node = std::variant<StepId, FusedStatements, LoopId, WaitGroup>;
struct ScheduledLoop {
    const TileLoop* loop = nullptr;
    ScopeId scope = 0, outer_scope = 0;
    /// For a loop that copies operands ahead: all warps wait for each other before its first copies, and before each
    /// iteration's copies.
    bool synchronizes_before = false, synchronizes = false;
    std::vector<Node> body = {};
    /// Where steps run ahead: what runs before the first iteration's body, and what replaces the last iteration's body.
    std::vector<Node> prologue = {}, epilogue = {};
    /// What replaces all iterations, where such a loop may have none.
    std::vector<Node> skipped = {};
};

/// Positions of execution between which a variable has its values, both included. A variable that is loaded in two
/// loops has two lives.
struct Life {
    int first, last;
    [[nodiscard]] bool has(int position) const { return first <= position && position <= last; }
    [[nodiscard]] bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

/// Where a variable lies at the core, and how.
struct Layout {
    ScopeId scope = {};  ///< in which it is defined: this gives its tile and origin
    /// How many values of an axis the accessing statements take at a time, each number once.
    std::vector<std::pair<AxisId, std::int64_t>> blocks;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t panel_stride = 0;  ///< packed: from one panel to the next
    std::int64_t count = 1;         ///< values with padding
    std::int64_t tile = 1;          ///< values of the full tile that are held
    /// in the arena, in values; for a variable in registers that of its staging tiles (Place::boxes)
    std::int64_t offset = 0;
    VariableId over = -1;  ///< the variable whose memory it takes over as that one dies; -1: it has its own
    /// For a view: some tiles' padding would lie past the array's end. These tiles are copied, with the same strides.
    bool may_overrun = false;
    /// A lane product reads it: a cell has so many neighbours along the dimension, in their type in memory.
    int terms = 1, term_dimension = -1;
    bool is_biased = false;   ///< its cells are of i8, 128 added to each, as u8
    bool in_runs = false;     ///< a view that statements by runs access (thread_runs.hpp)
    std::int64_t reach = 0;   ///< for a view: values from the first to past the last that a padded tile reads
    std::vector<Life> lives;  ///< in order; none for a variable that no step accesses
};

/// A digit of an output tile's number. It counts tiles of an axis, or bands of the axis. A band has `stride` tiles,
/// which another digit counts.
struct GroupAxis {
    AxisId axis = -1;
    std::int64_t tiles = 1;
    std::int64_t stride = 1;
    bool is_uneven = false;    ///< tiles at different places along it run different numbers of K blocks
    bool is_backward = false;  ///< its last tile comes first
    friend bool operator==(const GroupAxis&, const GroupAxis&) = default;
};

/// A running reference with conditional rescaling, and the steps around it, all in one loop (conditional_rescale.hpp).
struct ConditionalRescale {
    VariableId maximum = -1;  ///< the reference: a running maximum or minimum
    double rate = 1;          ///< a reference that moves by t multiplies weights by e^(−rate·t); of a minimum negative
    /// the steps that move it, in order: its old value, the reference, the reference without infinities, what is made
    /// of that alone, and the correction
    std::vector<StepId> moving;
    VariableId correction = -1;
    StepId weights = {};  ///< the step exp(A − m)
    StepId sum = {};      ///< the step in which threads add up the weights of a row
    /// The steps of the same iteration that compute what A is made of. They run again where weights must be computed
    /// again, since the registers of their results may be those of the weights.
    std::vector<StepId> again;
    /// Largest sum of weights of a row that a thread may hold, of numbers and sizes. If a move scales weights by more
    /// than that, the maximum may move again soon.
    Expr limit;
    Expr largest;  ///< weight at a row's maximum as the reference moves to it, of numbers and sizes

    /// The step's result is corrected as the maximum moves.
    [[nodiscard]] bool is_corrected(const Step& step) const;
    [[nodiscard]] bool moves(StepId step) const { return contains(moving, step); }
};

/// Products whose columns an iteration computes in parts, one after the other. What the iteration computes from a part
/// follows it (column_parts.hpp).
struct ColumnParts {
    AxisId axis = -1;                     ///< of the columns
    ScopeId scope = 0;                    ///< of the loop
    std::int64_t parts = 1, columns = 0;  ///< columns of one part
    std::vector<StepId> steps;            ///< that run for each part, in order
    std::vector<VariableId> passing;      ///< which no other steps access: registers hold one part of each

    [[nodiscard]] bool has(StepId step) const { return contains(steps, step); }
    [[nodiscard]] bool is_passing(VariableId id) const { return contains(passing, id); }
};

/// What no schedule changes about a variable.
struct VariableFacts {
    bool is_whole = false;  ///< its buffer holds 64-bit integers, not floating-point numbers (integer_values.hpp)
    bool is_long = false;   ///< statements compute integers for it that 32 bits may not hold
    bool is_cut = false;    ///< a load must check where the array ends along one of its dimensions
    /// It is loaded only as an index of other loads: no statement computes with its elements. Loads read them in
    /// memory, where they are exact.
    bool is_only_gathered = false;
    std::optional<ScopeId> load_scope = {};  ///< of the first step that loads it; none for what is computed
    std::vector<Index> source = {};          ///< for a gathered variable: Box::source, by the array's dimensions
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
    By<ScopeId, Scope> scopes;  ///< of the output tile, then one for each loop
    By<StepId, Step> steps;
    std::vector<Node> body;
    By<LoopId, ScheduledLoop> loops;
    std::optional<ConditionalRescale> rescale;  ///< where the schedule chooses it
    std::optional<ColumnParts> column_parts;    ///< where the schedule computes products in parts
    /// In a cluster: all threads wait for each other before any CTA copies for the others or releases a stage to them.
    /// They do so again before any CTA ends.
    bool syncs_cluster_before = false, syncs_cluster_after = false;
    bool syncs_cta_before = false;  ///< else all threads of the CTA wait for each other, once its barriers are made
    /// At its end a CTA waits until bulk copies have read all staging tiles, since its shared memory ends with it.
    bool waits_for_staging = false;
    /// The digits of an output tile's number, outermost first. The next value of the last digit is the next tile.
    std::vector<GroupAxis> group_order;
    ByVariable<Layout> layouts;
    ByVariable<VariableFacts> variable_facts;
    std::vector<ArrayId> inputs, outputs;
    /// inputs that must have row-major strides, because a view or an operand's copy reads them
    std::vector<bool> packed;
    std::vector<bool> dense;        ///< outputs that must have row-major strides, because a view writes them
    std::vector<bool> in_rows;      ///< outputs whose last stride must be 1, because threads store fragments of rows
    std::int64_t arena_values = 0;  ///< of the compute type
    /// where in the arena warps that share a reduction leave their partial results
    std::int64_t partials_offset = 0;
    std::int64_t held_values = 0;    ///< the most values of tiles that the arena holds at a time, without padding
    std::int64_t memory_values = 0;  ///< the same with tiles that are read or written in place

    [[nodiscard]] const Variable& variable(VariableId id) const { return kernel->variables[id]; }
    [[nodiscard]] const VariableFacts& facts(VariableId id) const { return variable_facts[id]; }
    [[nodiscard]] const Layout& layout(VariableId id) const { return layouts[id]; }
    [[nodiscard]] const Place& place(VariableId id) const { return schedule.places[id]; }
    [[nodiscard]] bool is_view(VariableId id) const { return place(id).holding == MemorySpace::global; }
    /// The prefetches in the loops of the statement.
    [[nodiscard]] std::vector<const Prefetch*> prefetches_in(const Step& step) const {
        std::vector<const Prefetch*> found;
        for (const Prefetch& p : schedule.prefetches)
            if (p.ahead.value > 0 && p.atom == step.atom) found.push_back(&p);
        return found;
    }
    /// Bulk copies store it from staging tiles.
    [[nodiscard]] bool is_staged_out(VariableId id) const { return place(id).staging_tiles > 0; }
    /// Threads read its values in place, whatever their type: a view in a kernel on tensor cores. The statements of
    /// such a kernel write nothing in place.
    [[nodiscard]] bool is_read_by_threads(VariableId id) const { return on_tensor_cores() && is_view(id); }
    [[nodiscard]] bool is_panel(VariableId id) const { return place(id).holding == MemorySpace::register_panel; }
    [[nodiscard]] bool is_packed(VariableId id) const { return place(id).holding == MemorySpace::packed_panel; }
    [[nodiscard]] bool is_in_registers(VariableId id) const { return place(id).holding == MemorySpace::registers; }
    [[nodiscard]] bool is_in_lanes(VariableId id) const { return place(id).holding == MemorySpace::lanes; }
    [[nodiscard]] bool is_in_accumulators(VariableId id) const {
        return place(id).holding == MemorySpace::accumulators;
    }
    [[nodiscard]] bool is_operand(VariableId id) const { return place(id).holding == MemorySpace::operand; }
    [[nodiscard]] bool is_written(VariableId id) const { return place(id).holding == MemorySpace::written; }
    /// Its tile lies in shared memory as the mma reads it, whether copies bring it or threads write it.
    [[nodiscard]] bool lies_as_operand(VariableId id) const { return is_operand(id) || is_written(id); }
    [[nodiscard]] bool on_tensor_cores() const { return schedule.mma_m >= 0; }
    /// What a thread holds of tiles in registers. Pre: on_tensor_cores().
    [[nodiscard]] const RegisterTile& fragments() const { return unit.matrix.tile(); }
    /// Rows that the CTA's warps have of a tile in registers. Pre: on_tensor_cores().
    [[nodiscard]] std::int64_t fragment_rows() const { return schedule.warps.value * fragments().rows; }
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
    /// Operands come by bulk copies, each issued by one thread; else all threads copy them.
    [[nodiscard]] bool has_bulk_copies() const { return unit.copies.bulk_dimensions > 0; }
    /// The producer warps, which load operands ahead of the consumer warps. Null: a consumer warp issues the copies.
    [[nodiscard]] const Role* producer_role() const {
        return schedule.roles.empty() ? nullptr : &schedule.roles.front();
    }
    /// Threads of a CTA. They stand in one row, or in rows as long as the producer's, which is the last row.
    [[nodiscard]] std::int64_t num_threads() const {
        return (schedule.warps.value + (producer_role() ? producer_role()->workers : 0)) * unit.warp_threads;
    }
    [[nodiscard]] std::int64_t threads_a_row() const {
        return (producer_role() ? producer_role()->workers : schedule.warps.value) * unit.warp_threads;
    }
    /// It has values in the arena.
    [[nodiscard]] bool is_held(VariableId id) const {
        return !layout(id).lives.empty() && !is_in_registers(id) && !is_in_lanes(id) && !is_in_accumulators(id) &&
               (!is_view(id) || layout(id).may_overrun);
    }
    /// Warps share the work of each statement; else one thread does all of it.
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
    /// Values of partial results: each warp that shares a reduction leaves a copy of the target.
    [[nodiscard]] std::int64_t partials(const Step& step) const {
        if (step.atom < 0 || atom(step).kind != AtomKind::block || !atom(step).shared) return 0;
        return layout(std::get<Compute>(*step.statement).variable).count * schedule.warps.value;
    }
    /// `count` values of an axis, rounded up to the whole blocks in which statements access the variable.
    [[nodiscard]] std::int64_t reach(VariableId id, AxisId axis, std::int64_t count) const;
    [[nodiscard]] std::int64_t extent(AxisId id) const { return extents[id]; }
    /// Output tiles along the axis.
    [[nodiscard]] std::int64_t num_tiles(AxisId axis) const {
        return (extent(axis) + span(axis, 0).tile - 1) / span(axis, 0).tile;
    }
    /// Both have values at some position.
    [[nodiscard]] bool live_together(VariableId a, VariableId b) const;
    [[nodiscard]] bool is_whole(VariableId id) const { return facts(id).is_whole; }
    [[nodiscard]] std::int64_t panel() const { return static_cast<std::int64_t>(lanes) * schedule.panel_vectors.value; }
    /// Values of the compute type in whose space one number fits.
    [[nodiscard]] std::int64_t cell_values(bool is_integer) const { return is_integer && !is_double ? 2 : 1; }
    [[nodiscard]] std::int64_t value_bytes() const { return is_double ? 8 : 4; }
    [[nodiscard]] std::int64_t arena_bytes() const { return arena_values * value_bytes(); }
    /// Bytes at the core: the arena, and on a CPU, where it is in a cache, also tiles that are accessed in place. What
    /// a CTA accesses in place does not pass through its shared memory.
    [[nodiscard]] std::int64_t memory_bytes() const {
        return arena_bytes() + (in_blocks() ? 0 : memory_values - held_values) * value_bytes();
    }
    /// Whether the kernel is for any size of the axis, which then may be shorter than a tile.
    [[nodiscard]] bool is_any(AxisId axis) const { return schedule.any.contains(axis); }
    [[nodiscard]] std::int64_t num_groups() const;
    /// Some output tiles run more K blocks than others (group_order).
    [[nodiscard]] bool has_uneven_groups() const {
        return any_of(group_order, [](const GroupAxis& a) { return a.is_uneven; });
    }
    /// Sections run one after the other. A section has all values of the uneven axes, at the same values of the axes
    /// outside of them.
    [[nodiscard]] std::int64_t num_sections() const;
    /// Each output tile has its own CTA, which the hardware starts as another one ends. Otherwise as many CTAs as run
    /// at once go through the tiles. That is so with a dynamic scheduler, and with an arena in global memory, which
    /// each CTA has for itself. Else the schedule's grid decides. Without one, tiles have their own CTAs where they are
    /// uneven and the user does not override `threads`.
    [[nodiscard]] bool has_block_a_group() const {
        if (!in_blocks() || !arena_in_core() || is_dynamic()) return false;
        return schedule.grid.value > 0 ? schedule.grid.value >= num_groups()
                                       : has_uneven_groups() && !schedule.threads.by_user;
    }
    /// CTAs take the uneven output tiles of each section in rounds, one round forward and the next one backward
    /// (time_in_rounds).
    [[nodiscard]] bool alternates_direction() const {
        return in_blocks() && has_uneven_groups() && !has_block_a_group() && !is_dynamic();
    }
    /// The scheduler is dynamic: as many CTAs as run at once take the output tiles in order. Each takes the next one
    /// when it has issued the copies for its last.
    [[nodiscard]] bool is_dynamic() const { return schedule.scheduler == TileScheduler::dynamic; }
    /// CTAs share the K blocks of the last rounds evenly, and output tiles are split for it, where stream_k.hpp allows
    /// it.
    [[nodiscard]] bool uses_stream_k() const { return schedule.scheduler == TileScheduler::stream_k; }
    /// CTAs of a cluster, which run as many neighbouring output tiles at the same time; 1: no clusters.
    [[nodiscard]] std::int64_t cluster_blocks() const {
        return schedule.cluster.value.axis < 0 ? 1 : schedule.cluster.value.ctas;
    }
    [[nodiscard]] bool in_cluster() const { return cluster_blocks() > 1; }
    /// CTAs of a GPU's grid: a multiple of a cluster's.
    [[nodiscard]] std::int64_t num_blocks() const;
    /// Values of the axis that one pass of its loop in the atom covers.
    [[nodiscard]] std::int64_t block_size(const Atom& atom, AxisId axis) const;
    /// Register blocks of `size` values may stand along the axis.
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
/// The variable that a step computes, initializes, loads or stores.
VariableId variable_of(const Step& step);
bool reads(const Step& step, VariableId variable);
/// The statement's result is added to the target's own values, as they are.
bool adds_in_place(const Compute& compute);
/// Plain reads of the statement's body and carry.
std::vector<const Read*> reads_of(const Compute& compute);
/// Terms of the statement's reduction over all K blocks, at most 2^40.
std::int64_t total_terms(const ScheduledKernel& kernel, const Compute& compute);
/// A load must check where the array ends: an index is not affine, or leaves the array for some values of its axes.
bool is_cut(const ScheduledKernel& kernel, const Variable& variable, std::size_t dimension);
/// Whether tiles of the axis, which begin at multiples of their length, divide the number and have no padding.
bool divides_evenly(const ScheduledKernel& kernel, AxisId axis, std::int64_t number, ScopeId scope);
/// The most values that an index takes over a scope's tile, padding included, wherever the tile is.
std::int64_t most_values(const ScheduledKernel& kernel, const Index& index, ScopeId scope);

/// The axis along which an index goes from one value to the next in tiles of the scope. -1: the index has one value
/// there. None: it goes on in another way. The axis stands alone, in a sum, or in a remainder, as t in t % 64 where
/// tiles of t divide the 64. All else has one value in a tile, as t // 64 has then.
std::optional<AxisId> running_axis(const ScheduledKernel& kernel, const Index& index, ScopeId scope);
/// axis // divisor has one value in a tile of the scope: tiles begin at multiples of their own length.
bool is_one_quotient(const ScheduledKernel& kernel, AxisId axis, std::int64_t divisor, ScopeId scope);
/// The axes on which indices depend inside a tile of the scope, ascending. n // 128 depends on none where it
/// is_one_quotient.
std::vector<AxisId> inner_axes(const ScheduledKernel& kernel, const std::vector<Index>& indices, ScopeId scope);
/// The columns of a tile along the axis, rounded up to two tiles of registers, which both sides of a product need.
std::int64_t columns_of(const ScheduledKernel& kernel, AxisId axis, ScopeId scope);

/// How far apart the elements lie that neighbouring values of the axis read.
enum class LaneStep : std::uint8_t { same, near, far };
LaneStep lane_step(const ScheduledKernel& kernel, const Read& r, AxisId axis);
/// How far an index goes on from one lane to the next in a vector along the axis. None: not evenly. A CPU's vectors
/// begin at multiples of their length. So t // 64 is the same in all lanes, and t % 64 goes on by one.
std::optional<std::int64_t> step_in_vector(const ScheduledKernel& kernel, const Index& index, AxisId axis);

/// The kernel without a schedule: steps, loops and facts of variables, which all its schedules share. Pre: the
/// program's index expressions hold numbers in place of sizes.
ScheduledKernel unscheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                            const Extents& extents, const VectorUnit& unit);
/// Adds the schedule and what its sizes alone decide: scopes and the order of output tiles. The schedule need not have
/// atoms and places yet.
ScheduledKernel with_sizes(ScheduledKernel unscheduled, KernelSchedule schedule);
void add_sizes(ScheduledKernel& unscheduled, KernelSchedule schedule);
/// Adds what follows from atoms: padding of axes, fused statements and reductions, tile pipelining. Pre: the schedule
/// has an atom for each compute statement.
void apply_atoms(ScheduledKernel& kernel);
/// Sizes, strides and count of a variable's layout, from its place. Pre: the atoms are applied.
void shape(ScheduledKernel& kernel, VariableId id);
/// Adds what follows from places: strides, lifetimes, the arena. Pre: the schedule has a place for each variable, and
/// the atoms are applied.
void apply_storage(ScheduledKernel& kernel);
/// Orders the statements of loops with slots, and adds prologues and epilogues for what runs ahead. Pre: slots are
/// chosen.
void apply_slots(ScheduledKernel& kernel);
/// What is wrong with slots: statements that would run before what they need, or after that is overwritten. Pre: slots
/// are applied.
std::vector<std::string> slot_faults(const ScheduledKernel& kernel);
/// Some statements run ahead of their loop.
bool runs_ahead(const ScheduledKernel& kernel);
/// The step is a product that its warps do not wait for.
bool runs_beside(const ScheduledKernel& kernel, const Step& step);
/// Adds waits for products, and releases of operands (WaitGroup). Pre: places are applied.
void wait_for_products(ScheduledKernel& kernel);
/// The loop runs a part of a stream that is cut into parts.
bool runs_a_part(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// The fewest and the most K blocks that an output tile runs of a loop. The fewest is 0 where masks may leave all
/// of them out, or where parts of a stream of any size may be empty.
struct Iterations {
    std::int64_t least = 1, most = 1;
};
Iterations iterations_of(const ScheduledKernel& kernel, const ScheduledLoop& loop);
/// The same for every size that the kernel takes.
Iterations possible_iterations(const ScheduledKernel& kernel, const ScheduledLoop& loop);
std::int64_t possible_groups(const ScheduledKernel& kernel);
/// Iterations of a reduction's innermost loop, and of loops over points, whose loads a GPU's thread issues together.
constexpr int iterations_together = 4;

/// The first of a reduction's loops, outermost first, that a compiler may unroll with all loops inside of it. It
/// unrolls nested short loops of known lengths, and issues all their loads before it multiplies. Those operands need
/// registers beside the block's results. The innermost loop may always be unrolled. Pre: the step computes, in a kernel
/// of CTAs.
std::size_t first_unrolled(const ScheduledKernel& kernel, const Step& step, const std::vector<AxisId>& loops);
/// Its K blocks run in a loop; else there is one, which always runs.
bool is_repeated(const ScheduledKernel& kernel, const ScheduledLoop& loop);

}  // namespace napkin
