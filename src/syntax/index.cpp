// Indices: sums of axes with whole factors; quotients, rests and sizes among them; elements of integer arrays.
#include <fmt/format.h>

#include <cmath>

#include "support/text.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

/// Whether the node is written with numbers, names, + - * and / alone: then it is an affine form or wrong.
bool is_plain(const AstNode& node, const std::function<bool(const std::string&)>& is_array) {
    if (std::holds_alternative<AstNumber>(node.v)) return true;
    if (const auto* n = std::get_if<AstName>(&node.v)) return !is_array(n->name);
    if (const auto* n = std::get_if<AstUnary>(&node.v))
        return n->op == UnaryOp::neg && is_plain(n->operand[0], is_array);
    const auto* n = std::get_if<AstBinary>(&node.v);
    const bool plain = n && (n->op == BinaryOp::add || n->op == BinaryOp::sub || n->op == BinaryOp::mul ||
                             n->op == BinaryOp::div);
    return plain && is_plain(n->operands[0], is_array) && is_plain(n->operands[1], is_array);
}

/// Made of numbers and sizes.
bool is_fixed(const Expr& e) { return free_axes(e).empty() && read_arrays(e).empty(); }

constexpr const char* what_an_index_is =
    "a sum of axes with whole factors such as 2*i + w - 1, a quotient i // 16 or i % 16, or an element of an integer "
    "array";

}  // namespace

Index Elaborator::lower_index(const AstNode& node, const Frame& frame) {
    const std::size_t before = errors();
    const Expr coordinate = lower_coordinate(node, frame);
    if (errors() > before) return Affine{};
    return Index::of(coordinate);
}

/// An index as an expression. What is plain in it is an affine form, and checked as one.
Expr Elaborator::lower_coordinate(const AstNode& node, const Frame& frame) {
    const Expr nothing = constant(0);
    if (is_plain(node, [&](const std::string& name) { return is_array(name); }))
        return Index(lower_affine(node, frame)).value();
    if (diagnostics_.full()) {
        diagnostics_.again();
        return nothing;
    }
    const bool is_element = std::holds_alternative<AstIndexed>(node.v) || std::holds_alternative<AstName>(node.v);
    if (is_element) {
        const std::size_t before = errors();
        const Expr element = lower(node, frame);
        if (errors() > before) return nothing;
        const auto* r = as<Read>(element);
        if (r && !is_float(d_.array(r->array).type)) return element;
        if (r) {
            const Array& array = d_.array(r->array);
            error(Code::array_as_index, node.range,
                  fmt::format("{} is {}, and an index is a whole number", array.name, name(array.type)),
                  "an element of an integer array", fmt::format("declare it so: {}: i32", array_text(r->array)));
        }
        return nothing;
    }
    if (const auto* n = std::get_if<AstUnary>(&node.v); n && n->op == UnaryOp::neg)
        return unary(UnaryOp::neg, lower_coordinate(n->operand[0], frame));
    if (const auto* n = std::get_if<AstCall>(&node.v)) {
        if (n->name.text == "size") return lower_size(*n, node);
        const bool extremum = n->name.text == "min" || n->name.text == "max";
        if (extremum && takes_arguments(n->name.text, n->arguments.size())) {
            std::vector<Expr> arguments;
            for (const AstNode& argument : n->arguments) arguments.push_back(lower_coordinate(argument, frame));
            return call_scalar_function(n->name.text, arguments);
        }
    }
    const auto* n = std::get_if<AstBinary>(&node.v);
    if (!n || !is_index_operator(n->op)) {
        error(Code::index_not_affine, node.range, "this cannot stand in an index", what_an_index_is);
        return nothing;
    }
    const std::size_t before = errors();
    const Expr a = lower_coordinate(n->operands[0], frame), b = lower_coordinate(n->operands[1], frame);
    if (errors() > before) return nothing;
    const auto* number = as<Constant>(b);
    if ((n->op == BinaryOp::floor_div || n->op == BinaryOp::mod) && (!is_fixed(b) || (number && number->value < 1))) {
        error(Code::bad_divisor, n->operands[1].range,
              number ? fmt::format("{} {} in an index", name(n->op), number->value)
                     : fmt::format("{} by a coordinate or an element in an index", name(n->op)),
              "a whole number of at least 1, or a size such as size(k)");
        return nothing;
    }
    if (n->op == BinaryOp::mul && !is_fixed(a) && !is_fixed(b)) {
        error(Code::index_not_affine, node.range, "a product of coordinates or elements as an index", what_an_index_is,
              "one of the factors must be a number or a size");
        return nothing;
    }
    if (n->op == BinaryOp::div && (!is_fixed(a) || !is_fixed(b))) {
        error(Code::index_not_integer, node.range, "a fraction of a coordinate or an element as an index",
              "whole numbers", "// divides and rounds down: i // 2");
        return nothing;
    }
    return binary(n->op, a, b);
}

Affine Elaborator::lower_affine(const AstNode& node, const Frame& frame) {
    // Coefficients are reckoned as doubles, exact far beyond any size, and must be whole in the end.
    struct Linear {
        std::map<AxisId, double> terms;
        double constant = 0;
        bool good = true;
    };
    if (diagnostics_.full()) {
        diagnostics_.again();
        return {};
    }
    const std::size_t before = errors();
    std::function<Linear(const AstNode&)> walk = [&](const AstNode& e) -> Linear {
        if (const auto* n = std::get_if<AstNumber>(&e.v)) return {{}, n->value, true};
        if (const auto* n = std::get_if<AstName>(&e.v)) {
            if (is_array(n->name)) {
                error(Code::array_as_index, e.range, fmt::format("{} is an array; an index is made of axes", n->name),
                      "an axis, or a sum of axes and whole numbers");
            } else if (!axis_names_.contains(n->name)) {
                std::vector<std::string> bound = names_of(d_.axes, frame.bound);
                error(Code::unknown_axis, e.range, fmt::format("there is no axis {}", n->name),
                      "an index of the left-hand side, or an axis under a reduction",
                      did_you_mean(n->name, bound, did_you_mean(n->name, axis_names())));
            } else {
                const AxisId id = axis(n->name);
                if (contains(frame.bound, id)) return {{{id, 1}}, 0, true};
                if (!unbound_.insert(id).second) {
                    diagnostics_.again();
                    return {{}, 0, false};
                }
                std::string bound = join(names_of(d_.axes, frame.bound), ", ");
                error(Code::unbound_index, e.range, fmt::format("the index {} is bound by nothing", n->name),
                      bound.empty() ? "a reduction over it" : fmt::format("one of {}", bound),
                      fmt::format(
                          "sum({0}) … consumes it; among the indices on the left it stays; its size is size({0})", n->name));
            }
            return {{}, 0, false};
        }
        if (const auto* n = std::get_if<AstUnary>(&e.v); n && n->op == UnaryOp::neg) {
            Linear a = walk(n->operand[0]);
            for (auto& [id, c] : a.terms) c = -c;
            a.constant = -a.constant;
            return a;
        }
        if (const auto* n = std::get_if<AstBinary>(&e.v)) {
            const bool sum = n->op == BinaryOp::add || n->op == BinaryOp::sub;
            if (sum || n->op == BinaryOp::mul || n->op == BinaryOp::div) {
                Linear a = walk(n->operands[0]);
                const Linear b = walk(n->operands[1]);
                if (!a.good || !b.good) return {{}, 0, false};
                if (sum) {
                    const double sign = n->op == BinaryOp::add ? 1 : -1;
                    for (const auto& [id, c] : b.terms) a.terms[id] += sign * c;
                    a.constant += sign * b.constant;
                    return a;
                }
                const bool product = n->op == BinaryOp::mul;
                if (b.terms.empty() || (product && a.terms.empty())) {
                    Linear out = b.terms.empty() ? a : b;
                    const double factor = b.terms.empty() ? (product ? b.constant : 1 / b.constant) : a.constant;
                    for (auto& [id, c] : out.terms) c *= factor;
                    out.constant *= factor;
                    return out;
                }
                error(Code::index_not_affine, e.range,
                      product ? "a product of axes as an index" : "a quotient by an axis as an index",
                      "a sum of axes with whole factors, such as 2*i + w - 1",
                      product ? "factors must be numbers or sizes such as size(k)" : "divisors must be numbers");
                return {{}, 0, false};
            }
        }
        return {{}, 0, false};
    };
    const Linear linear = walk(node);
    Affine out;
    if (!linear.good || errors() > before) return out;
    const auto whole = [&](double c) {
        if (c != std::floor(c)) {
            error(Code::index_not_integer, node.range,
                  std::isfinite(c) ? fmt::format("the index has the factor or offset {}", c) : "the index is not finite",
                  "whole numbers", "// divides and rounds down: i // 2");
            return std::int64_t{0};
        }
        if (std::abs(c) > 1e15) {
            error(Code::index_too_large, node.range, fmt::format("the index has the factor or offset {}", c),
                  "at most 1e15");
            return std::int64_t{0};
        }
        return static_cast<std::int64_t>(c);
    };
    for (const auto& [id, c] : linear.terms) out.add(id, whole(c));
    out.constant = whole(linear.constant);
    return out;
}

}  // namespace napkin
