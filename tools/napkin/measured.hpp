#pragma once
// What `run` and `bench` have in common: inputs from files or at random, a measured run, and its figures as JSON.
#include <map>
#include <optional>
#include <string>

#include "check/first_use.hpp"
#include "check/verdict.hpp"
#include "napkin/command.hpp"
#include "run/report.hpp"

namespace napkin::cli {

/// Files by array name.
using Files = std::map<std::string, std::string>;

/// A compiled diagram, run, measured and checked.
struct Measured {
    Compilation compilation;
    RunReport report;
    std::optional<FirstUse> first_use;  ///< none where the derivation was not to be validated
    std::optional<Verdict> verdict;     ///< none where the numbers were not to be checked
    Files written;                      ///< outputs' files, by array name
};

/// What is asked besides the measurement.
struct Checks {
    bool derivation = false;         ///< validated at first use
    bool numbers = false;            ///< compared with the definition
    double seconds = check_seconds;  ///< that each of both may take, about
};

/// Compiles the file for the sizes that --set, the inputs' files and the text give, and checks what is asked for. Then
/// it runs the program, reports, and writes the outputs' files. The file of an output with a bad verdict gets a name
/// that says so (bad_name).
Result<Measured> compile_and_measure(const Options& options, const Files& input_files, const Files& output_files,
                                     RunOptions run, const Checks& checks);

/// "out/o.npy" → "out/o.bad.npy".
std::string bad_name(const std::string& path);

/// Everything on one screen. `color`: with what matters marked.
report::Section measured_report(const Measured& measured, bool color = false);

/// "q=4096 x=4096": the sizes of the diagram's axes.
std::string sizes_text(const Compilation& compilation);

}  // namespace napkin::cli
