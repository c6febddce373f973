#pragma once
// Axes whose lengths are data: `sizes q = F[b] .. F[b + 1]`, whose rows lie packed one sequence behind the other, and
// `sizes x = L[b]`, of whose values the first L[b] count.
//
// Both are a rewriting into the rest of the language. The two axes b and q of packed rows become one axis bq of all
// rows. Integer arrays say for each row which sequence it is of, and where that begins and ends. A reduction over the
// lengths takes what lies between: an interval of bq by data, which kernels cut their streams by
// (schedule/k_block_ranges.hpp). So no array holds pairs of rows of different sequences, beside those that fusion
// keeps out of memory.
#include <vector>

#include "diagram/diagram.hpp"
#include "syntax/codes.hpp"

namespace napkin {

struct JaggedAxis {
    AxisId axis;
    Expr first;        ///< F[b], the read of an input; null: the values lie from 0 on
    Expr last;         ///< F[b + 1], or the length L[b]
    AxisId rows = -1;  ///< of packed rows: the axis of all of them
    SourceRange range = {};
};

/// The diagram in which each of these axes is written out. An axis of packed rows has the names of both in a row, and a
/// schedule's choices for q are for bq.
/// Errors: bad-lengths, where q stands without b, an argument or result has another order than b, q, or two such axes.
Diagram without_jagged_axes(Diagram diagram, const std::vector<JaggedAxis>& axes, Diagnostics& diagnostics);

}  // namespace napkin
