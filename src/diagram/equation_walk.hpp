#pragma once
// The loops in which one equation is evaluated, whatever its values are: over the points of its target, over what it
// reduces, and along rows.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"

namespace napkin {

/// A row runs along the longest axis of what the equation reduces, or along the last one of the target where it reduces
/// nothing.
class EquationWalk {
public:
    EquationWalk(const Diagram& diagram, const Extents& extents, const Equation& equation)
        : extents_(extents), outer_(diagram.array(equation.target).axes), inner_(equation.reduce_axes) {
        num_reduced_ = product_of(inner_);
        points_ = static_cast<double>(product_of(outer_)) * static_cast<double>(num_reduced_);
        std::vector<AxisId>& rows = equation.reduce ? inner_ : outer_;
        if (!rows.empty()) {
            // The last one of several longest axes.
            const auto longest = std::max_element(inner_.rbegin(), inner_.rend(),
                                                  [&](AxisId a, AxisId b) { return extents_[a] < extents_[b]; });
            row_axis_ = equation.reduce ? *longest : rows.back();
            std::erase(rows, row_axis_);
        }
    }

    /// Whether there is nothing to reduce for any point of the target.
    [[nodiscard]] bool reduces_nothing() const { return num_reduced_ == 0; }

    /// Negative: rows of one value.
    [[nodiscard]] AxisId row_axis() const { return row_axis_; }

    /// Calls part(begin, end) for runs of the outer loop that are together all of it, on threads that have at least so
    /// many points each.
    template <class Part>
    void share_out(double points_per_thread, const Part& part) const {
        share_out_runs(product_of(outer_), points_, points_per_thread, part);
    }

    /// For each step of the outer loop from begin to end, calls start(), then row(point, place, n), then finish(step).
    /// It calls row for every row or part of a row, with n ≤ `most_row` values. There `point` holds the coordinates of
    /// its first value, and `place` is that value's place in a target that reduces nothing.
    template <class Start, class Row, class Finish>
    void part(std::int64_t begin, std::int64_t end, std::int64_t most_row, const Start& start, const Row& row,
              const Finish& finish) const {
        if (begin == end) return;
        std::vector<std::int64_t> point(extents_.size(), 0);
        std::int64_t rest = begin;
        for (std::size_t i = outer_.size(); i-- > 0;) {
            point[outer_[i]] = rest % extents_[outer_[i]];
            rest /= extents_[outer_[i]];
        }
        const std::int64_t length = row_axis_ < 0 ? 1 : extents_[row_axis_];
        for (std::int64_t step = begin; step < end; ++step) {
            start();
            bool more = !reduces_nothing();
            while (more) {
                for (std::int64_t j = 0; j < length; j += most_row) {
                    if (row_axis_ >= 0) point[at(row_axis_)] = j;
                    row(point, step * length + j, std::min(most_row, length - j));
                }
                if (row_axis_ >= 0) point[at(row_axis_)] = 0;
                more = next_point(inner_, extents_, point);
            }
            finish(step);
            next_point(outer_, extents_, point);
        }
    }

private:
    [[nodiscard]] std::int64_t product_of(const std::vector<AxisId>& axes) const {
        return product<std::int64_t>(axes, [&](AxisId axis) { return extents_[axis]; });
    }

    const Extents& extents_;
    std::vector<AxisId> outer_, inner_;  ///< without the row's
    AxisId row_axis_ = -1;
    std::int64_t num_reduced_ = 1;  ///< points for each of the target's
    double points_ = 0;             ///< of the target times what is reduced for each
};

}  // namespace napkin
