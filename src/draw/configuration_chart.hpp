#pragma once
// The configuration table (paper Table 1) with a bar for the bytes of every row, and how they fill each level for the
// warpgroups at hand (Table 2).
#include "draw/shapes.hpp"
#include "steps/steps.hpp"

namespace napkin::draw {

svg::Document configuration_chart(const KernelSteps& kernel, const std::string& subject);

/// Bytes of the row, of the whole block, all stages.
double bytes_of_block(const ConfigurationRow& row, std::int64_t num_warpgroups);

}  // namespace napkin::draw
