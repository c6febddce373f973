#pragma once
// Select_math: what each statement computes at a point, and how an operation is computed where that is no plain call of
// the backend's function. Emitters read it, and neither recognize an expression nor weigh its accuracy.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "schedule/fragments.hpp"
#include "schedule/integer_values.hpp"

namespace napkin::lower {

enum class MathForm : std::uint8_t {
    plain,
    power_of_two,    ///< 2^x by exp2; exp(x) and c·exp(x) where a GPU has an instruction for it, in single precision
    nonpositive,     ///< exp of what is at most 0 (schedule/maxima.hpp)
    near_error,      ///< erf or erfc with fewer digits (schedule/error_function.hpp)
    near_quotient,   ///< a quotient with fewer digits, which is rounded to 16 bits or fewer at once
    exact_quotient,  ///< by a power of two
    reciprocal,      ///< the product with a reciprocal that vectors share (schedule/quotients.hpp)
    products,        ///< a power with a constant exponent, `factor` (algebra/power.hpp)
    /// A sum of coordinates, or a comparison of such. The thread's column on fragments stands apart from the rest,
    /// which is one number a row. Once the loop over columns is unrolled, the compiler knows them as constants.
    own_column,
};

/// How the operation at a node is computed. A power of two takes up constant factors. For c·exp(x) that is c, and for
/// exp(a·c − b) with |c·log2 e| <= 1 as well. `operand` is then the number of the product's other operand.
struct MathChoice {
    Expr node;
    MathForm form = MathForm::plain;
    double factor = 1;
    int operand = -1;                                  ///< -1: no factor is taken up
    bool rounds_first = false, rounds_second = false;  ///< of nonpositive: the side's product is rounded by itself
    std::optional<Affine> sum = {};  ///< of own_column, with numbers for sizes; of a comparison: its sides' difference
};
using MathChoices = std::vector<MathChoice>;
/// How the node is computed.
const MathChoice& choice_at(const MathChoices& choices, const Expr& node);

/// What a statement computes at a point. On fragments `value` has a map's carry in it.
struct PointMath {
    Expr value, carry = nullptr;  ///< null: it computes none
    Expr factor = nullptr;        ///< of numbers and sizes: a reduction's result is multiplied by it, before the carry
    bool has_whole_columns = false;  ///< no column of the tile lies past the axis' end
    MathChoices choices = {};
};
struct StatementMath {
    PointMath any;                           ///< in any tile; of a product: the correction of its target
    std::optional<Unmasked> within = {};     ///< where nothing excludes a point; none: it makes no difference
    std::optional<PointMath> unmasked = {};  ///< what it computes there
    bool reduces_columns = false;            ///< a reduction along the columns of fragments
};
struct KernelMath {
    std::map<const TileStatement*, StatementMath> statements;  ///< those that compute
    std::vector<MathChoices> merges;                           ///< of stream-K: of each state that parts merge
};

/// Pre: the schedule's atoms and places are applied.
KernelMath select_math(const ScheduledKernel& kernel);

}  // namespace napkin::lower
