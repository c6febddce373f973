#pragma once
// A diagram: typed arrays over named axes and the equations that define them, in order. All calls are inlined, every
// reduction is an equation of its own, so an equation is one weave: its free axes are woven, the axes under the
// reduction consumed.
//
// Invariants (verify() in verifier.hpp states each as an error):
//  - every array that is not an input is the target of exactly one equation, which stands after the equations it reads;
//  - the target is indexed by exactly its own axes, each once; reduced axes are none of them;
//  - every axis in a body is a target axis or a reduced axis; a Read has one index for each axis of its array;
//  - axis and array names are unique identifiers and differ from each other.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"
#include "algebra/size.hpp"
#include "diagram/schedule_item.hpp"
#include "support/dtype.hpp"
#include "support/source.hpp"

namespace napkin {

struct Axis {
    std::string name;
    /// From `sizes`: a number, or an expression in other axes' sizes (n - w + 1). Empty: stays symbolic.
    std::optional<Size> size;
    SourceRange range;
    /// Kernels are for any size of it, as far as tiles cut it: it is an argument of their launches.
    bool is_any = false;
    /// It stands for several dimensions of an array at a time, as t in X[t // n, t % n + r, c]. A tile of such a read
    /// has a row for each of its values (diagram/box.hpp).
    bool walks = false;
    /// Its size is the whole part of what the formula gives (diagram/phases.hpp).
    bool rounds_down = false;
    /// Its size is what the formula gives, rounded up to a multiple of this (diagram/unrolled_windows.hpp).
    std::int64_t multiple = 1;
    /// The formula of its size, which is not rounded up. None: there is none, or it is.
    [[nodiscard]] std::optional<Size> exact_size() const { return multiple == 1 ? size : std::nullopt; }
    friend bool operator==(const Axis&, const Axis&) = default;
};

enum class ArrayRole : std::uint8_t { input, temporary, output };

/// What an integer array counts: rows of an axis, 0 … its size.
struct RowNumbers {
    AxisId axis;
    bool ascend = false;  ///< offsets, of which none is less than the one before it; else lengths
    friend bool operator==(const RowNumbers&, const RowNumbers&) = default;
};

struct Array {
    std::string name;
    std::vector<AxisId> axes;  ///< row-major storage order, distinct
    DType type = DType::f32;
    ArrayRole role = ArrayRole::temporary;
    SourceRange range;
    std::optional<RowNumbers> rows = {};  ///< of an input: what its values are, and are checked to be
    friend bool operator==(const Array&, const Array&) = default;
};

struct Equation {
    ArrayId target = -1;
    std::optional<ReduceOp> reduce;   ///< none: a map
    std::vector<AxisId> reduce_axes;  ///< non-empty exactly when reduce is set; ascending
    Expr body;
    SourceRange range;                      ///< the equation in the user's text
    std::vector<std::string> inlined = {};  ///< the diagrams it was inlined from, outermost first
    friend bool operator==(const Equation& a, const Equation& b) {
        return a.target == b.target && a.reduce == b.reduce && a.reduce_axes == b.reduce_axes && equal(a.body, b.body);
    }
};

struct Diagram {
    std::string name;
    ByAxis<Axis> axes;
    ByArray<Array> arrays;
    std::vector<ArrayId> inputs, outputs;  ///< in signature order
    std::vector<Equation> equations;
    std::vector<ScheduleItem> schedule;
    SourceRange range;
    friend bool operator==(const Diagram&, const Diagram&) = default;

    [[nodiscard]] const Array& array(ArrayId id) const { return arrays[id]; }
    [[nodiscard]] const Axis& axis(AxisId id) const { return axes[id]; }
    [[nodiscard]] std::optional<AxisId> find_axis(std::string_view wanted_name) const;
    [[nodiscard]] std::optional<ArrayId> find_array(std::string_view wanted_name) const;
    /// The equation that defines the array, or null for an input.
    [[nodiscard]] const Equation* definition(ArrayId id) const;
    [[nodiscard]] ExprNames names() const;
};

/// The diagram, each of whose axes has any size.
Diagram with_any_sizes(Diagram diagram);

/// Adds an axis of a known size under a name that no axis and no array has (x_part, x_part_2, …) and returns its id.
AxisId add_axis(Diagram& diagram, const std::string& wanted_name, std::int64_t size, AxisId like);

/// Adds an array under a name made unique by a suffix (S, S_2, …) and returns its id.
ArrayId add_array(Diagram& diagram, const std::string& wanted_name, std::vector<AxisId> axes, DType type, ArrayRole role);

/// The read of an array at exactly its own axes.
Expr read_self(const Diagram& diagram, ArrayId id);

/// One equation in the language's syntax, without its line end: "S[q, x] = sum(k) Q[q, k] * K[x, k]".
std::string to_string(const Diagram& diagram, const Equation& equation);

}  // namespace napkin
