// The text as it was written: definitions, their equations and expressions, with the place of everything. Names mean
// nothing yet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algebra/expr.hpp"
#include "diagram/diagram.hpp"
#include "support/dtype.hpp"
#include "support/source.hpp"

namespace napkin {

/// A name and where it stands.
struct AstWord {
    std::string text;
    SourceRange range;
};

struct AstNode;

struct AstNumber {
    double value = 0;
    bool integer = false;    ///< written without point and exponent
    std::int64_t whole = 0;  ///< the exact value of an integer
};
struct AstString {
    std::string text;
};
/// An array without indices, or an axis.
struct AstName {
    std::string name;
};
/// X[i, j + 1, ..]
struct AstIndexed {
    AstWord name;
    std::vector<AstNode> indices;
};
/// The two points among indices.
struct AstEllipsis {};
/// What the name of a gradient begins with, which is a callee's as others are: "grad(f, X)".
inline constexpr const char* gradient_prefix = "grad(";

/// exp(x), where(a, b, c), f16(x), size(k), a diagram on its arguments, einsum("…", …).
struct AstCall {
    AstWord name;
    std::vector<AstNode> arguments;
};
/// sum(k) x, or a diagram applied over named axes: name(axes) x, name(axes)(x, y).
struct AstPrefix {
    AstWord name;
    std::vector<AstWord> axes;
    std::vector<AstNode> operands;
    SourceRange head;       ///< from the name to the closing parenthesis of the axes
    bool only_axes = true;  ///< false: something else stands among the axes, and is left out of them
};
struct AstUnary {
    UnaryOp op = UnaryOp::neg;     ///< neg or logical_not
    std::vector<AstNode> operand;  ///< one
};
struct AstBinary {
    BinaryOp op = BinaryOp::add;
    std::vector<AstNode> operands;  ///< two
};

struct AstNode {
    using Variant = std::variant<AstNumber, AstString, AstName, AstIndexed, AstEllipsis, AstCall, AstPrefix, AstUnary, AstBinary>;
    Variant v;
    SourceRange range;
    int depth = 1;
    bool parentheses = false;  ///< it stood between parentheses of its own
};

/// q = x = 4096, q = x = any(4096), x = L[b], or q = F[b] .. F[b + 1]
struct AstSize {
    std::vector<AstWord> names;
    bool is_any = false;
    std::optional<AstNode> value;  ///< none: the names are declared as axes without a size
    std::optional<AstNode> last;   ///< of F[b] .. F[b + 1], whose first is the value
    /// The lengths are data. A number for the array's dimension may stand beside them.
    [[nodiscard]] bool is_data() const { return last || (value && std::holds_alternative<AstIndexed>(value->v)); }
};

/// X[q, k]: f16 = 0, among arguments, results and targets.
struct AstArray {
    AstWord name;
    bool indexed = false;  ///< brackets were written
    std::vector<AstWord> axes;
    std::vector<AstSize> sizes = {};  ///< of an argument F[b + 1], whose axis is called b_1
    std::optional<DType> type;
    SourceRange type_range;
    std::optional<AstWord> rows;  ///< X[b]: i32 offsets rows: the axis that it counts
    bool ascend = false;          ///< they are offsets, else lengths
    std::optional<AstNode> default_value;
    SourceRange range;
    bool broken = false;  ///< its indices could not be read
};

struct AstEquation {
    std::vector<AstArray> targets;
    std::optional<AstNode> body;  ///< none: it could not be read
    SourceRange range;
};

struct AstDefinition {
    AstWord name;
    std::vector<AstArray> arguments, results;
    std::vector<AstEquation> equations;
    std::vector<AstSize> sizes;
    std::vector<ScheduleItem> schedule;
    SourceRange range;    ///< the line of its name
    bool broken = false;  ///< its signature could not be read
};

/// Everything that one text defines, in order.
struct Module {
    std::shared_ptr<const Source> source;
    std::vector<AstDefinition> definitions;
    std::vector<AstSize> sizes;          ///< of the main diagram
    std::vector<ScheduleItem> schedule;  ///< of the main diagram
};

}  // namespace napkin
