// The model asked about everything at hand: every example on every machine, at sizes small, odd and huge. Whatever it
// answers is a number, and what it cannot answer is a diagnostic. NAPKIN_ALL=1 asks all combinations.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "study/report.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// Where a JSON value is null (what a number that is not finite becomes) or such a number; "" where none is. A weight
/// below zero is no rate, and what follows from one is null there.
std::string not_a_number(const nlohmann::json& value, const std::string& path = "") {
    if (value.is_object() && value.contains("weight_s_per_byte") && value["weight_s_per_byte"].get<double>() < 0) {
        nlohmann::json others = value;
        for (const char* of_pipe : {"bytes_per_s", "seconds", "expected_s", "ridge_flop_per_byte"})
            if (others[of_pipe].is_null()) others.erase(of_pipe);
        others.erase("weight_s_per_byte");
        return not_a_number(others, path);
    }
    if (value.is_null() || (value.is_number_float() && !std::isfinite(value.get<double>()))) return path;
    if (!value.is_structured()) return "";
    for (const auto& [key, child] : value.items())
        if (std::string at = not_a_number(child, path + "/" + key); !at.empty()) return at;
    return "";
}

struct Example {
    std::string file;
    std::shared_ptr<const Source> source;
    std::vector<std::string> diagrams;
};

std::vector<Example> examples() {
    std::vector<Example> all;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "examples")) {
        if (entry.path().extension() != ".nk") continue;
        const std::ifstream in(entry.path());
        std::ostringstream text;
        text << in.rdbuf();
        Example e{entry.path().filename(), std::make_shared<const Source>(Source{entry.path(), text.str()}), {}};
        std::istringstream lines(text.str());
        for (std::string line; std::getline(lines, line);)
            if (const auto end = line.find('('); end != std::string::npos && end > 0 && line[0] >= 'a' &&
                                                 line[0] <= 'z' && line.find("->") != std::string::npos)
                e.diagrams.push_back(line.substr(0, end));
        all.push_back(std::move(e));
    }
    std::sort(all.begin(), all.end(), [](const Example& a, const Example& b) { return a.file < b.file; });
    return all;
}

struct Asked {
    int answered = 0, refused = 0;
    double longest = 0;
    std::string slowest;
};

void ask(const CostQuery& query, const std::string& what, Asked& asked) {
    SCOPED_TRACE(what);
    const auto start = std::chrono::steady_clock::now();
    std::optional<Result<CostStudy>> made;
    try {
        made = study_cost(query);
    } catch (const std::exception& fault) {
        ADD_FAILURE() << fault.what();
        return;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > asked.longest) asked.longest = seconds, asked.slowest = what;
    if (!made->ok()) {
        ++asked.refused;
        for (const Diagnostic& d : made->errors()) {
            EXPECT_NE(d.code, "");
            EXPECT_NE(d.message, "");
            if (std::getenv("NAPKIN_ALL")) fmt::print("{}: {} {}\n", what, d.code, d.message);
        }
        return;
    }
    ++asked.answered;
    const CostStudy& study = made->value();
    const nlohmann::json json = to_json(report_of(study));
    const std::string text = to_text(report_of(study));
    EXPECT_EQ(not_a_number(json), "");
    // Nothing moves less than what must be moved.
    for (const auto& kernel : json["kernels"])
        for (const auto& bound : kernel["bounds"]["io"]) {
            const auto& fewest = kernel["numbers"]["fewest"];
            if (bound["source"] != "compulsory transfers" || !fewest.contains("transfers_values")) continue;
            EXPECT_GE(fewest["transfers_values"].get<double>(), bound["values"].get<double>() * (1 - 1e-9));
        }
    static const std::regex no_number("(^|[^a-z_])-?(nan|inf)([^a-z_]|$)");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, no_number)) << found.prefix().str().substr(0, 3000) << found.str();
    for (const KernelOnMachine& kernel : study.kernels) {
        EXPECT_GT(kernel.seconds, 0);
        EXPECT_GT(kernel.bound_s, 0);
        EXPECT_LE(kernel.bound_s, kernel.seconds * (1 + 1e-9));
        EXPECT_LE(kernel.accumulator_bytes, kernel.accumulator_capacity * (1 + 1e-9));
        // A CPU's plan has its own account of what a core holds.
        EXPECT_TRUE(study.compilation.machine.kind == MachineKind::cpu || kernel.memory_bytes <= kernel.core_bytes);
        EXPECT_GE(kernel.wave, 1 - 1e-9);
        EXPECT_GE(kernel.margin, 1 - 1e-9);
        EXPECT_GT(kernel.run_fraction, 0);
        EXPECT_LE(kernel.run_fraction, 1);
        for (const LevelLoad& load : kernel.levels) EXPECT_GE(load.transfers_bytes, 0) << load.level.name;
    }
}

TEST(CostStudies, EveryExampleOnEveryMachine) {
    const bool all = std::getenv("NAPKIN_ALL") != nullptr;
    Asked asked;
    int turn = 0, number = 0;
    for (const Example& example : examples())
        for (const std::string& diagram : example.diagrams)
            for (const std::string& machine : machine_names()) {
                if (machine == "host") continue;          // the same on any processor
                if (!all && number++ % 2 != 0) continue;  // half of the combinations are enough
                const std::vector<std::string> ways{"", "unfused", "f16", "devices", "cluster"};
                // Each combination of a diagram and a machine in one way, unless all are wanted.
                for (const std::string& way :
                     all ? ways : std::vector{ways[static_cast<std::size_t>(turn++) % ways.size()]}) {
                    CostQuery query;
                    query.source = example.source;
                    query.pipeline.diagram = diagram;
                    query.pipeline.machine = machine;
                    query.explain = true;
                    query.closed_form = true;
                    if (way == "unfused") query.pipeline.fuse = false;
                    if (way == "f16") query.pipeline.types = DType::f16;
                    if (way == "devices") query.levels.devices = 2;
                    if (way == "cluster") query.levels.cluster = 2;
                    ask(query, fmt::format("{} {} on {} {}", example.file, diagram, machine, way), asked);
                }
            }
    fmt::print("{} studies, {} refused, the slowest {:.1f} ms ({})\n", asked.answered, asked.refused,
               asked.longest * 1e3, asked.slowest);
    EXPECT_GT(asked.answered, 3 * asked.refused);
}

// Where copies past the caches are faster than loads alone, a bound at the rate of loads is above what rows take that
// are stored like that.
TEST(CostStudies, NoCopyPastTheCachesIsFasterThanItsBound) {
    Machine machine = load_machine("generic-cpu").value();
    machine.nontemporal_copy_bytes_per_s = {1.4 * machine.levels[1].bandwidth_bytes_per_s.value, "test"};
    machine.core_nontemporal_copy_bytes_per_s = machine.nontemporal_copy_bytes_per_s;
    const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                       ("napkin_copies_" + std::to_string(getpid()) + ".toml");
    std::ofstream(file) << to_toml(machine);
    Asked asked;
    for (const Example& example : examples())
        for (const std::string& diagram : example.diagrams) {
            CostQuery query;
            query.source = example.source;
            query.pipeline.diagram = diagram;
            query.pipeline.machine = file.string();
            ask(query, example.file + " " + diagram, asked);
        }
    std::filesystem::remove(file);
    EXPECT_GT(asked.answered, 10 * asked.refused);
}

TEST(CostStudies, AnySizes) {
    const bool all = std::getenv("NAPKIN_ALL") != nullptr;
    Asked asked;
    int turn = 0;
    for (const Example& example : examples())
        for (const std::string& diagram : example.diagrams) {
            const auto parsed = run_pipeline(example.source, [&] {
                PipelineOptions options;
                options.diagram = diagram;
                options.until = Pass::parse;
                return options;
            }());
            ASSERT_TRUE(parsed.ok());
            const std::vector<std::string> ways{"1", "prime", "one huge", "huge", "2^40"};
            const std::vector<std::string> machines{"h100-sxm5", "mi300x", "generic-cpu"};
            for (const std::string& way : ways)
                for (const std::string& machine :
                     all ? machines : std::vector{machines[static_cast<std::size_t>(turn++) % machines.size()]}) {
                    CostQuery query;
                    query.source = example.source;
                    query.pipeline.diagram = diagram;
                    query.pipeline.machine = machine;
                    query.closed_form = true;
                    std::int64_t prime = 0;
                    bool first = true;
                    for (const Axis& axis : parsed->diagram.axes) {
                        // What a formula gives stays with its formula.
                        if (axis.size && !axis.size->as_constant()) continue;
                        constexpr std::int64_t primes[] = {13, 7, 101, 3, 31, 1009};
                        std::int64_t size = 1;
                        if (way == "prime") size = primes[prime++ % 6];
                        if (way == "one huge") size = first ? (std::int64_t{1} << 40) - 87 : 2;
                        if (way == "huge") size = std::int64_t{1} << 20;
                        if (way == "2^40") size = std::int64_t{1} << 40;
                        first = false;
                        query.pipeline.sizes[axis.name] = size;
                    }
                    ask(query, fmt::format("{} {} at {} on {}", example.file, diagram, way, machine), asked);
                }
        }
    fmt::print("{} studies, {} refused, the slowest {:.1f} ms ({})\n", asked.answered, asked.refused,
               asked.longest * 1e3, asked.slowest);
}

}  // namespace
}  // namespace napkin
