#include "cost/symbolic_work.hpp"

#include "support/ranges.hpp"
#include "tile/expand.hpp"

namespace napkin {

std::vector<UnitWork> unit_work(const Derived& derived, const Kernel& kernel, const std::vector<AxisId>& grouped,
                                const Machine& machine) {
    return unit_work(derived.diagram, expand(derived, kernel), grouped, machine);
}

std::vector<UnitWork> unit_work(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                                const Machine& machine) {
    const Liveness live = liveness(kernel);
    std::vector<UnitWork> out;
    for (const StatementWork& s : statement_work(diagram, kernel)) {
        const AxisId stream = s.stream;
        std::vector<AxisId> product;
        if (s.contraction)
            for (const auto* part : {&s.contraction->m, &s.contraction->n, &s.contraction->k, &s.contraction->batch})
                append(product, *part);
        sort(product);
        for (const OpCount& op : s.ops) {
            UnitWork work{.statement = diagram.array(s.target).name,
                          .kind = op.kind,
                          .contraction = op.kind == OpKind::fma && s.contraction && op.axes == product,
                          .in_loop = stream >= 0};
            if (work.contraction) {
                work.rate = contraction_rate(machine, s.contraction->type);
            } else {
                const DType type = diagram.array(s.target).type == DType::f64 ? DType::f64 : DType::f32;
                const std::string unit(name(op.kind));
                work.rate = {unit, type, per_clock(machine, unit, type)};
            }
            // An operation that does not have a cut axis is done again for each of its tiles.
            work.total = Size(op.count) * points(diagram, live, grouped, op.axes, s.loop);
            work.of_a_row = op.count;
            for (const AxisId axis : op.axes)
                if (!contains(grouped, axis)) work.of_a_row *= axis == stream ? stream_symbol(axis) : axis_symbol(axis);
            if (stream < 0) work.of_a_row = Size();
            out.push_back(std::move(work));
        }
    }
    return out;
}

WorkInLetters symbolic_work(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped) {
    const Liveness live = liveness(kernel);
    WorkInLetters work;
    for (const StatementWork& s : statement_work(diagram, kernel))
        for (const OpCount& op : s.ops)
            work[at(op.kind)] += Size(op.count) * points(diagram, live, grouped, op.axes, s.loop);
    return work;
}

Size flops(const WorkInLetters& work) {
    Size sum = work[at(OpKind::fma)];
    for (const Size& of_kind : work) sum += of_kind;
    return sum;
}

Size flops(const std::vector<UnitWork>& work, bool contractions_only) {
    Size sum;
    for (const UnitWork& w : work)
        if (w.contraction || !contractions_only) sum += w.total * Size(w.flops_each());
    return sum;
}

std::string pipe_of(const Machine& machine, const UnitWork& work) {
    if (machine.kind == MachineKind::cpu) return "core";
    if (work.contraction && work.rate.unit == "tensor") return "tensor";
    switch (work.kind) {
        case OpKind::exp:
        case OpKind::log:
        case OpKind::tanh:
        case OpKind::sin:
        case OpKind::pow:
        case OpKind::sqrt:
        case OpKind::div: return "special";
        case OpKind::erf:
        case OpKind::fma:
        case OpKind::simple: return "arithmetic";
    }
    return "arithmetic";
}

}  // namespace napkin
