#include <fmt/format.h>

#include <cmath>

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

ConfigurationRow row_of(const StepContext& context, const StepChoices& choices, const Assigned& assigned, VariableId id) {
    const Variable& variable = assigned.kernel.variables[id];
    const AssignedVariable& where = assigned.variables[id];
    ConfigurationRow row{{{variable.name}}, "", 1, where.type, where.at, where.stages, 0, 0};
    std::vector<std::string> sizes;
    std::int64_t rows = 1, of_thread = 1, of_fragments = 1;
    for (const CutSize& cut : context.cuts_of(assigned, id, choices)) {
        sizes.push_back(to_string(cut, names_of(context.diagram.axes)));
        row.values *= cut.size, of_thread *= cut.size;
        of_fragments *= cut.letter == 'w' ? round_up(cut.size, context.product_rows) : cut.size;
        // Threads hold what their warpgroup has between them.
        if (cut.letter == 't') rows *= context.warpgroup.at(cut.axis), row.values /= cut.size;
    }
    row.size = sizes.empty() ? "1" : join(sizes, "×");
    row.values *= rows;
    const bool by_block = is_shared(context, variable);
    // Every thread has what all of them hold alike in registers of its own.
    if (by_block && where.at == HeldAt::threads) row.values *= context.threads;
    const std::int64_t bytes_of_values = static_cast<std::int64_t>(bytes(where.type)) * where.stages;
    if (where.at == HeldAt::threads) row.thread_bytes = of_thread * bytes_of_values;
    if (where.at == HeldAt::fragments) row.thread_bytes = ceil_div(of_fragments * bytes_of_values, context.threads);
    const std::int64_t held = row.values * bytes_of_values;
    (by_block && where.at == HeldAt::memory ? row.block_bytes : row.warpgroup_bytes) = held;
    return row;
}

/// Places of threads that hold one value of a row each, and of one type, become one row of the table.
void gather_values_of_rows(const StepContext& context, std::vector<ConfigurationRow>& rows) {
    std::vector<ConfigurationRow> out;
    const auto of_rows = [&](const ConfigurationRow& row) {
        std::int64_t share = 1;
        for (const auto& [axis, size] : context.warpgroup) share *= size;
        return row.at == HeldAt::threads && row.warpgroup_bytes > 0 && row.values == share && row.size != "1";
    };
    for (ConfigurationRow& row : rows) {
        const auto known = find_if(out, [&](const ConfigurationRow& other) {
            return of_rows(row) && of_rows(other) && other.size == row.size && other.type == row.type;
        });
        if (known == out.end()) {
            out.push_back(std::move(row));
            continue;
        }
        known->places.push_back(row.places.front());
    }
    for (ConfigurationRow& row : out) {
        const auto n = static_cast<std::int64_t>(row.places.size());
        if (n > 1) row.size += fmt::format("×{}", n), row.values *= n, row.warpgroup_bytes *= n, row.thread_bytes *= n;
    }
    rows = std::move(out);
}

RegisterEstimate estimate(const StepContext& context, const Assigned& assigned, const KernelSteps& steps) {
    RegisterEstimate out = address_registers(assigned.kernel);
    for (const ConfigurationRow& row : steps.configuration) {
        if (row.at == HeldAt::memory) continue;
        const double registers = static_cast<double>(row.thread_bytes) / 4.0;
        double states = 0;
        for (const auto& place : row.places)
            states += any_of(place, [&](const std::string& name) {
                return any_of(assigned.kernel.variables, [&](const Variable& v) { return v.name == name && v.is_state; });
            });
        const double share = row.at == HeldAt::fragments ? 1 : states / static_cast<double>(row.places.size());
        out.accumulators += share * registers, out.values += (1 - share) * registers;
    }
    const ThreadLimits& limits = *context.machine.threads;
    const double unit = std::max(1.0, limits.register_unit.value / limits.warp_threads.value);
    const double share = std::floor(limits.registers_a_core.value /
                                    static_cast<double>(steps.num_warpgroups * context.threads) / unit) *
                         unit;
    out.limit = std::min(limits.registers_a_thread.value, share);
    out.limit_reason = share < limits.registers_a_thread.value
                           ? fmt::format("{:.0f} registers of a core for {} threads", limits.registers_a_core.value,
                                         steps.num_warpgroups * context.threads)
                           : fmt::format("the most that {} gives a thread", context.machine.name);
    return out;
}

}  // namespace

RegisterEstimate address_registers(const TileKernel& kernel) {
    RegisterEstimate out;
    int moved = 0, loops = 0;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        moved += std::holds_alternative<Load>(s) || std::holds_alternative<Store>(s);
        loops += std::holds_alternative<std::shared_ptr<const TileLoop>>(s);
    });
    out.addresses = 2.0 * moved + loops;
    out.addresses_reason = fmt::format("taken as 64 bits for each of {} arrays in memory, and {} loop counter{}", moved,
                                       loops, loops == 1 ? "" : "s");
    return out;
}

std::string LevelBudget::fit_text() const { return warpgroup_bytes > 0 ? fmt::format("{:.1f}", fit()) : "–"; }

void LevelBudget::leave_over(std::int64_t num_warpgroups, std::int64_t threads) {
    const auto n = static_cast<double>(num_warpgroups);
    excess_block = capacity_bytes - block_bytes - n * warpgroup_bytes;
    excess_warpgroup = excess_block / n;
    excess_thread = excess_warpgroup / static_cast<double>(threads);
}

void fill(LevelBudget& budget, const KernelSteps& steps, bool memory, std::int64_t warpgroup_threads) {
    for (const ConfigurationRow& row : steps.configuration) {
        if ((row.at == HeldAt::memory) != memory) continue;
        budget.block_bytes += static_cast<double>(row.block_bytes),
            budget.warpgroup_bytes += static_cast<double>(row.warpgroup_bytes);
    }
    budget.leave_over(steps.num_warpgroups, warpgroup_threads);
}

Status configure(const StepContext& context, const StepChoices& choices, const Assigned& assigned, KernelSteps& steps) {
    std::map<int, std::size_t> row_of_slot;
    for (const VariableLife& life : steps.lives) {
        if (life.slot < 0) continue;
        const auto known = row_of_slot.find(life.slot);
        if (known != row_of_slot.end()) {
            steps.configuration[known->second].places.front().push_back(assigned.kernel.variables[life.variable].name);
            continue;
        }
        row_of_slot[life.slot] = steps.configuration.size();
        steps.configuration.push_back(row_of(context, choices, assigned, life.variable));
    }
    gather_values_of_rows(context, steps.configuration);
    const ThreadLimits& limits = *context.machine.threads;
    const Machine& machine = context.machine;
    steps.budgets = {{machine.levels[core_memory_level(machine)].name, limits.block_bytes.value},
                     {"registers", 4 * limits.registers_a_core.value}};
    for (LevelBudget& b : steps.budgets) fill(b, steps, &b == &steps.budgets[0], context.threads);
    steps.registers = estimate(context, assigned, steps);
    std::vector<Diagnostic> errors;
    for (const LevelBudget& b : steps.budgets) {
        if (b.excess_block >= 0) continue;
        const bool is_shared_out = !context.warpgroup.empty();
        const auto [axis, share] = is_shared_out ? *context.warpgroup.begin()
                                                 : std::pair<const AxisId, std::int64_t>{AxisId(), 1};
        const std::string name = is_shared_out ? context.diagram.axis(axis).name : "";
        SourceRange range;
        if (const auto at_axis = choices.group.find(axis); at_axis != choices.group.end()) range = at_axis->second;
        for (const auto& [streamed, of_stream] : choices.stream)
            if (!range.source) range = of_stream;
        const auto held = [&](const ConfigurationRow& r) {
            return (r.at == HeldAt::memory) == (&b == &steps.budgets[0]) ? r.block_bytes + r.warpgroup_bytes : 0;
        };
        const auto largest = max_element(
            steps.configuration, [&](const ConfigurationRow& x, const ConfigurationRow& y) { return held(x) < held(y); });
        errors.push_back(
            {.code = "memory-exceeded",
             .range = range,
             .message = fmt::format(
                 "{} warpgroup{}{} {} {:.2f} KB of {} and a block {:.2f} KB: {:.2f} KB of {:.2f} KB", steps.num_warpgroups,
                 steps.num_warpgroups == 1 ? "" : "s", is_shared_out ? fmt::format(" of {} = {}", name, share) : "",
                 steps.num_warpgroups == 1 ? "takes" : "take", b.warpgroup_bytes / 1024, b.level, b.block_bytes / 1024,
                 (b.capacity_bytes - b.excess_block) / 1024, b.capacity_bytes / 1024),
             .expected = fmt::format("at most {:.1f} warpgroups: (M_max - M_TB)/M_WG", std::max(0.0, b.fit())),
             .hint = fmt::format("{} takes most of it: a smaller type, or parts of it, take less",
                                 join(largest->places.front(), ", "))});
    }
    if (const std::int64_t most = static_cast<std::int64_t>(limits.threads_a_block.value) / context.threads;
        errors.empty() && steps.num_warpgroups > most) {
        const auto& [axis, share] = *context.warpgroup.begin();
        errors.push_back({.code = "too-many-threads",
                          .range = value_or(choices.group, axis, SourceRange{}),
                          .message = fmt::format("{} warpgroups are {} threads of a block", steps.num_warpgroups,
                                                 steps.num_warpgroups * context.threads),
                          .expected = fmt::format("at most {} threads, {} warpgroups", limits.threads_a_block.value, most),
                          .hint = fmt::format("the nearest legal choice is group {} = {}",
                                              context.diagram.axis(axis).name, most * share)});
    }
    if (!errors.empty()) return errors;
    return Done{};
}

}  // namespace napkin
