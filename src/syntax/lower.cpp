// Expressions: names find their meaning, inner reductions and calls become temporaries.
#include <fmt/format.h>

#include <cmath>

#include "diagram/guards.hpp"
#include "diagram/row_major_place.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

/// The reduction of which the word wants the place: argmax, argmin.
std::optional<ReduceOp> find_place_of_extremum(const std::string& word) {
    if (word == "argmax") return ReduceOp::max;
    if (word == "argmin") return ReduceOp::min;
    return std::nullopt;
}

/// Whether the sum or product begins with a minus sign.
bool begins_with_sign(const AstNode& node) {
    const AstNode* first = &node;
    while (const auto* b = std::get_if<AstBinary>(&first->v)) first = &b->operands[0];
    const auto* u = std::get_if<AstUnary>(&first->v);
    return u && u->op == UnaryOp::neg;
}

}  // namespace

Expr Elaborator::lower(const AstNode& node, const Frame& frame) {
    if (diagnostics_.full() || over_limit_) {
        diagnostics_.again();
        return constant(0);
    }
    return std::visit([&](const auto& n) { return lower_node(n, node, frame); }, node.v);
}

Expr Elaborator::lower_node(const AstNumber& n, const AstNode&, const Frame&) {
    if (n.integer && n.whole != 0) return integer_constant(n.whole);
    return constant(std::isnan(n.value) ? std::numeric_limits<double>::quiet_NaN() : n.value);
}

Expr Elaborator::lower_node(const AstString&, const AstNode& node, const Frame&) {
    error(Code::misplaced_string, node.range, "a string is no value", "an expression",
          "strings belong to einsum, rearrange and reduce");
    return constant(0);
}

Expr Elaborator::lower_node(const AstEllipsis&, const AstNode& node, const Frame&) {
    error(Code::ellipsis_misuse, node.range, "'..' outside of a call's argument", "an index for each axis",
          "'..' stands for the axes of the called diagram: f(X[b, ..])");
    return constant(0);
}

/// Whether the array can be read here; reports why not.
bool Elaborator::array_usable(const AstWord& name) {
    if (defined_.contains(name.text)) return arrays_.contains(name.text);
    const auto later = targets_.find(name.text);
    if (name.text == target_) {
        error(Code::used_before_definition, name.range, fmt::format("{} is used in its own equation", name.text),
              "arrays of the equations before this one",
              "an equation may not read itself; recurrences and scans are not in the language");
        return false;
    }
    if (later == targets_.end()) {
        if (some_equation_lost_ && arrays_.contains(name.text)) return false;
        error(Code::never_defined, name.range, fmt::format("no equation defines {}", name.text),
              fmt::format("an equation of {} before this one", name.text));
        return false;
    }
    diagnostics_
        .error(Code::used_before_definition, name.range, fmt::format("{} is used before it is defined", name.text),
               "its equation before this one")
        .notes.push_back({later->second, "it is defined here"});
    return false;
}

void Elaborator::unknown_name(const std::string& name, const SourceRange& range, const Frame&) {
    std::vector<std::string> candidates = array_names();
    for (const auto& [target, where] : targets_) candidates.push_back(target);
    for (const std::string& axis : axis_names_) candidates.push_back(axis);
    error(Code::unknown_name, range, fmt::format("{} is neither an array nor an axis of {}", name, d_.name),
          "an array without axes, or an axis",
          did_you_mean(name, candidates, fmt::format("a size that is no array's axis is given by sizes {} = 256", name)));
}

Expr Elaborator::lower_node(const AstName& n, const AstNode& node, const Frame& frame) {
    if (is_array(n.name)) {
        if (!array_usable({n.name, node.range})) return constant(0);
        const auto known = arrays_[n.name];
        const Array& array = d_.array(known.id);
        if (!known.shape_known) return constant(0);
        if (!array.axes.empty()) {
            error(Code::rank_mismatch, node.range,
                  fmt::format("{} has {} and stands without indices", n.name, counted(array.axes.size(), "axis")),
                  array_text(known.id));
            return constant(0);
        }
        return read(known.id, {});
    }
    if (axis_names_.contains(n.name)) {
        const AxisId id = axis(n.name);
        return contains(frame.bound, id) ? axis_index(id) : axis_size(id);
    }
    if (const auto value = find_constant(n.name); value) return constant(*value);
    if (is_builtin(n.name) || is_function(n.name)) {
        error(Code::function_as_value, node.range, fmt::format("{} is a function and stands without arguments", n.name),
              fmt::format("{}(…)", n.name));
        return constant(0);
    }
    unknown_name(n.name, node.range, frame);
    return constant(0);
}

Expr Elaborator::lower_node(const AstIndexed& n, const AstNode& node, const Frame& frame) {
    const std::string& name = n.name.text;
    if (!is_array(name)) {
        if (axis_names_.contains(name)) {
            error(Code::not_an_array, n.name.range, fmt::format("{} is an axis and has no elements", name), "an array");
        } else if (is_builtin(name) || is_function(name)) {
            error(Code::function_as_value, n.name.range,
                  fmt::format("{} is a function; its arguments stand in parentheses", name), fmt::format("{}(…)", name));
        } else {
            std::vector<std::string> candidates = array_names();
            for (const auto& [target, where] : targets_) candidates.push_back(target);
            error(Code::unknown_array, n.name.range, fmt::format("there is no array {}", name),
                  "an argument of the diagram, or an array that an equation defines", did_you_mean(name, candidates));
        }
        for (const AstNode& index : n.indices) {
            if (!std::holds_alternative<AstEllipsis>(index.v)) (void)lower_index(index, frame);
        }
        return constant(0);
    }
    if (!array_usable(n.name)) return constant(0);
    const Known known = arrays_[name];
    const Array array = d_.array(known.id);
    std::vector<Index> indices;
    const std::size_t before = errors();
    for (const AstNode& index : n.indices) {
        if (std::holds_alternative<AstEllipsis>(index.v)) {
            (void)lower(index, frame);
            continue;
        }
        indices.push_back(lower_index(index, frame));
    }
    if (errors() > before || !known.shape_known) return constant(0);
    if (indices.size() != array.axes.size()) {
        // Under the first index too many, or else under the whole reference.
        const SourceRange where = indices.size() > array.axes.size() ? n.indices[array.axes.size()].range : node.range;
        diagnostics_
            .error(Code::rank_mismatch, where, fmt::format("{} is read with {}", name, counted(indices.size(), "index")),
                   fmt::format("{}: {}", counted(array.axes.size(), "index"), array_text(known.id)))
            .notes.push_back({array.range, fmt::format("{} is declared here", name)});
        return constant(0);
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        // With an offset of 0 the index means a part of the dimension.
        if (!std::holds_alternative<AstName>(n.indices[i].v)) continue;
        const AxisId plain = indices[i].single_axis();
        if (plain >= 0 && plain != array.axes[i])
            plain_indices_.push_back({plain, array.axes[i], n.indices[i].range, known.id});
    }
    return read(known.id, std::move(indices));
}

// ---- operators and functions
// -----------------------------------------------------------------------------------------------

/// A condition is a comparison or made of them; arithmetic there is a mistake more often than not.
void Elaborator::check_condition(const AstNode& node) {
    const auto* binary = std::get_if<AstBinary>(&node.v);
    const auto* unary = std::get_if<AstUnary>(&node.v);
    const auto* call = std::get_if<AstCall>(&node.v);
    const bool arithmetic = binary && (binary->op == BinaryOp::add || binary->op == BinaryOp::sub ||
                                       binary->op == BinaryOp::mul || binary->op == BinaryOp::div ||
                                       binary->op == BinaryOp::pow || binary->op == BinaryOp::floor_div ||
                                       binary->op == BinaryOp::mod);
    const bool number = std::holds_alternative<AstNumber>(node.v);
    const bool function = call && is_scalar_function(call->name.text) && call->name.text != "where" &&
                          !dtype_from_name(call->name.text);
    if (arithmetic || number || function || (unary && unary->op == UnaryOp::neg)) {
        error(Code::not_a_condition, node.range, "a number where a condition should stand",
              "a comparison such as x <= q", "compare it: … != 0");
    }
}

/// Who compares with NaN looks for it, and does not find it: it equals nothing, itself included.
void Elaborator::check_nan(const AstBinary& comparison) {
    for (std::size_t i = 0; i < 2; ++i) {
        const auto* number = std::get_if<AstNumber>(&comparison.operands[i].v);
        if (!number || !std::isnan(number->value)) continue;
        const SourceRange& other = comparison.operands[1 - i].range;
        const std::string text = other.source->text.substr(other.begin, other.end - other.begin);
        error(Code::compared_with_nan, comparison.operands[i].range,
              fmt::format("a comparison with nan {} holds", comparison.op == BinaryOp::ne ? "always" : "never"),
              "a number, which nan is not",
              fmt::format("{0} {1} {0} holds where it is {2}", text, comparison.op == BinaryOp::eq ? "!=" : "==",
                          comparison.op == BinaryOp::eq ? "NaN, and nowhere else" : "no NaN"));
        return;
    }
}

Expr Elaborator::lower_node(const AstUnary& n, const AstNode&, const Frame& frame) {
    if (n.op == UnaryOp::logical_not) check_condition(n.operand[0]);
    return unary(n.op, lower(n.operand[0], frame));
}

Expr Elaborator::lower_node(const AstBinary& n, const AstNode&, const Frame& frame) {
    if (n.op == BinaryOp::logical_and || n.op == BinaryOp::logical_or) {
        for (const AstNode& operand : n.operands) check_condition(operand);
    }
    if (is_comparison(n.op)) check_nan(n);
    Expr a = lower(n.operands[0], frame);
    Expr b = lower(n.operands[1], frame);
    Expr e = binary(n.op, std::move(a), std::move(b));
    check_coordinates(e, n.op == BinaryOp::pow ? n.operands[0].range : n.operands[1].range);
    return e;
}

namespace {

/// Zero where the coordinate in it is.
bool vanishes_at_origin(const Expr& e) {
    if (as<AxisIndex>(e)) return true;
    if (const auto* n = as<Unary>(e)) return n->op == UnaryOp::sqrt && vanishes_at_origin(n->a);
    if (const auto* n = as<Binary>(e); n && n->op == BinaryOp::pow) {
        const auto* exponent = as<Constant>(n->b);
        return exponent && exponent->value > 0 && vanishes_at_origin(n->a);
    }
    return false;
}

/// The axis by whose coordinate the node divides, or -1.
AxisId coordinate_divisor(const Expr& e) {
    const Expr* divisor = nullptr;
    if (const auto* n = as<Binary>(e)) {
        if (n->op == BinaryOp::div) divisor = &n->b;
        const auto* exponent = n->op == BinaryOp::pow ? as<Constant>(n->b) : nullptr;
        if (exponent && exponent->value < 0) divisor = &n->a;
    }
    if (const auto* n = as<Unary>(e); n && n->op == UnaryOp::rsqrt) divisor = &n->a;
    return divisor && vanishes_at_origin(*divisor) ? free_axes(*divisor)[0] : AxisId();
}

}  // namespace

/// A coordinate begins at 0, so who divides by one means the size.
void Elaborator::check_coordinates(const Expr& e, const SourceRange& range) {
    const AxisId divisor = coordinate_divisor(e);
    if (divisor < 0) return;
    const std::string& axis = d_.axis(divisor).name;
    error(Code::coordinate_as_divisor, range,
          fmt::format("{} is bound here, so this divides by its coordinate, which begins at 0", axis),
          "something that is not 0", fmt::format("the size of the axis is size({})", axis));
}

Expr Elaborator::lower_size(const AstCall& n, const AstNode& node) {
    const auto* name = n.arguments.size() == 1 ? std::get_if<AstName>(&n.arguments[0].v) : nullptr;
    if (!name) {
        error(Code::argument_count, node.range, "size takes the name of one axis", "size(k)");
        return constant(1);
    }
    if (!axis_names_.contains(name->name)) {
        error(Code::unknown_axis, n.arguments[0].range, fmt::format("there is no axis {}", name->name),
              fmt::format("an axis of {}", d_.name), did_you_mean(name->name, axis_names()));
        return constant(1);
    }
    return axis_size(axis(name->name));
}

Expr Elaborator::lower_builtin(const AstCall& n, const AstNode& node, const Frame& frame) {
    const std::string& name = n.name.text;
    if (name == "size") return lower_size(n, node);
    if (name == "einsum" || name == "rearrange" || name == "reduce") {
        const auto body = lower_string_call(n, node, frame, nullptr, nullptr);
        return body ? store(*body, frame, name) : constant(0);
    }
    const auto reduction = find_place_of_extremum(name) ? find_place_of_extremum(name) : find_reduction(name);
    const bool bare = !n.arguments.empty() && all_of(n.arguments, [&](const AstNode& a) {
        const auto* word = std::get_if<AstName>(&a.v);
        return word && axis_names_.contains(word->name) && !arrays_.contains(word->name);
    });
    const bool binary_function = is_scalar_function_of_two(name);
    if (reduction && (!binary_function || (bare && n.arguments.size() != 2))) {
        if (bare) {
            error(Code::bad_reduction, node.range, fmt::format("{} over what? its operand is missing", name),
                  fmt::format("{} and an expression: {}(k) X[k]", name, name),
                  fmt::format("a negated operand stands in parentheses: {}(k) (-X[k])", name));
        } else {
            error(Code::bad_reduction, node.range,
                  fmt::format("{} takes the axes that it runs over between the parentheses, and the operand after them", name),
                  fmt::format("{}(k) X[k]", name));
        }
        return constant(0);
    }
    const std::size_t wanted = count_arguments(name);
    if (!takes_arguments(name, n.arguments.size())) {
        std::string hint;
        if (reduction) hint = fmt::format("the {} over an axis is written {}(k) X[k]", name, name);
        if (name == "where") hint = "where(condition, value, otherwise)";
        error(Code::argument_count, node.range,
              fmt::format("{} is given {}", name, counted(n.arguments.size(), "argument")), counted(wanted, "argument"),
              hint);
        for (const AstNode& argument : n.arguments) (void)lower(argument, frame);
        return constant(0);
    }
    std::vector<Expr> a;
    if (name == "where") check_condition(n.arguments[0]);
    for (const AstNode& argument : n.arguments) {
        const bool branch = name == "where" && !a.empty();
        a.push_back(lower(argument, !branch         ? frame
                                    : a.size() == 1 ? frame.where(a[0])
                                                    : frame.where(unary(UnaryOp::logical_not, a[0]))));
    }
    Expr e = call_scalar_function(name, a);
    check_coordinates(e, n.arguments[0].range);
    return e;
}

bool Elaborator::has_one_result(const Template& callee, const AstWord& name) {
    if (callee.diagram.outputs.size() == 1) return true;
    error(Code::result_count, name.range,
          fmt::format("{} gives {} results and stands in an expression", name.text, callee.diagram.outputs.size()),
          "a diagram with one result", "give the results names in an equation of their own: A, B = f(…)");
    return false;
}

Expr Elaborator::lower_node(const AstCall& n, const AstNode& node, const Frame& frame) {
    const std::string& name = n.name.text;
    if (is_builtin(name)) return lower_builtin(n, node, frame);
    if (is_array(name) && !is_function(name)) {
        error(Code::array_called, node.range, fmt::format("{} is an array; its indices stand in brackets", name),
              fmt::format("{}[…]", name));
        return constant(0);
    }
    const Template* callee = find_callee(n.name, frame);
    if (!callee) {
        // What can be said about the arguments is said; an array's open axes are not known here.
        return constant(0);
    }
    if (!has_one_result(*callee, n.name)) return constant(0);
    const std::size_t before = errors();
    Binding b;
    b.callee = callee;
    b.name = n.name;
    b.range = node.range;
    if (!bind_call(n, node, frame, nullptr, b) || errors() > before) return constant(0);
    if (callee->elementwise) return inline_elementwise(b, frame);
    return call_result(b, frame, node.range);
}

/// The callee's result in a temporary, and the read of it.
Expr Elaborator::call_result(Binding& b, const Frame& frame, const SourceRange& range) {
    const std::size_t before = errors();
    const std::vector<ArrayId> results = instantiate(b, frame, {-1});
    if (results.empty() || errors() > before) return constant(0);
    for (const AxisId a : d_.array(results[0]).axes) {
        if (contains(frame.bound, a)) continue;
        error(Code::unbound_index, range,
              fmt::format("the axis {} stays in the result of {} and is bound by nothing", d_.axis(a).name, b.name.text),
              "an index of the left-hand side, or an axis under a reduction");
    }
    return read_self(d_, results[0]);
}

Expr Elaborator::lower_node(const AstPrefix& n, const AstNode& node, const Frame& frame) {
    const std::string& name = n.name.text;
    if (find_reduction(name) || find_place_of_extremum(name)) {
        const std::size_t before = errors();
        const Body body = lower_reduction(n, frame);
        return errors() > before ? constant(0) : store(body, frame, name);
    }
    if (is_builtin(name) || (is_array(name) && !is_function(name))) {
        error(Code::missing_operator, n.operands[0].range, fmt::format("an operator is missing after {}(…)", name),
              "an operator", "only reductions and diagrams stand before an operand");
        return constant(0);
    }
    const Template* callee = find_callee(n.name, frame);
    if (!callee) return constant(0);
    if (!has_one_result(*callee, n.name)) return constant(0);
    if (callee->diagram.axes.empty() && n.operands.size() == 1 && begins_with_sign(n.operands[0])) {
        // f(a) -b of a diagram without axes is a difference after all.
        AstCall call{n.name, {}};
        for (const AstWord& word : n.axes) call.arguments.push_back({AstName{word.text}, word.range});
        const Expr result = lower_node(call, node, frame);
        return binary(BinaryOp::add, result, lower(n.operands[0], frame));
    }
    const std::size_t before = errors();
    Binding b;
    b.callee = callee;
    b.name = n.name;
    b.range = node.range;
    if (!bind_prefix(n, node, frame, b) || errors() > before) return constant(0);
    return call_result(b, frame, n.head);
}

// ---- reductions
// ------------------------------------------------------------------------------------------------------------

/// The axes that a reduction or a call in prefix form names.
std::vector<AxisId> Elaborator::bind(const std::vector<AstWord>& names) {
    std::vector<AxisId> out;
    if (names.size() > limits::max_axes_per_array) {
        error(Code::too_many_axes, names.back().range, fmt::format("{} axes at once", names.size()),
              fmt::format("at most {}", limits::max_axes_per_array));
        return out;
    }
    for (const AstWord& word : names) {
        if (is_array(word.text)) {
            error(Code::name_clash, word.range, fmt::format("{} is an array, not an axis", word.text), "an axis");
            continue;
        }
        const AxisId id = axis(word.text);
        if (!d_.axes[id].range.source) d_.axes[id].range = word.range;
        if (contains(out, id)) {
            error(Code::duplicate_axis, word.range, fmt::format("{} stands twice", word.text), "each axis once");
            continue;
        }
        out.push_back(id);
    }
    return out;
}

void Elaborator::check_consumed(AxisId consumed, const SourceRange& range, const std::string& what, const Frame& frame) {
    if (!contains(frame.bound, consumed)) return;
    const std::string& axis = d_.axis(consumed).name;
    error(Code::axis_bound_twice, range, fmt::format("{} consumes {}, which the left-hand side has", what, axis),
          fmt::format("a left-hand side without {}, or another axis under {}", axis, what),
          fmt::format("inside of a larger expression it is an axis of its own: X[{0}] / sum({0}) X[{0}]", axis));
}

/// The first place of the extremum over the axes, counted row-major over them, in primitive terms: the least coordinate
/// at which the operand is its own maximum. A NaN, which no maximum equals, counts as one.
Body Elaborator::lower_place_of_extremum(const AstPrefix& n, const Frame& frame) {
    const std::size_t before = errors();
    AstPrefix extremum = n;
    extremum.name.text = std::string(napkin::name(*find_place_of_extremum(n.name.text)));
    Body value = lower_reduction(extremum, frame);
    Body body;
    if (errors() > before) return body;
    const Frame inner = frame.inside(value.reduce_axes);
    if (!as<Read>(value.expr)) value.expr = store({std::nullopt, {}, value.expr}, inner, n.name.text);
    const Expr operand = value.expr, found = store(value, frame, extremum.name.text);
    const auto [place, count] = row_major_place(mapped<AxisId>(n.axes, [&](const AstWord& w) { return axis(w.text); }));
    const Expr is_place = binary(BinaryOp::logical_or, binary(BinaryOp::eq, operand, found),
                                 binary(BinaryOp::ne, operand, operand));
    body.reduce = ReduceOp::min;
    body.reduce_axes = value.reduce_axes;
    body.expr = select(is_place, place, count);
    return body;
}

Body Elaborator::lower_reduction(const AstPrefix& n, const Frame& frame) {
    if (find_place_of_extremum(n.name.text)) return lower_place_of_extremum(n, frame);
    const std::size_t before = errors();
    Body body;
    body.reduce = find_reduction(n.name.text);
    if (n.axes.empty()) {
        error(Code::reduction_without_axes, n.head, fmt::format("{} over no axis", n.name.text),
              fmt::format("the axes that are consumed: {}(k) …", n.name.text));
        return body;
    }
    body.reduce_axes = bind(n.axes);
    if (n.operands.size() != 1) {
        error(Code::argument_count, n.operands[1].range, fmt::format("{} reduces one expression", n.name.text),
              "one operand");
    }
    body.expr = lower(n.operands[0], frame.inside(body.reduce_axes));
    if (errors() > before) return body;
    for (const AstWord& word : n.axes) {
        if (depends_on_axis(body.expr, axis(word.text))) continue;
        error(Code::unused_reduction_axis, word.range, fmt::format("the operand does not depend on {}", word.text),
              fmt::format("an operand that is indexed by {}", word.text),
              body.reduce == ReduceOp::sum ? fmt::format("to count every element, multiply by size({})", word.text) : "");
    }
    return body;
}

Body Elaborator::lower_body(const AstNode& node, const Frame& frame) {
    const auto* prefix = std::get_if<AstPrefix>(&node.v);
    Body body;
    if (prefix && (find_reduction(prefix->name.text) || find_place_of_extremum(prefix->name.text))) {
        const std::size_t before = errors();
        body = lower_reduction(*prefix, frame);
        for (std::size_t i = 0; errors() == before && i < prefix->axes.size(); ++i)
            check_consumed(axis(prefix->axes[i].text), prefix->axes[i].range, prefix->name.text, frame);
        return body;
    }
    body.expr = lower(node, frame);
    return body;
}

Expr Elaborator::store(const Body& body, const Frame& frame, const std::string& suffix) {
    const Expr expr = guarded(body.expr, frame.inside(body.reduce_axes));
    std::vector<AxisId> axes;
    const std::vector<AxisId> free = free_axes(expr);
    for (const AxisId id : frame.bound) {
        if (contains(free, id) && !contains(body.reduce_axes, id)) axes.push_back(id);
    }
    const std::string name = unique_name(frame.base + "_" + suffix);
    const ArrayId id = add(name, axes, std::nullopt, ArrayRole::temporary, frame.equation);
    d_.arrays[id].type = infer_type(expr);
    add_equation({id, body.reduce, body.reduce_axes, expr, frame.equation, {}});
    return read_self(d_, id);
}

// ---- what stands around
// ----------------------------------------------------------------------------------------------------

Frame Frame::inside(const std::vector<AxisId>& axes) const {
    Frame out = *this;
    bool anew = false;
    for (const AxisId a : axes) {
        if (!contains(bound, a)) out.bound.push_back(a);
        anew = anew || (condition && depends_on_axis(condition, a));
    }
    if (!anew) return out;
    out.condition = nullptr;
    for (const Expr& part : conditions_in(condition))
        if (none_of(axes, [&](AxisId a) { return depends_on_axis(part, a); }))
            out.condition = both_hold(out.condition, part);
    return out;
}

Frame Frame::where(const Expr& taken) const {
    Frame out = *this;
    out.condition = both_hold(condition, taken);
    return out;
}

Expr Elaborator::guarded(const Expr& e, const Frame& frame) const {
    return with_guarded_reads(d_, e, frame.condition, [&](const Index& index, AxisId dimension) {
        return !index.is_axis(dimension) && !has_size_of(index, dimension);
    });
}

bool Elaborator::is_of_input(AxisId axis) const {
    return any_of(d_.inputs, [&](ArrayId id) { return contains(d_.array(id).axes, axis); });
}

/// An axis that no input has takes the size of the dimension that it indexes first.
bool Elaborator::has_size_of(const Index& index, AxisId dimension) const {
    const auto first = find_if(plain_indices_, [&](const PlainIndex& p) { return index.is_axis(p.axis); });
    return first != plain_indices_.end() && first->dimension == dimension && !is_of_input(first->axis);
}

}  // namespace napkin
