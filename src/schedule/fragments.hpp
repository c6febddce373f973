#pragma once
// Statements on a matrix unit: what its instruction multiplies, and how tiles lie for it.
//
// A block's warps share the rows of the tensor axis, 16 each; four warps with their 64 rows run one wgmma together, or
// every warp runs one mma for each 8 columns. Either instruction leaves its result in fragments: thread t of a warp
// has, of every 8 columns, two neighbours (2·(t mod 4) and the next one) in each of the rows t/4 and t/4 + 8 (PTX ISA,
// wgmma.mma_async and mma.sync: accumulator D). All statements over [rows, columns] and [rows] follow that layout, so
// that what one computes the next one finds in the registers of the same thread; a reduction along the columns ends
// with two shuffles among the four threads that share a row. The fragments of a result, rounded to 16 bits, are the
// fragments of the first operand of the next product.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

/// Rows that a warp has, and columns of which a thread has two in each of two rows.
constexpr std::int64_t fragment_rows = 16, fragment_columns = 8;
/// Bytes of a row of an operand's tile in shared memory: the period of the 128-byte swizzle.
constexpr std::int64_t operand_row_bytes = 128;
/// Rows of operands in memory begin at multiples of so many bytes: strides of tensor maps, and what a thread copies at
/// a time (PTX ISA: cp.async.cg).
inline constexpr std::int64_t operand_stride_bytes = 16;
/// Error with which an instruction adds products of 8-bit numbers to an accumulator, in sizes of what is summed: it
/// cuts them at about 14 bits of the largest (DeepSeek-V3 Technical Report, arXiv:2412.19437, 3.3.2). Estimated: 4 ·
/// 2^-13. In 24 products of e4m3 matrices on one H200 on 2026-11-22, one large term beside small ones among them, the
/// most is 2.3 · 2^-13 an instruction.
constexpr double accumulation_unit_of_8_bits = 0x1p-11;
/// The same of products of 16-bit numbers: an instruction cuts each of its terms, and their sum, toward zero at f32's
/// 24 bits of the largest, in place of rounding to nearest (Fasi et al., Numerical behavior of NVIDIA tensor cores,
/// PeerJ Computer Science 7:e330, 2021, 4.3). Estimated: one 2^-23 for the sum and one for the terms. In a product of
/// 1040 bf16 terms on one H200 on 2026-11-23 the error is 0.9 · 2^-23 an instruction.
constexpr double accumulation_unit_of_16_bits = 0x1p-22;
/// Warps that run one wgmma together: a warpgroup.
inline constexpr std::int64_t warps_together = 4;
/// Operands lie at multiples of the swizzle's pattern of 8 rows.
constexpr std::int64_t operand_alignment = 8 * operand_row_bytes;

/// A sum over k of a[m, k]·b[k, n].
struct MmaProduct {
    const Instruction* instruction = nullptr;
    AxisId m = -1, n = -1, k = -1;
    const Read *a = nullptr, *b = nullptr;
    DType type = DType::bf16;     ///< in which both are multiplied
    bool a_in_registers = false;  ///< a is computed: its fragments are rounded to the type
    bool adds = false;            ///< to what the target holds, corrected by the statement's carry
    /// Every warp runs it by itself (mma), once for each group of its columns, with operands that it loads into
    /// registers. Else several warps run it together (wgmma), for all columns at once, with operands in shared memory.
    [[nodiscard]] bool by_warp(const VectorUnit& unit) const { return instruction->threads == unit.warp_threads; }
};

/// Whether the instruction, one of those that emit/emit_product.cpp writes, runs for so many columns. One of a warp has
/// both operands in registers, brought there by a copy; one that reads operands from shared memory sees what bulk
/// copies bring; a warp's own one stands beside itself for more columns than it takes.
bool takes_tiles(const ScheduledKernel& kernel, const Instruction& instruction, std::int64_t columns);
/// What the statement multiplies on the machine's matrix unit; none where it does not: the reduction is no such sum,
/// operands are not of a type that an instruction takes, tiles are not of its sizes. Of several instructions, that of
/// the most threads.
std::optional<MmaProduct> mma_product(const ScheduledKernel& kernel, const Step& step);
/// The same by the instruction that every warp runs by itself; none where the machine has none for it.
std::optional<MmaProduct> product_by_warp(const ScheduledKernel& kernel, const Step& step);

/// Who does what in a kernel on the matrix unit.
struct MmaRoles {
    std::string refusal;                            ///< why it cannot run there; empty: it can
    std::vector<AtomKind> atoms;                    ///< by atom
    ByVariable<std::optional<MemorySpace>> places;  ///< registers or operand; none: as the schedule says
};
/// Pre: KernelSchedule::mma_m_axis is set.
MmaRoles mma_roles(const ScheduledKernel& kernel);

/// The axis along which an index goes from one value to the next in tiles of the scope: alone, or in an affine form
/// whose other axes have one value there; -1: there is none.
AxisId running_axis(const ScheduledKernel& kernel, const Index& index, ScopeId scope);

/// The tile of an operand in shared memory: panels of `width` columns, in each of which every row takes 128 bytes.
struct OperandTile {
    int outer = 0, inner = 0;  ///< dimensions of the variable: its rows, and what is contiguous in memory
    std::int64_t rows = 0;     ///< of the tile, up to a multiple of 16
    std::int64_t width = 0;    ///< values in 128 bytes
    std::int64_t panels = 0;
    std::int64_t bytes = 0;  ///< of one stage
    [[nodiscard]] std::int64_t panel_bytes() const { return rows * operand_row_bytes; }
};
/// None where the tile cannot be copied so: more than two dimensions are wide, indices have no running axis, rows in
/// memory do not begin at multiples of 16 bytes, or tiles do not; by a bulk copy, more rows or dimensions than one
/// takes; by threads, the tile's own rows begin elsewhere.
std::optional<OperandTile> operand_tile(const ScheduledKernel& kernel, VariableId id);

/// What a warp has of a variable in registers, as bulk copies bring it to memory: boxes of its 16 rows and of 128 bytes
/// of columns, swizzled as operands are. stmatrix writes values of 16 bits to them (PTX ISA, sm_90, as bulk copies).
struct StagingTiles {
    int rows = 0, columns = 0;  ///< dimensions of the variable; the columns are contiguous in memory
    std::int64_t width = 0;     ///< values in 128 bytes
    std::int64_t count = 0;     ///< beside each other
};
inline constexpr std::int64_t box_bytes = fragment_rows * operand_row_bytes;
/// None where the variable cannot be stored so: there are no bulk copies, it is not in registers or not stored, or
/// loaded, too; it has no columns, or they are not contiguous in memory; values do not have 16 or 32 bits; indices are
/// no plain axes; rows in memory do not begin at multiples of 16 bytes; a tile ends inside of a box while others follow
/// it.
std::optional<StagingTiles> staging_tiles_of(const ScheduledKernel& kernel, VariableId id);

/// The scope's statements do nothing but add products on the matrix unit to their sums: nobody waits for one before the
/// next.
bool only_adds_products(const ScheduledKernel& kernel, ScopeId scope);

/// Stages of an operand that a product leaves on its way as its turn ends: one for the tile that it holds on to, one
/// for the next turn's and one that is copied meanwhile.
inline constexpr int stages_to_outlast = 3;
/// A product that only adds up tiles of a loop is under way while the next turn's begins, where operands have so many
/// stages.
bool outlasts_iterations(const ScheduledKernel& kernel, ScopeId scope, int stages);

/// axis // divisor has one value in a tile of the scope: tiles begin at multiples of their own length.
bool is_one_quotient(const ScheduledKernel& kernel, AxisId axis, std::int64_t divisor, ScopeId scope);

/// Some statement loads it.
bool is_loaded(const ScheduledKernel& kernel, VariableId id);

/// The axes on which indices depend inside of a tile of the scope, ascending: of n // 128 none where it
/// is_one_quotient.
std::vector<AxisId> inner_axes(const ScheduledKernel& kernel, const std::vector<Index>& indices, ScopeId scope);

/// A variable that threads read in memory, and whose values are one for each row: they are read into registers where
/// the variable is loaded, ahead of the statements that have use for them. Not where statements run for turns to come,
/// whose values would be read too early.
bool is_read_by_rows(const ScheduledKernel& kernel, VariableId id);

/// Values of a row that the four threads which share it read together, 16 bytes each of 16-bit values.
inline constexpr std::int64_t run_columns = 32;
/// The statement reads rows of the variable in memory along its own columns, which lie beside each other there: threads
/// read runs of them, and exchange what each has for what is its own. Not where it reduces its columns, or runs for
/// parts of them.
bool is_read_in_runs(const ScheduledKernel& kernel, const Step& step, const Read& read);

/// Runs of a row that a thread asks for before it waits for one: behind a loop registers are free for what is on its
/// way.
std::int64_t runs_together(const ScheduledKernel& kernel, const Step& step);
/// Such a statement stands behind a loop: what it reads is fetched into the cache of all cores as the group begins, as
/// all cores would wait for memory together where they come to it.
bool is_fetched_with_group(const ScheduledKernel& kernel, const Step& step, const Read& read);

/// Numbers that a thread reads of it: one for each of its two rows, and of each part of columns where it is another one
/// in each.
std::int64_t row_values(const ScheduledKernel& kernel, VariableId id);
/// The load reads by rows in a loop that asks for operands of its turns ahead: how many turns before it is used what it
/// brings is asked for, as it takes longer to come than a turn does; 0: it is asked for where it is used.
int iterations_read_ahead(const ScheduledKernel& kernel, const Step& load);
/// Some load of the kernel is asked for so.
bool threads_read_ahead(const ScheduledKernel& kernel);
/// Iterations of the loop that are written one after the other, so that registers which turns hand on to each other
/// need no moves: a move waits for the value that it moves. 1: the loop is written once.
int unrolled_iterations(const ScheduledKernel& kernel, const ScheduledLoop& loop);

/// An expression with those factors of its products together that threads read alike for all columns, so that their
/// product is one value a row: (P·s)·t as P·(s·t); and how many multiplications fewer each column takes.
struct RowFactors {
    Expr expression;
    int saved = 0;
};
RowFactors with_row_factors_together(const ScheduledKernel& kernel, const Expr& value, ScopeId scope, AxisId columns);

/// Whether threads may read the variable where it lies in memory, each the values that it has use for: statements on
/// fragments alone read it, at coordinates that lie inside of the array. Pre: atoms are chosen.
bool may_be_read_by_threads(const ScheduledKernel& kernel, VariableId id);

/// What a statement is on a tile on which none of its masks takes anything away: where all of these forms are not
/// negative.
struct Unmasked {
    std::vector<Affine> forms;
    /// and in the chunks of its loop of which the ranges say that data mask nothing (k_block_ranges.hpp)
    bool by_data = false;
    Expr body, carry;  ///< the statement's, with what the masks let through in their place
};
/// None where no choice of the statement depends on affine forms of axes, or on what its loop's ranges know.
std::optional<Unmasked> unmasked(const ScheduledKernel& kernel, const Step& step);

/// Barriers in shared memory, 8 bytes each at the end of the arena, in the order of the variables: one for each stage
/// of each operand, which says that the stage is full, and where a role asks for copies as many behind them, which say
/// that it is free. Without bulk copies there are none.
std::int64_t num_barriers(const ScheduledKernel& kernel);

/// Shared memory behind the barriers, where groups come from a queue: two stages, each with a barrier that says that a
/// group's number is there, one that says that all warps that compute have read it, and the number.
inline constexpr std::int64_t queue_stage_bytes = 24, queue_stages = 2;
/// Bytes of barriers and of these stages.
std::int64_t barrier_bytes(const ScheduledKernel& kernel);

/// The columns of a tile along the axis with those that fill the last 16, which both sides of a product need.
std::int64_t columns_of(const ScheduledKernel& kernel, AxisId axis, ScopeId scope);
/// The axis of the columns of a variable in registers; -1: it has one value a row.
AxisId column_axis(const ScheduledKernel& kernel, VariableId id);
/// The axis of a statement's columns: of its target, or of what it reduces; -1: it has one value a row.
AxisId columns_of_statement(const ScheduledKernel& kernel, const Step& step);
/// The value of an expression of numbers and sizes alone; none of any other.
std::optional<double> constant_value(const ScheduledKernel& kernel, const Expr& e);

}  // namespace napkin
