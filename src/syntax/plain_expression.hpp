#pragma once
// Expressions of printed programs: what algebra prints (to_string in expr.hpp) over given axes and arrays, read back by
// the language's grammar. There are no reductions in them, no calls of diagrams, and nothing is inferred.
#include "syntax/ast.hpp"
#include "syntax/codes.hpp"

namespace napkin {

/// What names mean: the place of a name is its id.
struct NameTable {
    std::vector<std::string> axes, arrays;
    [[nodiscard]] AxisId axis(std::string_view name) const;    ///< -1: none
    [[nodiscard]] ArrayId array(std::string_view name) const;  ///< -1: none
};

/// Errors: unknown-name, unknown-array, unknown-axis, unknown-function, argument-count, index-not-affine,
/// expected-expression.
Expr plain_expression(const AstNode& node, const NameTable& names, Diagnostics& diagnostics);
std::vector<Index> plain_indices(const std::vector<AstNode>& nodes, const NameTable& names, Diagnostics& diagnostics);

}  // namespace napkin
