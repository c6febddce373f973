#include "derive/gather_streams.hpp"

#include <tuple>

#include "algebra/expr_walk.hpp"
#include "derive/flat_stream.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// True when some index adds the axis to others: neighbouring chunks of it overlap, and are loaded again.
bool chunks_overlap(const KernelBuilder& builder, const std::vector<ArrayId>& targets, AxisId axis) {
    bool overlap = false;
    for (const ArrayId t : targets)
        for_each_postorder(builder.definition(t).body, [&](const Expr& node) {
            if (const auto* read = as<Read>(node))
                for (const Index& index : read->indices) overlap |= index.axes().size() > 1 && index.depends_on(axis);
        });
    return overlap;
}

}  // namespace

std::vector<AxisId> reduced_axes(const KernelBuilder& builder, const std::vector<ArrayId>& targets) {
    std::vector<AxisId> axes;
    for (const ArrayId t : targets)
        for (const AxisId a : builder.definition(t).reduce_axes)
            if (!contains(axes, a)) axes.push_back(a);
    return axes;
}

Gathering StreamChooser::with_axis(const std::vector<ArrayId>& targets) {
    const auto known = known_.find(targets);
    return known != known_.end() ? known->second : known_[targets] = find_axis(targets);
}

Gathering StreamChooser::find_axis(const std::vector<ArrayId>& targets) {
    Gathering best{targets, std::nullopt};
    const auto axes = reduced_axes(builder_, targets);
    const auto equations = mapped<Equation>(targets, [&](ArrayId t) { return builder_.definition(t); });
    const auto flat = flat_axes_of(builder_.diagram(), equations);
    for (const AxisId a : wanted_)
        if (contains(axes, a) || contains(flat, a)) return {targets, a};
    std::tuple<int, int, bool> best_score{-1, 0, false};
    for (const AxisId a : axes) {
        int reductions = 0;
        for (const ArrayId t : targets) reductions += contains(builder_.definition(t).reduce_axes, a) ? 1 : 0;
        const auto traversals = builder_.traversals({targets, a});
        if (std::holds_alternative<Refusal>(traversals)) continue;
        const std::tuple score{reductions, -std::get<int>(traversals), !chunks_overlap(builder_, targets, a)};
        if (score >= best_score) {
            best_score = score;
            best.stream = a;
        }
    }
    return best;
}

}  // namespace napkin
