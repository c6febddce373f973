// `napkin derive`: how the diagram becomes streamed kernels, step by step where asked, each step tried on numbers where
// asked.
#include <fmt/format.h>

#include "check/validate.hpp"
#include "diagram/symbol_names.hpp"
#include "napkin/command.hpp"
#include "run/derivation.hpp"

namespace napkin::cli {

namespace {

struct DeriveCommand {
    Options common;
    bool explain = false, validate = false;
    std::int64_t trials = 24, seed = 0;
};

Json step_json(const DerivationStep& step) {
    Json entry = {
        {"rule", step.rule}, {"inverse", step.inverse}, {"side_condition", step.side_condition}, {"effect", step.effect}};
    if (step.range.source) {
        entry["file"] = step.range.source->name;
        entry["line"] = line_column(*step.range.source, step.range.begin).line;
    }
    return entry;
}

Json derivation_json(const Derived& derived) {
    Json document = json_document("derive");
    document["diagram"] = derived.diagram.name;
    document["equations"] = Json::array();
    for (const Equation& equation : derived.source.equations)
        document["equations"].push_back(to_string(derived.source, equation));
    document["steps"] = Json::array();
    for (const DerivationStep& step : derived.steps) document["steps"].push_back(step_json(step));
    document["kernels"] = Json::array();
    const auto array_names = [&](const std::vector<ArrayId>& ids) {
        Json names = Json::array();
        for (const ArrayId id : ids) names.push_back(derived.diagram.array(id).name);
        return names;
    };
    for (const Kernel& kernel : derived.kernels) {
        Json entry = {
            {"name", kernel.name}, {"inputs", array_names(kernel.inputs)}, {"outputs", array_names(kernel.outputs)}};
        entry["group_axes"] = Json::array();
        for (const AxisId axis : kernel.group_axes) entry["group_axes"].push_back(derived.diagram.axis(axis).name);
        const auto lines_json = [](const std::vector<EquationLine>& lines) {
            Json list = Json::array();
            for (const EquationLine& line : lines)
                list.push_back({{"part", line.part}, {"left", line.left}, {"right", line.right}});
            return list;
        };
        entry["equations"] = lines_json(kernel_lines(derived, kernel));
        entry["folds"] = Json::array();
        for (const Fold& fold : kernel.folds) {
            entry["folds"].push_back({{"axis", derived.diagram.axis(fold.axis).name},
                                      {"merge", lines_json(merge_lines(derived, kernel, fold))}});
        }
        document["kernels"].push_back(std::move(entry));
    }
    document["regions"] = Json::array();
    for (const Region& region : derived.regions) {
        Json entry = {{"chosen", region.chosen}, {"alternatives", Json::array()}};
        for (const Alternative& a : region.alternatives)
            entry["alternatives"].push_back({{"kernels", gatherings_text(derived.diagram, a.kernels)},
                                             {"flops", to_string(a.flops, symbol_names(derived.diagram))},
                                             {"transfers", to_string(a.transfers, symbol_names(derived.diagram))},
                                             {"condition", a.condition}});
        document["regions"].push_back(std::move(entry));
    }
    document["refusals"] = Json::array();
    for (const Refusal& refusal : derived.refusals)
        document["refusals"].push_back({{"what", refusal.what}, {"reason", refusal.reason}});
    return document;
}

std::string validation_text(const std::vector<StepValidation>& validations, bool color) {
    const int cut = validations.back().cut_trials;
    std::string text = fmt::format(
        "\nvalidated against the definition, {} random sizes and kinds of inputs{}, largest relative error\n",
        validations.back().trials, cut == 0 ? "" : fmt::format(", {} of them cut to what a check may take", cut));
    std::size_t number = 0;
    for (const StepValidation& v : validations) {
        const bool step = ++number <= validations.size() - 2;
        text += fmt::format("  {} {:<24} {:8.1e}  {}\n", step ? fmt::format("{:3}.", number) : "    ", v.what, v.error,
                            v.trials == 0 ? "not tried: no small sizes fit together"
                            : v.good()    ? green("ok", color)
                                          : red("WRONG", color));
        if (v.wrong) text += "       " + to_string(*v.wrong) + "\n";
    }
    return text;
}

ExitCode derive_command(const DeriveCommand& c) {
    auto compilation = compile(c.common, Pass::choose);
    if (!compilation) return fail(compilation.errors(), c.common);
    const Derived& derived = compilation->derived;
    std::vector<StepValidation> validations;
    bool good = true;
    if (c.validate) {
        // Whoever asks for more trials waits for them.
        const double asked = std::max(1.0, static_cast<double>(c.trials) / ValidateOptions().trials);
        validations = validate(derived, {.trials = static_cast<int>(c.trials),
                                         .seed = static_cast<std::uint64_t>(c.seed),
                                         .operations = asked * check_operations});
        for (const StepValidation& v : validations) good = good && v.good();
    }
    if (c.common.json) {
        Json document = derivation_json(derived);
        if (c.validate) {
            document["validation"] = Json::array();
            for (const StepValidation& v : validations) {
                document["validation"].push_back({{"what", v.what},
                                                  {"trials", v.trials},
                                                  {"cut_trials", v.cut_trials},
                                                  {"largest_relative_error", v.error},
                                                  {"good", v.good()}});
                if (v.wrong) document["validation"].back()["wrong"] = to_string(*v.wrong);
            }
        }
        print(document);
    } else {
        print((c.explain ? explain(derived) : describe(derived)) +
              (c.validate ? validation_text(validations, color_on_stdout(c.common)) : ""));
    }
    if (!good) throw InternalError("a derivation step changed the diagram's values");
    return ExitCode::success;
}

}  // namespace

void add_derive(CLI::App& app, Main& main) {
    const auto c = std::make_shared<DeriveCommand>();
    Command command(app, main, "derive", "Derive the streamed, fused form and print its folds",
                    "napkin derive examples/attention.nk --explain --validate", [c] { return derive_command(*c); });
    command.file(c->common);
    command.flag("--explain", c->explain, "Every step: rule, side condition, equations before and after");
    command.flag("--validate", c->validate,
                 "Evaluate every step against the definition on small sizes and inputs that show faults");
    command.number("--trials", c->trials, 1, 100000,
                   "Sizes that --validate tries, each with one kind of inputs (default: 24)");
    command.number("--seed", c->seed, 0, max_seed, "Of those sizes and numbers (default: 0)");
    command.sizes(c->common);
    command.derivation(c->common);
    command.passes(c->common);
    command.output(c->common);
}

}  // namespace napkin::cli
