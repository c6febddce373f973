// A schedule in words: what is printed and read back, what is kept of what is set by hand, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "hand_derived.hpp"
#include "lower/passes.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/reasons.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"
#include "support/schedules.hpp"
#include "syntax/print.hpp"
#include "tile/expand.hpp"

namespace napkin::test_schedule_words {
namespace {

using hand::extents;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Machine generic() { return load_machine("generic-cpu").value(); }

Machine with_stores_past_caches() {
    Machine m = generic();
    m.nontemporal_copy_bytes_per_s = m.core_nontemporal_copy_bytes_per_s = {36e9, "test"};
    m.nontemporal_from_bytes = {1e3, "test"};
    return m;
}

Extents attention_extents(const Derived& d) {
    return extents(d, {{"h", 8}, {"q", 4096}, {"x", 4096}, {"k", 64}, {"d", 64}});
}

ScheduleItem item(const std::string& kind, const std::string& axis, std::optional<std::int64_t> value) {
    return {choice_kind(kind), axis, value};
}

/// The code of what is wrong with a line of a file, and what was expected; "none" where it can be read.
std::string wrong_with(const std::string& line) {
    const auto items = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", line + "\n"}));
    return items.ok() ? "none" : items.errors()[0].code + "; " + items.errors()[0].expected;
}

// Whoever takes an item up looks at its numbers and words no more: kernels, the search and the paper's steps have the
// same limits.
TEST(Schedule, HasOneLimitForEveryNumber) {
    int fields = 0;
    const auto limited = [&](const std::string& before, std::int64_t most, const std::string& behind = "") {
        ++fields;
        EXPECT_EQ(wrong_with(before + std::to_string(most) + behind), "none") << before;
        EXPECT_THAT(wrong_with(before + std::to_string(most + 1) + behind), HasSubstr(std::to_string(most))) << before;
    };
    for (const ChoiceField& field : choice_fields) {
        const std::string word(field.name);
        if (field.operand == ChoiceOperand::number) limited(word + " ", field.most);
        if (word == "role" || word == "cluster" || word == "issue") limited(word + " q ", field.most);
        for (const std::string_view legal : field.words)
            EXPECT_EQ(wrong_with(fmt::format("{} {}", word, legal)), "none");
        EXPECT_TRUE(field.words.empty() || wrong_with(word + " perhaps").starts_with("unknown-choice")) << word;
    }
    for (const ClauseField& field : clause_fields) {
        const bool has_axis = field.operand == ClauseOperand::axis_number;
        if (!has_axis && field.operand != ClauseOperand::number) continue;
        const std::string word(field.word);
        const std::string before = fmt::format(
            "{} S {}{} {}", name(field.of), field.of == ChoiceKind::storage ? "global, " : "", word, has_axis ? "q " : "");
        const std::string behind = word == "cache"                       ? ", tiles 1, in S"
                                   : word == "tiles" || word == "blocks" ? ", in S"
                                                                         : "";
        if (field.most < limits::max_size_product) limited(before, field.most, behind);
        EXPECT_EQ(wrong_with(before + std::to_string(field.least) + behind), "none") << before;
        EXPECT_THAT(wrong_with(before + behind), HasSubstr("at least")) << before;
        EXPECT_EQ(wrong_with(before + "0" + behind) == "none", field.least == 0) << before;
    }
    EXPECT_EQ(fields, 24);
    EXPECT_EQ(wrong_with("piece A d 8, d 4"), "bad-schedule; each name once");
    EXPECT_EQ(wrong_with("storage K inner k"),
              "bad-schedule; one of buffer, register_panel, packed_panel, global, registers, operand, lanes, written, "
              "accumulators");
    EXPECT_EQ(wrong_with("slot S beside 3"), "bad-schedule; order, role or stage_offset");
}

// An alias reads as its word, and every alias is among these lines.
TEST(Schedule, ReadsAliases) {
    const std::pair<std::string, std::string> lines[] = {
        {"ctas 132", "threads 132"},
        {"register_budget 168", "rows 168"},
        {"groups fixed", "scheduler static"},
        {"groups queue", "scheduler dynamic"},
        {"groups cut", "scheduler stream_k"},
        {"matrix free", "ping_pong off"},
        {"matrix turns", "ping_pong on"},
        {"maximum exact", "rescaling always"},
        {"maximum rescaled", "rescaling rescale"},
        {"tensor q", "mma_m q"},
        {"tensor axis q", "mma_m axis q"},
        {"atom S matrix, over k, parts 2, run 0, follows", "atom S mma, over k, column_parts 2, fusion 0, fused"},
        {"place K panel", "storage K register_panel"},
        {"place K packed, inner k", "storage K packed_panel, inner k"},
        {"place K view", "storage K global"},
        {"place K registers, boxes 2", "storage K registers, staging 2"},
        {"slot load K position 1, role copies, ahead 2", "slot load K order 1, role copies, stage_offset 2"},
        {"prefetch K groups 1, in S", "prefetch K tiles 1, in S"},
        {"defer S groups 1, in S", "pipelined S tiles 1, in S"},
    };
    std::string all;
    for (const auto& [older, word] : lines) {
        const auto read = [](const std::string& line) {
            const auto source = std::make_shared<const Source>(Source{"a.schedule", line + "\n"});
            ScheduleItem item = parse_schedule_file(source).value().at(0);
            item.range = {};
            return item;
        };
        EXPECT_EQ(read(older), read(word)) << older;
        all += " " + older + " ";
    }
    for (const ScheduleAlias& a : schedule_aliases)
        EXPECT_THAT(all, testing::ContainsRegex(fmt::format("[ ,]{}[ ,]", a.alias)));
}

// An axis may have the name of a word that may stand behind it.
TEST(Schedule, TakesNoAxisForAWord) {
    const auto items = parse_schedule_file(
        std::make_shared<const Source>(Source{"a.schedule", "atom Y vectors inner 1\n"}));
    const Derived d = derived_from("f(X[inner]) -> Y[inner]\n    Y[inner] = 2 * X[inner]\nsizes inner = 64\n");
    const auto read = schedule_overrides(items.value(), expand(d));
    ASSERT_TRUE(read.ok()) << render(read.errors());
    EXPECT_FALSE((*read)[0].atoms.at(0).vector_inner);
}

TEST(Schedule, PrintsAndComesBack) {
    bool fetches_ahead = false, goes_past_caches = false;
    for (const auto& d : {hand::streamed({{"h"}, {}}), hand::streamed({{"h"}, {"g"}, true}), hand::matmul(),
                          hand::pointwise(), hand::strided_window(), hand::softmax()}) {
        const auto plan = choose_plan(d, Extents(d.diagram.axes.size(), d.diagram.find_axis("r") ? 2048 : 40),
                                      with_stores_past_caches());
        ASSERT_TRUE(plan.ok()) << render(plan.errors());
        const std::string text = to_string(*plan);
        const auto again = schedules_in(text, *plan->kernels[0].scheduled.program);
        ASSERT_TRUE(again.ok()) << render(again.errors()) << text;
        ASSERT_EQ(again->size(), 1U);
        const KernelSchedule& read = again->front();
        fetches_ahead |= !read.prefetches.empty();
        goes_past_caches |= std::any_of(read.places.begin(), read.places.end(),
                                        [](const Place& p) { return p.non_temporal; });
        EXPECT_EQ(read, as_file(plan->kernels[0].schedule())) << text;
        const ScheduledKernel same = scheduled(plan->kernels[0].scheduled.program, 0, plan->kernels[0].scheduled.extents,
                                               read, plan->kernels[0].scheduled.unit);
        EXPECT_EQ(same.arena_values, plan->kernels[0].scheduled.arena_values);
        EXPECT_EQ(same.held_values, plan->kernels[0].scheduled.held_values);
    }
    EXPECT_TRUE(fetches_ahead);
    EXPECT_TRUE(goes_past_caches);
}

TEST(Schedule, AStatementIsCalledByItsNumber) {
    const Derived d = hand::streamed({{"h"}, {}});
    const auto plan = choose_plan(d, attention_extents(d), generic());
    ASSERT_TRUE(plan.ok());
    TileProgram twice = *plan->kernels[0].scheduled.program;
    TileKernel& kernel = twice.kernels[0];
    const auto s = std::find_if(kernel.variables.begin(), kernel.variables.end(),
                                [](const Variable& v) { return v.name == "S"; });
    kernel.body.emplace_back(Compute{VariableId::of(s - kernel.variables.begin()), std::nullopt, {}, constant(0), nullptr});
    const auto read = schedules_in(
        "  atom S#2 vectors q 3, fusion 0\n  atom S scalar # a comment\n  slot S#2 order 7, stage_offset 1\n", twice);
    ASSERT_TRUE(read.ok()) << render(read.errors());
    EXPECT_EQ(read->front().atoms.back().vectors, 3);
    const std::map<StepId, Slot> last{{StepId::of(statement_names(kernel).size() - 1), {-1, 7, 1}}};
    EXPECT_EQ(read->front().slots, last);
    const auto wrong = schedules_in("  atom S#3 scalar\n", twice);
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.errors()[0].code, "unknown-statement");
    EXPECT_THAT(wrong.errors()[0].message, HasSubstr("'S#3'"));
    // In the text of a diagram too, where # begins comments.
    const auto diagram = parse_diagram(
        std::make_shared<const Source>(Source{"a.nk",
                                              "f(X[i]) -> Y[i]\n    Y[i] = X[i]#2\nschedule\n    kernel Y\n    atom "
                                              "Y#2 scalar\n    storage X global, inner i\n"}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    ASSERT_EQ(diagram->schedule.size(), 2U);
    EXPECT_EQ(diagram->schedule[0].axis, "Y#2");
    EXPECT_EQ(diagram->schedule[0].kernel, "Y");
    EXPECT_EQ(diagram->schedule[1].clauses.size(), 2U);
    const auto again = parse_diagram(std::make_shared<const Source>(Source{"b.nk", print(*diagram)}));
    ASSERT_TRUE(again.ok()) << render(again.errors()) << print(*diagram);
    EXPECT_EQ(again->schedule, diagram->schedule);
}

TEST(Schedule, SaysWhichOfTwoDimensionsWithOneIndexIsInner) {
    const Derived d = derive(parsed("f(D[r, c], E[q]) -> Y[q]\n    Y[q] = D[q, q] * E[q]\nsizes q = r = c = 100\n")).value();
    const auto plan = choose_plan(d, bind_sizes(d.diagram).value(), generic());
    ASSERT_TRUE(plan.ok());
    const TileProgram& program = *plan->kernels[0].scheduled.program;
    const auto inner = [&](const std::string& clauses) {
        const auto read = schedules_in("  storage D buffer, " + clauses + "\n", program);
        return read.ok() ? read->front().places.front().innermost : -1;
    };
    ASSERT_EQ(program.kernels[0].variables.front().name, "D");
    EXPECT_EQ(inner("inner q"), 0);
    EXPECT_EQ(inner("inner q, dimension 1"), 0);
    EXPECT_EQ(inner("inner q, dimension 2"), 1);
    EXPECT_EQ(inner("inner q, dimension 3"), -1);
    KernelSchedule second = plan->kernels[0].schedule();
    second.places.front().innermost = 1;
    EXPECT_THAT(to_string(program, program.kernels[0], second), HasSubstr(", inner q, dimension 2\n"));
}

// Fused statements read packed panels, but a diagonal goes from row to row as well as from panel to panel.
TEST(Schedule, PacksNoPanelsOfADiagonal) {
    const Derived d = derive(parsed("f(D[r, c], A[q, x]) -> Y[q, x]\n    Y[q, x] = exp(A[q, x]) * D[q, q]\n"
                                    "sizes q = r = c = 20, x = 3\n"))
                          .value();
    const auto planned = [&](const std::string& line) {
        PlanOptions options;
        options.file = std::make_shared<const Source>(
            Source{"a.schedule", "vector q\nvectors 1\natom Y vectors q 1, points x, fusion 0\n" + line + "\n"});
        return choose_plan(d, bind_sizes(d.diagram).value(), generic(), {}, options);
    };
    EXPECT_TRUE(planned("storage A packed_panel, inner q").ok());
    const auto refused = planned("storage D packed_panel, inner q, dimension 2");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(render(refused.errors()), HasSubstr("D cannot lie in panels one after the other"));
}

// 203 values are 26 vectors of 8, which panels of 3 cover with less to spare than those of 4.
TEST(Schedule, KeepsPanelsThatAreSetByHand) {
    const Derived d = hand::matmul();
    const auto planned = [&](std::vector<ScheduleItem> items, std::int64_t c) {
        items.push_back(item("vector", "c", std::nullopt)), items.push_back(item("group", "c", c));
        return choose_plan(d, extents(d, {{"a", 512}, {"b", 64}, {"c", 203}}), generic(), items);
    };
    const auto panels = [&](std::vector<ScheduleItem> items, std::int64_t c = 203) {
        const auto plan = planned(std::move(items), c);
        return plan.ok() ? plan->kernels[0].schedule().panel_vectors : -1;
    };
    EXPECT_EQ(panels({item("vectors", "", 4)}), 4);
    EXPECT_EQ(panels({item("vectors", "", 3)}), 3);
    EXPECT_EQ(panels({item("vectors", "", 2)}), 2);
    // A panel that is longer than its tile is refused with the number that fits, which is taken.
    const auto refused = planned({item("vectors", "", 4)}, 17);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(render(refused.errors()), AllOf(HasSubstr("panels of 4 vectors are longer than the 17 values of c"),
                                                HasSubstr("the nearest legal number of vectors is 3")));
    EXPECT_EQ(panels({item("vectors", "", 3)}, 17), 3);
}

TEST(Schedule, SaysByHowMuchATimeIsAnother) {
    EXPECT_EQ(time_change(1.0004), "the same time");
    EXPECT_EQ(time_change(1.0052), "0.52% slower");
    EXPECT_EQ(time_change(0.8), "20% faster");
    EXPECT_EQ(time_change(1.996), "100% slower");
    EXPECT_EQ(time_change(7.1), "610% slower");
}

TEST(Schedule, WrongTexts) {
    const Derived d = hand::streamed({{"h"}, {}});
    const auto plan = choose_plan(d, attention_extents(d), generic());
    ASSERT_TRUE(plan.ok());
    const std::string kernel = "kernel " + d.kernels[0].name + "\n";
    const auto code = [&](const std::string& text) {
        const auto parsed = schedules_in(text, *plan->kernels[0].scheduled.program);
        return parsed.ok() ? "none" : parsed.errors().front().code;
    };
    EXPECT_EQ(code("kernel nobody\n  group q 3"), "unknown-kernel");
    // The part of a kernel is another one only where a stream is split.
    const auto parts = schedules_in("kernel " + d.kernels[0].name + "_part\n  group q 3",
                                    *plan->kernels[0].scheduled.program);
    ASSERT_FALSE(parts.ok());
    EXPECT_THAT(parts.errors().front().hint, HasSubstr("`split AXIS = 2`"));
    EXPECT_EQ(code(kernel + "  group q many"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  group q 4x  ×"), "bad-number");
    EXPECT_EQ(code(kernel + "  group q 4\n  group q 8"), "duplicate-schedule");
    EXPECT_EQ(code(kernel + "  form auxiliary"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  group qq 4"), "unknown-axis");
    EXPECT_EQ(code(kernel + "  colour red"), "unknown-choice");
    EXPECT_EQ(code(kernel + "  atom nothing scalar"), "unknown-statement");
    EXPECT_EQ(code(kernel + "  atom S vectors q 3, wide"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage nothing global"), "unknown-variable");
    EXPECT_EQ(code(kernel + "  storage K sideways"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  atom S vectors q 3, fusion × 0"), "bad-character");
    EXPECT_EQ(code(kernel + "  storage K global, inner q"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage K global, temporal"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage K global, dimension 1"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage K global, inner x, dimension 9"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage K global, inner x, dimension 1"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  storage K global, inner x, dimension q"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 1"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  prefetch K tiles far, in S"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  prefetch nothing tiles 1, in S"), "unknown-variable");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 1, in nothing"), "unknown-statement");
    EXPECT_EQ(code(kernel + "  prefetch K in S"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  prefetch K blocks 2, in S\n"), "none");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 0, in S\n"), "none");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 0, in S, cache 2\n"), "none");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 0, in S, cache\n"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  prefetch K tiles 0, in S, cache 2 near\n"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1, in S"), "none");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined P in S"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1, beside S"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1 S, in S"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1, in S 2"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  pipelined nothing tiles 1, in S"), "unknown-statement");
    EXPECT_EQ(code(kernel + "  pipelined P tiles 1, in nothing"), "unknown-statement");
    EXPECT_EQ(code(kernel + "  group q 48  2 panels of 3×8 lanes; half is slower\n"), "none");
    EXPECT_EQ(code("  group q = 48\n"), "none");
    // Neither of two clauses that say the same thing is dropped.
    for (const std::string twice :
         {"atom S vectors q 3, rows x 4, rows x 2, over k", "atom S vectors q 3, over k, scalar", "atom S scalar, mma",
          "atom S vectors q 3, over k, cut k 7, cut k 3", "atom S vectors q 3, over k, fusion 0, fusion 0",
          "storage K global, inner k, stages 2, stages 1", "prefetch K tiles 1, in S, cache 2, cache 1",
          "prefetch K blocks 1, in S, in P", "prefetch K blocks 1, tiles 1, in S", "slot S order 0, order 1"})
        EXPECT_EQ(code(kernel + "  " + twice), "bad-schedule") << twice;
    EXPECT_EQ(code(kernel + "  atom S scalar, rows x 4, over k"), "none");
    const auto both = schedules_in("atom S vectors q 3, rows x 4, rows x 2", *plan->kernels[0].scheduled.program);
    ASSERT_FALSE(both.ok());
    EXPECT_EQ(both.errors()[0].message, "atom S is said to be 'rows x 4' and 'rows x 2'");
    // A reason is in words, and may begin with a number of something.
    EXPECT_EQ(code(kernel + "  group q 3 4"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  group q 3 4 5 6"), "bad-schedule");
    EXPECT_EQ(code(kernel + "  group q 3 (4 of them)"), "none");
    EXPECT_EQ(code("kernel nobody\n"), "unknown-kernel");
    EXPECT_EQ(code("kernel nobody\n" + kernel + "  group q 3"), "unknown-kernel");
    // Names that several kernels have are listed once; a statement of the steps is none of these.
    EXPECT_EQ(code(kernel + "  issue S 1"), "none");
    const auto with_comma = schedules_in("stream x 64, group q 5\n", *plan->kernels[0].scheduled.program);
    ASSERT_TRUE(with_comma.ok());
    EXPECT_EQ(with_comma->front().group.at(d.diagram.find_axis("q").value()).value, 5);
    EXPECT_EQ(with_comma->front().stream.at(d.diagram.find_axis("x").value()).value, 64);
}

TEST(Schedule, RefusalsNameWhatIsNearestAndTakeIt) {
    const Derived d = hand::matmul();
    const auto refusal = [&](const std::string& text) {
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{"a.schedule", text});
        const auto plan = choose_plan(d, extents(d, {{"a", 48}, {"b", 19}, {"c", 64}}), generic(), {}, options);
        return plan.ok() ? std::string() : render(plan.errors());
    };
    const std::string in_lines = "group a 48\ngroup c 64\nvector c\n";
    const std::string atom = in_lines + "atom C vectors c 2, rows a 4, over b, cut b ";
    EXPECT_THAT(refusal(atom + "19"), HasSubstr("its loop has 19 values, which parts of at most 18 cut"));
    EXPECT_EQ(refusal(atom + "18"), "");
    const std::string rows = in_lines + "atom C vectors c 2, over b, rows a ";
    EXPECT_THAT(refusal(rows + "5000"),
                AllOf(HasSubstr("5000 rows of a, which has 48 values"), HasSubstr("hint: 6 rows fit")));
    EXPECT_EQ(refusal(rows + "6"), "");
    EXPECT_THAT(refusal("storage A operand, inner b"), HasSubstr("can only be buffer or global"));
    EXPECT_THAT(refusal("storage B buffer, inner c, stages 2"), HasSubstr("can have 1 alone"));
    const std::string ahead = in_lines + "atom C vectors c 2, rows a 4, over b\nprefetch A blocks ";
    EXPECT_THAT(refusal(ahead + "50, in C"),
                HasSubstr("50 blocks of 4 rows ahead, and it has 48 rows: at most 11 can be"));
    EXPECT_EQ(refusal(ahead + "11, in C"), "");
    // The line of the number that is too large is pointed at, and not the first one.
    EXPECT_THAT(refusal("group a 48\nrows 40\nvectors 8"), Not(HasSubstr("| group a 48")));
    // A vector axis by hand is kept, or refused.
    EXPECT_THAT(refusal("group c 1\nvector c"), HasSubstr("kernel C has a single value of c in a tile"));
    EXPECT_THAT(refusal("group c 1\nvector c"), HasSubstr("one of a, b, or none"));
    EXPECT_EQ(refusal("group c 1\nvector none"), "");
    EXPECT_THAT(refusal("kernel C\nwarps 4"), HasSubstr("has no warps"));
    EXPECT_THAT(refusal("kernel C\nblocks 2"), HasSubstr("has no blocks"));
    EXPECT_THAT(refusal("kernel D\n"), HasSubstr("there is no kernel 'D'"));
    EXPECT_THAT(refusal("kernel C\nissue C 1\n"), HasSubstr("no kernel has a line 'issue'"));
}

// Where fewer vectors make the search take another axis, a further rule holds there.
TEST(Schedule, TheNearestNumberOfVectorsIsTaken) {
    const Derived d = derive(parsed("varprod(A[m, k], B[n, k]) -> V[m]\n    P[m, n] = sum(k) A[m, k] * B[n, k]\n"
                                    "    V[m] = var(n) P[m, n]\nsizes m = 149, n = 307, k = 43\n"))
                          .value();
    const Machine machine = load_machine(in_sources("tests/machines/cpu-512.toml")).value();
    const auto planned = [&](std::int64_t vectors) {
        return choose_plan(d, bind_sizes(d.diagram).value(), machine, {item("vectors", "", vectors)});
    };
    const auto refused = planned(20);
    ASSERT_FALSE(refused.ok());
    const std::string before = "the nearest legal number of vectors is ", &hint = refused.errors()[0].hint;
    ASSERT_EQ(hint.substr(0, before.size()), before) << render(refused.errors());
    EXPECT_TRUE(planned(std::stoll(hint.substr(before.size()))).ok());
}

}  // namespace
}  // namespace napkin::test_schedule_words
