#pragma once
// Expressions up to the laws of the reals: a sum of monomials, each a number times powers of atoms. Two spellings of
// one value, such as (a − b)/c and a/c − b·(1/c), or x/sqrt(k) and x·k^-0.5, have one polynomial. It answers proofs,
// and writes out what has cancelled; it is no form to compute in, since it does not keep the order of operations.
#include <optional>
#include <utility>
#include <vector>

#include "algebra/expr.hpp"

namespace napkin {

/// coefficient · Π atom^power: atoms ascending by their hash, each once, no power 0. The parts of an atom are normal
/// themselves.
struct AtomProduct {
    double coefficient = 1;
    std::vector<std::pair<Expr, double>> powers;
};

/// A sum of monomials, ascending by their atoms, no two of the same atoms, no coefficient 0. Empty: 0.
using Polynomial = std::vector<AtomProduct>;

/// Products of sums are not multiplied out: such a sum is an atom. Atoms count as finite and, under a division, as
/// nonzero.
Polynomial polynomial(const Expr& e);
Polynomial operator+(const Polynomial& a, const Polynomial& b);
Polynomial operator-(const Polynomial& a);
/// Every monomial of one with every one of the other.
Polynomial operator*(const Polynomial& a, const Polynomial& b);
/// a/b where b is a single monomial; nullopt for 0 and for sums.
std::optional<Polynomial> quotient(const Polynomial& a, const Polynomial& b);
bool operator==(const AtomProduct& a, const AtomProduct& b);

Expr to_expr(const Polynomial& p);

/// The same value at every point where both are defined.
bool equal_over_reals(const Expr& a, const Expr& b);

}  // namespace napkin
