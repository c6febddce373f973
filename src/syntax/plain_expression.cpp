#include "syntax/plain_expression.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/ranges.hpp"
#include "syntax/builtins.hpp"

namespace napkin {
namespace {

template <class Id>
Id place_of(std::string_view name, const std::vector<std::string>& names) {
    const auto found = find(names, name);
    return found == names.end() ? Id() : Id::of(found - names.begin());
}

class PlainExpression {
public:
    PlainExpression(const NameTable& names, Diagnostics& diagnostics) : names_(names), diagnostics_(diagnostics) {}

    Expr read(const AstNode& node) {
        return std::visit([&](const auto& n) { return read_node(n, node); }, node.v);
    }

private:
    Expr fail(Code code, const AstNode& node, std::string message, std::string expected, std::string hint = "") {
        diagnostics_.error(code, node.range, std::move(message), std::move(expected), std::move(hint));
        return constant(0);
    }

    static Expr read_node(const AstNumber& n, const AstNode&) {
        if (n.integer && n.whole != 0) return integer_constant(n.whole);
        return constant(n.value);
    }
    Expr read_node(const AstName& n, const AstNode& node) {
        if (const AxisId axis = names_.axis(n.name); axis >= 0) return axis_index(axis);
        if (const ArrayId array = names_.array(n.name); array >= 0) return napkin::read(array, {});
        return fail(Code::unknown_name, node, fmt::format("no variable or axis is called {}", n.name), "",
                    did_you_mean(n.name, names_.arrays));
    }
    Expr read_node(const AstIndexed& n, const AstNode& node) {
        const ArrayId array = names_.array(n.name.text);
        if (array < 0)
            return fail(Code::unknown_array, node, fmt::format("no variable is called {}", n.name.text), "",
                        did_you_mean(n.name.text, names_.arrays));
        return napkin::read(array, plain_indices(n.indices, names_, diagnostics_));
    }
    Expr read_node(const AstCall& n, const AstNode& node) {
        const std::string& word = n.name.text;
        if (word == "size" && n.arguments.size() == 1) {
            const auto* name = std::get_if<AstName>(&n.arguments[0].v);
            if (const AxisId axis = name ? names_.axis(name->name) : AxisId(); axis >= 0) return axis_size(axis);
            return fail(Code::unknown_axis, n.arguments[0], "size takes an axis", "the name of an axis");
        }
        if (!is_scalar_function(word))
            return fail(Code::unknown_function, node, fmt::format("there is no function {}", word), "");
        if (!takes_arguments(word, n.arguments.size()))
            return fail(Code::argument_count, node, fmt::format("{} is given {} arguments", word, n.arguments.size()),
                        std::to_string(count_arguments(word)));
        std::vector<Expr> arguments;
        for (const AstNode& argument : n.arguments) arguments.push_back(read(argument));
        return call_scalar_function(word, arguments);
    }
    Expr read_node(const AstUnary& n, const AstNode&) { return unary(n.op, read(n.operand[0])); }
    Expr read_node(const AstBinary& n, const AstNode&) {
        Expr a = read(n.operands[0]);
        return binary(n.op, std::move(a), read(n.operands[1]));
    }
    template <class Other>
    Expr read_node(const Other&, const AstNode& node) {
        return fail(Code::expected_expression, node, "this is no value here",
                    "axes, numbers, elements, operators and functions of numbers");
    }

    const NameTable& names_;
    Diagnostics& diagnostics_;
};

}  // namespace

AxisId NameTable::axis(std::string_view name) const { return place_of<AxisId>(name, axes); }
ArrayId NameTable::array(std::string_view name) const { return place_of<ArrayId>(name, arrays); }

Expr plain_expression(const AstNode& node, const NameTable& names, Diagnostics& diagnostics) {
    return PlainExpression(names, diagnostics).read(node);
}

std::vector<Index> plain_indices(const std::vector<AstNode>& nodes, const NameTable& names, Diagnostics& diagnostics) {
    std::vector<Index> indices;
    for (const AstNode& node : nodes) {
        const Expr value = plain_expression(node, names, diagnostics);
        const bool good = is_index(value);
        if (!good)
            diagnostics.error(Code::index_not_affine, node.range, "this cannot be an index",
                              "axes, whole numbers and elements with + - * // %");
        indices.push_back(good ? Index::of(value) : Index(Affine{}));
    }
    return indices;
}

}  // namespace napkin
