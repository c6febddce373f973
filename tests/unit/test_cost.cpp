#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cost/report.hpp"
#include "cost/transfers.hpp"
#include "hand_derived.hpp"
#include "support/in_letters.hpp"
#include "support/json.hpp"
#include "support/sizes.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"
#include "tile/work.hpp"

namespace napkin::test_cost {
namespace {

using hand::extents;
using testing::HasSubstr;

CostInLetters cost_of(const Derived& d, const std::map<std::string, std::string>& tie = {}) {
    return in_letters(
        with_tied(symbolic_cost(d, d.kernels[0], default_grouped(d.kernels[0])), tied_letters(d.diagram, tie)), d.diagram);
}
const std::map<std::string, std::string> k_is_d{{"k", "d"}};

bool has_column(const KernelCost& cost, const Size& size) {
    return std::any_of(cost.memory.begin(), cost.memory.end(), [&](const MemoryColumn& c) { return c.size == size; });
}

// ---- paper.md §4, as expressions

const Size a = letter("a"), b = letter("b"), c = letter("c"), g_a = letter("g_a"), g_c = letter("g_c"),
           s_b = letter("s_b");
const Size q = letter("q"), x = letter("x"), d = letter("d"), k = letter("k"), h = letter("h"), g = letter("g"),
           M = letter("M");
const Size g_q = letter("g_q"), g_h = letter("g_h"), g_g = letter("g_g"), s_x = letter("s_x");

TEST(Cost, Matmul) {
    const CostInLetters cost = cost_of(hand::matmul());
    EXPECT_EQ(cost.num_groups, a * c / (g_a * g_c));
    EXPECT_EQ(cost.per_group, g_a * b + b * g_c + g_a * g_c);
    EXPECT_EQ(cost.transfers, a * b * c / g_a + a * b * c / g_c + a * c);
    ASSERT_EQ(cost.memory.size(), 1U);
    EXPECT_EQ(cost.memory[0].size, g_a * g_c + g_a * s_b + s_b * g_c);
    const OptimumInLetters best = best_of(cost);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * a * b * c * letter("M", Rational(-1, 2)) + a * c);
    EXPECT_EQ(best.at, (std::vector<std::string>{"g_a = M^(1/2)", "g_c = M^(1/2)"}));
}

TEST(Cost, StreamedFold) {
    const CostInLetters open = cost_of(hand::streamed());
    EXPECT_EQ(open.per_group, g_q * k + x * k + x * d + g_q * d);
    const CostInLetters cost = cost_of(hand::streamed(), k_is_d);
    EXPECT_EQ(cost.num_groups, q / g_q);
    EXPECT_EQ(cost.per_group, Size(2) * g_q * d + Size(2) * x * d);
    EXPECT_TRUE(has_column(cost, Size(2) * g_q * d + s_x * d + g_q * s_x + Size(3) * g_q))
        << "Q, O, V, P, and three of a row";
    const OptimumInLetters best = best_of(cost);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.memory, Size(2) * g_q * d);
    EXPECT_EQ(best.transfers, Size(2) * q * d + Size(4) * x * q * d * d / M);
    EXPECT_EQ(best.at, (std::vector<std::string>{"g_q = M/(2·d)"}));
    // Head sizes that differ: M ≥ g_q·(k + d).
    EXPECT_EQ(best_of(open).transfers, q * k + q * d + x * q * (k + d) * (k + d) / M);
}

TEST(Cost, MultiHead) {
    const OptimumInLetters best = best_of(cost_of(hand::streamed({{"h"}, {}}), k_is_d));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * h * q * d + Size(4) * h * x * q * d * d / M);
    EXPECT_EQ(best.at, (std::vector<std::string>{"g_h = 1", "g_q = M/(2·d)"}));
}

TEST(Cost, GroupedQuery) {
    const CostInLetters cost = cost_of(hand::streamed({{}, {"g"}}), k_is_d);
    EXPECT_EQ(cost.num_groups, q * g / (g_q * g_g));
    const OptimumInLetters best = best_of(cost);
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(2) * g * q * d + Size(4) * g * x * q * d * d / M);
    EXPECT_EQ(best.at, (std::vector<std::string>{"g_g·g_q = M/(2·d)"}));
}

TEST(Cost, AffineIndicesSpanBoxes) {
    const CostInLetters cost = cost_of(hand::strided_window());
    const Size g_i = letter("g_i"), w = letter("w"), gc = letter("g_c");
    // Σ|c|(t − 1) + 1 with c = 2 for i and 1 for w.
    EXPECT_EQ(cost.per_group, (Size(2) * (g_i - Size(1)) + w) * gc + w + g_i * gc);
    // A window's rest, w - 2 for one group of i, comes once a group: long groups of i, and one of c.
    const OptimumInLetters best = best_of(cost);
    ASSERT_TRUE(best.closed) << best.why_not;
    const Size values = letter("i") * c;
    EXPECT_EQ(best.transfers, Size(3) * values + Size(6) * values * (w - Size(1)) / M);
    EXPECT_EQ(best.at, (std::vector<std::string>{"g_c = 1", "g_i = M/3"}));
}

TEST(Cost, WithoutReuseEverySizeIsBest) {
    hand::Builder m;
    const AxisId i = m.axis("i"), j = m.axis("j");
    const ArrayId X = m.input("X", {i, j}), Y = m.output("Y", {i, j});
    m.kernel.stages.emplace_back(Block{{hand::map(Y, hand::exp(m.get(X)))}});
    const OptimumInLetters best = best_of(cost_of(m.finish("Y", {i, j})));
    ASSERT_TRUE(best.closed);
    EXPECT_EQ(best.transfers, Size(2) * letter("i") * letter("j"));
}

TEST(Cost, ThreeBalancedFactors) {
    // E[a, b, c] = sum(k) A[k, b, c]·B[a, k, c]·C[a, b, k]: three operands, each lacking one grouped axis.
    hand::Builder m;
    using namespace hand;
    const AxisId i = m.axis("a"), j = m.axis("b"), l = m.axis("c"), r = m.axis("k");
    const ArrayId A = m.input("A", {r, j, l}), B = m.input("B", {i, r, l}), C = m.input("C", {i, j, r}),
                  E = m.output("E", {i, j, l});
    m.kernel.stages.emplace_back(
        Loop{r, {}, {{E, 0.0}}, {fold(E, ReduceOp::sum, {r}, m.get(A) * m.get(B) * m.get(C), m.get(E))}});
    const OptimumInLetters best = best_of(cost_of(m.finish("E", {i, j, l})));
    ASSERT_TRUE(best.closed) << best.why_not;
    EXPECT_EQ(best.transfers, Size(3) * a * b * c * k * letter("M", Rational(-1, 3)) + a * b * c);
}

TEST(Cost, Dominance) {
    const Size q{axis_symbol(0), 1}, d{axis_symbol(1), 1}, k{axis_symbol(2), 1}, g_q{group_symbol(0), 1},
        s_x{stream_symbol(3), 1};
    EXPECT_TRUE(never_above(g_q, g_q * d));
    EXPECT_TRUE(never_above(g_q * d, q * d)) << "a group is at most its axis";
    EXPECT_FALSE(never_above(Size(2) * g_q, g_q * d));
    EXPECT_FALSE(never_above(q * d, g_q * d));
    EXPECT_TRUE(never_above(s_x * d + g_q, s_x * d + g_q * d));
    EXPECT_FALSE(never_above(k, d));
    EXPECT_EQ(leading_terms(g_q * d + Size(3) * g_q + s_x), g_q * d + s_x);
}

// ---- exact counts

TEST(ExactCosts, Matmul) {
    const Derived m = hand::matmul();
    const Extents e = extents(m, {{"a", 10}, {"b", 7}, {"c", 9}});
    const Counts costs = exact_costs(m, m.kernels[0], e, tile_sizes(m, m.kernels[0], e, {{"a", 4}, {"c", 5}}, {{"b", 3}}));
    EXPECT_EQ(costs.groups, 6);
    EXPECT_EQ(costs.loaded, 10 * 7 * 2 + 7 * 9 * 3);
    EXPECT_EQ(costs.stored, 90);
    EXPECT_EQ(costs.chunks_run, 6 * 3);
    EXPECT_EQ(costs.peak_memory, 4 * 5 + 4 * 3 + 3 * 5);
    EXPECT_EQ(costs.loaded_bytes, 4 * costs.loaded);
    EXPECT_EQ(costs.arrays, (std::vector<ArrayCount>{{0, 140, 0}, {1, 189, 0}, {2, 0, 90}}));
}

TEST(ExactCosts, MaskedChunksAreSkipped) {
    const Derived m = hand::streamed({{}, {}, true});
    const Extents e = extents(m, {{"q", 8}, {"x", 8}, {"k", 2}, {"d", 3}});
    const Counts costs = exact_costs(m, m.kernels[0], e, tile_sizes(m, m.kernels[0], e, {{"q", 2}}, {{"x", 2}}));
    EXPECT_EQ(costs.chunks_run, 1 + 2 + 3 + 4);
    EXPECT_EQ(costs.chunks_skipped, 3 + 2 + 1);
    EXPECT_EQ(costs.loaded, 8 * 2 + 10 * 2 * (2 + 3));
}

TEST(ExactCosts, AreSymbolicCostsWhereSizesDivide) {
    for (const Derived& m : {hand::matmul(), hand::streamed({{"h"}, {"g"}}), hand::strided_window(),
                             hand::streamed_window(), hand::pointwise()}) {
        const Kernel& kernel = m.kernels[0];
        Extents e(m.diagram.axes.size());
        NamedSizes group, stream;
        for (const AxisId i : e.ids()) e[i] = 12 * (i + 1);
        if (const auto n = m.diagram.find_axis("n")) e[*n] = 1000;
        for (const AxisId axis : default_grouped(kernel)) group[m.diagram.axis(axis).name] = 4;
        for (const AxisId axis : cost_of(m).streamed) stream[m.diagram.axis(axis).name] = 3;
        const auto value = [&](Symbol symbol) -> std::optional<double> {
            if (symbol.kind == SymbolKind::group) return 4;
            return symbol.kind == SymbolKind::stream ? 3 : axis_values(e)(symbol);
        };
        const KernelCost symbolic = cost_of(m).cost;
        const Counts exact = exact_costs(m, kernel, e, tile_sizes(m, kernel, e, group, stream));
        EXPECT_DOUBLE_EQ(symbolic.transfers.evaluate(value).value(), static_cast<double>(exact.transfers())) << kernel.name;
        EXPECT_DOUBLE_EQ(symbolic.num_groups.evaluate(value).value(), static_cast<double>(exact.groups));
        double memory = 0;
        for (const MemoryColumn& column : symbolic.memory)
            memory = std::max(memory, column.size.evaluate(value).value());
        EXPECT_DOUBLE_EQ(memory, static_cast<double>(exact.peak_memory)) << kernel.name;
    }
}

/// Counting by executing.
TEST(ExactCosts, AreWhatTheInterpreterCounts) {
    const std::vector<Derived> kernels{hand::matmul(),
                                       hand::streamed(),
                                       hand::streamed({{}, {}, true}),
                                       hand::streamed({{"h"}, {"g"}, true}),
                                       hand::streamed({{}, {}, false, 3}),
                                       hand::streamed({{}, {}, false, 20}),
                                       hand::strided_window(),
                                       hand::streamed_window(),
                                       hand::pointwise()};
    const unsigned seed = 20;
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto from = [&](std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
    };
    for (int i = 0; i < 270; ++i) {
        const Derived& m = kernels[static_cast<std::size_t>(i) % kernels.size()];
        const Kernel& kernel = m.kernels[0];
        Extents e(m.diagram.axes.size());
        for (std::int64_t& n : e) n = from(1, 13);
        if (const auto n = m.diagram.find_axis("n"))
            e[*n] = 2 * (e[*m.diagram.find_axis("i")] - 1) + e[*m.diagram.find_axis("w")];
        NamedSizes group, stream;
        for (const AxisId axis : kernel.group_axes)
            if (random() % 3 != 0) group[m.diagram.axis(axis).name] = from(1, e[axis] + 1);
        for (const AxisId axis : cost_of(m).streamed)
            if (random() % 4 != 0) stream[m.diagram.axis(axis).name] = from(1, e[axis]);
        Values values(m.diagram.arrays.size());
        for (const ArrayId input : m.diagram.inputs)
            values[input] = std::vector<double>(static_cast<std::size_t>(count_values(m.diagram, input, e)), 0.5);
        const Counts counted = interpret(program_with(m, e, group, stream), values).at(0);
        ASSERT_EQ(counted, exact_costs(m, kernel, e, tile_sizes(m, kernel, e, group, stream)))
            << kernel.name << " case " << i;
    }
}

TEST(ExactCosts, LargeAndHugeSizesTakeNoTime) {
    const Derived m = hand::streamed({{"h"}, {}, true});
    const Counts many = exact_costs(
        m, m.kernels[0], extents(m, {{"h", 64}, {"q", 1 << 20}, {"x", 1 << 20}, {"k", 64}, {"d", 64}}),
        tile_sizes(m, m.kernels[0], extents(m, {{"h", 64}, {"q", 1 << 20}, {"x", 1 << 20}, {"k", 64}, {"d", 64}}),
                   {{"h", 1}, {"q", 16}}, {{"x", 16}}));
    const std::int64_t n = std::int64_t{1} << 16;
    EXPECT_EQ(many.groups, 64 * n);
    EXPECT_EQ(many.chunks_run, 64 * n * (n + 1) / 2);
    const std::int64_t huge = std::int64_t{1} << 30;
    const Derived mm = hand::matmul();
    const Counts costs = exact_costs(
        mm, mm.kernels[0], extents(mm, {{"a", huge}, {"b", huge}, {"c", huge}}),
        tile_sizes(mm, mm.kernels[0], extents(mm, {{"a", huge}, {"b", huge}, {"c", huge}}), {{"a", 1}, {"c", 1}}, {}));
    EXPECT_EQ(costs.transfers(), std::int64_t{1} << 62) << "counts stop there";
}

// ---- work

TEST(Work, CountsOperationsByKind) {
    const Derived m = hand::streamed({{}, {}, true});
    const Extents e = extents(m, {{"q", 8}, {"x", 8}, {"k", 5}, {"d", 3}});
    const Liveness live = liveness(m, m.kernels[0]);
    const TileCounter counter(m.diagram, live, e, tile_sizes(m, m.kernels[0], e, {{"q", 2}}, {{"x", 2}}));
    const WorkTotals work = total_work(counter, statement_work(m, m.kernels[0]));
    const std::int64_t points = 10 * 2 * 2;  // of q and x in the chunks that run
    EXPECT_EQ(work.of(OpKind::fma), points * (5 + 3) + 10 * 2 * (3 + 1)) << "both contractions, and O and z rescaled";
    EXPECT_EQ(work.of(OpKind::exp), points + 10 * 2) << "P in every point, the correction once a row and chunk";
    EXPECT_EQ(work.of(OpKind::div), 8 * 3);
    EXPECT_GT(work.of(OpKind::simple), 0);
    for (const OpKind kind : {OpKind::log, OpKind::tanh, OpKind::erf, OpKind::sin, OpKind::pow})
        EXPECT_EQ(work.of(kind), 0);
}

// ---- the report

TEST(CostReport, SaysItInThePapersLetters) {
    Derived m = hand::streamed();
    m.diagram.name = "fold";
    EXPECT_THAT(to_text(cost_report(m)), HasSubstr("grouped q · streamed x"));
    EXPECT_THAT(to_text(cost_report(m)), HasSubstr("K[x, k]"));
    EXPECT_FALSE(to_json(cost_report(m))["kernels"][0].contains("numbers"));
    EXPECT_FALSE(to_json(cost_report(m))["kernels"][0].contains("tied"));

    for (const char* axis : {"k", "d"}) m.diagram.axes[m.diagram.find_axis(axis).value()].size = Size(64);
    EXPECT_THAT(to_text(cost_report(m)), HasSubstr("with k = d"));
    EXPECT_EQ(to_json(cost_report(m))["kernels"][0]["tied"]["optimum"]["closed"], true);

    const Extents e = extents(m, {{"q", 100}, {"x", 50}, {"k", 64}, {"d", 64}});
    const TileSizes sizes = tile_sizes(m, m.kernels[0], e, {{"q", 10}}, {{"x", 25}});
    const CostNumbers numbers{e, {sizes}, 1000.0};
    const nlohmann::json json = to_json(cost_report(m, numbers));
    const auto& counted = json["kernels"][0]["numbers"];
    EXPECT_EQ(counted["groups"], 10);
    EXPECT_EQ(counted["transfers_values"], 2 * 100 * 64 + 10 * 2 * 50 * 64);
    EXPECT_DOUBLE_EQ(counted["optimum_transfers_values"].get<double>(), 2.0 * 100 * 64 + 4.0 * 100 * 50 * 64 * 64 / 1000);
    EXPECT_EQ(json["total"]["transfers_values"], counted["transfers_values"]);
    EXPECT_THAT(to_text(cost_report(m, numbers)), HasSubstr("20 chunks run, 0 skipped"));
}

}  // namespace
}  // namespace napkin::test_cost
