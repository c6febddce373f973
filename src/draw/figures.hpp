#pragma once
// The figures of one setting: a diagram, its sizes, choices and a machine → what follows, by the same functions that
// `cost` and `plan --steps` call, and nothing of running or emitting. A report's grid of settings and its sliders ask
// here, the latter by way of WebAssembly.
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost_figures.hpp"
#include "steps/steps.hpp"
#include "study/closed_form.hpp"

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
    Derived derived;  ///< the form whose kernels are costed
    std::vector<TileKernel> tiles;
    std::vector<KernelOnMachine> kernels;  ///< empty where the choices by hand have no cost
    std::vector<Diagnostic> no_cost;       ///< why not
    double memory_values = 0;              ///< M, what a core holds
    std::optional<StepReport> steps;
    Diagram steps_of;                  ///< the diagram whose steps they are
    std::vector<Diagnostic> no_steps;  ///< why there are none
    [[nodiscard]] double seconds() const;
    [[nodiscard]] double bound_s() const;
    [[nodiscard]] std::string bound_by() const;  ///< of the kernel that takes longest
    [[nodiscard]] CostNumbers numbers() const;   ///< points into this
};

/// What has no cost may have steps, which hold other things in a core's memory, and the other way round. Errors: those
/// of the text, of sizes (missing-size), of the machine and of choices by hand; of the cost (memory-exceeded) where
/// there are no steps either.
Result<Figures> figures_for(const FiguresRequest& request);

/// What `napkin cost` says of every kernel. Letters need no numbers: where the choices have no cost, there are letters
/// alone.
std::vector<KernelFigures> costs_of(const Figures& figures);

/// `costs`: costs_of the figures. Numbers alone: H, M, times, and of every kernel what `plan --steps --json` says of
/// its tables and its chart.
nlohmann::ordered_json figures_json(const Figures& figures, const std::vector<KernelFigures>& costs);

nlohmann::ordered_json request_json(const FiguresRequest& request);
/// Errors: bad-request (which key).
Result<FiguresRequest> read_request(const std::string& json);

}  // namespace napkin::draw
