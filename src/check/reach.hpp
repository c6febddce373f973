#pragma once
// How far partial results may reach. A kernel multiplies the factors of a product in any order, takes a factor that all
// terms share out of a sum, and divides by multiplying with a reciprocal. X·r·g·W with X and W at 1e38 and r at 1e-38
// is a tame number. Yet its partial product X·W overflows, as g·r underflows elsewhere.
//
// The reach of a value bounds every partial product and partial sum on the way to it, in any order. It follows from the
// definition alone. The definition is evaluated with max(1, |f|) in place of every factor f, and with a sum in place of
// a difference. Maps are read through, as they may be inlined. Inputs, results of reductions, reciprocals, functions
// and integers are factors, which no law takes apart.
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "check/bounded_rows.hpp"

namespace napkin {

class Reach {
public:
    /// `factors`: how large a partial product may be. `reciprocals`: how small.
    enum class Of { factors, reciprocals };

    /// All three must live as long as this.
    Reach(const Diagram& diagram, const Extents& extents, const Rounding& rounding, Of of = Of::factors);

    /// Widens the bounds of an equation's target by what another order may do. A sum that is not finite may be any of
    /// the infinities or NaN, if its terms are products with several orders or it is over other reductions. A value
    /// whose reach, that of the factors, passes the largest number may be infinite or NaN. A partial product that may
    /// fall below the normal range loses the smallest normal number times its other factors. Pre: `values` has all
    /// arrays up to the target, whose errors and states are not dropped yet.
    ///
    /// The reach of a single value is only computed where the largest magnitudes of the factors do not already show
    /// that all is well.
    void widen(const Equation& equation, BoundedValues& values);

private:
    /// An expression's reach, which reads the reaches of arrays, and the number of multiplications on the way to it. A
    /// multiplication over a sum counts twice, as each term may have one.
    struct Part {
        Expr reach;
        double products = 0;
        bool has_terms = false;  ///< it is a sum or a difference
    };

    [[nodiscard]] bool is_factor(ArrayId array) const;
    [[nodiscard]] ArrayId reach_id(ArrayId array) const;
    Part part_of(const Expr& e);
    Part compute_part(const Expr& e);
    [[nodiscard]] bool reads_reduced(const Expr& e) const;
    Part factor(const Expr& e);
    [[nodiscard]] bool has_one_order(const Equation& equation, const Part& part) const;
    [[nodiscard]] bool is_product_of_inputs(const Equation& equation) const;

    double most(const Expr& reach);
    double most_of_array(ArrayId array);
    double most_of_factor(const Expr& factor);
    double most_of(const Equation& equation);
    const Column& cells_of(ArrayId array);
    Column cells_of(const Equation& equation);
    /// Evaluates an equation that defines an array of `extended_`.
    Column evaluated(Equation equation);

    Of of_;
    std::unique_ptr<Reach> reciprocals_;  ///< of the factors' reach
    const Rounding& rounding_;
    const Extents& extents_;
    Diagram extended_;  ///< the arrays, the reach of each, and a number; no equations
    std::vector<const Equation*> definitions_;
    std::vector<bool> reduced_;  ///< by ArrayId: the result of a reduction, or made of such
    Kinds kinds_;
    BoundedValues* values_ = nullptr;  ///< while a target is widened
    std::unordered_map<Expr, Part, ExprHash, ExprEqual> parts_;
    std::unordered_map<Expr, Expr, ExprHash, ExprEqual> factors_;  ///< by reach
    std::unordered_map<Expr, double, ExprHash, ExprEqual> most_;   ///< by reach
    std::vector<double> most_of_array_;                            ///< below 0: not known yet
    std::vector<Column> cells_;                                    ///< empty: not known yet
};

}  // namespace napkin
