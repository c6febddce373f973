#pragma once
// An expression compiled to run over rows: the points that differ in one axis alone. One pass over the flat instruction list
// gives a whole row, so the cost of interpreting is spread over its points.
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "algebra/expr.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Where a Read finds its element: in a box of the array's values that begins at `data`. What lies outside of the box is NaN.
struct Operand {
    struct Dimension {
        std::int64_t origin = 0, count = 1, stride = 1;
    };
    const double* data = nullptr;
    std::vector<Dimension> dimensions;  ///< one for each index
};

/// T is the type computed in: float or double. Common subexpressions are computed once; what does not depend on the row's axis once
/// a row. Both sides of a Select are computed, and the one not taken is dropped.
template <class T>
class RowProgram {
public:
    static constexpr std::int64_t max_row = 256;  ///< points in one run

    /// `row_axis` may be -1: every run is one point. Casts to a float type round only when `round_casts` is set.
    RowProgram(const Expr& e, AxisId row_axis, const Extents& extents,
               const std::function<Operand(const Read&)>& locate, bool round_casts);

    /// Finds what is read anew: the same expression over other data.
    void relocate(const std::function<Operand(const Read&)>& locate);

    /// The values at `point` and the n - 1 points after it along the row's axis, n ≤ max_row. Valid until the next run.
    const T* run(const std::vector<std::int64_t>& point, std::int64_t n);

private:
    struct Instruction {
        enum class Kind : std::uint8_t { index, read, unary, binary, select, cast } kind;
        std::uint8_t op = 0;              ///< UnaryOp, BinaryOp or DType
        bool uniform = false;             ///< one value for the whole row
        std::size_t a = 0, b = 0, c = 0;  ///< registers; for index the axis, for read the operand
        std::size_t out = 0;
    };
    /// A value of the row at register r is at[r][j * step[r]].
    std::vector<const T*> at_;
    std::vector<std::size_t> step_;
    std::vector<T> storage_;
    std::vector<Instruction> code_;
    /// A read with what it takes to find its elements.
    struct Located {
        const Read* read = nullptr;
        Operand operand;
        bool is_affine = true;
        Affine offset;                        ///< from `data`, of affine indices
        std::int64_t row_stride = 0;          ///< of the offset
        std::vector<std::int64_t> row_steps;  ///< of each index, along the row
    };
    std::vector<Expr> reads_;                    ///< with numbers in place of sizes
    std::vector<Located> located_;               ///< of each read
    std::map<const Read*, Located> in_indices_;  ///< of the reads inside of indices
    std::vector<std::pair<std::size_t, T>> constants_;
    std::int64_t row_length_ = max_row;  ///< points that a register holds
    AxisId row_axis_;
    std::size_t result_ = 0;

    T* out(std::size_t r) { return storage_.data() + r * static_cast<std::size_t>(row_length_); }
    void execute(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n);
    void load(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n);
    [[nodiscard]] double element(const Located& read, const std::vector<std::int64_t>& point) const;
    Located located(const Read& read, const std::function<Operand(const Read&)>& locate) const;
};

extern template class RowProgram<float>;
extern template class RowProgram<double>;

}  // namespace napkin
