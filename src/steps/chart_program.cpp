// The program of a chart: a stream's statements in their order of issue, what each takes of which unit, and what it
// must wait for.
#include <fmt/format.h>

#include "cost/divisors.hpp"
#include "machine/peaks.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

Diagnostic endless(const StepChoices& choices) {
    return {.code = "issue-deadlock",
            .range = choices.turns.empty() ? SourceRange{} : choices.turns.front().range,
            .message = "in these turns warpgroups wait for each other for ever",
            .expected = "turns in which every warpgroup has what it reads",
            .hint = "leave the line out, or give what is loaded another place"};
}

Diagnostic deadlock(const StepChoices& choices, const Assigned& assigned, const ChartProgram& program,
                    const ChartDeadlock& d) {
    const ChartOperation &waits = program.operations[at(d.operation)], &on = program.operations[at(d.need.operation)];
    const auto listed = find_if(choices.issue, [&](const Listed& l) { return l.name == waits.name; });
    if (choices.issue.empty()) throw InternalError(waits.name + " waits for " + on.name + ": " + d.need.why);
    const std::string& place = d.need.place;
    int stages = 1;
    for (const VariableId v : assigned.variables.ids())
        if (assigned.kernel.variables[v].name == place) stages = assigned.variables[v].stages;
    return {.code = "issue-deadlock",
            .range = listed == choices.issue.end() ? choices.issue.front().range : listed->range,
            .message = fmt::format("{} would wait for ever for {}, which is issued after it: {}", waits.name, on.name,
                                   d.need.why),
            .expected = place.empty() ? fmt::format("{} behind {}", waits.name, on.name)
                                      : fmt::format("{} behind {}, or another place of {}", waits.name, on.name, place),
            .hint = place.empty() ? "" : fmt::format("storage {} operand, stages {}", place, stages + 1)};
}

class ChartBuilder {
public:
    ChartBuilder(const StepContext& context, const StepChoices& choices, const Assigned& assigned, const KernelSteps& steps)
        : context_(context), choices_(choices), assigned_(assigned), steps_(steps) {
        for (const StatementWork& w : statement_work(context.diagram, assigned.kernel))
            if (w.contraction)
                for (const AxisId axis : columns_of(context, *w.contraction)) columns_.insert(axis);
        for (const auto& [axis, share] : context.warpgroup)
            if (!columns_.contains(axis)) rows_ *= static_cast<double>(share);
        // Where no axis is the warpgroups', each has its share of all rows of the group.
        if (!context.warpgroup.empty()) return;
        for (const AxisId axis : assigned.kernel.group_axes)
            if (const CutSize size = context.cut(axis, {}, {}, false); is_beside(size))
                rows_ *= static_cast<double>(size.size);
        rows_ /= static_cast<double>(context.sharing);
    }

    Result<StreamChart> run(const TileLoop& loop) {
        const auto program = without_deadlocks(loop);
        if (!program) return program.errors();
        if (!comes_to_its_end(*program)) return endless(choices_);
        StreamChart out{loop.axis, rows_, {}, 0, 0};
        out.chart = run_chart(*program);
        return out;
    }

    /// The program whose chart is run. Errors: as overlap_charts, but for turns that never end.
    Result<ChartProgram> without_deadlocks(const TileLoop& loop) {
        auto made = program(loop);
        if (!made) return made.errors();
        if (const auto stuck = deadlocks(*made); !stuck.empty())
            return deadlock(choices_, assigned_, *made, stuck.front());
        return made;
    }
    /// In the order of issue that was chosen, whether that can be or not. Errors: unknown-variable.
    Result<ChartProgram> program(const TileLoop& loop) {
        add(loop.body);
        add_flow();
        add_shared_places();
        if (const Status s = order(); !s) return s.errors();
        ChartProgram program{operations_, static_cast<int>(context_.num_warpgroups()), {}, {}};
        for (const auto& [unit, overhead] : choices_.overheads) program.overheads[unit] = overhead.share;
        for (std::size_t i = 0; i < choices_.turns.size(); ++i)
            if (const auto node = node_of(choices_.turns, i)) program.turn.push_back(*node);
        return program;
    }

    [[nodiscard]] bool is_empty() const {
        return all_of(operations_, [](const ChartOperation& o) { return o.clocks() == 0; });
    }

private:
    [[nodiscard]] const std::string& name_of(VariableId v) const { return assigned_.kernel.variables[v].name; }
    /// Whether the axis has rows of the group beside those of a warpgroup.
    [[nodiscard]] bool is_beside(const CutSize& size) const {
        return size.letter == 'g' && !columns_.contains(size.axis);
    }
    [[nodiscard]] bool is_charted(const std::string& unit) const {
        return choices_.units.empty() || any_of(choices_.units, [&](const Listed& l) { return l.name == unit; });
    }

    /// A statement of threads and of the tensor cores is two operations, that of threads first. A product adds up, so
    /// that it is as many parts as the order of issue names it.
    void add(const std::vector<TileStatement>& list) {
        for (const TileStatement& s : list) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) add((*loop)->body);
            if (const auto* load = std::get_if<Load>(&s)) add_transfer(load->variable, true);
            if (const auto* store = std::get_if<Store>(&s)) add_transfer(store->variable, false);
            if (const auto* init = std::get_if<Init>(&s)) add(init->variable, {}, {});
            const auto* compute = std::get_if<Compute>(&s);
            if (!compute) continue;
            std::vector<VariableId> reads;
            for (const Read* r : reads_in_order(compute->body, compute->carry)) reads.push_back(r->variable());
            std::vector<ChartUse> threads, matrix;
            uses(compute->variable, threads, matrix);
            if (matrix.empty() || !threads.empty()) add(compute->variable, threads, reads);
            if (matrix.empty()) continue;
            const auto parts = std::max<std::ptrdiff_t>(
                1, count_if(choices_.issue, [&](const Listed& l) { return l.name == name_of(compute->variable); }));
            for (ChartUse& use : matrix) use.clocks /= static_cast<double>(parts);
            for (std::ptrdiff_t part = 0; part < parts; ++part) {
                if (part > 0 || !threads.empty()) reads.push_back(compute->variable);
                add(compute->variable, matrix, reads);
                operations_.back().is_async = true;
            }
        }
    }
    void add(VariableId written, const std::vector<ChartUse>& uses, std::vector<VariableId> reads) {
        operations_.push_back({.name = name_of(written), .uses = uses, .needs = {}});
        written_.push_back(written);
        reads_.push_back(std::move(reads));
    }
    /// What comes from memory, or goes there, through the pipe into the core's memory. Where that is not charted, all
    /// that is said of it is in the number of places.
    void add_transfer(VariableId v, bool is_load) {
        std::vector<ChartUse> uses;
        use_pipe(core_memory_level(context_.machine), v, assigned_.kernel.variables[v].memory_type, uses);
        if (uses.empty()) return;
        std::vector<VariableId> reads;
        if (!is_load) reads.push_back(v);
        for (const Index& index : assigned_.kernel.variables[v].gathers)
            for (const VariableId of : index.expression() ? read_variables(*index.expression()) : std::vector<VariableId>{})
                if (is_load) reads.push_back(of);
        operations_.push_back({.name = (is_load ? "load " : "store ") + name_of(v),
                               .uses = std::move(uses),
                               .is_async = true,
                               .is_transfer = true,
                               .is_shared = is_shared(context_, assigned_.kernel.variables[v]),
                               .needs = {}});
        written_.push_back(is_load ? v : VariableId());
        reads_.push_back(std::move(reads));
    }

    /// Clocks in which a chunk of a variable, with all its parts, crosses the pipe into a level, which is called by it.
    /// They are of the rows that the throughput table counts, or of all rows where no axis is the warpgroups'. Nothing
    /// where the pipe is not charted, or the machine has none.
    void use_pipe(std::size_t level, VariableId v, DType type, std::vector<ChartUse>& to) const {
        const Machine& machine = context_.machine;
        if (level >= machine.levels.size() || !is_charted(machine.levels[level].name)) return;
        const AssignedVariable& where = assigned_.variables[v];
        double num_bytes = bytes(type);
        for (const Index& dim : assigned_.kernel.variables[v].dims)
            for (const AxisId axis : dim.axes()) {
                const CutSize size = context_.cut(axis, where.streamed, {}, false);
                if (!is_beside(size) || context_.warpgroup.empty()) num_bytes *= static_cast<double>(size.size);
            }
        const double bytes_a_clock = total_bandwidth(machine.levels[level]) / machine.cores.value / machine.clock_hz.value;
        if (bytes_a_clock > 0)
            to.push_back({machine.levels[level].name, with_overhead(machine.levels[level].name, num_bytes / bytes_a_clock)});
    }
    [[nodiscard]] double with_overhead(const std::string& unit, double clocks) const {
        const auto overhead = choices_.overheads.find(unit);
        return overhead == choices_.overheads.end() ? clocks : clocks * (1 + overhead->second.share);
    }

    /// Uses by the throughput table, for a warpgroup's rows and with what the unit takes besides. Threads copy what
    /// passes between registers and the core's memory; what stays on one side of it is in no unit's way.
    void uses(VariableId v, std::vector<ChartUse>& threads, std::vector<ChartUse>& matrix) const {
        const AssignedVariable& where = assigned_.variables[v];
        if (where.copy_of >= 0) {
            const bool to_memory = where.at == HeldAt::memory,
                       from_memory = assigned_.variables[where.copy_of].at == HeldAt::memory;
            if (to_memory != from_memory) use_pipe(core_memory_level(context_.machine) + 1, v, where.type, threads);
            return;
        }
        const VariableId target = where.product_of >= 0 ? where.product_of : v;
        const bool multiplied_apart = any_of(assigned_.variables,
                                             [&](const AssignedVariable& o) { return o.product_of == v; });
        const std::string& statement = context_.diagram.array(assigned_.kernel.variables[target].array).name;
        for (const ThroughputRow& row : steps_.throughput.rows) {
            const bool is_matrix = row.unit == "tensor";
            if (row.statement != statement || !is_charted(row.unit) ||
                (is_matrix ? multiplied_apart : where.product_of >= 0))
                continue;
            const double clocks = with_overhead(row.unit, row.clocks() * rows_);
            std::vector<ChartUse>& to = is_matrix ? matrix : threads;
            const auto known = find_if(to, [&](const ChartUse& u) { return u.unit == row.unit; });
            known == to.end() ? to.push_back({row.unit, clocks}) : void(known->clocks += clocks);
        }
    }

    [[nodiscard]] std::vector<int> writers(VariableId v) const {
        std::vector<int> out;
        for (std::size_t o = 0; o < written_.size(); ++o)
            if (written_[o] == v) out.push_back(static_cast<int>(o));
        return out;
    }
    void need(int operation, int of, int distance, std::string why, const std::string& place = "") {
        if (operation == of && distance == 0) return;
        operations_[at(operation)].needs.push_back({of, distance, std::move(why), place});
    }

    /// A value is read after it is written, this iteration's or the last one's, and its place is written again after
    /// that.
    void add_flow() {
        for (std::size_t o = 0; o < reads_.size(); ++o) {
            const int reader = static_cast<int>(o);
            for (const VariableId v : reads_[o]) {
                const std::vector<int> made = writers(v);
                if (made.empty()) continue;
                const auto behind = std::lower_bound(made.begin(), made.end(), reader);
                const int distance = behind == made.begin() ? 1 : 0;
                need(reader, distance == 1 ? made.back() : *(behind - 1), distance, fmt::format("it reads {}", name_of(v)));
                // Tensor cores read a packed copy of fragments, which is made when the product is issued.
                if (operations_[o].is_async && assigned_.variables[v].at == HeldAt::fragments) continue;
                const int stages = assigned_.variables[v].stages;
                for (const int writer : made)
                    need(writer, reader,
                         distance == 1     ? stages - 1
                         : writer > reader ? 0
                                           : stages,
                         stages == 1 ? fmt::format("{} has one place", name_of(v))
                                     : fmt::format("{} has {} places", name_of(v), stages),
                         name_of(v));
            }
        }
    }

    /// Where variables take each other's place, each waits for the readers of those before it.
    void add_shared_places() {
        for (const VariableLife& a : steps_.lives)
            for (const VariableLife& b : steps_.lives) {
                if (a.slot < 0 || a.slot != b.slot || a.variable == b.variable) continue;
                for (std::size_t o = 0; o < reads_.size(); ++o) {
                    if (!contains(reads_[o], a.variable)) continue;
                    for (const int writer : writers(b.variable))
                        need(writer, static_cast<int>(o), a.first < b.first ? 0 : 1,
                             fmt::format("{} takes the place of {}", name_of(b.variable), name_of(a.variable)),
                             name_of(b.variable));
                }
            }
    }

    [[nodiscard]] std::vector<int> nodes_of(const std::string& name) const {
        std::vector<int> out;
        for (std::size_t o = 0; o < operations_.size(); ++o)
            if (operations_[o].name == name && !operations_[o].is_transfer) out.push_back(static_cast<int>(o));
        return out;
    }

    /// The operation of a name in a list: its last one, or where the list has the name again the one before.
    [[nodiscard]] std::optional<int> node_of(const std::vector<Listed>& list, std::size_t i) const {
        const auto nodes = nodes_of(list[i].name);
        const auto left = static_cast<std::size_t>(std::count_if(list.begin() + static_cast<std::ptrdiff_t>(i), list.end(),
                                                                 [&](const Listed& l) { return l.name == list[i].name; }));
        return left > nodes.size() ? std::nullopt : std::optional(nodes[nodes.size() - left]);
    }

    /// In one of the streams among the statements.
    [[nodiscard]] bool is_computed(const std::vector<TileStatement>& statements, const std::string& name,
                                   bool in_stream = false) const {
        return any_of(statements, [&](const TileStatement& s) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s))
                return is_computed((*loop)->body, name, true);
            const auto* compute = std::get_if<Compute>(&s);
            return in_stream && compute && name_of(compute->variable) == name;
        });
    }

    /// Operations as they are issued: each that is named, behind those of the program that lead to it.
    /// What another stream of the kernel computes is issued there.
    Status order() {
        for (const auto* list : {&choices_.issue, &choices_.turns})
            for (std::size_t i = 0; i < list->size(); ++i) {
                const Listed& l = (*list)[i];
                if (node_of(*list, i) || (nodes_of(l.name).empty() && is_computed(assigned_.kernel.body, l.name)))
                    continue;
                if (!nodes_of(l.name).empty())
                    return Diagnostic{.code = "bad-schedule",
                                      .range = l.range,
                                      .message = fmt::format("{} is named more often than it has parts", l.name),
                                      .expected = "each name once, but products as often as they are cut into parts"};
                std::vector<std::string> names;
                for (const ChartOperation& o : operations_)
                    if (!o.is_transfer) names.push_back(o.name);
                return Diagnostic{.code = "unknown-variable",
                                  .range = l.range,
                                  .message = fmt::format("the stream computes no '{}'", l.name),
                                  .expected = "one of " + join(names, ", "),
                                  .hint = did_you_mean(l.name, names)};
            }
        std::vector<Listed> issue = choices_.issue;
        std::erase_if(issue, [&](const Listed& l) { return nodes_of(l.name).empty(); });
        if (issue.empty()) return Done{};
        std::vector<std::pair<std::size_t, int>> rank(operations_.size());  // the named one that each goes with
        std::map<int, std::size_t> named;                                   // by operation
        for (std::size_t i = 0; i < issue.size(); ++i)
            for (const int node : nodes_of(issue[i].name))
                if (node <= *node_of(issue, i)) named.try_emplace(node, i);
        std::size_t last = named.rbegin()->second;
        for (std::size_t o = operations_.size(); o-- > 0;) {
            last = value_or(named, static_cast<int>(o), last);
            rank[o] = {last, static_cast<int>(o)};
            if (!operations_[o].is_transfer) operations_[o].ahead = issue[last].ahead;
        }
        sort(rank);
        std::vector<ChartOperation> sorted;
        std::vector<int> to(operations_.size());
        for (std::size_t i = 0; i < rank.size(); ++i)
            to[at(rank[i].second)] = static_cast<int>(i), sorted.push_back(operations_[at(rank[i].second)]);
        for (ChartOperation& o : sorted)
            for (ChartNeed& n : o.needs) n.operation = to[at(n.operation)];
        operations_ = std::move(sorted);
        return Done{};
    }

    const StepContext& context_;
    const StepChoices& choices_;
    const Assigned& assigned_;
    const KernelSteps& steps_;
    double rows_ = 1;
    std::set<AxisId> columns_;  ///< of contractions
    std::vector<ChartOperation> operations_;
    std::vector<VariableId> written_;
    std::vector<std::vector<VariableId>> reads_;
};

}  // namespace

Result<StreamClocks> steady_clocks(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                                   const KernelSteps& steps) {
    StreamClocks out;
    for (const TileStatement& s : assigned.kernel.body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop || (*loop)->is_sub) continue;
        ChartBuilder builder(context, choices, assigned, steps);
        const auto program = builder.without_deadlocks(**loop);
        if (!program) return program.errors();
        const auto interval = steady_interval(*program);
        if (!interval) return endless(choices);
        const std::int64_t chunk = context.sizes.stream[(*loop)->axis];
        const auto chunks = static_cast<double>(chunk > 0 ? ceil_div(context.extents[(*loop)->axis], chunk) : 1);
        out.steady += *interval * chunks, out.least += least_interval(*program) * chunks;
    }
    return out;
}

std::optional<std::vector<std::string>> missing_places(const StepContext& context, const StepChoices& choices,
                                                       const Assigned& assigned, const KernelSteps& steps) {
    std::vector<std::string> out;
    for (const TileStatement& s : assigned.kernel.body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop || (*loop)->is_sub) continue;
        const auto program = ChartBuilder(context, choices, assigned, steps).program(**loop);
        if (!program) return std::nullopt;
        for (const ChartDeadlock& stuck : deadlocks(*program)) {
            if (stuck.need.place.empty()) return std::nullopt;
            if (!contains(out, stuck.need.place)) out.push_back(stuck.need.place);
        }
    }
    return out;
}

std::vector<ChartProgram> chart_programs(const StepContext& context, const Assigned& assigned, const KernelSteps& steps) {
    std::vector<ChartProgram> out;
    for (const TileStatement& s : assigned.kernel.body)
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s); loop && !(*loop)->is_sub)
            out.push_back(ChartBuilder(context, {}, assigned, steps).program(**loop).value());
    return out;
}

Result<std::vector<StreamChart>> overlap_charts(const StepContext& context, const StepChoices& choices,
                                                const Assigned& assigned, const KernelSteps& steps) {
    std::vector<StreamChart> out;
    for (const TileStatement& s : assigned.kernel.body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop || (*loop)->is_sub) continue;
        ChartBuilder builder(context, choices, assigned, steps);
        auto chart = builder.run(**loop);
        if (!chart) return chart.errors();
        if (builder.is_empty()) continue;
        for (const UnitShare& unit : chart->chart.units)
            if (unit.unit == "tensor") chart->tensor_share = unit.busy;
        double products = 0;
        for (const ThroughputRow& row : steps.throughput.rows)
            if (row.unit == "tensor") products += row.operations;
        if (chart->tensor_share > 0)
            chart->tensor_flop_per_s = products * chart->rows * static_cast<double>(chart->chart.program.num_warpgroups) /
                                       chart->chart.interval * context.machine.cores.value * context.machine.clock_hz.value;
        out.push_back(std::move(chart).value());
    }
    return out;
}

}  // namespace napkin
