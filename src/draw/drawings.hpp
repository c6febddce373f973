#pragma once
// Which pictures there are of a program, and each of them. A picture is called by a step: the definition, the form
// after so many rewrites of its derivation, its two levels, its pseudocode, and the paper's steps on a machine.
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "draw/circuit.hpp"
#include "machine/machine.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

struct Subject {
    const Diagram& diagram;
    const Derived* derived = nullptr;   ///< null: only the definition is drawn
    const StepReport* steps = nullptr;  ///< null: no machine was given
    std::string memory = "memory";      ///< the name of the machine's highest level
    std::vector<std::string> notes;     ///< below every picture: sizes
};

struct StepName {
    std::string name, what;
    bool is_main = true;  ///< on the way from the definition to what runs: part of "all"
};
/// In order: "0", "1", …, then those with names: "two-level", "pseudocode" and others; last, with steps, those of the
/// paper on a machine.
std::vector<StepName> step_names(const Subject& subject);

/// Pre: the step is one of those named, or "all".
Drawing drawing_of(const Subject& subject, const std::string& step);

}  // namespace napkin::draw
