#include "export/rules.hpp"

#include <algorithm>

#include "support/ranges.hpp"

namespace napkin {
namespace {

ArrayRule stricter(const ArrayRule& a, const ArrayRule& b) {
    return {std::max(a.strides, b.strides), a.has_map || b.has_map};
}

template <class Entry>
ArrayRule rule_of(const Entry& entry, ArrayId array) {
    ArrayRule out;
    const auto is_listed = [&](const std::vector<ArrayId>& arrays, const std::vector<bool>& flags) {
        for (std::size_t i = 0; i < arrays.size() && i < flags.size(); ++i)
            if (arrays[i] == array && flags[i]) return true;
        return false;
    };
    if constexpr (requires { entry.maps; }) {
        out.has_map = any_of(entry.maps, [&](const cuda::TensorMap& map) { return map.array == array; });
        if (out.has_map || is_listed(entry.outputs, entry.in_rows)) out.strides = StrideRule::last_is_one;
    }
    if (!out.has_map && (is_listed(entry.inputs, entry.packed) || is_listed(entry.outputs, entry.dense)))
        out.strides = StrideRule::row_major;
    return out;
}

}  // namespace

std::vector<ArrayRule> array_rules(const Compilation& made) {
    const Diagram &diagram = made.program.diagram, &callers = made.diagram;
    std::vector<ArrayRule> out;
    const auto add = [&](const std::vector<ArrayId>& list, const std::vector<ArrayId>& of_callers) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            ArrayRule rule;
            std::visit(
                [&](const auto& code) {
                    for (const auto& entry : code.entries) rule = stricter(rule, rule_of(entry, list[i]));
                },
                made.code);
            // Kernels read several of its dimensions as one.
            if (diagram.array(list[i]).axes.size() != callers.array(of_callers[i]).axes.size())
                rule.strides = StrideRule::row_major;
            out.push_back(rule);
        }
    };
    add(diagram.inputs, callers.inputs), add(diagram.outputs, callers.outputs);
    return out;
}

std::vector<ArrayRule> array_rules(const ExportedProgram& program) {
    std::vector<ArrayRule> out = array_rules(program.first());
    for (const ExportedClass& one : program.classes) {
        const std::vector<ArrayRule> of = array_rules(one.made);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = stricter(out[i], of[i]);
    }
    return out;
}

}  // namespace napkin
