#pragma once
// A chart of what the model knows of a diagram or a machine, by its name: what `napkin chart` writes and a gallery has
// among its figures.
#include <string>
#include <vector>

#include "draw/svg.hpp"
#include "napkin/command.hpp"

namespace napkin::cli {

struct ChartRequest {
    Options common;
    std::string name, kernel;
    std::vector<std::string> sweeps, measured;
    std::int64_t value_bytes = 2, banks = 32;
};

/// Throws UsageError where there is no chart of the name, or where FILE is missing or one too many. Errors: those of
/// what is drawn.
Result<svg::Document> chart_picture(const ChartRequest& request);

/// The run of an overlap as events of Chrome's trace format. Errors: as of its picture.
Result<std::string> trace_text(const ChartRequest& request);

std::vector<std::string> chart_names();

}  // namespace napkin::cli
