#pragma once
// Rows of cells and their reduction, for code that is a template over the type of a cell: double for real numbers,
// std::int64_t for integers.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "algebra/reduce.hpp"
#include "diagram/row_program.hpp"

namespace napkin {

/// a ⊕ b; integers wrap at their kind.
inline double combined(ReduceOp op, Kind /*kind*/, double a, double b) {
    return op == ReduceOp::sum ? a + b : apply(op, a, b);
}
inline std::int64_t combined(ReduceOp op, Kind kind, std::int64_t a, std::int64_t b) {
    return apply_integer(op, kind, a, b);
}

/// The program's values of a row. Pre: it gives cells of this type.
template <class Cell>
const Cell* cells_of_row(RowProgram<double>& program, const std::vector<std::int64_t>& point, std::int64_t n) {
    if constexpr (std::is_same_v<Cell, double>)
        return program.run(point, n);
    else
        return program.run_integer(point, n);
}

}  // namespace napkin
