#pragma once
// The operations that a reader sees in a diagram: its equations, those of one call of a definition together where no
// contraction is among them. What an operation is drawn as follows from its form alone; a call brings no more than its
// name.
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "draw/circuit.hpp"

namespace napkin::draw {

/// What is read and at which axes, by dimension of the array; -1 where the index is no bare axis.
struct Reading {
    ArrayId array = -1;
    std::vector<AxisId> axes;
    friend bool operator==(const Reading&, const Reading&) = default;
};

struct SeenOperation {
    std::vector<ArrayId> targets;  ///< of the equations, in order
    ArrayId output = -1;           ///< the last of them, the only one that is read elsewhere
    std::vector<Reading> readings;
    Shape shape = Shape::box;
    svg::Label label;
    std::vector<AxisId> consumed;
    std::string description;
};

std::vector<SeenOperation> seen_operations(const Diagram& diagram);
/// Every equation by itself.
std::vector<SeenOperation> single_operations(const Diagram& diagram);

/// The readings of an expression, each once, in order; those in gathered indices too.
std::vector<Reading> readings_of(const Expr& e);

/// An expression without indices: `exp(S − M)`. Where another value is −∞, the condition is a mask: `S, mask: x ≤ q`.
std::string brief(const Expr& e, const ExprNames& names);

/// The shape of target = [carry ⊕] [⊕] body and its label.
struct Sign {
    Shape shape;
    svg::Label label;
};
/// With exponents raised.
svg::Label formula_label(const std::string& text);
Sign sign_of(const std::optional<ReduceOp>& reduce, const Expr& body, const Expr& carry, ArrayId target,
             const ExprNames& names);
/// A sum of products of values and numbers.
bool is_contraction(const std::optional<ReduceOp>& reduce, const Expr& body);

}  // namespace napkin::draw
