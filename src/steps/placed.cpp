// The steps of a planned kernel, as its schedule has placed it.
#include <fmt/format.h>

#include <array>

#include "cost/divisors.hpp"
#include "lower/rules.hpp"
#include "machine/block_machine.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/legality.hpp"
#include "schedule/warpgroups.hpp"
#include "steps/choices.hpp"
#include "steps/tell.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/print.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

class Placing {
public:
    Placing(const ScheduledKernel& kernel, const Machine& machine, const StepChoices& choices)
        : s_(kernel),
          machine_(machine),
          choices_(choices),
          diagram_(kernel.program->diagram),
          context_{diagram_, machine_, s_.extents,
                   s_.sizes, {},       4 * static_cast<std::int64_t>(machine.threads->warp_threads.value)} {
        context_.sizes.sub.resize(s_.extents.size());
        out_.kernel = s_.kernel->name;
        out_.num_warpgroups = std::max<std::int64_t>(1, s_.schedule.warps.value / 4);
        out_.warpgroup_threads = std::min(context_.threads, s_.schedule.warps.value * s_.unit.warp_threads);
        context_.threads = out_.warpgroup_threads;
        const AxisId rows = s_.schedule.mma_m;
        context_.planned.emplace();
        context_.sharing = rows < 0 ? out_.num_warpgroups : 1;
        if (rows < 0) return;
        const std::int64_t group = s_.sizes.group[rows] > 0 ? s_.sizes.group[rows] : s_.extents[rows];
        context_.warpgroup[rows] = (group + out_.num_warpgroups - 1) / out_.num_warpgroups;
    }

    KernelSteps run() {
        assigned_.kernel = *s_.kernel;
        assigned_.variables.resize(s_.kernel->variables.size());
        std::set<AxisId> streamed, parts;
        place_lists(s_.kernel->body, streamed, parts);
        for (VariableId id = 0; at(id) < s_.layouts.size(); ++id) add_rows(id);
        for (const Step& step : s_.steps)
            if (step.atom >= 0 && s_.atom(step).kind == AtomKind::mma)
                if (const auto product = mma_product(s_, step))
                    (*context_.planned)[s_.variable(variable_of(step)).array] = product->instruction;
        LevelBudget memory{machine_.levels[core_memory_level(machine_)].name, static_cast<double>(s_.unit.block_bytes)};
        fill(memory, out_, true, context_.threads);
        // Variables that are not alive together may lie at one place, so that the block needs less than all rows
        // together.
        const double of_warpgroups = memory.warpgroup_bytes * static_cast<double>(out_.num_warpgroups);
        if (const auto arena = static_cast<double>(s_.arena_bytes()); memory.block_bytes + of_warpgroups > arena) {
            memory.block_bytes = std::max(0.0, arena - of_warpgroups);
            memory.what = "alive at a time";
            memory.leave_over(out_.num_warpgroups, context_.threads);
        }
        count_registers();
        // Registers are given to what is alive, which is less than all rows together.
        LevelBudget registers{
            "registers", 4.0 * static_cast<double>(block_registers()), 0,
            4 * (out_.registers.accumulators + out_.registers.values) * static_cast<double>(context_.threads)};
        registers.what = "alive at a time";
        registers.leave_over(out_.num_warpgroups, context_.threads);
        out_.budgets = {memory, registers};
        out_.throughput = throughput(context_, choices_, assigned_, statement_work(diagram_, *s_.kernel));
        const StepChoices order = issued();
        auto charts = overlap_charts(context_, order, assigned_, out_);
        if (!charts) throw InternalError("the order of issue of a plan: " + charts.errors().front().message);
        out_.charts = std::move(charts).value();
        if (out_.throughput.tensor_flop_per_s > 0)
            if (const auto clocks = steady_clocks(context_, order, assigned_, out_))
                out_.steady = steady_state(context_, assigned_, out_, clocks->steady);
        out_.sizes = sizes_of(context_, assigned_, {});
        tell();
        out_.schedule = machine_text(machine_) + to_string(*s_.program, *s_.kernel, s_.schedule);
        for (const std::string& line : reading_lines(choices_)) out_.schedule += "  " + line + "\n";
        for (const VariableId id : assigned_.variables.ids()) out_.cuts.push_back(context_.cuts_of(assigned_, id, {}));
        out_.expanded = out_.in_parts = *s_.kernel, out_.assigned = assigned_, out_.is_planned = true;
        return std::move(out_);
    }

private:
    [[nodiscard]] std::int64_t block_registers() const {
        return s_.unit.block_registers > 0
                   ? s_.unit.block_registers
                   : static_cast<std::int64_t>(machine_.threads->registers_a_core.value) / s_.unit.blocks_a_core;
    }

    /// As the plan counts them: what it gives to tiles, and what of them the busiest statement takes.
    void count_registers() {
        RegisterEstimate& r = out_.registers;
        const ThreadLimits& limits = *machine_.threads;
        const Role* role = s_.producer_role();
        r.limit = role ? role_registers(block_registers(), s_.schedule.warps.value, role->workers).computing
                       : std::min(limits.registers_a_thread.value,
                                  static_cast<double>(block_registers() / std::max<std::int64_t>(1, s_.num_threads())));
        r.limit_reason = role ? fmt::format("what {} leaves a thread that computes", role->name)
                              : fmt::format("{} registers of a block for {} threads", block_registers(), s_.num_threads());
        r.addresses = std::max(0.0, r.limit - static_cast<double>(s_.unit.registers));
        r.addresses_reason = fmt::format("the {} registers that the plan keeps from tiles", r.addresses);
        std::int64_t most = most_registers(s_);
        for (const Step& step : s_.steps) {
            if (step.atom < 0) continue;
            if (!s_.on_tensor_cores()) most = std::max<std::int64_t>(most, registers_of(s_.atom(step)));
            if (s_.atom(step).kind == AtomKind::mma && targets_.insert(variable_of(step)).second)
                r.accumulators += static_cast<double>(fragment_registers(s_, variable_of(step)));
        }
        r.accumulators = std::min(r.accumulators, static_cast<double>(most));
        r.values = static_cast<double>(most) - r.accumulators;
    }

    void place_lists(const std::vector<TileStatement>& list, std::set<AxisId>& streamed, std::set<AxisId>& parts) {
        for (const TileStatement& s : list) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                std::set<AxisId>& axes = (*loop)->is_sub ? parts : streamed;
                axes.insert((*loop)->axis);
                place_lists((*loop)->body, streamed, parts);
                axes.erase((*loop)->axis);
                continue;
            }
            const auto* load = std::get_if<Load>(&s);
            const auto* init = std::get_if<Init>(&s);
            const auto* compute = std::get_if<Compute>(&s);
            const VariableId id = load      ? load->variable
                                  : init    ? init->variable
                                  : compute ? compute->variable
                                            : VariableId();
            if (id < 0 || !known_.insert(id).second) continue;
            AssignedVariable& v = assigned_.variables[id];
            const bool in_memory_type = s_.is_operand(id) || s_.is_view(id);
            v.streamed = streamed, v.cut = parts;
            v.at = s_.is_in_registers(id) ? HeldAt::fragments : HeldAt::memory;
            v.type = in_memory_type ? s_.variable(id).memory_type : s_.is_double ? DType::f64 : DType::f32;
            v.type_reason = in_memory_type ? "as in memory" : "what is computed";
            v.stages = s_.place(id).stages;
        }
    }

    void add_rows(VariableId id) {
        if (s_.layout(id).lives.empty() || s_.is_view(id)) return;
        const AssignedVariable& v = assigned_.variables[id];
        ConfigurationRow row{{{s_.variable(id).name}}, "", 1, v.type, v.at, v.stages, 0, 0};
        std::vector<std::string> sizes;
        for (const CutSize& cut : context_.cuts_of(assigned_, id, {}))
            sizes.push_back(to_string(cut, names_of(diagram_.axes))), row.values *= cut.size;
        row.size = sizes.empty() ? "1" : join(sizes, "×");
        if (s_.is_in_registers(id)) {
            row.warpgroup_bytes = 4 * fragment_registers(s_, id) * context_.threads;
        } else {
            const std::int64_t held = s_.layout(id).count * s_.value_bytes();
            is_shared(context_, s_.variable(id)) || context_.warpgroup.empty()
                ? row.block_bytes = held
                : row.warpgroup_bytes = held / out_.num_warpgroups;
        }
        out_.configuration.push_back(row);
        if (const auto boxes = s_.is_staged_out(id) ? staging_tiles_of(s_, id) : std::nullopt) {
            row.places = {{s_.variable(id).name + " on its way out"}}, row.at = HeldAt::memory,
            row.type = s_.variable(id).memory_type, row.stages = 1;
            row.size = fmt::format("{} boxes a warp", s_.place(id).staging_tiles);
            row.warpgroup_bytes = s_.place(id).staging_tiles * staging_bytes(s_) * (context_.threads / s_.unit.warp_threads),
            row.block_bytes = 0;
            row.values = row.warpgroup_bytes / bytes(row.type);
            out_.configuration.push_back(row);
        }
    }

    /// The order in which the warps that compute issue their statements, which is that of the slots.
    [[nodiscard]] StepChoices issued() const {
        std::vector<const Step*> steps;
        for (const Step& step : s_.steps)
            if (std::holds_alternative<Compute>(*step.statement) && step.scope > 0) steps.push_back(&step);
        stable_sort(steps, [](const Step* a, const Step* b) { return a->position < b->position; });
        StepChoices out;
        out.overheads = choices_.overheads;
        out.units = choices_.units;
        if (const auto turns = s_.schedule.ping_pong.value ? ping_pong(s_) : std::nullopt)
            for (const StepId step : {turns->first, turns->last})
                out.turns.push_back({s_.variable(variable_of(s_.step(step))).name, 0, {}});
        for (const Step* step : steps) {
            const std::string& name = s_.variable(variable_of(*step)).name;
            if (none_of(out.issue, [&](const Listed& l) { return l.name == name; }))
                out.issue.push_back({name, step->ahead, {}});
        }
        return out;
    }

    void tell() {
        const std::string kept = "the schedule keeps its rules";
        const std::vector<std::string> broken = verify(s_);
        const std::string fault = broken.empty() ? "" : broken.front();
        out_.steps.push_back(
            {"pseudocode expansion", expansion(context_, *s_.kernel), pseudocode(context_, *s_.kernel), kept, fault});
        PaperStep subloops{"subloops", {}, "", kept, fault}, levels{"levels and units", {}, "", kept, fault},
            types{"precision", {}, "", kept, fault}, variables{"variables", {}, "", kept, fault};
        for (const auto& [axis, part] : s_.schedule.subloop)
            subloops.changes.push_back({fmt::format("{}, {} at a time", diagram_.axis(axis).name, part.value), part.reason});
        if (subloops.changes.empty()) subloops.changes.push_back({"none", "the schedule has none"});
        for (const Step& step : s_.steps) {
            if (step.atom < 0) continue;
            const auto product = s_.atom(step).kind == AtomKind::mma ? mma_product(s_, step) : std::nullopt;
            const std::string& name = s_.variable(variable_of(step)).name;
            if (product) {
                std::string used = fmt::format("{} {}", product->instruction->name, napkin::name(product->type));
                if (!contains(out_.instructions, used)) out_.instructions.push_back(std::move(used));
            }
            if (product)
                levels.changes.push_back({name + " on the tensor cores",
                                          fmt::format("{} of {}, {} from {}", product->instruction->name,
                                                      napkin::name(product->type), s_.variable(product->a->variable()).name,
                                                      product->a_in_registers ? "registers" : "memory")});
            else
                levels.changes.push_back({name + " on threads",
                                          s_.atom(step).kind == AtomKind::block ? "a block of vectors" : "a fragment"});
        }
        for (VariableId id = 0; at(id) < s_.layouts.size(); ++id) {
            if (s_.layout(id).lives.empty()) continue;
            const std::string& name = s_.variable(id).name;
            levels.changes.push_back({fmt::format("{}: {}", name, napkin::name(s_.place(id).holding)),
                                      s_.is_view(id)         ? "where it lies"
                                      : s_.place(id).by_user ? "override"
                                                             : "the plan's choice"});
            types.changes.push_back({fmt::format("{}: {}", name, napkin::name(assigned_.variables[id].type)),
                                     assigned_.variables[id].type_reason});
            std::vector<std::string> lives;
            for (const Life& life : s_.layout(id).lives) lives.push_back(fmt::format("{}–{}", life.first, life.last));
            const VariableId over = s_.layout(id).over;
            variables.changes.push_back(
                {over >= 0 ? fmt::format("{} takes the place of {}", name, s_.variable(over).name)
                 : assigned_.variables[id].stages > 1 ? fmt::format("{} {} times", name, assigned_.variables[id].stages)
                                                      : name,
                 "alive " + join(lives, ", ")});
        }
        out_.divisors = size_divisors(context_, {}, assigned_, statement_work(diagram_, *s_.kernel));
        PaperStep rules = divisor_step(context_, out_.divisors);
        rules.fault = fault;
        for (PaperStep* step : {&subloops, &levels, &types, &rules, &variables}) out_.steps.push_back(std::move(*step));
    }

    const ScheduledKernel& s_;
    const Machine& machine_;
    const StepChoices& choices_;
    const Diagram& diagram_;
    StepContext context_;
    Assigned assigned_;
    KernelSteps out_;
    std::set<VariableId> targets_, known_;
};

}  // namespace

KernelSteps placed_steps(const ScheduledKernel& kernel, const Machine& machine, const StepChoices& choices) {
    return Placing(kernel, machine, choices).run();
}

StepReport placed_steps(const Plan& plan, const Machine& machine) { return placed_steps(plan, machine, {}).value(); }

Result<StepReport> placed_steps(const Plan& plan, const Machine& machine, const std::vector<ScheduleItem>& items) {
    const Diagram& diagram = plan.kernels.at(0).scheduled.program->diagram;
    StepReport report{diagram.name, machine.name, names_of(diagram.axes), {}};
    for (const KernelPlan& kernel : plan.kernels) {
        std::vector<ScheduleItem> own;
        for (const ScheduleItem& item : items)
            if (is_of_views(item) && (item.kernel.empty() || item.kernel == kernel.scheduled.kernel->name))
                own.push_back(item);
        const auto choices = step_choices(diagram, machine, own);
        if (!choices) return choices.errors();
        report.kernels.push_back(placed_steps(kernel.scheduled, machine, *choices));
    }
    report.of = diagram;
    return report;
}

Result<StepReport> steps_for(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& items, const Result<Plan>& plan, StepTexts texts) {
    const bool has_kernels = machine.kind == MachineKind::gpu && has_cuda_blocks(machine);
    if (plan && has_kernels) {
        auto report = placed_steps(*plan, machine, items);
        if (report) report->expected_s = plan->seconds();
        return report;
    }
    const bool is_of_hierarchy = any_of(
        items, [](const ScheduleItem& item) { return is_of_steps(item) || item.kind == ChoiceKind::warpgroup; });
    if (has_kernels && (is_of_a_kernel(items) || !is_of_hierarchy)) return plan.errors();
    auto report = paper_steps(derived, extents, machine, items, texts);
    if (report && !plan) report->no_plan = plan.errors().front().message;
    return report;
}

bool is_of_a_kernel(const std::vector<ScheduleItem>& items) {
    using enum ChoiceKind;
    constexpr std::array of_kernels{mma_m, warps,    role,      atom,    slot,  vector, vectors,
                                    rows,  prefetch, pipelined, threads, split, blocks};
    return any_of(items, [&](const ScheduleItem& item) { return contains(of_kernels, item.kind); });
}

}  // namespace napkin
