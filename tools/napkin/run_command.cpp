// The command line: `napkin COMMAND …`. Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 the input is
// wrong, 2 the command line is wrong, 3 the machine lacks something; 70 is a fault of napkin itself.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <mutex>
#include <new>
#include <sstream>

#include "napkin/command.hpp"

namespace napkin::cli {

namespace {

int usage(const std::string& message, const std::string& command) {
    say("napkin: " + printable(message) + "\nsee `napkin " + command + (command.empty() ? "" : " ") + "--help`");
    return static_cast<int>(ExitCode::usage);
}

/// --help and --version, which CLI11 prints.
int help(const CLI::App& app, const CLI::Success& asked) {
    const int code = app.exit(asked);
    finish_output();
    return code;
}

/// Has a stream write into a text, or read from one, while it lives.
template <class Stream>
class Redirected {
public:
    explicit Redirected(Stream& stream, const std::string& text = {})
        : stream_(stream), text_(text), before_(stream.rdbuf(text_.rdbuf())) {}
    ~Redirected() {
        stream_.rdbuf(before_);
        stream_.clear();
    }
    Redirected(const Redirected&) = delete;
    Redirected& operator=(const Redirected&) = delete;
    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    Stream& stream_;
    std::stringstream text_;
    std::streambuf* before_;
};

}  // namespace

int run_command(int argc, const char* const* argv) {
    CLI::App app("Napkin: deep-learning diagrams, derived into fused kernels, costed, compiled and measured.",
                 "napkin");
    app.set_version_flag("--version", std::string("napkin ") + NAPKIN_VERSION);
    app.footer(
        "Example:\n  napkin run examples/attention.nk\n\n"
        "Exit codes: 0 success, 1 the input is wrong, 2 the command line is wrong, 3 the machine lacks something\n"
        "(a compiler, memory, space to write), 70 a fault of napkin itself.");
    app.get_formatter()->column_width(26);

    Main main;
    for (const auto add :
         {add_check, add_draw, add_derive, add_grad, add_cost, add_plan, add_emit, add_build, add_run, add_bench,
          add_machines, add_chart, add_report, add_formats, add_layout, add_reproduce, add_doctor, add_cache})
        add(app, main);

    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
    const std::string first = argc > 1 ? argv[1] : "";
    if (first.empty()) {
        std::cerr << app.help();
        return static_cast<int>(ExitCode::usage);
    }
    const bool known = contains(commands, first);
    if (!known && first[0] != '-') {
        const std::string near = nearest_name(first, commands);
        return usage("there is no command `" + first + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?"), "");
    }
    const std::string command = known ? first : "";
    try {
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success& asked) {
            return help(app, asked);
        }
        if (!main.action) return usage("a command is missing", "");
        return static_cast<int>(main.action());
    } catch (const CLI::ParseError& error) {
        return usage(error.what(), command);
    } catch (const UsageError& error) {
        return usage(error.what(), command);
    } catch (const OutputError& error) {
        say(std::string("napkin: ") + error.what());
        return static_cast<int>(ExitCode::machine_lacks);
    } catch (const std::bad_alloc&) {
        std::cerr << "napkin: out of memory; smaller sizes (--set) need less\n";
        return static_cast<int>(ExitCode::machine_lacks);
    } catch (const std::exception& error) {
        say(std::string("napkin: ") + error.what() +
            "\nThis is a fault of napkin, not of your input: please report it with the command that shows it.");
        return internal_fault;
    }
}

Captured run_captured(const std::vector<std::string>& words, const std::string& input) {
    // The standard streams are the process' own. A command may ask another one.
    static std::recursive_mutex streams;
    const std::lock_guard one_at_a_time(streams);
    Redirected in(std::cin, input);
    Redirected out(std::cout), err(std::cerr);
    std::vector<const char*> argv{"napkin"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    const int code = run_command(static_cast<int>(argv.size()), argv.data());
    return {code, out.text(), err.text()};
}

}  // namespace napkin::cli
