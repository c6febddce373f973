#pragma once
// Proofs about running extrema. One shows that R is at least A(x) at every point that counts, which makes R a reference
// for exponentials of A. The other shows that R is an extremum of A itself, which makes it an origin for powers of A
// and the key of a selection.
#include <optional>
#include <vector>

#include "derive/stream.hpp"

namespace napkin {

using Conditions = std::vector<Expr>;  ///< all of them hold

/// A running result that is an extremum over at least the stream's points, or no less than one.
struct Extremum {
    bool is_max = true;
    Expr of;       ///< what it is the extremum of
    Expr value;    ///< ∓inf while nothing that counts has arrived
    Expr empty;    ///< value == ∓inf, where what was written is undefined; null: it is guarded as written
    Expr guarded;  ///< value, but 0 while it is empty
};

/// e as a running maximum (minimum), or as the greater (lesser) of one and something fixed; also inside of a guard by
/// hand.
std::optional<Extremum> extremum(const Expr& e, bool is_max, const Stream& stream);

/// The extremum's quantity is a(x) wherever `masks` hold: so no a(x) that counts passes it.
bool covers(const Extremum& extremum, const Expr& a, const Conditions& masks, const Stream& stream);

/// The conditions of a conjunction, or the conjunction of conditions (null: none).
Conditions conjuncts(const Expr& e);
Expr conjunction(const Conditions& conditions);

/// A scaled extremum beside a(x): the addend is −s·R and a(x) = s·A(x), or +s·R and −s·A(x), R being an extremum of A
/// and s > 0.
struct Dominance {
    Extremum extremum;
    Expr scale;  ///< s; null: 1
    int sign = -1;
};
std::optional<Dominance> beside_extremum(const Expr& addend, int sign, const Expr& a, bool is_max,
                                         const Conditions& masks, const Stream& stream);
/// The maximum or else the minimum.
std::optional<Dominance> extremum_of(const Expr& addend, int sign, const Expr& a, const Conditions& masks,
                                     const Stream& stream);
/// Whether the addend is a scaled running extremum, of whatever.
bool is_extremum(const Expr& addend, const Stream& stream);
/// Whether choices and arithmetic make it from an extremum, of this traversal or of an earlier one.
bool follows_extremum(const Expr& e, const Stream& stream);
/// One that dominates the exponent a(x): a + addend is nowhere above 0.
std::optional<Dominance> dominance(const Expr& addend, int sign, const Expr& a, const Conditions& masks,
                                   const Stream& stream);

}  // namespace napkin
