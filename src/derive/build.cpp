#include "derive/build.hpp"

#include <fmt/format.h>

#include <set>

#include "derive/flat_stream.hpp"
#include "diagram/empty_axes.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// The step from sums over several axes to sums along the flat axis.
void record_flat_axis(const Diagram& diagram, const std::vector<Equation>& along, AxisId flat,
                      std::vector<DerivationStep>& steps) {
    Edit edit;
    for (const Equation& e : along)
        if (const Equation& before = *diagram.definition(e.target); !(before == e))
            edit.equations.push_back({before, {e}});
    if (edit.equations.empty()) return;
    const SourceRange range = edit.equations.front().before.range;
    steps.push_back(
        {"sum along a flat axis", "split axis", "its values stand for all values of its parts, each once",
         fmt::format("{} are summed as {}", join(names_of(diagram.axes, parts_of_flat_axis(diagram, flat)), ", "),
                     diagram.axis(flat).name),
         range, std::move(edit)});
}

}  // namespace

KernelBuilder::KernelBuilder(const Diagram& diagram, Form form)
    : diagram_(diagram),
      form_(form),
      at_(diagram.arrays.size(), -1),
      readers_(diagram.arrays.size()),
      needed_(diagram.arrays.size(), false),
      values_(diagram.arrays.size()),
      part_(diagram) {
    part_.equations.clear();
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        const Equation& e = diagram.equations[i];
        at_[at(e.target)] = static_cast<int>(i);
        for (const ArrayId r : read_arrays(e.body)) readers_[at(r)].push_back(e.target);
    }
    for (const ArrayId id : diagram.inputs) values_[at(id)] = ValueClass::finite();
    for (const Equation& e : diagram.equations) {
        const ValueClass body = value_class(e.body, [&](ArrayId id) { return values_[at(id)]; });
        values_[at(e.target)] = e.reduce ? reduced(*e.reduce, body) : body;
    }
    for (const ArrayId id : diagram.outputs) needed_[at(id)] = !is_empty(diagram, id);
    for (auto e = diagram.equations.rbegin(); e != diagram.equations.rend(); ++e)
        if (needed_[at(e->target)])
            for (const ArrayId r : read_arrays(e->body)) needed_[at(r)] = true;
}

const Equation& KernelBuilder::definition(ArrayId id) const { return diagram_.equations[at(at_[at(id)])]; }

std::vector<ArrayId> KernelBuilder::outputs_of(const std::vector<ArrayId>& targets) const {
    const std::set<ArrayId> set(targets.begin(), targets.end());
    std::vector<ArrayId> out;
    for (const ArrayId t : targets) {
        const auto& list = readers(t);
        if (diagram_.array(t).role == ArrayRole::output ||
            any_of(list, [&](ArrayId r) { return is_needed(r) && !set.contains(r); }))
            out.push_back(t);
    }
    if (out.empty()) out.push_back(targets.back());
    return out;
}

bool KernelBuilder::set_out(const Gathering& gathering) {
    part_.equations.clear();
    for (const ArrayId t : gathering.targets) part_.equations.push_back(definition(t));
    if (!gathering.stream || parts_of_flat_axis(diagram_, *gathering.stream).empty()) return true;
    auto along = along_flat_axis(diagram_, part_.equations, *gathering.stream);
    if (along) part_.equations = std::move(*along);
    return along.has_value();
}

std::variant<int, Refusal> KernelBuilder::traversals(const Gathering& gathering) {
    part_.arrays.resize(diagram_.arrays.size());
    if (!set_out(gathering))
        return Refusal{fmt::format("stream {}", diagram_.axis(*gathering.stream).name),
                       "an equation has one of its axes without the others", definition(gathering.targets.front()).range};
    std::vector<Refusal> refusals;
    auto analysis = analyse(part_, gathering.targets, gathering.stream, form_, values_, nullptr, refusals);
    if (auto* refusal = std::get_if<Refusal>(&analysis)) return std::move(*refusal);
    return std::get<Analysis>(analysis).num_traversals;
}

std::optional<KernelBuilder::Trial> KernelBuilder::try_kernel(const Gathering& gathering) {
    part_.arrays.resize(diagram_.arrays.size());
    if (!set_out(gathering)) return std::nullopt;
    std::vector<Refusal> refusals;
    const auto analysis = analyse(part_, gathering.targets, gathering.stream, form_, values_, nullptr, refusals);
    if (std::holds_alternative<Refusal>(analysis)) return std::nullopt;
    return Trial{assemble(part_, std::get<Analysis>(analysis), gathering.stream, outputs_of(gathering.targets)), &part_};
}

std::vector<Kernel> KernelBuilder::rewrite(const std::vector<Gathering>& gatherings, std::vector<DerivationStep>& steps,
                                           std::vector<Refusal>& refusals) {
    // All analyses stand before the first assembly: the arrays that equations define come before those that only
    // kernels know.
    part_.arrays = diagram_.arrays;
    std::vector<Analysis> analyses;
    std::vector<std::vector<Equation>> rewritten;
    std::vector<std::vector<ArrayId>> outputs;
    for (const Gathering& g : gatherings) {
        internal_check(set_out(g), "a gathering that was found legal cannot be streamed");
        if (g.stream) record_flat_axis(diagram_, part_.equations, *g.stream, steps);
        auto analysis = analyse(part_, g.targets, g.stream, form_, values_, &steps, refusals);
        internal_check(std::holds_alternative<Analysis>(analysis), "a gathering that was found legal cannot be built");
        analyses.push_back(std::get<Analysis>(std::move(analysis)));
        rewritten.push_back(part_.equations);
        outputs.push_back(outputs_of(g.targets));
    }
    std::vector<Kernel> kernels;
    for (std::size_t i = 0; i < gatherings.size(); ++i) {
        part_.equations = rewritten[i];
        kernels.push_back(assemble(part_, analyses[i], gatherings[i].stream, outputs[i]));
        kernels.back().equations = analyses[i].targets;
        kernels.back().name = part_.array(kernels.back().outputs.back()).name;
    }
    // Every equation gives place to what its gathering made of it.
    std::vector<std::vector<Equation>> successors(diagram_.equations.size());
    for (std::size_t i = 0; i < gatherings.size(); ++i) {
        std::vector<Equation> waiting;
        for (const Equation& e : rewritten[i]) {
            waiting.push_back(e);
            if (at(e.target) >= at_.size()) continue;
            successors[at(position(e.target))] = std::move(waiting);
            waiting.clear();
        }
    }
    std::vector<Equation> equations;
    for (std::size_t i = 0; i < successors.size(); ++i) {
        if (successors[i].empty()) successors[i].push_back(diagram_.equations[i]);  // nothing needs it
        equations.insert(equations.end(), successors[i].begin(), successors[i].end());
    }
    diagram_.arrays = part_.arrays;
    diagram_.equations = std::move(equations);
    return kernels;
}

}  // namespace napkin
