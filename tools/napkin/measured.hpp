#pragma once
// What `run` and `bench` have in common: inputs from files or at random, a measured run, and its figures as JSON.
#include <map>
#include <string>
#include <vector>

#include "napkin/command.hpp"
#include "run/report.hpp"

namespace napkin::cli {

/// A compiled diagram, run and measured.
struct Measured {
    Compilation compilation;
    RunReport report;
    std::vector<Tensor> outputs;
};

/// Compiles the file for the sizes that --set, the inputs' files (name → path) and the text give, runs it and reports.
Result<Measured> compile_and_measure(const Options& options, const std::map<std::string, std::string>& input_files,
                                     RunOptions run);

Json measured_json(const Measured& measured);

/// "q=4096 x=4096": the sizes of the diagram's axes.
std::string sizes_text(const Compilation& compilation);

/// Tells what goes on, in one line that is rewritten, where stderr is a terminal.
void show_progress(const std::string& what);
void end_progress();

}  // namespace napkin::cli
