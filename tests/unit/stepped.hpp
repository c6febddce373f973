#pragma once
// The paper's steps of a diagram's text by a schedule's.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "costed.hpp"
#include "plan/overrides.hpp"
#include "steps/report.hpp"

namespace napkin::stepped {

inline Result<StepReport> steps(const std::string& text, const std::string& schedule,
                                const std::string& machine = "h100-sxm5") {
    const Compilation c = costed::compile(text, machine);
    const auto items = all_overrides(c.derived, {}, std::make_shared<const Source>(Source{"a.schedule", schedule}));
    if (!items) return items.errors();
    return paper_steps(c.derived, c.extents, c.machine, *items);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t found = text.find(from);
    EXPECT_NE(found, std::string::npos) << from;
    return text.replace(found, from.size(), to);
}

}  // namespace napkin::stepped
