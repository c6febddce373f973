#pragma once
// `napkin report`: one page that stands by itself. It opens from disk, asks for nothing from anywhere, and shows
// everything without scripts. With scripts, names light up wherever they stand, keys go through the derivation, and
// settings can be chosen.
#include <optional>
#include <string>
#include <vector>

#include "draw/figures.hpp"
#include "draw/roofline_chart.hpp"
#include "support/json.hpp"
#include "support/result.hpp"

namespace napkin::draw {

/// A setting beside the page's own, with its figures, or why there are none.
struct GridSetting {
    FiguresRequest request;
    std::optional<Figures> figures;
    std::string why_not;
    /// what a page without the core shows of it, as answer_of has it; null: it is not asked for, or there is no room
    /// for it
    nlohmann::ordered_json answer;
};

/// The setting, its machine changed, and each size halved and doubled, each planned; report_grid.cpp. `figures`: those
/// of the setting itself.
std::vector<GridSetting> grid_of(const FiguresRequest& request, const Figures& figures,
                                 const std::vector<std::string>& machines, bool with_answers,
                                 const SettingPlanner& planner);

/// Leaves out of the answers what the page's own setting, the first, says as well. It also leaves out whole answers for
/// which there is no room. Those that come first stay. `room`: bytes that they may take together.
void fit_answers(std::vector<GridSetting>& grid, std::size_t room);

/// An axis whose size is a number of its own, not another's.
bool has_own_size(const Axis& axis);

struct ReportInput {
    FiguresRequest request;
    Figures figures;
    Derived derived;      ///< with its steps, as it was chosen
    std::string emitted;  ///< source of the kernels; empty: none
    std::vector<GridSetting> grid;
    std::vector<std::string> machines;  ///< that may be chosen
    std::vector<MeasuredPoint> measured;
    std::string wasm;  ///< a WebAssembly module of the core, compressed by gzip; empty: settings are those of the grid
};

std::string report_page(const ReportInput& input);

// The page's parts, one function each; report_sections.cpp.
/// Which setting a part is of that is made once, when the page is written. The script shows it where another one is
/// chosen, and with it the call of the tool's `command` that prints the same of that one; empty: none does.
svg::Element fixed_note(const ReportInput& input, std::string_view command = "");
svg::Element text_section(const ReportInput& input);
/// `room`: bytes that the pictures of its steps may take; those that come first are drawn.
svg::Element derivation_section(const ReportInput& input, std::size_t room);
svg::Element cost_section(const ReportInput& input, const std::vector<KernelFigures>& costs);
svg::Element plan_section(const ReportInput& input);
svg::Element source_section(const ReportInput& input);
svg::Element grid_section(const ReportInput& input);
/// `grid`: of its settings those that have an answer may be chosen where there is no core.
svg::Element controls(const ReportInput& input, const std::vector<GridSetting>& grid);

}  // namespace napkin::draw
