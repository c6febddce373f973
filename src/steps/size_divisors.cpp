#include <fmt/format.h>

#include "cost/divisors.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// The axes of the streams and subloops around a statement.
struct Loops {
    std::set<AxisId> streamed, cut;
};

void find_products(const Assigned& assigned, const std::vector<TileStatement>& list, const Loops& around,
                   std::map<ArrayId, Loops>& products) {
    for (const TileStatement& s : list) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            Loops inside = around;
            ((*loop)->is_sub ? inside.cut : inside.streamed).insert((*loop)->axis);
            find_products(assigned, (*loop)->body, inside, products);
        } else if (const auto* compute = std::get_if<Compute>(&s);
                   compute && compute->reduce && assigned.variables[compute->variable].at == HeldAt::fragments) {
            products[assigned.kernel.variables[compute->variable].array] = around;
        }
    }
}

}  // namespace

std::vector<std::pair<CutSize, std::int64_t>> SizeDivisors::merged() const {
    std::vector<std::pair<CutSize, std::int64_t>> out;
    for (const SizeDivisor& d : constraints) {
        const auto known = find_if(out, [&](const auto& m) { return m.first == d.size; });
        known == out.end() ? void(out.emplace_back(d.size, d.value))
                           : void(known->second = std::lcm(known->second, d.value));
    }
    return out;
}

std::string SizeDivisors::causes(const CutSize& size) const {
    std::string text;
    for (const SizeDivisor& d : constraints)
        if (d.size == size) text += fmt::format("{}{}", text.empty() ? "" : ", ", d.cause);
    return text;
}

SizeDivisors size_divisors(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                           const std::vector<StatementWork>& work) {
    SizeDivisors out;
    const auto demand = [&](const CutSize& size, std::int64_t value, std::string cause) {
        if (value <= 1 || size.axis < 0) return;
        for (const SizeDivisor& d : out.constraints)
            if (d.size == size && d.cause == cause) return;
        out.constraints.push_back({size, value, std::move(cause)});
    };
    const ByVariable<Variable>& variables = assigned.kernel.variables;
    const auto bytes_of = [&](const Variable& v) { return bytes(context.diagram.array(v.array).type); };
    for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
        const auto* load = std::get_if<Load>(&s);
        const auto* store = std::get_if<Store>(&s);
        if (!load && !store) return;
        const Variable& v = variables[load ? load->variable : store->variable];
        const AssignedVariable& where = assigned.variables[load ? load->variable : store->variable];
        if (v.dims.empty() || v.dims.back().single_axis() < 0) return;
        const std::int64_t values = static_cast<std::int64_t>(context.machine.line_bytes.value) / bytes_of(v);
        demand(context.cut(v.dims.back().single_axis(), where.streamed, {}, false), values,
               fmt::format("{} B lines of {} {}", context.machine.line_bytes.value, v.name, values));
    });
    // Fewer rows than threads leave some threads without one, whatever they are a multiple of.
    const bool threads_have_rows = any_of(assigned.variables,
                                          [](const AssignedVariable& v) { return v.at == HeldAt::threads; });
    // Each product's axes as its instruction meets them: in the loops around it.
    std::map<ArrayId, Loops> products;
    find_products(assigned, assigned.kernel.body, {}, products);
    for (const StatementWork& w : work) {
        if (!w.contraction || !products.contains(w.target)) continue;
        const Instruction* used = context.instruction_of(w);
        if (!used) continue;
        const Instruction& i = *used;
        const Loops& where = products.at(w.target);
        const std::string of = " of " + context.diagram.array(w.target).name;
        // The innermost axis that is cut is the one whose length the instruction sees; where none is, the last one.
        const auto innermost = [&](const std::vector<AxisId>& axes, std::int64_t value, const char* side) {
            std::optional<CutSize> seen;
            for (auto axis = axes.rbegin(); axis != axes.rend() && (!seen || seen->letter == 0); ++axis) {
                const CutSize size = context.cut(*axis, where.streamed, where.cut, false);
                if (!seen || size.letter != 0) seen = size;
            }
            if (!seen) return;
            demand(*seen, value, fmt::format("{} {} {}{}", i.name, side, value, of));
            if (seen->letter == 'w' && side[0] == 'm' && threads_have_rows && seen->size >= context.threads)
                demand(*seen, std::lcm(value, context.threads), fmt::format("{} threads, a row each", context.threads));
        };
        const bool is_turned = &columns_of(context, *w.contraction) == &w.contraction->m;
        innermost(is_turned ? w.contraction->n : w.contraction->m, i.m.from, "m");
        innermost(is_turned ? w.contraction->m : w.contraction->n, i.n.step, "n");
        innermost(w.contraction->k, i.k.at(w.contraction->type), "k");
        for (const VariableId v : variables.ids()) {
            const auto operand = [&](const OperandRead& o) { return o.array == variables[v].array; };
            if (!assigned.variables[v].is_operand || none_of(w.operands, operand)) continue;
            for (const CutSize& size : context.cuts_of(assigned, v, choices))
                if (size.letter == 'p' && contains(w.contraction->k, size.axis))
                    demand(size, i.k.at(w.contraction->type),
                           fmt::format("{} k {}{}", i.name, i.k.at(w.contraction->type), of));
        }
    }
    return out;
}

bool is_broken(const StepContext& context, const CutSize& size, std::int64_t multiple) {
    return size.size % multiple != 0 && size.size < context.extents[size.axis] && size.letter != 0;
}

Status check_divisors(const StepContext& context, const StepChoices& choices, const SizeDivisors& divisors) {
    if (choices.may_break_divisors) return Done{};
    std::vector<Diagnostic> errors;
    const std::vector<std::string> axes = names_of(context.diagram.axes);
    // Where the size was fixed by hand; the model's own sizes leave lines and instructions partly unused where nothing
    // larger fits.
    const auto by_user = [&](const CutSize& size) -> std::optional<SourceRange> {
        const auto found = [&](const auto& choice_of) -> std::optional<SourceRange> {
            const auto choice = choice_of.find(size.axis);
            if (choice == choice_of.end()) return std::nullopt;
            if constexpr (requires { choice->second.range; })
                return choice->second.range;
            else
                return choice->second;
        };
        if (size.letter == 'w')
            return choices.warpgroup.contains(size.axis) ? found(choices.warpgroup) : found(choices.group);
        if (size.letter == 'u') return found(choices.subloop);
        if (size.letter == 's') return found(choices.stream);
        if (size.letter == 'g') return found(choices.group);
        for (const auto& [variable, pieces] : choices.pieces)
            if (pieces.contains(size.axis) && pieces.at(size.axis).value == size.size)
                return pieces.at(size.axis).range;
        return std::nullopt;
    };
    for (const auto& [size, multiple] : divisors.merged()) {
        const std::int64_t extent = context.extents[size.axis];
        if (!is_broken(context, size, multiple)) continue;
        const auto range = by_user(size);
        if (!range) continue;
        // A share that follows from the group is made legal by the group.
        const bool is_of_group = size.letter == 'w' && !choices.warpgroup.contains(size.axis);
        const std::int64_t given = is_of_group ? context.sizes.group[size.axis] : size.size;
        const std::int64_t below = given / multiple * multiple, above = std::min(below + multiple, extent);
        const std::string line = is_of_group ? fmt::format("group {} = ", context.diagram.axis(size.axis).name) : "";
        errors.push_back(
            {.code = "broken-divisor",
             .range = *range,
             .message = fmt::format("{} = {} is no multiple of {}: {}", to_string(size, axes), size.size, multiple,
                                    divisors.causes(size)),
             .expected = fmt::format("a multiple of {}", multiple),
             .hint = below == 0 ? fmt::format("the nearest legal size is {}{}", line, above)
                                : fmt::format("the nearest legal sizes are {0}{1} and {0}{2}", line, below, above)});
    }
    if (!errors.empty()) return errors;
    return Done{};
}

}  // namespace napkin
