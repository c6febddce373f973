#include "derive/verify.hpp"

#include <fmt/format.h>

#include <set>

#include "derive/replay.hpp"
#include "diagram/empty_axes.hpp"
#include "diagram/verifier.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
class KernelRules {
public:
    KernelRules(const Derived& derived, const Kernel& kernel, std::set<ArrayId>& memory, std::vector<std::string>& faults)
        : d_(derived.diagram), k_(kernel), memory_(memory), faults_(faults) {}

    void check() {
        for (const ArrayId id : k_.inputs)
            if (!memory_.contains(id)) fault("reads {} from memory, where nothing has put it", name(id));
        for (const auto& stage : k_.stages) {
            if (const auto* block = std::get_if<Block>(&stage)) {
                for (const auto& s : block->statements) check(s);
            } else {
                check(std::get<Loop>(stage));
            }
        }
        for (const ArrayId id : k_.outputs) {
            if (!defined_.contains(id)) fault("does not compute its output {}", name(id));
            for (const AxisId a : k_.group_axes) {
                // Parts store different values of their stream.
                const AxisId told_apart_by = a == k_.parts.part && contains(d_.array(id).axes, k_.parts.axis)
                                                 ? k_.parts.axis
                                                 : a;
                if (!contains(d_.array(id).axes, told_apart_by))
                    fault("groups {}, which its output {} does not carry", d_.axis(a).name, name(id));
            }
            memory_.insert(id);
        }
    }

private:
    const Diagram& d_;
    const Kernel& k_;
    std::set<ArrayId>& memory_;
    std::vector<std::string>& faults_;
    std::set<ArrayId> defined_, states_;

    [[nodiscard]] const std::string& name(ArrayId id) const { return d_.array(id).name; }

    template <class... Args>
    void fault(fmt::format_string<Args...> text, Args&&... args) {
        faults_.push_back(fmt::format("kernel {} ", k_.name) + fmt::format(text, std::forward<Args>(args)...));
    }

    void check(const Loop& loop) {
        if (contains(k_.group_axes, loop.axis)) fault("groups and streams {}", d_.axis(loop.axis).name);
        for (const auto& [state, value] : loop.init) {
            if (!defined_.insert(state).second) fault("initialises {} twice", name(state));
            states_.insert(state);
        }
        for (const auto& s : loop.body) check(s);
        // What varies with the stream is gone after it.
        for (const auto& s : loop.body)
            if (contains(d_.array(s.target).axes, loop.axis)) defined_.erase(s.target);
        for (const ArrayId id : k_.outputs)
            if (any_of(loop.body, [&](const Statement& s) { return s.target == id; })) defined_.insert(id);
    }

    void check(const Statement& s) {
        if (s.reduce.has_value() == s.reduce_axes.empty())
            fault("reduces {} over no axis, or over axes by no operation", name(s.target));
        if (s.carry && !s.reduce) fault("carries {} without a reduction", name(s.target));
        if (s.carry && !states_.contains(s.target)) fault("carries {}, which is no state of its loop", name(s.target));
        for (const AxisId a : s.reduce_axes)
            if (contains(k_.group_axes, a)) fault("reduces over {}, which is grouped", d_.axis(a).name);
        std::vector<AxisId> bound = d_.array(s.target).axes;
        check_expr(s, s.carry, bound);
        append(bound, s.reduce_axes);
        check_expr(s, s.body, bound);
        const bool first = defined_.insert(s.target).second;
        if (!first && !states_.contains(s.target)) fault("defines {} twice", name(s.target));
    }

    void check_expr(const Statement& s, const Expr& e, const std::vector<AxisId>& bound) {
        if (!e) return;
        for (const AxisId a : free_axes(e))
            if (!contains(bound, a)) fault("uses {} in {}, where it is not bound", d_.axis(a).name, name(s.target));
        visit(e, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return;
            if (r->indices.size() != d_.array(r->array).axes.size())
                fault("reads {} with a wrong number of indices", name(r->array));
            if (defined_.contains(r->array)) {
                for (std::size_t i = 0; i < r->indices.size(); ++i)
                    if (!r->indices[i].is_axis(d_.array(r->array).axes[i]))
                        fault("reads its own {} at other indices", name(r->array));
            } else if (!contains(k_.inputs, r->array)) {
                fault("reads {} in {} before it is defined", name(r->array), name(s.target));
            }
        });
    }
};

}  // namespace

std::vector<std::string> verify(const Derived& derived) {
    std::vector<std::string> faults = verify(derived.diagram_without_kernel_arrays());
    // The record leads from the source to what the kernels were made of. Its diagrams in between are for the tests:
    // there are as many as there are steps.
    Replay replay(derived);
    while (!replay.done()) replay.next();
    if (replay.diagram().equations != derived.diagram.equations)
        faults.emplace_back("the steps do not lead to the diagram");
    std::set<ArrayId> memory(derived.source.inputs.begin(), derived.source.inputs.end());
    for (const auto& kernel : derived.kernels) KernelRules(derived, kernel, memory, faults).check();
    for (const ArrayId id : derived.source.outputs)
        if (!memory.contains(id) && !is_empty(derived.diagram, id))
            faults.push_back(fmt::format("result {} never reaches memory", derived.diagram.array(id).name));
    return faults;
}

}  // namespace napkin
