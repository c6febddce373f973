// How long the model takes: a full study of an example on every machine, the ranking of all machines, and the paper's
// steps on every GPU, written as a record.
//   build/release/bench/bench_cost_report [--file examples/attention.nk] [--output bench/results/DATE-cost-report.json]
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>

#include "machine/machine.hpp"
#include "run/pipeline.hpp"
#include "steps/report.hpp"
#include "study/report.hpp"
#include "support/json.hpp"

namespace {

using namespace napkin;

/// Wall and processor seconds; the least of several, as other programs only add to them.
struct Took {
    double wall = 1e9, processor = 1e9;
};
Took least(int times, const std::function<bool()>& work) {
    Took took;
    for (int i = 0; i < times; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t clock = std::clock();
        if (!work()) throw std::runtime_error("the study failed");
        took.processor = std::min(took.processor, static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC);
        took.wall = std::min(took.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return took;
}

std::string output_of(const std::string& command) {
    std::string out;
    if (std::FILE* pipe = popen(command.c_str(), "r")) {
        char buffer[256];
        while (std::fgets(buffer, sizeof buffer, pipe)) out += buffer;
        pclose(pipe);
    }
    while (out.ends_with('\n')) out.pop_back();
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    std::string file = NAPKIN_SOURCE_DIR "/examples/attention.nk", output;
    for (int i = 1; i + 1 < argc; i += 2) (std::string(argv[i]) == "--output" ? output : file) = argv[i + 1];
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    CostQuery query;
    query.source = std::make_shared<Source>(Source{file, text.str()});

    nlohmann::ordered_json record;
    record["schema"] = "napkin.cost_report/1";
    record["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record["device"] = host_machine().description;
    record["commit"] = output_of("git -C " NAPKIN_SOURCE_DIR " rev-parse HEAD");
    record["changed_since"] = !output_of("git -C " NAPKIN_SOURCE_DIR " status --porcelain --untracked-files=no").empty();
    record["command"] = "build/release/bench/bench_cost_report";
    record["file"] = file.substr(file.rfind('/') + 1);
    constexpr int times = 20;
    record["repetitions"] = times;
    record["figure"] = "the least of the repetitions, ms: reading, deriving, costing, text and JSON";
    Took all{0, 0};
    std::vector<Subject> subjects;
    for (const std::string& machine : machine_names()) {
        if (machine == "host") continue;
        query.pipeline.machine = machine;
        subjects.push_back({machine, query, {}, {}});
        const Took took = least(times, [&] {
            const auto study = study_cost(query);
            return study.ok() && !to_text(report_of(*study)).empty();
        });
        record["study_ms"][machine] = {{"wall", took.wall * 1e3}, {"processor", took.processor * 1e3}};
        all.wall += took.wall, all.processor += took.processor;
    }
    record["all_studies_ms"] = {{"wall", all.wall * 1e3}, {"processor", all.processor * 1e3}};
    const Took ranking = least(times, [&] {
        auto made = make_subjects(subjects, {});
        return made.ok() && rank(std::move(made).value()).ok();
    });
    record["ranking_ms"] = {{"wall", ranking.wall * 1e3}, {"processor", ranking.processor * 1e3}};
    // As `napkin plan --steps --machine all` has them: tables and charts, without the trials of the steps' texts.
    const auto steps_of = [&](const std::string& machine) {
        PipelineOptions options;
        options.machine = machine, options.until = Pass::size;
        const auto c = run_pipeline(query.source, options);
        if (!c || c->machine.kind != MachineKind::gpu) return c.ok();
        const auto report = paper_steps(c->derived, c->extents, c->machine, {}, StepTexts::left_out);
        return report.ok() && !to_text(report_of(*report)).empty();
    };
    const Took steps = least(times, [&] {
        return std::all_of(subjects.begin(), subjects.end(), [&](const Subject& s) { return steps_of(s.label); });
    });
    record["all_steps_ms"] = {{"wall", steps.wall * 1e3}, {"processor", steps.processor * 1e3}};
    fmt::print("{}\n", record.dump(2));
    if (!output.empty()) std::ofstream(output) << record.dump(2) << "\n";
    return 0;
}
