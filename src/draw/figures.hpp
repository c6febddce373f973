#pragma once
// The figures of one setting: a diagram, its sizes, choices and a machine → its plan and what follows. They come from
// the functions that `plan`, `cost` and `plan --steps` call, and nothing runs or is emitted. A report's grid of
// settings and its sliders ask here, the latter by way of WebAssembly. The only time is the plan's, and the bound
// stands apart.
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost_figures.hpp"
#include "plan/recall.hpp"
#include "report/report.hpp"
#include "steps/steps.hpp"
#include "study/kernel_costs.hpp"

namespace napkin::draw {

struct FiguresRequest {
    std::string text, file;                                        ///< of the diagram, and where it is from
    std::string diagram;                                           ///< empty: the text's last
    std::string machine;                                           ///< of those that come with napkin
    std::string machine_text;                                      ///< a machine's file, in place of one of those
    std::string schedule;                                          ///< the text of a schedule's file; empty: none
    std::vector<std::string> items;                                ///< choices beside it: "group q = 192"
    std::map<std::string, std::int64_t> sizes;                     ///< by axis, in place of the text's
    std::map<std::string, std::int64_t> group, stream, warpgroup;  ///< by axis, in place of whatever else says so
    bool fuse = true;
};

/// What a request says, read.
struct Setting {
    Machine machine;
    Diagram diagram;  ///< with the request's sizes
    Derived derived;  ///< with every form
    Extents extents;
    std::shared_ptr<const Source> schedule;  ///< null: none
};

/// Errors: those of the machine, of the text, and of sizes (missing-size).
Result<Setting> setting_of(const FiguresRequest& request);

struct Figures {
    Diagram diagram;
    Extents extents;
    Machine machine;
    std::optional<Plan> plan;
    std::vector<Diagnostic> no_plan;  ///< why there is none
    std::vector<std::string> notes;   ///< of the plan
    Derived derived;                  ///< the form whose kernels are costed
    std::vector<TileKernel> tiles;
    /// At the plan's sizes and in its time. Without a plan, at the sizes of a closed form, with a bound and no time.
    /// Empty where the choices by hand have no cost.
    std::vector<KernelOnMachine> kernels;
    std::vector<Diagnostic> no_cost;                      ///< why not
    double memory_values = 0;                             ///< M, what a core holds
    std::optional<StepReport> steps;                      ///< of the plan, or of the paper's hierarchy (steps_for)
    std::vector<Diagnostic> no_steps;                     ///< why there are none
    [[nodiscard]] std::optional<double> seconds() const;  ///< the plan's
    [[nodiscard]] double bound_s() const;
    [[nodiscard]] std::string bound_by() const;  ///< of the planned kernel that takes longest
    [[nodiscard]] CostNumbers numbers() const;   ///< points into this
};

/// Plans a setting, which is of the request.
using SettingPlanner = std::function<Result<ChosenPlan>(const FiguresRequest&, const Setting&)>;
/// The plan of `napkin plan`, but that no assembler is asked for its report. Errors: those of choose_plan.
Result<ChosenPlan> plan_by_model(const FiguresRequest& request, const Setting& setting);

/// A schedule that is none of a kernel's, as those of the paper's hierarchy, is left out of the plan, and a note says
/// so. Errors: those of the text, of sizes (missing-size), of the machine and of choices by hand. That of the cost
/// (memory-exceeded) where there are no steps either.
Result<Figures> figures_for(const FiguresRequest& request, const SettingPlanner& planner = plan_by_model);

/// What `napkin cost` says of every kernel. Letters need no numbers: where the choices have no cost, there are letters
/// alone.
std::vector<KernelFigures> costs_of(const Figures& figures);

/// "q = 4096, k = 128"
std::string sizes_text(const Figures& figures);
/// The setting and its time.
report::Section summary_report(const Figures& figures);
/// A row for each kernel; `costs`: costs_of the figures. Pre: they have a cost.
report::Table counts_table(const Figures& figures, const std::vector<KernelFigures>& costs);
/// The choices with their reasons, and what they come to.
report::Section plan_report(const KernelPlan& kernel);

/// `costs`: costs_of the figures. Numbers alone: H, M, the plan with its times, and of every kernel what `plan --steps
/// --json` says of its tables and its chart.
nlohmann::ordered_json figures_json(const Figures& figures, const std::vector<KernelFigures>& costs);

nlohmann::ordered_json request_json(const FiguresRequest& request);
/// Errors: bad-request (which key).
Result<FiguresRequest> read_request(const std::string& json);

}  // namespace napkin::draw
