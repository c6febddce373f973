#pragma once
// What `napkin plan --steps` prints.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "machine/rate_sources.hpp"
#include "steps/steps.hpp"

namespace napkin {

/// The steps on one of several machines, or why there are none.
struct StepsOnMachine {
    std::string machine;
    RateSources rates;
    std::optional<StepReport> report;
    Diagnostic why;
};

std::string to_string(const StepReport& report);
/// A row for each machine and kernel, the shortest time first: what it is, what binds, and what the machine's rates
/// rest on.
std::string to_string(const std::vector<StepsOnMachine>& machines);
std::string to_string(const StreamChart& stream, const std::string& axis);
nlohmann::ordered_json chart_json(const StreamChart& stream, const std::string& axis);
nlohmann::ordered_json steps_json(const StepReport& report);
nlohmann::ordered_json steps_json(const std::vector<StepsOnMachine>& machines);

}  // namespace napkin
