#pragma once
// Walking expressions without recursion: every distinct node once, however often it is shared and however deep it lies.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "algebra/expr.hpp"
#include "support/ranges.hpp"

namespace napkin {

/// Calls f on every direct child, in order.
template <class F>
void for_each_child(const ExprNode& node, F&& f) {
    if (const auto* n = std::get_if<Unary>(&node.v)) {
        f(n->a);
    } else if (const auto* c = std::get_if<Cast>(&node.v)) {
        f(c->a);
    } else if (const auto* b = std::get_if<Binary>(&node.v)) {
        f(b->a);
        f(b->b);
    } else if (const auto* s = std::get_if<Select>(&node.v)) {
        f(s->condition);
        f(s->a);
        f(s->b);
    } else if (const auto* r = std::get_if<Read>(&node.v)) {
        for (const Index& index : r->indices)
            if (const Expr* value = index.expression()) f(*value);
    }
}

/// Nodes that a walk has met: most expressions are of a few nodes, among which looking is faster than hashing.
class MetNodes {
public:
    bool contains(const ExprNode* node) const {
        if (!many_.empty()) return many_.count(node) > 0;
        const auto* end = few_.data() + num_few_;
        return std::find(few_.data(), end, node) != end;
    }
    /// Whether it is new.
    bool insert(const ExprNode* node) {
        if (!many_.empty()) return many_.insert(node).second;
        if (contains(node)) return false;
        if (num_few_ == few_.size())
            many_.insert(few_.begin(), few_.end()), many_.insert(node);
        else
            few_[num_few_++] = node;
        return true;
    }

private:
    std::array<const ExprNode*, 32> few_;  // NOLINT(*-member-init): the first ones are set
    std::size_t num_few_ = 0;
    std::unordered_set<const ExprNode*> many_;  ///< all of them, once there are more than a few
};

/// What a walk has found of the nodes that it has met, in the same way.
template <class T>
class OfNodes {
public:
    /// Pre: it was added.
    const T& at(const ExprNode* node) const {
        if (!many_.empty()) return many_.at(node);
        return std::find_if(few_.rbegin(), few_.rend(), [&](const auto& entry) { return entry.first == node; })->second;
    }
    /// Pre: the node is new.
    void add(const ExprNode* node, T found) {
        if (!many_.empty()) {
            many_.emplace(node, std::move(found));
            return;
        }
        if (few_.empty()) few_.reserve(8);
        few_.emplace_back(node, std::move(found));
        if (few_.size() > most_few) many_.insert(few_.begin(), few_.end());
    }

private:
    static constexpr std::size_t most_few = 32;
    std::vector<std::pair<const ExprNode*, T>> few_;
    std::unordered_map<const ExprNode*, T> many_;  ///< of all of them, once there are more than a few
};

/// Whether a walk goes into the indices of reads too, or stays with the values that the expression is made of.
enum class Walk : std::uint8_t { all, values };

/// Calls f on every distinct node, children before their parents and in order.
template <class F>
void for_each_postorder(const Expr& e, F&& f, Walk walk = Walk::all) {
    MetNodes done;
    std::vector<std::pair<const Expr*, bool>> pending;  // true: its children are done
    pending.reserve(32);
    pending.emplace_back(&e, false);
    while (!pending.empty()) {
        const auto [node, ready] = pending.back();
        pending.pop_back();
        if (done.contains(node->get())) continue;
        if (ready) {
            done.insert(node->get());
            f(*node);
            continue;
        }
        pending.emplace_back(node, true);
        const auto num_others = static_cast<std::ptrdiff_t>(pending.size());
        if (walk == Walk::all || !as<Read>(*node))
            for_each_child(**node, [&](const Expr& child) { pending.emplace_back(&child, false); });
        std::reverse(pending.begin() + num_others, pending.end());
    }
}

}  // namespace napkin
