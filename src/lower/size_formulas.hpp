#pragma once
// What follows from sizes that are arguments of a launch, as formulas: its grid, its scratch memory, and the numbers
// that its text takes. A launch's own numbers are these formulas at its sizes, and exported code has the formulas
// themselves, so that both agree at all sizes for which the text is right.
//
// A formula is an expression whose leaves are numbers and sizes of axes (AxisSize), and sizes are at least 1. A whole
// number is made of +, −, ·, min, max and, of what is not negative, // and %; a choice tests one against another.
#include <cstdint>
#include <vector>

#include "lower/kernel_program.hpp"

namespace napkin::lower {

/// The operator on two formulas of whole numbers. What numbers alone decide is a number.
Expr whole_formula(BinaryOp op, const Expr& a, const Expr& b);
Expr quotient_up(const Expr& a, std::int64_t by);
Expr rounded_up(const Expr& a, std::int64_t unit);
/// The value at those sizes. Pre: a formula of whole numbers; else of real ones.
std::int64_t whole_value(const Expr& formula, const Extents& extents);
double real_value(const Expr& formula, const Extents& extents);

/// A number that a launch passes behind the strides: whole, or the bits of a float or a double.
struct LaunchNumber {
    Expr formula;
    bool is_real = false, is_double = false;
};
/// What a launch of a kernel is made of.
struct LaunchFormulas {
    Expr groups;         ///< output tiles
    Expr blocks;         ///< CTAs of a GPU's grid
    Expr scratch_bytes;  ///< of a GPU's kernel
    Expr before_blocks;  ///< CTAs of the pass before it; null: there is none
    std::vector<LaunchNumber> numbers;
};
/// The numbers at those sizes, as a launch passes them.
std::vector<std::int64_t> numbers_at(const LaunchFormulas& launch, const Extents& extents);

/// A digit of an output tile's number, as GroupAxis, for all sizes. An axis whose tiles the bands do not divide has
/// bands of one tile.
struct GroupDigit {
    AxisId axis = -1;
    Expr tiles, stride;
    bool is_band = false;  ///< it counts bands of the axis; another digit counts their tiles
    bool is_uneven = false, is_backward = false;
};

/// The formulas of one kernel. Sizes that are no arguments are numbers in them.
class SizeFormulas {
public:
    explicit SizeFormulas(const KernelProgram& program) : program_(program), kernel_(*program.kernel) {}

    [[nodiscard]] Expr size(AxisId axis) const;
    [[nodiscard]] Expr tiles(AxisId axis) const;           ///< output tiles along it
    [[nodiscard]] std::vector<GroupDigit> digits() const;  ///< outermost first
    [[nodiscard]] Expr groups() const;
    [[nodiscard]] Expr groups_of_section() const;
    /// CTAs of a GPU's grid. Unless the user says how many, they are no more than the schedule's where it has fewer
    /// than tiles, and else one for each tile.
    [[nodiscard]] Expr blocks() const;
    [[nodiscard]] Expr k_blocks(const ScheduledLoop& loop) const;
    /// How far neighbours along the dimension of the variable's array are apart in memory without gaps, in values.
    [[nodiscard]] Expr stride(VariableId variable, std::size_t dimension) const;
    /// The last position at which a tile of the view may begin without leaving its array.
    [[nodiscard]] Expr last_of_view(VariableId variable) const;

    // Stream-K, where the kernel has it (schedule/stream_k.hpp).
    [[nodiscard]] Expr split_rounds() const;
    [[nodiscard]] Expr split_groups() const;
    [[nodiscard]] Expr stream_k_words_bytes() const;
    [[nodiscard]] Expr stream_k_bytes() const;
    // The pass before the kernel that finds ranges of K blocks (schedule/k_block_ranges.hpp).
    [[nodiscard]] Expr row_ranges(const KBlockRanges& ranges) const;
    [[nodiscard]] Expr range_bytes() const;

    /// Scratch memory of a GPU's launch, in bytes.
    [[nodiscard]] Expr scratch_bytes() const;

private:
    [[nodiscard]] std::size_t array_dimension(VariableId variable, std::size_t dimension) const;

    const KernelProgram& program_;
    const ScheduledKernel& kernel_;
};

}  // namespace napkin::lower
