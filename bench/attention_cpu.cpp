// Attention on this machine's cores: napkin's derived kernel, the same diagram evaluated equation by equation with
// OpenBLAS, and OpenBLAS' own sgemm, run in turn; medians. Anyone can run it:
//
//     build/release/bench/bench_attention_cpu [--seconds 20] [--output bench/results/NAME.json]
//
// Prints a table, and writes a record with date, device, commit, command and figures when asked to.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "check/verdict.hpp"
#include "machine/machine.hpp"
#include "run/report.hpp"
#include "support/files.hpp"
#include "support/json.hpp"

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file = NAPKIN_SOURCE_DIR "/bench/kernels.nk";

struct Case {
    std::string diagram;
    std::int64_t width;
};

/// First line that a command prints, "" when it fails.
std::string first_line(const char* command) {
    std::string line;
    if (FILE* pipe = popen(command, "r")) {
        char buffer[256];
        if (fgets(buffer, sizeof buffer, pipe) != nullptr) line = buffer;
        pclose(pipe);
    }
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
}

template <class T>
T value_of(napkin::Result<T> result) {
    if (!result) throw std::runtime_error(napkin::render(result.errors()));
    return std::move(result).value();
}

Json measure(const Case& one, double seconds) {
    napkin::PipelineOptions options;
    options.diagram = one.diagram;
    options.sizes = {{"h", 8}, {"q", 4096}, {"x", 4096}, {"k", one.width}, {"d", one.width}};
    const auto text = napkin::read_file(file);
    if (!text) throw std::runtime_error(fmt::format("{} cannot be read", file));
    const auto source = std::make_shared<const napkin::Source>(napkin::Source{file, *text});
    const napkin::Compilation compilation = value_of(napkin::run_pipeline(source, options));
    const std::vector<napkin::Tensor> inputs = value_of(napkin::all_inputs(compilation.diagram, compilation.extents, {}, 1));
    napkin::RunOptions run;
    run.multiply_rate = true;
    run.seconds = seconds;
    std::vector<napkin::Tensor> outputs;
    const napkin::RunReport report = value_of(napkin::run_and_report(compilation, inputs, run, outputs));
    const napkin::Verdict verdict = napkin::check_outputs(compilation, inputs, outputs, {.seed = 1});
    if (!verdict.good()) throw std::runtime_error(describe(verdict.arrays.front()));

    Json entry;
    entry["diagram"] = one.diagram;
    entry["sizes"] = {{"h", 8}, {"q", 4096}, {"x", 4096}, {"k", one.width}, {"d", one.width}};
    entry["type"] = "f32";
    entry["threads"] = report.threads;
    entry["repetitions"] = report.repetitions;
    entry["flops"] = report.flops;
    entry["largest_error"] = verdict.arrays.front().error;
    entry["napkin"] = {{"seconds", report.kernel_seconds},
                       {"gflops", report.flops / report.kernel_seconds / 1e9},
                       {"predicted_seconds", report.predicted_seconds},
                       {"extra_bytes", report.kernel_extra_bytes}};
    if (report.baseline_seconds) {
        entry["equation_by_equation"] = {{"seconds", *report.baseline_seconds},
                                         {"gflops", report.dense_flops / *report.baseline_seconds / 1e9},
                                         {"extra_bytes", report.baseline_extra_bytes},
                                         {"blas", report.blas}};
        entry["faster"] = *report.baseline_seconds / report.kernel_seconds;
    }
    if (report.multiply_flops_per_s) {
        entry["sgemm_gflops"] = *report.multiply_flops_per_s / 1e9;
        entry["part_of_sgemm"] = report.flops / report.kernel_seconds / *report.multiply_flops_per_s;
    }
    return entry;
}

std::string cell(const Json& entry, const char* key, double factor, const char* unit, int digits) {
    return entry.contains(key) ? fmt::format("{:.{}f}{}", entry[key].get<double>() * factor, digits, unit) : "-";
}

int run(int argc, char** argv) {
    double seconds = 20;
    std::string output, command;
    for (int i = 0; i < argc; ++i) command += std::string(i > 0 ? " " : "") + argv[i];
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--seconds" && i + 1 < argc) {
            seconds = std::stod(argv[++i]);
        } else if (flag == "--output" && i + 1 < argc) {
            output = argv[++i];
        } else {
            std::cerr << "usage: " << argv[0] << " [--seconds S] [--output FILE.json]\n";
            return 2;
        }
    }
    Json record;
    record["schema"] = "napkin.attention_cpu/1";
    record["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record["device"] = napkin::host_machine().description;
    record["commit"] = first_line("git -C '" NAPKIN_SOURCE_DIR "' rev-parse HEAD 2>/dev/null");
    record["changed_since"] =
        !first_line("git -C '" NAPKIN_SOURCE_DIR "' status --porcelain --untracked-files=no 2>/dev/null").empty();
    record["command"] = command;
    record["results"] = Json::array();

    fmt::print("8 heads, q = x = 4096, f32; medians of runs in turn\n");
    fmt::print("{:8}{:>5}{:>14}{:>10}{:>17}{:>9}{:>10}{:>16}\n", "", "k, d", "napkin", "GFLOP/s", "by equation",
               "faster", "of sgemm", "sgemm GFLOP/s");
    for (const Case& one : {Case{"dense", 64}, Case{"causal", 64}, Case{"dense", 128}, Case{"causal", 128}}) {
        const Json entry = measure(one, seconds);
        fmt::print(
            "{:8}{:>5}{:>14}{:>10}{:>17}{:>9}{:>10}{:>16}\n", one.diagram, one.width,
            cell(entry["napkin"], "seconds", 1e3, " ms", 1), cell(entry["napkin"], "gflops", 1, "", 0),
            entry.contains("equation_by_equation") ? cell(entry["equation_by_equation"], "seconds", 1e3, " ms", 1) : "-",
            cell(entry, "faster", 1, "×", 2), cell(entry, "part_of_sgemm", 100, "%", 0),
            cell(entry, "sgemm_gflops", 1, "", 0));
        std::fflush(stdout);
        record["results"].push_back(entry);
    }
    if (!output.empty()) {
        std::ofstream(output) << record.dump(2) << "\n";
        std::cerr << "written: " << output << "\n";
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "bench_attention_cpu: " << error.what() << "\n";
        return 1;
    }
}
