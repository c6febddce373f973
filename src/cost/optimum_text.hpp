#pragma once
// H* for readers: the group sizes that reach it, under what conditions, or why there is no closed form.
#include <string>
#include <vector>

#include "cost/optimum.hpp"
#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram's names, and sums under a root in parentheses: "(u - 1)". Valid as long as both.
SymbolNames names_in(const Optimum& optimum, const Diagram& diagram);

/// "g_a = M^(1/2)", "g_h = 1", "where 2·g_q·d ≤ M".
std::vector<std::string> reached_at(const Optimum& optimum, const Diagram& diagram);

/// Why it is numeric; empty where it is closed.
std::string why_numeric(const Optimum& optimum, const Diagram& diagram);

}  // namespace napkin
