#include "draw/drawings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "derive/replay.hpp"
#include "draw/machine_steps.hpp"
#include "draw/readings.hpp"
#include "support/ids.hpp"
#include "support/result.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"

namespace napkin::draw {
namespace {

/// After so many rewrites: the first ones change equations, and only then are there kernels.
Circuit after(const Derived& derived, std::size_t num_steps) {
    Replay replay(derived);
    while (replay.steps_done() < num_steps) replay.next();
    const DerivationStep& step = derived.steps[num_steps - 1];
    Circuit out = std::holds_alternative<Edit>(step.change) ? definition_circuit(replay.diagram(), false)
                                                            : two_level_circuit(replay.form(), {.from_source = false});
    out.caption = fmt::format("{}. {}: {}", num_steps, step.rule, step.effect);
    return out;
}

/// The definition, and beside it the stream unrolled: chunk by chunk, or into all but the last chunk and the last.
Drawing expansion(const Subject& subject, bool is_condition) {
    Drawing out;
    out.relation = "≡";
    out.circuits.push_back(definition_circuit(subject.diagram));
    out.circuits.back().caption = "definition";
    const TileProgram program = expand(*subject.derived);
    for (const TileKernel& kernel : program.kernels) {
        out.circuits.push_back(program_circuit(program.diagram, kernel, {Detail::pseudocode, 2, is_condition}));
        out.circuits.back().caption = (is_condition ? "accumulator" : "recursive expansion") +
                                      kernel_of(kernel.name, program.kernels.size()) +
                                      (is_condition
                                           ? ": all but a chunk, then the chunk, which what is maintained takes in"
                                           : ": head, chunk after chunk (two are drawn), tail");
    }
    return out;
}

Drawing of_program(const Subject& subject) {
    Drawing out;
    const TileProgram program = expand(*subject.derived);
    for (const TileKernel& kernel : program.kernels) {
        out.circuits.push_back(program_circuit(program.diagram, kernel));
        out.circuits.back().caption = "pseudocode expansion" + kernel_of(kernel.name, program.kernels.size());
    }
    return out;
}

}  // namespace

std::vector<StepName> step_names(const Subject& subject) {
    std::vector<StepName> out{{"0", "the definition"}};
    out.push_back({"equations", "the definition with its calls opened", false});
    out.push_back({"type", "the type of the inputs", false});
    if (!subject.derived) return out;
    for (std::size_t i = 0; i < subject.derived->steps.size(); ++i) {
        const DerivationStep& step = subject.derived->steps[i];
        out.push_back({std::to_string(i + 1), step.rule + ": " + step.effect});
    }
    out.push_back({"two-level", "kernels on two levels, with groups and streams"});
    out.push_back({"whole", "two levels, with neither groups nor streams", false});
    if (partition_circuit(*subject.derived))
        out.push_back({"partition", "the definition, and the same on two groups", false});
    out.push_back({"condition", "the definition, and what makes it streamable: an accumulator", false});
    out.push_back({"cached", "a cache between the two levels", false});
    out.push_back({"cross-transfer", "a level between the two whose cores hand data to each other", false});
    out.push_back({"pseudocode", "states, loops and transfers of the tile program"});
    out.push_back({"expansion", "the definition, and the stream unrolled", false});
    if (subject.steps)
        for (const std::string& name : machine_step_names())
            out.push_back({name, "a step of the paper on " + subject.steps->machine});
    return out;
}

Drawing drawing_of(const Subject& subject, const std::string& step) {
    Drawing out;
    const auto add_notes = [&](const std::vector<std::string>& notes) {
        for (const std::string& note : notes) out.circuits.back().notes.push_back(note);
        for (const std::string& note : subject.notes) out.circuits.back().notes.push_back(note);
    };
    if (step == "all") {
        for (const StepName& one : step_names(subject)) {
            if (!one.is_main) continue;
            Drawing drawing = drawing_of(subject, one.name);
            for (Circuit& circuit : drawing.circuits) {
                // Sizes are the same everywhere and stand at the end.
                circuit.notes.clear();
                if (circuit.caption.empty()) circuit.caption = one.what;
                out.circuits.push_back(std::move(circuit));
            }
        }
    } else if (step == "0") {
        out.circuits.push_back(definition_circuit(subject.diagram));
        out.circuits.back().caption = "definition";
    } else if (step == "equations") {
        out.circuits.push_back(definition_circuit(subject.diagram, false));
    } else if (step == "type") {
        out.circuits.push_back(type_circuit(subject.diagram));
    } else if (step == "two-level") {
        out.circuits.push_back(two_level_circuit(*subject.derived));
        add_notes(cost_notes(*subject.derived));
    } else if (step == "whole") {
        out.circuits.push_back(two_level_circuit(*subject.derived, {.grouped = false, .streamed = false}));
        add_notes(whole_notes(subject.derived->source, out.circuits.back()));
    } else if (step == "partition") {
        out.relation = "≡";
        out.circuits.push_back(definition_circuit(subject.diagram));
        out.circuits.push_back(*partition_circuit(*subject.derived));
    } else if (step == "cached" || step == "cross-transfer") {
        using Between = TwoLevelOptions::Between;
        const Between between = step == "cached" ? Between::cache : Between::cross_transfer;
        out.circuits.push_back(two_level_circuit(*subject.derived, {.between = between}));
        add_notes(between_notes(*subject.derived, between));
    } else if (step == "pseudocode") {
        out = of_program(subject);
    } else if (step == "expansion") {
        out = expansion(subject, false);
    } else if (step == "condition") {
        out = expansion(subject, true);
    } else if (contains(machine_step_names(), step)) {
        out = machine_step_drawing(*subject.steps, subject.memory, step);
    } else {
        out.circuits.push_back(after(*subject.derived, static_cast<std::size_t>(std::stoul(step))));
    }
    out.title = subject.diagram.name + ", " + (step == "all" ? "all steps" : step == "0" ? "definition" : step);
    if (!out.circuits.empty() && step != "all" && out.circuits.back().notes.empty())
        out.circuits.back().notes = subject.notes;
    if (step == "all") out.circuits.back().notes = subject.notes;
    return out;
}

}  // namespace napkin::draw
