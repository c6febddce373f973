#pragma once
// Scalar expressions: the elementwise mathematics under an equation, as immutable nodes of one shared graph. The same
// type serves the user's equations, the calculus (where folds' states are arrays like any other) and the emitters.
// Equal expressions are one object (hash-consing), so equality is a comparison of pointers, and what is often asked of
// a node is known from its construction.
//
// An expression is evaluated at a point: an integer value for every axis. A Read takes the element of an array at
// indices, which are of three kinds (index.hpp). A Read whose indices leave the array has no value, so it only stands
// where it is not taken. An AxisIndex is the axis' own coordinate. An AxisSize is the axis' full extent.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algebra/index.hpp"
#include "support/dtype.hpp"

namespace napkin {

/// The functions of one number: the rows of the table (scalar_function.hpp), in its order.
enum class UnaryOp : std::uint8_t {
#define NAPKIN_SCALAR(op, ...) op,
#include "algebra/scalar_functions.inc"
#undef NAPKIN_SCALAR
};
enum class BinaryOp : std::uint8_t {
    add,
    sub,
    mul,
    div,
    floor_div,  ///< rounds towards minus infinity
    mod,        ///< the rest of floor_div: has the sign of the divisor
    pow,
    min,
    max,
    lt,
    le,
    gt,
    ge,
    eq,
    ne,
    logical_and,
    logical_or
};
constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::lt && op <= BinaryOp::ne; }

/// The number value + correction. The correction is 0 but for whole numbers of 64 bits that no double holds.
struct Constant {
    double value;
    std::int64_t correction = 0;
};
struct AxisIndex {
    AxisId axis;
};
struct AxisSize {
    AxisId axis;
};
/// Expressions of a tile program read variables in place of arrays.
constexpr VariableId as_variable(ArrayId read) { return VariableId::of(read.place()); }

struct Read {
    ArrayId array;
    std::vector<Index> indices;  ///< one for each axis of the array
    [[nodiscard]] constexpr VariableId variable() const { return as_variable(array); }
};
struct Unary {
    UnaryOp op;
    Expr a;
};
struct Binary {
    BinaryOp op;
    Expr a, b;
};
/// a where the condition is not 0, else b; the side not taken does not contribute, not even its NaN.
struct Select {
    Expr condition, a, b;
};
struct Cast {
    DType type;
    Expr a;
};

struct ExprNode : std::enable_shared_from_this<const ExprNode> {
    using Variant = std::variant<Constant, AxisIndex, AxisSize, Read, Unary, Binary, Select, Cast>;
    template <class Kind>
    /// ascending, each once; shared with a child that has the same
    using Ids = std::shared_ptr<const std::vector<Id<Kind>>>;
    Variant v;
    std::size_t hash = 0;
    Ids<AxisKind> axes;         ///< free_axes()
    Ids<ArrayKind> arrays;      ///< read_arrays()
    std::size_t tree_size = 1;  ///< count_nodes()

    explicit ExprNode(Variant value) : v(std::move(value)) {}
};

// Construction does no simplification: what the user wrote is what is kept. Safe from several threads.
Expr constant(double value);
Expr integer_constant(std::int64_t value);
Expr axis_index(AxisId axis);
Expr axis_size(AxisId axis);
Expr read(ArrayId array, std::vector<Index> indices);
Expr read(VariableId variable, std::vector<Index> indices);
Expr unary(UnaryOp op, Expr a);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(DType type, Expr a);

/// The node as the given alternative, or null.
template <class T>
const T* as(const Expr& e) {
    return std::get_if<T>(&e->v);
}

/// Structural equality (constants by bit pattern, so NaN equals itself and 0 differs from -0). Equal expressions are
/// one object.
inline bool equal(const Expr& a, const Expr& b) { return a == b; }
struct ExprHash {
    std::size_t operator()(const Expr& e) const { return e->hash; }
};
struct ExprEqual {
    bool operator()(const Expr& a, const Expr& b) const { return equal(a, b); }
};

/// Direct children, in order. Those of a read are its indices that are not affine.
std::vector<Expr> children(const Expr& e);
/// The same node over other children (as many as children() gives).
Expr with_children(const Expr& e, std::vector<Expr> replacement);

/// Bottom-up rewriting: f is called on every distinct node after its children were rewritten; returns the node to use.
/// A node whose children stay the same objects stays the same object.
Expr transform(const Expr& e, const std::function<Expr(const Expr&)>& f);
/// Calls f on every distinct node, a parent before its children and in order; a shared node once.
void visit(const Expr& e, const std::function<void(const Expr&)>& f);

// Known from construction: none of these walks the expression.
/// The axes that the value depends on: of reads' indices and of AxisIndex (not of AxisSize), ascending.
std::vector<AxisId> free_axes(const Expr& e);
bool depends_on_axis(const Expr& e, AxisId axis);
bool reads_array(const Expr& e, ArrayId array);
bool reads_variable(const Expr& e, VariableId variable);  ///< of null: no
std::vector<ArrayId> read_arrays(const Expr& e);          ///< ascending, each once
std::vector<VariableId> read_variables(const Expr& e);
/// Nodes of the tree as it prints: a shared node counts as often as it stands there. Saturates, never overflows.
std::size_t count_nodes(const Expr& e);

/// Value semantics of the operators on real numbers, in double precision (on integers: number.hpp); comparisons and
/// logic give 0 or 1; min and max propagate NaN.
double apply(UnaryOp op, double a);
double apply(BinaryOp op, double a, double b);

/// Identities of the reals with constant folding: x+0, x·1, x/1, --x, 0·finite constant, exp(log x), where(1, …).
/// Never changes the value, but for rounding, at any point where the original is finite and no part of it is NaN.
Expr simplify(const Expr& e);

/// Provably greater than zero for every finite input (exp(·), squares plus positive constants, sizes, …); used as a
/// side condition.
bool is_positive(const Expr& e);
bool is_not_negative(const Expr& e);  ///< likewise, zero included

std::string_view name(UnaryOp op);   ///< as written in the language: "exp", "-", "not", …
std::string_view name(BinaryOp op);  ///< "+", "<=", "min", "^", "and", …

/// Names for printing: how an axis and an array are called.
struct ExprNames {
    std::function<std::string(AxisId)> axis;
    std::function<std::string(ArrayId)> array;
};
/// The expression in the language's syntax with the fewest parentheses that read back as the same tree. AxisSize prints
/// as size(k), a cast as f16(…), a Select as where(…, …, …), min and max of two as calls; logic is `and`, `or`, `not`,
/// power a^b. Constants print so that they read back bit for bit ("inf", "-inf", "nan" included): -2 is a constant and
/// the negation of 2 prints as -(2). The maximum of two bare axes prints as max((i), j), as max(i, j) is a reduction.
/// As a factor, an expression looser than a product goes into parentheses.
std::string to_string(const Expr& e, const ExprNames& names, bool as_factor = false);
std::string to_string(const Affine& a, const ExprNames& names);
std::string to_string(const Index& index, const ExprNames& names);

}  // namespace napkin
