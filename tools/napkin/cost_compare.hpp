#pragma once
// `napkin cost` on several things: --against, --sweep, several machines.
#include <string>
#include <vector>

#include "napkin/command.hpp"
#include "study/subject.hpp"

namespace napkin::cli {

struct ManyOptions {
    std::vector<std::string> against;  ///< items of one text; none: no comparison
    std::vector<std::string> sweeps;
    bool csv = false;
};

/// "h100-sxm5,h200", or "all": the machines that come with napkin.
std::vector<std::string> machine_list(const std::string& machine);

/// Sizes are those of `sizes` and not of the query, as not every side need have all axes. Throws UsageError.
ExitCode cost_many(const CostQuery& query, const AxisSizes& sizes, const ManyOptions& many, const Options& common);

}  // namespace napkin::cli
