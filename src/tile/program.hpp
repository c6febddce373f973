#pragma once
// The tile program: the paper's pseudocode expansion (§5) of a derived diagram. Explicit variables with level,
// precision and lifetime; head, streamed loops, tail; every transfer between levels is a statement. It has no sizes:
// those of an axis, a group and a chunk are letters until sizes.hpp puts numbers beside it.
//
// Expressions in Compute are over variables: Read::array is an index into TileKernel::variables, its indices stay in
// absolute axis coordinates; a variable's element for index values i is at i - origin, the origin of each dimension
// being the lowest value that its index takes over the current tile. A tile is the box of diagram/box.hpp: what of it
// lies outside of the array is padding, which a load does not move and nothing reads where it counts.
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
    /// Where data decide what is loaded: the index of each of the array's dimensions, whose elements are those of
    /// variables that are alive at the load; the dims are then the box of these. Else empty.
    std::vector<Index> gathers;
    DType memory_type = DType::f32;  ///< type of the array in memory (loads widen from it, stores round to it)
    bool is_state = false;
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

/// for each chunk of `axis`, in ascending order, skipping chunks in which one of `support` is negative everywhere. What
/// one of `masks` is negative in does not contribute either: with numbers, only those are left that read arrays, by
/// ArrayId, and no count knows what they skip.
struct TileLoop {
    AxisId axis = -1;
    std::vector<Affine> support;
    std::vector<TileStatement> body = {};
    bool is_sub = false;  ///< a part of one statement, cut by TileSizes::sub; else of a stream
    std::vector<MaskForm> masks = {};
};

/// What a part of a group's stream has of a variable: expressions read it under an id of its own, which no variable
/// has.
constexpr VariableId in_part(VariableId variable) { return VariableId::of(-2 - variable.place()); }
constexpr bool is_in_part(VariableId id) { return id <= -2; }
constexpr VariableId variable_in_part(VariableId id) { return VariableId::of(-2 - id.place()); }

/// A state of all parts of a stream: ⊕ over the parts of what each gives, made of states that the part has and of those
/// that are merged before this one (Fold, derived.hpp).
struct StateMerge {
    VariableId state = -1;
    ReduceOp op = ReduceOp::sum;
    Expr given;
};

/// One launch: `body` runs for every tile of the grouped axes.
struct TileKernel {
    std::string name;
    std::vector<AxisId> group_axes;  ///< those that may be grouped, outermost first
    /// those of them that some intermediate does not carry: grouping them repeats its work
    std::vector<AxisId> recompute_axes;
    ByVariable<Variable> variables;
    std::vector<TileStatement> body;
    StreamParts parts = {};  ///< what of its streams a group runs
    /// Merges of all states of its stream, in the order in which they are merged; none where the stream of a group
    /// cannot be cut, for this reason.
    std::vector<StateMerge> merges = {};
    std::string why_no_merge = {};
};

/// The box of a read whose arrays are variables of the kernel; of one that is loaded, its array is the variable itself.
Box box_of(const Diagram& diagram, const TileKernel& kernel, const Read& r);

struct TileProgram {
    Diagram diagram;  ///< arrays and axes by id (Derived::diagram)
    std::vector<TileKernel> kernels;
};

}  // namespace napkin
