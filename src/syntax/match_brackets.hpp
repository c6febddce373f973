#pragma once
// The brackets of a statement.
#include <memory>

#include "syntax/lexer.hpp"

namespace napkin {

/// Leaves out what closes nothing, closes what is left open, marks brackets that have commas inside, and adds the end.
/// No token is left where there is nothing to read. Errors: unmatched-bracket, unclosed-bracket, nesting-too-deep.
void match_brackets(LogicalLine& line, const std::shared_ptr<const Source>& source, Diagnostics& diagnostics);

}  // namespace napkin
