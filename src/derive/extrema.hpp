#pragma once
// max and min over a stream: whatever is monotone in the part that streams passes out of the reduction.
#include "derive/split.hpp"

namespace napkin {

/// An extremum of the stream's own part, and what is done with it at the end.
struct Peeled {
    ReduceOp op = ReduceOp::max;
    Expr core;  ///< in the stream alone, or under `selections`
    std::vector<Selection> selections;
    std::function<Expr(const Expr&)> finish;  ///< null: the extremum itself
    bool affine = true;                       ///< finish keeps infinities: it adds and scales
};

/// nullopt and `failure` where the body is not monotone in its part of the stream.
std::optional<Peeled> peel(ReduceOp op, const Expr& body, const Stream& stream, Splitter& splitter);

}  // namespace napkin
