// `napkin bench`: files measured against equation by equation and against OpenBLAS' own multiply, one line each, or as
// a record.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "machine/machine.hpp"
#include "napkin/command.hpp"
#include "napkin/measured.hpp"
#include "support/numbers.hpp"

namespace napkin::cli {

namespace {

struct BenchCommand {
    Options common;
    std::vector<std::string> files;
    double seconds = 5;
    std::int64_t seed = 0;
};

std::vector<std::string> row(const std::string& file, const Measured& m) {
    const RunReport& r = m.report;
    const auto rate = [&](double seconds) {
        return r.flops > 0 ? fmt::format("{:.0f}", r.flops / seconds / 1e9) : std::string("-");
    };
    return {file,
            sizes_text(m.compilation),
            seconds_text(r.kernel_seconds),
            rate(r.kernel_seconds),
            r.baseline_seconds ? seconds_text(*r.baseline_seconds) : "-",
            r.speedup() ? fmt::format("{:.2f}×", *r.speedup()) : "-",
            r.multiply_flops_per_s && r.flops > 0
                ? fmt::format("{:.0f}%", 100 * r.flops / r.kernel_seconds / *r.multiply_flops_per_s)
                : "-"};
}

ExitCode bench(const BenchCommand& c) {
    RunOptions run{.seed = static_cast<std::uint64_t>(c.seed),
                   .threads = static_cast<int>(c.common.threads),
                   .multiply_rate = true,
                   .seconds = c.seconds};
    Json document = json_document("bench");
    document["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    document["machine"] = host_machine().description;
    document["results"] = Json::array();
    std::vector<std::vector<std::string>> rows = {
        {"file", "sizes", "napkin", "GFLOP/s", "by equation", "faster", "of sgemm"}};
    for (const std::string& file : c.files) {
        Options options = c.common;
        options.file = file;
        const auto measured = compile_and_measure(options, {}, {}, run, {});
        if (!measured) return fail(measured.errors(), c.common);
        Json entry = {{"file", file}};
        entry.update(to_json(measured_report(*measured)));
        document["results"].push_back(std::move(entry));
        rows.push_back(row(file, *measured));
    }
    c.common.json ? print(document) : print(table(rows, {2, 3, 4, 5, 6}));
    return ExitCode::success;
}

}  // namespace

void add_bench(CLI::App& app, Main& main) {
    const auto c = std::make_shared<BenchCommand>();
    Command command(app, main, "bench", "Measure files beside equation by equation and OpenBLAS' sgemm",
                    "napkin bench examples/attention.nk examples/causal.nk --json", [c] { return bench(*c); });
    command.arguments("FILE", c->files, "Diagrams as text");
    command.seconds("--seconds", c->seconds, "About how long to measure each (default: 5)");
    command.number("--seed", c->seed, 0, max_seed, "Of the random inputs (default: 0)");
    command.sizes(c->common);
    command.derivation(c->common);
    command.plan(c->common);
    command.output(c->common);
}

}  // namespace napkin::cli
