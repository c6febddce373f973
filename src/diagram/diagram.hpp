#pragma once
// A diagram: typed arrays over named axes and the equations that define them, in order. All calls are inlined, every reduction
// is an equation of its own, so an equation is one weave: its free axes are woven, the axes under the reduction consumed.
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
#include "support/dtype.hpp"
#include "support/source.hpp"

namespace napkin {

struct Axis {
    std::string name;
    /// From `sizes`: a number, or an expression in other axes' sizes (n - w + 1). Empty: stays symbolic.
    std::optional<Size> size;
    SourceRange range;
    friend bool operator==(const Axis&, const Axis&) = default;
};

enum class ArrayRole : std::uint8_t { input, temporary, output };

struct Array {
    std::string name;
    std::vector<AxisId> axes;  ///< row-major storage order, distinct
    DType type = DType::f32;
    ArrayRole role = ArrayRole::temporary;
    SourceRange range;
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

/// A part of what is said of an atom or a place: `vectors q 3 inner`, `over k`, `view`.
struct ScheduleClause {
    struct Name {
        std::string text;
        SourceRange range;
        friend bool operator==(const Name& a, const Name& b) { return a.text == b.text; }
    };
    std::string word;
    std::vector<Name> names;
    std::optional<std::int64_t> number;
    SourceRange range, operand;  ///< the operand: all after the word
    friend bool operator==(const ScheduleClause& a, const ScheduleClause& b) {
        return a.word == b.word && a.names == b.names && a.number == b.number;
    }
};

/// One line of a schedule, a degree of freedom fixed by hand: `group q=192`, `stream x=128`, `stream x`, `atom S vectors q 3, over k`.
struct ScheduleItem {
    std::string kind;  ///< "group", "stream", "subloop", "threads", "form", …: checked by the pass that owns it
    std::string axis;  ///< or the name of what is meant: of an atom's statement, of a place's variable
    std::optional<std::int64_t> value;
    std::string word = {};  ///< a non-numeric value, e.g. form=auxiliary
    SourceRange range = {};
    std::vector<ScheduleClause> clauses = {};
    std::string kernel = {};  ///< empty: of every kernel that has what is meant
    std::string reason = {};  ///< of an overhead in a file: its source, which stands behind it
    friend bool operator==(const ScheduleItem&, const ScheduleItem&) = default;
};
inline bool fixes_the_same(const ScheduleItem& a, const ScheduleItem& b) {
    return a.kind == b.kind && a.axis == b.axis && a.kernel == b.kernel;
}
/// What is said beside no kernel's name is said of all of them. A kernel's cluster lies along one axis.
inline bool fixes_all_of(const ScheduleItem& a, const ScheduleItem& b) {
    return a.kind == b.kind && (a.axis == b.axis || a.kind == "cluster") && (a.kernel.empty() || a.kernel == b.kernel);
}
/// A line `kernel NAME` below which nothing stands is an item of this kind: it names the kernel and fixes nothing.
inline constexpr std::string_view named_kernel_kind = "kernel";
/// The items of two places, of which the second one stands before the first: what it fixes of a kernel is not also as the first one has it.
std::vector<ScheduleItem> with_items_over(std::vector<ScheduleItem> items, const std::vector<ScheduleItem>& over);

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

/// Adds an axis of a known size under a name that no axis and no array has (x_part, x_part_2, …) and returns its id.
AxisId add_axis(Diagram& diagram, const std::string& wanted_name, std::int64_t size, SourceRange range);

/// Adds an array under a name made unique by a suffix (S, S_2, …) and returns its id.
ArrayId add_array(Diagram& diagram, const std::string& wanted_name, std::vector<AxisId> axes, DType type, ArrayRole role);

/// The read of an array at exactly its own axes.
Expr read_self(const Diagram& diagram, ArrayId id);

/// One equation in the language's syntax, without its line end: "S[q, x] = sum(k) Q[q, k] * K[x, k]".
std::string to_string(const Diagram& diagram, const Equation& equation);

}  // namespace napkin
