#include "napkin/measured.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>

#include "diagram/hidden_axes.hpp"
#include "run/npy.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"

namespace napkin::cli {

namespace {
/// Tells what goes on, in one line that is written over, where stderr is a terminal.
class Progress {
public:
    ~Progress() { clear(); }
    void show(const std::string& what) const {
        if (stderr_is_terminal()) std::cerr << "\r\033[K" << what << " …" << std::flush;
    }
    void clear() const {
        if (stderr_is_terminal()) std::cerr << "\r\033[K" << std::flush;
    }
};

Result<std::map<std::string, Tensor>> read_inputs(const Diagram& diagram, const std::map<std::string, std::string>& files) {
    std::map<std::string, Tensor> tensors;
    std::vector<Diagnostic> errors;
    for (const auto& [name, path] : files) {
        const auto id = diagram.find_array(name);
        auto tensor = read_npy(path, id ? std::optional(diagram.array(*id).type) : std::nullopt,
                               fmt::format("{} for {}", path, name));
        if (tensor) {
            tensors.emplace(name, std::move(tensor).value());
        } else {
            append(errors, tensor.errors());
        }
    }
    if (!errors.empty()) return errors;
    return tensors;
}

}  // namespace

namespace {
/// Every output that is to be written exists.
Status check_outputs(const Diagram& diagram, const Files& files) {
    std::vector<std::string> names = names_of(diagram.arrays, diagram.outputs);
    std::vector<Diagnostic> errors;
    for (const auto& [name, path] : files) {
        if (contains(names, name)) continue;
        errors.push_back({.code = "unknown-output",
                          .message = fmt::format("{} has no output {}", diagram.name, name),
                          .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                          .hint = did_you_mean(name, names)});
    }
    if (!errors.empty()) return errors;
    return Done{};
}

}  // namespace

Result<Measured> compile_and_measure(const Options& options, const Files& input_files, const Files& output_files,
                                     RunOptions run, const Checks& checks) {
    PipelineOptions pipeline = pipeline_options(options, Pass::compile);
    auto source = read_source(options.file);
    if (!source) return source.errors();
    if (const Status read = read_schedule(options, pipeline); !read) return read.errors();
    std::map<std::string, Tensor> given;
    if (!input_files.empty() || !output_files.empty()) {
        const auto diagram = parse_diagram(*source, {pipeline.diagram, {}});
        if (!diagram) return diagram.errors();
        if (const Status known = check_outputs(*diagram, output_files); !known) return known.errors();
        // The files' shapes are sizes like those of --set.
        auto read = read_inputs(*diagram, input_files);
        if (!read) return read.errors();
        auto sizes = sizes_of_inputs(*diagram, *read, pipeline.sizes);
        if (!sizes) return sizes.errors();
        pipeline.sizes = std::move(sizes).value();
        given = std::move(read).value();
    }
    const Progress progress;
    run.progress = [&](const std::string& what) { progress.show(what); };
    progress.show("compiling");
    auto compilation = run_pipeline(std::move(source).value(), pipeline);
    if (!compilation) return compilation.errors();
    if (!compilation->notes.empty()) {
        progress.clear();
        say_notes(*compilation);
    }
    std::vector<std::pair<std::string, double>> times;
    std::optional<FirstUse> first_use;
    if (checks.derivation) {
        progress.show("validating");
        first_use = validate_first_use(compilation->derived);
        times.emplace_back("validate", first_use->seconds);
    }
    auto inputs = all_inputs(compilation->diagram, compilation->extents, given, run.seed);
    if (!inputs) return inputs.errors();
    given.clear();
    std::vector<Tensor> outputs;
    auto report = run_and_report(*compilation, *inputs, run, outputs);
    progress.clear();
    if (!report) return report.errors();
    for (const std::string& warning : report->warnings) say("napkin: " + warning);
    std::optional<Verdict> verdict;
    if (checks.numbers) {
        progress.show("evaluating in double precision");
        const auto start = std::chrono::steady_clock::now();
        verdict = check_outputs(*compilation, *inputs, outputs,
                                {.seed = run.seed, .operations = checks.seconds * check_operations_per_s});
        times.emplace_back("check", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        progress.clear();
    }
    if (options.time_passes) say(pass_times(*compilation, times));
    Files written;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::string& name = compilation->diagram.array(compilation->diagram.outputs[i]).name;
        const auto file = output_files.find(name);
        if (file == output_files.end()) continue;
        const bool bad = verdict && verdict->arrays[i].judgement == Judgement::bad;
        const std::string path = bad ? bad_name(file->second) : file->second;
        if (const Status done = write_npy(path, outputs[i]); !done) return done.errors();
        written[name] = path;
    }
    return Measured{std::move(compilation).value(), std::move(report).value(), first_use, std::move(verdict),
                    std::move(written)};
}

std::string bad_name(const std::string& path) {
    const std::size_t name = path.find_last_of('/') + 1, dot = path.rfind('.');
    return dot == std::string::npos || dot <= name ? path + ".bad" : path.substr(0, dot) + ".bad" + path.substr(dot);
}

std::string sizes_text(const Compilation& compilation) {
    std::string text;
    for (const AxisId i : axes_of_text(compilation.diagram)) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", compilation.diagram.axes[i].name, compilation.extents[i]);
    }
    return text;
}

}  // namespace napkin::cli
