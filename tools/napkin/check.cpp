// `napkin check`: is the file well formed, and what does it define?
#include <fmt/format.h>

#include "diagram/sizes.hpp"
#include "napkin/command.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::cli {

namespace {

/// "Q[q, k]: f32, K[x, k]: f32"
report::Value arrays(const Diagram& diagram, const std::vector<ArrayId>& ids) {
    report::Value out{Json::array(), ""};
    for (const ArrayId id : ids) {
        const Array& array = diagram.array(id);
        const std::vector<std::string> axes = names_of(diagram.axes, array.axes);
        out.data.push_back({{"name", array.name}, {"type", name(array.type)}, {"axes", axes}});
        out.text += fmt::format("{}{}{}: {}", out.text.empty() ? "" : ", ", array.name,
                                axes.empty() ? "" : "[" + join(axes, ", ") + "]", name(array.type));
    }
    return out;
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
    report::Section out;
    out.data("file", (*source)->name), out.data("diagrams", Json::array());
    for (const Diagram& diagram : *diagrams) {
        const report::Value inputs = arrays(diagram, diagram.inputs), outputs = arrays(diagram, diagram.outputs);
        const std::size_t count = diagram.equations.size();
        const std::string name = bold(diagram.name, color_on_stdout(options)),
                          text = fmt::format("{}({}) -> {}   {} equation{}", name, inputs.text, outputs.text, count,
                                             count == 1 ? "" : "s");
        report::Section entry{"diagrams/[]", "", 0, {}};
        entry.line({{"name", "", {diagram.name, text}}});
        entry.data("inputs", inputs.data), entry.data("outputs", outputs.data);
        entry.list("equations", diagram.equations, [&](const Equation& e) { return to_string(diagram, e); });
        out.add(std::move(entry));
    }
    out.text("well formed");
    print(out, "check", options);
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
