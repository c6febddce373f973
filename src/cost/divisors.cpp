#include "cost/divisors.hpp"

#include <fmt/format.h>

#include <numeric>

namespace napkin {

const Instruction* instruction_for(const Machine& machine, DType type) {
    for (const Instruction& instruction : machine.instructions)
        if (instruction.k.contains(type)) return &instruction;
    return nullptr;
}

UnitRate contraction_rate(const Machine& machine, DType type) {
    for (const Unit& unit : machine.units)
        if (unit.name == "tensor")
            if (const auto rate = unit.per_clock.find(type); rate != unit.per_clock.end())
                return {"tensor", type, rate->second.value};
    const DType scalar = type == DType::f64 ? DType::f64 : DType::f32;
    return {"fma", scalar, per_clock(machine, "fma", scalar)};
}

std::int64_t Divisors::of(AxisId axis) const { return value_or(least_multiple, axis, 1); }

std::string Divisors::causes(AxisId axis) const {
    std::string text;
    for (const Divisor& d : constraints)
        if (d.axis == axis) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", d.cause, d.value);
    return text;
}

Divisors divisors(const Diagram& diagram, const Kernel& kernel, const Liveness& live,
                  const std::vector<StatementWork>& work, const Machine& machine) {
    std::vector<AxisId> cut = kernel.group_axes;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) cut.push_back(loop->axis);
    Divisors result;
    const auto demand = [&](AxisId axis, std::int64_t value, std::string cause) {
        if (value <= 1 || !contains(cut, axis)) return;
        for (const Divisor& d : result.constraints)
            if (d.axis == axis && d.cause == cause) return;
        std::int64_t& multiple = result.least_multiple.try_emplace(axis, 1).first->second;
        multiple = std::lcm(multiple, value);
        result.constraints.push_back({axis, value, std::move(cause)});
    };
    if (machine.kind == MachineKind::gpu) {
        for (const CoreVariable& v : live.variables) {
            if ((!v.loaded && !v.stored) || v.dims.empty() || v.dims.back().single_axis() < 0) continue;
            const std::int64_t line = static_cast<std::int64_t>(machine.line_bytes.value);
            const Array& array = diagram.array(v.array);
            demand(v.dims.back().single_axis(), line / bytes(array.type), fmt::format("{} B lines of {}", line, array.name));
        }
    }
    for (const StatementWork& s : work) {
        if (!s.contraction) continue;
        const Instruction* instruction = instruction_for(machine, s.contraction->type);
        if (!instruction) continue;
        // The innermost axis that is cut is the one whose length the instruction sees.
        const auto innermost = [&](const std::vector<AxisId>& axes, std::int64_t value, const char* side) {
            for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
                if (contains(cut, *axis)) return demand(*axis, value, instruction->name + " " + side);
        };
        innermost(s.contraction->m, instruction->m.from, "m");
        innermost(s.contraction->n, instruction->n.step, "n");
        innermost(s.contraction->k, instruction->k.at(s.contraction->type), "k");
    }
    return result;
}

}  // namespace napkin
