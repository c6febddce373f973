#pragma once
// What the checks of a schedule's rules share: the names of the fields that break them, and the list of what is broken.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduled.hpp"
#include "support/ids.hpp"

namespace napkin {

/// A field of a schedule as a file names it: "storage" and "S", "role" and "copies"; "mma_m" has no name.
struct ScheduleField {
    std::string kind, name;
};
struct BrokenRule {
    ScheduleField field;       ///< that breaks the rule, alone or with others
    std::string message;       ///< one line, naming the statement or variable
    std::string nearest = {};  ///< what the field may be instead, where the rule knows a number
};

class RuleReport {
public:
    explicit RuleReport(const ScheduledKernel& kernel)
        : k_(kernel), atoms_(atom_names(*kernel.kernel)), statements_(statement_names(*kernel.kernel)) {}

    std::vector<BrokenRule> take() { return std::move(broken_); }

protected:
    template <class... Args>
    void report(const ScheduleField& field, fmt::format_string<Args...> format, Args&&... args) {
        broken_.push_back(
            {field, fmt::format("kernel {}: ", k_.kernel->name) + fmt::format(format, std::forward<Args>(args)...)});
    }
    // Names of the fields that rules are about.
    [[nodiscard]] ScheduleField atom_of(const Step& step) const { return {"atom", atoms_.at(at(step.atom))}; }
    [[nodiscard]] ScheduleField place_of(VariableId id) const { return {"storage", k_.variable(id).name}; }
    [[nodiscard]] ScheduleField slot_of(std::size_t step) const { return {"slot", statements_.at(step)}; }
    [[nodiscard]] ScheduleField tensor() const { return {"mma_m", ""}; }
    [[nodiscard]] const char* on_either(const char* cpu, const char* gpu) const { return k_.in_blocks() ? gpu : cpu; }
    [[nodiscard]] const std::string& axis_name(AxisId axis) const { return k_.program->diagram.axis(axis).name; }

    const ScheduledKernel& k_;
    const std::vector<std::string> atoms_, statements_;
    std::vector<BrokenRule> broken_;
};

/// The rules about statements and variables, about tensor cores, and about what CTAs and roles run.
std::vector<BrokenRule> rules_of_statements(const ScheduledKernel& kernel);
std::vector<BrokenRule> rules_of_tensor_cores(const ScheduledKernel& kernel);
std::vector<BrokenRule> rules_of_launch(const ScheduledKernel& kernel);

}  // namespace napkin
