#pragma once
// What a thread holds of an instruction's result: numbers read off its layout D (Instruction::d). Whoever goes through
// a thread's values, or counts them, asks here.
#include <cstdint>
#include <optional>

#include "algebra/layout.hpp"

namespace napkin {

/// Bytes of an operand's word, one register of a thread (PTX ISA: .b32).
inline constexpr std::int64_t word_bytes = 4;

/// The part of D that a warp has, as often as the result has columns for it: `rows` × `columns` values.
struct RegisterTile {
    std::int64_t rows = 0, columns = 0;
    /// A thread's values: from one to the one in its next row, or in its next column.
    std::int64_t rows_a_thread = 0, columns_a_thread = 0;
    std::int64_t row_stride = 0, column_stride = 0;

    [[nodiscard]] std::int64_t values() const { return rows_a_thread * columns_a_thread; }
    [[nodiscard]] std::int64_t threads_a_row() const { return columns / columns_a_thread; }
    friend bool operator==(const RegisterTile&, const RegisterTile&) = default;
};

/// Reads the tile off a layout (lane, value) → row + rows · column. None where a thread's rows or its columns are not
/// equally far apart, or where not every value of the tile is held once.
std::optional<RegisterTile> register_tile(const layouts::Layout& d, std::int64_t rows);

/// Whether results, rounded to values of so many bytes, are the operand A as they lie: each thread has its own values,
/// in their order. `a` is the layout of A in words. Source: seed 001, section 4.2.
bool takes_results(const layouts::Layout& d, const layouts::Layout& a, std::int64_t rows, std::int64_t value_bytes);

/// The row and the column of a lane's first value.
layouts::Layout row_of_lane(const layouts::Layout& d, std::int64_t rows);
layouts::Layout column_of_lane(const layouts::Layout& d, std::int64_t rows);

}  // namespace napkin
