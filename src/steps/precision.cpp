#include <fmt/format.h>

#include "cost/divisors.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// The types that the machine's instructions multiply.
std::vector<std::string> multiplied_types(const Machine& machine) {
    std::vector<std::string> out;
    for (const Instruction& i : machine.instructions)
        for (const auto& [type, k] : i.k)
            if (!contains(out, name(type))) out.emplace_back(name(type));
    return out;
}

/// The matrix instruction of a sum, and the type of its operands.
struct Product {
    const Instruction* instruction = nullptr;
    DType type = DType::f32;
    [[nodiscard]] const std::vector<Accumulator>& accumulators() const { return instruction->accumulators.at(type); }
    [[nodiscard]] bool adds_in(DType wanted) const { return napkin::adds_in(*instruction, type, wanted); }
    /// The narrowest of its accumulators that has all values of the wanted type; the widest, where none has.
    [[nodiscard]] DType nearest(DType wanted) const {
        const auto rank = [&](const Accumulator& a) {
            const bool holds = promote(a.type, wanted) == a.type;
            return std::pair{!holds, holds ? bytes(a.type) : -bytes(a.type)};
        };
        return min_element(accumulators(), [&](const Accumulator& a, const Accumulator& b) { return rank(a) < rank(b); })
            ->type;
    }
    [[nodiscard]] std::string names() const {
        std::vector<std::string> types;
        for (const Accumulator& a : accumulators()) types.emplace_back(name(a.type));
        return join(types, " or ");
    }
};

}  // namespace

Status assign_precision(const StepContext& context, const StepChoices& choices, Assigned& assigned) {
    std::vector<Diagnostic> errors;
    const auto error = [&](const char* code, const SourceRange& range, std::string message, std::string expected,
                           std::string hint = "") {
        errors.push_back({.code = code,
                          .range = range,
                          .message = std::move(message),
                          .expected = std::move(expected),
                          .hint = std::move(hint)});
    };
    std::vector<VariableId> loaded;
    // What every product multiplies: the widest of its operands that lie in memory.
    std::map<VariableId, DType> demanded;
    std::map<VariableId, Product> products;
    for_each_statement(assigned.kernel.body, [&](const TileStatement& s) {
        if (const auto* load = std::get_if<Load>(&s)) loaded.push_back(load->variable);
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute || !compute->reduce) return;
        std::optional<DType> type;
        const std::vector<const Read*> reads = reads_in_order(compute->body, nullptr);
        for (const Read* r : reads)
            if (contains(loaded, r->variable())) {
                const DType own = context.diagram.array(assigned.kernel.variables[r->variable()].array).type;
                type = type ? promote(*type, own) : own;
            }
        for (const Read* r : reads)
            if (type && assigned.variables[r->variable()].is_operand && !contains(loaded, r->variable()))
                demanded[r->variable()] = *type;
        const AssignedVariable& sum = assigned.variables[compute->variable];
        if (sum.at != HeldAt::fragments) return;
        if (!type)
            for (const Read* r : reads) {
                const DType own = context.diagram.array(assigned.kernel.variables[r->variable()].array).type;
                type = type ? promote(*type, own) : own;
            }
        if (const Instruction* instruction = type ? instruction_for(context.machine, *type) : nullptr)
            products[sum.product_of >= 0 ? sum.product_of : compute->variable] = {instruction, *type};
    });
    for (VariableId id = 0; at(id) < assigned.variables.size(); ++id) {
        AssignedVariable& v = assigned.variables[id];
        const Variable& variable = assigned.kernel.variables[id];
        v.type = context.diagram.array(variable.array).type, v.type_reason = "declared";
        if (v.copy_of >= 0)
            v.type = assigned.variables[v.copy_of].type, v.type_reason = "as " + assigned.kernel.variables[v.copy_of].name;
        if (v.product_of >= 0)
            v.type = assigned.variables[v.product_of].type,
            v.type_reason = "as " + assigned.kernel.variables[v.product_of].name;
        if (demanded.contains(id)) v.type = demanded.at(id), v.type_reason = "the tensor cores multiply it by its kind";
        const auto product = products.find(id);
        if (product != products.end() && !product->second.adds_in(v.type))
            v.type_reason = fmt::format("{} adds products of {} in {}, and {} is declared",
                                        product->second.instruction->name, name(product->second.type),
                                        product->second.names(), name(v.type)),
            v.type = product->second.nearest(v.type);
        const auto hand = choices.precision.find(variable.name);
        if (hand == choices.precision.end()) continue;
        const DType wanted = hand->second.value;
        if (contains(loaded, id)) {
            error("bad-precision", hand->second.range, fmt::format("{} lies in memory as {}", variable.name, name(v.type)),
                  "a variable that the kernel computes",
                  fmt::format("the text says the types of arrays: {}: {}", variable.name, name(wanted)));
        } else if (v.is_operand && !instruction_for(context.machine, wanted)) {
            error("bad-precision", hand->second.range,
                  fmt::format("no instruction of {} multiplies {}", context.machine.name, name(wanted)),
                  "one of " + join(multiplied_types(context.machine), ", "),
                  fmt::format("the nearest legal type is {}", name(v.type)));
        } else if (product != products.end() && !product->second.adds_in(wanted)) {
            const Product& p = product->second;
            error("bad-precision", hand->second.range,
                  fmt::format("{} of {} adds products of {} in {}, and not in {}", p.instruction->name,
                              context.machine.name, name(p.type), p.names(), name(wanted)),
                  p.names(), fmt::format("the nearest legal type is {}", name(p.nearest(wanted))));
        } else if (demanded.contains(id) && demanded.at(id) != wanted) {
            error("bad-precision", hand->second.range,
                  fmt::format("{} is multiplied by values of {}, and an instruction takes both operands in one type",
                              variable.name, name(demanded.at(id))),
                  std::string(name(demanded.at(id))), fmt::format("the nearest legal type is {}", name(demanded.at(id))));
        } else {
            v.type = wanted, v.type_reason = "override";
        }
    }
    if (!errors.empty()) return errors;
    return Done{};
}

}  // namespace napkin
