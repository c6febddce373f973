// `napkin run`: derive, plan, compile, run, measure, check; and say all of it on one screen.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "napkin/command.hpp"
#include "napkin/measured.hpp"
#include "run/derivation.hpp"
#include "support/files.hpp"
#include "support/numbers.hpp"

namespace napkin::cli {

namespace {

/// The exit code of a fault of napkin itself, as in main.cpp: here, of numbers that are not what the definition says.
constexpr auto wrong_numbers = static_cast<ExitCode>(70);

struct RunCommand {
    Options common;
    std::vector<std::string> inputs, outputs;
    std::int64_t seed = 0;
    double seconds = 2, check_seconds = napkin::check_seconds;
    bool no_baseline = false, no_check = false, no_validate = false, cold = false;
};

/// "Q=q.npy" → {Q, q.npy}.
Files files(const std::vector<std::string>& items, const std::string& flag) {
    Files result;
    for (const std::string& item : items) {
        const std::size_t sign = item.find('=');
        if (sign == std::string::npos || sign == 0 || sign + 1 == item.size()) {
            throw UsageError(fmt::format("{} {}: expected NAME=FILE, as in {} Q=q.npy", flag, item, flag));
        }
        if (!result.emplace(item.substr(0, sign), item.substr(sign + 1)).second)
            throw UsageError(fmt::format("{} gives {} twice", flag, item.substr(0, sign)));
    }
    return result;
}

/// Two outputs in one file would leave the last alone, also where a link leads to the other's file before that is
/// there. What is no file, as /dev/null, takes any number.
void check_distinct(const Files& outputs) {
    namespace fs = std::filesystem;
    std::error_code none;
    const auto written = [&](const std::string& path) {
        return fs::weakly_canonical(fs::absolute(destination_of(path).path, none), none);
    };
    for (auto a = outputs.begin(); a != outputs.end(); ++a) {
        for (auto b = std::next(a); b != outputs.end(); ++b) {
            const bool same = fs::equivalent(a->second, b->second, none) || written(a->second) == written(b->second);
            if (same && !fs::is_character_file(a->second, none))
                throw UsageError(fmt::format("--output {}={}: {} goes to that file already", b->first, b->second, a->first));
        }
    }
}

/// What is said on stderr of numbers that are not what the definition says.
std::string wrong_text(const Measured& m) {
    std::string text;
    for (const ArrayVerdict& v : m.verdict->arrays) {
        if (v.judgement != Judgement::bad) continue;
        text += fmt::format("napkin: {}; {} of {} values are outside of their bounds (seed {})\n", describe(v),
                            v.beyond, v.values, m.verdict->seed);
        if (const auto file = m.written.find(v.array); file != m.written.end())
            text += fmt::format("  its numbers are kept in {}\n", file->second);
    }
    return text + "This is a fault of napkin, not of your input: please report it with the command that shows it.\n";
}

ExitCode run(const RunCommand& c) {
    const auto input_files = files(c.inputs, "--input");
    const auto output_files = files(c.outputs, "--output");
    check_distinct(output_files);
    RunOptions options{.seed = static_cast<std::uint64_t>(c.seed),
                       .threads = static_cast<int>(c.common.threads),
                       .baseline = !c.no_baseline,
                       .cold = c.cold,
                       .seconds = c.seconds};
    const auto measured = compile_and_measure(
        c.common, input_files, output_files, options,
        {.derivation = !c.no_validate, .numbers = !c.no_check, .seconds = c.check_seconds});
    if (!measured) return fail(measured.errors(), c.common);
    report::Section out = measured_report(*measured, color_on_stdout(c.common));
    out.data("derivation", describe(measured->compilation.derived));
    out.data("plan", to_string(measured->compilation.plan));
    print(out, "run", c.common);
    if (!measured->verdict || measured->verdict->good()) return ExitCode::success;
    say(wrong_text(*measured));
    return wrong_numbers;
}

}  // namespace

void add_run(CLI::App& app, Main& main) {
    const auto c = std::make_shared<RunCommand>();
    Command command(app, main, "run", "Compile, run, measure and check a diagram on this computer",
                    "napkin run examples/attention.nk --set q=1024 --input Q=q.npy --output O=o.npy",
                    [c] { return run(*c); });
    command.file(c->common);
    command.list("--input", "NAME=FILE", c->inputs, "An input's numbers, as Q=q.npy; its shape gives the sizes", false);
    command.list("--output", "NAME=FILE", c->outputs, "Where an output goes, as O=o.npy", false);
    command.number("--seed", c->seed, 0, max_seed, "Of the random inputs, N(0, 1) (default: 0)");
    command.seconds("--seconds", c->seconds, "About how long to measure (default: 2)");
    command.flag("--cold", c->cold,
                 "Read other data before each run, so that it finds its arrays in memory, as on a GPU it always does");
    command.flag("--no-baseline", c->no_baseline, "Do not measure equation by equation");
    command.seconds("--check-seconds", c->check_seconds, "About how long to compare with double precision (default: 2)");
    command.flag("--no-check", c->no_check, "Do not compare with double precision");
    command.flag("--no-validate", c->no_validate, "Do not try a new derivation on small sizes first");
    command.any_sizes(c->common);
    command.pipeline(c->common);
}

}  // namespace napkin::cli
