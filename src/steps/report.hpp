#pragma once
// What `napkin plan --steps` prints.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "steps/steps.hpp"

namespace napkin {

std::string to_string(const StepReport& report);
std::string to_string(const StreamChart& stream, const std::string& axis);
nlohmann::ordered_json chart_json(const StreamChart& stream, const std::string& axis);
nlohmann::ordered_json steps_json(const StepReport& report);

}  // namespace napkin
