
#include "cost/divisors.hpp"
#include "machine/peaks.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// How often an operation over these axes is done for one row of a chunk. A row is one point of the axes that
/// warpgroups share and blocks group, unless these are columns of a contraction.
double times(const StepContext& context, const std::set<AxisId>& columns, const std::vector<AxisId>& axes,
             AxisId stream, bool in_parts) {
    double n = 1;
    std::set<AxisId> streamed;
    if (stream >= 0) streamed.insert(stream);
    for (const AxisId axis : axes) {
        const CutSize size = context.cut(axis, streamed, {}, false);
        if (size.letter != 'w' && (size.letter != 'g' || columns.contains(axis))) n *= static_cast<double>(size.size);
    }
    // Accumulators that take a chunk in parts do once a part what does not run along it.
    if (in_parts && !contains(axes, stream)) {
        const CutSize part = context.cut(stream, streamed, {stream}, false),
                      chunk = context.cut(stream, streamed, {}, false);
        n *= static_cast<double>((chunk.size + part.size - 1) / part.size);
    }
    return n;
}

}  // namespace

Throughput throughput(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                      const std::vector<StatementWork>& work) {
    Throughput out;
    const Machine& machine = context.machine;
    std::map<ArrayId, DType> type_of;
    std::set<ArrayId> in_parts;
    for (const VariableId v : assigned.variables.ids()) {
        const AssignedVariable& where = assigned.variables[v];
        if (where.copy_of >= 0 || where.product_of >= 0) continue;
        type_of[assigned.kernel.variables[v].array] = where.type;
    }
    std::set<AxisId> columns;
    for (const StatementWork& w : work)
        if (w.contraction)
            for (const AxisId axis : columns_of(context, *w.contraction)) columns.insert(axis);
    const auto find_parts = [&](const auto& self, const std::vector<TileStatement>& list, AxisId stream, bool part) -> void {
        for (const TileStatement& s : list) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s))
                self(self, (*loop)->body, (*loop)->is_sub ? stream : (*loop)->axis,
                     part || ((*loop)->is_sub && (*loop)->axis == stream));
            const auto* compute = std::get_if<Compute>(&s);
            if (compute && part) in_parts.insert(assigned.kernel.variables[compute->variable].array);
        }
    };
    find_parts(find_parts, assigned.kernel.body, -1, false);
    for (const StatementWork& w : work) {
        if (w.stream < 0) continue;
        const bool parts = in_parts.contains(w.target);
        const bool multiplies = w.contraction && context.instruction_of(w) &&
                                contraction_rate(machine, w.contraction->type).unit == "tensor";
        for (const OpCount& op : w.ops) {
            const bool is_product = w.contraction && op.kind == OpKind::fma &&
                                    all_of(w.contraction->k, [&](AxisId k) { return contains(op.axes, k); }) &&
                                    all_of(w.contraction->n, [&](AxisId n) { return contains(op.axes, n); });
            ThroughputRow row{context.diagram.array(w.target).name, std::string(name(op.kind)), type_of[w.target], 0, 0};
            if (is_product && multiplies) row.unit = "tensor", row.type = w.contraction->type;
            const double flops = row.unit == "tensor" || row.unit == "fma" ? 2 : 1;
            row.operations = static_cast<double>(op.count) * flops *
                             times(context, columns, op.axes, w.stream, parts && row.unit != "tensor");
            row.per_clock = flops * per_clock(machine, row.unit, row.type);
            if (!(row.per_clock > 0) || !(row.operations > 0)) continue;
            const auto known = find_if(out.rows, [&](const ThroughputRow& r) {
                return r.statement == row.statement && r.unit == row.unit && r.type == row.type;
            });
            known == out.rows.end() ? out.rows.push_back(row) : void(known->operations += row.operations);
        }
    }
    double products = 0;
    for (const ThroughputRow& row : out.rows) {
        auto total = find_if(out.units, [&](const UnitTotal& u) { return u.unit == row.unit; });
        if (total == out.units.end()) {
            out.units.push_back({row.unit, 0, 0, value_or(choices.overheads, row.unit, NamedOverhead{})});
            total = out.units.end() - 1;
        }
        total->operations += row.operations, total->clocks += row.clocks();
        if (row.unit == "tensor") products += row.operations;
    }
    stable_sort(out.units, [](const UnitTotal& a, const UnitTotal& b) { return a.clocks > b.clocks; });
    const auto tensor = find_if(out.units, [](const UnitTotal& u) { return u.unit == "tensor"; });
    if (tensor == out.units.end()) return out;
    out.tensor_flop_per_s = products / out.lower_bound() * machine.cores.value * machine.clock_hz.value;
    std::vector<IterationRow> rows;
    for (const ThroughputRow& row : out.rows)
        rows.push_back({row.statement, row.unit, row.type, row.operations, row.per_clock});
    const auto overhead = choices.overheads.find("exp");
    out.overlap = overlap(rows, overhead == choices.overheads.end() ? 0 : overhead->second.share);
    // B.0.1, where all that a chunk loads is shared by the rows of a group.
    double chunk = 0;
    for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
        const auto* load = std::get_if<Load>(&s);
        if (!load || assigned.variables[load->variable].streamed.empty()) return;
        const double values = product<double>(context.cuts_of(assigned, load->variable, choices),
                                              [&](const CutSize& cut) { return static_cast<double>(cut.size); });
        const bool shared = is_shared(context, assigned.kernel.variables[load->variable]);
        chunk += shared ? values * bytes(assigned.kernel.variables[load->variable].memory_type) : infinity;
    });
    for (std::size_t l = 1; chunk > 0 && chunk < infinity && l <= core_memory_level(machine); ++l)
        out.floors.push_back({machine.levels[l].name, chunk, tensor->clocks,
                              chunk * machine.cores.value * machine.clock_hz.value /
                                  (total_bandwidth(machine.levels[l]) * tensor->clocks)});
    return out;
}

}  // namespace napkin
