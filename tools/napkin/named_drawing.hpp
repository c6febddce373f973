#pragma once
// The picture of a program at one of its steps, as the options say: what `napkin draw` writes and a gallery has among
// its figures.
#include <string>

#include "draw/circuit.hpp"
#include "napkin/command.hpp"

namespace napkin::cli {

struct NamedDrawing {
    std::string diagram;
    draw::Drawing drawing;
};

/// Throws UsageError where there is no such step. Errors: those of compiling the file, and of the paper's steps where
/// one is drawn.
Result<NamedDrawing> named_drawing(const Options& options, const std::string& step);

}  // namespace napkin::cli
