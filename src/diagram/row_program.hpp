#pragma once
// An expression compiled to run over rows: the points that differ in one axis alone. One pass over the flat instruction
// list gives a whole row, so the cost of interpreting is spread over its points.
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/number.hpp"
#include "diagram/column.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// Where a Read finds its element: in a box of the array's values that begins at `real`, or of an integer array at
/// `whole`. What lies outside of the box is unset (column.hpp).
struct Operand {
    struct Dimension {
        std::int64_t origin = 0, count = 1, stride = 1;
    };
    const double* real = nullptr;
    const std::int64_t* whole = nullptr;
    std::vector<Dimension> dimensions;  ///< one for each index
};
/// The operand of the column's cells, without dimensions yet.
Operand operand_of(const Column& column);

/// T is the type in which real numbers are computed: float or double; integers are exact (algebra/number.hpp). Common
/// subexpressions are computed once; what does not depend on the row's axis once a row. Both sides of a Select are
/// computed, and the one not taken is dropped.
template <class T>
class RowProgram {
public:
    static constexpr std::int64_t max_row = 256;  ///< points in one run

    struct Options {
        AxisId row_axis = -1;      ///< -1: every run is one point
        Kind wanted = Kind::real;  ///< in which the values are given
        bool round_casts = false;  ///< else casts to a float type do not round
    };
    RowProgram(const Expr& e, Kinds& kinds, const Extents& extents, const std::function<Operand(const Read&)>& locate,
               const Options& options);

    /// Finds what is read anew: the same expression over other data.
    void relocate(const std::function<Operand(const Read&)>& locate);

    /// The values at `point` and the n - 1 points after it along the row's axis, n ≤ max_row. Valid until the next run.
    /// run() is of a program that gives real numbers, run_integer() of one that gives integers.
    const T* run(const std::vector<std::int64_t>& point, std::int64_t n);
    const std::int64_t* run_integer(const std::vector<std::int64_t>& point, std::int64_t n);

private:
    enum class Code : std::uint8_t { index, read, unary, binary, select, round, to_real, to_whole, to_narrow, truth };
    struct Instruction {
        Code code;
        std::uint8_t op = 0;              ///< UnaryOp, BinaryOp or DType
        Kind kind = Kind::real;           ///< of the operands; of to_whole, of the result
        bool uniform = false;             ///< one value for the whole row
        std::size_t a = 0, b = 0, c = 0;  ///< registers; for index the axis, for read the operand
        std::size_t out = 0;
    };
    /// Cell j of a row is at[j * step]; `real` or `whole` by the kind.
    struct Register {
        Kind kind = Kind::real;
        bool uniform = false;
        bool is_constant = false;
        Number constant = {};
        std::size_t slot = 0;  ///< in the storage of its kind
        const T* real = nullptr;
        const std::int64_t* whole = nullptr;
        [[nodiscard]] std::size_t step() const { return uniform ? 0 : 1; }
    };

    std::vector<Register> registers_;
    std::vector<T> reals_;
    std::vector<std::int64_t> wholes_;
    std::size_t real_slots_ = 0, integer_slots_ = 0;
    std::vector<Instruction> code_;
    /// A read with what it takes to find its elements.
    struct Located {
        const Read* read = nullptr;
        Operand operand;
        bool is_affine = true;
        Affine offset;                        ///< from the first cell, of affine indices
        std::int64_t row_stride = 0;          ///< of the offset
        std::vector<std::int64_t> row_steps;  ///< of each index, along the row
    };
    /// With numbers in place of sizes, and with the registers that hold the coordinates of indices that are not affine.
    struct CompiledRead {
        Expr e;
        std::vector<std::size_t> coordinates;
    };
    std::vector<CompiledRead> reads_;
    std::vector<Located> located_;       ///< of each read
    std::vector<std::int64_t> offsets_;  ///< of a row's cells, below 0 outside of the box
    std::map<std::pair<std::size_t, Kind>, std::size_t> converted_;
    std::int64_t row_length_ = max_row;  ///< points that a register holds
    AxisId row_axis_;
    std::size_t result_ = 0, spread_ = 0;  ///< spread: for a uniform result over its row

    std::size_t add_register(Kind kind, bool uniform);
    std::size_t add_constant(const Number& value);
    std::size_t emit(Instruction in, Kind result, bool uniform);
    std::size_t convert(std::size_t r, Kind kind);
    std::size_t truth(std::size_t r);
    std::size_t compile(const Expr& node, Kinds& kinds, const Extents& extents, bool round_casts,
                        const std::function<std::size_t(const Expr&)>& reg);
    std::size_t compile_binary(const Binary& b, Kind result, std::size_t x, std::size_t y);
    std::size_t compile_read(const Expr& node, Kinds& kinds, const Extents& extents);
    /// A register with the value of an index, in 64-bit integers.
    std::size_t compile_index(const Expr& index, Kinds& kinds, const Extents& extents);

    T* real_out(std::size_t r) { return reals_.data() + registers_[r].slot * static_cast<std::size_t>(row_length_); }
    std::int64_t* whole_out(std::size_t r) {
        return wholes_.data() + registers_[r].slot * static_cast<std::size_t>(row_length_);
    }
    void run_code(const std::vector<std::int64_t>& point, std::int64_t n);
    void execute(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n);
    void load(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n);
    /// The cells of a row of the read into `to`, or their address where they lie beside each other as they are wanted.
    template <class Cell, class To>
    const To* load_cells(const Instruction& in, const Located& read, const std::vector<std::int64_t>& point,
                         std::int64_t n, To* to);
    /// The same where some index is not affine.
    template <class Cell, class To>
    void gather_cells(const Instruction& in, const Located& read, const std::vector<std::int64_t>& point,
                      std::int64_t n, To* to);
    Located located(const Read& read, const std::function<Operand(const Read&)>& locate) const;
};

extern template class RowProgram<float>;
extern template class RowProgram<double>;

}  // namespace napkin
