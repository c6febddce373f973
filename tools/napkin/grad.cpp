// `napkin grad`: the gradients of a diagram as a text of the language.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "differentiate/gradient.hpp"
#include "napkin/command.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin::cli {
namespace {

struct GradCommand {
    Options common;
    std::vector<std::string> by, keep;
    std::string ties = "first";
    bool forward = false;
};

/// The arrays with these names, each of which must fit. Errors: bad-gradient.
Result<std::vector<ArrayId>> pick(const Diagram& d, const std::vector<std::string>& names, const std::string& wanted,
                                  const std::function<bool(ArrayId)>& fits) {
    std::vector<ArrayId> out;
    for (const std::string& name : names) {
        const auto id = d.find_array(name);
        if (!id || !fits(*id)) {
            std::vector<std::string> near;
            for (const ArrayId other : d.arrays.ids())
                if (fits(other)) near.push_back(d.array(other).name);
            return Diagnostic{
                .code = "bad-gradient",
                .range = id ? d.array(*id).range : d.range,
                .message = id ? fmt::format("{} is none", name) : fmt::format("{} has no array {}", d.name, name),
                .expected = fmt::format("{}: {}", wanted, fmt::join(near, ", ")),
                .hint = did_you_mean(name, near)};
        }
        if (!contains(out, *id)) out.push_back(*id);
    }
    return out;
}

ExitCode grad_command(const GradCommand& c) {
    auto compilation = compile(c.common, Pass::parse);
    if (!compilation) return fail(compilation.errors(), c.common);
    const Diagram& d = compilation->diagram;
    const std::vector<ArrayId> inputs = real_inputs(d);
    const auto is_kept = [&](ArrayId id) { return d.array(id).role != ArrayRole::input; };
    const auto by = pick(d, c.by, "an argument of real numbers", [&](ArrayId id) { return contains(inputs, id); });
    if (!by) return fail(by.errors(), c.common);
    const auto keep = pick(d, c.keep, "a result or a temporary", is_kept);
    if (!keep) return fail(keep.errors(), c.common);
    const bool has_result = any_of(d.outputs, [&](ArrayId id) { return is_float(d.array(id).type); });
    if (inputs.empty() || !has_result) {
        const std::string what = inputs.empty() ? "argument" : "result";
        return fail({{.code = "bad-gradient",
                      .range = d.range,
                      .message = fmt::format("{} has no {} of real numbers", d.name, what),
                      .expected = fmt::format("an {} with a type such as f32", what)}},
                    c.common);
    }
    const Gradient made = gradient(
        d,
        {.by = *by, .ties = c.ties == "shared" ? Ties::shared : Ties::first, .keep = *keep, .only_needed = !keep->empty()});
    std::string text = print(canonical(c.forward ? with_outputs(d, made.kept) : made.diagram));
    const auto names = [&](const std::vector<ArrayId>& ids) {
        return mapped<std::string>(ids, [&](ArrayId id) { return d.array(id).name; });
    };
    if (c.common.json) {
        Json document = json_document("grad");
        document["diagram"] = made.diagram.name;
        document["text"] = text;
        document["kept"] = names(made.kept);
        document["independent"] = names(made.independent);
        print(document);
        return ExitCode::success;
    }
    for (const std::string& name : names(made.independent))
        text = fmt::format("# no result depends on {}\n", name) + text;
    print(text);
    return ExitCode::success;
}

}  // namespace

void add_grad(CLI::App& app, Main& main) {
    const auto c = std::make_shared<GradCommand>();
    Command command(app, main, "grad",
                    "The gradients of a diagram as a text: its results' adjoints become its arguments'",
                    "napkin grad examples/attention.nk --wrt Q,V", [c] { return grad_command(*c); });
    command.file(c->common);
    command.list("--wrt", "NAME", c->by, "Arguments to differentiate by; all of real numbers without it");
    command.list("--keep", "NAME", c->keep,
                 "Results and temporaries that the forward diagram keeps; all others are computed again");
    command.flag("--forward", c->forward, "Print the forward diagram, which returns what is kept");
    command.text("--ties", "RULE", c->ties, "Who gets the gradient of a maximum that several values have",
                 {"first", "shared"});
    command.output(c->common);
}

}  // namespace napkin::cli
