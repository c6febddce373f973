#include "algebra/expr.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "algebra/expr_walk.hpp"
#include "support/limits.hpp"
#include "support/result.hpp"

namespace napkin {

// ---- construction ----------------------------------------------------------------------------------------------------------

namespace {

std::size_t mix(std::size_t seed, std::size_t value) {
    // The 64-bit finaliser of MurmurHash3 over the running hash.
    std::uint64_t h = seed * 0x9E3779B97F4A7C15ULL + value + 1;
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDULL;
    h ^= h >> 33;
    return static_cast<std::size_t>(h);
}

struct HashNode {
    std::size_t operator()(const Constant& n) const { return mix(1, std::bit_cast<std::uint64_t>(n.value)); }
    std::size_t operator()(const AxisIndex& n) const { return mix(2, static_cast<std::size_t>(n.axis)); }
    std::size_t operator()(const AxisSize& n) const { return mix(3, static_cast<std::size_t>(n.axis)); }
    std::size_t operator()(const Read& n) const {
        std::size_t h = mix(4, static_cast<std::size_t>(n.array));
        for (const Index& index : n.indices) {
            if (const Expr* value = index.expression()) {
                h = mix(h, (*value)->hash);
                continue;
            }
            h = mix(h, static_cast<std::size_t>(index.affine()->constant));
            for (const auto& [axis, factor] : index.affine()->terms) {
                h = mix(mix(h, static_cast<std::size_t>(axis)), static_cast<std::size_t>(factor));
            }
        }
        return h;
    }
    std::size_t operator()(const Unary& n) const { return mix(mix(5, static_cast<std::size_t>(n.op)), n.a->hash); }
    std::size_t operator()(const Binary& n) const {
        return mix(mix(mix(6, static_cast<std::size_t>(n.op)), n.a->hash), n.b->hash);
    }
    std::size_t operator()(const Select& n) const { return mix(mix(mix(7, n.condition->hash), n.a->hash), n.b->hash); }
    std::size_t operator()(const Cast& n) const { return mix(mix(8, static_cast<std::size_t>(n.type)), n.a->hash); }
};

/// Frees nodes one after the other: a child whose last owner dies while another node is being freed waits its turn, so a deep tree
/// needs no deep stack.
struct FreeNode {
    void operator()(const ExprNode* node) const {
        static thread_local std::vector<const ExprNode*>* waiting = nullptr;  // a plain pointer: static expressions die late
        if (waiting) {
            waiting->push_back(node);
            return;
        }
        std::vector<const ExprNode*> nodes;
        waiting = &nodes;
        delete node;
        while (!nodes.empty()) {
            const ExprNode* next = nodes.back();
            nodes.pop_back();
            delete next;
        }
        waiting = nullptr;
    }
};

Expr make(ExprNode::Variant v) {
    const std::size_t hash = std::visit(HashNode{}, v);
    return {new ExprNode{std::move(v), hash}, FreeNode{}};
}

}  // namespace

Expr constant(double value) { return make(Constant{value}); }
Expr axis_index(AxisId axis) { return make(AxisIndex{axis}); }
Expr axis_size(AxisId axis) { return make(AxisSize{axis}); }
Expr read(ArrayId array, std::vector<Index> indices) { return make(Read{array, std::move(indices)}); }
Expr unary(UnaryOp op, Expr a) { return make(Unary{op, std::move(a)}); }
Expr binary(BinaryOp op, Expr a, Expr b) { return make(Binary{op, std::move(a), std::move(b)}); }
Expr select(Expr condition, Expr a, Expr b) { return make(Select{std::move(condition), std::move(a), std::move(b)}); }
Expr cast(DType type, Expr a) { return make(Cast{type, std::move(a)}); }

// ---- equality --------------------------------------------------------------------------------------------------------------

namespace {

/// Equality of two nodes but for their children.
bool same_head(const ExprNode& a, const ExprNode& b) {
    if (a.hash != b.hash || a.v.index() != b.v.index()) return false;
    if (const auto* x = std::get_if<Constant>(&a.v)) {
        return std::bit_cast<std::uint64_t>(x->value) == std::bit_cast<std::uint64_t>(std::get<Constant>(b.v).value);
    }
    if (const auto* x = std::get_if<AxisIndex>(&a.v)) return x->axis == std::get<AxisIndex>(b.v).axis;
    if (const auto* x = std::get_if<AxisSize>(&a.v)) return x->axis == std::get<AxisSize>(b.v).axis;
    if (const auto* x = std::get_if<Read>(&a.v)) {
        const auto& y = std::get<Read>(b.v);
        return x->array == y.array && x->indices == y.indices;
    }
    if (const auto* x = std::get_if<Unary>(&a.v)) return x->op == std::get<Unary>(b.v).op;
    if (const auto* x = std::get_if<Binary>(&a.v)) return x->op == std::get<Binary>(b.v).op;
    if (const auto* x = std::get_if<Cast>(&a.v)) return x->type == std::get<Cast>(b.v).type;
    return true;
}

struct PairHash {
    std::size_t operator()(const std::pair<const ExprNode*, const ExprNode*>& p) const {
        return mix(std::hash<const void*>()(p.first), std::hash<const void*>()(p.second));
    }
};

}  // namespace

bool equal(const Expr& a, const Expr& b) {
    if (a == b) return true;
    if (!a || !b || !same_head(*a, *b)) return false;
    std::vector<std::pair<const ExprNode*, const ExprNode*>> pending{{a.get(), b.get()}};
    // Two separately built graphs with much sharing have more paths than nodes: past a few comparisons, remember the pairs.
    std::unordered_set<std::pair<const ExprNode*, const ExprNode*>, PairHash> seen;
    for (std::size_t compared = 0; !pending.empty(); ++compared) {
        const auto [left, right] = pending.back();
        pending.pop_back();
        const auto push = [&](const Expr& x, const Expr& y) {
            if (x == y) return true;
            if (!same_head(*x, *y)) return false;
            if (compared > 100 && !seen.insert({x.get(), y.get()}).second) return true;
            pending.emplace_back(x.get(), y.get());
            return true;
        };
        bool same = true;
        if (const auto* x = std::get_if<Unary>(&left->v)) {
            same = push(x->a, std::get<Unary>(right->v).a);
        } else if (const auto* c = std::get_if<Cast>(&left->v)) {
            same = push(c->a, std::get<Cast>(right->v).a);
        } else if (const auto* y = std::get_if<Binary>(&left->v)) {
            const auto& z = std::get<Binary>(right->v);
            same = push(y->a, z.a) && push(y->b, z.b);
        } else if (const auto* s = std::get_if<Select>(&left->v)) {
            const auto& t = std::get<Select>(right->v);
            same = push(s->condition, t.condition) && push(s->a, t.a) && push(s->b, t.b);
        }
        if (!same) return false;
    }
    return true;
}

// ---- walking ---------------------------------------------------------------------------------------------------------------

std::vector<Expr> children(const Expr& e) {
    std::vector<Expr> result;
    for_each_child(*e, [&](const Expr& child) { result.push_back(child); });
    return result;
}

Expr with_children(const Expr& e, std::vector<Expr> replacement) {
    std::size_t count = 0;
    for_each_child(*e, [&](const Expr&) { ++count; });
    internal_check(replacement.size() == count, "with_children: wrong number of children");
    if (const auto* n = as<Unary>(e)) return unary(n->op, std::move(replacement[0]));
    if (const auto* n = as<Binary>(e)) return binary(n->op, std::move(replacement[0]), std::move(replacement[1]));
    if (as<Select>(e)) return select(std::move(replacement[0]), std::move(replacement[1]), std::move(replacement[2]));
    if (const auto* n = as<Cast>(e)) return cast(n->type, std::move(replacement[0]));
    if (const auto* n = as<Read>(e); n && count > 0) {
        std::vector<Index> indices = n->indices;
        std::size_t next = 0;
        for (Index& index : indices)
            if (!index.affine()) index = Index::of(replacement[next++]);
        return read(n->array, std::move(indices));
    }
    return e;
}

Expr transform(const Expr& e, const std::function<Expr(const Expr&)>& f) {
    std::unordered_map<const ExprNode*, Expr> rewritten;
    for_each_postorder(e, [&](const Expr& node) {
        bool changed = false;
        std::vector<Expr> kids;
        for_each_child(*node, [&](const Expr& child) {
            kids.push_back(rewritten.at(child.get()));
            changed = changed || kids.back() != child;
        });
        rewritten[node.get()] = f(changed ? with_children(node, std::move(kids)) : node);
    });
    return rewritten.at(e.get());
}

void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
    std::unordered_set<const ExprNode*> seen;
    std::vector<const Expr*> pending{&e};
    std::vector<const Expr*> kids;
    while (!pending.empty()) {
        const Expr* node = pending.back();
        pending.pop_back();
        if (!seen.insert(node->get()).second) continue;
        f(*node);
        kids.clear();
        for_each_child(**node, [&](const Expr& child) { kids.push_back(&child); });
        pending.insert(pending.end(), kids.rbegin(), kids.rend());
    }
}

// ---- questions -------------------------------------------------------------------------------------------------------------

std::vector<AxisId> free_axes(const Expr& e) {
    std::set<AxisId> axes;
    visit(e, [&](const Expr& node) {
        if (const auto* index = as<AxisIndex>(node)) axes.insert(index->axis);
        if (const auto* r = as<Read>(node)) {
            for (const Index& index : r->indices) {
                if (!index.affine()) continue;  // a child of the read
                for (const auto& term : index.affine()->terms) axes.insert(term.first);
            }
        }
    });
    return {axes.begin(), axes.end()};
}

bool depends_on_axis(const Expr& e, AxisId axis) {
    bool found = false;
    visit(e, [&](const Expr& node) {
        if (const auto* index = as<AxisIndex>(node)) found = found || index->axis == axis;
        if (const auto* r = as<Read>(node)) {
            for (const Index& index : r->indices)
                found = found || (index.affine() && index.affine()->coefficient(axis) != 0);
        }
    });
    return found;
}

bool reads_array(const Expr& e, ArrayId array) {
    bool found = false;
    visit(e, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        found = found || (r && r->array == array);
    });
    return found;
}

std::vector<ArrayId> read_arrays(const Expr& e) {
    std::set<ArrayId> arrays;
    visit(e, [&](const Expr& node) {
        if (const auto* r = as<Read>(node)) arrays.insert(r->array);
    });
    return {arrays.begin(), arrays.end()};
}

std::size_t count_nodes(const Expr& e) {
    constexpr std::size_t many = std::numeric_limits<std::size_t>::max() / 8;
    std::unordered_map<const ExprNode*, std::size_t> counts;
    for_each_postorder(e, [&](const Expr& node) {
        std::size_t count = 1;
        for_each_child(*node, [&](const Expr& child) { count = std::min(many, count + counts.at(child.get())); });
        counts[node.get()] = count;
    });
    return counts.at(e.get());
}

// ---- meaning ---------------------------------------------------------------------------------------------------------------

double apply(UnaryOp op, double a) {
    switch (op) {
        case UnaryOp::neg: return -a;
        case UnaryOp::exp: return std::exp(a);
        case UnaryOp::log: return std::log(a);
        case UnaryOp::tanh: return std::tanh(a);
        case UnaryOp::erf: return std::erf(a);
        case UnaryOp::sqrt: return std::sqrt(a);
        case UnaryOp::rsqrt: return 1.0 / std::sqrt(a);
        case UnaryOp::abs: return std::fabs(a);
        case UnaryOp::logical_not: return a == 0 ? 1 : 0;
        case UnaryOp::sin: return std::sin(a);
        case UnaryOp::cos: return std::cos(a);
        case UnaryOp::floor: return std::floor(a);
    }
    throw InternalError("unknown unary operator");
}

double apply(BinaryOp op, double a, double b) {
    switch (op) {
        case BinaryOp::add: return a + b;
        case BinaryOp::sub: return a - b;
        case BinaryOp::mul: return a * b;
        case BinaryOp::div: return a / b;
        case BinaryOp::floor_div: return std::floor(a / b);
        case BinaryOp::mod: {
            const double rest = std::fmod(a, b);
            return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        }
        case BinaryOp::pow: return std::pow(a, b);
        case BinaryOp::min: return std::isnan(a) || a < b ? a : b;  // a NaN in either place stays
        case BinaryOp::max: return std::isnan(a) || a > b ? a : b;
        case BinaryOp::lt: return a < b ? 1 : 0;
        case BinaryOp::le: return a <= b ? 1 : 0;
        case BinaryOp::gt: return a > b ? 1 : 0;
        case BinaryOp::ge: return a >= b ? 1 : 0;
        case BinaryOp::eq: return a == b ? 1 : 0;
        case BinaryOp::ne: return a != b ? 1 : 0;
        case BinaryOp::logical_and: return a != 0 && b != 0 ? 1 : 0;
        case BinaryOp::logical_or: return a != 0 || b != 0 ? 1 : 0;
    }
    throw InternalError("unknown binary operator");
}

std::string_view name(UnaryOp op) {
    switch (op) {
        case UnaryOp::neg: return "-";
        case UnaryOp::exp: return "exp";
        case UnaryOp::log: return "log";
        case UnaryOp::tanh: return "tanh";
        case UnaryOp::erf: return "erf";
        case UnaryOp::sqrt: return "sqrt";
        case UnaryOp::rsqrt: return "rsqrt";
        case UnaryOp::abs: return "abs";
        case UnaryOp::logical_not: return "not";
        case UnaryOp::sin: return "sin";
        case UnaryOp::cos: return "cos";
        case UnaryOp::floor: return "floor";
    }
    throw InternalError("unknown unary operator");
}

std::string_view name(BinaryOp op) {
    switch (op) {
        case BinaryOp::add: return "+";
        case BinaryOp::sub: return "-";
        case BinaryOp::mul: return "*";
        case BinaryOp::div: return "/";
        case BinaryOp::floor_div: return "//";
        case BinaryOp::mod: return "%";
        case BinaryOp::pow: return "^";
        case BinaryOp::min: return "min";
        case BinaryOp::max: return "max";
        case BinaryOp::lt: return "<";
        case BinaryOp::le: return "<=";
        case BinaryOp::gt: return ">";
        case BinaryOp::ge: return ">=";
        case BinaryOp::eq: return "==";
        case BinaryOp::ne: return "!=";
        case BinaryOp::logical_and: return "and";
        case BinaryOp::logical_or: return "or";
    }
    throw InternalError("unknown binary operator");
}

}  // namespace napkin
