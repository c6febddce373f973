// Finds reductions that can ride in the loops of the statement before them: over the rows that it computes, of the values it has just
// computed. The tile is then not read again, and rows that are reduced one by one hide each other's latency.
#include <algorithm>

#include "emit/cpu/emit_frame.hpp"

namespace napkin::cpu {
namespace {

bool reads_variable(const Expr& e, VariableId variable) { return e && reads_array(e, variable); }

/// Whether `after` can be computed in the loops of `leader`, with the axis that it reduces innermost of those over points.
bool may_follow(const Frame& frame, const Step& leader, const Step& after) {
    const auto& l = std::get<Compute>(*leader.statement);
    const auto& f = std::get<Compute>(*after.statement);
    if (!f.reduce || f.reduce_axes.size() != 1 || l.variable == f.variable || leader.scope != after.scope) return false;
    if (leader.nest.is_whole || after.nest.is_whole) return false;
    const AxisId axis = f.reduce_axes.front();
    const std::int64_t tile = span_of(frame.scope(leader.scope), axis).tile;
    if (tile < 2 || (leader.nest.row_axis >= 0 && leader.nest.row_axis != axis)) return false;
    if (*f.reduce == ReduceOp::sum && is_long_sum(tile, total_terms(frame, f))) return false;  // it is cut into blocks

    std::vector<AxisId> points = target_axes(frame.variable(f.variable)), wanted = target_axes(frame.variable(l.variable));
    points.push_back(axis);
    std::sort(points.begin(), points.end());
    std::sort(wanted.begin(), wanted.end());
    if (points != wanted) return false;

    if (reads_variable(l.body, f.variable) || reads_variable(l.carry, f.variable) ||
        reads_variable(f.body, f.variable) || reads_variable(f.carry, l.variable) || !reads_variable(f.body, l.variable))
        return false;
    bool at_the_point = true;
    visit(f.body, [&](const Expr& e) {
        const Read* r = as<Read>(e);
        if (r && r->array == l.variable) at_the_point &= r->indices == frame.variable(l.variable).dims;
    });
    return at_the_point;
}

void fuse(Frame& frame, const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
        if (const auto* loop = std::get_if<std::shared_ptr<LoopNode>>(&node)) fuse(frame, (*loop)->body);
        const auto* panels = std::get_if<Panels>(&node);
        if (!panels) continue;
        for (std::size_t k = 0; k + 1 < panels->steps.size(); ++k) {
            Step& leader = frame.steps[static_cast<std::size_t>(panels->steps[k])];
            Step& after = frame.steps[static_cast<std::size_t>(panels->steps[k + 1])];
            if (leader.follows || !may_follow(frame, leader, after)) continue;
            leader.follower = panels->steps[k + 1];
            after.follows = true;
            // The reduced axis becomes the innermost loop over points.
            auto& outer = leader.nest.outer;
            const AxisId axis = std::get<Compute>(*after.statement).reduce_axes.front();
            const auto at = std::find(outer.begin(), outer.end(), axis);
            if (at != outer.end()) std::rotate(at, at + 1, outer.end());
        }
    }
}

}  // namespace

void fuse_reductions(Frame& frame) { fuse(frame, frame.body); }

}  // namespace napkin::cpu
