// `napkin grad`: the gradients of a diagram as a text of the language.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagram/verifier.hpp"
#include "differentiate/gradient.hpp"
#include "differentiate/log_divisors.hpp"
#include "napkin/command.hpp"
#include "study/kept_arrays.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin::cli {
namespace {

struct GradCommand {
    Options common;
    std::vector<std::string> by, keep;
    std::string ties = "first";
    std::int64_t memory_limit = 0;
    bool forward = false;
};

/// Results and temporaries with these names. Errors: bad-gradient.
Result<std::vector<ArrayId>> kept_by_name(const Diagram& d, const std::vector<std::string>& names) {
    std::vector<ArrayId> out;
    for (const std::string& name : names) {
        const auto id = d.find_array(name);
        if (!id || d.array(*id).role == ArrayRole::input) {
            std::vector<std::string> near;
            for (const Equation& e : d.equations) near.push_back(d.array(e.target).name);
            return Diagnostic{.code = "bad-gradient",
                              .range = id ? d.array(*id).range : d.range,
                              .message = id ? fmt::format("{} is an argument, which is there anyway", name)
                                            : fmt::format("{} has no array {}", d.name, name),
                              .expected = fmt::format("a result or a temporary: {}", fmt::join(near, ", ")),
                              .hint = did_you_mean(name, near)};
        }
        if (!contains(out, *id)) out.push_back(*id);
    }
    return out;
}

/// A line of a text for each choice, the fastest marked.
std::string choices_text(const Diagram& d, const std::vector<KeptArrays>& all, const KeptArrays& best) {
    std::string out;
    for (const KeptArrays& kept : all) {
        const auto names = mapped<std::string>(kept.arrays, [&](ArrayId id) { return d.array(id).name; });
        out += fmt::format("# {} keep {:<24} {:>14} B more  forward {:9.2f} µs, gradient {:9.2f} µs\n",
                           &kept == &best ? "*" : " ",
                           names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")), kept.bytes,
                           1e6 * kept.forward_seconds, 1e6 * kept.gradient_seconds);
    }
    return out;
}

ExitCode grad_command(const GradCommand& c) {
    auto compilation = compile(c.common, Pass::parse);
    if (!compilation) return fail(compilation.errors(), c.common);
    const Diagram d = with_log_divisors(compilation->diagram);
    if (const auto wrong = wrong_input(d, real_inputs(d), c.by))
        return fail({{.code = "bad-gradient",
                      .range = d.range,
                      .message = wrong->message,
                      .expected = fmt::format("arguments and results of real numbers{}{}",
                                              wrong->right.empty() ? "" : ": ", fmt::join(wrong->right, ", ")),
                      .hint = did_you_mean(wrong->name, wrong->right)}},
                    c.common);
    const bool is_chosen = c.keep == std::vector<std::string>{"auto"};
    const auto keep = kept_by_name(d, is_chosen ? std::vector<std::string>{} : c.keep);
    if (!keep) return fail(keep.errors(), c.common);
    GradientOptions options{.by = mapped<ArrayId>(c.by, [&](const std::string& name) { return *d.find_array(name); }),
                            .ties = c.ties == "shared" ? Ties::shared : Ties::first};
    std::string compared;
    if (is_chosen) {
        const auto all = choices_of_kept_arrays(d, options, pipeline_options(c.common, Pass::plan), c.memory_limit);
        if (!all) return fail(all.errors(), c.common);
        const KeptArrays& best = *min_element(
            *all, [](const KeptArrays& a, const KeptArrays& b) { return a.seconds() < b.seconds(); });
        options.keep = best.arrays;
        compared = choices_text(d, *all, best);
    } else {
        options.keep = *keep;
    }
    options.only_needed = is_chosen || !keep->empty();
    const Gradient made = gradient(d, options);
    const Diagram printed = canonical(c.forward ? with_outputs(d, made.kept) : made.diagram);
    if (const auto faults = verify(printed); !faults.empty()) throw InternalError("gradient: " + faults.front());
    std::string text = compared + print(printed);
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
    command.list(
        "--keep", "NAME", c->keep,
        "Results and temporaries that the forward diagram keeps; all others are computed again. auto: what is fastest");
    command.number("--memory-limit", c->memory_limit, 1, std::int64_t{1} << 50,
                   "With --keep auto: bytes that may be kept beside results");
    command.sizes(c->common);
    command.text("--machine", "NAME", c->common.machine, "With --keep auto: the machine whose predicted time decides");
    command.flag("--forward", c->forward, "Print the forward diagram, which returns what is kept");
    command.text("--ties", "RULE", c->ties, "Who gets the gradient of a maximum that several values have",
                 {"first", "shared"});
    command.output(c->common);
}

}  // namespace napkin::cli
