#pragma once
// What the commands share: options, input files, exit codes, colours. One file a command; each adds itself to the
// command line.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "report/print.hpp"
#include "run/pipeline.hpp"
#include "support/json.hpp"
#include "support/result.hpp"

namespace CLI {
class App;
}

namespace napkin::cli {

using Json = nlohmann::ordered_json;

/// What the command line asked for; run after parsing, so that CLI11's exceptions and ours stay apart.
struct Main {
    std::function<ExitCode()> action;
};

/// The options that several commands have. A command adds those that mean something to it.
struct Options {
    std::string file;
    std::string diagram;
    std::string color = "auto";
    bool json = false;
    std::vector<std::string> set, group, stream, split;
    std::int64_t threads = 0;
    std::string machine, schedule;
    std::int64_t vector_bytes = 0;
    std::string form = "unscaled";
    bool no_fuse = false, any_sizes = false, batch_invariant = false;
    bool time_passes = false;
    std::vector<std::string> print_after;
};

/// One command under construction. It hides CLI11, whose headers take seconds to compile, from all files but three.
/// What a member binds an option to must live as long as the action.
class Command {
public:
    /// A subcommand of `parent` with its one example in the help; `action`, if any, runs when it was chosen.
    Command(CLI::App& parent, Main& main, const std::string& name, const std::string& description,
            const std::string& example, std::function<ExitCode()> action);
    [[nodiscard]] CLI::App& app() const { return *app_; }

    void argument(const std::string& name, std::string& value, const std::string& help, bool required = true);
    void arguments(const std::string& name, std::vector<std::string>& values, const std::string& help);
    void flag(const std::string& name, bool& value, const std::string& help);
    /// One word; of `allowed`, when that is not empty.
    void text(const std::string& name, const std::string& type, std::string& value, const std::string& help,
              const std::vector<std::string>& allowed = {});
    /// May be repeated; `separated`: one use may give several, with commas between.
    void list(const std::string& name, const std::string& type, std::vector<std::string>& values,
              const std::string& help, bool separated = true, const std::vector<std::string>& allowed = {});
    /// Bytes of vectors that processors have: 16, 32 or 64.
    void vector_bytes(std::int64_t& value, const std::string& help);
    void number(const std::string& name, std::int64_t& value, std::int64_t least, std::int64_t most,
                const std::string& help);
    void seconds(const std::string& name, double& value, const std::string& help);
    void real(const std::string& name, const std::string& type, double& value, double least, double most,
              const std::string& help);

    void file(Options& options);        ///< FILE, --diagram
    void output(Options& options);      ///< --json, --color
    void pipeline(Options& options);    ///< what all take that go from a text to a plan: all of these but FILE
    void sizes(Options& options);       ///< --set
    void derivation(Options& options);  ///< --form, --stream, --no-fuse
    void plan(Options& options);        ///< what fixes choices of plans, and --machine
    void any_sizes(Options& options);   ///< --any-sizes
    void passes(Options& options);      ///< --time-passes, --print-after

private:
    CLI::App* app_;
};

constexpr std::int64_t max_seed = std::int64_t{1} << 53;  ///< JSON carries it exactly

/// A mistake in the command line that CLI11 cannot see; becomes exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// stdout could not be written to; becomes exit code 3.
struct OutputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// "q=8192" → {q, 8192}. Throws UsageError naming the flag.
std::map<std::string, std::int64_t> assignments(const std::vector<std::string>& items, const std::string& flag);

/// The text of a file, or of stdin for "-". Errors: no-such-file (nearest name), not-a-file, unreadable-file,
/// file-too-large.
Result<std::shared_ptr<const Source>> read_source(const std::string& file);

/// Reads the file and runs the chain up to a pass, as the options say.
Result<Compilation> compile(const Options& options, Pass until);
/// The same of a text that has been read.
Result<Compilation> compile(std::shared_ptr<const Source> source, const Options& options, Pass until);

/// Says, beside the output, what the user should know of the choices made.
void say_notes(const Compilation& compilation);
/// How long each pass took, one a line.
std::string pass_times(const Compilation& compilation, const std::vector<std::pair<std::string, double>>& checks = {});
PipelineOptions pipeline_options(const Options& options, Pass until);
/// The file of --schedule, if any. Errors: those of read_source.
Status read_schedule(const Options& options, PipelineOptions& pipeline);

/// Prints the errors on stderr; the exit code is that of the gravest.
ExitCode fail(const std::vector<Diagnostic>& errors, const Options& options);

bool color_on_stdout(const Options& options);
bool color_on_stderr(const Options& options);
bool stderr_is_terminal();
std::string bold(const std::string& text, bool color);
std::string dim(const std::string& text, bool color);
std::string green(const std::string& text, bool color);
std::string red(const std::string& text, bool color);

/// The exit code of what is wrong with napkin itself.
constexpr int internal_fault = 70;
/// Runs `napkin …`; argv[0] is passed over. Its exit code.
int run_command(int argc, const char* const* argv);
/// What a command printed, and its exit code.
struct Captured {
    int code = 0;
    std::string out, err;
};
/// The same for its output. `input` is what it reads as its standard input. One thread at a time; other threads' output
/// to C++'s standard streams goes there meanwhile, too.
Captured run_captured(const std::vector<std::string>& words, const std::string& input = {});

/// An object that begins with its schema, "napkin.run/1"; a change that breaks readers counts the number up.
Json json_document(const std::string& what);
/// JSON as text. Names that are no UTF-8, as file names may be, lose what cannot be written.
template <class Document>
std::string json_text(const Document& document, int indent = -1) {
    return document.dump(indent, ' ', false, Document::error_handler_t::replace);
}

/// Data goes to stdout whole, or OutputError says why not. What could steer a terminal does not get there.
void print(const std::string& text);
void print(const Json& document);
/// As text, as JSON behind its schema, or as CSV.
void print(const report::Section& report, const std::string& schema, const Options& options, bool csv = false);
/// Flushes stdout. Throws OutputError when what was printed could not be written.
void finish_output();
/// A message on stderr.
void say(const std::string& text);

void add_check(CLI::App& app, Main& main);
void add_draw(CLI::App& app, Main& main);
void add_derive(CLI::App& app, Main& main);
void add_grad(CLI::App& app, Main& main);
void add_cost(CLI::App& app, Main& main);
void add_plan(CLI::App& app, Main& main);
void add_emit(CLI::App& app, Main& main);
void add_build(CLI::App& app, Main& main);
void add_run(CLI::App& app, Main& main);
void add_bench(CLI::App& app, Main& main);
void add_machines(CLI::App& app, Main& main);
void add_formats(CLI::App& app, Main& main);
void add_chart(CLI::App& app, Main& main);
void add_report(CLI::App& app, Main& main);
void add_layout(CLI::App& app, Main& main);
void add_reproduce(CLI::App& app, Main& main);
void add_doctor(CLI::App& app, Main& main);
void add_cache(CLI::App& app, Main& main);

}  // namespace napkin::cli
