// A reduction along the columns of a product, tile by tile in the product's kernel (derive/tiled_reduction.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/execution.hpp"
#include "derive/derive.hpp"
#include "diagram/evaluate.hpp"
#include "plan/choose.hpp"
#include "plan/tiled.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"
#include "support/sizes.hpp"
#include "tile/exact.hpp"
#include "tile/interpret.hpp"
#include "tile/verify.hpp"

namespace napkin::test_tiled_reduction {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string inputs = "f(A[m, k], B[n, k], R[m, n], g[n]) -> ";
const std::string product = "    D[m, n] = (sum(k) A[m, k] * B[n, k]) + R[m, n]\n";
const std::string sizes = "sizes m = 6, n = 12, k = 5\n";

/// In two kernels: the product, and what follows it.
Derived in_kernels(const std::string& text, const std::vector<std::vector<std::string>>& kernels) {
    DeriveOptions options;
    options.kernels = kernels;
    return derive(parsed(text), options).value();
}

std::optional<WithTiledReduction> tiled(const Derived& d, std::int64_t tile) {
    std::vector<TiledReduction> found = tiled_reductions(d);
    if (found.empty()) return std::nullopt;
    found.front().tile = tile;
    return with_tiled_reduction(d, bind_sizes(d.diagram).value(), found.front());
}

/// The form in tiles gives, value by value in memory, what the definition does.
void expect_same(const std::string& text, const std::vector<std::vector<std::string>>& kernels) {
    const Derived d = in_kernels(text, kernels);
    const Extents extents = bind_sizes(d.diagram).value();
    for (const std::int64_t tile : {1, 3, 4, 6}) {
        const auto form = tiled(d, tile);
        ASSERT_TRUE(form.has_value()) << text;
        ASSERT_EQ(form->form.kernels.size(), d.kernels.size());
        Values wanted = random_inputs(d.diagram, extents, 1), values = random_inputs(form->form.diagram, form->extents, 1);
        evaluate(d.diagram, extents, wanted);
        const SizedProgram program = program_with(form->form, form->extents, {{"m", 4}}, {{"k", 2}});
        EXPECT_THAT(verify(program), IsEmpty());
        const auto counts = interpret(program, values);
        for (std::size_t k = 0; k < counts.size(); ++k) EXPECT_EQ(counts[k], exact_costs(program, k));
        for (const ArrayId id : d.diagram.outputs)
            for (std::size_t i = 0; i < wanted[id].size(); ++i)
                EXPECT_NEAR(values[id][i], wanted[id][i], 1e-12) << d.diagram.array(id).name << " " << i;
        // So do its equations.
        Values by_equations = random_inputs(form->form.diagram, form->extents, 1);
        evaluate(form->form.diagram, form->extents, by_equations);
        for (const ArrayId id : d.diagram.outputs)
            for (std::size_t i = 0; i < wanted[id].size(); ++i) EXPECT_NEAR(by_equations[id][i], wanted[id][i], 1e-12);
    }
}

TEST(TiledReduction, GivesWhatTheDefinitionDoes) {
    expect_same(inputs + "D[m, n], Q[m]\n" + product + "    Q[m] = sum(n) D[m, n] * D[m, n]\n" + sizes,
                {{"D_sum", "D"}, {"Q"}});
    expect_same(inputs + "D[m, n], Q[m]\n" + product + "    Q[m] = max(n) D[m, n] * g[n]\n" + sizes,
                {{"D_sum", "D"}, {"Q"}});
    expect_same(inputs + "D[m, n], Q[m]\n" + product + "    Q[m] = sum(n) where(n < 7, D[m, n], n) / size(n)\n" + sizes,
                {{"D_sum", "D"}, {"Q"}});
    // A longer row beside it, read at shifted columns.
    expect_same("f(A[m, k], B[n, k], R[m, n], h[j]) -> D[m, n], Q[m]\n" + product +
                    "    Q[m] = sum(n) D[m, n] * h[2*n + 1]\nsizes m = 6, n = 12, k = 5, j = 24\n",
                {{"D_sum", "D"}, {"Q"}});
    // A map over the axis, after the reduction, and a table of blocks beside it.
    expect_same(
        "f(A[m, k], B[n, k], R[m, n], s[w]) -> D[m, n], Y[m, n]\n    D[m, n] = (sum(k) A[m, k] * B[n, k]) * s[n // 4] "
        "+ "
        "R[m, n]\n    Q[m] = sum(n) D[m, n] * D[m, n]\n    Y[m, n] = D[m, n] * Q[m]\nsizes m = 6, n = 12, k = 5, w = "
        "3\n",
        {{"D_sum", "D"}, {"Q"}, {"Y"}});
}

TEST(TiledReduction, IsRefused) {
    const auto refused = [&](const std::string& equations, const std::string& outputs = "D[m, n], Q[m]") {
        return !tiled(in_kernels(inputs + outputs + "\n" + product + equations + sizes, {{"D_sum", "D"}, {"Q"}}), 4).has_value();
    };
    EXPECT_FALSE(refused("    Q[m] = sum(n) D[m, n] * D[m, n]\n"));
    EXPECT_TRUE(refused("    Q[n] = sum(m) D[m, n] * D[m, n]\n", "D[m, n], Q[n]")) << "5 of 6 rows are no tiles of 4";
    EXPECT_TRUE(refused("    Q[m] = sum(n, j) D[m, n] * R[j, n]\n")) << "another axis beside it";
    EXPECT_TRUE(refused("    Q[m, j] = sum(n) D[m, n] * R[j, n]\n", "D[m, n], Q[m, j]"))
        << "an axis that the product has not";
    EXPECT_TRUE(refused("    Q[m] = sum(n) R[m, n]\n")) << "nothing of the product's";
    const Derived d = in_kernels(inputs + "D[m, n], Q[m]\n" + product + "    Q[m] = sum(n) D[m, n] * D[m, n]\n" + sizes,
                                 {{"D_sum", "D"}, {"Q"}});
    for (const std::int64_t tile : {0, 5, 12, 24}) EXPECT_FALSE(tiled(d, tile).has_value()) << tile;
}

// For a large product on a GPU it is chosen, kept and given back, and bounds know how often it rounds.
TEST(TiledReduction, IsChosenForTheStatisticsOfAProduct) {
    const Diagram diagram = parsed(
        "residual(A[m, k]: bf16, B[n, k]: bf16, R[m, n]: bf16) -> D[m, n]: bf16, Q[m]: f32\n"
        "    D[m, n] = (sum(k) A[m, k] * B[n, k]) + R[m, n]\n    Q[m] = sum(n) D[m, n] * D[m, n]\n"
        "sizes m = 8192, n = 4096, k = 1024\n");
    const Machine gpu = load_machine("h200").value();
    const Extents extents = bind_sizes(diagram).value();
    Derived d = derive(diagram).value();
    for (std::size_t i = 0; i < d.regions.at(0).alternatives.size(); ++i)
        if (const Derived other = rederive(d, {i}); other.kernels.size() == 2) d = other;
    ASSERT_EQ(d.kernels.size(), 2U);
    const auto plan = choose_plan(d, extents, gpu);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->change.tiled.size(), 1U);
    const std::int64_t tile = plan->change.tiled.front().tile;
    EXPECT_EQ(4096 % tile, 0);
    EXPECT_TRUE(plan->kernels.at(0).scheduled.on_tensor_cores());
    // Beside what is summed in a tile, one rounding for each tile.
    Extents of_one_tile = extents;
    of_one_tile[*diagram.find_axis("n")] = tile;
    EXPECT_EQ(execution_of(diagram, extents, plan->tiles()).depth.back(),
              execution_of(diagram, of_one_tile, plan->tiles()).depth.back() + 4096 / tile);
}

}  // namespace
}  // namespace napkin::test_tiled_reduction
