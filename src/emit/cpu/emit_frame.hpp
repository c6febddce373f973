#pragma once
// What the emitter decides about a kernel before it writes a line: how every axis runs in every scope, how every compute statement is
// nested, where every variable lives. Filled by analyse(), read by the writers.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "emit/cpu/emit.hpp"
#include "emit/cpu/emit_text.hpp"

namespace napkin::cpu {

/// How an axis runs in one scope: from 0 or from <axis>0, over `tile` values or, when ragged, over n<axis> ≤ tile values. Buffers and
/// blocked loops reach to `padded`.
struct Span {
    std::int64_t tile = 1, padded = 1;
    bool begins = false, ragged = false;
};
using Scope = std::vector<Span>;  ///< by AxisId

/// How one compute statement becomes loops. Order: vector axis (unless it is reduced), outer, row axis, reduce, reduced vector axis; of a
/// map along rows of memory, the vector axis comes last.
struct Nest {
    AxisId vector_axis = -1;      ///< -1: scalar code
    bool vector_reduces = false;  ///< lanes are partial reductions, combined at the end
    bool vector_last = false;  ///< a map that goes along the rows of its operands: memory is read in the order in which it lies
    int block_vectors = 1;
    AxisId row_axis = -1;
    int block_rows = 1;
    bool is_whole = false;  ///< it computes integers that real numbers may not hold: scalar code
    std::vector<AxisId> outer, reduce;
};

struct Step {
    const TileStatement* statement = nullptr;  ///< Load, Store, Init or Compute
    int scope = 0;
    Nest nest;  ///< of a Compute
    /// A reduction of what this statement computes, done in the same loops while the values are in registers; -1: none.
    int follower = -1;
    bool follows = false;
    int position = -1;  ///< in order of execution; a follower has that of its leader
};

/// Compute statements that carry the kernel's vector axis, run one after the other for each panel of it.
struct Panels {
    std::vector<int> steps;
};
struct LoopNode;
using Node = std::variant<int, Panels, std::shared_ptr<LoopNode>>;  ///< int: one step
struct LoopNode {
    const TileLoop* loop = nullptr;
    int scope = 0;
    std::vector<Node> body;
};

/// The buffer of a variable.
struct Layout {
    int scope = -1;      ///< in which it is defined: its tile and origin
    int innermost = -1;  ///< dimension with stride 1; -1 for a scalar
    std::vector<std::int64_t> sizes, strides;
    std::int64_t count = 1;    ///< values
    std::int64_t offset = 0;   ///< in the arena, in values
    bool panel_local = false;  ///< lives within one panel and holds one panel
    /// Read where it lies in memory, with the memory's strides. Padding elements are then other elements of the array; the tiles of which
    /// they would lie past its end are copied to a buffer with the same strides.
    bool is_view = false, may_overrun = false;
    std::int64_t reach = 0;     ///< values from the first to past the last that a padded tile reads
    int first = -1, last = -1;  ///< lifetime in positions of execution
};

/// Position of an element in a buffer: Σ local·(index in the tile) + Σ begin·(start of the tile) + constant, and of the dimensions whose
/// indices are not affine Σ stride·(index - first).
struct Address {
    struct Other {
        std::int64_t stride;
        Index index;
        std::string first;  ///< text of the value at which the dimension begins
    };
    std::map<AxisId, std::int64_t> local, begin;
    std::int64_t constant = 0;
    std::vector<Other> others;
};

struct AxisNames {
    std::string local, begin, count, block;
};

struct Frame {
    const TileProgram* program = nullptr;
    const TileKernel* kernel = nullptr;
    const KernelPlan* plan = nullptr;
    EmitOptions options;

    bool is_double = false;
    int lanes = 16;
    AxisId vector_axis = -1;
    int panel_vectors = 1;
    std::vector<Scope> scopes;                   ///< 0: the group; then one for each loop
    std::vector<std::set<std::int64_t>> blocks;  ///< by AxisId: the block sizes to which nests pad it
    std::vector<Step> steps;
    std::vector<Node> body;
    std::vector<Layout> layouts;  ///< by VariableId
    std::vector<bool> whole;      ///< by VariableId: the buffer holds 64-bit integers, not real numbers
    std::vector<ArrayId> inputs, outputs;
    std::vector<bool> packed;  ///< inputs that must have row-major strides, because a view reads them
    std::int64_t arena_values = 0;

    Names names;
    std::vector<AxisNames> axes;         ///< by AxisId
    std::vector<std::string> variables;  ///< buffers' names, by VariableId
    std::vector<std::string> copies;  ///< of views, by VariableId: where tiles are copied to that may not be read in place
    std::map<ArrayId, std::string> memory, strides;  ///< pointers to arrays and to their strides

    [[nodiscard]] const Variable& variable(VariableId id) const {
        return kernel->variables[static_cast<std::size_t>(id)];
    }
    [[nodiscard]] const Layout& layout(VariableId id) const { return layouts[static_cast<std::size_t>(id)]; }
    [[nodiscard]] const Scope& scope(int id) const { return scopes[static_cast<std::size_t>(id)]; }
    [[nodiscard]] const AxisNames& axis(AxisId id) const { return axes[static_cast<std::size_t>(id)]; }
    [[nodiscard]] const std::string& name(VariableId id) const { return variables[static_cast<std::size_t>(id)]; }
    [[nodiscard]] std::int64_t extent(AxisId id) const { return program->extents[static_cast<std::size_t>(id)]; }
    [[nodiscard]] bool is_whole(VariableId id) const { return whole[static_cast<std::size_t>(id)]; }
    /// C++ type of the numbers in the variable's buffer.
    [[nodiscard]] const char* cell_type(VariableId id) const { return is_whole(id) ? "int64_t" : "real"; }
    [[nodiscard]] std::int64_t panel() const { return static_cast<std::int64_t>(lanes) * panel_vectors; }
    [[nodiscard]] Address address(VariableId id, const std::vector<Index>& indices, int at_scope) const;
    /// Number of values over which the axis runs, as text.
    [[nodiscard]] std::string count(AxisId id, int at_scope) const;
};

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
inline const Span& span_of(const Scope& scope, AxisId axis) { return scope[static_cast<std::size_t>(axis)]; }
/// The axes of a variable that a compute statement defines, in the order of its dimensions.
std::vector<AxisId> target_axes(const Variable& variable);
bool carries(const Variable& variable, AxisId axis);
/// Plain reads of the statement's body and carry.
std::vector<const Read*> reads_of(const Compute& compute);

/// Terms that a sum of `total` terms adds up before it adds them to what it has: rounding errors then grow with the lengths of the
/// blocks and of the sum of blocks, and not with their product; a sixth keeps them to those of a sum in eight parts, which is what
/// vectorised code gives. (Vectors whose lanes are partial sums need no blocks.)
constexpr std::int64_t sum_block(std::int64_t total) { return std::max<std::int64_t>(16, total / 6); }
/// Terms of the statement's reduction over all chunks, at most 2^40.
std::int64_t total_terms(const Frame& frame, const Compute& compute);
/// Whether so many terms at a time are worth cutting.
constexpr bool is_long_sum(std::int64_t terms, std::int64_t total) { return 2 * terms >= 3 * sum_block(total); }

/// Values of the axis that one pass of its loop in the nest covers.
std::int64_t block_size(const Frame& frame, const Nest& nest, AxisId axis);

Frame analyse(const TileProgram& program, const TileKernel& kernel, const KernelPlan& plan, const EmitOptions& options);

// The parts of analyse(), in order.
void choose_layout_orders(Frame& frame);  ///< Layout::innermost
void choose_nests(Frame& frame);          ///< Step::nest, panel_vectors, Span::padded
void form_panels(Frame& frame);           ///< merges neighbouring compute steps, Layout::panel_local
void fuse_reductions(Frame& frame);       ///< Step::follower
void choose_views(Frame& frame);          ///< Layout::is_view
void place_variables(Frame& frame);       ///< sizes, strides, lifetimes, offsets

}  // namespace napkin::cpu
