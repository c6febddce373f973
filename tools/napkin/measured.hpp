#pragma once
// What `run` and `bench` have in common: inputs from files or at random, a measured run, and its figures as JSON.
#include <map>
#include <string>

#include "check/first_use.hpp"
#include "napkin/command.hpp"
#include "run/report.hpp"

namespace napkin::cli {

/// Files by array name.
using Files = std::map<std::string, std::string>;

/// A compiled diagram, run and measured.
struct Measured {
    Compilation compilation;
    RunReport report;
    std::optional<FirstUse> first_use;  ///< none where the derivation was not to be validated
};

/// Compiles the file for the sizes that --set, the inputs' files and the text give, validates its derivation at first use where
/// `validate` is set, runs it, reports, and writes the outputs' files.
Result<Measured> compile_and_measure(const Options& options, const Files& input_files, const Files& output_files,
                                     RunOptions run, bool validate);

Json measured_json(const Measured& measured);

/// "q=4096 x=4096": the sizes of the diagram's axes.
std::string sizes_text(const Compilation& compilation);

}  // namespace napkin::cli
