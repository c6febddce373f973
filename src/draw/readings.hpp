#pragma once
// Circuits, read off what the compiler has. A diagram is functions alone. A derived form has two levels, groups and
// streams. A tile program has states, loops and every transfer. The paper's steps add levels, precision and divisors.
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "draw/circuit.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

/// Functions alone: every equation by itself, or those of a call together.
Circuit definition_circuit(const Diagram& diagram, bool calls_together = true);

/// The kernels of a derived form on two levels (paper.md §2 to §4). What a kernel reads changes colour. Grouped axes
/// are relabelled g, streamed ones s. What a stream maintains stands in parentheses at its input.
struct TwoLevelOptions {
    bool from_source = true;  ///< operations as the text has them; else the rewritten equations
    bool grouped = true, streamed = true;
    /// A level between memory and where operations run, which only passes data on. It is a cache, whose columns are
    /// marked with asterisks, or a level whose children hand data to each other. Below it grouped axes are relabelled
    /// h, streamed ones u.
    enum class Between : unsigned char { nothing, cache, cross_transfer } between = Between::nothing;
};
Circuit two_level_circuit(const Derived& derived, const TwoLevelOptions& options = {});

/// The type of the inputs: a column of data by itself.
Circuit type_circuit(const Diagram& diagram);

/// The definition on two parts of the first axis that can be grouped, which are put together again; inputs that are not
/// woven over it are given to both. Nothing where no axis can be grouped.
std::optional<Circuit> partition_circuit(const Derived& derived);

/// H, M and H* of the kernels in letters, a line each.
std::vector<std::string> cost_notes(const Derived& derived);
/// H and M of a form that is neither grouped nor streamed, a line each: the values that change colour, and the largest
/// columns at the lower level.
std::vector<std::string> whole_notes(const Diagram& diagram, const Circuit& circuit);
/// What a level between memory and the cores changes (Theorems 2 and 3 of the paper): what must fit, and H* on both of
/// its sides. Pre: a level is between.
std::vector<std::string> between_notes(const Derived& derived, TwoLevelOptions::Between between);

/// A kernel's tile program with loops, states and transfers. What a step of the paper adds is in `steps`, where there
/// is one.
enum class Detail : unsigned char { pseudocode, subloops, levels, precision, divisors };
struct ProgramOptions {
    Detail detail = Detail::pseudocode;
    int turns = 1;               ///< 2: every stream is unrolled, its first turns one by one
    bool first_is_rest = false;  ///< the first of two turns takes all but the last chunk: a streamed axis x is x′ there
};
Circuit program_circuit(const Diagram& diagram, const TileKernel& kernel, const ProgramOptions& options = {});
Circuit assigned_circuit(const Diagram& diagram, const KernelSteps& steps, const std::string& memory_name, Detail detail);

}  // namespace napkin::draw
