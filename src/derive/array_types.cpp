#include "derive/array_types.hpp"

#include <vector>

#include "algebra/number.hpp"

namespace napkin {
namespace {

/// Every definition of an array: in the rewritten equations, in the kernels' statements, and a state's value before a
/// step.
std::vector<std::pair<ArrayId, Expr>> definitions(const Derived& derived) {
    std::vector<std::pair<ArrayId, Expr>> out;
    for (const Equation& e : derived.diagram.equations) out.emplace_back(e.target, e.body);
    for (const Kernel& kernel : derived.kernels) {
        for (const Stage& stage : kernel.stages) {
            const auto& statements = std::holds_alternative<Block>(stage) ? std::get<Block>(stage).statements
                                                                          : std::get<Loop>(stage).body;
            for (const Statement& s : statements) out.emplace_back(s.target, s.body);
        }
        for (const Fold& fold : kernel.folds) {
            for (const FoldState& s : fold.states) {
                out.emplace_back(s.state, s.body);
                if (s.old >= 0) out.emplace_back(s.old, read_self(derived.diagram, s.state));
            }
            for (const auto& [result, e] : fold.finish) out.emplace_back(result, e);
        }
    }
    return out;
}

}  // namespace

void give_integer_types(Derived& derived) {
    const auto all = definitions(derived);
    // An array may be read before the place that defines it: the types settle in a few rounds.
    bool changed = true;
    for (int round = 0; changed && round < 8; ++round) {
        changed = false;
        Kinds kinds([&](ArrayId id) { return derived.diagram.array(id).type; });
        for (const auto& [target, body] : all) {
            if (static_cast<std::size_t>(target) < derived.source.arrays.size()) continue;
            const Kind kind = kinds(body);
            if (kind != Kind::i32 && kind != Kind::i64) continue;
            DType& type = derived.diagram.arrays[target].type;
            const DType wanted = kind == Kind::i32 ? DType::i32 : DType::i64;
            changed = changed || type != wanted;
            type = wanted;
        }
    }
}

}  // namespace napkin
