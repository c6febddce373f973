#pragma once
// Plans that are kept from one process to the next, in the kernel cache: the search over forms and schedules runs once
// for each program, sizes and machine.
#include <optional>
#include <string>

#include "machine/machine.hpp"
#include "plan/recall.hpp"
#include "support/files.hpp"

namespace napkin {

/// All that choices follow from, besides the code that makes them: `asked` is the program's text with the sizes, types
/// and choices beside it.
struct PlanQuestion {
    std::string asked;
    Machine machine;
    std::string compiler;  ///< whose report refuses candidates; empty: nobody's
};

/// `code`: what tells one build of napkin from another.
std::string plan_key(const PlanQuestion& question, const std::string& code = own_identity());

/// What was kept under the key; nothing where there is none, or no cache.
std::optional<std::string> kept_plan(const std::string& key);
/// In the place of what was there. What cannot be kept is planned again the next time.
void keep_plan(const std::string& key, const std::string& text, const std::string& note);

}  // namespace napkin
