// Subloops, and operations on units with all that passes between levels, are rewrites: of every example and of random programs the result keeps
// the rules of tile programs and computes what the definition says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "derive/derive.hpp"
#include "steps/steps.hpp"
#include "support/examples.hpp"
#include "support/ids.hpp"
#include "support/random_program.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"

namespace napkin {
namespace {

/// In a type that the matrix unit multiplies.
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
            parts.push_back(with_accumulators_in_parts(derived->diagram, kernel, cut));
            Assigned with_levels = assign_levels(derived->diagram, parts.back(), machine_, cut);
            for (const AssignedVariable& v : with_levels.variables)
                copies += v.copy_of >= 0, products += v.product_of >= 0;
            assigned.push_back(std::move(with_levels.kernel));
        }
        EXPECT_EQ(tried_on_small_sizes(*derived, parts, 4), "") << name << ", in parts";
        EXPECT_EQ(tried_on_small_sizes(*derived, assigned, 4), "") << name << ", on levels";
    }

    int streams = 0, columns = 0, copies = 0, products = 0;

private:
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
