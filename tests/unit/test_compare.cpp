// Costs beside each other: the texts that ask for them, the sizes at which the best changes, and who is best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "study/report.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"

namespace napkin::test_compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Source> example(const std::string& name) {
    std::ifstream in(in_sources("examples/" + name));
    std::ostringstream text;
    text << in.rdbuf();
    return std::make_shared<Source>(Source{name, text.str()});
}

CostQuery query(const std::string& file, const std::string& machine, const std::string& diagram = "") {
    CostQuery q;
    q.closed_form = true;  // the theory is tried, whatever would run
    q.source = example(file);
    q.pipeline.machine = machine;
    q.pipeline.diagram = diagram;
    return q;
}

Comparison compared(const CostQuery& left, const std::string& spec, const AxisSizes& sizes = {}) {
    const auto against = parse_against(spec);
    EXPECT_TRUE(against.ok());
    auto both = sides(left, sizes, *against, against->file.empty() ? nullptr : example(against->file));
    EXPECT_TRUE(both.ok()) << render(both.errors());
    auto result = compare(std::move(both).value());
    EXPECT_TRUE(result.ok()) << render(result.errors());
    return std::move(result).value();
}

/// The time of a side's plan at a size, as `napkin plan` has it; none where it has no plan.
std::optional<double> planned_seconds(const Subject& side, const TiedAxes& axes, std::int64_t size) {
    PipelineOptions options = side.query.pipeline;
    for (const std::string& axis : axes.axes)
        if (side.has(axis)) options.sizes[axis] = size;
    options.until = Pass::plan;
    const auto planned = run_pipeline(side.query.source, options);
    return planned.ok() ? std::optional(planned->plan.seconds()) : std::nullopt;
}

/// Who is faster changes between the two sizes that are said, which are next to each other or a sixteenth apart.
TEST(Compare, TheWinnerOfPlansChangesWhereItIsSaid) {
    const AxisSizes small = {{"a", 64}, {"b", 64}, {"c", 64}};
    const std::tuple<const char*, const char*, AxisSizes> cases[] = {{"matmul.nk", "machine=h200", small},
                                                                     {"softmax.nk", "machine=h200", {{"r", 64}, {"c", 64}}},
                                                                     {"matmul_chain.nk", "no-fuse", {}}};
    for (const auto& [file, spec, sizes] : cases) {
        CostQuery left = query(file, "generic-cpu");
        left.closed_form = false;
        const Comparison c = compared(left, spec, sizes);
        std::size_t seen = 0;
        for (const WinnersAlong& along : c.along) {
            const auto best = [&](std::int64_t size) {
                const auto one = planned_seconds(c.subjects[0], along.axes, size);
                const auto other = planned_seconds(c.subjects[1], along.axes, size);
                EXPECT_TRUE(one && other) << size;
                return *one < *other ? 0 : *other < *one ? 1 : all_equal;
            };
            int before = along.at_from;
            EXPECT_EQ(best(along.from), before) << file;
            for (const SweepChange<int>& change : along.changes) {
                EXPECT_LE(change.at - change.after, std::max<std::int64_t>(1, change.after / 16));
                EXPECT_EQ(best(change.after), before) << file << " at " << change.after;
                EXPECT_EQ(best(change.at), change.what) << file << " at " << change.at;
                EXPECT_NE(std::exchange(before, change.what), change.what);
                ++seen;
            }
            EXPECT_EQ(best(along.to), before) << file;
        }
        EXPECT_GT(seen, 0U) << file;
    }
}

TEST(Sweep, TextsSayWhichSizes) {
    const auto sizes = [](const char* text) {
        const auto axis = parse_sweep(text);
        EXPECT_TRUE(axis.ok()) << text;
        return axis->sizes;
    };
    EXPECT_THAT(sizes("d=32..512"), ElementsAre(32, 64, 128, 256, 512));
    EXPECT_THAT(sizes("d=100..600"), ElementsAre(100, 128, 256, 512, 600));
    EXPECT_THAT(sizes("d=8..8"), ElementsAre(8));
    EXPECT_THAT(sizes("d=1..10:4"), ElementsAre(1, 5, 9, 10));
    EXPECT_THAT(sizes("d=1..100:*10"), ElementsAre(1, 10, 100));
    EXPECT_THAT(sizes("d=10..30:*1.5"), ElementsAre(10, 15, 23, 30));
    EXPECT_THAT(sizes("d=96,32,48,32"), ElementsAre(32, 48, 96));
    EXPECT_THAT(sizes("d=7"), ElementsAre(7));
    EXPECT_THAT(parse_sweep("q=x=1024..65536")->axes, ElementsAre("q", "x"));
}

TEST(Sweep, WhatIsWrongWithATextIsSaid) {
    const std::pair<const char*, const char*> cases[] = {{"d", "there is no axis"},
                                                         {"d=", "there are no sizes"},
                                                         {"=3", "an axis is missing"},
                                                         {"1=3", "1 is no axis"},
                                                         {"d=3..1", "3 is more than 1"},
                                                         {"d=a..3", "'a' is no size"},
                                                         {"d=1..", "'' is no size"},
                                                         {"d=0..4", "'0' is no size"},
                                                         {"d=1..2:0", "'0' is no step"},
                                                         {"d=1..9:*1", "'1' is no factor"},
                                                         {"d=1..9:*nan", "'nan' is no factor"},
                                                         {"d=1,,2", "'' is no size"},
                                                         {"q=q=3", "q stands there twice"},
                                                         {"d=1..100000:1", "more than 10000"},
                                                         {"d=1..99999999999999999999", "is no size"}};
    for (const auto& [text, what] : cases) {
        const auto axis = parse_sweep(text);
        ASSERT_FALSE(axis.ok()) << text;
        EXPECT_EQ(axis.errors()[0].code, "bad-sweep");
        EXPECT_EQ(axis.errors()[0].exit_code, ExitCode::usage);
        EXPECT_THAT(axis.errors()[0].message, HasSubstr(what));
        EXPECT_THAT(axis.errors()[0].expected, HasSubstr("AXIS=LO..HI"));
    }
}

TEST(Against, TextsSayWhatChanges) {
    const auto a = parse_against(
        "b.nk,no-fuse,machine=h200,types=e4m3,diagram=f,set:q=8,set:x=9,devices=2,cluster=4,form=auxiliary");
    ASSERT_TRUE(a.ok()) << render(a.errors());
    EXPECT_EQ(a->file, "b.nk");
    EXPECT_EQ(a->fuse, false);
    EXPECT_EQ(a->machine, "h200");
    EXPECT_EQ(a->types, DType::e4m3);
    EXPECT_EQ(a->diagram, "f");
    EXPECT_EQ(a->sizes, (AxisSizes{{"q", 8}, {"x", 9}}));
    EXPECT_EQ(a->devices, 2);
    EXPECT_EQ(a->cluster, 4);
    EXPECT_EQ(a->form, "auxiliary");
    EXPECT_EQ(parse_against("machine=./my.toml")->machine, "./my.toml");
}

TEST(Against, WhatIsWrongWithATextIsSaid) {
    const std::tuple<const char*, const char*, const char*> cases[] = {
        {"", "is empty", ""},
        {"no-fuse,", "is empty", ""},
        {"nofuse", "does not know nofuse", "did you mean no-fuse?"},
        {"machin=h200", "does not know machin=h200", "did you mean machine=…?"},
        {"b", "does not know b", "a file has a '.' or a '/' in its name"},
        {"machine=", "machine= has no value", ""},
        {"types=e4m4", "e4m4 is no type", "did you mean e4m3?"},
        {"types=i32", "i32 is no type", "did you mean f32?"},
        {"form=auxilary", "auxilary is no form", "did you mean auxiliary?"},
        {"devices=0", "devices=0", ""},
        {"cluster=two", "cluster=two", ""},
        {"set:q", "set:q", ""},
        {"set:q=0", "set:q=0", ""},
        {"set:=4", "set:=4", ""},
        {"fuse,no-fuse", "gives fuse twice", ""},
        {"a.nk,b.nk", "gives a file twice", ""},
        {"set:q=4,set:q=5", "gives the size of q twice", ""}};
    for (const auto& [text, what, hint] : cases) {
        const auto against = parse_against(text);
        ASSERT_FALSE(against.ok()) << text;
        EXPECT_EQ(against.errors()[0].code, "bad-against");
        EXPECT_EQ(against.errors()[0].exit_code, ExitCode::usage);
        EXPECT_THAT(against.errors()[0].message, HasSubstr(what));
        EXPECT_EQ(against.errors()[0].hint, hint) << text;
        EXPECT_NE(against.errors()[0].expected, "");
    }
}

TEST(Compare, FusedMovesLessThanEquationByEquation) {
    const Comparison c = compared(query("attention.nk", "h100-sxm5"), "no-fuse");
    EXPECT_EQ(c.subjects[0].label, "fused");
    EXPECT_EQ(c.subjects[1].label, "no fusion");
    EXPECT_LT(c.outcomes[0].figures->transfers_bytes * 50, c.outcomes[1].figures->transfers_bytes);
    EXPECT_GE(c.outcomes[1].figures->footprint_bytes, 4.0 * 4096 * 4096);
    EXPECT_EQ(best_of(c.outcomes, Criterion::energy), 0);
    EXPECT_EQ(sizes_text(c.sizes), "q = x = 4096, k = d = 128");
}

TEST(Compare, SizesComeFromTheLeftUnlessTheTextSetsThem) {
    const Comparison c = compared(query("attention.nk", "h200"), "attention_bf16.nk,set:k=64", {{"q", 1024}});
    const auto size = [&](const std::string& axis) {
        return c.subjects[1].diagram.axis(*c.subjects[1].diagram.find_axis(axis)).size;
    };
    EXPECT_EQ(size("q"), Size(1024));
    EXPECT_EQ(size("x"), Size(4096));
    for (const WinnersAlong& along : c.along) EXPECT_THAT(along.axes.axes, testing::Not(testing::Contains("k")));
}

TEST(Compare, HalfTheBytesAreHalfTheTransfers) {
    const Comparison c = compared(query("attention_bf16.nk", "h100-sxm5"), "types=e4m3", {{"q", 4096}, {"x", 4096}});
    EXPECT_NEAR(c.outcomes[0].figures->transfers_bytes / c.outcomes[1].figures->transfers_bytes, 2, 0.01);
    EXPECT_LE(c.outcomes[1].figures->seconds, c.outcomes[0].figures->seconds);
}

TEST(Compare, ACacheWinsFromAFewTokens) {
    const Comparison c = compared(query("kv_cache.nk", "a100-sxm-40gb", "cached"), "diagram=recomputed",
                                  {{"c", 4096}, {"d", 4096}});
    EXPECT_EQ(best_of(c.outcomes, Criterion::time), 0);
    const WinnersAlong& tokens = c.along[0];
    EXPECT_THAT(tokens.axes.axes, ElementsAre("n"));
    ASSERT_EQ(tokens.changes.size(), 1U);
    EXPECT_EQ(tokens.changes[0].what, 0);
    EXPECT_LT(tokens.changes[0].at, 208);
}

/// paper.md §10: fewer than 208 tokens a weight load is memory bound on an A100, by the closed form.
TEST(Sweep, AFewTokensAreBoundByTheirWeights) {
    CostQuery q = query("kv_cache.nk", "a100-sxm-40gb", "prefill");
    auto subjects = make_subjects({{"a100-sxm-40gb", q, {}, {}}}, {{"c", 4096}, {"d", 4096}});
    ASSERT_TRUE(subjects.ok());
    const auto result = sweep(std::move(subjects).value(), {*parse_sweep("n=64..304:16")});
    ASSERT_TRUE(result.ok()) << render(result.errors());
    ASSERT_EQ(result->bounds.size(), 1U);
    EXPECT_EQ(result->bounds[0].at_first, "into L2");
    ASSERT_EQ(result->bounds[0].changes.size(), 1U);
    EXPECT_EQ(result->bounds[0].changes[0].what, "tensor");
    EXPECT_EQ(result->bounds[0].changes[0].after + 16, result->bounds[0].changes[0].at);
    EXPECT_NEAR(static_cast<double>(result->bounds[0].changes[0].at), 208, 21);
}

TEST(Compare, WhatDoesNotFitLoses) {
    // S of 2^17 × 2^17 values takes 64 GiB, and with P more than the machine has.
    const Comparison c = compared(query("attention.nk", "h100-sxm5"), "no-fuse", {{"q", 1 << 17}, {"x", 1 << 17}});
    EXPECT_FALSE(c.outcomes[1].figures.has_value());
    EXPECT_EQ(c.outcomes[1].why.code, "memory-exceeded");
    EXPECT_EQ(best_of(c.outcomes, Criterion::time), 0);
    EXPECT_THAT(to_text(report_of(c)), HasSubstr("no fusion does not run it: the arrays take"));
    EXPECT_EQ(to_json(report_of(c))["right"]["error"]["code"], "memory-exceeded");
}

/// Rows that two kernels share would take 136 GiB; the derivation takes the partition without them.
TEST(Compare, APartitionThatMemoryCannotHoldIsNotChosen) {
    CostQuery q = query("multihead.nk", "h100-sxm5");
    q.pipeline.sizes = {{"h", 2048}};
    const auto figures = cost_summary(q);
    ASSERT_TRUE(figures.ok());
    EXPECT_LE(figures->footprint_bytes, figures->memory_bytes);
}

TEST(Compare, TheSameOnBothSidesIsEqual) {
    const Comparison c = compared(query("matmul.nk", "h200"), "machine=h200");
    EXPECT_EQ(best_of(c.outcomes, Criterion::time), all_equal);
    EXPECT_THAT(c.along[0].changes, testing::IsEmpty());
    EXPECT_EQ(to_json(report_of(c))["winner"]["time"], "equal");
}

std::vector<Subject> on(const std::vector<std::string>& machines, const std::string& file) {
    std::vector<Subject> subjects;
    for (const std::string& machine : machines) subjects.push_back({machine, query(file, machine), {}, {}});
    return *make_subjects(std::move(subjects), {});
}

TEST(Ranking, TheFastestComesFirst) {
    std::vector<Subject> machines = on({"generic-cpu", "h100-sxm5", "rtx-4090"}, "matmul.nk");
    for (Subject& subject : machines) subject.query.closed_form = false;
    const auto ranking = rank(std::move(machines));
    ASSERT_TRUE(ranking.ok());
    EXPECT_EQ(ranking->order.back(), 0U);
    const auto json = to_json(report_of(*ranking));
    EXPECT_EQ(json["best"]["price"], "rtx-4090");
    EXPECT_LT(json["results"][0]["seconds"], json["results"][1]["seconds"]);
    EXPECT_LE(json["results"][0]["peak_share"], 1);
    EXPECT_EQ(json["results"][0]["rates"], "measured");
    EXPECT_EQ(json["results"][2]["rates"], "nominal");
    EXPECT_THAT(to_text(report_of(*ranking)), HasSubstr("least time: h100-sxm5 (rates measured)\n"));
    EXPECT_EQ(rates_text(ranking->outcomes),
              "rates: generic-cpu nominal, h100-sxm5 measured, rtx-4090 3 of 5 measured\n");
    EXPECT_EQ(rates_text({ranking->outcomes[0]}), "");
}

TEST(Ranking, AMachineWithoutAPriceHasNone) {
    std::vector<Outcome> outcomes(2);
    outcomes[0].figures = CostSummary{};
    outcomes[1].figures = CostSummary{};
    outcomes[0].figures->seconds = 2;
    outcomes[1].figures->seconds = 1;
    outcomes[0].figures->price_usd = 5;
    EXPECT_EQ(best_of(outcomes, Criterion::time), 1);
    EXPECT_EQ(best_of(outcomes, Criterion::price), 0);
    EXPECT_EQ(best_of(outcomes, Criterion::energy), nobody);
}

TEST(Sweep, TheBestMachineChangesBetweenTwoSizes) {
    const auto result = sweep(on({"h100-sxm5", "mi300x"}, "matmul.nk"), {*parse_sweep("a=b=c=256..1024")});
    ASSERT_TRUE(result.ok());
    ASSERT_FALSE(result->best.empty());
    EXPECT_EQ(result->best[0].criterion, Criterion::time);
    ASSERT_FALSE(result->best[0].changes.empty());
    const SweepChange<int>& change = result->best[0].changes[0];
    EXPECT_EQ(change.what, 1);
    EXPECT_EQ(change.at, 2 * change.after);
    for (const SweepPoint& point : result->points) {
        const int best = best_of(point.outcomes, Criterion::time);
        EXPECT_TRUE(point.sizes[0] != change.after || best == 0);
        EXPECT_TRUE(point.sizes[0] != change.at || best == 1);
    }
}

/// A point's time is the plan's at its sizes, on a GPU as on a CPU. Where no kernel is planned it is an estimate, which
/// says so and is nobody's rival.
TEST(Sweep, EveryPointIsPlanned) {
    std::vector<Subject> subjects = on({"h200", "generic-cpu", "mi300x"}, "attention_bf16.nk");
    for (Subject& subject : subjects) subject.query.closed_form = false;
    const auto result = sweep(std::move(subjects), {*parse_sweep("q=x=512,2048")});
    ASSERT_TRUE(result.ok()) << render(result.errors());
    for (const SweepPoint& point : result->points) {
        for (const std::size_t subject : {0, 1}) {
            PipelineOptions options = result->subjects[subject].query.pipeline;
            options.sizes = {{"q", point.sizes[0]}, {"x", point.sizes[0]}}, options.until = Pass::plan;
            const auto planned = run_pipeline(result->subjects[subject].query.source, options);
            ASSERT_TRUE(planned.ok()) << render(planned.errors());
            EXPECT_TRUE(point.outcomes[subject].is_planned());
            EXPECT_EQ(point.outcomes[subject].figures->seconds, planned->plan.seconds());
        }
        EXPECT_FALSE(point.outcomes[2].is_planned());
        EXPECT_NE(best_of(point.outcomes, Criterion::time), 2);
    }
    EXPECT_THAT(to_text(report_of(*result)), HasSubstr("mi300x is estimated by a closed form at q = x = 512"));
}

TEST(Sweep, SeveralGiveTheProduct) {
    const auto result = sweep(on({"h200"}, "matmul.nk"), {*parse_sweep("a=64,128,256"), *parse_sweep("b=c=32,64")});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->points.size(), 6U);
    EXPECT_THAT(result->points[1].sizes, ElementsAre(64, 64));
    const std::string csv = to_csv(report_of(*result));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
    std::istringstream lines(csv);
    std::size_t commas = 0;
    for (std::string line; std::getline(lines, line);) {
        const auto here = static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
        if (commas == 0) commas = here;
        EXPECT_EQ(here, commas) << line;
    }
    const auto json = to_json(report_of(*result));
    EXPECT_EQ(json["points"].size(), 6U);
    EXPECT_EQ(json["points"][5]["sizes"], (nlohmann::json{{"a", 256}, {"b", 64}, {"c", 64}}));
}

TEST(Sweep, ErrorsOfAxesAndSizes) {
    const auto code = [](const Result<Sweep>& result) { return result.ok() ? "" : result.errors()[0].code; };
    EXPECT_EQ(code(sweep(on({"h200"}, "matmul.nk"), {*parse_sweep("z=2")})), "unknown-axis");
    EXPECT_EQ(code(sweep(on({"h200"}, "matmul.nk"), {*parse_sweep("a=2"), *parse_sweep("b=a=2")})), "bad-sweep");
    EXPECT_EQ(code(sweep(on({"h200"}, "matmul.nk"), {*parse_sweep("a=1..9999:1"), *parse_sweep("b=2,3")})),
              "bad-sweep");
    std::vector<Subject> planned = on({"h200"}, "matmul.nk");
    planned[0].query.closed_form = false;
    EXPECT_EQ(code(sweep(planned, {*parse_sweep("a=1..1001:1")})), "bad-sweep") << "more than there is time for";
    EXPECT_EQ(code(sweep(on({"no-such"}, "matmul.nk"), {*parse_sweep("a=2")})), "unknown-machine");
    EXPECT_EQ(code(sweep(on({"h200"}, "matmul.nk"), {*parse_sweep("a=b=4000000000000000000")})), "size-overflow");
    Subject bare{"h200", query("matmul.nk", "h200"), {}, {}};
    bare.query.source = std::make_shared<Source>(
        Source{"m.nk", "m(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n"});
    EXPECT_EQ(code(sweep(*make_subjects({bare}, {}), {*parse_sweep("a=2")})), "missing-size");
    EXPECT_EQ(make_subjects({bare}, {{"z", 3}}).errors()[0].code, "unknown-axis");
}

TEST(TiedAxes, AreThoseThatTheTextsGiveOneSize) {
    const auto groups = [](const char* text, const AxisSizes& sizes) {
        Subject s{"s", {}, {}, {}};
        s.query.source = std::make_shared<Source>(Source{"t.nk", text});
        const auto tied = tied_axes(*make_subjects({s}, sizes));
        EXPECT_TRUE(tied.ok());
        return sizes_text(*tied);
    };
    const char* text =
        "f(A[i, j], B[j, k]) -> C[i, k]\n    C[i, k] = sum(j) A[i, j] * B[j, k]\nsizes i = j = 4, k = i\n";
    EXPECT_EQ(groups(text, {}), "i = j = k = 4");
    EXPECT_EQ(groups(text, {{"j", 8}}), "i = k = 4, j = 8");
    EXPECT_EQ(groups("f(A[i]) -> C[k]\n    C[k] = A[k + 1]\nsizes i = 9, k = i - 1\n", {}), "i = 9");
}

}  // namespace
}  // namespace napkin::test_compare
