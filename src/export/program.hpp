#pragma once
// A program that is exported: what it takes, and its kernels for all sizes that are arguments of its call.
//
// A size is an argument where the text or the caller says `any` and tiles cut its axis; all others are numbers. Where
// sizes are arguments, lengths are cut into classes with a plan each (study/size_classes.hpp). A class has one text.
// It is made at a length that no tile divides, and it is tried at many others that it is right there, too.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/pipeline.hpp"
#include "support/result.hpp"

namespace napkin {

/// Kernels for the calls whose largest argument is from `from` to `to`.
struct ExportedClass {
    std::int64_t from = 1, to = 1, planned_at = 1;
    Compilation made;
};

struct ExportedProgram {
    std::string name;                    ///< of the diagram
    std::vector<std::string> arguments;  ///< axes whose sizes are arguments, in the order of the diagram's axes
    std::vector<ExportedClass> classes;  ///< ascending, and one where no size is an argument
    [[nodiscard]] const Compilation& first() const { return classes.front().made; }
};

/// The longest argument that is served.
inline constexpr std::int64_t longest_argument = std::int64_t{1} << 20;

/// Plans and emits the program. The sizes of `options` are numbers, unless its any_sizes makes arguments of all.
/// Errors: those of run_pipeline, and no-kernels. whole-size: a size without a number lies whole in a tile. other-code:
/// the text for some length of a class differs from the others'.
Result<ExportedProgram> exported_program(const std::shared_ptr<const Source>& source, const PipelineOptions& options);

/// The extent of each axis of the class' program, as a formula of the arguments (lower/size_formulas.hpp). Null for an
/// axis whose size is no such formula.
ByAxis<Expr> extent_formulas(const ExportedProgram& program, const ExportedClass& of);

}  // namespace napkin
