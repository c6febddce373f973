#include "cost/symbolic_work.hpp"

#include <algorithm>

namespace napkin {

std::vector<UnitWork> unit_work(const Derived& derived, const Kernel& kernel, const std::vector<AxisId>& grouped,
                                const Machine& machine) {
    const Diagram& diagram = derived.diagram;
    std::vector<UnitWork> out;
    for (const StatementWork& s : statement_work(derived, kernel)) {
        const AxisId stream = s.stream;
        std::vector<AxisId> points;
        if (s.contraction)
            for (const auto* part : {&s.contraction->m, &s.contraction->n, &s.contraction->k, &s.contraction->batch})
                points.insert(points.end(), part->begin(), part->end());
        std::sort(points.begin(), points.end());
        for (const OpCount& op : s.ops) {
            UnitWork work;
            work.statement = diagram.array(s.target).name;
            work.kind = op.kind;
            work.in_loop = stream >= 0;
            work.contraction = op.kind == OpKind::fma && s.contraction && op.axes == points;
            if (work.contraction) {
                work.rate = contraction_rate(machine, s.contraction->type);
            } else {
                const DType type = diagram.array(s.target).type == DType::f64 ? DType::f64 : DType::f32;
                const std::string unit(name(op.kind));
                work.rate = {unit, type, per_clock(machine, unit, type)};
            }
            // An operation that does not have a cut axis is done again for each of its tiles.
            work.total = op.count;
            work.of_a_row = op.count;
            for (const AxisId axis : op.axes) {
                work.total *= axis_symbol(axis);
                if (!is_among(grouped, axis)) work.of_a_row *= axis == stream ? stream_symbol(axis) : axis_symbol(axis);
            }
            for (const AxisId axis : grouped)
                if (!is_among(op.axes, axis)) work.total *= Size(axis_symbol(axis)) / group_symbol(axis);
            if (stream >= 0 && !is_among(op.axes, stream))
                work.total *= Size(axis_symbol(stream)) / stream_symbol(stream);
            if (stream < 0) work.of_a_row = Size();
            out.push_back(std::move(work));
        }
    }
    return out;
}

Size flops(const std::vector<UnitWork>& work, bool contractions_only) {
    Size sum;
    for (const UnitWork& w : work)
        if (w.contraction || !contractions_only) sum += w.total * Size(w.flops_each());
    return sum;
}

}  // namespace napkin
