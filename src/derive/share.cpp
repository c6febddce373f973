#include "derive/share.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace napkin {
namespace {

using Table = std::unordered_map<Expr, ArrayId, ExprHash, ExprEqual>;

bool is_leaf(const Expr& e) { return as<Constant>(e) || as<Read>(e) || as<AxisIndex>(e) || as<AxisSize>(e); }

bool reads_anything(const Expr& e) { return !read_arrays(e).empty(); }

/// Collects the maximal sub-expressions that vary over fewer axes than the statement's points.
void collect(const Expr& e, std::size_t num_axes, bool reduced, std::vector<Expr>& found) {
    if (is_leaf(e)) return;
    if (free_axes(e).size() < num_axes && reads_anything(e)) {
        const bool worth = reduced || is_expensive(e) || as<Select>(e);
        if (worth) {
            found.push_back(e);
            return;
        }
    }
    for (const auto& child : children(e)) collect(child, num_axes, reduced, found);
}

/// The sub-expressions worth an array, and whether each stands in the carry.
std::vector<std::pair<Expr, bool>> candidates(const Diagram& diagram, const Statement& s) {
    const std::size_t target_axes = diagram.array(s.target).axes.size();
    std::vector<std::pair<Expr, bool>> out;
    for (const bool carry : {true, false}) {
        std::vector<Expr> found;
        if (!carry) collect(s.body, target_axes + s.reduce_axes.size(), s.reduce.has_value(), found);
        if (carry && s.carry) collect(s.carry, target_axes, false, found);
        for (const auto& e : found) out.emplace_back(e, carry);
    }
    return out;
}

/// The axes of a shared array: in the order of the target that it serves first, reduced axes after.
std::vector<AxisId> axes_of(const Diagram& diagram, const Statement& s, const Expr& e) {
    const auto free = free_axes(e);
    std::vector<AxisId> axes;
    for (const AxisId a : diagram.array(s.target).axes)
        if (std::find(free.begin(), free.end(), a) != free.end()) axes.push_back(a);
    for (const AxisId a : free)
        if (std::find(axes.begin(), axes.end(), a) == axes.end()) axes.push_back(a);
    return axes;
}

Expr replaced(const Expr& e, const Diagram& diagram, const Table& table) {
    if (const auto hit = table.find(e); hit != table.end()) return read_self(diagram, hit->second);
    if (is_leaf(e)) return e;
    auto parts = children(e);
    bool changed = false;
    for (auto& p : parts) {
        const Expr next = replaced(p, diagram, table);
        changed = changed || next != p;
        p = next;
    }
    return changed ? with_children(e, std::move(parts)) : e;
}

const char* name_for(const Expr& e, bool carry) {
    if (carry) return "delta";
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp) return "weight";
    if (as<Select>(e)) return "guarded";
    return "shared";
}

}  // namespace

bool is_expensive(const Expr& e) {
    if (free_axes(e).empty() && !reads_anything(e)) return false;  // a constant of the launch
    if (const auto* u = as<Unary>(e); u && u->op != UnaryOp::neg && u->op != UnaryOp::abs && u->op != UnaryOp::logical_not) return true;
    if (const auto* b = as<Binary>(e)) {
        // A division by a constant is a multiplication, and a small integer power a few of them.
        if (b->op == BinaryOp::div && (reads_anything(b->b) || !free_axes(b->b).empty())) return true;
        if (b->op == BinaryOp::pow) {
            const auto* c = as<Constant>(b->b);
            if (!c || (c->value != 2 && c->value != 3)) return true;
        }
    }
    const auto parts = children(e);
    return std::any_of(parts.begin(), parts.end(), is_expensive);
}

void share(Diagram& diagram, std::vector<Statement>& statements, const std::function<bool(const Expr&)>& hoistable,
           std::vector<Statement>* hoisted) {
    // First what is worth an array, the definitions of such arrays included: they may hold something that varies over fewer axes still.
    Table table;
    std::vector<Statement> definitions;
    const std::function<void(const Statement&)> find = [&](const Statement& s) {
        for (const auto& [e, from_carry] : candidates(diagram, s)) {
            if (table.count(e)) continue;
            Statement definition;
            definition.range = s.range;
            definition.body = e;
            const DType type = diagram.array(s.target).type == DType::f64 ? DType::f64 : DType::f32;
            definition.target = add_array(diagram, name_for(e, from_carry), axes_of(diagram, s, e), type, ArrayRole::temporary);
            table[e] = definition.target;
            definitions.push_back(definition);
            find(definition);
        }
    };
    for (const auto& s : statements) find(s);

    // Then each definition before the first statement in which its expression occurs at all.
    std::vector<Statement> out;
    std::set<ArrayId> placed;
    const std::function<void(Statement, std::vector<Statement>&)> place = [&](Statement s, std::vector<Statement>& into) {
        const auto define_parts = [&](const std::vector<ArrayId>& arrays) {
            for (const auto& d : definitions) {
                if (std::find(arrays.begin(), arrays.end(), d.target) == arrays.end() || !placed.insert(d.target).second) continue;
                place(d, hoisted && hoistable(d.body) ? *hoisted : into);
            }
        };
        const auto rewrite = [&](const Expr& e) {
            const auto own = table.find(e);
            if (own == table.end() || own->second != s.target) return replaced(e, diagram, table);
            auto parts = children(e);  // a definition keeps its own expression, with its parts replaced
            for (auto& part : parts) part = replaced(part, diagram, table);
            return with_children(e, std::move(parts));
        };
        s.body = rewrite(s.body);
        if (s.carry) s.carry = rewrite(s.carry);
        if (s.carry) define_parts(read_arrays(s.carry));
        define_parts(read_arrays(s.body));
        into.push_back(std::move(s));
    };
    for (const auto& s : statements) place(s, out);
    statements = std::move(out);
}

}  // namespace napkin
