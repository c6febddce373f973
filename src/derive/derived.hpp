#pragma once
// The derived form of a diagram: kernels, each a sequence of straight-line blocks and streamed loops over one tile of the
// grouped axes. This is what cost, plan and tile read; nothing after the calculus decides again what is fused.
//
// How a kernel is executed (cost counts it, tile expands it, by the same rules):
//  - The grouped axes (those to which the plan gives a group size) are cut into tiles; every tile of their product is one
//    group, and runs all stages in order. A grouped axis runs over the group's tile, a streamed axis inside its loop over
//    the chunk, every other axis over its full extent. The last tile and chunk may be ragged.
//  - Every (memory array, index pattern) that is read is one variable at the core. Its tile is the box that the pattern's
//    indices span over the tile. If a pattern contains the axis of the loop in which it is read, it is loaded in each
//    iteration, before the first statement that reads it; otherwise it is loaded once a group, before the first stage
//    statement (or whole loop) that reads it, however many stages read it.
//  - Every statement's target is one variable at the core with the array's axes as dimensions. A kernel output is stored after the
//    statement that defines it (block), in every iteration (loop body, target carries the loop's axis), or after the loop (states).
//  - Lifetimes: a variable lives from the statement that loads, initialises or defines it to the last that reads or stores it, both
//    included; one that a loop reads but does not define in its body, and every state, lives through the whole loop.
//  - M of the kernel is the largest sum of sizes of the variables alive at one statement; H the sum of all tiles loaded and stored.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// target = body, or ⊕ over reduce_axes of body; with a carry: target = carry ⊕ (⊕ over reduce_axes of body), where the carry
/// reads the target's own value before this statement.
struct Statement {
    ArrayId target = -1;
    std::optional<ReduceOp> reduce;
    std::vector<AxisId> reduce_axes;
    Expr body;
    Expr carry;  ///< null: none
    SourceRange range;
};

struct Block {
    std::vector<Statement> statements;
};

/// A stream partition: the body runs for every chunk of the axis, in ascending order.
struct Loop {
    AxisId axis = -1;
    /// Affine forms that are ≥ 0 at every point that contributes. A chunk in which one of them is negative everywhere (over the
    /// group's tile, the chunk and the full extents of all other axes) is skipped.
    std::vector<Affine> support;
    std::vector<std::pair<ArrayId, double>> init;  ///< states and their initial values
    std::vector<Statement> body;
};

using Stage = std::variant<Block, Loop>;

/// One running reduction of a fold. step: state = carry(old, new) ⊕ ⊕_{axes} body(x; new states).
struct FoldState {
    ArrayId state = -1;
    ReduceOp op = ReduceOp::sum;
    double init = 0;
    std::vector<AxisId> reduce_axes;  ///< contains the fold's axis
    Expr body;                        ///< in inputs, chunk arrays and the current states
    Expr carry;        ///< reads `old` ids for values before the step and `state` ids for values after it
    ArrayId old = -1;  ///< the id that carries use for this state's value before the step
};

/// (state, init, step, finish, merge) over an axis: merge(a, b) computes each state in order as carry(a) ⊕ carry(b), the old ids
/// standing for a's and then b's values.
struct Fold {
    AxisId axis = -1;
    std::vector<FoldState> states;                 ///< in dependency order
    std::vector<std::pair<ArrayId, Expr>> finish;  ///< reduction results, in order, from states and earlier results
};

struct Kernel {
    std::string name;
    std::vector<AxisId> group_axes;  ///< axes that may be grouped, outermost output axis first
    std::vector<AxisId> recompute_axes;  ///< those of them that some intermediate does not carry: grouping them repeats its work
    std::vector<Stage> stages;
    std::vector<ArrayId> inputs;   ///< arrays in memory that it reads
    std::vector<ArrayId> outputs;  ///< arrays in memory that it writes
    std::vector<Fold> folds;
};

/// A named rewrite: what was done where, why it may be done, and the diagram on both sides (the inverse is to go back).
struct DerivationStep {
    std::string rule;            ///< "inline", "factor", "stream partition", "group partition", "fuse", …
    std::string inverse;         ///< name of the inverse rewrite
    std::string side_condition;  ///< and why it holds here
    std::string effect;          ///< one line: what changed
    SourceRange range;
    Diagram before, after;  ///< equal over the reals
};

/// Why something could not be streamed or fused: the rule that fails and the term at which it fails.
struct Refusal {
    std::string what;    ///< "stream x through O"
    std::string reason;  ///< the rule, and the term as printed
    SourceRange range;
};

struct Derived {
    Diagram diagram;  ///< the arrays and axes that all ids refer to (states and chunk arrays added); its equations are the
                      ///< rewritten definitions after the last step
    Diagram source;               ///< as it came in
    std::vector<Kernel> kernels;  ///< in execution order
    std::vector<DerivationStep> steps;
    std::vector<Refusal> refusals;

    /// The rewritten diagram alone: without the arrays at the end that only kernels know and no equation defines.
    [[nodiscard]] Diagram diagram_without_kernel_arrays() const;
};

}  // namespace napkin
