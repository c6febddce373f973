#include "napkin/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "support/files.hpp"
#include "support/limits.hpp"
#include "syntax/lexer.hpp"

namespace napkin::cli {

namespace fs = std::filesystem;

std::map<std::string, std::int64_t> assignments(const std::vector<std::string>& items, const std::string& flag) {
    std::map<std::string, std::int64_t> result;
    const auto parts = [](std::string_view text, char separator) {
        std::vector<std::string> out;
        for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(end, text.size() - 1) + 1)) {
            end = text.find(separator);
            const std::string_view part = text.substr(0, end);
            const std::size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
            out.emplace_back(first == std::string_view::npos ? "" : part.substr(first, last - first + 1));
            if (end == std::string_view::npos) break;
        }
        return out;
    };
    for (const std::string& item : items) {
        for (const std::string& assignment : parts(item, ',')) {
            // q = x = 4096: every word but the last is an axis.
            std::vector<std::string> axes = parts(assignment, '=');
            const std::string number = axes.back();
            axes.pop_back();
            std::int64_t value = 0;
            const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
            const bool good = parsed.ec == std::errc() && parsed.ptr == number.data() + number.size() && value >= 0 &&
                              !axes.empty() && !contains(axes, "");
            if (!good) {
                throw UsageError(fmt::format(
                    "{} {}: expected AXIS=SIZE with a whole size of at least 0, as in {} q=512", flag, item, flag));
            }
            for (const std::string& axis : axes)
                if (!result.emplace(axis, value).second) throw UsageError(fmt::format("{} gives {} twice", flag, axis));
        }
    }
    return result;
}

namespace {
Diagnostic unread_file(std::string code, std::string message, std::string hint = "") {
    return Diagnostic{.code = std::move(code), .message = std::move(message), .hint = std::move(hint)};
}

/// Files beside the missing one, or anywhere below when its folder is missing too, that could have been meant.
std::string nearest_file(const fs::path& file) {
    std::vector<std::string> names;
    std::error_code ignored;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (entry.is_regular_file(ignored) &&
            (entry.path().extension() == ".nk" || entry.path().extension() == file.extension())) {
            names.push_back(entry.path().filename().string());
        }
    }
    std::string near = nearest_name(file.filename().string(), names);
    if (near.empty() && file.extension() != ".nk") near = nearest_name(file.filename().string() + ".nk", names);
    if (!near.empty()) return file.has_parent_path() ? (file.parent_path() / near).string() : near;
    const fs::path example = fs::path("examples") / file.filename();
    for (const fs::path& candidate : {example, fs::path(example.string() + ".nk")}) {
        if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    }
    return "";
}

}  // namespace

Result<std::shared_ptr<const Source>> read_source(const std::string& file) {
    auto source = std::make_shared<Source>();
    source->name = file == "-" ? "<stdin>" : file;
    // Reading one byte past the limit tells a text that is too large without reading all of it.
    constexpr std::size_t most = limits::max_file_bytes + 1;
    if (file == "-") {
        source->text.resize(most);
        std::cin.read(source->text.data(), static_cast<std::streamsize>(most));
        source->text.resize(static_cast<std::size_t>(std::cin.gcount()));
    } else {
        std::error_code error;
        const fs::file_status status = fs::status(file, error);
        if (!fs::exists(status)) {
            const std::string near = nearest_file(file);
            return unread_file("no-such-file", fmt::format("there is no file {}", file),
                               near.empty() ? "" : "did you mean " + near + "?");
        }
        if (fs::is_directory(status))
            return unread_file("not-a-file", fmt::format("{} is a folder", file), "give one .nk file");
        auto text = read_beginning(file, most);
        if (!text) return unread_file("unreadable-file", fmt::format("{} cannot be read", file), why_unreadable(file));
        source->text = std::move(*text);
    }
    if (source->text.size() > limits::max_file_bytes) {
        return unread_file("file-too-large", fmt::format("{} has more than {} bytes", source->name, limits::max_file_bytes));
    }
    return std::shared_ptr<const Source>(std::move(source));
}

Status read_schedule(const Options& options, PipelineOptions& pipeline) {
    if (options.schedule.empty()) return Done{};
    auto file = read_source(options.schedule);
    if (!file) return file.errors();
    pipeline.schedule_file = std::move(file).value();
    return Done{};
}

PipelineOptions pipeline_options(const Options& options, Pass until) {
    PipelineOptions result{.diagram = options.diagram, .sizes = assignments(options.set, "--set")};
    for (const auto& [axis, size] : assignments(options.group, "--group"))
        result.schedule.push_back(fmt::format("group {} = {}", axis, size));
    for (const auto& [axis, parts] : assignments(options.split, "--split"))
        result.schedule.push_back(fmt::format("split {} = {}", axis, parts));
    for (const std::string& item : options.stream) {
        if (is_name(item)) {
            result.schedule.push_back("stream " + item);
        } else {
            for (const auto& [axis, size] : assignments({item}, "--stream"))
                result.schedule.push_back(fmt::format("stream {} = {}", axis, size));
        }
    }
    if (options.threads > 0) result.schedule.push_back(fmt::format("threads = {}", options.threads));
    if (options.form != "unscaled") result.schedule.push_back("form = " + options.form);
    result.fuse = !options.no_fuse;
    result.any_sizes = options.any_sizes;
    result.batch_invariant = options.batch_invariant;
    result.machine = options.machine.empty() && options.vector_bytes > 0 ? fmt::format("host-{}", 8 * options.vector_bytes)
                                                                         : options.machine;
    result.until = until;
    result.keep_plan = true;
    for (const Pass pass : all_passes) {
        if (!contains(options.print_after, name(pass))) continue;
        result.print_after.push_back(pass);
        result.until = std::max(result.until, pass);  // what is asked for is made
    }
    result.print = say;
    return result;
}

std::string pass_times(const Compilation& compilation, const std::vector<std::pair<std::string, double>>& checks) {
    std::string text;
    double total = 0;
    for (const PassTime& time : compilation.times) {
        const bool is_kept = time.pass == Pass::plan && compilation.plan_from_cache;
        text += fmt::format("{:8} {:9.3f} ms{}\n", name(time.pass), time.seconds * 1e3, is_kept ? "  from the cache" : "");
        total += time.seconds;
    }
    for (const auto& [check, seconds] : checks) {
        text += fmt::format("{:8} {:9.3f} ms\n", check, seconds * 1e3);
        total += seconds;
    }
    return text + fmt::format("{:8} {:9.3f} ms\n", "all", total * 1e3);
}

void say_notes(const Compilation& compilation) {
    for (const std::string& note : compilation.notes) say("note: " + note);
}

Result<Compilation> compile(const Options& options, Pass until) {
    auto source = read_source(options.file);
    return source ? compile(std::move(source).value(), options, until) : source.errors();
}

Result<Compilation> compile(std::shared_ptr<const Source> source, const Options& options, Pass until) {
    PipelineOptions pipeline = pipeline_options(options, until);
    pipeline.says_price = pipeline.batch_invariant;
    if (const Status read = read_schedule(options, pipeline); !read) return read.errors();
    auto compilation = run_pipeline(std::move(source), pipeline);
    if (compilation) say_notes(*compilation);
    if (compilation && options.time_passes) say(pass_times(*compilation));
    return compilation;
}

ExitCode fail(const std::vector<Diagnostic>& errors, const Options& options) {
    say(render(errors, color_on_stderr(options)));
    ExitCode code = ExitCode::bad_input;
    for (const Diagnostic& error : errors) code = std::max(code, error.exit_code);
    return code;
}

namespace {
/// Whether any output is in colours. Until a command asks, none is, and what looks like a colour came from outside.
bool colors_in_use = false;

bool wants_color(const Options& options, int descriptor) {
    if (options.color != "auto") return options.color == "always";
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return (no_color == nullptr || *no_color == '\0') && isatty(descriptor) == 1 &&
           (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool color_on(const Options& options, int descriptor) {
    const bool wanted = wants_color(options, descriptor);
    colors_in_use = colors_in_use || wanted;
    return wanted;
}

std::string shown(const std::string& text) { return colors_in_use ? printable_in_color(text) : printable(text); }

std::string in_color(const std::string& text, bool color, const char* code) {
    return color ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

}  // namespace

bool color_on_stdout(const Options& options) { return color_on(options, STDOUT_FILENO); }
bool color_on_stderr(const Options& options) { return color_on(options, STDERR_FILENO); }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }
std::string bold(const std::string& text, bool color) { return in_color(text, color, "1"); }
std::string dim(const std::string& text, bool color) { return in_color(text, color, "2"); }
std::string green(const std::string& text, bool color) { return in_color(text, color, "32"); }
std::string red(const std::string& text, bool color) { return in_color(text, color, "31"); }

Json json_document(const std::string& what) {
    Json document;
    document["schema"] = "napkin." + what + "/1";
    return document;
}

void finish_output() {
    std::cout.flush();
    if (std::cout) return;
    throw OutputError(fmt::format("stdout cannot be written to{}",
                                  errno == 0 ? std::string() : fmt::format(": {}", std::strerror(errno))));
}

void print(const std::string& text) {
    errno = 0;
    std::cout << shown(text) << (text.empty() || text.ends_with('\n') ? "" : "\n");
    finish_output();
}

void print(const Json& document) { print(json_text(document, 2)); }

void print(const report::Section& report, const std::string& schema, const Options& options, bool csv) {
    if (!options.json) return print(csv ? to_csv(report) : to_text(report, color_on_stdout(options)));
    Json document = json_document(schema);
    document.update(to_json(report));
    print(document);
}

void say(const std::string& text) { std::cerr << shown(text) << (text.ends_with('\n') ? "" : "\n"); }

}  // namespace napkin::cli
