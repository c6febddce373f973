// Text to diagram: what everything else of napkin starts from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "support/result.hpp"
#include "syntax/ast.hpp"

namespace napkin {

struct ParseOptions {
    std::string diagram;                ///< which definition; empty: the last one of the text
    std::vector<std::string> schedule;  ///< items that go before the text's own: "group q=192", "stream x"
};

/// The main diagram of a text, all calls inlined, in canonical order (print.hpp). All errors of the text come at once,
/// those of definitions that the main diagram does not use included. Scalars with a default value are constants of the
/// result.
Result<Diagram> parse_diagram(const std::shared_ptr<const Source>& source, const ParseOptions& options = {});

/// The schedule that a file holds: what `napkin plan` prints, or parts of it. Figures and reasons are skipped.
/// Errors: bad-schedule, unknown-choice, bad-schedule-value, duplicate-schedule, and those of tokens.
Result<std::vector<ScheduleItem>> parse_schedule_file(const std::shared_ptr<const Source>& source);
/// What stands behind an item of a file on its line: a comment's mark and spaces around it are no part of it.
std::string reason_behind(const ScheduleItem& item);

/// The names of the diagrams that a text defines, in order.
Result<std::vector<std::string>> list_diagrams(const std::shared_ptr<const Source>& source);

}  // namespace napkin
