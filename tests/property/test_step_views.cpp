// The steps of every example's plan, each on one of three machines in turn. What they say is recomputed from their
// sizes, which are those of the plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "run/pipeline.hpp"
#include "schedule/fragment_registers.hpp"
#include "steps/report.hpp"
#include "support/paths.hpp"

namespace napkin {
namespace {

struct Told {
    int holds = 0, does_not = 0, wholes = 0;
};

/// The divisors' lines of a report's text: what is said of each size, and whether the step holds.
void expect_said(const std::string& text, const ScheduledKernel& s, const std::string& name, Told& told) {
    static const std::regex size_line(R"(^ +(?:[gwtsup]_)?(\S+) = (\d+) is (a|no) multiple of (\d+) )"),
        verdict(R"(^ +(holds|does not hold): every size is a multiple)");
    std::set<std::string> broken;
    std::size_t end = 0;
    for (std::size_t begin = 0; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        std::smatch m;
        if (std::regex_search(line, m, size_line)) {
            const std::int64_t size = std::stoll(m[2]), multiple = std::stoll(m[4]);
            EXPECT_EQ(size % multiple == 0, m[3] == "a") << name << line;
            const bool is_whole = size == s.extents.at(*s.program->diagram.find_axis(m[1].str()));
            told.wholes += size % multiple != 0 && is_whole;
            if (size % multiple != 0 && !is_whole)
                broken.insert(fmt::format("{} = {} is no multiple of {}", m[1].str(), size, multiple));
        } else if (std::regex_search(line, m, verdict)) {
            EXPECT_EQ(broken.empty(), m[1] == "holds") << name << line;
            for (const std::string& b : broken) EXPECT_NE(line.find(b), std::string::npos) << name << line;
            ++(broken.empty() ? told.holds : told.does_not);
            broken.clear();
        }
    }
}

void expect_sizes_of_plan(const KernelSteps& k, const ScheduledKernel& s, const std::string& name) {
    for (const CutSize& size : k.sizes) {
        if (size.letter == 'g') {
            EXPECT_EQ(size.size, s.span(size.axis, 0).tile) << name;
        }
        if (size.letter == 's') {
            EXPECT_EQ(size.size, s.schedule.stream.at(size.axis).value) << name;
        }
        if (size.letter == 'w') {
            EXPECT_EQ(size.axis, s.schedule.mma_m.value) << name;
            EXPECT_GE(size.size * k.num_warpgroups, s.span(size.axis, 0).tile) << name;
        }
    }
    EXPECT_EQ(k.registers.total() > k.registers.limit, spilled_registers(s) > 0) << name;
    for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault, "") << name << step.name;
    for (const ThroughputRow& row : k.throughput.rows) EXPECT_TRUE(row.unit != "tensor" || s.on_tensor_cores()) << name;
    // No instruction is given rows, columns or sums that it has not.
    for (const SizeDivisor& d : k.divisors.constraints)
        if (d.cause.find(" B lines of ") == std::string::npos) {
            EXPECT_TRUE(d.size.size % d.value == 0 || d.size.size == s.extents[d.size.axis]) << name << d.cause;
        }
}

TEST(StepViews, OfAllExamplesSayWhatTheirSizesAre) {
    Told told;
    const std::array machines{"h200", "a100-sxm-80gb", "b200"};
    std::set<std::filesystem::path> examples;
    for (const auto& entry : std::filesystem::directory_iterator(in_sources("examples")))
        if (entry.path().extension() == ".nk") examples.insert(entry.path());
    std::size_t next = 0;
    for (const std::filesystem::path& example : examples) {
        PipelineOptions options;
        options.machine = machines[next++ % machines.size()], options.until = Pass::plan;
        options.is_wanted = [](const Plan&) { return false; };  // no plan is assembled: its sizes are looked at
        const std::string name = fmt::format("{} on {}: ", example.stem().string(), options.machine);
        std::ifstream in(example, std::ios::binary);
        const auto c = run_pipeline(
            std::make_shared<const Source>(Source{example.string(), {std::istreambuf_iterator<char>(in), {}}}), options);
        ASSERT_TRUE(c.ok()) << name << render(c.errors());
        const StepReport report = placed_steps(c->plan, c->machine);
        ASSERT_EQ(report.kernels.size(), c->plan.kernels.size()) << name;
        for (std::size_t k = 0; k < report.kernels.size(); ++k)
            expect_sizes_of_plan(report.kernels[k], c->plan.kernels[k].scheduled, name);
        expect_said(to_text(report_of(report)), c->plan.kernels[0].scheduled, name, told);
    }
    EXPECT_GT(told.holds, 30);
    EXPECT_GT(told.does_not, 5);
    EXPECT_GT(told.wholes, 1);
}

}  // namespace
}  // namespace napkin
