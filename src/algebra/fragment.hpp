#pragma once
// Register fragments: which thread holds which element of a tile in which register, for the operands of mma
// instructions.
//
// Everything follows from one fact of the hardware and two counts. A core matrix is 8 rows of 16 bytes. Its bytes, row
// after row, are distributed over the 32 threads of a warp, 4 bytes (a register) each. So a row lies in a quad of
// threads. An operand is a grid of core matrices. A thread's registers run down the grid's rows first, and the warps of
// an instruction stand below each other. Accumulators of every type are distributed like elements of 2 bytes: a thread
// holds pairs of neighbours in a row. Source of the fact and of the counts: PTX ISA, matrix fragments of
// mma.m16n8k8/16/32, wgmma.mma_async and ldmatrix.
#include "algebra/layout.hpp"

namespace napkin::layouts {

inline constexpr std::int64_t core_rows = 8;                ///< PTX ISA, ldmatrix: m8n8
inline constexpr std::int64_t core_row_bytes = 16;          ///< the same: 8 elements of 16 bits
inline constexpr std::int64_t register_bytes = 4;           ///< PTX ISA: .b32
inline constexpr std::int64_t accumulator_deal_bytes = 2;   ///< PTX ISA: accumulators lie as elements of 16 bits do
inline constexpr std::int64_t instruction_row_blocks = 2;   ///< PTX ISA: 16 rows a warp, of A and of accumulators
inline constexpr std::int64_t warpgroup_warps = 4;          ///< PTX ISA, wgmma: 64 rows, 16 a warp
inline constexpr std::int64_t instruction_k_bytes = 32;     ///< PTX ISA, wgmma: k16 of 2 bytes, k32 of 1, k8 of 4
inline constexpr std::int64_t largest_wgmma_columns = 256;  ///< PTX ISA, wgmma: n from 8 to 256 in steps of 8

/// Who holds what of a tile: `map` is (thread, value) → row + rows · column, one-to-one onto the tile. An operand is
/// written with the rows that it gives to the product (m of A, n of B) as rows and k as columns.
struct Fragment {
    Layout map;
    std::int64_t rows = 0, columns = 0;

    [[nodiscard]] std::int64_t threads() const { return map.mode(0).size(); }
    [[nodiscard]] std::int64_t values() const { return map.mode(1).size(); }  ///< a thread
    friend bool operator==(const Fragment&, const Fragment&) = default;
};

/// (thread, value) → row, and → column: the row and the column as sums of digits of the thread and of the value.
Result<Layout> row_of(const Fragment& fragment);
Result<Layout> column_of(const Fragment& fragment);

/// A grid of core matrices a warp, and warps below each other. Pre: element_bytes is 1, 2 or 4.
Fragment core_grid(std::int64_t element_bytes, std::int64_t row_blocks, std::int64_t column_blocks, std::int64_t warps);

/// wgmma's m64nN accumulators. Error: N is not a multiple of 8 from 8 to 256.
Result<Fragment> wgmma_accumulator(std::int64_t columns);
/// wgmma's A operand in registers: 64 rows × 32 bytes.
Fragment wgmma_operand(std::int64_t element_bytes);
/// The fragment repeated over a larger tile by the same threads: the value mode is (value, tiles down, tiles across).
/// Error: an extent is not a multiple of the fragment's.
Result<Fragment> tiled(const Fragment& fragment, std::int64_t rows, std::int64_t columns);

/// Which of the holder's values each value of the reader is, where every thread reads what it holds itself:
/// accumulators read again as an operand (seed 001, §4.2). Errors: tiles or threads differ in number; a value is held
/// by another thread, which is named.
Result<Layout> registers(const Fragment& holder, const Fragment& reader);

}  // namespace napkin::layouts
