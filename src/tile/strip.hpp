#pragma once
// Expressions compiled to a flat list of operations over strips: many points along one axis at a time. What makes the counting
// interpreter quick enough for property tests.
#include <cstdint>
#include <vector>

#include "algebra/expr.hpp"

namespace napkin {

/// A leaf's values along a strip.
struct StripRead {
    const double* first = nullptr;
    std::int64_t stride = 0;  ///< in values, per step of the strip's axis
};

class StripProgram {
public:
    static constexpr std::int64_t max_points = 128;

    /// `extents` give AxisSize its value.
    StripProgram(const Expr& e, AxisId strip_axis, const std::vector<std::int64_t>& extents);

    // Results point into the program's own storage: it moves, but is not copied.
    StripProgram(StripProgram&&) = default;
    StripProgram& operator=(StripProgram&&) = default;

    /// The reads whose leaves run() takes, in its order; each array and index pattern once.
    [[nodiscard]] const std::vector<Read>& reads() const { return reads_; }

    /// Values at `count` ≤ max_points points; `point` holds every axis' coordinate at the first one. Valid until the next run.
    const double* run(const std::vector<StripRead>& leaves, const std::vector<std::int64_t>& point, std::int64_t count);

private:
    enum class Kind : std::uint8_t { constant, axis_index, leaf, unary, binary, select, cast };
    struct Step {
        Kind kind;
        std::uint8_t op = 0;         ///< UnaryOp, BinaryOp or DType
        int a = -1, b = -1, c = -1;  ///< steps of the operands; of a leaf: the read, of an axis index: the axis
        double value = 0;
    };

    std::vector<Step> steps_;  ///< operands before their users
    std::vector<Read> reads_;
    AxisId strip_axis_;
    int result_ = 0;                      ///< the step that gives the expression's value
    std::vector<double> storage_;         ///< max_points values for each step
    std::vector<const double*> results_;  ///< where each step's values lie
};

}  // namespace napkin
