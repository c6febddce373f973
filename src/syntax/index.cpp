// Indices: sums of axes with whole factors.
#include <fmt/format.h>

#include <cmath>

#include "syntax/elaborator.hpp"

namespace napkin {

Affine Elaborator::lower_index(const AstNode& node, const Frame& frame) {
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
                std::vector<std::string> bound;
                for (const AxisId id : frame.bound) bound.push_back(d_.axis(id).name);
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
                std::string bound;
                for (const AxisId b : frame.bound) bound += (bound.empty() ? "" : ", ") + d_.axis(b).name;
                error(Code::unbound_index, e.range, fmt::format("the index {} is bound by nothing", n->name),
                      bound.empty() ? "a reduction over it" : fmt::format("one of {}", bound),
                      fmt::format("sum({}) … consumes it; among the indices on the left it stays", n->name));
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
                      "factors must be numbers; a size cannot stand in an index");
                return {{}, 0, false};
            }
        }
        if (std::holds_alternative<AstIndexed>(e.v)) {
            error(Code::array_as_index, e.range, "an element of an array as an index",
                  "a sum of axes with whole factors, such as 2*i + w - 1",
                  "reads at places that data decide are not part of the language");
        } else {
            error(Code::index_not_affine, e.range, "this cannot stand in an index",
                  "a sum of axes with whole factors, such as 2*i + w - 1");
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
                  "whole numbers");
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
