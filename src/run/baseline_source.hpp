#pragma once
// Plain loops for equations: the C++ that evaluates each equation by itself over dense arrays, vectorised by the compiler.
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// How one equation's loops may be shared out: `items` independent pieces of the target, and `reduce_items` steps of the outermost
/// reduced axis (1 for a map), over which partial results may be combined with the reduction.
struct LoopSpace {
    std::int64_t items = 1, reduce_items = 1;
    friend bool operator==(const LoopSpace&, const LoopSpace&) = default;
};
LoopSpace loop_space(const Diagram& diagram, const Equation& equation, const Extents& extents);

/// One function for each equation of the list (indices into Diagram::equations), for these extents:
///     extern "C" void equation_N(const real* const* arrays, real* target, long begin, long end, long reduce_begin, long reduce_end)
/// with the arrays by ArrayId, computing the pieces [begin, end) over the steps [reduce_begin, reduce_end); `real` is double
/// or float.
std::string baseline_source(const Diagram& diagram, const Extents& extents, const std::vector<std::size_t>& equations,
                            bool use_double);

}  // namespace napkin
