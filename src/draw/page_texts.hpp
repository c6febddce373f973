#pragma once
// What a report's page brings with it, apart from what it shows: embedded at build time.
#include <string_view>

namespace napkin {

/// The page's style and script, src/draw/report.css and report.js.
std::string_view report_style();
std::string_view report_script();

}  // namespace napkin
