#pragma once
// H*(a, M): the fewest transfers of a kernel when a core holds M values (paper.md §§4–5, Eqs. 1 and 4), as an
// expression.
//
// At large M, memory is what a group maintains: the terms of highest order in the group sizes of each column, with
// stream sizes of 1. Minimising H = Σ_t c_t·Π g^-B_t under M ≥ Σ_j y_j·Π g^E_j is a geometric program. First, its
// orders follow: with g = M^γ, the γ of the fewest transfers solve a linear program. The terms that bind there are the
// leading ones. Let w_t be their shares of the sum and λ_j the multipliers. There is no degree of freedom if only one
// solution of Σ w_t·B_t = Σ λ_j·E_j and Σ w_t = 1 exists. Then the sum is
//   Π_t (c_t/w_t)^w_t · Π_j (y_j·Λ/(λ_j·M))^λ_j,   Λ = Σ λ_j,
// and each term is its share of it. What freedom remains is spent on the terms of the next order in the same way, under
// those equations.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "cost/transfers.hpp"

namespace napkin {

/// One term of the standard form (Eq. 1): α·M^-β.
struct StandardTerm {
    Size alpha;
    Rational beta;
};

/// A product of powers of group sizes and what it is at the optimum: g_q·g_h = M/(2·d).
struct GroupEquation {
    Monomial product;
    Size value;          ///< in axes' sizes and M, one term
    bool whole = false;  ///< a bound of the axis, not of M: the value is the whole axis
    bool any = false;    ///< it costs and saves nothing, and may be any
};

/// Under what H* is what it is: small ≤ M, or small ≪ M.
struct OptimumCondition {
    Size small;
    bool far_below = false;
    friend bool operator==(const OptimumCondition&, const OptimumCondition&) = default;
};

/// Why an optimum has no closed form.
enum class Obstacle : std::uint8_t { none, columns, stream, growing, negative, too_many, unbalanced, coefficient };

struct Optimum {
    bool closed = false;
    Size transfers;                     ///< H*: Σ α_t·M^-β_t in the axes' sizes and M; when it is not closed, H itself
    Size memory;                        ///< the constraint: M ≥ memory, in group sizes, at large sizes
    std::vector<GroupEquation> groups;  ///< the group sizes that reach it
    std::vector<OptimumCondition> where;
    std::vector<Size> sums;  ///< what symbols of the kind `sum` stand for, under a root
    Obstacle obstacle = Obstacle::none;
    Symbol obstacle_at;                         ///< the group or stream size with which H grows or on which it depends
    std::size_t num_terms = 0, num_groups = 0;  ///< of one order in H, and group sizes to balance them

    /// The terms of `transfers`, ascending in β. Empty when it is not closed.
    [[nodiscard]] std::vector<StandardTerm> standard_form() const;
    /// A size in this optimum's symbols, `sums` too. Nothing where one is missing, or where no number comes out (a root
    /// of a sum below 0).
    [[nodiscard]] std::optional<double> value(const Size& size, const SymbolValues& of_symbol) const;
};

/// At large M and large axes: in letters alone.
Optimum optimum(const KernelCost& cost);

/// The optimum where sizes and M are numbers, still in letters. Group sizes range from 1 to their axes. M is the column
/// that limits there, with all of its coefficients.
Optimum optimum_at(const KernelCost& cost, const SymbolValues& value);

/// The same at several sizes and memories of one cost: each case of axes at an end is solved once. Keeps a reference to
/// the cost.
class OptimumSolver {
public:
    explicit OptimumSolver(const KernelCost& cost) : cost_(cost) {}
    [[nodiscard]] Optimum at(const SymbolValues& value);

private:
    /// Under one column of M, with some axes whole and some in groups of 1.
    using Case = std::tuple<std::size_t, std::set<AxisId>, std::set<AxisId>>;
    [[nodiscard]] const Optimum& solved(const Case& question);
    [[nodiscard]] const Optimum& clamped(std::size_t column, const SymbolValues& value);
    const KernelCost& cost_;
    std::map<Case, Optimum> solved_;
};

}  // namespace napkin
