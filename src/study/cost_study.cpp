#include "study/cost_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cost/footprint.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "study/kernel_costs.hpp"

namespace napkin {
namespace {

MachineCostOptions machine_options(const CostQuery& query, const Compilation& c) {
    MachineCostOptions options = costs_by_hand(c.derived.diagram);
    options.levels = query.levels;
    options.special_overhead = query.special_overhead;
    return options;
}

/// The highest rate at which a unit that the kernel uses multiplies and adds, all cores and devices together.
double peak_flops_per_s(const KernelOnMachine& kernel, const Machine& machine, double devices) {
    double peak = 0;
    for (const UnitLoad& unit : kernel.units)
        if (unit.rate.unit == "fma" || unit.rate.unit == "tensor")
            peak = std::max(peak, 2 * unit.rate.per_clock * machine.cores.value * machine.clock_hz.value * devices);
    return peak;
}

struct Costed {
    Compilation compilation;
    bool sized = false;
    std::vector<TileKernel> tiles;
    std::vector<KernelOnMachine> kernels;
    CostSummary summary;
};

/// Why no plan can say the time of what is asked for; empty: one can.
std::string why_no_plan(const CostQuery& query, const Machine& machine) {
    if (machine.kind == MachineKind::cpu) return "";
    if (query.closed_form) return "it is asked for";
    if (!has_cuda_blocks(machine)) return fmt::format("no kernel is emitted for {}", machine.name);
    if (query.levels.devices > 1) return "no kernel runs on several devices";
    if (query.levels.cluster > 1) return "no kernel exchanges tiles within clusters";
    if (query.special_overhead > 0) return "the overhead of special functions is given, and kernels have their own";
    return "";
}

/// Instructions of the machine's file that multiply tiles of the diagram's types, and that no kernel uses.
std::string unused_instructions(const Machine& machine, const Diagram& diagram) {
    std::vector<std::string> names;
    for (const Instruction& i : machine.instructions)
        if (!i.tile && any_of(diagram.arrays, [&](const Array& a) { return i.k.contains(a.type); }))
            names.push_back(i.name);
    return join(names, ", ");
}

/// As planned; where there is no plan, the closed form at the sizes with the least of its own time.
Status add_costs(const CostQuery& query, bool is_planned, Costed& out) {
    Compilation& c = out.compilation;
    const MachineCostOptions options = machine_options(query, c);
    const auto& file = query.pipeline.schedule_file;
    auto costs = is_planned ? planned_costs(c.derived, c.extents, c.machine, c.plan, options, file)
                            : closed_form_costs(c.derived, c.extents, c.machine, options, file);
    if (!costs) return costs.errors();
    c.derived = std::move(costs->cut.form), c.extents = std::move(costs->cut.extents);
    out.tiles = std::move(costs->tiles), out.kernels = std::move(costs->kernels);
    if (is_planned) out.summary.unused_instructions = unused_instructions(c.machine, c.derived.source);
    return Done{};
}

Result<Costed> cost_kernels(const CostQuery& query) {
    PipelineOptions pipeline = query.pipeline;
    pipeline.until = Pass::machine;
    auto made = run_pipeline(query.source, pipeline);
    if (!made) return made.errors();
    const bool has_special_unit = made->machine.kind != MachineKind::cpu;
    if (query.special_overhead > 0 && !has_special_unit)
        return Diagnostic{.code = "no-special-unit",
                          .range = {},
                          .message = fmt::format("{} has no unit for special functions: its cores compute them by "
                                                 "operations that its predicted time counts one by one",
                                                 made->machine.name),
                          .expected = "a GPU's machine",
                          .hint = "leave --special-overhead out"};
    Costed out;
    out.sized = bind_sizes(made->diagram).ok();
    std::string why = why_no_plan(query, made->machine);
    pipeline.until = out.sized && why.empty() ? Pass::plan : Pass::choose;
    made = run_pipeline(query.source, pipeline);
    if (!made && pipeline.until == Pass::plan && has_special_unit) {
        // Sizes by hand may be of no kernel, as those of the paper's examples.
        why = "it has no plan: " + made.errors().front().message;
        pipeline.until = Pass::choose;
        made = run_pipeline(query.source, pipeline);
    }
    if (!made) return made.errors();
    out.compilation = std::move(made).value();
    Compilation& c = out.compilation;
    auto extents = bind_sizes(c.diagram);
    if (!extents) {
        // Letters need no sizes; whoever names a machine, some sizes or M wants numbers.
        const bool wants_numbers = !pipeline.sizes.empty() || !pipeline.machine.empty() || query.memory_values;
        if (wants_numbers || extents.errors().front().code != "missing-size") return extents.errors();
        auto tiles = tiles_in_letters(c.derived, pipeline.schedule_file);
        if (!tiles) return tiles.errors();
        out.tiles = std::move(tiles).value();
        return out;
    }
    c.extents = *extents;
    if (const Status costed = add_costs(query, why.empty(), out); !costed) return costed.errors();
    out.summary.no_plan = std::move(why);
    out.summary.machine = c.machine.name;
    out.summary.rates = rate_sources(c.machine);
    const auto devices = static_cast<double>(query.levels.devices);
    double longest = -1;
    for (const KernelOnMachine& cost : out.kernels) {
        out.summary.seconds += cost.seconds;
        out.summary.bound_s += cost.bound_s;
        out.summary.flops += cost.flops;
        out.summary.transfers_bytes += cost.memory_transfers_bytes();
        if (cost.seconds > longest) longest = cost.seconds, out.summary.bound_by = cost.bound_by;
        out.summary.peak_flops_per_s = std::max(out.summary.peak_flops_per_s, peak_flops_per_s(cost, c.machine, devices));
    }
    const Footprint arrays = footprint(c.derived, c.extents);
    out.summary.num_kernels = out.kernels.size();
    out.summary.footprint_bytes = arrays.bytes();
    out.summary.memory_bytes = c.machine.levels[0].capacity_bytes.value * devices;
    if (c.machine.power_watts.known())
        out.summary.energy_j = c.machine.power_watts.value * out.summary.seconds * devices;
    if (c.machine.price_usd_per_hour.known())
        out.summary.price_usd = c.machine.price_usd_per_hour.value / 3600 * out.summary.seconds * devices;
    return out;
}

}  // namespace

Result<CostSummary> cost_summary(const CostQuery& query) {
    auto costed = cost_kernels(query);
    if (!costed) return costed.errors();
    if (!costed->sized) {
        const auto unbound = bind_sizes(costed->compilation.diagram);
        return unbound.errors();
    }
    return costed->summary;
}

Result<CostStudy> study_cost(const CostQuery& query) {
    auto costed = cost_kernels(query);
    if (!costed) return costed.errors();
    CostStudy study;
    study.compilation = std::move(costed->compilation);
    study.tiles = std::move(costed->tiles);
    study.kernels = std::move(costed->kernels);
    study.special_overhead = query.special_overhead, study.explain = query.explain;
    if (!costed->sized) return study;
    study.summary = costed->summary;
    study.memory_values = query.memory_values.value_or(values_a_core(study.compilation.diagram, study.compilation.machine));
    return study;
}

}  // namespace napkin
