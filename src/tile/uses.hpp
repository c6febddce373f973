#pragma once
// Which variables a tile statement touches: the one notion of use that lifetimes are made of.
#include <functional>
#include <vector>

#include "tile/program.hpp"

namespace napkin {

/// The variables that the statement reads, writes or moves, ascending, each once. Free is no use; of a loop, those are
/// left out that live in its iterations only, which free them.
std::vector<VariableId> used_variables(const TileKernel& kernel, const TileStatement& statement);

/// The index of each dimension of the variable's array, any elements in it being those of arrays.
std::vector<Index> array_indices(const TileKernel& kernel, const Variable& variable);

/// The reads of a statement's body, then of its carry, in the order in which they stand.
std::vector<const Read*> reads_in_order(const Expr& body, const Expr& carry);

/// Calls f for every statement, a loop before what it contains.
void for_each_statement(const std::vector<TileStatement>& statements, const std::function<void(const TileStatement&)>& f);

}  // namespace napkin
