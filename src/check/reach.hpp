#pragma once
// How far partial results may reach. What runs multiplies the factors of a product in any order, takes a factor that
// all terms of a sum share out of it, and divides by multiplying with a reciprocal: X·r·g·W with X and W at 1e38 and r
// at 1e-38 is a tame number, whose partial product X·W overflows, as g·r underflows elsewhere.
//
// The reach of a value bounds every partial product and partial sum on the way to it, in whatever order. It follows
// from the definition alone, which is evaluated with max(1, |f|) in place of every factor f, with a sum in place of a
// difference. Maps are read through, as they may be inlined; inputs, results of reductions, reciprocals, functions and
// integers are factors, which no law takes apart.
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "check/bounded_rows.hpp"

namespace napkin {

class Reach {
public:
    /// Whether it is that of the factors, how large a partial product may be, or of their reciprocals, how small.
    enum class Of { factors, reciprocals };

    /// All three must live as long as this.
    Reach(const Diagram& diagram, const Extents& extents, const Rounding& rounding, Of of = Of::factors);

    /// Widens the bounds of an equation's target by what another order may do. A sum of products with several orders,
    /// or one over other reductions, that is not finite may be any of the infinities or NaN, as these meet otherwise.
    /// Of the factors: a value whose reach passes the largest number may be infinite or NaN, and a partial product that
    /// may fall below the normal range loses the smallest normal number times what is multiplied with it. `values` has
    /// all arrays up to the target, whose errors and states are not dropped yet.
    ///
    /// The reach of a single value is only looked at where the largest magnitude of each factor does not show that all
    /// is well.
    void widen(const Equation& equation, BoundedValues& values);

private:
    /// An expression's reach, which reads the reaches of arrays, and the multiplications on the way to it; one over a
    /// sum counts twice, as it may be one of each term.
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
