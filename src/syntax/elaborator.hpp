// The inside of elaborate(): one definition's scope, shared by the files that lower expressions, calls and strings.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "syntax/builtins.hpp"
#include "syntax/elaborate.hpp"

namespace napkin {

/// One node, and so small enough to stand wherever a parameter is read.
inline bool is_simple(const Expr& e) { return !as<Unary>(e) && !as<Binary>(e) && !as<Select>(e) && !as<Cast>(e); }

/// What stands around an expression.
struct Frame {
    std::vector<AxisId> bound;  ///< the target's axes, then those of the enclosing reductions and calls
    std::string base;           ///< the name that fresh temporaries begin with
    SourceRange equation;
    Expr condition{};  ///< holds wherever the expression is taken; null: it is taken everywhere

    /// Inside of what binds these axes. Where they were bound before, they are bound anew, and the condition says
    /// nothing of them.
    [[nodiscard]] Frame inside(const std::vector<AxisId>& axes) const;
    /// In a branch of a choice.
    [[nodiscard]] Frame where(const Expr& taken) const;
};

/// The right-hand side of an equation before it has a target.
struct Body {
    std::optional<ReduceOp> reduce;
    std::vector<AxisId> reduce_axes;
    Expr expr;
};

/// An array as an operand of a call or an einsum, such as X[b, h, ..]. It is read at its written indices and, on its
/// open dimensions, at axes that are chosen later.
struct ArrayOperand {
    ArrayId array = -1;
    std::vector<std::optional<Index>> indices;  ///< by dimension; none: open
    std::vector<AstWord> names;                 ///< by dimension: a plain axis that was written, else empty
    std::vector<std::size_t> open;              ///< the callee's dimensions, in order
    SourceRange range;
};

/// The callee with `count` axes in place of one; nullopt where it does more with that axis than run over all of it.
std::optional<Template> spread(const Template& t, AxisId axis, std::size_t count);

class Elaborator {
public:
    Elaborator(const AstDefinition& definition, Library& library);
    Template run();

private:
    // elaborate.cpp: the definition and its equations
    void signature();
    void collect_names();
    void equation(const AstEquation& e);
    void define(const AstEquation& e, const Frame& frame, ArrayId target, const Body& body);
    bool call_equation(const AstEquation& e, const Frame& frame, const std::vector<ArrayId>& targets);
    ArrayId declare_target(const AstArray& target, bool infer_axes);
    std::vector<AxisId> target_axes(const AstArray& target);
    void check_outputs();
    void check_schedule();
    void finish();

    struct Parameter {
        Expr expr;                ///< what a read of the parameter at its own axes is
        std::vector<AxisId> own;  ///< the axes in `expr` that stand for the parameter's dimensions
    };
    struct Binding {
        const Template* callee = nullptr;
        std::shared_ptr<const Template> spread;  ///< the callee, where it is one made for this call
        AstWord name;
        ByAxis<AxisId> axes;  ///< of the callee; -1: not chosen yet
        std::vector<Parameter> parameters;
        std::set<AxisId> woven;
        SourceRange range;
        std::size_t errors_before = 0;
    };

    /// The indices behind an operand's name, of an array with `total` axes for a callee of `rank`.
    struct WrittenIndices {
        std::size_t count = 0;              ///< without '..'
        std::optional<std::size_t> points;  ///< where '..' stands
        [[nodiscard]] std::size_t open(std::size_t total, std::size_t rank) const {
            return points ? total - std::min(count, total) : rank;
        }
        [[nodiscard]] bool fit(std::size_t total, std::size_t rank) const {
            return points ? count <= total && open(total, rank) == rank : count == total && total >= rank;
        }
    };

    // lower.cpp: expressions
    Expr lower(const AstNode& node, const Frame& frame);
    Expr lower_node(const AstNumber& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstString& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstName& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstIndexed& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstEllipsis& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstCall& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstPrefix& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstUnary& n, const AstNode& node, const Frame& frame);
    Expr lower_node(const AstBinary& n, const AstNode& node, const Frame& frame);
    Expr lower_builtin(const AstCall& n, const AstNode& node, const Frame& frame);
    Expr lower_size(const AstCall& n, const AstNode& node);
    bool has_one_result(const Template& callee, const AstWord& name);
    Expr call_result(Binding& b, const Frame& frame, const SourceRange& range);
    Body lower_reduction(const AstPrefix& n, const Frame& frame);
    Body lower_place_of_extremum(const AstPrefix& n, const Frame& frame);
    /// The whole right-hand side: a reduction or a string's product stays in the equation itself.
    Body lower_body(const AstNode& node, const Frame& frame);
    Expr store(const Body& body, const Frame& frame, const std::string& suffix);  ///< in a temporary; the read of it
    Index lower_index(const AstNode& node, const Frame& frame);
    Affine lower_affine(const AstNode& node, const Frame& frame);
    Expr lower_coordinate(const AstNode& node, const Frame& frame);
    void check_condition(const AstNode& node);
    void check_nan(const AstBinary& comparison);
    void check_coordinates(const Expr& e, const SourceRange& range);
    void unknown_name(const std::string& name, const SourceRange& range, const Frame& frame);
    bool array_usable(const AstWord& name);
    std::vector<AxisId> bind(const std::vector<AstWord>& names);
    /// Reports an axis that the whole right-hand side consumes and the left-hand side has.
    void check_consumed(AxisId consumed, const SourceRange& range, const std::string& what, const Frame& frame);
    /// What an equation of its own computes of an expression that is taken where the frame's condition holds.
    [[nodiscard]] Expr guarded(const Expr& e, const Frame& frame) const;
    [[nodiscard]] bool is_of_input(AxisId axis) const;
    [[nodiscard]] bool has_size_of(const Index& index, AxisId dimension) const;

    // call.cpp: calls of diagrams
    const Template* find_callee(const AstWord& name, const Frame& frame);
    bool bind_call(const AstCall& call, const AstNode& node, const Frame& frame, const std::vector<ArrayId>* targets,
                   Binding& b);
    bool bind_prefix(const AstPrefix& call, const AstNode& node, const Frame& frame, Binding& b);
    bool bind_operands(Binding& b, const std::vector<const AstNode*>& arguments, const Frame& frame);
    bool bind_targets(Binding& b, const std::vector<ArrayId>& targets);
    bool bind_open_axes(Binding& b, const std::vector<std::optional<ArrayOperand>>& operands, const Frame& frame);
    bool check_binding(Binding& b);
    Parameter scalar_argument(const Binding& b, std::size_t parameter, const AstNode& argument, const Frame& frame);
    Parameter stored_argument(const Binding& b, std::size_t parameter, Expr e, const std::vector<AxisId>& own,
                              const Frame& frame);
    bool check_argument_type(const Binding& b, std::size_t parameter, const Expr& e, const SourceRange& range);
    bool result_stays(const Binding& b, AxisId callee_axis) const;
    /// Adds the callee's equations. `targets` by result: the array to define, or -1 for a temporary. Returns the
    /// arrays.
    std::vector<ArrayId> instantiate(Binding& b, const Frame& frame, const std::vector<ArrayId>& targets);
    class Instance;
    std::vector<std::set<AxisId>> result_axes(Binding& b);
    Expr inline_elementwise(Binding& b, const Frame& frame);
    AxisId map_axis(Binding& b, AxisId callee_axis);
    Expr map_parameter(Binding& b, const Parameter& p, const std::vector<Index>& indices);
    Affine map_index(Binding& b, const Affine& index);
    bool array_operand(const AstNode& node, std::size_t rank, const std::string& what, const Frame& frame,
                       ArrayOperand& out);
    /// Reports what stands where an array should.
    void no_array(const AstNode& node, const std::string& what);
    /// nullopt: '..' stands twice, reported.
    std::optional<WrittenIndices> written_indices(const std::vector<AstNode>& indices);
    void rank_mismatch(const AstNode& node, ArrayId id, const std::optional<WrittenIndices>& written, std::size_t rank,
                       const std::string& what);
    bool open_axis(const AstNode& index, const std::string& what, ArrayOperand& out, std::size_t dimension);
    std::string call_text(const Binding& b) const;

    // strings.cpp: einsum, rearrange, reduce
    class StringCall;
    std::optional<Body> lower_string_call(const AstCall& n, const AstNode& node, const Frame& frame,
                                          const std::vector<AxisId>* target, std::vector<AxisId>* infer);

    // sizes.cpp
    void apply_sizes();
    std::optional<Size> lower_size_expression(const AstNode& node);
    void apply_lengths();
    std::optional<JaggedAxis> lower_lengths(const AstSize& entry);
    void suggest_size(AxisId axis, Size size);
    void check_size_agreement();

    // scope.cpp: names, arrays, axes, types
    [[nodiscard]] bool is_array(const std::string& name) const {
        return !clashes_.contains(name) && (arrays_.contains(name) || targets_.contains(name));
    }
    void clash(const AstWord& name);
    bool is_function(const std::string& name) const { return library_.defines(name); }
    AxisId axis(const std::string& name);
    AxisId fresh_axis(const std::string& wanted);
    std::string unique_name(const std::string& wanted);
    ArrayId add(const std::string& name, std::vector<AxisId> axes, std::optional<DType> type, ArrayRole role,
                SourceRange range);
    void add_equation(Equation e);
    bool spend(std::size_t nodes, const SourceRange& range);
    DType infer_type(const Expr& e) const;
    [[nodiscard]] std::string axis_list(const std::vector<AxisId>& axes) const;
    [[nodiscard]] std::string array_text(ArrayId id) const;
    [[nodiscard]] std::vector<std::string> array_names() const;
    [[nodiscard]] std::vector<std::string> axis_names() const;
    void error(Code code, const SourceRange& range, std::string message, std::string expected = {}, std::string hint = {});
    [[nodiscard]] std::size_t errors() const { return diagnostics_.count(); }

    const AstDefinition& ast_;
    Library& library_;
    Diagnostics& diagnostics_;
    Template out_;
    Diagram& d_;

    struct Known {
        ArrayId id = -1;
        bool shape_known = true;
    };
    std::map<std::string, AxisId> axes_;
    std::map<std::string, Known> arrays_;         ///< inputs, results, and what was defined so far
    std::set<std::string> defined_;               ///< arrays that may be read
    std::map<std::string, SourceRange> targets_;  ///< everything that some equation defines, and where
    std::set<std::string> axis_names_;            ///< of the whole definition
    std::set<std::string> clashes_;               ///< names of arrays and axes both, reported: axes from then on
    std::set<AxisId> unbound_;                    ///< reported for the equation at hand
    std::set<std::string> taken_;                 ///< every name in the text, and those made here
    std::vector<std::pair<AxisId, Size>> suggested_sizes_;
    struct PlainIndex {
        AxisId axis, dimension;
        SourceRange range;
        ArrayId array;
    };
    std::vector<PlainIndex> plain_indices_;  ///< an axis that indexes a dimension of another axis
    std::string target_;                     ///< of the equation at hand
    bool some_equation_lost_ = false;
    bool over_limit_ = false;
};

}  // namespace napkin
