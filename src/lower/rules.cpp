#include "lower/rules.hpp"

#include <fmt/format.h>

#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "schedule/rule_report.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::vector<BrokenRule> broken_rules(const ScheduledKernel& kernel) {
    std::vector<BrokenRule> out = rules_of_statements(kernel);
    append(out, rules_of_tensor_cores(kernel));
    append(out, rules_of_launch(kernel));
    // The order of a kernel that breaks another rule says nothing.
    if (kernel.in_blocks() && out.empty())
        if (const std::string fault = lower::fault_of(lower::with_statements(kernel)); !fault.empty())
            out.push_back({{"mma_m", ""}, fmt::format("kernel {}: {}", kernel.kernel->name, fault)});
    return out;
}

std::vector<std::string> verify(const ScheduledKernel& kernel) {
    return mapped<std::string>(broken_rules(kernel), [&](const BrokenRule& rule) {
        return rule.nearest.empty() ? rule.message : rule.message + "; " + rule.nearest;
    });
}

}  // namespace napkin
