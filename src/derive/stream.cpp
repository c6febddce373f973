#include "derive/stream.hpp"

#include "algebra/expr_walk.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_written_out = 500;  ///< nodes of a map that proofs look into

}  // namespace

Stream::Classes Stream::classes(const Expr& e) const {
    if (const auto hit = known_.find(e); hit != known_.end()) return hit->second;
    for_each_postorder(e, [&](const Expr& node) {
        if (known_.contains(node)) return;
        Classes c;
        for_each_child(*node, [&](const Expr& child) { c.runs = c.runs || known_.at(child).runs; });
        if (const auto* r = as<Read>(node)) c.runs = c.runs || running(r->array);
        c.streams = any_of(axes, [&](AxisId axis) { return depends_on_axis(node, axis); });
        known_.emplace(node, c);
    });
    return known_.at(e);
}

Expr Stream::written_out(const Expr& e) const {
    const Expr out = transform(e, [&](const Expr& node) -> Expr {
        const auto* r = as<Read>(node);
        const Equation* map = r && !running(r->array) ? definition(r->array) : nullptr;
        if (!map || map->reduce || count_nodes(map->body) > max_written_out) return node;
        return written_out(map->body);
    });
    return count_nodes(out) > max_written_out ? e : out;
}

}  // namespace napkin
