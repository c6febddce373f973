#pragma once
// The laws by which a reduction streams, as data. Let R = ⊕_x f(x; ν), where ν are other results of the same stream.
// Each law says what of ν may leave the reduction or follow it while it runs: f(x; ν) = g(x) acted on by a(ν). The
// factoring (factor.hpp) reads its side conditions and actions here, and every row is a randomised test of its own
// (tests/property/test_laws.cpp).
#include <optional>
#include <string_view>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"

namespace napkin {

/// What a(ν) does to an accumulated value. Partial results stay as tame as the definition's own terms while ν moves:
/// - an exponential's, since R is a running extremum that no exponent passes, so that every kept factor lies in [0, 1];
/// - a shift's, since r lies within the values that carry weight, or is what the definition itself subtracts;
/// - a selection's, since an extremum either stays, or all that was selected for it is void;
/// - the others, since they are those of the definition except for the factor that waits.
enum class Action {
    multiply,     ///< acc · a
    add,          ///< acc + a
    raise,        ///< acc · a^n, n being the number of reduced points
    map,          ///< φ(acc), φ monotone
    exponential,  ///< acc · b^(R′ − R) at every step: the reduced values are g(x)·b^(A(x) − R)
    shift,        ///< Σ_j C(p, j)·(r′ − r)^(p−j)·acc_j at every step: the reduced values are w(x)·(A(x) − r)^p
    choose,       ///< acc where c(ν), else 0
    select,       ///< acc where M′ = M, else ⊕'s identity, at every step: the reduced values are g(x) where A(x) = M
};

struct Law {
    std::string_view name;
    ReduceOp plus;    ///< ⊕
    Action action;    ///< by a(ν)
    double identity;  ///< of ⊕
    /// The value that every action keeps: what was accumulated while nothing contributed, whatever the factor that
    /// waits turns out to be. None: the identity is a value that the action moves.
    std::optional<double> absorbing;
    std::string_view times;      ///< ⊗ as printed
    std::string_view inverse;    ///< what takes a(ν) back
    std::string_view condition;  ///< side condition, for a reader
};

const std::vector<Law>& laws();
/// The row; an internal error where there is none.
const Law& law(ReduceOp plus, Action action);

}  // namespace napkin
