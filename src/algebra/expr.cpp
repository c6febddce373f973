#include "algebra/expr.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "algebra/expr_walk.hpp"
#include "algebra/power.hpp"
#include "algebra/scalar_function.hpp"
#include "support/limits.hpp"
#include "support/result.hpp"

namespace napkin {

// ---- construction
// ------------------------------------------------------------

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
    std::size_t operator()(const Constant& n) const {
        const std::size_t h = mix(1, std::bit_cast<std::uint64_t>(n.value));
        return n.correction == 0 ? h : mix(h, static_cast<std::size_t>(n.correction));
    }
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

/// Equality of two nodes whose children are of the pool, where equal ones are one object.
struct SameNode {
    bool operator()(const ExprNode* a, const ExprNode* b) const {
        return a->hash == b->hash && a->v.index() == b->v.index() &&
               std::visit([&](const auto& n) { return same(n, std::get<std::decay_t<decltype(n)>>(b->v)); }, a->v);
    }
    static bool same(const Constant& a, const Constant& b) {
        return std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value) &&
               a.correction == b.correction;
    }
    static bool same(const AxisIndex& a, const AxisIndex& b) { return a.axis == b.axis; }
    static bool same(const AxisSize& a, const AxisSize& b) { return a.axis == b.axis; }
    static bool same(const Read& a, const Read& b) { return a.array == b.array && a.indices == b.indices; }
    static bool same(const Unary& a, const Unary& b) { return a.op == b.op && a.a == b.a; }
    static bool same(const Binary& a, const Binary& b) { return a.op == b.op && a.a == b.a && a.b == b.b; }
    static bool same(const Select& a, const Select& b) {
        return a.condition == b.condition && a.a == b.a && a.b == b.b;
    }
    static bool same(const Cast& a, const Cast& b) { return a.type == b.type && a.a == b.a; }
};

/// Every node that is alive, each once.
class Pool {
public:
    /// The node that equals this one, which is itself if there is none yet.
    Expr unique(std::unique_ptr<const ExprNode> node);
    void leave(const ExprNode* node) {
        const std::lock_guard lock(mutex_);
        if (const auto found = nodes_.find(node); found != nodes_.end() && *found == node) nodes_.erase(found);
    }

private:
    struct Hash {
        std::size_t operator()(const ExprNode* node) const { return node->hash; }
    };
    std::mutex mutex_;
    std::unordered_set<const ExprNode*, Hash, SameNode> nodes_;
};

Pool& pool() {
    static Pool* const only = new Pool;  // never destroyed: static expressions die late
    return *only;
}

/// Frees nodes one after the other: a child whose last owner dies while another node is being freed waits its turn, so
/// a deep tree needs no deep stack.
struct FreeNode {
    void operator()(const ExprNode* node) const {
        pool().leave(node);
        // a plain pointer: static expressions die late
        static thread_local std::vector<const ExprNode*>* waiting = nullptr;
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

Expr Pool::unique(std::unique_ptr<const ExprNode> node) {
    // No node may lose its last owner under the lock, since removing a node takes the lock too. Copying a weak pointer
    // to const makes no temporary owner. Converting it from const to non-const would make one.
    const std::lock_guard lock(mutex_);
    if (const auto found = nodes_.find(node.get()); found != nodes_.end()) {
        if (Expr alive = (*found)->weak_from_this().lock()) return alive;
        nodes_.erase(found);  // its last owner has gone, and it is about to leave
    }
    Expr made(node.release(), FreeNode{});
    nodes_.insert(made.get());
    return made;
}

template <class Kind>
using Ids = ExprNode::Ids<Kind>;

/// a ∪ b: one of the two where it holds the other.
template <class Kind>
Ids<Kind> united(const Ids<Kind>& a, const Ids<Kind>& b) {
    if (a == b || std::includes(a->begin(), a->end(), b->begin(), b->end())) return a;
    if (std::includes(b->begin(), b->end(), a->begin(), a->end())) return b;
    std::vector<Id<Kind>> out;
    std::set_union(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(out));
    return std::make_shared<const std::vector<Id<Kind>>>(std::move(out));
}

template <class Kind>
Ids<Kind> ids(std::vector<Id<Kind>> list) {
    static const auto none = std::make_shared<const std::vector<Id<Kind>>>();
    return list.empty() ? none : std::make_shared<const std::vector<Id<Kind>>>(std::move(list));
}

/// What a node depends on and reads by itself, without its children.
Ids<AxisKind> own_axes(const ExprNode& node) {
    if (const auto* index = std::get_if<AxisIndex>(&node.v)) return ids(std::vector{index->axis});
    std::set<AxisId> axes;
    if (const auto* r = std::get_if<Read>(&node.v)) {
        for (const Index& index : r->indices) {
            if (!index.affine()) continue;  // a child of the read
            for (const auto& term : index.affine()->terms) axes.insert(term.first);
        }
    }
    return ids(std::vector(axes.begin(), axes.end()));
}
Ids<ArrayKind> own_arrays(const ExprNode& node) {
    const auto* r = std::get_if<Read>(&node.v);
    return ids(r ? std::vector{r->array} : std::vector<ArrayId>());
}

Expr make(ExprNode::Variant v) {
    constexpr std::size_t many = std::numeric_limits<std::size_t>::max() / 8;
    auto node = std::make_unique<ExprNode>(std::move(v));
    node->hash = std::visit(HashNode{}, node->v);
    node->axes = own_axes(*node);
    node->arrays = own_arrays(*node);
    for_each_child(*node, [&](const Expr& child) {
        node->axes = united(node->axes, child->axes);
        node->arrays = united(node->arrays, child->arrays);
        node->tree_size = std::min(many, node->tree_size + child->tree_size);
    });
    return pool().unique(std::move(node));
}

}  // namespace

Expr constant(double value) { return make(Constant{value}); }
Expr integer_constant(std::int64_t value) {
    const auto nearest = static_cast<double>(value);
    return make(Constant{nearest, static_cast<std::int64_t>(value - static_cast<__int128>(nearest))});
}
Expr axis_index(AxisId axis) { return make(AxisIndex{axis}); }
Expr axis_size(AxisId axis) { return make(AxisSize{axis}); }
Expr read(ArrayId array, std::vector<Index> indices) { return make(Read{array, std::move(indices)}); }
Expr read(VariableId variable, std::vector<Index> indices) {
    return read(ArrayId::of(variable.place()), std::move(indices));
}
Expr unary(UnaryOp op, Expr a) { return make(Unary{op, std::move(a)}); }
Expr binary(BinaryOp op, Expr a, Expr b) { return make(Binary{op, std::move(a), std::move(b)}); }
Expr select(Expr condition, Expr a, Expr b) { return make(Select{std::move(condition), std::move(a), std::move(b)}); }
Expr cast(DType type, Expr a) { return make(Cast{type, std::move(a)}); }

// ---- walking
// ------------------------------------------------------------

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
    OfNodes<Expr> rewritten;
    for_each_postorder(e, [&](const Expr& node) {
        bool changed = false;
        for_each_child(*node, [&](const Expr& child) { changed = changed || rewritten.at(child.get()) != child; });
        std::vector<Expr> kids;
        if (changed) for_each_child(*node, [&](const Expr& child) { kids.push_back(rewritten.at(child.get())); });
        rewritten.add(node.get(), f(changed ? with_children(node, std::move(kids)) : node));
    });
    return rewritten.at(e.get());
}

void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
    MetNodes seen;
    std::vector<const Expr*> pending{&e};
    while (!pending.empty()) {
        const Expr* node = pending.back();
        pending.pop_back();
        if (!seen.insert(node->get())) continue;
        f(*node);
        const auto num_others = static_cast<std::ptrdiff_t>(pending.size());
        for_each_child(**node, [&](const Expr& child) { pending.push_back(&child); });
        std::reverse(pending.begin() + num_others, pending.end());
    }
}

// ---- questions
// ------------------------------------------------------------

std::vector<AxisId> free_axes(const Expr& e) { return *e->axes; }
std::vector<ArrayId> read_arrays(const Expr& e) { return *e->arrays; }
std::vector<VariableId> read_variables(const Expr& e) {
    std::vector<VariableId> variables;
    for (const ArrayId id : *e->arrays) variables.push_back(VariableId::of(id.place()));
    return variables;
}
bool depends_on_axis(const Expr& e, AxisId axis) { return std::binary_search(e->axes->begin(), e->axes->end(), axis); }
bool reads_variable(const Expr& e, VariableId variable) { return e && reads_array(e, ArrayId::of(variable.place())); }
bool reads_array(const Expr& e, ArrayId array) {
    return std::binary_search(e->arrays->begin(), e->arrays->end(), array);
}
std::size_t count_nodes(const Expr& e) { return e->tree_size; }

// ---- meaning
// ------------------------------------------------------------

double apply(UnaryOp op, double a) { return scalar_function(op).value(a); }

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
        case BinaryOp::pow: return real_power(a, b);
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

std::string_view name(UnaryOp op) { return scalar_function(op).name; }
std::string_view name(BinaryOp op) {
    // In the order of the operators.
    static constexpr std::string_view names[] = {"+", "-",  "*", "/",  "//", "%",  "^",   "min", "max",
                                                 "<", "<=", ">", ">=", "==", "!=", "and", "or"};
    return names[static_cast<std::size_t>(op)];
}

}  // namespace napkin
