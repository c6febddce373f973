#pragma once
// Predicted against measured: a point for every run, the diagonal on which they are equal, and the band of half as much
// again on either side.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "draw/roofline_chart.hpp"
#include "draw/shapes.hpp"
#include "support/result.hpp"

namespace napkin::draw {

svg::Document measured_chart(const std::vector<MeasuredPoint>& points, const std::string& subject);

/// The runs of a document: of `napkin run --json`, or of a record of bench/results, whose entries have
/// `predicted_seconds` and `seconds`. Errors: not-a-measurement, with what was expected.
Result<std::vector<MeasuredPoint>> measured_points(const std::string& file, const std::string& text);

}  // namespace napkin::draw
