#pragma once
// The derived form of a diagram: kernels, each a sequence of straight-line blocks and streamed loops over one tile of
// the grouped axes. Everything later is made from it; nothing after the calculus decides again what is fused. How a
// kernel is executed, what is loaded when and what lives how long, its tile program says (tile/expand.hpp).
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algebra/size.hpp"
#include "diagram/diagram.hpp"
#include "diagram/guards.hpp"

namespace napkin {

/// target = body, or ⊕ over reduce_axes of body; with a carry: target = carry ⊕ (⊕ over reduce_axes of body), where the
/// carry reads the target's own value before this statement.
struct Statement {
    ArrayId target = -1;
    std::optional<ReduceOp> reduce = {};
    std::vector<AxisId> reduce_axes = {};
    Expr body;
    Expr carry = {};  ///< null: none
    SourceRange range;
};

struct Block {
    std::vector<Statement> statements;
};

/// A stream partition: the body runs for every chunk of the axis, in ascending order.
struct Loop {
    AxisId axis = -1;
    /// Affine forms that are ≥ 0 at every point that contributes. A chunk in which one of them is negative everywhere
    /// (over the group's tile, the chunk and the full extents of all other axes) is skipped.
    std::vector<Affine> support;
    std::vector<std::pair<ArrayId, double>> init;  ///< states and their initial values
    std::vector<Statement> body;
    /// The same where sizes, or whole numbers among the data, say which chunks these are. Those that are skipped may be
    /// fewer.
    std::vector<MaskForm> masks = {};
};

using Stage = std::variant<Block, Loop>;

/// One running reduction of a fold. Its lift of a point x is the body; step: state = carry(old, new) ⊕ ⊕_{axes} body(x;
/// new states).
struct FoldState {
    ArrayId state = -1;
    ReduceOp op = ReduceOp::sum;
    double init = 0;
    std::vector<AxisId> reduce_axes = {};  ///< contains the fold's axis
    Expr body = {};                        ///< in inputs, chunk arrays and the current states
    Expr carry = {};   ///< reads `old` ids for values before the step and `state` ids for values after it
    ArrayId old = -1;  ///< the id that carries use for this state's value before the step
};

/// A running extremum R of a fold that exponentials b^(s·(A − R)) refer to. What was accumulated under it is multiplied
/// by the correction b^(s·(R′ − R)) as it moves. So results depend on R only through the range of numbers (Reference,
/// factor.hpp).
struct FoldReference {
    ArrayId state = -1;                   ///< R
    ArrayId old = -1;                     ///< R′, its value before the step
    ArrayId guarded = -1;                 ///< R, but finite
    ArrayId correction = -1;              ///< b^(s·(R′ − R)), 0 while nothing has arrived
    Expr rate;                            ///< s·ln b: of a maximum positive, of a minimum negative
    std::vector<ArrayId> followers = {};  ///< states that the correction alone multiplies, where they are not infinite
};

/// (state, init, lift, merge, finish) over an axis: merge(a, b) computes each state in order as carry(a) ⊕ carry(b),
/// the old ids standing for a's and then b's values.
struct Fold {
    AxisId axis = -1;
    /// In dependency order. One that its loop does not initialise is a number that the loop has without carrying it, as
    /// the number of points that have arrived is where the chunk ends.
    std::vector<FoldState> states;
    std::vector<std::pair<ArrayId, Expr>> finish;  ///< reduction results, in order, from states and earlier results
    std::vector<FoldReference> references = {};    ///< those of which the loop computes every part
};

/// Says of which stream a kernel runs one part in each group. The part is the chunks [p·n/P, (p + 1)·n/P) of the axis'
/// n. There p is the group's value of `part`, and P the size of that axis, which is grouped one by one (parts.hpp).
struct StreamParts {
    AxisId axis = -1, part = -1;  ///< -1: every group runs all of its streams
    [[nodiscard]] bool any() const { return part >= 0; }
    /// Whether a loop over the axis runs over one part of it.
    [[nodiscard]] bool cut(AxisId streamed) const { return any() && axis == streamed; }
    friend bool operator==(const StreamParts&, const StreamParts&) = default;
};

struct Kernel {
    std::string name;
    /// the targets of Derived::diagram's equations that it stands for, in order of definition
    std::vector<ArrayId> equations;
    std::vector<AxisId> group_axes;  ///< axes that may be grouped, outermost output axis first
    /// those of them that some intermediate does not carry: grouping them repeats its work
    std::vector<AxisId> recompute_axes;
    std::vector<Stage> stages;
    std::vector<ArrayId> inputs;   ///< arrays in memory that it reads
    std::vector<ArrayId> outputs;  ///< arrays in memory that it writes
    std::vector<Fold> folds;
    std::vector<ArrayId> zero_outside = {};  ///< inputs that products read outside of the array, too, and find 0 there
    StreamParts parts = {};                  ///< in the place of a kernel whose stream is cut into parts
};

inline std::vector<Statement>& statements_of(Stage& stage) {
    auto* loop = std::get_if<Loop>(&stage);
    return loop ? loop->body : std::get<Block>(stage).statements;
}
inline const std::vector<Statement>& statements_of(const Stage& stage) {
    const auto* loop = std::get_if<Loop>(&stage);
    return loop ? loop->body : std::get<Block>(stage).statements;
}
/// Calls f on all that a kernel computes, in order.
template <class F>
void for_each_statement(const Kernel& kernel, F&& f) {
    for (const Stage& stage : kernel.stages)
        for (const Statement& s : statements_of(stage)) f(s);
}

/// A change of the equations: arrays appended, arrays given other axes over the same dimensions, equations that give
/// place to others.
struct Edit {
    struct Replacement {
        Equation before;
        std::vector<Equation> after;  ///< in its place, in order; the last defines the same array
    };
    std::vector<Array> arrays;
    std::vector<std::pair<ArrayId, std::vector<AxisId>>> axes;
    std::vector<Replacement> equations;
};
/// The equations of a kernel, each a kernel of its own until now, become one.
struct Fuse {
    std::size_t kernel;  ///< index into Derived::kernels
};
/// The kernel runs over the axis in chunks.
struct StreamPartition {
    std::size_t kernel;
    AxisId axis;
};
/// The kernel runs for one tile of the axis after the other.
struct GroupPartition {
    std::size_t kernel;
    AxisId axis;
};

/// A named rewrite: what was done where, and why it may be done. Its two sides are forms that can be evaluated:
/// replay.hpp.
struct DerivationStep {
    std::string rule;            ///< "inline", "factor", "stream partition", "group partition", "fuse", …
    std::string inverse;         ///< name of the inverse rewrite
    std::string side_condition;  ///< and why it holds here
    std::string effect;          ///< one line: what changed
    SourceRange range;
    /// equal over the reals; edits stand before the others
    std::variant<Edit, Fuse, StreamPartition, GroupPartition> change;
};

/// Why something could not be streamed or fused: the rule that fails and the term at which it fails.
struct Refusal {
    std::string what;    ///< "stream x through O"
    std::string reason;  ///< the rule, and the term as printed
    SourceRange range;
};

/// Equations that become one kernel, and the axis that it streams.
struct Gathering {
    std::vector<ArrayId> targets;  ///< in order of definition, by the ids of the normal form
    std::optional<AxisId> stream;  ///< none: what is reduced lies whole at the core
    friend bool operator==(const Gathering&, const Gathering&) = default;
};

/// One way to make kernels of some equations, with what the calculus can say of it without a machine.
struct Alternative {
    std::vector<Gathering> kernels;  ///< in order of execution
    Size flops;                      ///< of all its statements; with the axes' names as symbols
    Size transfers;                  ///< every array that a kernel reads or writes, once: no schedule moves less
    std::string condition;           ///< when it is the best of its region
    friend bool operator==(const Alternative&, const Alternative&) = default;
};

/// Equations that are gathered independently of all others.
struct Region {
    std::vector<Alternative> alternatives;  ///< by FLOPs, then by transfers; one that a plan adds is the last
    std::size_t chosen = 0;
    friend bool operator==(const Region&, const Region&) = default;
};

enum class Form {
    unscaled,   ///< what does not depend on the streamed axis moves to the tail (FlashAttention-2)
    auxiliary,  ///< results are kept finished after every step and rescaled (paper Table 4, auxiliary SoftMax₀)
};

/// What is rewritten beside what is always. Each is a choice, which a plan makes by predicted time.
struct Rewriting {
    bool flat_rows = false;  ///< axes along which products have rows become one (diagram/flat_axes.hpp)
    bool again = false;      ///< what is consumed along several axes is computed for each (compute_again)
    bool padded = false;     ///< factors with conditions are read from arrays with zeros around (pad_reads)
    bool grouped = false;    ///< rows that choose the same matrix stand beside each other (group_rows)
    bool nested = false;     ///< products of many are summed two by two (order_contractions)
    bool packed = false;     ///< terms that choose the same place of a sum stand beside each other (pack_terms)
    bool unrolled = false;   ///< values of each window stand beside each other (unroll_windows)
    bool windows = false;    ///< axes along which windows move become one (flatten_window_rows)
    bool phased = false;     ///< places have the terms of their phase alone (split_phases)
    friend bool operator==(const Rewriting&, const Rewriting&) = default;
};

struct Derived {
    /// the arrays and axes that all ids refer to (states and chunk arrays added); its equations are the rewritten
    /// definitions after the last step
    Diagram diagram;
    Diagram source;  ///< as it came in
    Form form = Form::unscaled;
    Rewriting rewriting;
    bool keeps_streams = false;   ///< overrides say which axes are streamed
    bool keeps_kernels = false;   ///< options say which equations are one kernel
    std::vector<Region> regions;  ///< what the kernels were chosen among, in execution order
    std::vector<Kernel> kernels;  ///< in execution order
    std::vector<DerivationStep> steps;
    std::vector<Refusal> refusals;
    std::vector<DerivationStep> normal_steps;  ///< the first of `steps`: what is the same whatever kernels are chosen
    std::vector<Refusal> normal_refusals;      ///< the first of `refusals`

    /// The rewritten diagram alone: without the arrays at the end that only kernels know and no equation defines.
    [[nodiscard]] Diagram diagram_without_kernel_arrays() const;
};

}  // namespace napkin
