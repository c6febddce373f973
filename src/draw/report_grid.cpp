// The grid of a report: its setting, and those in which one thing is changed.
#include <algorithm>

#include "draw/report_page.hpp"
#include "draw/setting_fragments.hpp"
#include "support/share_out.hpp"

namespace napkin::draw {
namespace {

std::vector<FiguresRequest> neighbours_of(const FiguresRequest& request, const Figures& figures,
                                          const std::vector<std::string>& machines) {
    std::vector<FiguresRequest> out;
    for (const std::string& machine : machines) {
        if (machine == request.machine) continue;
        out.push_back(request);
        out.back().machine = machine, out.back().machine_text = "";
    }
    for (const AxisId a : figures.diagram.axes.ids()) {
        if (!has_own_size(figures.diagram.axes[a])) continue;
        const std::int64_t size = figures.extents[a];
        for (const bool twice : {false, true}) {
            if (!twice && size % 2 != 0) continue;
            out.push_back(request);
            out.back().sizes[figures.diagram.axes[a].name] = twice ? 2 * size : size / 2;
        }
    }
    return out;
}

}  // namespace

bool has_own_size(const Axis& axis) { return axis.size && axis.size->as_constant().has_value(); }

std::vector<GridSetting> grid_of(const FiguresRequest& request, const Figures& figures,
                                 const std::vector<std::string>& machines, bool with_answers,
                                 const SettingPlanner& planner) {
    std::vector<FiguresRequest> requests = neighbours_of(request, figures, machines);
    std::vector<GridSetting> out(requests.size() + 1);
    out[0] = {request, figures, "", with_answers ? answer_of(figures) : nullptr};
    share_out(requests.size(), [&](std::size_t i) {
        GridSetting& setting = out[i + 1];
        setting.request = std::move(requests[i]);
        auto made = figures_for(setting.request, planner);
        if (!made) {
            setting.why_not = made.errors().front().message;
            setting.answer["errors"].push_back(setting.why_not);
            return;
        }
        if (with_answers) setting.answer = answer_of(*made);
        setting.figures = std::move(made).value();
    });
    return out;
}

void fit_answers(std::vector<GridSetting>& grid, std::size_t room) {
    for (std::size_t i = 0; i < grid.size(); ++i) {
        nlohmann::ordered_json& answer = grid[i].answer;
        if (i > 0 && answer.contains("fragments")) {
            const nlohmann::ordered_json& first = grid.front().answer["fragments"];
            nlohmann::ordered_json kept = nlohmann::ordered_json::object();
            for (const auto& [id, text] : answer["fragments"].items())
                if (!first.contains(id) || first[id] != text) kept[id] = text;
            answer["fragments"] = std::move(kept);
        }
        const std::size_t bytes = answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).size();
        if (i > 0 && bytes > room)
            answer = nullptr, room = 0;
        else
            room -= std::min(room, bytes);
    }
}

}  // namespace napkin::draw
