#include "diagram/conversions.hpp"

#include <algorithm>

#include "algebra/number.hpp"
#include "diagram/evaluate.hpp"

namespace napkin {
namespace {

bool is_of_width(Kind kind) { return kind == Kind::i32 || kind == Kind::i64; }

/// The type in which an equation computes real numbers.
DType real_type(const Diagram& d, const Equation& e) {
    bool wide = d.array(e.target).type == DType::f64;
    for (const ArrayId id : read_arrays(e.body)) wide = wide || d.array(id).type == DType::f64;
    return wide ? DType::f64 : DType::f32;
}

/// Casts integers that come from arrays where a real number is computed from them. Coordinates and sizes wrap nowhere
/// and stay. Casts that change nothing are left out.
Expr with_casts(const Expr& e, Kinds& kinds, DType real) {
    return transform(e, [&](const Expr& node) {
        const auto* u = as<Unary>(node);
        const auto* b = as<Binary>(node);
        const auto* s = as<Select>(node);
        const auto* c = as<Cast>(node);
        // What is computed in 32 bits is an i32 already.
        if (c && c->type == DType::i32 && kinds(c->a) == Kind::i32) return c->a;
        if (!u && !b && !s) return node;
        bool is_real = kinds(node) == Kind::real;
        if (b && b->op >= BinaryOp::lt && b->op <= BinaryOp::ne)
            is_real = kinds(b->a) == Kind::real || kinds(b->b) == Kind::real;
        if (!is_real) return node;
        std::vector<Expr> parts = children(node);
        for (Expr& part : parts) {
            const bool is_condition = s && &part == &parts.front();
            if (!is_condition && is_of_width(kinds(part)) && !read_arrays(part).empty()) part = cast(real, part);
        }
        return with_children(node, std::move(parts));
    });
}

/// Whether each value of the integer expression is one that the type has, by its form.
bool stays_in(const Expr& e, DType type, const Diagram& d) {
    const auto within = [&](DType other) {
        return !is_float(other) && is_in_range(type, facts(other).least) && is_in_range(type, facts(other).most);
    };
    if (const auto* c = as<Constant>(e)) {
        const auto n = whole_of(*c);
        return n && is_in_range(type, *n);
    }
    if (const auto* r = as<Read>(e)) return within(d.array(r->array).type);
    if (const auto* c = as<Cast>(e)) return within(c->type);
    if (const auto* s = as<Select>(e)) return stays_in(s->a, type, d) && stays_in(s->b, type, d);
    if (const auto* u = as<Unary>(e)) return u->op == UnaryOp::logical_not;
    const auto* b = as<Binary>(e);
    if (!b) return false;
    if (b->op == BinaryOp::min || b->op == BinaryOp::max) return stays_in(b->a, type, d) && stays_in(b->b, type, d);
    return is_comparison(b->op) || b->op == BinaryOp::logical_and || b->op == BinaryOp::logical_or;
}

}  // namespace

Diagram with_conversions(const Diagram& diagram) {
    Diagram out = diagram;
    out.equations.clear();
    Kinds kinds([&out](ArrayId id) { return out.array(id).type; });
    for (Equation e : diagram.equations) {
        const DType real = real_type(out, e), wanted = out.array(e.target).type;
        e.body = with_casts(e.body, kinds, real);
        const Kind body = kinds(e.body), target = kind_of(wanted);
        const bool order_matters = e.reduce == ReduceOp::max || e.reduce == ReduceOp::min;
        const bool is_narrow = is_narrow_integer(wanted), is_truth = facts(wanted).kind == DTypeKind::truth;
        const bool stays = is_narrow && is_integer(body) && stays_in(e.body, wanted, out);
        // What is summed up or multiplied needs more room than its terms, and an extremum of truths begins at none of
        // them.
        const bool has_room = !is_narrow || (stays && (!e.reduce || (order_matters && !is_truth)));
        if (has_room && (body == target || body == Kind::whole)) {
            out.equations.push_back(std::move(e));
            continue;
        }
        if (!e.reduce || (is_integer(body) && is_integer(target) && !order_matters && !is_narrow)) {
            e.body = cast(wanted, e.body);
            out.equations.push_back(std::move(e));
            continue;
        }
        // What is accumulated keeps the kind of the body, and is converted once.
        const DType accumulated = body == Kind::real                   ? real
                                  : is_truth && order_matters && stays ? DType::u8
                                  : order_matters                      ? (body == Kind::i64 ? DType::i64 : DType::i32)
                                  : is_narrow                          ? DType::i32
                                                                       : DType::i64;
        const Array& array = out.array(e.target);
        const ArrayId total = add_array(out, array.name + "_" + std::string(name(*e.reduce)), array.axes, accumulated,
                                        ArrayRole::temporary);
        out.arrays[total].range = out.array(e.target).range;
        Equation convert = e;
        convert.reduce.reset();
        convert.reduce_axes.clear();
        convert.body = cast(wanted, read_self(out, total));
        e.target = total;
        if (is_integer(body) && kind_of(accumulated) != body) e.body = cast(accumulated, e.body);
        out.equations.push_back(std::move(e));
        out.equations.push_back(std::move(convert));
    }
    return out;
}

}  // namespace napkin
