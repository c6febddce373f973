// The options of a command, in terms of CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "napkin/command.hpp"

namespace napkin::cli {

Command::Command(CLI::App& parent, Main& main, const std::string& name, const std::string& description,
                 const std::string& example, std::function<ExitCode()> action)
    : app_(parent.add_subcommand(name, description)) {
    app_->footer("Example:\n  " + example);
    if (action) {
        app_->callback([&main, action = std::move(action)] { main.action = action; });
    } else {
        app_->require_subcommand(1);
    }
}

void Command::argument(const std::string& name, std::string& value, const std::string& help, bool required) {
    app_->add_option(name, value, help)->required(required)->type_name("");
}

void Command::arguments(const std::string& name, std::vector<std::string>& values, const std::string& help) {
    app_->add_option(name, values, help)->required()->type_name("");
}

void Command::flag(const std::string& name, bool& value, const std::string& help) { app_->add_flag(name, value, help); }

void Command::text(const std::string& name, const std::string& type, std::string& value, const std::string& help,
                   const std::vector<std::string>& allowed) {
    CLI::Option* option = app_->add_option(name, value, help)->type_name(type);
    if (!allowed.empty()) option->check(CLI::IsMember(allowed).description(""));
}

void Command::list(const std::string& name, const std::string& type, std::vector<std::string>& values,
                   const std::string& help, bool separated, const std::vector<std::string>& allowed) {
    CLI::Option* option = app_->add_option(name, values, help)->type_name(type)->allow_extra_args(false);
    if (separated) option->delimiter(',');
    if (!allowed.empty()) option->check(CLI::IsMember(allowed).description(""));
}

void Command::number(const std::string& name, std::int64_t& value, std::int64_t least, std::int64_t most,
                     const std::string& help) {
    app_->add_option(name, value, help)->type_name("N")->check(CLI::Range(least, most).description(""));
}

void Command::vector_bytes(std::int64_t& value, const std::string& help) {
    app_->add_option("--vector-bytes", value, help)
        ->type_name("N")
        ->check(CLI::IsMember(std::vector<std::int64_t>{16, 32, 64}).description(""));
}

namespace {

/// A number from least to most. CLI11's own Range lets NaN pass, which is neither less nor more.
CLI::Validator between(double least, double most) {
    return CLI::Validator(
        [least, most](const std::string& text) {
            double value = 0;
            const bool number = CLI::detail::lexical_cast(text, value);
            return number && value >= least && value <= most
                       ? std::string()
                       : fmt::format("{} is no number from {} to {}", text, least, most);
        },
        "");
}

}  // namespace

void Command::seconds(const std::string& name, double& value, const std::string& help) {
    app_->add_option(name, value, help)->type_name("S")->check(between(0, 3600));
}

void Command::real(const std::string& name, const std::string& type, double& value, double least, double most,
                   const std::string& help) {
    app_->add_option(name, value, help)->type_name(type)->check(between(least, most));
}

void Command::file(Options& options) {
    argument("FILE", options.file, "Diagrams as text; - reads stdin");
    text("--diagram", "NAME", options.diagram, "Which of the file's diagrams (default: the last)");
}

void Command::output(Options& options) {
    flag("--json", options.json, "Print JSON, with its schema's version");
    text("--color", "WHEN", options.color, "auto, always or never; NO_COLOR is heeded", {"auto", "always", "never"});
}

void Command::pipeline(Options& options) {
    sizes(options), derivation(options), plan(options), passes(options), output(options);
}

void Command::sizes(Options& options) {
    list("--set", "AXIS=SIZE", options.set, "Sizes of axes, as q=8192 or q=x=4096,d=64; may be repeated");
}

void Command::derivation(Options& options) {
    list("--stream", "AXIS[=SIZE]", options.stream, "Axis that must be streamed, with its chunk size where given");
    text("--form", "FORM", options.form, "unscaled: scale at the end; auxiliary: results finished after every step",
         {"unscaled", "auxiliary"});
    flag("--no-fuse", options.no_fuse, "Leave every equation a kernel of its own");
}

void Command::any_sizes(Options& options) {
    flag("--any-sizes", options.any_sizes,
         "Sizes that tiles cut are arguments of the kernels, so that one text serves many sizes");
}

void Command::plan(Options& options) {
    list("--group", "AXIS=SIZE", options.group, "Group (tile) size of an axis, as q=192");
    list("--split", "AXIS=PARTS", options.split, "Parts of a stream that threads share and merge, as x=2; 1: none");
    number("--threads", options.threads, 1, 4096, "Threads (default: one a core)");
    text("--schedule", "FILE", options.schedule,
         "Schedules as napkin plan prints them, or parts of them: what is in it is fixed");
    text("--machine", "NAME|FILE", options.machine,
         "A machine's name or .toml file (default: NAPKIN_MACHINE's, else this computer)");
    flag("--batch-invariant", options.batch_invariant,
         "The bits of a row of a result do not depend on how many rows there are");
    vector_bytes(options.vector_bytes, "This computer with vectors of 16, 32 or 64 bytes, as host-128, -256, -512");
}

void Command::passes(Options& options) {
    std::vector<std::string> names;
    std::string all;
    for (const Pass pass : all_passes) {
        names.emplace_back(name(pass));
        all += (all.empty() ? "" : ", ") + names.back();
    }
    flag("--time-passes", options.time_passes, "Say on stderr how long each pass took");
    list("--print-after", "PASS", options.print_after, "Print a pass' result on stderr: " + all, true, names);
}

}  // namespace napkin::cli
