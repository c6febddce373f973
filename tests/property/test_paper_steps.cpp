// Subloops, and operations on units with all that passes between levels, are rewrites. For every example and for random
// programs, the result keeps the rules of tile programs and computes what the definition says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "check/small_sizes.hpp"
#include "derive/derive.hpp"
#include "steps/report.hpp"
#include "steps/steps.hpp"
#include "support/examples.hpp"
#include "support/ids.hpp"
#include "support/parse_tile.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"
#include "tile/print.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// In a type that the tensor cores multiply.
Diagram narrowed(Diagram diagram) {
    for (Array& array : diagram.arrays)
        if (is_float(array.type)) array.type = DType::f16;
    return diagram;
}

class Rewriting {
public:
    void check(const Diagram& diagram, const std::string& name) {
        const auto derived = derive(narrowed(diagram));
        ASSERT_TRUE(derived.ok()) << name;
        const TileProgram program = expand(*derived);
        std::vector<TileKernel> parts, assigned;
        for (const TileKernel& kernel : program.kernels) {
            // The axes of streams and of what contractions accumulate, each or not.
            std::set<AxisId> cut;
            for (const StatementWork& w : statement_work(derived->diagram, kernel)) {
                if (w.stream >= 0 && random_() % 2 == 0) cut.insert(w.stream), ++streams;
                if (w.contraction && w.carries && !w.contraction->n.empty() && random_() % 2 == 0)
                    cut.insert(w.contraction->n.back()), ++columns;
            }
            parts.push_back(with_subloops_along(derived->diagram, kernel, cut));
            Assigned with_levels = assign_levels(derived->diagram, parts.back(), machine_);
            for (const AssignedVariable& v : with_levels.variables)
                copies += v.copy_of >= 0, products += v.product_of >= 0;
            assigned.push_back(std::move(with_levels.kernel));
        }
        EXPECT_EQ(tried_on_small_sizes(*derived, parts, 4), "") << name << ", in parts";
        EXPECT_EQ(tried_on_small_sizes(*derived, assigned, 4), "") << name << ", on levels";
        check_text(*derived, program.kernels, name);
        check_text(*derived, parts, name);
        check_text(*derived, assigned, name);
    }

    int streams = 0, columns = 0, copies = 0, products = 0, texts = 0, parts_of_chunks = 0;

private:
    /// What is printed of the program reads back as the same.
    void check_text(const Derived& derived, const std::vector<TileKernel>& kernels, const std::string& name) {
        const auto sizes = small_sizes(derived.source, random_, 1e5);
        if (!sizes) return;
        const Extents extents = extents_of(derived.diagram, *sizes), pairs(extents.size(), 2);
        const SizedProgram program = sized({derived.diagram, kernels}, extents,
                                           std::vector<TileSizes>(kernels.size(), {pairs, pairs, pairs}));
        const std::string text = to_string(program);
        const auto read = parse_tile(text, derived);
        ASSERT_TRUE(read.ok()) << name << render(read.errors()) << text;
        EXPECT_EQ(to_string(*read), text) << name;
        ++texts;
        for (const TileKernel& kernel : kernels)
            for_each_statement(kernel.body, [&](const TileStatement& s) {
                const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
                if (loop && !(*loop)->is_sub)
                    for_each_statement((*loop)->body, [&](const TileStatement& inner) {
                        const auto* part = std::get_if<std::shared_ptr<const TileLoop>>(&inner);
                        parts_of_chunks += part && (*part)->axis == (*loop)->axis;
                    });
            });
    }

    std::mt19937_64 random_{3};
    Machine machine_ = load_machine("h100-sxm5").value();
};

TEST(PaperSteps, RewritesOfExamplesKeepTheirMeaning) {
    Rewriting rewriting;
    for (int times = 0; times < 2; ++times)
        for (const ExampleDiagram& example : example_diagrams()) rewriting.check(example.diagram, example.name);
    EXPECT_GT(rewriting.streams, 50);
    EXPECT_GT(rewriting.columns, 10);
    EXPECT_GT(rewriting.copies, 100);
    EXPECT_GT(rewriting.products, 20);
    EXPECT_GT(rewriting.texts, 250);
    EXPECT_GT(rewriting.parts_of_chunks, 50);
}

TEST(PaperSteps, RewritesOfRandomDiagramsKeepTheirMeaning) {
    Rewriting rewriting;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Diagram diagram = random_diagram(seed);
        rewriting.check(diagram, fmt::format("seed {}\n{}", seed, describe(diagram)));
    }
    fmt::print("{} streams and {} columns cut, {} copies, {} products, {} texts, {} chunks in parts\n", rewriting.streams,
               rewriting.columns, rewriting.copies, rewriting.products, rewriting.texts, rewriting.parts_of_chunks);
    EXPECT_GT(rewriting.streams, 30);
    EXPECT_GT(rewriting.columns, 5);
    EXPECT_GT(rewriting.copies, 30);
    EXPECT_GT(rewriting.products, 5);
    EXPECT_GT(rewriting.parts_of_chunks, 20);
}

/// Every size that must be a multiple says of what, and why: each cause has its figure, and the least common multiple
/// of these is what is said.
void expect_causes(const StepReport& report, const Machine& machine, const std::string& name, int& merged) {
    for (const KernelSteps& k : report.kernels) {
        const PaperStep& step = k.steps.at(4);
        ASSERT_EQ(step.name, "divisors");
        for (const auto& [size, multiple] : k.divisors.merged()) {
            std::int64_t least = 1;
            int causes = 0;
            for (const SizeDivisor& d : k.divisors.constraints) {
                if (d.size != size) continue;
                least = std::lcm(least, d.value), ++causes;
                const auto is_named = [&](const std::string& part) { return d.cause.find(part) != std::string::npos; };
                const bool has_instruction = std::any_of(machine.instructions.begin(), machine.instructions.end(),
                                                         [&](const Instruction& i) { return is_named(i.name); });
                EXPECT_TRUE(has_instruction || is_named(" B lines of ") || is_named(" threads, ")) << name << d.cause;
                EXPECT_TRUE(is_named(std::to_string(d.value)) || is_named(" threads, ")) << name << d.cause;
            }
            EXPECT_EQ(least, multiple) << name;
            merged += causes > 1;
            const std::string what = fmt::format("{} = {} is {} multiple of {}", to_string(size, report.axes),
                                                 size.size, size.size % multiple == 0 ? "a" : "no", multiple);
            const auto said = std::find_if(step.changes.begin(), step.changes.end(),
                                           [&](const StepChange& change) { return change.what == what; });
            ASSERT_NE(said, step.changes.end()) << name << what;
            EXPECT_TRUE(said->why.starts_with(k.divisors.causes(size))) << name << said->why;
        }
    }
}

/// All six steps of random diagrams, and again from the schedule that they print.
TEST(PaperSteps, OfRandomDiagramsHoldAndTheirScheduleGivesThemAgain) {
    const Machine machine = load_machine("h100-sxm5").value();
    int made = 0, merged = 0, charts = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const Diagram diagram = random_diagram(seed);
        const std::string name = fmt::format("seed {}\n{}", seed, describe(diagram));
        const auto derived = derive(narrowed(diagram));
        ASSERT_TRUE(derived.ok()) << name;
        Extents extents = random_extents(derived->diagram, seed);
        const auto report = paper_steps(*derived, extents, machine, {});
        ASSERT_TRUE(report.ok()) << name << render(report.errors());
        std::string text;
        for (const KernelSteps& k : report->kernels) {
            for (const PaperStep& step : k.steps) EXPECT_EQ(step.fault, "") << name << step.name;
            for (const StreamChart& chart : k.charts)
                EXPECT_EQ(verify(chart.chart), std::vector<std::string>()) << name;
            charts += static_cast<int>(k.charts.size());
            text += k.schedule;
        }
        expect_causes(*report, machine, name, merged);
        const auto items = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", text}));
        ASSERT_TRUE(items.ok()) << name << render(items.errors()) << text;
        const auto again = paper_steps(*derived, extents, machine, *items);
        ++made;
        ASSERT_TRUE(again.ok()) << name << render(again.errors()) << text;
        EXPECT_EQ(to_text(report_of(*report)), to_text(report_of(*again))) << name;
    }
    fmt::print("{} reports, again from their schedules, {} charts, {} sizes of several causes\n", made, charts, merged);
    EXPECT_EQ(made, 30);
    EXPECT_GT(charts, 20);
    EXPECT_GT(merged, 10);
}

TEST(PaperSteps, RewritesOfRandomProgramsKeepTheirMeaning) {
    Rewriting rewriting;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const std::string text = random_program(seed);
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"random.nk", text}));
        if (!diagram) continue;
        rewriting.check(*diagram, fmt::format("seed {}\n{}", seed, text));
    }
    EXPECT_GT(rewriting.copies, 0);
}

}  // namespace
}  // namespace napkin
