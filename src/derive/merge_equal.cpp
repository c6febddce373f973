#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"

namespace napkin {
namespace {

bool commutes(BinaryOp op) {
    switch (op) {
        case BinaryOp::add:
        case BinaryOp::mul:
        case BinaryOp::min:
        case BinaryOp::max:
        case BinaryOp::eq:
        case BinaryOp::ne:
        case BinaryOp::logical_and:
        case BinaryOp::logical_or: return true;
        default: return false;
    }
}

/// The same for all orders of the operands of what commutes: the smaller hash first.
Expr sorted(const Expr& e) {
    return transform(e, [](const Expr& node) {
        const auto* b = as<Binary>(node);
        return b && commutes(b->op) && b->b->hash < b->a->hash ? binary(b->op, b->b, b->a) : node;
    });
}

/// What two equations that say the same have in common. Equal expressions are one object.
using Key = std::tuple<std::optional<ReduceOp>, std::vector<AxisId>, std::vector<AxisId>, DType, Expr>;

}  // namespace

void merge_equal_equations(Diagram& diagram, std::vector<DerivationStep>& steps) {
    std::map<Key, ArrayId> first;
    std::unordered_map<ArrayId, ArrayId> same_as;
    for (Equation& e : diagram.equations) {
        const Equation before = e;
        e.body = transform(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            const auto same = r ? same_as.find(r->array) : same_as.end();
            return same == same_as.end() ? node : read(same->second, r->indices);
        });
        const Array& array = diagram.array(e.target);
        // A copy is no work of its own: it stays what it is.
        if (!as<Read>(e.body) || e.reduce) {
            const Key key{e.reduce, e.reduce_axes, array.axes, array.type, sorted(e.body)};
            const auto [known, fresh] = first.emplace(key, e.target);
            if (!fresh) {
                const ArrayId same = known->second;
                e.reduce.reset();
                e.reduce_axes.clear();
                e.body = read_self(diagram, same);
                same_as[e.target] = same;
                Edit edit;
                edit.equations.push_back({before, {e}});
                steps.push_back({"merge", "write twice", "the two equations say the same, of the same arrays",
                                 fmt::format("{} is {}", array.name, diagram.array(same).name), e.range, std::move(edit)});
                continue;
            }
        }
        if (e == before) continue;
        Edit edit;
        edit.equations.push_back({before, {e}});
        steps.push_back({"read merged", "read the copy", "the array that it reads is a copy",
                         fmt::format("{} reads the array that was copied", array.name), e.range, std::move(edit)});
    }
}

}  // namespace napkin
