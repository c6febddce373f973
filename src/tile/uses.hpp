#pragma once
// The variables that a tile statement uses. Lifetimes rest on this one definition of use.
#include <functional>
#include <vector>

#include "tile/program.hpp"

namespace napkin {

/// The variables that the statement reads, writes or moves, ascending, each once. Free is no use. For a loop, variables
/// that live only in its iterations are left out, as those free them.
std::vector<VariableId> used_variables(const TileKernel& kernel, const TileStatement& statement);

/// The index of each dimension of the variable's array. Elements in it are those of arrays.
std::vector<Index> array_indices(const TileKernel& kernel, const Variable& variable);

/// The reads of a statement's body, then of its carry, in the order in which they stand.
std::vector<const Read*> reads_in_order(const Expr& body, const Expr& carry);

/// Calls f for every statement, a loop before what it contains.
void for_each_statement(const std::vector<TileStatement>& statements, const std::function<void(const TileStatement&)>& f);

}  // namespace napkin
