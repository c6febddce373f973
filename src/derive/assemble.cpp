#include "derive/assemble.hpp"

#include <algorithm>
#include <set>

#include "derive/assemble_loop.hpp"
#include "derive/assembly.hpp"
#include "derive/share.hpp"
#include "derive/term.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

void add(Kernel& kernel, std::vector<Statement> statements) {
    if (statements.empty()) return;
    if (!kernel.stages.empty())
        if (auto* last = std::get_if<Block>(&kernel.stages.back())) {
            for (auto& s : statements) last->statements.push_back(std::move(s));
            return;
        }
    kernel.stages.emplace_back(Block{std::move(statements)});
}

/// Arrays that do not lie on the stream and are final after the traversal, in order of definition.
std::vector<Statement> block(const Assembly& k, int after) {
    std::vector<Statement> out;
    for (const ArrayId id : k.order)
        if (k.needed.contains(id) && !k.on_stream(id) && !k.is_state(id) && k.traversal(id) == after)
            out.push_back(k.statement(id));
    share(k.diagram, out, [](const Expr&) { return false; }, nullptr);
    return out;
}

/// Final results whose running values were all that the loops needed.
void drop_unread(const Assembly& assembly, Kernel& kernel) {
    for (bool changed = true; changed;) {
        std::set<ArrayId> read = assembly.outputs;
        for_each_statement(kernel, [&](const Statement& s) {
            for (const auto* e : {&s.body, &s.carry})
                if (*e)
                    for (const ArrayId r : read_arrays(*e)) read.insert(r);
        });
        changed = false;
        for (auto& stage : kernel.stages) {
            auto& list = std::holds_alternative<Block>(stage) ? std::get<Block>(stage).statements
                                                              : std::get<Loop>(stage).body;
            const auto unread = [&](const Statement& s) {
                return !read.contains(s.target) && !assembly.is_state(s.target);
            };
            const auto end = std::remove_if(list.begin(), list.end(), unread);
            changed = changed || end != list.end();
            list.erase(end, list.end());
        }
    }
    std::erase_if(kernel.stages, [](const Stage& stage) {
        const auto* block = std::get_if<Block>(&stage);
        return block && block->statements.empty();
    });
}

void list_inputs(Kernel& kernel) {
    std::set<ArrayId> computed, inputs;
    for_each_statement(kernel, [&](const Statement& s) { computed.insert(s.target); });
    for_each_statement(kernel, [&](const Statement& s) {
        for (const ArrayId r : read_arrays(s.body))
            if (!computed.contains(r)) inputs.insert(r);
        if (s.carry)
            for (const ArrayId r : read_arrays(s.carry))
                if (!computed.contains(r)) inputs.insert(r);
    });
    kernel.inputs.assign(inputs.begin(), inputs.end());
}

/// Work that does not carry a is repeated for every group of a. It is harmless where a statement that carries a
/// does at least as much for every one of its points.
bool repeats_work(const Diagram& diagram, const Kernel& kernel, AxisId a) {
    bool repeats = false;
    const auto points = [&](const Statement& s) {
        std::vector<AxisId> axes = diagram.array(s.target).axes;
        append(axes, s.reduce_axes);
        return axes;
    };
    for_each_statement(kernel, [&](const Statement& s) {
        auto axes = points(s);
        if (contains(axes, a) || read_arrays(s.body).empty() || (!s.reduce && !is_expensive(s.body))) return;
        axes.push_back(a);
        bool covered = false;
        for_each_statement(kernel, [&](const Statement& other) {
            const auto wider = points(other);
            covered = covered || all_of(axes, [&](AxisId x) { return contains(wider, x); });
        });
        repeats = repeats || !covered;
    });
    return repeats;
}

void find_group_axes(const Diagram& diagram, AxisId streamed, Kernel& kernel) {
    if (kernel.outputs.empty()) return;
    for (const AxisId a : diagram.array(kernel.outputs.front()).axes) {
        bool groupable = a != streamed;
        for (const ArrayId o : kernel.outputs) groupable = groupable && contains(diagram.array(o).axes, a);
        for_each_statement(kernel, [&](const Statement& s) { groupable = groupable && !contains(s.reduce_axes, a); });
        if (groupable) kernel.group_axes.push_back(a);
    }
    for (const AxisId a : kernel.group_axes)
        if (repeats_work(diagram, kernel, a)) kernel.recompute_axes.push_back(a);
}

}  // namespace

Kernel assemble(Diagram& diagram, const Analysis& analysis, std::optional<AxisId> axis, const std::vector<ArrayId>& outputs) {
    Assembly assembly(diagram, analysis, axis.value_or(AxisId()), outputs);
    Kernel kernel;
    for (int traversal = 0; traversal <= assembly.last_traversal(); ++traversal) {
        if (traversal > 0) {
            std::vector<Statement> hoisted;
            Loop loop = make_loop(assembly, traversal, kernel, hoisted);
            add(kernel, std::move(hoisted));
            if (!loop.body.empty()) kernel.stages.emplace_back(std::move(loop));
        }
        add(kernel, block(assembly, traversal));
    }
    kernel.outputs.assign(assembly.outputs.begin(), assembly.outputs.end());
    drop_unread(assembly, kernel);
    list_inputs(kernel);
    find_group_axes(diagram, assembly.axis, kernel);
    return kernel;
}

}  // namespace napkin
