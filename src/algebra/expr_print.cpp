// Expressions as text, in the language's syntax. Precedence, from loose to tight:
//   or < and < not < comparison (of two) < + - < * / // % < unary minus < ^ (to the right) < operand
// A minus sign directly before a numeral, inf or nan belongs to the constant: -2 is a constant, -(2) the negation of
// one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "algebra/expr.hpp"
#include "algebra/number.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

enum Precedence : int { loosest, p_or, p_and, p_not, p_compare, p_sum, p_product, p_minus, p_power, p_operand };

int precedence(BinaryOp op) {
    if (is_comparison(op)) return p_compare;
    switch (op) {
        case BinaryOp::logical_or: return p_or;
        case BinaryOp::logical_and: return p_and;
        case BinaryOp::pow: return p_power;
        case BinaryOp::min:
        case BinaryOp::max: return p_operand;
        default: return op <= BinaryOp::sub ? p_sum : p_product;
    }
}

int precedence(const ExprNode& node) {
    if (const auto* n = std::get_if<Constant>(&node.v)) return std::signbit(n->value) ? p_minus : p_operand;
    if (const auto* n = std::get_if<Binary>(&node.v)) return precedence(n->op);
    if (const auto* n = std::get_if<Unary>(&node.v)) {
        if (n->op == UnaryOp::neg) return p_minus;
        if (n->op == UnaryOp::logical_not) return p_not;
    }
    return p_operand;
}

std::string print_constant(const Constant& c) {
    const double value = c.value;
    if (c.correction != 0) return fmt::format("{}", *whole_of(c));
    if (value != value) return std::signbit(value) ? "-nan" : "nan";
    return fmt::format("{}", value);  // the shortest digits that read back as the same double
}

/// Prints with a stack of its own: what is still to be written, next thing last.
class Printer {
public:
    explicit Printer(const ExprNames& names) : names_(names) {}

    std::string print(const Expr& e, int least) {
        expr(e, least);
        while (!pending_.empty()) {
            const Item item = pending_.back();
            pending_.pop_back();
            if (!item.node) {
                out_ += item.text;
                continue;
            }
            const std::size_t mark = pending_.size();
            const bool parentheses = item.parentheses || precedence(*item.node) < item.least;
            if (parentheses) text("(");
            write(*item.node);
            if (parentheses) text(")");
            std::reverse(pending_.begin() + static_cast<std::ptrdiff_t>(mark), pending_.end());
        }
        return std::move(out_);
    }

private:
    struct Item {
        const ExprNode* node;
        int least;         ///< looser expressions go into parentheses
        bool parentheses;  ///< whatever it is
        std::string text;
    };

    void text(std::string_view what) { pending_.push_back({nullptr, 0, false, std::string(what)}); }
    void expr(const Expr& e, int least, bool parentheses = false) {
        pending_.push_back({e.get(), least, parentheses, {}});
    }
    void call(std::string_view function, std::initializer_list<const Expr*> arguments) {
        text(function);
        text("(");
        bool first = true;
        for (const Expr* argument : arguments) {
            if (!first) text(", ");
            first = false;
            expr(*argument, loosest);
        }
        text(")");
    }

    void write(const ExprNode& node) {
        std::visit([this](const auto& n) { write_node(n); }, node.v);
    }
    void write_node(const Constant& n) { text(print_constant(n)); }
    void write_node(const AxisIndex& n) { text(names_.axis(n.axis)); }
    void write_node(const AxisSize& n) { text("size(" + names_.axis(n.axis) + ")"); }
    void write_node(const Read& n) {
        std::string result = names_.array(n.array);
        for (std::size_t i = 0; i < n.indices.size(); ++i) {
            result += (i == 0 ? "[" : ", ") + to_string(n.indices[i], names_);
        }
        text(n.indices.empty() ? result : result + "]");
    }
    void write_node(const Unary& n) {
        if (n.op == UnaryOp::neg) {
            text("-");
            expr(n.a, p_minus, as<Constant>(n.a) != nullptr);
        } else if (n.op == UnaryOp::logical_not) {
            text("not ");
            expr(n.a, p_not);
        } else {
            call(name(n.op), {&n.a});
        }
    }
    void write_node(const Binary& n) {
        const int own = precedence(n.op);
        if (own == p_operand) {
            text(name(n.op));
            text("(");
            // max(i, j) over bare axes would read as a reduction over them.
            expr(n.a, loosest, as<AxisIndex>(n.a) && as<AxisIndex>(n.b));
            text(", ");
            expr(n.b, loosest);
            text(")");
            return;
        }
        // Operators of one level group to the left, ^ to the right with a possibly signed exponent, comparisons not at
        // all.
        const int left = own == p_compare || own == p_power ? own + 1 : own;
        const int right = own == p_power ? static_cast<int>(p_minus) : own + 1;
        expr(n.a, left);
        text(own == p_power ? std::string(name(n.op)) : fmt::format(" {} ", name(n.op)));
        expr(n.b, right);
    }
    void write_node(const Select& n) { call("where", {&n.condition, &n.a, &n.b}); }
    void write_node(const Cast& n) { call(name(n.type), {&n.a}); }

    const ExprNames& names_;
    std::vector<Item> pending_;
    std::string out_;
};

}  // namespace

std::string to_string(const Expr& e, const ExprNames& names, bool as_factor) {
    return Printer(names).print(e, as_factor ? p_product : loosest);
}

std::string to_string(const Affine& a, const ExprNames& names) {
    std::string out;
    const auto add = [&](std::int64_t factor, const std::string& what) {
        const bool negative = factor < 0;
        const std::int64_t magnitude = negative ? -factor : factor;
        if (!out.empty()) {
            out += negative ? " - " : " + ";
        } else if (negative) {
            out += "-";
        }
        if (what.empty()) {
            out += std::to_string(magnitude);
        } else {
            out += magnitude == 1 ? what : std::to_string(magnitude) + "*" + what;
        }
    };
    for (const auto& [axis, factor] : a.terms) add(factor, names.axis(axis));
    if (a.constant != 0 || a.terms.empty()) add(a.constant, "");
    return out;
}

std::string to_string(const Index& index, const ExprNames& names) {
    return index.affine() ? to_string(*index.affine(), names) : to_string(*index.expression(), names);
}

}  // namespace napkin
