// The command line: `napkin COMMAND …`. Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 the input is
// wrong, 2 the command line is wrong, 3 the machine lacks something; 70 is a fault of napkin itself.
#include <fcntl.h>
#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <new>

#include "napkin/command.hpp"
#include "support/stack.hpp"

namespace {
constexpr int internal_fault = 70;

int usage(const std::string& message, const std::string& command) {
    napkin::cli::say("napkin: " + napkin::printable(message) + "\nsee `napkin " + command +
                     (command.empty() ? "" : " ") + "--help`");
    return static_cast<int>(napkin::ExitCode::usage);
}

/// --help and --version, which CLI11 prints.
int help(const CLI::App& app, const CLI::Success& asked) {
    const int code = app.exit(asked);
    napkin::cli::finish_output();
    return code;
}

/// A standard stream that is closed would give its number to the next file that is opened, and what is printed would go
/// there.
void occupy_standard_streams() {
    for (int number = 0; number <= 2; ++number)
        if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

int run_command(int argc, char** argv) {
    using namespace napkin;
    using namespace napkin::cli;
    CLI::App app("Napkin: deep-learning diagrams, derived into fused kernels, costed, compiled and measured.",
                 "napkin");
    app.set_version_flag("--version", std::string("napkin ") + NAPKIN_VERSION);
    app.footer(
        "Example:\n  napkin run examples/attention.nk\n\n"
        "Exit codes: 0 success, 1 the input is wrong, 2 the command line is wrong, 3 the machine lacks something\n"
        "(a compiler, memory, space to write), 70 a fault of napkin itself.");
    app.get_formatter()->column_width(26);

    Main main;
    for (const auto add : {add_check, add_draw, add_derive, add_cost, add_plan, add_emit, add_run, add_bench, add_machines,
                           add_chart, add_report, add_formats, add_layout, add_reproduce, add_doctor, add_cache})
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

}  // namespace

int main(int argc, char** argv) {
    std::ios::sync_with_stdio(false);
    occupy_standard_streams();
    napkin::give_all_threads_enough_stack();
    int code = internal_fault;
    const napkin::Status called = napkin::with_enough_stack([&] { code = run_command(argc, argv); });
    if (called) return code;
    napkin::cli::say(napkin::render(called.errors()));
    return static_cast<int>(napkin::ExitCode::machine_lacks);
}
