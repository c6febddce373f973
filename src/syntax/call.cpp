// Calls: which of the caller's axes stand for the callee's.
//
// A callee's axis that the caller names is bound to that axis. Every other axis that an argument depends on is woven.
// It is added to each of the callee's arrays that depends on the argument, and to no other. So an argument without it
// is shared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "differentiate/gradient.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/elaborator.hpp"
#include "syntax/not_in_language.hpp"

namespace napkin {
namespace {

/// The callee's axes in the order in which its signature names them.
std::vector<AxisId> signature_axes(const Diagram& d) {
    std::vector<AxisId> out;
    for (const std::vector<ArrayId>* list : {&d.inputs, &d.outputs}) {
        for (const ArrayId id : *list) {
            for (const AxisId a : d.array(id).axes) {
                if (!contains(out, a)) out.push_back(a);
            }
        }
    }
    return out;
}

std::string signature_text(const Diagram& d) {
    const auto list = [&](const std::vector<ArrayId>& ids) {
        std::string out;
        for (const ArrayId id : ids) {
            out += (out.empty() ? "" : ", ") + d.array(id).name;
            for (std::size_t i = 0; i < d.array(id).axes.size(); ++i)
                out += (i == 0 ? "[" : ", ") + d.axis(d.array(id).axes[i]).name;
            if (!d.array(id).axes.empty()) out += "]";
        }
        return out;
    };
    return fmt::format("{}({}) -> {}", d.name, list(d.inputs), list(d.outputs));
}

}  // namespace

const Template* Elaborator::find_callee(const AstWord& name, const Frame& frame) {
    if (const auto parts = gradient_parts(name.text)) {
        const Template* of = find_callee({parts->front(), name.range}, frame);
        if (!of) return nullptr;
        const std::vector<std::string> by(parts->begin() + 1, parts->end());
        if (const auto wrong = wrong_input(of->diagram, arguments_with_gradients(*of), by)) {
            error(Code::bad_gradient, name.range, wrong->message,
                  wrong->right.empty() ? "a diagram of real numbers"
                                       : fmt::format("arguments of real numbers: {}", fmt::join(wrong->right, ", ")),
                  did_you_mean(wrong->name, wrong->right));
            return nullptr;
        }
    }
    const bool too_deep = library_.too_deep(name.text);
    const Template* callee = too_deep ? nullptr : library_.find(name.text);
    if (too_deep) {
        error(Code::calls_too_deep, name.range, fmt::format("the calls below {} are too deep", name.text),
              fmt::format("at most {} levels", limits::max_call_depth));
        return nullptr;
    }
    if (!callee) {
        if (library_.state(name.text) == Library::State::running) {
            error(Code::recursion, name.range,
                  fmt::format("{} calls itself",
                              name.text == d_.name ? name.text : name.text + ", directly or through others,"),
                  "calls of other diagrams; all calls are written out");
            return nullptr;
        }
        if (const NotInLanguage* missing = find_not_in_language(name.text)) {
            error(Code::unknown_function, name.range,
                  fmt::format("{}: {} is not in the language", name.text, missing->what),
                  "a function of the language, a diagram of this file or of the standard library",
                  std::string(missing->near));
            return nullptr;
        }
        std::vector<std::string> candidates = builtin_names();
        for (const std::string& other : library_.names()) candidates.push_back(other);
        error(Code::unknown_function, name.range, fmt::format("there is no function or diagram {}", name.text),
              "a function of the language, a diagram of this file or of the standard library",
              did_you_mean(name.text, candidates));
        return nullptr;
    }
    if (!callee->ok) {
        out_.ok = false;  // its own errors are reported
        some_equation_lost_ = true;
        return nullptr;
    }
    out_.call_depth = std::max(out_.call_depth, callee->call_depth + 1);
    if (out_.call_depth > limits::max_call_depth) {
        error(Code::calls_too_deep, name.range, fmt::format("the calls below {} are too deep", name.text),
              fmt::format("at most {} levels", limits::max_call_depth));
        return nullptr;
    }
    return callee;
}

std::string Elaborator::call_text(const Binding& b) const { return signature_text(b.callee->diagram); }

bool Elaborator::result_stays(const Binding& b, AxisId callee_axis) const {
    const Diagram& c = b.callee->diagram;
    return any_of(c.outputs, [&](ArrayId id) { return contains(c.array(id).axes, callee_axis); });
}

// ---- arguments
// ------------------------------------------------------------

void Elaborator::no_array(const AstNode& node, const std::string& what) {
    const auto* bare = std::get_if<AstName>(&node.v);
    const auto* indexed = std::get_if<AstIndexed>(&node.v);
    const std::string wanted = fmt::format("an array for {}", what);
    if (!bare && !indexed) {
        error(Code::array_expected, node.range, "an expression where an array should stand", wanted,
              "name the axes to apply a diagram to an expression: f(i)(…), or give the expression an equation of its "
              "own");
        return;
    }
    const AstWord name = bare ? AstWord{bare->name, node.range} : indexed->name;
    if (axis_names_.contains(name.text))
        error(Code::array_expected, node.range, fmt::format("{} is an axis", name.text), wanted);
    else
        error(Code::unknown_array, name.range, fmt::format("there is no array {}", name.text), wanted,
              did_you_mean(name.text, array_names()));
}

std::optional<Elaborator::WrittenIndices> Elaborator::written_indices(const std::vector<AstNode>& indices) {
    WrittenIndices out;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!std::holds_alternative<AstEllipsis>(indices[i].v)) {
            ++out.count;
        } else if (out.points) {
            error(Code::ellipsis_misuse, indices[i].range, "'..' stands twice among the indices", "'..' once");
            return std::nullopt;
        } else {
            out.points = i;
        }
    }
    return out;
}

void Elaborator::rank_mismatch(const AstNode& node, ArrayId id, const std::optional<WrittenIndices>& written,
                               std::size_t rank, const std::string& what) {
    const Array& array = d_.array(id);
    const std::size_t total = array.axes.size();
    if (written && !written->points && written->count != total) {
        error(Code::rank_mismatch, node.range,
              fmt::format("{} is read with {} of {} indices", array.name, written->count, total), array_text(id),
              fmt::format("the callee's own axes can be left out with '..': {}[…, ..]", array.name));
        return;
    }
    const std::string has = fmt::format("{} has {}", array.name, counted(total, "axis"));
    const std::size_t open = written ? written->open(total, rank) : total;
    error(Code::argument_rank, node.range,
          written ? fmt::format("{}, and {} left for {}", has, open == 1 ? "1 is" : fmt::format("{} are", open), what)
                  : fmt::format("{}, all of them for {}", has, what),
          counted(rank, "axis"),
          total > rank ? fmt::format("write the indices that are woven, and '..' for the rest: {}[…, ..]", array.name) : "");
}

/// One of the callee's own axes, by name.
bool Elaborator::open_axis(const AstNode& index, const std::string& what, ArrayOperand& out, std::size_t dimension) {
    const auto* word = std::get_if<AstName>(&index.v);
    if (!word) {
        error(Code::array_expected, index.range, fmt::format("a computed index on an axis of {}", what),
              "the name of an axis", "name the axes to apply a diagram to shifted elements: f(i) X[i + 1]");
        return false;
    }
    if (!axis_names_.contains(word->name)) {
        // An axis that only this call uses.
        if (is_array(word->name)) {
            error(Code::array_as_index, index.range,
                  fmt::format("{} is an array; an index is made of axes", word->name), "an axis");
            return false;
        }
        axis_names_.insert(word->name);
    }
    out.names[dimension] = {word->name, index.range};
    out.open.push_back(dimension);
    return true;
}

/// Reads an array with some of its dimensions left to a callee of `rank` axes: X, X[b, ..], or X[b, q, k] of which the
/// last are its.
bool Elaborator::array_operand(const AstNode& node, std::size_t rank, const std::string& what, const Frame& frame,
                               ArrayOperand& out) {
    const auto* bare = std::get_if<AstName>(&node.v);
    const auto* indexed = std::get_if<AstIndexed>(&node.v);
    const AstWord name = bare ? AstWord{bare->name, node.range} : indexed ? indexed->name : AstWord{};
    if (!is_array(name.text)) {
        no_array(node, what);
        return false;
    }
    if (!array_usable(name)) return false;
    const Known known = arrays_[name.text];
    if (!known.shape_known) return false;
    const std::vector<AxisId> axes = d_.array(known.id).axes;
    const std::size_t total = axes.size();
    out.array = known.id;
    out.range = node.range;
    out.indices.assign(total, std::nullopt);
    out.names.assign(total, {});

    const std::size_t before = errors();
    std::optional<WrittenIndices> written;
    if (indexed && !(written = written_indices(indexed->indices))) return false;
    if (!(written ? written->fit(total, rank) : total == rank)) {
        rank_mismatch(node, known.id, written, rank, what);
        return false;
    }
    std::size_t dimension = 0;
    const auto take_open = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) out.open.push_back(dimension++);
    };
    if (!indexed) {
        take_open(total);
        return true;
    }
    for (std::size_t i = 0; i < indexed->indices.size(); ++i) {
        const AstNode& index = indexed->indices[i];
        if (written->points == i) {
            take_open(rank);
        } else if (!written->points && dimension + rank >= total) {
            if (!open_axis(index, what, out, dimension++)) return false;
        } else {
            const Index lowered = lower_index(index, frame);
            const AxisId plain = lowered.single_axis();
            if (std::holds_alternative<AstName>(index.v) && plain >= 0 && plain != axes[dimension])
                plain_indices_.push_back({plain, axes[dimension], index.range, known.id});
            out.indices[dimension++] = lowered;
        }
    }
    return errors() == before;
}

bool Elaborator::check_argument_type(const Binding& b, std::size_t parameter, const Expr& e, const SourceRange& range) {
    const ArrayId id = b.callee->diagram.inputs[parameter];
    const Array& wanted = b.callee->diagram.array(id);
    const auto* r = as<Read>(e);
    if (!r || !b.callee->typed[at(id)] || d_.array(r->array).type == wanted.type) return true;
    const Array& given = d_.array(r->array);
    error(Code::type_mismatch, range, fmt::format("{} is {}", given.name, name(given.type)),
          fmt::format("{} for {} of {}", name(wanted.type), wanted.name, b.callee->diagram.name),
          fmt::format(
              "convert it first: {0}_{1}{2} = {1}({0}{2}), or leave the type out of {3}'s signature to take any",
              given.name, name(wanted.type), given.axes.empty() ? "" : axis_list(given.axes), b.callee->diagram.name));
    return false;
}

/// The argument in a temporary of its own.
Elaborator::Parameter Elaborator::stored_argument(const Binding& b, std::size_t parameter, Expr e,
                                                  const std::vector<AxisId>& own, const Frame& frame) {
    const ArrayId id = b.callee->diagram.inputs[parameter];
    const Array& wanted = b.callee->diagram.array(id);
    e = guarded(e, frame.inside(own));
    std::vector<AxisId> axes;
    for (const AxisId a : frame.bound) {
        if (!contains(own, a) && depends_on_axis(e, a)) axes.push_back(a);
    }
    append(axes, own);
    const bool typed = b.callee->typed[at(id)];
    const ArrayId stored = add(unique_name(frame.base + "_" + wanted.name), axes,
                               typed ? std::optional(wanted.type) : std::nullopt, ArrayRole::temporary, frame.equation);
    if (!typed) d_.arrays[stored].type = infer_type(e);
    add_equation({stored, std::nullopt, {}, std::move(e), frame.equation, {}});
    return {read_self(d_, stored), own};
}

Elaborator::Parameter Elaborator::scalar_argument(const Binding& b, std::size_t parameter, const AstNode& argument,
                                                  const Frame& frame) {
    Expr e = lower(argument, frame);
    if (!check_argument_type(b, parameter, e, argument.range)) return {e, {}};
    if (is_simple(e) || b.callee->elementwise) return {e, {}};
    if (read_arrays(e).empty() && count_nodes(e) <= 8) return {e, {}};
    return stored_argument(b, parameter, e, {}, frame);
}

// ---- binding
// ------------------------------------------------------------

bool Elaborator::bind_operands(Binding& b, const std::vector<const AstNode*>& arguments, const Frame&) {
    const Diagram& c = b.callee->diagram;
    std::size_t needed = c.inputs.size();
    while (needed > 0 && b.callee->defaults[needed - 1]) --needed;
    if (arguments.size() >= needed && arguments.size() <= c.inputs.size()) return true;
    const std::string wanted = needed == c.inputs.size() ? counted(needed, "argument")
                                                         : fmt::format("{} to {} arguments", needed, c.inputs.size());
    const SourceRange where = arguments.size() > c.inputs.size() ? arguments[c.inputs.size()]->range : b.range;
    error(Code::argument_count, where, fmt::format("{} is given {}", b.name.text, counted(arguments.size(), "argument")),
          fmt::format("{}: {}", wanted, call_text(b)));
    return false;
}

bool Elaborator::bind_targets(Binding& b, const std::vector<ArrayId>& targets) {
    const Diagram& c = b.callee->diagram;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const Array& target = d_.array(targets[i]);
        const Array& result = c.array(c.outputs[i]);
        std::vector<AxisId> given, wanted;
        for (const AxisId a : target.axes) {
            if (!b.woven.contains(a) && !contains(b.axes, a)) given.push_back(a);
        }
        for (const AxisId a : result.axes) {
            if (b.axes[a] < 0) wanted.push_back(a);
        }
        if (given.size() != wanted.size()) {
            std::string woven;
            for (const AxisId a : target.axes) {
                if (b.woven.contains(a)) woven += (woven.empty() ? "" : ", ") + d_.axis(a).name;
            }
            std::string axes = join(names_of(c.axes, result.axes), ", ");
            error(Code::call_target_mismatch, b.range,
                  fmt::format("{} has {} for the result of {}, which has {}", array_text(targets[i]),
                              woven.empty() ? counted(given.size(), "axis")
                                            : fmt::format("{} besides the woven {}", counted(given.size(), "axis"), woven),
                              b.name.text, counted(wanted.size(), "axis")),
                  fmt::format("the indices that the arguments are woven over, and [{}]", axes),
                  given.size() > wanted.size() ? "an index is woven when an argument has it: f(X[h, ..])" : "");
            return false;
        }
        for (std::size_t k = 0; k < wanted.size(); ++k) b.axes[wanted[k]] = given[k];
    }
    return true;
}

bool Elaborator::bind_open_axes(Binding& b, const std::vector<std::optional<ArrayOperand>>& operands, const Frame& frame) {
    const Diagram& c = b.callee->diagram;
    for (std::size_t p = 0; p < operands.size(); ++p) {
        if (!operands[p]) continue;
        for (std::size_t j = 0; j < operands[p]->open.size(); ++j) {
            const AxisId own = c.array(c.inputs[p]).axes[j];
            AxisId& image = b.axes[own];
            if (image >= 0) continue;
            const AxisId dimension = d_.array(operands[p]->array).axes[operands[p]->open[j]];
            const bool free = !b.woven.contains(dimension) && !contains(b.axes, dimension) &&
                              (result_stays(b, own) || !contains(frame.bound, dimension));
            image = free ? dimension : fresh_axis(c.axis(own).name);
        }
    }
    return true;
}

bool Elaborator::check_binding(Binding& b) {
    const Diagram& c = b.callee->diagram;
    const std::size_t before = errors();
    for (const AxisId i : b.axes.ids()) {
        const AxisId image = b.axes[i];
        if (image < 0) continue;
        const std::string& own = c.axes[i].name;
        if (b.woven.contains(image)) {
            error(Code::call_axis_clash, b.range,
                  fmt::format("{} stands for the axis {} of {} and is woven by another argument", d_.axis(image).name,
                              own, b.name.text),
                  "an axis is the callee's or woven, not both");
        }
        for (AxisId k = 0; k < i; ++k) {
            if (b.axes[k] != image) continue;
            error(Code::call_axis_clash, b.range,
                  fmt::format("{} would stand for two axes of {}: {} and {}", d_.axis(image).name, b.name.text,
                              c.axes[k].name, own),
                  "an axis of the caller for each of the callee's", "give one of the arguments another index name");
        }
    }
    return errors() == before;
}

bool Elaborator::bind_call(const AstCall& call, const AstNode&, const Frame& frame, const std::vector<ArrayId>* targets,
                           Binding& b) {
    const Diagram& c = b.callee->diagram;
    const std::size_t before = errors();
    b.axes.assign(c.axes.size(), -1);
    std::vector<const AstNode*> arguments;
    for (const AstNode& a : call.arguments) arguments.push_back(&a);
    if (!bind_operands(b, arguments, frame)) return false;

    std::vector<std::optional<ArrayOperand>> operands(arguments.size());
    b.parameters.resize(arguments.size());
    for (std::size_t p = 0; p < arguments.size(); ++p) {
        const Array& wanted = c.array(c.inputs[p]);
        if (wanted.axes.empty()) {
            b.parameters[p] = scalar_argument(b, p, *arguments[p], frame);
            for (const AxisId a : free_axes(b.parameters[p].expr)) b.woven.insert(a);
            continue;
        }
        ArrayOperand operand;
        if (!array_operand(*arguments[p], wanted.axes.size(), fmt::format("{} of {}", wanted.name, b.name.text), frame,
                           operand))
            continue;
        for (const auto& index : operand.indices) {
            if (!index) continue;
            for (const AxisId a : index->axes()) b.woven.insert(a);
        }
        operands[p] = std::move(operand);
    }
    if (errors() > before ||
        any_of(operands, [&](const auto& o) { return !o && !c.array(c.inputs[at(&o - operands.data())]).axes.empty(); })) {
        return false;
    }
    // Axes that the arguments name.
    for (std::size_t p = 0; p < arguments.size(); ++p) {
        if (!operands[p]) continue;
        for (std::size_t j = 0; j < operands[p]->open.size(); ++j) {
            const AstWord& word = operands[p]->names[operands[p]->open[j]];
            if (word.text.empty()) continue;
            const AxisId own = c.array(c.inputs[p]).axes[j];
            AxisId& image = b.axes[own];
            const AxisId id = axis(word.text);
            if (image >= 0 && image != id) {
                error(Code::call_axis_clash, word.range,
                      fmt::format("the axis {} of {} would be {} and {}", c.axis(own).name, b.name.text,
                                  d_.axis(image).name, word.text),
                      fmt::format("{}, as in the arguments before", d_.axis(image).name));
                continue;
            }
            image = id;
        }
    }
    if (errors() > before || !check_binding(b)) return false;
    if (targets && !bind_targets(b, *targets)) return false;
    bind_open_axes(b, operands, frame);
    for (std::size_t p = 0; p < arguments.size(); ++p) {
        if (!operands[p]) continue;
        ArrayOperand& operand = *operands[p];
        const Array array = d_.array(operand.array);
        Parameter parameter;
        for (std::size_t j = 0; j < operand.open.size(); ++j) {
            const std::size_t dimension = operand.open[j];
            const AxisId image = b.axes[c.array(c.inputs[p]).axes[j]];
            operand.indices[dimension] = Affine::axis(image);
            parameter.own.push_back(image);
            if (image != array.axes[dimension])
                plain_indices_.push_back({image, array.axes[dimension], operand.range, operand.array});
        }
        std::vector<Index> indices;
        for (const auto& index : operand.indices) indices.push_back(*index);
        parameter.expr = read(operand.array, std::move(indices));
        if (!check_argument_type(b, p, parameter.expr, operand.range)) return false;
        b.parameters[p] = std::move(parameter);
    }
    return check_binding(b);
}

bool Elaborator::bind_prefix(const AstPrefix& call, const AstNode&, const Frame& frame, Binding& b) {
    const std::size_t before = errors();
    if (!call.only_axes) {
        error(Code::missing_operator, call.operands[0].range,
              fmt::format("an operator is missing after {}(…)", b.name.text), "an operator",
              "before an operand only axes stand between the parentheses");
        return false;
    }
    std::vector<AxisId> own = signature_axes(b.callee->diagram);
    if (own.size() == 1 && call.axes.size() > 1 && call.axes.size() <= limits::max_axes_per_array) {
        if (auto wider = spread(*b.callee, own[0], call.axes.size())) {
            b.spread = std::make_shared<const Template>(std::move(*wider));
            b.callee = b.spread.get();
            own = signature_axes(b.callee->diagram);
        }
    }
    const Diagram& c = b.callee->diagram;
    b.axes.assign(c.axes.size(), -1);
    if (own.size() != call.axes.size()) {
        std::string names = join(names_of(c.axes, own), ", ");
        error(Code::call_axis_count, call.head,
              fmt::format("{} has {}, and {} named", b.name.text, counted(own.size(), "axis"),
                          call.axes.size() == 1 ? "one is" : fmt::format("{} are", call.axes.size())),
              own.empty() ? fmt::format("no axes: {}(X)", b.name.text)
                          : fmt::format("an axis for each of {}: {}", names, call_text(b)));
        return false;
    }
    std::vector<const AstNode*> operands;
    for (const AstNode& a : call.operands) operands.push_back(&a);
    if (!bind_operands(b, operands, frame)) return false;
    const std::vector<AxisId> images = bind(call.axes);
    if (errors() > before) return false;
    const Frame inner = frame.inside(images);
    for (std::size_t i = 0; i < own.size(); ++i) b.axes[own[i]] = images[i];
    for (std::size_t p = 0; p < operands.size(); ++p) {
        const Array& wanted = c.array(c.inputs[p]);
        Parameter parameter;
        for (const AxisId a : wanted.axes) parameter.own.push_back(b.axes[a]);
        Expr e = wanted.axes.empty() ? scalar_argument(b, p, *operands[p], inner).expr : lower(*operands[p], inner);
        if (errors() > before) {
            b.parameters.push_back(std::move(parameter));
            continue;
        }
        for (const AxisId a : parameter.own) {
            if (depends_on_axis(e, a)) continue;
            error(Code::unused_call_axis, operands[p]->range,
                  fmt::format("this does not depend on {}, over which {} runs", d_.axis(a).name, b.name.text),
                  fmt::format("{} with the axis {}", wanted.name, d_.axis(a).name));
        }
        for (const AxisId a : free_axes(e)) {
            if (contains(parameter.own, a)) continue;
            if (contains(images, a)) {
                error(Code::call_axis_clash, operands[p]->range,
                      fmt::format("{} of {} does not have the axis {}, on which this depends", wanted.name, b.name.text,
                                  d_.axis(a).name),
                      fmt::format("an argument without {}: {}", d_.axis(a).name, call_text(b)));
                break;
            }
            b.woven.insert(a);
        }
        if (errors() == before && !check_argument_type(b, p, e, operands[p]->range)) return false;
        if (errors() == before && !wanted.axes.empty() && !as<Read>(e)) {
            parameter = stored_argument(b, p, e, parameter.own, inner);
            // What its guard depends on is woven too.
            for (const AxisId a : free_axes(parameter.expr))
                if (!contains(parameter.own, a)) b.woven.insert(a);
        } else {
            parameter.expr = e;
        }
        b.parameters.push_back(std::move(parameter));
    }
    return errors() == before && check_binding(b);
}

}  // namespace napkin
