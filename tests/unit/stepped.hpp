#pragma once
// The paper's steps of a diagram's text by a schedule's, and what stands in their tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "costed.hpp"
#include "plan/overrides.hpp"
#include "steps/report.hpp"
#include "support/paths.hpp"
#include "support/result.hpp"

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

inline std::string file(const std::string& path) {
    std::ifstream in(in_sources(path), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline const ConfigurationRow& row(const KernelSteps& k, const std::string& name) {
    for (const ConfigurationRow& r : k.configuration)
        for (const auto& place : r.places)
            if (std::find(place.begin(), place.end(), name) != place.end()) return r;
    throw InternalError("no row of " + name);
}
inline const ThroughputRow& operation(const KernelSteps& k, const std::string& statement, const std::string& unit) {
    for (const ThroughputRow& r : k.throughput.rows)
        if (r.statement == statement && r.unit == unit) return r;
    throw InternalError("no operation of " + statement);
}
inline const UnitTotal& unit(const KernelSteps& k, const std::string& name) {
    for (const UnitTotal& u : k.throughput.units)
        if (u.unit == name) return u;
    throw InternalError("no unit " + name);
}

}  // namespace napkin::stepped
