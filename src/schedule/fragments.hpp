#pragma once
// Statements on the tensor cores: what an mma multiplies, and how tiles lie for it.
//
// The warps of a CTA share the rows of the mma's M axis. The warps of a warpgroup run one wgmma together, or every
// warp runs one mma for each tile of columns. Either leaves its result in register fragments, as the machine's file
// says (Instruction::d). All statements over [rows, columns] and [rows] follow that layout (RegisterTile). So each
// finds what another one computed in the registers of the same thread. A reduction along the columns ends with shuffles
// among the threads that share a row. Where results are operands as they lie (Instruction::result_types), the fragments
// of a result, rounded, are those of the first operand of the next product.
#include <optional>

#include "algebra/fragment.hpp"
#include "schedule/scheduled.hpp"
#include "support/saturate.hpp"

namespace napkin {

/// Bytes of a row of an operand's tile in shared memory: the period of the 128-byte swizzle.
constexpr std::int64_t operand_row_bytes = 128;
/// Rows of operands in global memory begin at multiples of so many bytes. Strides of tensor maps need that, and so does
/// what a thread copies at a time (PTX ISA: cp.async.cg).
inline constexpr std::int64_t operand_stride_bytes = 16;
/// Error with which an instruction adds products of 8-bit numbers to an accumulator, relative to the size of what is
/// summed. It cuts them at about 14 bits of the largest (DeepSeek-V3 Technical Report, arXiv:2412.19437, 3.3.2).
/// Estimated: 4 · 2^-13. Measured on one H200 on 2026-11-22: at most 2.3 · 2^-13 an instruction. The measurement has 24
/// products of e4m3 matrices, some with one large term beside small ones.
constexpr double accumulation_unit_of_8_bits = 0x1p-11;
/// The same for 16-bit numbers. An instruction cuts each of its terms, and their sum, toward zero at f32's 24 bits of
/// the largest, in place of rounding to nearest. Source: Fasi et al., Numerical behavior of NVIDIA tensor cores, PeerJ
/// Computer Science 7:e330, 2021, 4.3. Estimated: one 2^-23 for the sum and one for the terms. Measured on one H200 on
/// 2026-11-23 in a product of 1040 bf16 terms: 0.9 · 2^-23 an instruction.
constexpr double accumulation_unit_of_16_bits = 0x1p-22;
/// Operand tiles begin at multiples of the swizzle's pattern of 8 rows.
constexpr std::int64_t operand_alignment = 8 * operand_row_bytes;

/// A sum over k of a[m, k]·b[k, n].
struct MmaProduct {
    const Instruction* instruction = nullptr;
    AxisId m = -1, n = -1, k = -1;
    const Read *a = nullptr, *b = nullptr;
    DType type = DType::bf16;     ///< of b, and of what is rounded for a
    DType type_a = DType::bf16;   ///< of a
    bool a_in_registers = false;  ///< a is computed: its fragments are rounded to the type
    bool adds = false;            ///< to what the target holds, corrected by the statement's carry
    /// In which the instruction adds. Sums of integers wrap at 32 bits (PTX ISA, mma and wgmma without .satfinite).
    [[nodiscard]] DType sum_type() const { return is_float(type) ? DType::f32 : DType::i32; }
    /// True: every warp runs the instruction by itself, with operands that it loads into registers. False: the warps of
    /// a warpgroup run it together, for all columns at once, with operands in shared memory.
    [[nodiscard]] bool by_warp() const { return !instruction->b_in_shared; }
};

/// Whether the instruction computes so many columns. One with both operands in registers needs ldmatrix, and runs
/// several times for more columns than it takes. One that reads shared memory needs bulk copies, which bring operands
/// there.
bool takes_tiles(const ScheduledKernel& kernel, const Instruction& instruction, std::int64_t columns);
/// What the statement multiplies on the machine's tensor cores; none where it does not. Then the reduction is no such
/// sum, no instruction takes the type of the operands, or tiles do not have its sizes. Among several instructions it is
/// the one of the most threads.
std::optional<MmaProduct> mma_product(const ScheduledKernel& kernel, const Step& step);
/// The same with the instruction that every warp runs by itself; none where the machine has none for it.
std::optional<MmaProduct> product_by_warp(const ScheduledKernel& kernel, const Step& step);

/// Whether the variable is a map of loaded ones of a type that instructions multiply. Threads may then write its tile
/// to shared memory, where a product reads it.
bool may_be_written(const ScheduledKernel& kernel, VariableId id);

/// Whether a factor's tile is contiguous along the summed axis in shared memory.
bool runs_along(const ScheduledKernel& kernel, const Read& factor, AxisId k, ScopeId scope);

/// Values of a row that a thread writes to such a tile at a time: 16 bytes.
inline constexpr std::int64_t written_values = 8;

/// What each statement and variable is in a kernel on the tensor cores.
struct MmaRoles {
    std::string refusal;                            ///< why it cannot run there; empty: it can
    std::vector<AtomKind> atoms;                    ///< by atom
    ByVariable<std::optional<MemorySpace>> places;  ///< registers or operand; none: as the schedule says
};
/// Pre: KernelSchedule::mma_m_axis is set.
MmaRoles mma_roles(const ScheduledKernel& kernel);

/// The tile of an operand in shared memory: panels of `width` columns, in each of which every row takes 128 bytes.
struct OperandTile {
    int outer = 0, inner = 0;  ///< dimensions of the variable: its rows, and what is contiguous in memory
    std::int64_t rows = 0;     ///< of the tile, up to a multiple of 16; 1: it has no rows but one
    std::int64_t width = 0;    ///< values in 128 bytes
    std::int64_t panels = 0;
    std::int64_t bytes = 0;   ///< of one stage
    std::int64_t packed = 1;  ///< neighbours along the inner dimension's axis that read one value: k // 2 has two
    /// Integers say for each row where it lies. Threads of the producer warps copy 16 bytes each at a time.
    bool is_of_single_rows = false;
    /// A panel begins where the swizzle does, which 8 rows repeat.
    [[nodiscard]] std::int64_t panel_rows() const { return round_up(rows, layouts::core_rows); }
    [[nodiscard]] std::int64_t panel_bytes() const { return panel_rows() * operand_row_bytes; }
    /// What a copy brings of one stage.
    [[nodiscard]] std::int64_t copied_bytes() const { return panels * rows * operand_row_bytes; }
};
/// The tile of what threads write (may_be_written) has the same layout, with any rows and columns. That of what copies
/// bring is none where the tile cannot be copied so. It lies at several places, and no producer warps copy single rows.
/// The variable has one dimension, or is cut at the end of its array. More than two dimensions are wide, or an index
/// has no running axis. Rows or tiles do not begin at multiples of 16 bytes in memory. A bulk copy takes fewer rows or
/// dimensions.
std::optional<OperandTile> operand_tile(const ScheduledKernel& kernel, VariableId id);
/// Lines of L2 that a bulk copy asks for with each row of 128 bytes, in the mean. Rows that begin at lines have 1, and
/// others nearly 2.
double lines_of_a_row(const ScheduledKernel& kernel, VariableId id);
/// Whether threads of the producer copy rows of some operand one by one.
bool copies_single_rows(const ScheduledKernel& kernel);

/// What a warp has of a variable in registers, as bulk copies bring it to global memory: staging tiles. Each has the
/// warp's rows and 128 bytes of columns, swizzled as operands are. Values of 16 bits are written to them by stmatrix
/// (PTX ISA, sm_90, as bulk copies).
struct StagingTiles {
    int rows = 0, columns = 0;  ///< dimensions of the variable; the columns are contiguous in memory
    std::int64_t width = 0;     ///< values in 128 bytes
    std::int64_t count = 0;     ///< staging tiles beside each other
};
inline std::int64_t staging_bytes(const ScheduledKernel& kernel) { return kernel.fragments().rows * operand_row_bytes; }
/// None where the variable cannot be stored so. It is not in registers, not stored, or loaded, too. There are no bulk
/// copies of so many dimensions, or no stmatrix for 16-bit values. Values do not have 16 or 32 bits. It has no columns,
/// or they are not contiguous in memory. Indices are no plain axes. Rows in memory do not begin at multiples of 16
/// bytes. A tile ends inside a staging tile while others follow it.
std::optional<StagingTiles> staging_tiles_of(const ScheduledKernel& kernel, VariableId id);

/// Whether the scope's statements only add products on the tensor cores to their sums. Then nobody waits for one before
/// the next.
bool only_adds_products(const ScheduledKernel& kernel, ScopeId scope);

/// Stages that an operand needs so that its product may be in flight as the mainloop iteration ends. One holds the tile
/// that is still read, one holds the next iteration's, and one is copied meanwhile.
inline constexpr int stages_to_outlast = 3;
/// Whether a product that only adds up tiles of a loop stays in flight as the next iteration's begins. Operands need
/// enough stages, and a producer role copies them.
bool outlasts_iterations(const ScheduledKernel& kernel, ScopeId scope, int stages);

/// The type of a thread's registers for a variable: i32 for sums of an integer product, and for integers that f32 may
/// not hold; else f32. Pre: atoms are chosen.
DType register_type(const ScheduledKernel& kernel, VariableId id);

/// Some statement loads it.
bool is_loaded(const ScheduledKernel& kernel, VariableId id);

/// Whether threads read the variable in global memory, and its values are one for each row. They are read into
/// registers where the variable is loaded, before the statements that need them. Not where statements run ahead: their
/// values would be read too early.
bool is_read_by_rows(const ScheduledKernel& kernel, VariableId id);

/// Columns of a contiguous segment that the threads of a row read together, 16 bytes each of 16-bit values.
inline std::int64_t run_columns(const ScheduledKernel& kernel) { return kernel.fragments().threads_a_row() * 8; }
/// Whether the statement reads rows of the variable in global memory along its own columns, which are contiguous there.
/// Threads read contiguous segments, and exchange what each has for what is its own. Not where the statement reduces
/// its columns, or runs for parts of them.
bool is_read_in_runs(const ScheduledKernel& kernel, const Step& step, const Read& read);

/// Segments of a row that a thread asks for before it waits for one. Behind a loop, registers are free for loads in
/// flight.
std::int64_t runs_together(const ScheduledKernel& kernel, const Step& step);
/// Whether such a statement stands behind a loop. What it reads is then fetched into L2 as the CTA tile begins.
/// Otherwise all SMs would wait for global memory at the same time.
bool is_fetched_with_group(const ScheduledKernel& kernel, const Step& step, const Read& read);

/// Numbers of the variable that a thread reads: one for each of its rows. Where parts of columns differ in it, each
/// part has its own.
std::int64_t row_values(const ScheduledKernel& kernel, VariableId id);
/// How many iterations before its use a load by rows is issued; 0: at its use. Such a load takes longer than an
/// iteration. Only loads in a loop that copies operands ahead are issued earlier.
int iterations_read_ahead(const ScheduledKernel& kernel, const Step& load);
/// Whether some load of the kernel is issued earlier so.
bool threads_read_ahead(const ScheduledKernel& kernel);
/// By how much the loop is unrolled, so that registers which iterations hand on to each other need no moves. A move
/// waits for the value that it moves. 1: it is not unrolled.
int unrolled_iterations(const ScheduledKernel& kernel, const ScheduledLoop& loop);

/// An expression whose products have the factors together that threads read alike for all columns. Their product is
/// then one value a row: (P·s)·t becomes P·(s·t). `saved` is the number of multiplications that each column saves.
struct RowFactors {
    Expr expression;
    int saved = 0;
};
RowFactors with_row_factors_together(const ScheduledKernel& kernel, const Expr& value, ScopeId scope, AxisId columns);

/// Whether threads may read the variable where it lies in global memory, each the values that it needs. Only statements
/// on fragments read it, at coordinates inside the array. Pre: atoms are chosen.
bool may_be_read_by_threads(const ScheduledKernel& kernel, VariableId id);

/// Whether an index has one value for all values that a thread writes to a row of an operand's tile at a time.
bool is_one_for_part(const ScheduledKernel& kernel, const Index& index, AxisId columns, ScopeId scope);

/// What a statement that writes an operand's tile copies, neighbours in memory to neighbours in the tile: what it reads
/// where the conditions hold, and zeros where one does not. All neighbours of a thread's part have one answer.
struct CopiedRuns {
    const Read* read;
    std::vector<Expr> conditions;
};
/// None: the statement computes something else, or of another type, or a part has values of several rows of the array.
std::optional<CopiedRuns> copied_runs(const ScheduledKernel& kernel, const Step& step);

/// What a statement is on a tile where neither a mask nor the end of an axis excludes a point. That is where none of
/// these forms is negative.
struct Unmasked {
    std::vector<Affine> forms;
    /// and in K blocks in which data mask nothing, as the loop's ranges say (k_block_ranges.hpp)
    bool by_data = false;
    /// and in tiles that the end of this axis, the statement's columns, does not cut; −1: the end makes no difference
    AxisId whole = -1;
    Expr body, carry;  ///< the statement's, with what each mask lets through in its place
};
/// None where no select of the statement depends on affine forms of axes, or on what its loop's ranges know, and the
/// end of its columns makes no difference.
std::optional<Unmasked> unmasked(const ScheduledKernel& kernel, const Step& step);

/// Number of barriers in shared memory, 8 bytes each at the end of the arena, in the order of the variables. Each stage
/// of each operand has one, which says that the stage is full. With a producer role, as many follow, which say that a
/// stage is free. Without bulk copies there are none.
std::int64_t num_barriers(const ScheduledKernel& kernel);

/// Shared memory behind the barriers, where CTA tiles come from a queue: two stages. Each has a barrier that says that
/// a tile's number has arrived, and one that says that all consumer warps have read it. The number follows.
inline constexpr std::int64_t queue_stage_bytes = 24, queue_stages = 2;
/// Bytes of barriers and of queue stages.
std::int64_t barrier_bytes(const ScheduledKernel& kernel);

/// Whether a variable in registers has values for each row. Else each thread has those of its own columns, or one: what
/// a map makes of keys' norms or of scales.
bool has_rows(const ScheduledKernel& kernel, VariableId id);
/// The axis of the columns of a variable in registers; -1: it has none.
AxisId column_axis(const ScheduledKernel& kernel, VariableId id);
/// The axis of a statement's columns: of its target, or of what it reduces; -1: it has one value a row.
AxisId columns_of_statement(const ScheduledKernel& kernel, const Step& step);
/// Whether the axis' last tile alone may have fewer values than the columns of fragments that hold it.
bool is_cut_at_its_end(const ScheduledKernel& kernel, AxisId axis, ScopeId scope);
/// The value of an expression of numbers and sizes alone; none of any other.
std::optional<double> constant_value(const ScheduledKernel& kernel, const Expr& e);

}  // namespace napkin
