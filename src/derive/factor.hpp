#pragma once
// Streamability from the algebra of a reduction's body (docs/calculus.md; the laws are those of law.hpp).
//
// Let R = ⊕_x f(x; ν), where ν are other reductions of the same stream. R streams when it is a map of ν and of states
//     acc = ⊕_x body(x; ρ(ν)),
// where what is accumulated can follow ρ as it moves: a reference of an exponential, an origin of a power, the extremum
// of a selection.
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"
#include "derive/dominance.hpp"
#include "derive/stream.hpp"

namespace napkin {

/// b^(A(x) − s·guarded) stands in the body. What was accumulated is multiplied by b^(s·(value′ − guarded)).
struct Reference {
    /// infinite while nothing that counts has arrived: the factor is 0 then, and so is what was accumulated
    Expr value;
    Expr guarded;        ///< the same, but finite
    Expr scale;          ///< |s|; null: 1
    bool is_max = true;  ///< s > 0 and the value is a maximum; else s < 0 and it is a minimum
    Expr base;           ///< null: e
    /// the value is over points that a mask excludes here: infinite or NaN, perhaps, while nothing counts
    bool is_of_more = false;
    friend bool operator==(const Reference& a, const Reference& b);
};

/// What is reduced counts only where A(x) is the running extremum: what was accumulated is void when that moves.
struct Selection {
    Expr extremum;
    Expr nothing;         ///< the void value, neutral under ⊕
    bool or_nan = false;  ///< NaNs of A(x) count as well: once the extremum is NaN, it moves no more
    friend bool operator==(const Selection& a, const Selection& b);
};

/// A moment Σ w·Π_g (A_g − r_g)^p_g: follows the r_g by the moments of lower powers.
struct CentredMoment {
    std::vector<int> powers;                                       ///< p_g
    std::vector<Expr> origins = {};                                ///< r_g(ν)
    std::vector<std::pair<std::vector<int>, ArrayId>> lower = {};  ///< those that are not identically 0
    bool is_masked = false;  ///< what a mask lets nothing of through is 0, wherever the origins are
    friend bool operator==(const CentredMoment& a, const CentredMoment& b);
};

/// How an accumulated value follows the running results: the actions of law.hpp that act at every step.
struct Correction {
    std::vector<Reference> references;
    std::vector<Selection> selections;
    std::optional<CentredMoment> moment = {};
    Expr kept = {};  ///< a factor 1/z(ν) of the body that is kept as it is (auxiliary form); null: none
    friend bool operator==(const Correction& a, const Correction& b);
};

/// A reduction over the stream that is to be a state.
struct StateSpec {
    std::string suffix;  ///< of its name, behind the reduction's
    ReduceOp op = ReduceOp::sum;
    Expr body;
    Correction correction;
};

struct Factored {
    std::optional<StateSpec> plain;  ///< the reduction is this state itself
    Expr finish;                     ///< else: a map of ν and of states that were made
    /// a reference that has to be lowered: all that was factored under it is to be factored again; null: none
    Expr to_lower;
    std::vector<std::string> conditions;  ///< of the laws used
};

/// Why a body cannot be written so, and the term at which it fails.
struct FactorFailure {
    std::string reason;
    Expr term;
};

struct FactorOptions {
    bool keep_tails = false;                           ///< auxiliary form
    std::function<Expr(const StateSpec&)> make_state;  ///< the state's value, as a Read of it; equal states are one
    /// Whether exponentials under this reference are 1/n of what was written, n being the number of reduced points.
    std::function<bool(const Expr& reference)> lowered;
    /// reads values whose sum over n points may leave the range of an accumulator
    std::function<bool(const Expr&)> wide;
};

std::variant<Factored, FactorFailure> factor(ReduceOp op, const Expr& body, const Stream& stream,
                                             const FactorOptions& options);

}  // namespace napkin
