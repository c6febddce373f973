// Group partition as an equivalence (Fig. 10), and what circuits cost in letters (Figs 9, 24 and 25).
#include <fmt/format.h>

#include <map>

#include "cost/cost_figures.hpp"
#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "draw/order.hpp"
#include "draw/readings.hpp"
#include "draw/seen.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

/// The first axis that a kernel can group and that is woven through the whole definition: no operation consumes it.
AxisId partitioned_axis(const Derived& derived) {
    const Diagram& d = derived.source;
    for (const Kernel& kernel : derived.kernels)
        for (const AxisId axis : kernel.group_axes) {
            const auto is_consumed = [&](const Equation& e) { return contains(e.reduce_axes, axis); };
            const auto has = [&](ArrayId id) { return contains(d.array(id).axes, axis); };
            if (at(axis) < d.axes.size() && none_of(d.equations, is_consumed) && all_of(d.outputs, has)) return axis;
        }
    return -1;
}

}  // namespace

std::optional<Circuit> partition_circuit(const Derived& derived) {
    const Diagram& d = derived.source;
    const AxisId cut = partitioned_axis(derived);
    if (cut < 0) return std::nullopt;
    Circuit out;
    out.is_concurrent = true;
    const auto add_value = [&](ArrayId array, int part) {
        Value value;
        value.name = d.array(array).name;
        for (const AxisId axis : d.array(array).axes) {
            const std::string& name = d.axis(axis).name;
            const bool is_cut = axis == cut;
            value.wires.push_back(
                {axis, size_label(is_cut && part == 0 ? "g" : "", name, is_cut && part == 1 ? "′" : ""), name});
        }
        out.values.push_back(std::move(value));
        return static_cast<ValueId>(out.values.size()) - 1;
    };
    std::map<ArrayId, ValueId> whole;
    for (const ArrayId input : d.inputs) out.inputs.push_back(whole[input] = add_value(input, -1));
    std::vector<std::map<ArrayId, ValueId>> parts(2, whole);
    for (int part = 0; part < 2; ++part)
        for (const ArrayId input : d.inputs) {
            if (!contains(d.array(input).axes, cut)) continue;
            const ValueId to = parts[at(part)][input] = add_value(input, part);
            out.operations.push_back({Shape::copy,
                                      {},
                                      d.array(input).name,
                                      "a part of " + d.array(input).name,
                                      {{whole.at(input), d.array(input).axes}},
                                      to,
                                      {},
                                      0,
                                      false});
        }
    for (int part = 0; part < 2; ++part)
        for (const SeenOperation& op : seen_operations(d)) {
            std::vector<Operand> inputs;
            for (const Reading& r : op.readings) inputs.push_back({parts[at(part)].at(r.array), r.axes});
            const ValueId to = parts[at(part)][op.output] = add_value(op.output, part);
            out.operations.push_back({op.shape, op.label, d.array(op.output).name, op.description, std::move(inputs),
                                      to, op.consumed, 0, false});
        }
    for (const ArrayId output : d.outputs) {
        const ValueId to = add_value(output, -1);
        const std::vector<AxisId>& axes = d.array(output).axes;
        out.operations.push_back({Shape::join,
                                  {{"join"}},
                                  d.array(output).name,
                                  "the parts of " + d.array(output).name,
                                  {{parts[0].at(output), axes}, {parts[1].at(output), axes}},
                                  to,
                                  {},
                                  0,
                                  false});
        out.outputs.push_back(to);
    }
    return out;
}

std::vector<std::string> cost_notes(const Derived& derived) {
    std::vector<std::string> out;
    const SymbolNames names = symbol_names(derived.diagram);
    const std::vector<KernelFigures> figures = cost_figures(derived, std::nullopt);
    for (const KernelFigures& f : figures) {
        const bool tied = !f.tied_letters.empty();
        const KernelCost& cost = tied ? f.tied : f.cost;
        std::string line = figures.size() > 1 ? "kernel " + cost.kernel + ": " : "";
        line += fmt::format("N_g = {},  H_g = {},  H {} {}", to_string(cost.num_groups, names),
                            to_string(cost.per_group, names), cost.may_skip || cost.counts_padding ? "≤" : "=",
                            to_string(cost.transfers, names));
        out.push_back(line);
        for (const MemoryColumn& column : cost.memory)
            out.push_back(fmt::format("M ≥ {}  at {}", to_string(column.size, names), column.at));
        const Optimum& best = tied ? f.tied_optimum : f.optimum;
        if (why_numeric(best, derived.diagram).empty())
            out.push_back(fmt::format("H* = {}", to_string(best.transfers, names_in(best, derived.diagram))));
    }
    return out;
}

std::vector<std::string> whole_notes(const Diagram& diagram, const Circuit& circuit) {
    const SymbolNames names = symbol_names(diagram);
    const auto size_of = [](const Value& value) {
        Size size = 1;
        for (const Wire& wire : value.wires)
            if (wire.axis >= 0) size *= Size(axis_symbol(wire.axis));
        return size;
    };
    Size total;
    for (const Operation& op : circuit.operations)
        if (op.shape == Shape::transfer) total += size_of(circuit.values[at(op.output)]);
    struct Column {
        Size size;
        std::string at;
    };
    std::vector<Column> columns;
    const Ordered ordered_circuit = ordered(circuit);
    for (const std::vector<ValueId>& data : ordered_circuit.data) {
        Column column;
        for (const ValueId v : data) {
            const Value& value = circuit.values[at(v)];
            if (value.level == 0) continue;
            column.size += size_of(value);
            column.at += (column.at.empty() ? "" : ", ") + value.name;
        }
        columns.push_back(std::move(column));
    }
    const auto is_below = [](const Size& a, const Size& b) {
        const Size more = b - a;
        return all_of(more.terms(), [](const auto& term) { return term.second >= Rational(0); });
    };
    std::vector<std::string> out{"H = " + to_string(total, names) + ": the arrays that change colour"};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        bool is_largest = !columns[i].size.is_zero();
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const bool is_same = columns[i].size == columns[j].size;
            if (j != i && is_below(columns[i].size, columns[j].size) && (!is_same || j < i)) is_largest = false;
        }
        if (is_largest)
            out.push_back(fmt::format("M ≥ {}: the column of {}", to_string(columns[i].size, names), columns[i].at));
    }
    return out;
}

std::vector<std::string> between_notes(const Derived& derived, TwoLevelOptions::Between between) {
    const bool is_cache = between == TwoLevelOptions::Between::cache;
    std::vector<std::string> out{is_cache
                                     ? "M: values that a core's memory holds; N: cores below one cache"
                                     : "M: values that a core's memory holds; N: cores that hand data to each other"};
    const std::vector<KernelFigures> figures = cost_figures(derived, std::nullopt);
    for (std::size_t k = 0; k < figures.size(); ++k) {
        const KernelFigures& f = figures[k];
        const std::string begin = figures.size() > 1 ? "kernel " + f.cost.kernel + ": " : "";
        const Kernel& kernel = derived.kernels[k];
        std::string fits;
        for (const AxisId axis : kernel.group_axes) {
            const std::string& name = derived.diagram.axis(axis).name;
            if (!contains(kernel.recompute_axes, axis))
                fits += fmt::format("{}g_{}·h_{}⁻¹", fits.empty() ? "" : "·", name, name);
        }
        if (is_cache && !fits.empty())
            out.push_back(begin + fits + " ≤ N: the cache's own memory does not limit the tile, the cores below it do");
        const Optimum& best = f.tied_letters.empty() ? f.optimum : f.tied_optimum;
        if (!why_numeric(best, derived.diagram).empty()) continue;
        // N stands behind the last of the diagram's axes.
        const Symbol cores = axis_symbol(AxisId::of(derived.diagram.axes.size()));
        const SymbolNames names = [&, of_optimum = names_in(best, derived.diagram)](Symbol symbol) {
            return symbol == cores ? "N" : of_optimum(symbol);
        };
        const Size shared = best.transfers.substitute(memory_symbol, Size(memory_symbol) * Size(cores));
        out.push_back(fmt::format("{}H* = {}  {}", begin, to_string(shared, names),
                                  is_cache ? "into the cache" : "from memory, to any of the cores"));
        out.push_back(fmt::format("{}H* = {}  {}", begin,
                                  to_string(is_cache ? best.transfers : best.transfers - shared, names),
                                  is_cache ? "into the cores' memory" : "from core to core"));
    }
    return out;
}

}  // namespace napkin::draw
