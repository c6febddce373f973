#pragma once
// The equations of one kernel, analysed, and what its statements are made of.
#include <map>
#include <set>
#include <vector>

#include "derive/analyse.hpp"
#include "derive/derived.hpp"
#include "support/ranges.hpp"

namespace napkin {

/// A count in the end: a sum of a number over all points of its axes.
Expr counted(const Equation& count);

struct Assembly {
    /// `axis`: that is streamed; -1: none.
    Assembly(Diagram& diagram, const Analysis& analysis, AxisId axis, const std::vector<ArrayId>& outputs);

    [[nodiscard]] bool on_stream(ArrayId id) const { return axis >= 0 && contains(diagram.array(id).axes, axis); }
    [[nodiscard]] bool is_state(ArrayId id) const { return analysis.states.contains(id) && !counts.contains(id); }
    [[nodiscard]] const Equation& definition(ArrayId id) const { return diagram.equations[at.at(id)]; }
    /// After which traversal the array can be computed (states: by which).
    [[nodiscard]] int traversal(ArrayId id) const;
    /// The traversal in which an array on the stream is computed when it must be stored.
    [[nodiscard]] int storing_traversal(ArrayId id) const { return traversal(id) + 1; }
    [[nodiscard]] int last_traversal() const;
    [[nodiscard]] Statement statement(ArrayId id) const;

    Diagram& diagram;
    const Analysis& analysis;
    AxisId axis;
    std::set<ArrayId> outputs, set;
    std::vector<ArrayId> order;
    std::map<ArrayId, Expr> body;  ///< of every array of the set, cheap maps inlined
    std::set<ArrayId> needed;
    std::set<ArrayId> counts;        ///< sums of a number: known from where the loop stands, and from sizes in the end
    std::map<ArrayId, ArrayId> old;  ///< where a loop needs it: what holds a state's value before the step

private:
    void find_counts();
    void inline_cheap_maps();
    void find_needed();

    mutable std::map<ArrayId, int> traversals;  ///< of arrays that are no states, once asked for
    std::map<ArrayId, std::size_t> at;          ///< of each equation
};

}  // namespace napkin
