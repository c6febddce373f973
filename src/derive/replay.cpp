#include "derive/replay.hpp"

#include <map>
#include <set>

#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
Statement statement_of(const Equation& e) { return {e.target, e.reduce, e.reduce_axes, e.body, nullptr, e.range}; }

/// Equations in one block. Pre: each stands after those that it reads.
Kernel block_of(const Diagram& diagram, const std::vector<const Equation*>& equations, const std::vector<ArrayId>& outputs) {
    Kernel kernel;
    Block block;
    std::set<ArrayId> computed, inputs;
    for (const Equation* e : equations) {
        block.statements.push_back(statement_of(*e));
        kernel.equations.push_back(e->target);
        for (const ArrayId r : read_arrays(e->body))
            if (!computed.contains(r)) inputs.insert(r);
        computed.insert(e->target);
    }
    kernel.inputs.assign(inputs.begin(), inputs.end());
    kernel.outputs = outputs;
    kernel.name = diagram.array(outputs.back()).name;
    kernel.stages.emplace_back(std::move(block));
    return kernel;
}

}  // namespace

void apply(const Edit& edit, Diagram& diagram) {
    append(diagram.arrays, edit.arrays);
    for (const auto& [array, axes] : edit.axes) diagram.arrays[array].axes = axes;
    for (const Edit::Replacement& r : edit.equations) {
        const auto at = find_if(diagram.equations, [&](const Equation& e) { return e.target == r.before.target; });
        internal_check(at != diagram.equations.end() && *at == r.before,
                       "an edit replaces an equation that is not there");
        const auto next = diagram.equations.erase(at);
        diagram.equations.insert(next, r.after.begin(), r.after.end());
    }
}

Diagram normal_form_of(const Derived& derived) {
    Diagram diagram = derived.source;
    for (const DerivationStep& step : derived.normal_steps) apply(std::get<Edit>(step.change), diagram);
    return diagram;
}

Edit edit_between(const std::vector<Equation>& equations, std::size_t num_arrays, const Diagram& now) {
    Edit edit;
    edit.arrays.assign(now.arrays.begin() + static_cast<std::ptrdiff_t>(num_arrays), now.arrays.end());
    auto at = now.equations.begin();
    for (const Equation& before : equations) {
        Edit::Replacement r{before, {}};
        do {
            internal_check(at != now.equations.end(), "an edit took the definition of an array away");
            r.after.push_back(*at);
        } while (at++->target != before.target);
        if (r.after.size() > 1 || !(r.after.front() == before)) edit.equations.push_back(std::move(r));
    }
    return edit;
}

Replay::Replay(const Derived& derived) : derived_(derived), diagram_(derived.source), made_(derived.kernels.size()) {}

void Replay::next() {
    const auto& change = derived_.steps.at(done_++).change;
    if (const auto* edit = std::get_if<Edit>(&change)) {
        apply(*edit, diagram_);
        // Types of arrays that the calculus adds follow from the whole derivation.
        for (auto i = ArrayId::of(diagram_.arrays.size() - edit->arrays.size()); at(i) < diagram_.arrays.size(); ++i)
            diagram_.arrays[i].type = derived_.diagram.arrays[i].type;
        return;
    }
    if (const auto* fuse = std::get_if<Fuse>(&change)) {
        made_[fuse->kernel].fused = true;
    } else if (const auto* stream = std::get_if<StreamPartition>(&change)) {
        made_[stream->kernel].streamed = true;
    } else {
        const auto& group = std::get<GroupPartition>(change);
        made_[group.kernel].grouped.push_back(group.axis);
    }
}

Derived Replay::form() const {
    Derived out;
    out.diagram = diagram_;
    out.source = derived_.source;
    out.form = derived_.form;
    const bool edited = done_ == derived_.steps.size() || !std::holds_alternative<Edit>(derived_.steps[done_].change);
    if (!edited) {
        for (const Equation& e : diagram_.equations) out.kernels.push_back(block_of(diagram_, {&e}, {e.target}));
        return out;
    }
    // Kernels know arrays that no equation defines.
    out.diagram.arrays = derived_.diagram.arrays;
    std::map<ArrayId, const Equation*> definitions;
    for (const Equation& e : diagram_.equations) definitions[e.target] = &e;
    for (std::size_t k = 0; k < derived_.kernels.size(); ++k) {
        const Kernel& whole = derived_.kernels[k];
        const Made& made = made_[k];
        std::vector<const Equation*> equations;
        for (const ArrayId id : whole.equations) equations.push_back(definitions.at(id));
        if (!made.fused && !made.streamed && made.grouped.empty()) {
            for (const Equation* e : equations) out.kernels.push_back(block_of(diagram_, {e}, {e->target}));
            continue;
        }
        // A form with loops, or cut into groups, runs the derived statements; a fused one the equations as they are.
        out.kernels.push_back(made.streamed || !made.grouped.empty() ? whole : block_of(diagram_, equations, whole.outputs));
        out.kernels.back().group_axes = made.grouped;
        std::erase_if(out.kernels.back().recompute_axes, [&](AxisId axis) { return !contains(made.grouped, axis); });
    }
    return out;
}

}  // namespace napkin
