#pragma once
// What `napkin plan --steps` says.
#include <optional>
#include <string>
#include <vector>

#include "machine/rate_sources.hpp"
#include "report/print.hpp"
#include "steps/steps.hpp"

namespace napkin {

/// The steps on one of several machines, or why there are none.
struct StepsOnMachine {
    std::string machine;
    RateSources rates;
    std::optional<StepReport> report;
    Diagnostic why;
};

report::Section report_of(const StepReport& steps);
/// A row for each machine and kernel, the shortest time first: what it is, what binds, and what the machine's rates
/// rest on. Programs get the machines as they were asked for, with all of the steps.
report::Section report_of(const std::vector<StepsOnMachine>& machines);
/// `axis`: the name of the stream's.
report::Section report_of(const StreamChart& stream, const std::string& axis);

/// "P_M; P_M_old, delta": places, each with who takes it in turn.
std::string row_names(const ConfigurationRow& row);
/// The paper's tables, with what follows from them.
report::Section tables_report(const StepReport& steps, const KernelSteps& kernel);

}  // namespace napkin
