// Every row of the table of laws by itself. A program that needs just that law streams in one traversal, uses it, and
// gives what its definition gives. It does so in random chunks and merged from random splits, on inputs that break
// algebra.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check/agreement.hpp"
#include "check/probe.hpp"
#include "derive/derive.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/law.hpp"
#include "derive/replay.hpp"
#include "diagram/evaluate.hpp"
#include "support/random_program.hpp"

namespace napkin {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct LawCase {
    ReduceOp plus;
    Action action;
    const char* text;
};

const std::vector<LawCase>& law_cases() {
    using enum ReduceOp;
    static const std::vector<LawCase> cases{
        {sum, Action::multiply, R"(f(X[a, t], V[t, d]) -> Y[a, d]
    Z[a] = 1 + sum(t) abs(X[a, t])
    Y[a, d] = sum(t) X[a, t] / Z[a] * V[t, d]
)"},
        {sum, Action::exponential, R"(f(X[a, t], V[t, d]) -> Y[a, d], L[a]
    M[a] = max(t) X[a, t]
    Z[a] = sum(t) exp(X[a, t] - M[a])
    Y[a, d] = sum(t) exp(X[a, t] - M[a]) / Z[a] * V[t, d]
    L[a] = M[a] + log(Z[a])
)"},
        {sum, Action::shift, R"(f(X[a, t], W[a, t]) -> V[a], K[a], C[a]
    M[a] = (sum(t) X[a, t]) / size(t)
    V[a] = sum(t) (X[a, t] - M[a])^2
    U[a] = (sum(t) W[a, t]) / size(t)
    C[a] = V[a] + sum(t) (X[a, t] - M[a]) * (W[a, t] - U[a])
    A[a] = sum(t) abs(W[a, t])
    N[a] = sum(t) abs(W[a, t]) * X[a, t]
    K[a] = C[a] + sum(t) abs(W[a, t]) * (X[a, t] - N[a] / A[a])^2
)"},
        {sum, Action::choose, R"(f(X[a, t], V[a, t]) -> Y[a]
    Z[a] = max(t) X[a, t]
    Y[a] = sum(t) where(Z[a] > 0, V[a, t], 0)
)"},
        {sum, Action::select, R"(f(X[a, t], V[a, t]) -> Y[a]
    M[a] = max(t) X[a, t]
    Y[a] = sum(t) where(X[a, t] == M[a], V[a, t], 0)
)"},
        {prod, Action::raise, R"(f(X[a, t], V[a, t]) -> Y[a]
    Z[a] = max(t) X[a, t]
    Y[a] = prod(t) V[a, t] * Z[a]
)"},
        {max, Action::add, R"(f(X[a, t], V[a, t]) -> Y[a], U[a]
    S[a] = sum(t) X[a, t]
    Y[a] = max(t) (V[a, t] - S[a])
    U[a] = max(t) (S[a] - V[a, t])
)"},
        {min, Action::add, R"(f(X[a, t], V[a, t]) -> Y[a]
    S[a] = sum(t) X[a, t]
    Y[a] = min(t) where(t <= a, V[a, t] - S[a], inf)
)"},
        {max, Action::multiply, R"(f(X[a, t]) -> Y[a], U[a]
    Z[a] = 1 + sum(t) abs(X[a, t])
    Y[a] = max(t) (X[a, t] / Z[a] + 1)
    U[a] = max(t) (1 - X[a, t] / Z[a])
)"},
        {min, Action::multiply, R"(f(X[a, t]) -> Y[a]
    Z[a] = 1 + sum(t) abs(X[a, t])
    Y[a] = min(t) where(t <= a, X[a, t] * Z[a], inf)
)"},
        {max, Action::map, R"(f(X[a, t], V[a, t]) -> Y[a]
    S[a] = max(t) X[a, t]
    Y[a] = max(t) tanh(V[a, t] - S[a])
)"},
        {min, Action::map, R"(f(X[a, t], V[a, t]) -> Y[a]
    S[a] = max(t) X[a, t]
    Y[a] = min(t) max(exp(-(V[a, t] - S[a])), 0.5)
)"},
        {max, Action::select, R"(f(X[a, t], V[a, t]) -> Y[a]
    M[a] = min(t) X[a, t]
    Y[a] = max(t) where(X[a, t] <= M[a], V[a, t], -inf)
)"},
        {min, Action::select, R"(f(X[a, t]) -> I[a]
    M[a] = max(t) X[a, t]
    I[a] = min(t) where(X[a, t] == M[a], t, size(t))
)"},
    };
    return cases;
}

/// Sizes of every partition, drawn at random; `all` names one for all axes.
PartitionSizes partition(const Extents& extents, std::mt19937_64& random) {
    PartitionSizes sizes;
    for (const std::int64_t extent : extents) {
        sizes.group.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent)));
        sizes.stream.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent)));
    }
    return sizes;
}

int traversals(const Derived& derived) {
    int loops = 0;
    for (const Kernel& kernel : derived.kernels)
        for (const Stage& stage : kernel.stages) loops += std::holds_alternative<Loop>(stage) ? 1 : 0;
    return loops;
}

Values values_for(const Derived& derived, const Diagram& diagram, const Values& given) {
    return inputs_for(derived.diagram, diagram, given);
}

/// "" when the derived form is the definition on random sizes, chunks and splits of all probes.
std::string failure(const Diagram& diagram, const Derived& derived, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Extents extents;
    for (std::size_t a = 0; a < diagram.axes.size(); ++a)
        extents.push_back(1 + static_cast<std::int64_t>(random() % 13));
    for (const Probe probe : all_probes) {
        const std::string at = std::string(name(probe)) + ", seed " + std::to_string(seed) + ": ";
        const Values given = probe_inputs(diagram, extents, probe, random());
        const Definition definition(diagram, extents, given);
        const PartitionSizes sizes = partition(extents, random);
        for (Replay replay(derived); !replay.done();) {
            replay.next();
            const Derived form = replay.form();
            Values values = inputs_for(form.diagram, diagram, given);
            evaluate(form, extents, sizes, values);
            const std::string& rule = derived.steps[replay.steps_done() - 1].rule;
            if (const auto d = definition.difference(form.diagram, values)) return at + rule + ": " + to_string(*d);
        }
        Values values = values_for(derived, diagram, given);
        evaluate(derived, extents, sizes, values);
        if (const auto d = definition.difference(derived.diagram, values)) return at + "chunks: " + to_string(*d);
        values = values_for(derived, diagram, given);
        evaluate_by_merge(derived, extents, sizes, 0.1 + 0.8 * static_cast<double>(random() % 100) / 100, values);
        if (const auto d = definition.difference(derived.diagram, values)) return at + "merge: " + to_string(*d);
    }
    return "";
}

class Laws : public testing::TestWithParam<LawCase> {};

TEST_P(Laws, StreamsMergesAndIsTheDefinition) {
    const LawCase& c = GetParam();
    const Diagram diagram = parsed_program(c.text);
    const auto derived = derive(diagram);
    ASSERT_TRUE(derived.ok()) << render(derived.errors());
    EXPECT_EQ(derived->kernels.size(), 1U);
    EXPECT_EQ(traversals(*derived), 1);
    EXPECT_TRUE(derived->refusals.empty());
    const std::string condition(law(c.plus, c.action).condition);
    EXPECT_TRUE(std::any_of(derived->steps.begin(), derived->steps.end(), [&](const DerivationStep& step) {
        return step.side_condition.find(condition) != std::string::npos;
    })) << "the law is not used";
    for (std::uint64_t seed = 1; seed <= 40; ++seed) ASSERT_EQ(failure(diagram, *derived, seed), "");
}

INSTANTIATE_TEST_SUITE_P(Table, Laws, testing::ValuesIn(law_cases()), [](const auto& c) {
    const std::string action = std::to_string(static_cast<int>(c.param.action));
    return std::string(name(c.param.plus)) + "_" + action;
});

TEST(LawTable, EveryRowHasItsCase) {
    for (const Law& row : laws()) {
        EXPECT_TRUE(std::any_of(law_cases().begin(), law_cases().end(), [&](const LawCase& c) {
            return c.plus == row.plus && c.action == row.action;
        })) << row.name;
        EXPECT_EQ(row.identity, identity(row.plus)) << row.name;
    }
}

TEST(LawTable, AnAbsorbingElementStaysUnderItsAction) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (const Law& row : laws()) {
        if (!row.absorbing) continue;
        const double acc = *row.absorbing;
        for (int i = 0; i < 1000; ++i) {
            const double a = normal(random);
            if (row.action == Action::add) {
                EXPECT_EQ(acc + a, acc) << row.name;
            }
            if (row.action == Action::multiply) {
                EXPECT_EQ(acc * std::exp(a), acc) << row.name;
            }
        }
    }
}

// ---- programs that once gave wrong numbers, in single precision
// -----------------------------------------------------------------

struct Hard {
    const char* name;
    const char* text;
    std::vector<std::int64_t> sizes;  ///< by axis, in order of appearance
    std::int64_t chunk;
    double tolerance;  ///< relative to the largest result, or to 1
    std::function<double(std::size_t array, std::size_t place)> input;
};

/// 0, 1, … scattered over [0, 1).
double noise(std::size_t i) { return std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0); }

const std::vector<Hard>& hard_cases() {
    static const std::vector<Hard> cases{
        {"EntropyUnderAMaskOfLargeNumbers",
         R"(entropy(X[q, x]) -> H[q]
    S[q, x] = where(x <= q, X[q, x], -1e9)
    P[q, x] = softmax(x) S[q, x]
    L[q, x] = log_softmax(x) S[q, x]
    H[q] = -(sum(x) P[q, x] * L[q, x])
)",
         {40, 100},
         16,
         1e-5,
         [](std::size_t, std::size_t i) { return 4 * noise(i) - 2; }},
        {"EntropyUnderAMaskNearTheEndOfTheType",
         R"(entropy(X[q, x]) -> H[q]
    S[q, x] = where(x >= 50, X[q, x], -1e38)
    P[q, x] = softmax(x) S[q, x]
    L[q, x] = log_softmax(x) S[q, x]
    H[q] = -(sum(x) P[q, x] * L[q, x])
)",
         {4, 100},
         16,
         1e-5,
         [](std::size_t, std::size_t i) { return 4 * noise(i) - 2; }},
        {"WeightedVarianceFarFromTheUnweightedMean",
         R"(v(S[q, x], X[x]) -> V[q]
    P[q, x] = softmax(x) S[q, x]
    M[q] = sum(x) P[q, x] * X[x]
    V[q] = sum(x) P[q, x] * (X[x] - M[q])^2
)",
         {3, 1000},
         64,
         1e-4,
         [](std::size_t array, std::size_t i) {
             const bool key = i % 1000 % 33 == 5;
             return array == 0 ? (key ? 0 : -60.0) + noise(i) : key ? 1000 + 3 * noise(i) : noise(i);
         }},
        {"VarianceUnderAMaskBesidePadding",
         R"(v(X[q, x]) -> V[q]
    M[q] = (sum(x) where(x < 40, X[q, x], 0)) / 40
    V[q] = (sum(x) where(x < 40, (X[q, x] - M[q])^2, 0)) / 40
)",
         {3, 100},
         16,
         1e-5,
         [](std::size_t, std::size_t i) { return i % 100 < 40 ? noise(i) : 1e6; }},
        {"VarianceOfLogProbabilities",
         R"(v(X[r, c]) -> V[r]
    P[r, c] = softmax(c) X[r, c]
    L[r, c] = log_softmax(c) X[r, c]
    H[r] = sum(c) P[r, c] * L[r, c]
    V[r] = sum(c) P[r, c] * (L[r, c] - H[r])^2
)",
         {3, 100},
         16,
         1e-5,
         [](std::size_t, std::size_t i) { return 3000 + 4 * noise(i); }},
        {"AMaximumThatDoesNotDominate",
         R"(y(X[a, t]) -> Y[a]
    M[a] = max(t) where(t == 150, X[a, t], -inf)
    Y[a] = sum(t) exp(X[a, t] - M[a])
)",
         {3, 200},
         64,
         1e-5,
         [](std::size_t, std::size_t i) { return noise(i) - 0.5; }},
        {"ACountTimesAnInfinity",
         R"(y(X[a, t]) -> Y[a]
    M[a] = max(t) where(t > 500, X[a, t], -inf)
    Y[a] = sum(t) where(t > 400, M[a], 0)
)",
         {3, 200},
         64,
         0,
         [](std::size_t, std::size_t i) { return noise(i); }},
        {"AReferenceThatRisesAndFalls",
         R"(y(X[a, t], W[a, t]) -> Y[a]
    R[a] = sum(t) X[a, t]
    Y[a] = sum(t) exp(W[a, t] - R[a])
)",
         {2, 1000},
         64,
         1e-5,
         [](std::size_t array, std::size_t i) { return array == 0 ? (i % 1000 < 500 ? -0.5 : 0.5) : noise(i); }},
        {"UniformWeightsOfValuesNearTheEndOfTheType",
         R"(o(S[q, x], V[x, d]) -> O[q, d]
    P[q, x] = softmax(x) S[q, x]
    O[q, d] = sum(x) P[q, x] * V[x, d]
)",
         {2, 1000, 3},
         64,
         1e-5,
         [](std::size_t array, std::size_t i) { return array == 0 ? 1.0 : 1e38 + 1e37 * noise(i); }},
        {"ASquareThatIsWrittenOut",
         R"(v(X[r, c]) -> V[r]
    M[r] = (sum(c) X[r, c]) / size(c)
    V[r] = (sum(c) (X[r, c]^2 - 2 * M[r] * X[r, c] + M[r]^2)) / size(c)
)",
         {3, 100},
         16,
         1e-5,
         [](std::size_t, std::size_t i) { return noise(i); }},
        {"ATemperatureOfUnknownSign",
         R"(o(S[q, x], T[q], V[x, d]) -> O[q, d]
    M[q] = max(x) S[q, x]
    E[q, x] = exp((S[q, x] - M[q]) / T[q])
    Z[q] = sum(x) E[q, x]
    O[q, d] = sum(x) E[q, x] / Z[q] * V[x, d]
)",
         {2, 1000, 3},
         64,
         1e-4,
         [](std::size_t array, std::size_t i) { return array == 1 ? (i == 0 ? 0.5 : -0.05) : noise(i); }},
    };
    return cases;
}

class HardCases : public testing::TestWithParam<Hard> {};

TEST_P(HardCases, AreRightInSinglePrecision) {
    const Hard& c = GetParam();
    const Diagram diagram = parsed_program(c.text);
    const auto derived = derive(diagram);
    ASSERT_TRUE(derived.ok()) << render(derived.errors());
    EXPECT_EQ(traversals(*derived), 1);
    Values given(diagram.arrays.size());
    for (const ArrayId id : diagram.inputs) {
        std::vector<double> values(static_cast<std::size_t>(count_values(diagram, id, c.sizes)));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(c.input(static_cast<std::size_t>(id), i));
        given[id] = std::move(values);
    }
    Values wanted = given;
    evaluate(diagram, c.sizes, wanted);
    PartitionSizes sizes;
    sizes.group.assign(c.sizes.size(), 0);
    sizes.stream.assign(c.sizes.size(), c.chunk);
    Values made = values_for(*derived, diagram, given);
    evaluate_in_single_precision(*derived, c.sizes, sizes, made);
    for (const ArrayId id : diagram.outputs) {
        const auto& want = wanted[id];
        const auto& have = made[*derived->diagram.find_array(diagram.array(id).name)];
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (want[i] == have[i]) continue;
            EXPECT_LE(std::abs(want[i] - have[i]), c.tolerance * std::max(1.0, std::abs(want[i])))
                << want[i] << " became " << have[i];
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Programs, HardCases, testing::ValuesIn(hard_cases()), [](const auto& c) { return c.param.name; });

/// Outputs of a one-output program of one input, with all sizes given.
std::vector<double> derived_output(const char* text, const Extents& extents, std::vector<double> input, std::int64_t chunk) {
    const Diagram diagram = parsed_program(text);
    const auto derived = derive(diagram);
    Values values(derived->diagram.arrays.size());
    values[diagram.inputs[0]] = std::move(input);
    PartitionSizes sizes;
    sizes.group.assign(extents.size(), 0);
    sizes.stream.assign(extents.size(), chunk);
    evaluate(*derived, extents, sizes, values);
    return values[diagram.outputs[0]].reals();
}

TEST(FullyMaskedRows, AreNaNForSoftmaxAndZeroForItsMaskedKin) {
    const std::vector<double> nothing(10, -inf);
    const auto both = [&](const char* text) { return derived_output(text, {1, 10}, nothing, 3).at(0); };
    EXPECT_TRUE(std::isnan(both("f(X[r, c]) -> Y[r]\n    Y[r] = sum(c) (softmax(c) X[r, c]) * c\n")));
    EXPECT_TRUE(std::isnan(both("f(X[r, c]) -> Y[r]\n    Y[r] = logsumexp(c) X[r, c]\n")));
    EXPECT_EQ(both("f(X[r, c]) -> Y[r]\n    Y[r] = sum(c) (masked_softmax(c) X[r, c]) * c\n"), 0);
    EXPECT_EQ(both("f(X[r, c]) -> Y[r]\n    Y[r] = masked_logsumexp(c) X[r, c]\n"), -inf);
}

}  // namespace
}  // namespace napkin
