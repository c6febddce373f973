#pragma once
// The paper's six steps (paper.md §6) of a derived diagram on a GPU, as readings of its tile program. From them follow
// the configuration table (Tables 1 and 2) and the throughput table (Table 3). All of it is data, which report.hpp
// prints.
//
// The steps know a core as the paper's hierarchy. A block of threads shares the core's memory. A warpgroup's registers
// hold a product as the tensor cores leave it: fragments, of which no thread can tell which values it has. The
// registers of threads hold each thread's own rows. Values pass between the last two through the first.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cost/machine_figures.hpp"
#include "derive/derived.hpp"
#include "machine/machine.hpp"
#include "plan/plan.hpp"
#include "steps/chart.hpp"
#include "support/result.hpp"
#include "tile/sizes.hpp"
#include "tile/work.hpp"

namespace napkin {

/// Where a variable is held: the core's memory, a warpgroup's register fragments of the tensor cores, or the registers
/// of threads.
enum class HeldAt : std::uint8_t { memory, fragments, threads };

/// The size of a variable along an axis. Its letter says what has this size:
/// - a block's group (g), a warpgroup's share of it (w), a thread's (t),
/// - a chunk of the stream (s), a part of a subloop (u), a piece of a transfer (p),
/// - or the whole axis (no letter).
struct CutSize {
    AxisId axis = -1;  ///< -1: an index of several axes
    char letter = 0;
    std::int64_t size = 1;
    friend bool operator==(const CutSize&, const CutSize&) = default;
};

/// A user's override and its position in the text.
template <class T>
struct ByUser {
    T value{};
    SourceRange range;
};

/// What an overhead adds to the time of a unit's operations, as a share of it: an input, named and with its source.
struct NamedOverhead {
    double share = 0;
    std::string source;
    friend bool operator==(const NamedOverhead&, const NamedOverhead&) = default;
};

/// A variable in a user's list, such as the order of issue, with the iterations by which it is issued ahead of the
/// loop.
struct Listed {
    std::string name;
    int ahead = 0;
    SourceRange range;
};

/// The user's overrides beside group and stream sizes.
struct StepChoices {
    std::map<AxisId, ByUser<std::int64_t>> warpgroup, subloop;
    std::map<std::string, std::map<AxisId, ByUser<std::int64_t>>> pieces;  ///< by variable
    std::map<std::string, ByUser<DType>> precision;                        ///< by variable
    std::map<std::string, ByUser<std::int64_t>> stages;                    ///< by variable
    std::map<std::string, NamedOverhead> overheads;                        ///< by unit
    /// the order of issue; a variable that is not named goes with the next named one of the program. Empty: the
    /// program's order
    std::vector<Listed> issue;
    std::vector<Listed> turns;                    ///< what warpgroups issue in turn
    std::vector<Listed> units;                    ///< those of the chart; empty: all
    std::map<AxisId, SourceRange> group, stream;  ///< where sizes of the tile program come from, if by hand
    bool may_break_divisors = false;  ///< sizes by hand, as the model's own: none that keeps its divisors fits
};

/// A variable of the program whose levels are assigned.
struct AssignedVariable {
    HeldAt at = HeldAt::threads;
    std::set<AxisId> streamed, cut;  ///< axes of the streams and of the subloops in which it is defined
    VariableId copy_of = -1;         ///< of what is passed from another place: that variable
    VariableId product_of = -1;      ///< of a product of the tensor cores that threads add: what they add it to
    bool is_operand = false;         ///< the tensor cores read it in the core's memory
    DType type = DType::f32;
    std::string type_reason;
    int stages = 1;
};

/// A kernel with every transfer that the levels imply as a statement.
struct Assigned {
    TileKernel kernel;
    ByVariable<AssignedVariable> variables;
    std::vector<std::pair<std::string, std::string>> moves;   ///< "S → S_smem → S_thread", and why
    std::vector<std::pair<std::string, std::string>> places;  ///< "S: tensor e4m3", and why
};

/// One row of Table 1: a place, with the variables that take it in turn; of single values of a row, all places.
struct ConfigurationRow {
    std::vector<std::vector<std::string>> places;
    std::string size;  ///< "w_q×s_x", "t_q×3"
    std::int64_t values = 0;
    DType type = DType::f32;
    HeldAt at = HeldAt::threads;
    int stages = 1;
    std::int64_t block_bytes = 0, warpgroup_bytes = 0;
    std::int64_t thread_bytes = 0;  ///< in registers: of the thread that has most of it
};

/// One row of Table 2.
struct LevelBudget {
    std::string level;
    double capacity_bytes = 0, block_bytes = 0, warpgroup_bytes = 0;
    [[nodiscard]] double fit() const {
        return warpgroup_bytes > 0 ? (capacity_bytes - block_bytes) / warpgroup_bytes : 0;
    }
    [[nodiscard]] std::string fit_text() const;  ///< "3.7"; – where a warpgroup takes nothing of the level
    double excess_block = 0, excess_warpgroup = 0, excess_thread = 0;  ///< bytes, at the warpgroups that the sizes have
    std::string what = "total";  ///< or, where places share registers by and by: what is alive at a time
    void leave_over(std::int64_t num_warpgroups, std::int64_t threads);
};

/// Registers of the busiest thread, 32 bits each.
struct RegisterEstimate {
    double accumulators = 0, values = 0, addresses = 0;
    double limit = 0;  ///< what a thread may have: the instruction set's, or an even share of the core's
    std::string limit_reason, addresses_reason;
    [[nodiscard]] double total() const { return accumulators + values + addresses; }
};

/// One row of Table 3: operations of one row and chunk.
struct ThroughputRow {
    std::string statement, unit;
    DType type = DType::f32;
    double operations = 0, per_clock = 0;  ///< FLOPs where the unit multiplies and adds
    [[nodiscard]] double clocks() const { return operations / per_clock; }
};

struct UnitTotal {
    std::string unit;
    double operations = 0, clocks = 0;
    NamedOverhead overhead;
    [[nodiscard]] double with_overhead() const { return clocks * (1 + overhead.share); }
};

/// B.0.1: rows of a group from which a pipe does not bind.
struct RowFloor {
    std::string level;
    double bytes = 0, clocks = 0, rows = 0;
};

struct Throughput {
    std::vector<ThroughputRow> rows;
    std::vector<UnitTotal> units;  ///< longest first
    std::vector<RowFloor> floors;
    Overlap overlap;  ///< of the clocks of the tensor cores and of special functions, with the latter's overhead
    double tensor_flop_per_s = 0;  ///< of the machine, were the bottleneck all that there is
    [[nodiscard]] double lower_bound() const { return units.empty() ? 0 : units.front().clocks; }
};

/// What a size must be a multiple of.
struct SizeDivisor {
    CutSize size;
    std::int64_t value = 1;
    std::string cause;  ///< "wgmma k 16 of O_acc"
};
struct SizeDivisors {
    std::vector<SizeDivisor> constraints;
    /// The sizes, each with the least common multiple of its constraints.
    [[nodiscard]] std::vector<std::pair<CutSize, std::int64_t>> merged() const;
    [[nodiscard]] std::string causes(const CutSize& size) const;
};

/// A variable and its place: from the first statement that writes it to the last that has use for it.
struct VariableLife {
    VariableId variable = -1;
    int first = 0, last = 0;
    int slot = -1;           ///< variables of one slot share its place; -1: it takes none
    std::string recomputed;  ///< why it takes none
};

struct StepChange {
    std::string what, why;
};
struct PaperStep {
    std::string name;
    std::vector<StepChange> changes;
    std::string program;      ///< pseudocode, where the step changes it
    std::string validation;   ///< how the result was tried, or which rule was asked
    std::string fault;        ///< what the validation found; empty: nothing
    std::string unkept = {};  ///< where the rule does not hold, though the steps are as they should be; empty: it holds
};

/// The overlap chart of one stream.
struct StreamChart {
    AxisId stream = -1;
    double rows = 1;  ///< of a warpgroup; clocks of the chart are for all of them
    Chart chart;
    double tensor_share = 0;       ///< of the interval in which the tensor cores are busy
    double tensor_flop_per_s = 0;  ///< of the machine
};

/// What all groups come to when each is in the steady state of its streams: heads, tails and the launch come on top.
struct SteadyState {
    /// of all chunks of a group, no fewer than the pipes above the core need for what these load (B.0.1); 0: no chart
    /// says
    double group_clocks = 0;
    double groups = 1, cores = 1;
    double seconds = 0;            ///< in waves of the cores
    double tensor_flop_per_s = 0;  ///< products of all groups over the seconds
    std::string bound_by;          ///< the pipe, or what makes the interval of the longest stream
};

struct KernelSteps {
    std::string kernel;
    std::vector<CutSize> sizes;
    std::int64_t num_warpgroups = 1, warpgroup_threads = 128;
    std::vector<PaperStep> steps;
    SizeDivisors divisors;
    std::vector<VariableLife> lives;
    std::vector<ConfigurationRow> configuration;
    std::vector<LevelBudget> budgets;  ///< the core's memory, then registers
    RegisterEstimate registers;
    Throughput throughput;
    std::vector<StreamChart> charts;
    SteadyState steady;
    std::vector<std::string> instructions;  ///< those of its products, each with the type that it multiplies
    std::string order;                      ///< why this order of issue, where it is the model's
    std::string schedule;           ///< the sizes and choices as lines of a schedule file, which gives the same steps
    TileKernel expanded, in_parts;  ///< after the first step, and after the second
    Assigned assigned;              ///< after the third, with the precision of the fourth
    std::vector<std::vector<CutSize>> cuts;  ///< of the assigned variables, along each of their dimensions
    bool is_planned = false;                 ///< of a kernel, whose registers are those of its layouts
};

struct StepReport {
    std::string diagram, machine;
    std::vector<std::string> axes;  ///< names, by AxisId
    std::vector<KernelSteps> kernels;
    /// What the plan of these kernels takes, which is what would run. None: no kernel has these steps.
    std::optional<double> expected_s = {};
    Diagram of = {};           ///< the diagram of the kernels
    std::string no_plan = {};  ///< why there is none
};

/// What the passes need of one kernel.
struct StepContext {
    const Diagram& diagram;
    const Machine& machine;
    const Extents& extents;
    TileSizes sizes;
    std::map<AxisId, std::int64_t> warpgroup;  ///< axes that the warpgroups of a block share, each with one's share
    std::int64_t threads = 128;                ///< of a warpgroup
    std::int64_t product_rows = 1;             ///< that fragments of a warpgroup have at least: those of an instruction
    /// In a plan, the instruction of each product on the tensor cores, by its result.
    std::optional<std::map<ArrayId, const Instruction*>> planned = {};
    std::int64_t sharing = 1;  ///< warpgroups that share all rows of a block, where no axis is theirs
    /// The instruction of a contraction: the plan's, else the machine's for its type. Null: threads compute it.
    [[nodiscard]] const Instruction* instruction_of(const StatementWork& work) const;
    [[nodiscard]] std::int64_t num_warpgroups() const;
    /// The variable's size along each of its dimensions; `pieces` as StepChoices has them.
    [[nodiscard]] std::vector<CutSize> cuts_of(const Assigned& assigned, VariableId id, const StepChoices& choices) const;
    /// The size of an axis in the streams and subloops.
    [[nodiscard]] CutSize cut(AxisId axis, const std::set<AxisId>& streamed, const std::set<AxisId>& parts,
                              bool on_threads) const;
};

/// The variables that a block's warpgroups share: none of their axes is a warpgroup's.
bool is_shared(const StepContext& context, const Variable& variable);
/// The axes of a contraction that lie across the rows of its instruction: n, or m where warpgroups share values of n.
const std::vector<AxisId>& columns_of(const StepContext& context, const Contraction& contraction);
/// The sizes of groups that warpgroups share, and every letter that a variable's size has.
std::vector<CutSize> sizes_of(const StepContext& context, const Assigned& assigned, const StepChoices& choices);
/// The letter with its axis: "w_q".
std::string to_string(const CutSize& size, const std::vector<std::string>& axes);

// The steps, each a pure function.

/// The kernel with subloops over these axes. Subloops run over parts of a chunk, around what accumulates a stream. They
/// also run over parts of columns, around each contraction that adds to what it accumulates. It is the same function as
/// the kernel.
TileKernel with_subloops_along(const Diagram& diagram, TileKernel kernel, const std::set<AxisId>& axes);
/// The kernel with its operations on units. Contractions whose type an instruction takes run on the tensor cores, all
/// else on threads. The copies that this implies are added. It is the same function as the kernel.
Assigned assign_levels(const Diagram& diagram, const TileKernel& kernel, const Machine& machine);
/// Types: the user's override, what the tensor cores demand, or as declared. Errors: unknown-variable, bad-precision
/// (what is legal).
Status assign_precision(const StepContext& context, const StepChoices& choices, Assigned& assigned);
/// With each cause. Those that the sizes break are errors: broken-divisor (the causes, the nearest legal sizes).
SizeDivisors size_divisors(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                           const std::vector<StatementWork>& work);
/// The size leaves lines or instructions partly unused, and is not the whole axis.
bool is_broken(const StepContext& context, const CutSize& size, std::int64_t multiple);
Status check_divisors(const StepContext& context, const StepChoices& choices, const SizeDivisors& divisors);
/// Lifetimes and which variables take each other's place.
std::vector<VariableLife> variable_lives(const StepContext& context, const StepChoices& choices, const Assigned& assigned);
/// Tables 1 and 2. Errors: memory-exceeded (the figures, the nearest legal choice).
Status configure(const StepContext& context, const StepChoices& choices, const Assigned& assigned, KernelSteps& steps);
/// The bytes of the rows at the core's memory or not, and what they leave of the capacity.
void fill(LevelBudget& budget, const KernelSteps& steps, bool memory, std::int64_t warpgroup_threads);
/// Those of addresses and counters alone, estimated.
RegisterEstimate address_registers(const TileKernel& kernel);
/// Table 3.
Throughput throughput(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                      const std::vector<StatementWork>& work);

/// The chart of every stream, in the order of issue that was chosen. Errors: issue-deadlock (who waits for whom, and
/// what would help), unknown-variable, bad-schedule.
Result<std::vector<StreamChart>> overlap_charts(const StepContext& context, const StepChoices& choices,
                                                const Assigned& assigned, const KernelSteps& steps);

/// Clocks of the steady state of a group's streams with all of their chunks, and those of the busiest units. No order
/// of issue makes the latter fewer.
struct StreamClocks {
    double steady = 0, least = 0;
};
/// Errors: as overlap_charts.
Result<StreamClocks> steady_clocks(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                                   const KernelSteps& steps);
/// The steady state of groups whose streams take these clocks; the rate and what binds where the steps have charts.
SteadyState steady_state(const StepContext& context, const Assigned& assigned, const KernelSteps& steps,
                         double stream_clocks);
/// The variables that need one more place (stage) for the order of issue. Nothing if the order is impossible for
/// another reason.
std::optional<std::vector<std::string>> missing_places(const StepContext& context, const StepChoices& choices,
                                                       const Assigned& assigned, const KernelSteps& steps);
/// The programs of every stream, in the program's order.
std::vector<ChartProgram> chart_programs(const StepContext& context, const Assigned& assigned, const KernelSteps& steps);

/// An order in which warpgroups may issue their operations, and why one would.
struct IssueOrder {
    StepChoices choices;  ///< with `issue` or `turns`, and more places for what they keep longer
    std::string what;     ///< "products a chunk ahead"
};
/// Orders beside the program's own, as far as they are possible. Within a warpgroup, the tensor cores can begin with
/// products a chunk ahead of the rest (Fig 36). Between warpgroups, they take turns at the tensor cores (ping-pong, Fig
/// 37).
std::vector<IssueOrder> issue_orders(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                                     const KernelSteps& steps);

/// Runs a program, whose structure the kernels are, on small sizes against the definition. Returns what differs, or "".
std::string tried_on_small_sizes(const Derived& derived, const std::vector<TileKernel>& kernels, int trials);

/// Tries the programs of a plan, in letters, as the first and the second step of its report.
void try_programs(const Derived& derived, const std::vector<TileKernel>& kernels, StepReport& report);

/// The steps' own texts. Each is tried on small sizes, or all are left out where only tables, charts and pictures are
/// wanted. Trials take most of the time.
enum class StepTexts : std::uint8_t { tried, left_out };

/// All of the steps. `items`: the user's overrides, the text's own schedule among them. Errors: those of the steps,
/// unknown-axis, unknown-variable, not-a-gpu, memory-exceeded.
Result<StepReport> paper_steps(const Derived& derived, const Extents& extents, const Machine& machine,
                               const std::vector<ScheduleItem>& items, StepTexts texts = StepTexts::tried);

/// The same for a kernel that is planned. Places, types, instructions and stages are those of its schedule. The
/// schedule knows what the tensor cores leave where, and passes nothing on. The function reads the overheads and the
/// units among the choices, each kernel's own. Pre: a GPU's schedule, in blocks of warps.
KernelSteps placed_steps(const ScheduledKernel& kernel, const Machine& machine, const StepChoices& choices = {});
StepReport placed_steps(const Plan& plan, const Machine& machine);
/// It takes items for which is_of_views holds. Errors: unknown-unit, missing-source, bad-schedule.
Result<StepReport> placed_steps(const Plan& plan, const Machine& machine, const std::vector<ScheduleItem>& items);
/// Those of the plan. The paper's hierarchy configures the kernels on a machine for which none are made, and by lines
/// that are of the hierarchy alone. `plan`: of `derived`, or why there is none. Errors: those of both; those of the
/// plan, where a kernel is asked for.
Result<StepReport> steps_for(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& items, const Result<Plan>& plan, StepTexts texts);
/// Some of it only a kernel has: atoms, warps, roles, slots and the like.
bool is_of_a_kernel(const std::vector<ScheduleItem>& items);

}  // namespace napkin
