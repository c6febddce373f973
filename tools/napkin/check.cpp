// `napkin check`: is the file well formed, and what does it define?
#include <fmt/format.h>

#include "diagram/sizes.hpp"
#include "napkin/command.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::cli {

namespace {

std::string array_text(const Diagram& diagram, ArrayId id) {
    const Array& array = diagram.array(id);
    std::vector<std::string> axes = names_of(diagram.axes, array.axes);
    return fmt::format("{}{}: {}", array.name, axes.empty() ? "" : fmt::format("[{}]", fmt::join(axes, ", ")),
                       name(array.type));
}

std::vector<std::string> array_texts(const Diagram& diagram, const std::vector<ArrayId>& ids) {
    return mapped<std::string>(ids, [&](ArrayId id) { return array_text(diagram, id); });
}

Json arrays_json(const Diagram& diagram, const std::vector<ArrayId>& ids) {
    Json list = Json::array();
    for (const ArrayId id : ids) {
        const Array& array = diagram.array(id);
        Json axes = Json::array();
        for (const AxisId axis : array.axes) axes.push_back(diagram.axis(axis).name);
        list.push_back({{"name", array.name}, {"type", name(array.type)}, {"axes", axes}});
    }
    return list;
}

/// The named diagram, or all of the text's.
Result<std::vector<Diagram>> diagrams_of(const std::shared_ptr<const Source>& source, const std::string& wanted) {
    std::vector<std::string> names = {wanted};
    if (wanted.empty()) {
        auto all = list_diagrams(source);
        if (!all) return all.errors();
        names = std::move(all).value();
    }
    std::vector<Diagram> diagrams;
    for (const std::string& name : names) {
        auto diagram = parse_diagram(source, {name, {}});
        if (!diagram) return diagram.errors();
        diagrams.push_back(std::move(diagram).value());
    }
    return diagrams;
}

ExitCode check(const Options& options) {
    auto source = read_source(options.file);
    if (!source) return fail(source.errors(), options);
    auto diagrams = diagrams_of(*source, options.diagram);
    if (!diagrams) return fail(diagrams.errors(), options);
    // Sizes that the text leaves open are no error here; those that it gives must fit together.
    for (const Diagram& diagram : *diagrams) {
        const auto bound = bind_sizes(diagram);
        if (bound) continue;
        std::vector<Diagnostic> wrong = bound.errors();
        std::erase_if(wrong, [](const Diagnostic& error) { return error.code == "missing-size"; });
        if (!wrong.empty()) return fail(wrong, options);
    }
    Json document = json_document("check");
    document["file"] = (*source)->name;
    document["diagrams"] = Json::array();
    std::string text;
    for (const Diagram& diagram : *diagrams) {
        Json entry;
        entry["name"] = diagram.name;
        entry["inputs"] = arrays_json(diagram, diagram.inputs);
        entry["outputs"] = arrays_json(diagram, diagram.outputs);
        entry["equations"] = Json::array();
        for (const Equation& equation : diagram.equations) entry["equations"].push_back(to_string(diagram, equation));
        document["diagrams"].push_back(std::move(entry));
        text += fmt::format("{}({}) -> {}   {} equation{}\n", bold(diagram.name, color_on_stdout(options)),
                            fmt::join(array_texts(diagram, diagram.inputs), ", "),
                            fmt::join(array_texts(diagram, diagram.outputs), ", "), diagram.equations.size(),
                            diagram.equations.size() == 1 ? "" : "s");
    }
    options.json ? print(document) : print(text + "well formed\n");
    return ExitCode::success;
}

}  // namespace

void add_check(CLI::App& app, Main& main) {
    const auto options = std::make_shared<Options>();
    Command command(app, main, "check", "Say whether a file is well formed, and list its diagrams",
                    "napkin check examples/attention.nk", [options] { return check(*options); });
    command.file(*options);
    command.output(*options);
}

}  // namespace napkin::cli
