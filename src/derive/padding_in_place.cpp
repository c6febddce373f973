#include "derive/padding_in_place.hpp"

#include <array>
#include <utility>

#include "algebra/linear_terms.hpp"
#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// What is not negative where the comparison of whole numbers holds; none: it is another expression.
std::optional<LinearTerms> not_negative(const Expr& condition) {
    const auto* n = as<Binary>(condition);
    if (!n) return std::nullopt;
    const bool is_above = n->op == BinaryOp::ge || n->op == BinaryOp::gt,
               is_below = n->op == BinaryOp::le || n->op == BinaryOp::lt;
    if (!is_above && !is_below) return std::nullopt;
    LinearTerms out;
    out.add(n->a, is_above ? 1 : -1), out.add(n->b, is_above ? -1 : 1);
    if (n->op == BinaryOp::gt || n->op == BinaryOp::lt) out.add(integer_constant(1), -1);
    return out;
}

bool is_same(LinearTerms a, const Expr& b) {
    a.add(b, -1);
    return a.is_zero();
}

/// Whether the condition says that an index of the read is inside of its dimension, at one end, and no more.
bool is_inside(const Diagram& d, const Read& r, const Expr& condition) {
    const auto form = not_negative(condition);
    if (!form) return false;
    const std::vector<AxisId>& axes = d.array(r.array).axes;
    for (std::size_t i = 0; i < r.indices.size(); ++i) {
        const Expr index = r.indices[i].value(), one = integer_constant(1);
        const auto below = [&](const Expr& size) {
            return binary(BinaryOp::sub, binary(BinaryOp::sub, size, one), index);
        };
        const auto& size = d.axis(axes[i]).size;
        const auto number = size ? size->as_constant() : std::nullopt;
        if (is_same(*form, index) || is_same(*form, below(axis_size(axes[i]))) ||
            (number && is_same(*form, below(integer_constant(number->numerator())))))
            return true;
    }
    return false;
}

/// The read that the map has where it is inside, and zeros where it is not; null: the map is another one.
const Read* padded_read(const Diagram& d, const Kernel& kernel, const Statement& map) {
    if (map.reduce || map.carry) return nullptr;
    std::vector<Expr> conditions;
    Expr inner = map.body;
    while (const Select* outside = zero_elsewhere(inner))
        append(conditions, conditions_in(outside->condition)), inner = outside->a;
    const auto* r = as<Read>(inner);
    const bool is_padded = r && !conditions.empty() && contains(kernel.inputs, r->array) &&
                           all_of(conditions, [&](const Expr& c) { return is_inside(d, *r, c); });
    return is_padded ? r : nullptr;
}

/// Whether the statement reads the array as a factor of a sum of products alone, or not at all.
bool multiplies_alone(const Statement& s, ArrayId array) {
    const auto reads = [&](const Expr& e) { return e && contains(read_arrays(e), array); };
    if (reads(s.carry)) return false;
    if (!reads(s.body)) return true;
    const Binary* product = s.reduce == ReduceOp::sum ? as_product(s.body) : nullptr;
    if (!product) return false;
    return all_of(std::array{product->a, product->b},
                  [&](const Expr& factor) { return !reads(factor) || as<Read>(factor); });
}

void replace(Kernel& kernel, ArrayId map, const Read& with, const Diagram& d) {
    const Expr from = read_self(d, map), to = read(with.array, with.indices);
    const auto replaced = [&](const Expr& e) {
        return e ? transform(e, [&](const Expr& node) { return equal(node, from) ? to : node; }) : e;
    };
    for (Stage& stage : kernel.stages) {
        std::erase_if(statements_of(stage), [&](const Statement& s) { return s.target == map; });
        for (Statement& s : statements_of(stage)) s.body = replaced(s.body);
    }
    for (Fold& fold : kernel.folds)
        for (FoldState& state : fold.states) state.body = replaced(state.body);
}

/// Moves the kernel's padded reads to its products. Whether there are any.
bool move_padded_reads(Kernel& kernel, const Diagram& d) {
    std::vector<Statement> maps;
    for_each_statement(kernel, [&](const Statement& s) {
        bool is_factor = padded_read(d, kernel, s) != nullptr && !contains(kernel.outputs, s.target);
        for_each_statement(kernel,
                           [&](const Statement& other) { is_factor = is_factor && multiplies_alone(other, s.target); });
        if (is_factor) maps.push_back(s);
    });
    for (const Statement& map : maps) {
        const Read& r = *padded_read(d, kernel, map);
        if (!contains(kernel.zero_outside, r.array)) kernel.zero_outside.push_back(r.array);
        replace(kernel, map.target, r, d);
    }
    return !maps.empty();
}

}  // namespace

std::optional<Derived> with_padding_in_place(const Derived& derived) {
    Derived out = derived;
    bool has_any = false;
    for (Kernel& kernel : out.kernels) has_any = move_padded_reads(kernel, out.diagram) || has_any;
    return has_any ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace napkin
