// `napkin grad`: the gradients of a diagram as a text of the language.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "diagram/array_sizes.hpp"
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
    std::int64_t memory_limit = 0;
    bool forward = false;
};

/// What the forward diagram keeps, and what both diagrams then take on a machine.
struct Kept {
    std::vector<ArrayId> arrays;
    std::int64_t bytes = 0;
    double forward_seconds = 0, backward_seconds = 0;  ///< predicted
    [[nodiscard]] double seconds() const { return forward_seconds + backward_seconds; }
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

Result<double> predicted(const Diagram& d, Options options) {
    options.diagram.clear();
    auto planned = compile(std::make_shared<Source>(Source{d.name, print(canonical(d))}), options, Pass::plan);
    if (!planned) return planned.errors();
    return planned->plan.seconds();
}

/// All arrays of at most so many bytes are kept, for each number of bytes that makes a difference: the fastest of these
/// on the machine, both diagrams together. Results are there anyway, and cost nothing to keep.
Result<std::vector<Kept>> choices(const GradCommand& c, const Diagram& d, GradientOptions options) {
    const auto bound = bind_sizes(d, assignments(c.common.set, "--set"));
    if (!bound) return bound.errors();
    const Extents& extents = *bound;
    std::map<std::int64_t, std::vector<ArrayId>> by_bytes{{0, {}}};
    for (const Equation& e : gradient(d, options).diagram.equations)
        if (at(e.target) < d.arrays.size()) by_bytes[array_bytes(d, e.target, extents)].push_back(e.target);
    std::vector<Kept> out;
    options.keep.clear(), options.only_needed = true;
    for (const auto& [bytes, arrays] : by_bytes) {
        append(options.keep, arrays);
        const Gradient made = gradient(d, options);
        Kept next{made.kept};
        for (const ArrayId id : made.kept)
            if (d.array(id).role != ArrayRole::output) next.bytes += array_bytes(d, id, extents);
        if (c.memory_limit > 0 && next.bytes > c.memory_limit) break;
        if (!out.empty() && out.back().arrays == next.arrays) continue;
        auto backward = predicted(made.diagram, c.common);
        auto forward = backward ? predicted(with_outputs(d, made.kept), c.common) : backward;
        if (!forward) return forward.errors();
        next.forward_seconds = *forward, next.backward_seconds = *backward;
        out.push_back(std::move(next));
    }
    return out;
}

/// A line of a text for each choice, the fastest marked.
std::string choices_text(const Diagram& d, const std::vector<Kept>& all, const Kept& best) {
    std::string out;
    for (const Kept& kept : all) {
        const auto names = mapped<std::string>(kept.arrays, [&](ArrayId id) { return d.array(id).name; });
        out += fmt::format("# {} keep {:<24} {:>14} B more  forward {:9.2f} µs, gradient {:9.2f} µs\n",
                           &kept == &best ? "*" : " ",
                           names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")), kept.bytes,
                           1e6 * kept.forward_seconds, 1e6 * kept.backward_seconds);
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
    const bool is_chosen = c.keep == std::vector<std::string>{"auto"};
    auto keep = pick(d, is_chosen ? std::vector<std::string>{} : c.keep, "a result or a temporary", is_kept);
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
    GradientOptions options{.by = *by, .ties = c.ties == "shared" ? Ties::shared : Ties::first};
    std::string compared;
    if (is_chosen) {
        const auto all = choices(c, d, options);
        if (!all) return fail(all.errors(), c.common);
        const Kept& best = *min_element(*all, [](const Kept& a, const Kept& b) { return a.seconds() < b.seconds(); });
        options.keep = best.arrays;
        compared = choices_text(d, *all, best);
    } else {
        options.keep = *keep;
    }
    options.only_needed = is_chosen || !keep->empty();
    const Gradient made = gradient(d, options);
    std::string text = compared + print(canonical(c.forward ? with_outputs(d, made.kept) : made.diagram));
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
