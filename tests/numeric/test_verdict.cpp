// Right kernels are good, whatever the seed and the sizes; a wrong number among their outputs is not.
#include "check/verdict.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "run/report.hpp"
#include "schedule/reduction_trees.hpp"

namespace napkin {
namespace {

Compilation compiled(const std::string& text, const std::map<std::string, std::int64_t>& sizes = {}) {
    PipelineOptions options;
    options.sizes = sizes;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<test>", text}), options);
    if (!made) throw std::runtime_error(render(made.errors()));
    return std::move(made).value();
}

std::vector<Tensor> run(const Compilation& c, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs;
    RunOptions options;
    options.baseline = false;
    options.seconds = 0;
    const auto report = run_and_report(c, inputs, options, outputs);
    if (!report) throw std::runtime_error(render(report.errors()));
    return outputs;
}

void expect_good(const Compilation& c, std::uint64_t seed) {
    const std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, seed).value();
    const Verdict verdict = check_outputs(c, inputs, run(c, inputs), {.seed = seed});
    for (const ArrayVerdict& v : verdict.arrays)
        EXPECT_EQ(v.judgement, Judgement::good) << "seed " << seed << ": " << describe(v);
}

const char* const attention_program = R"(
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";

TEST(CompiledVerdict, attention_of_ragged_sizes_is_good) {
    const Compilation c = compiled(attention_program, {{"q", 113}, {"x", 203}, {"k", 16}, {"d", 24}});
    for (std::uint64_t seed = 0; seed < 10; ++seed) expect_good(c, seed);
}

TEST(CompiledVerdict, a_sum_of_ten_is_good_whatever_the_seed) {
    const Compilation c = compiled("f(A[i, j]) -> B[i]\n    B[i] = sum(j) A[i, j]\nsizes i = 1, j = 10\n");
    for (std::uint64_t seed = 0; seed < 200; ++seed) expect_good(c, seed);
}

TEST(CompiledVerdict, double_precision_and_sizes_of_one_are_good) {
    const Compilation wide = compiled(
        "f(X[r, c]: f64) -> Y[r, c]: f64, V[r]: f64\n    Y[r, c] = softmax(c) X[r, c] * 3\n    V[r] = var(c) X[r, c]\n"
        "sizes r = 5, c = 37\n");
    for (std::uint64_t seed = 0; seed < 20; ++seed) expect_good(wide, seed);
    const Compilation one = compiled(attention_program, {{"q", 1}, {"x", 1}, {"k", 1}, {"d", 1}});
    for (std::uint64_t seed = 0; seed < 20; ++seed) expect_good(one, seed);
}

TEST(CompiledVerdict, a_long_product_is_judged_and_compared_as_it_is_contracted) {
    const Compilation c = compiled(
        "f(A[a, b], B[b, c], C[c, d], D[d, e], E[e, f]) -> Y[a, f]\n"
        "    Y[a, f] = sum(b, c, d, e) A[a, b] * B[b, c] * C[c, d] * D[d, e] * E[e, f]\n",
        {{"a", 48}, {"b", 48}, {"c", 48}, {"d", 48}, {"e", 48}, {"f", 48}});
    // Four sums of 48 terms in turn, not one of 48^4, of which no value would have a bound.
    expect_good(c, 1);
    EXPECT_EQ(useful_flops(c), 4 * 2.0 * 48 * 48 * 48);
    const std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, 1).value();
    std::vector<Tensor> outputs;
    RunOptions options;
    options.seconds = 0;
    const auto report = run_and_report(c, inputs, options, outputs);
    ASSERT_TRUE(report) << render(report.errors());
    EXPECT_EQ(report->dense_flops, useful_flops(c));
    EXPECT_TRUE(report->baseline_seconds);
}

// The first term is 1 and each other one less than half a unit in its last place. So the accumulator of the first loses
// all that is added to it: as many terms as its chain is long. That is what the reduction's tree says, and nearly what
// its bound allows. The stream is whole, so that the chain is long on every machine.
void expect_chain_as_the_tree_says(std::int64_t rows, std::int64_t terms, bool in_rows) {
    const Compilation c = compiled(
        fmt::format("f(X[{}]) -> Y[r]\n    Y[r] = sum(c) X[{}]\nschedule\n    stream c = {}\n",
                    in_rows ? "r, c" : "c, r", in_rows ? "r, c" : "c, r", terms),
        {{"r", rows}, {"c", terms}});
    std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, 1).value();
    for (std::int64_t i = 0; i < inputs[0].count(); ++i)
        inputs[0].set(i, (in_rows ? i % terms == 0 : i < rows) ? 1 : 0.99 * 0x1p-24);
    const Verdict verdict = check_outputs(c, inputs, run(c, inputs), {});
    EXPECT_TRUE(verdict.good()) << describe(verdict.arrays[0]);
    EXPECT_GT(verdict.arrays[0].share, 0.3) << "the bound allows more roundings than there are";

    Values given(c.diagram.arrays.size());
    given[c.diagram.inputs[0]] = inputs[0].to_column();
    std::vector<std::vector<ReductionTree>> trees;
    for (const KernelPlan& kernel : c.plan.kernels) {
        trees.push_back(reduction_trees(kernel.scheduled));
        for (ReductionTree& tree : trees.back()) tree.chain = 1, tree.chunks = 0;
    }
    const BoundedValues shorter = evaluate_bounded(c.diagram, c.extents, given,
                                                   execution_of(c.diagram, c.extents, c.program, trees));
    EXPECT_EQ(judge(c.diagram, c.diagram.outputs[0], c.extents, shorter, run(c, inputs)[0].to_column()).judgement, Judgement::bad)
        << "a chain that is said to be shorter";
}

TEST(CompiledVerdict, a_sum_rounds_as_often_as_its_reduction_tree_says) {
    expect_chain_as_the_tree_says(1, 40000, true);
    expect_chain_as_the_tree_says(3, 5000, true);
    expect_chain_as_the_tree_says(64, 5000, false);
}

TEST(CompiledVerdict, what_takes_too_long_is_left_out_and_says_so) {
    const Compilation c = compiled("f(A[i, j]) -> B\n    B = sum(i, j) A[i, j]\nsizes i = j = 100\n");
    const std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, 1).value();
    const Verdict left_out = check_outputs(c, inputs, run(c, inputs), {.operations = 100});
    EXPECT_NE(left_out.left_out, "");
    ASSERT_EQ(left_out.arrays.size(), 1U);
    EXPECT_EQ(left_out.arrays[0].values, 0);
    EXPECT_EQ(left_out.arrays[0].judgement, Judgement::unbounded) << "not good";
    EXPECT_EQ(check_outputs(c, inputs, run(c, inputs), {}).left_out, "");
}

TEST(CompiledVerdict, a_wrong_row_beside_one_that_overflows_is_bad) {
    const Compilation c = compiled("f(X[a, t]) -> Y[a]\n    Y[a] = sum(t) exp(X[a, t])\nsizes a = 8, t = 100\n");
    std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, 1).value();
    for (std::int64_t t = 0; t < 100; ++t) inputs[0].set(t, 100);
    std::vector<Tensor> outputs = run(c, inputs);
    ASSERT_EQ(outputs[0].at(0), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(check_outputs(c, inputs, outputs, {}).good());
    outputs[0].set(5, outputs[0].at(5) * 2.7);
    const Verdict verdict = check_outputs(c, inputs, outputs, {});
    EXPECT_FALSE(verdict.good());
    EXPECT_EQ(verdict.arrays[0].place, std::vector<std::int64_t>{5});
}

}  // namespace
}  // namespace napkin
