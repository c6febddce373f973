#include "derive/assembly.hpp"

#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "derive/body_sizes.hpp"
#include "derive/share.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// How often each array is read in the text of an expression, where what is shared stands as often as it is used.
/// Saturates.
std::map<ArrayId, std::size_t> count_reads(const Expr& e) {
    constexpr std::size_t many = 1000;
    std::vector<const ExprNode*> order;
    for_each_postorder(e, [&](const Expr& node) { order.push_back(node.get()); });
    std::unordered_map<const ExprNode*, std::size_t> times{{e.get(), 1}};
    std::map<ArrayId, std::size_t> out;
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
        const std::size_t n = times[*node];
        if (const auto* r = std::get_if<Read>(&(*node)->v)) out[r->array] = std::min(many, out[r->array] + n);
        for_each_child(**node, [&](const Expr& child) { times[child.get()] = std::min(many, times[child.get()] + n); });
    }
    return out;
}

}  // namespace

Expr counted(const Equation& count) {
    Expr total = count.body;
    for (const AxisId a : count.reduce_axes) total = simplify(binary(BinaryOp::mul, total, axis_size(a)));
    return total;
}

Assembly::Assembly(Diagram& of_kernel, const Analysis& analysed, AxisId streamed, const std::vector<ArrayId>& results)
    : diagram(of_kernel),
      analysis(analysed),
      axis(streamed),
      outputs(results.begin(), results.end()),
      set(analysed.targets.begin(), analysed.targets.end()),
      order(analysed.targets) {
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) at[diagram.equations[i].target] = i;
    find_counts();
    inline_cheap_maps();
    find_needed();
}

void Assembly::find_counts() {
    for (const auto& [id, info] : analysis.states) {
        const Equation& e = definition(id);
        const bool is_number = read_arrays(e.body).empty() && free_axes(e.body).empty();
        if (e.reduce == ReduceOp::sum && is_number && info.correction == Correction{}) counts.insert(id);
    }
}

/// Maps that are cheap, or used once, are computed where they are used.
void Assembly::inline_cheap_maps() {
    std::map<ArrayId, int> uses;
    std::map<ArrayId, std::size_t> places;  // in the text of all bodies
    for (const ArrayId id : order) {
        for (const ArrayId r : read_arrays(definition(id).body)) ++uses[r];
        for (const auto& [read_array, n] : count_reads(definition(id).body)) places[read_array] += n;
    }
    for (const ArrayId id : order) {
        body[id] = transform(definition(id).body, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !set.contains(r->array) || outputs.contains(r->array) || definition(r->array).reduce) return node;
            // Where a map would be repeated over more axes than its own, it is shared instead of inlined
            // (share.hpp).
            const bool widened = definition(id).reduce ||
                                 diagram.array(id).axes.size() > diagram.array(r->array).axes.size();
            const std::size_t nodes = count_nodes(body[r->array]);
            if (nodes > largest_copied && (places[r->array] > 1 || nodes > largest_body)) return node;
            if (on_stream(r->array) && traversal(r->array) == 0) {
                if (is_expensive(body[r->array]) && (uses[r->array] > 1 || widened)) return node;
                return body[r->array];
            }
            // What depends on a result of the stream is recomputed from it in the loop that needs it.
            if (on_stream(r->array)) return body[r->array];
            if (is_expensive(body[r->array]) && (uses[r->array] > 1 || widened)) return node;
            return traversal(r->array) == traversal(id) && !on_stream(id) && !is_state(id) ? body[r->array] : node;
        });
    }
}

int Assembly::traversal(ArrayId id) const {
    if (axis < 0 || !set.contains(id)) return 0;
    if (const auto s = analysis.states.find(id); s != analysis.states.end()) return s->second.traversal;
    if (const auto known = traversals.find(id); known != traversals.end()) return known->second;
    int latest = 0;
    for (const ArrayId r : read_arrays(definition(id).body)) latest = std::max(latest, traversal(r));
    return traversals[id] = latest;
}

int Assembly::last_traversal() const {
    int last = 0;
    for (const ArrayId id : needed) {
        if (analysis.states.contains(id)) last = std::max(last, analysis.states.at(id).traversal);
        if (on_stream(id) && outputs.contains(id)) last = std::max(last, storing_traversal(id));
    }
    return last;
}

void Assembly::find_needed() {
    std::vector<ArrayId> work(outputs.begin(), outputs.end());
    while (!work.empty()) {
        const ArrayId id = work.back();
        work.pop_back();
        if (!set.contains(id) || !needed.insert(id).second) continue;
        for (const ArrayId r : read_arrays(body[id])) work.push_back(r);
        if (const auto s = analysis.states.find(id); s != analysis.states.end()) {
            if (const auto& moment = s->second.correction.moment)
                for (const auto& [powers, lower] : moment->lower) work.push_back(lower);
            // The running values of what it reads come from the states behind them.
            for (const ArrayId r : read_arrays(definition(id).body)) work.push_back(r);
        }
    }
}

Statement Assembly::statement(ArrayId id) const {
    const Equation& e = definition(id);
    if (counts.contains(id)) return {id, std::nullopt, {}, counted(e), nullptr, e.range};
    const Expr made = transform(body.at(id), [&](const Expr& node) {
        const auto* r = as<Read>(node);
        return r && counts.contains(r->array) ? counted(definition(r->array)) : node;
    });
    return {id, e.reduce, e.reduce_axes, made, nullptr, e.range};
}

}  // namespace napkin
