// A command run as if typed, and what it prints: how one command asks another.
#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "napkin/command.hpp"

namespace napkin::cli {

namespace {

/// Redirects a stream into a text while it lives.
class Redirected {
public:
    explicit Redirected(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
    ~Redirected() { stream_.rdbuf(before_); }
    Redirected(const Redirected&) = delete;
    Redirected& operator=(const Redirected&) = delete;
    [[nodiscard]] std::string text() const { return text_.str(); }

private:
    std::ostream& stream_;
    std::ostringstream text_;
    std::streambuf* before_;
};

}  // namespace

Captured run_captured(const std::vector<std::string>& words) {
    CLI::App app("", "napkin");
    Main main;
    for (const auto add : {add_derive, add_cost, add_plan, add_layout, add_machines, add_formats}) add(app, main);
    Redirected out(std::cout), err(std::cerr);
    Captured result;
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them last first
        result.code = main.action ? main.action() : ExitCode::usage;
    } catch (const CLI::ParseError& error) {
        result.code = ExitCode::usage;
        std::cerr << error.what();
    } catch (const UsageError& error) {
        result.code = ExitCode::usage;
        std::cerr << error.what();
    }
    result.out = out.text();
    result.err = err.text();
    return result;
}

}  // namespace napkin::cli
