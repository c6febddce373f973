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

/// The screen: a title in the first column where a part begins, its lines in the second.
class Screen {
public:
    explicit Screen(bool color) : color_(color) {}
    void part(const std::string& title, const std::string& text) {
        std::size_t begin = 0;
        bool first = true;
        while (begin < text.size()) {
            std::size_t end = text.find('\n', begin);
            if (end == std::string::npos) end = text.size();
            const std::string line = text.substr(begin, end - begin);
            out_ += line.empty() ? "\n"
                                 : (first ? bold(left(title, std::max<std::size_t>(12, title.size() + 2)), color_)
                                          : std::string(12, ' ')) +
                                       line + "\n";
            first = false;
            begin = end + 1;
        }
    }
    void gap() { out_ += "\n"; }
    [[nodiscard]] const std::string& text() const { return out_; }

private:
    bool color_;
    std::string out_;
};

std::string derived_text(const Derived& derived) {
    std::string text = kernels_line(derived) + "\n";
    for (const Kernel& kernel : derived.kernels) {
        if (derived.kernels.size() > 1) text += fmt::format("kernel {}\n", kernel.name);
        text += aligned(kernel_lines(derived, kernel), "");
    }
    for (const Refusal& refusal : derived.refusals)
        text += fmt::format("not done: {}: {}\n", refusal.what, refusal.reason);
    return text;
}

std::string choices(const Diagram& diagram, const std::map<AxisId, Choice>& chosen) {
    std::string text;
    for (const auto& [axis, choice] : chosen)
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", diagram.axis(axis).name, choice.value);
    return text.empty() ? "none" : text;
}

std::string planned_text(const Plan& plan) {
    std::string text = plan.machine + "\n";
    for (const KernelPlan& kernel : plan.kernels) {
        const KernelSchedule& s = kernel.schedule();
        const Diagram& diagram = kernel.scheduled.program->diagram;
        if (plan.kernels.size() > 1) text += fmt::format("kernel {}\n", s.kernel);
        text += fmt::format("groups of {}; chunks of {}; {} thread{}", choices(diagram, s.group),
                            choices(diagram, s.stream), s.threads.value, s.threads.value == 1 ? "" : "s");
        if (const StreamParts& parts = kernel.scheduled.kernel->parts; parts.any())
            text += fmt::format("; {} parts of {}", s.split.value, diagram.axis(parts.axis).name);
        if (s.vector_axis >= 0) {
            int rows = 1;
            for (const Atom& atom : s.atoms) rows = std::max(rows, atom.rows);
            text += fmt::format("; vectors along {}, {} rows × {} vectors in registers",
                                diagram.axis(s.vector_axis).name, rows, s.panel_vectors);
        }
        text += fmt::format("\nbound by {}\n", kernel.time.busy.front().what);
    }
    return text;
}

std::string transfers_text(const Measured& m, bool color) {
    std::vector<std::vector<std::string>> rows = {{"", "predicted", "counted", "", ""}};
    for (std::size_t i = 0; i < m.compilation.plan.kernels.size(); ++i) {
        const std::string which = m.compilation.plan.kernels.size() > 1
                                      ? " of " + m.compilation.plan.kernels[i].schedule().kernel
                                      : "";
        const auto row = [&](const char* what, double predicted, std::int64_t values, const char* meaning) {
            const auto counted = static_cast<double>(values);
            const double more = predicted - counted, rounding = 1e-9 * predicted;
            rows.push_back({what + which, count_text(std::round(predicted)), count_text(counted),
                            std::abs(more) <= rounding ? green("equal", color)
                            : more > 0                 ? green("fewer", color)
                                                       : red("DIFFERENT", color),
                            more > rounding
                                ? fmt::format("{}; in letters, skipped chunks and ragged tiles are whole ones", meaning)
                                : meaning});
        };
        const Counts& counted = m.report.counted[i];
        row("H", m.report.predicted_transfers[i], counted.transfers(), "values to and from memory");
        row("M", m.report.predicted_memory[i], counted.peak_memory, "values that a core holds");
    }
    return table(rows, {1, 2});
}

/// Said once, when the derivation is new here.
std::string validated_text(const Measured& m) {
    if (!m.first_use || m.first_use->known) return "";
    const std::string cut = m.first_use->cut_trials == 0
                                ? ""
                                : fmt::format(" ({} of them cut to what a check may take)", m.first_use->cut_trials);
    return fmt::format("new here: the same as the definition on {} small sizes{}, tried in {}\n", m.first_use->trials,
                       cut, seconds_text(m.first_use->seconds));
}

double bytes_in_and_out(const Measured& m) {
    double total = 0;
    const Diagram& diagram = m.compilation.diagram;
    for (const auto& list : {diagram.inputs, diagram.outputs}) {
        for (const ArrayId id : list)
            total += static_cast<double>(count_values(diagram, id, m.compilation.extents)) * bytes(diagram.array(id).type);
    }
    return total;
}

/// Multiplications where they are the work; else how fast inputs and outputs pass.
std::string rate_text(const Measured& m, double flops, double seconds) {
    const double moved = bytes_in_and_out(m);
    if (m.report.dense_flops > 4 * moved)
        return fmt::format("{:.{}f} GFLOP/s", flops / seconds / 1e9, flops / seconds < 1e10 ? 1 : 0);
    return fmt::format("{:.1f} GB/s", moved / seconds / 1e9);
}

/// "OpenBLAS 0.3.21": the library's own name goes on with how it was built.
std::string short_name(const std::string& blas) { return blas.substr(0, blas.find(' ', blas.find(' ') + 1)); }

std::string measured_text(const Measured& m, bool color) {
    const RunReport& r = m.report;
    std::vector<std::vector<std::string>> rows;
    if (r.baseline_seconds) {
        const auto ratio = r.speedup();
        const std::string beside = !ratio        ? "no fair peer"
                                   : *ratio >= 1 ? bold(fmt::format("{:.2f}× faster", *ratio), color)
                                                 : bold(fmt::format("{:.2f}× slower", 1 / *ratio), color);
        rows = {{"", "napkin", "equation by equation", ""},
                {"time", bold(seconds_text(r.kernel_seconds), color), seconds_text(*r.baseline_seconds), beside},
                {"rate", rate_text(m, r.flops, r.kernel_seconds), rate_text(m, r.dense_flops, *r.baseline_seconds), ""},
                {"extra memory", bytes_text(static_cast<double>(r.kernel_extra_bytes)),
                 bytes_text(static_cast<double>(r.baseline_extra_bytes)), ""}};
    } else {
        rows = {{"", "napkin"},
                {"time", bold(seconds_text(r.kernel_seconds), color)},
                {"rate", rate_text(m, r.flops, r.kernel_seconds)},
                {"extra memory", bytes_text(static_cast<double>(r.kernel_extra_bytes))}};
    }
    if (r.predicted_seconds > 0) rows.insert(rows.begin() + 2, {"predicted", seconds_text(r.predicted_seconds)});
    std::string how = r.device.empty()
                          ? fmt::format("medians of {}, {} thread{}", r.repetitions, r.threads, r.threads == 1 ? "" : "s")
                          : fmt::format("median of {} on {}, its caches flushed before each", r.repetitions, r.device);
    if (r.baseline_seconds && !r.blas.empty()) how += "; contractions by " + short_name(r.blas);
    if (r.baseline_seconds && r.baseline_multiplies > 0 && r.blas.empty() && r.device.empty())
        how += "; without OpenBLAS contractions are kernels of napkin's own (napkin doctor says how to install it)";
    for (const std::string& own : r.baseline_own) how += "; " + own;
    if (!r.baseline_left_out.empty()) how += "; equation by equation left out: " + r.baseline_left_out;
    return table(rows, {1, 2}) + dim(how, color) + "\n";
}

/// Which of the values without a bound are no numbers, though the definition's are.
std::string lost_text(const ArrayVerdict& v) {
    return v.lost == 0 ? ""
                       : fmt::format(" ({} are NaN or infinite by rounding)", count_text(static_cast<double>(v.lost)));
}

std::string checked_text(const Verdict& verdict, bool color) {
    if (!verdict.left_out.empty())
        return red("not compared", color) + ": " + verdict.left_out + dim("; --check-seconds allows more", color) + "\n";
    std::vector<std::vector<std::string>> rows;
    for (const ArrayVerdict& v : verdict.arrays) {
        const std::string judgement(name(v.judgement));
        const std::string what = v.judgement == Judgement::bad
                                     ? fmt::format("{} outside of their bounds", count_text(static_cast<double>(v.beyond)))
                                 : v.unbounded > 0
                                     ? fmt::format("error {}; {} have no bound{}", error_text(v.error),
                                                   count_text(static_cast<double>(v.unbounded)), lost_text(v))
                                     : fmt::format("error {}, at most {:.2g}% of the bound", error_text(v.error),
                                                   100 * v.share);
        rows.push_back({v.array, std::string(name(v.type)), what,
                        v.judgement == Judgement::good ? green(judgement, color) : red(judgement, color),
                        fmt::format("{} 2 × {} + {}", v.within_plain() ? "≤" : ">", error_text(v.plain_error),
                                    error_text(v.rounding))});
    }
    const std::string which = verdict.checked_values == verdict.output_values
                                  ? "every value"
                                  : fmt::format("{} of {} values, drawn at random",
                                                count_text(static_cast<double>(verdict.checked_values)),
                                                count_text(static_cast<double>(verdict.output_values)));
    return table(rows) +
           dim(fmt::format("{} against double precision, each within the error that the definition allows; "
                           "last: FlashAttention's rule",
                           which),
               color) +
           "\n";
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

std::string screen_text(const Measured& m, bool color) {
    Screen screen(color);
    screen.part(m.compilation.diagram.name, sizes_text(m.compilation));
    screen.gap();
    screen.part("derived", derived_text(m.compilation.derived) + validated_text(m));
    screen.gap();
    screen.part("planned", planned_text(m.compilation.plan));
    screen.gap();
    screen.part("transfers", transfers_text(m, color));
    screen.gap();
    screen.part("compiled",
                m.report.from_cache ? "from the cache" : fmt::format("in {}", seconds_text(m.report.compile_seconds)));
    screen.part("measured", measured_text(m, color));
    if (m.verdict) {
        screen.gap();
        screen.part("checked", checked_text(*m.verdict, color));
    }
    return screen.text();
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
    if (c.common.json) {
        Json document = json_document("run");
        document.update(measured_json(*measured));
        document["derivation"] = describe(measured->compilation.derived);
        document["plan"] = to_string(measured->compilation.plan);
        print(document);
    } else {
        print(screen_text(*measured, color_on_stdout(c.common)));
    }
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
