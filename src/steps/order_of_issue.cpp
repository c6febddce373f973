// Orders in which warpgroups may issue a stream's operations, where no schedule says one.
#include <fmt/format.h>

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Operations that one needs of the same iteration, and what these need.
void add_needed(const ChartProgram& program, int operation, std::set<int>& out) {
    for (const ChartNeed& need : program.operations[at(operation)].needs)
        if (need.distance == 0 && need.place.empty() && out.insert(need.operation).second)
            add_needed(program, need.operation, out);
}
bool is_product(const ChartOperation& o) { return o.is_async && !o.is_transfer; }
bool is_of_threads(const ChartOperation& o) { return !o.is_async; }

/// A stream whose products wait for each other with threads between them. The products `first` wait for no thread, and
/// `last` is the last product. Between them, `between` is the last operation of threads that `last` needs and that is
/// no copy. The iteration's last operation is `end`.
struct Chain {
    std::vector<std::string> first;
    std::string last, between, end;
};
std::optional<Chain> chain_of(const ChartProgram& program, const Assigned& assigned) {
    Chain out;
    int last = -1;
    for (std::size_t o = 0; o < program.operations.size(); ++o) {
        if (!program.operations[o].is_transfer) out.end = program.operations[o].name;
        if (is_product(program.operations[o])) last = static_cast<int>(o);
    }
    if (last < 0) return std::nullopt;
    std::set<int> of_last;
    add_needed(program, last, of_last);
    for (int o = 0; o < last; ++o) {
        if (!is_product(program.operations[at(o)])) continue;
        std::set<int> needed;
        add_needed(program, o, needed);
        const bool waits = any_of(needed, [&](int n) {
            return is_of_threads(program.operations[at(n)]) && program.operations[at(n)].clocks() > 0;
        });
        if (!waits) out.first.push_back(program.operations[at(o)].name);
    }
    // The last operation that threads do before it and that is no copy.
    for (const int o : of_last) {
        const std::string& name = program.operations[at(o)].name;
        const auto variable = find_if(assigned.kernel.variables, [&](const Variable& v) { return v.name == name; });
        const auto id = VariableId::of(variable - assigned.kernel.variables.begin());
        if (is_of_threads(program.operations[o]) && assigned.variables[id].copy_of < 0) out.between = name;
    }
    out.last = program.operations[at(last)].name;
    if (out.first.empty() || out.between.empty()) return std::nullopt;
    return out;
}

}  // namespace

std::vector<IssueOrder> issue_orders(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                                     const KernelSteps& steps) {
    std::vector<IssueOrder> out;
    const auto take = [&](IssueOrder order) {
        // Whatever is written ahead of its readers needs a place more.
        Assigned with = assigned;
        KernelSteps made = steps;
        for (int tries = 0; tries < 4; ++tries) {
            // What has several places shares none.
            made.lives = variable_lives(context, order.choices, with);
            const auto missing = missing_places(context, order.choices, with, made);
            if (!missing) return;
            if (missing->empty()) return out.push_back(std::move(order));
            for (const VariableId v : with.variables.ids())
                if (const std::string& name = with.kernel.variables[v].name; contains(*missing, name))
                    order.choices.stages[name] = {++with.variables[v].stages, {}};
        }
    };
    for (const ChartProgram& program : chart_programs(context, assigned, steps)) {
        const auto chain = chain_of(program, assigned);
        if (!chain) continue;
        IssueOrder ahead{choices, "products a chunk ahead"}, turns{choices, "turns at the tensor cores"};
        for (const std::string& name : chain->first) ahead.choices.issue.push_back({name, 1, {}});
        ahead.choices.issue.push_back({chain->last, 0, {}});
        ahead.choices.issue.push_back({chain->between, 1, {}});
        if (chain->end != chain->last) ahead.choices.issue.push_back({chain->end, 0, {}});
        turns.choices.turns = {{chain->last, 0, {}}, {chain->first.back(), 0, {}}};
        take(std::move(ahead));
        if (context.num_warpgroups() > 1) take(std::move(turns));
    }
    return out;
}

}  // namespace napkin
