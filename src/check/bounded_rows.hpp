#pragma once
// An expression compiled to run over rows of bounded numbers. Values and errors lie side by side. So the common case,
// finite numbers away from every edge, is a few loops that vectorise. All other numbers are computed again one by one
// (bounded.hpp).
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "check/bounded.hpp"
#include "check/bounded_whole.hpp"
#include "diagram/diagram.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/row_program.hpp"

namespace napkin {

/// Every array's values, their errors and their states (Bounded::may, as numbers, so that they are read as values are),
/// by ArrayId. Errors and states are empty where they are 0 throughout: integers are in integer arithmetic. An integer
/// that may be any of its type is unbounded.
struct BoundedValues {
    Values value;
    std::vector<std::vector<double>> error, may;
    std::vector<bool> whole;  ///< all values are exact whole numbers, small enough for the type that runs
    /// Where an input is infinite or NaN, a NaN of the definition says nothing: a chunk of weights 0 that is skipped
    /// does not show that 0·inf is NaN.
    bool finite_inputs = true;

    [[nodiscard]] bool is_open(double wanted) const { return std::isnan(wanted) && !finite_inputs; }
    [[nodiscard]] bool is_exact(ArrayId array) const {
        const auto a = static_cast<std::size_t>(array);
        return error[a].empty() && may[a].empty();
    }
    [[nodiscard]] Bounded at(ArrayId array, std::size_t i) const {
        const auto a = array;
        return {value[a][i], error[a].empty() ? 0 : error[a][i],
                may[a].empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(may[a][i])};
    }
};

/// The points of a row: element j of each part is at [j]. `error` and `may` are null where they are 0 throughout.
struct BoundedRow {
    const double* value = nullptr;
    const double* error = nullptr;
    const double* may = nullptr;
    [[nodiscard]] Bounded at(std::int64_t j) const {
        return {value[j], error ? error[j] : 0, may && may[j] > 0 ? static_cast<std::uint8_t>(may[j]) : std::uint8_t{0}};
    }
};

class BoundedRows {
public:
    static constexpr std::int64_t max_row = RowProgram<double>::max_row;

    /// As RowProgram: row_axis may be -1. `values` must hold what the expression reads, for as long as this lives.
    /// `wanted`: in which kind the values are given.
    BoundedRows(const Expr& e, AxisId row_axis, const Diagram& diagram, const Extents& extents,
                const BoundedValues& values, const Rounding& rounding, Kind wanted = Kind::real);

    /// The values at `point` and the n - 1 points after it along the row's axis. Valid until the next run. run() is of
    /// rows that give real numbers, run_integer() of those that give integers.
    BoundedRow run(const std::vector<std::int64_t>& point, std::int64_t n);
    const BoundedWhole* run_integer(const std::vector<std::int64_t>& point, std::int64_t n);

    /// Whether every result is a whole number by its form, exact while its operands are small enough.
    [[nodiscard]] bool whole() const { return nodes_.back().whole; }

private:
    /// What is read, a constant, or integer arithmetic: the values as the plain evaluation has them, and what is stored
    /// beside them.
    struct Leaf {
        RowProgram<double> value;
        std::vector<RowProgram<double>> error, may;  ///< none or one
        std::vector<RowProgram<double>> integers;    ///< one where the values are wanted as integers
        bool is_integer = false;
    };
    struct Node {
        Expr e;
        std::vector<std::size_t> operands;
        bool uniform = true;  ///< one value for the whole row
        bool whole = false;
        Kind kind = Kind::real;
        bool is_whole_arithmetic = false;  ///< an operator that gives integers and has integers or a cast number
        bool wants_integers = false;       ///< its row is needed as integers, too
        std::ptrdiff_t leaf = -1;
        std::vector<double> value, error, may;  ///< of the row, where it is computed here
        std::vector<BoundedWhole> integers;     ///< likewise, where they are wanted
        BoundedRow row;
    };

    void compute(const std::vector<std::int64_t>& point, std::int64_t n);
    void read_leaf(Node& node, const std::vector<std::int64_t>& point, std::int64_t n);
    void read_integers(Node& node, const std::vector<std::int64_t>& point, std::int64_t n);
    void compute_integers(Node& node, std::int64_t n);
    [[nodiscard]] BoundedWhole apply_whole_at(const Node& node, std::int64_t j) const;
    /// False where a number is not finite, may have overflowed, or is compared within its error: then each number is
    /// done by itself.
    bool compute_together(Node& node, std::int64_t n);
    void compute_each(Node& node, std::int64_t n);
    [[nodiscard]] Bounded apply_at(const Node& node, std::int64_t j) const;

    Rounding rounding_;
    std::vector<Leaf> leaves_;
    std::vector<Node> nodes_;  ///< operands before what uses them; the last is the result
};

}  // namespace napkin
