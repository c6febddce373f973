#pragma once
// The tile program: the paper's pseudocode expansion (§5) of a derived diagram. It has explicit variables with level,
// precision and lifetime, and a head, streamed loops and a tail. Every transfer between levels is a statement. The
// extents of axes and the sizes of groups and K blocks are letters until sizes.hpp puts numbers beside them.
//
// Expressions in Compute are over variables. Read::array is an index into TileKernel::variables, and its indices stay
// in absolute axis coordinates. A variable's element for index values i is at i - origin. The origin of a dimension is
// the lowest value that its index takes over the current tile. A tile is the box of diagram/box.hpp. Its part outside
// of the array is padding: a load does not move it, and nothing reads it where it counts.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/box.hpp"

namespace napkin {

struct Variable {
    std::string name;
    ArrayId array = -1;          ///< the array of Derived::diagram that it is a tile of
    std::vector<Index> dims;     ///< of the box; a plain axis for everything computed
    std::vector<AxisId> limits;  ///< of the box
    /// The index of each of the array's dimensions where data decide what is loaded (a gathered read); else empty. The
    /// elements in it are those of variables that are alive at the load. `dims` are then the box of these indices.
    std::vector<Index> gathers;
    DType memory_type = DType::f32;  ///< type of the array in memory (loads widen from it, stores round to it)
    bool is_state = false;
    bool is_zero_outside = false;  ///< a copy brings zeros for what lies outside of the array, and these are used
    friend bool operator==(const Variable&, const Variable&) = default;
};

struct Load {
    VariableId variable;  ///< ℓ0 → ℓ1, the tile of its array
};
struct Store {
    VariableId variable;  ///< ℓ1 → ℓ0
};
struct Init {
    VariableId variable;
    double value;
};
/// variable = [carry ⊕] [⊕ over reduce_axes] body, for every point of its tile.
struct Compute {
    VariableId variable;
    std::optional<ReduceOp> reduce;
    std::vector<AxisId> reduce_axes;
    Expr body;
    Expr carry;  ///< may be null
};
/// Ends the variable's lifetime: its memory is free from here on.
struct Free {
    VariableId variable;
};
struct TileLoop;
using TileStatement = std::variant<Load, Store, Init, Compute, Free, std::shared_ptr<const TileLoop>>;

/// Runs `body` for each K block of `axis`, in ascending order. K blocks in which one of `support` is negative
/// everywhere are skipped. Points at which one of `masks` is negative do not contribute either. With numbers, only
/// masks that read arrays, by ArrayId, are left, and no count knows what they skip.
struct TileLoop {
    AxisId axis = -1;
    std::vector<Affine> support;
    std::vector<TileStatement> body = {};
    bool is_sub = false;  ///< a loop over parts of one statement, of TileSizes::sub; else of a stream
    std::vector<MaskForm> masks = {};
};

/// The id under which expressions read what one part of a stream has of a variable. No variable has such an id.
constexpr VariableId in_part(VariableId variable) { return VariableId::of(-2 - variable.place()); }
constexpr bool is_in_part(VariableId id) { return id <= -2; }
constexpr VariableId variable_in_part(VariableId id) { return VariableId::of(-2 - id.place()); }

/// Merge of a state over all parts of a stream: ⊕ over the parts of `given`. That is made of states of the part and of
/// states that are merged before this one (Fold, derived.hpp).
struct StateMerge {
    VariableId state = -1;
    ReduceOp op = ReduceOp::sum;
    Expr given;
};

/// What the calculus proved of a running extremum R that exponentials refer to (FoldReference, derived.hpp). One loop
/// computes every part of it.
struct TileReference {
    VariableId state = -1;                   ///< R
    VariableId old = -1;                     ///< R′
    VariableId guarded = -1;                 ///< R, but finite
    VariableId correction = -1;              ///< e^(rate·(R′ − R))
    Expr rate = {};                          ///< of a maximum positive, of a minimum negative; null: it depends on data
    std::vector<VariableId> followers = {};  ///< states that the correction alone multiplies
};

/// One launch: `body` runs for every tile of the grouped axes.
struct TileKernel {
    std::string name;
    std::vector<AxisId> group_axes;  ///< those that may be grouped, outermost first
    /// group axes that some intermediate lacks: grouping them repeats its work
    std::vector<AxisId> recompute_axes;
    ByVariable<Variable> variables;
    std::vector<TileStatement> body;
    StreamParts parts = {};  ///< the part of its streams that a group runs
    /// Merges of all states of its stream, in the order in which they run. None where the stream cannot be split, for
    /// the reason of why_no_merge.
    std::vector<StateMerge> merges = {};
    std::string why_no_merge = {};
    std::vector<TileReference> references = {};
};

/// The box of a read whose arrays are variables of the kernel, each with the axes of its array. For a gathered
/// variable, its `gathers` are read from the variable itself.
Box box_of(const Diagram& diagram, const TileKernel& kernel, const Read& r);

struct TileProgram {
    Diagram diagram;  ///< arrays and axes by id (Derived::diagram)
    std::vector<TileKernel> kernels;
};

}  // namespace napkin
