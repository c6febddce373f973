#pragma once
// Loop-invariant and common sub-expressions of a statement list become arrays of their own. For example, exp(S − μ)
// varies with q and x. It is not computed again for every d of the contraction that uses it, and only once for all the
// reductions that use it.
#include <functional>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// True for an operation that costs much more than a multiply: exp, log, tanh, division, roots, powers, …
bool is_expensive(const Expr& e);

/// Introduces arrays into `diagram` and their defining statements into `statements`, each before its first use. Those
/// for which `hoistable` holds go to `hoisted` instead (they do not change within the loop). Each of `facts` becomes
/// what statements now write in its place.
void share(Diagram& diagram, std::vector<Statement>& statements, const std::function<bool(const Expr&)>& hoistable,
           std::vector<Statement>* hoisted, const std::vector<Expr*>& facts = {});

}  // namespace napkin
