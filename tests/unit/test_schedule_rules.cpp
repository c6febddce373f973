// Each rule of a schedule, broken once on purpose in a plan that keeps all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "diagram/sizes.hpp"
#include "hand_derived.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::test_schedule_rules {
namespace {

using hand::extents;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ScheduleRules : public testing::Test {
protected:
    static ScheduledKernel planned(const Derived& d, const Extents& e) {
        const auto plan = choose_plan(d, e, load_machine("generic-cpu").value());
        EXPECT_TRUE(plan.ok()) << render(plan.errors());
        EXPECT_THAT(verify(plan->kernels[0].scheduled), IsEmpty());
        return plan->kernels[0].scheduled;
    }
    /// What is said of the plan once its schedule is changed.
    template <class F>
    static std::string broken(const ScheduledKernel& k, F change) {
        KernelSchedule s = k.schedule;
        change(s);
        const auto messages = verify(scheduled(k.program, 0, k.extents, s, k.unit));
        return messages.empty() ? "" : messages.front();
    }
    static VariableId variable(const ScheduledKernel& k, const std::string& name) {
        for (const VariableId v : k.kernel->variables.ids())
            if (k.kernel->variables[v].name == name) return v;
        throw std::out_of_range(name);
    }
    static Atom& atom(const ScheduledKernel& k, KernelSchedule& s, const std::string& name) {
        const auto names = atom_names(*k.kernel);
        return s.atoms.at(AtomId::of(std::find(names.begin(), names.end(), name) - names.begin()));
    }

    const Derived attention_ = hand::streamed({{"h"}, {}});
    const ScheduledKernel k_ = planned(attention_,
                                       extents(attention_, {{"h", 4}, {"q", 512}, {"x", 512}, {"k", 64}, {"d", 64}}));
    const AxisId q_ = attention_.diagram.find_axis("q").value(), x_ = attention_.diagram.find_axis("x").value();
};

TEST_F(ScheduleRules, ABlockFitsTheRegisters) {
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "S").rows = 40; }),
                AllOf(HasSubstr("the block of S takes"), HasSubstr("rows fit")));
}

TEST_F(ScheduleRules, VectorsLieAlongWhatIsContiguous) {
    EXPECT_THAT(broken(k_,
                       [&](KernelSchedule& s) {
                           Atom& a = atom(k_, s, "S");
                           std::replace(a.points.begin(), a.points.end(), x_, q_);
                           if (a.row_axis == x_) a.row_axis = q_;
                           a.vector_axis = x_;
                       }),
                HasSubstr("S fills vectors along x, along which its values do not lie beside each other"));
}

TEST_F(ScheduleRules, LoopsGoOverTheStatementsOwnAxes) {
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "S").reduced.clear(); }),
                HasSubstr("the loops of S are not over its reduced axes"));
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "S").points.push_back(q_); }),
                HasSubstr("the loops of S are not over its points"));
}

TEST_F(ScheduleRules, OnlySumsAreCut) {
    EXPECT_THAT(broken(k_,
                       [&](KernelSchedule& s) {
                           Atom& a = atom(k_, s, "S");
                           a.cut_axis = x_, a.cut = 4;
                       }),
                HasSubstr("S cannot be cut along x"));
}

TEST_F(ScheduleRules, OneRunHasOnePanel) {
    EXPECT_THAT(broken(k_,
                       [&](KernelSchedule& s) {
                           atom(k_, s, "S").rows = 1, atom(k_, s, "S").vectors = k_.schedule.panel_vectors + 1;
                       }),
                HasSubstr("S is in a run, but does not go along its panels"));
}

TEST_F(ScheduleRules, FollowersRideBehindWhatTheyReduce) {
    // Y sums over x, too, but of products that no loop before it computes.
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "Y").follows = true; }),
                HasSubstr("Y cannot ride in the loops of the statement before it"));
}

TEST_F(ScheduleRules, RunsStandTogetherInOneList) {
    // O ends the group behind the loop, in which the runs of the others are.
    EXPECT_THAT(broken(k_,
                       [&](KernelSchedule& s) {
                           atom(k_, s, "O").run = atom(k_, s, "S").run, atom(k_, s, "O").vector_inner = false;
                       }),
                HasSubstr("a loop or another list of statements ends before it"));
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "S").vector_inner = true; }),
                HasSubstr("S is in a run, whose loop over panels is around all others"));
    // What stands between the statements of a run comes before it, and the correction is of the maximum that the run
    // computes.
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { atom(k_, s, "delta").run = -1; }), HasSubstr("would run before"));
}

TEST_F(ScheduleRules, PlacesAreThoseThatTheirVariablesMayHave) {
    const auto held = [&](const std::string& name, MemorySpace holding) {
        return broken(k_, [&](KernelSchedule& s) { s.places[variable(k_, name)].holding = holding; });
    };
    EXPECT_THAT(held("S", MemorySpace::global), HasSubstr("S cannot be read where it lies in memory"));
    EXPECT_THAT(held("Y", MemorySpace::packed_panel), HasSubstr("Y cannot lie in panels one after the other"));
    EXPECT_THAT(held("Y", MemorySpace::register_panel), HasSubstr("Y does not live within one run"));
    EXPECT_THAT(broken(k_, [&](KernelSchedule& s) { s.places[variable(k_, "K")].stages = 2; }),
                HasSubstr("K has 2 stages"));
}

TEST_F(ScheduleRules, AResultIsWrittenInPlaceByTheOneStatementThatMakesIt) {
    const auto rows = [](const Derived& d) { return planned(d, extents(d, {{"r", 512}, {"c", 256}})); };
    const ScheduledKernel k = rows(hand::softmax());
    const VariableId y = variable(k, "Y");
    EXPECT_EQ(k.place(y).holding, MemorySpace::global);
    EXPECT_FALSE(k.is_held(y));
    EXPECT_EQ(k.layout(y).strides, (std::vector<std::int64_t>{256, 1}));
    EXPECT_THAT(k.dense, ElementsAre(true));
    // A tile of it would take the memory of what it is made of: the arena is no smaller then, and any strides are
    // taken.
    KernelSchedule in_tile = k.schedule;
    in_tile.places[y].holding = MemorySpace::buffer;
    const ScheduledKernel copied = scheduled(k.program, 0, k.extents, in_tile, k.unit);
    EXPECT_THAT(verify(copied), IsEmpty());
    EXPECT_GE(copied.arena_values, k.arena_values);
    EXPECT_THAT(copied.dense, ElementsAre(false));

    const auto refused = [&](const ScheduledKernel& kernel, const std::string& name) {
        return broken(kernel, [&](KernelSchedule& s) { s.places[variable(kernel, name)].holding = MemorySpace::global; });
    };
    EXPECT_THAT(refused(k, "E"), HasSubstr("E cannot be read where it lies in memory"));
    EXPECT_THAT(refused(rows(hand::softmax(DType::f32, true)), "E"),
                HasSubstr("E cannot be written where it goes in memory: a statement reads it"));
    EXPECT_THAT(refused(rows(hand::softmax(DType::f16)), "Y"), HasSubstr("memory has it in another type"));
    EXPECT_THAT(refused(k_, "O"), HasSubstr("its neighbours in memory do not lie beside each other"));
    const Derived matmul = hand::matmul();
    EXPECT_THAT(refused(planned(matmul, extents(matmul, {{"a", 256}, {"b", 256}, {"c", 256}})), "C"),
                HasSubstr("it grows from chunk to chunk"));
    EXPECT_THAT(broken(k,
                       [&](KernelSchedule& s) {
                           Atom& a = atom(k, s, "Y");
                           a.run = 0, a.follows = true;
                       }),
                Not(IsEmpty()));
}

TEST_F(ScheduleRules, TilesAheadAndStoresPastTheCachesAreForWhatGoesAlongMemory) {
    hand::Builder builder;
    const AxisId r = builder.axis("r"), c = builder.axis("c");
    const ArrayId X = builder.input("X", {r, c}), G = builder.input("G", {c}), M = builder.output("M", {r}),
                  E = builder.temporary("E", {r, c}), Y = builder.output("Y", {r, c});
    using namespace hand;
    builder.kernel.stages.emplace_back(
        Block{{fold(M, ReduceOp::max, {c}, builder.get(X)), map(E, exp(builder.get(X)) * builder.get(G)),
               map(Y, builder.get(E) * builder.get(E))}});
    const Derived d = builder.finish("Y", {r});
    const ScheduledKernel k = planned(d, extents(d, {{"r", 4096}, {"c", 256}}));
    const auto names = atom_names(*k.kernel);
    const auto fetched = [&](const std::string& name, const std::string& in, std::int64_t ahead = 1) {
        const auto atom = AtomId::of(std::find(names.begin(), names.end(), in) - names.begin());
        return broken(k, [&](KernelSchedule& s) { s.prefetches = {{variable(k, name), atom, {ahead, "", true}}}; });
    };
    EXPECT_EQ(fetched("X", "E"), "");
    EXPECT_EQ(fetched("G", "E", 0), "");
    EXPECT_THAT(fetched("G", "E"), HasSubstr("G cannot be fetched ahead in E: every group reads the same tile"));
    EXPECT_THAT(fetched("E", "Y"), HasSubstr("it is not read where it lies in memory"));
    EXPECT_THAT(fetched("X", "E", 1 << 20), HasSubstr("X is fetched 1048576 groups ahead, and there are"));
    const auto into = [&](int cache) {
        const auto atom = AtomId::of(std::find(names.begin(), names.end(), "E") - names.begin());
        return broken(k, [&](KernelSchedule& s) {
            s.prefetches = {{variable(k, "X"), atom, {1, "", true}, Fetched::groups, cache}};
        });
    };
    EXPECT_EQ(into(2), "");
    EXPECT_THAT(into(3), HasSubstr("X is fetched into cache 3, and caches of one core are 1 and 2"));
    const ScheduledKernel attention = k_;
    const auto at_s = atom_names(*attention.kernel);
    EXPECT_THAT(broken(attention,
                       [&](KernelSchedule& s) {
                           s.prefetches = {{variable(k_, "V"),
                                            AtomId::of(std::find(at_s.begin(), at_s.end(), "S") - at_s.begin()),
                                            {1, "", true}}};
                       }),
                HasSubstr("V cannot be fetched ahead in S: "));

    // Rows of K lie beside each other in pages; V is read along its rows, and S makes rows of its own.
    const auto rows_ahead = [&](const std::string& name, const std::string& in, std::int64_t ahead = 1) {
        const auto atom = AtomId::of(std::find(at_s.begin(), at_s.end(), in) - at_s.begin());
        return broken(attention, [&](KernelSchedule& s) {
            s.prefetches = {{variable(k_, name), atom, {ahead, "", true}, Fetched::blocks}};
        });
    };
    EXPECT_EQ(rows_ahead("K", "S"), "");
    EXPECT_EQ(rows_ahead("V", "S", 0), "");
    EXPECT_THAT(rows_ahead("K", "S", 4096), HasSubstr("K is fetched 4096 blocks of 4 rows ahead, and it has 512"));
    EXPECT_THAT(rows_ahead("V", "S"),
                HasSubstr("V cannot be fetched ahead in S: the statement's rows are not the tile's"));
    EXPECT_THAT(rows_ahead("K", "P"), HasSubstr("K cannot be fetched ahead in P: the statement does not reduce"));
    EXPECT_THAT(rows_ahead("Q", "S"), HasSubstr("Q cannot be fetched ahead in S: it is not read where it lies"));

    const auto past = [&](const std::string& name) {
        return broken(k, [&](KernelSchedule& s) { s.places[variable(k, name)].non_temporal = true; });
    };
    EXPECT_EQ(past("Y"), "");
    EXPECT_THAT(past("X"), HasSubstr("X cannot be written past the caches"));
    EXPECT_THAT(past("E"), HasSubstr("E cannot be written past the caches: it is not written in place"));
    EXPECT_THAT(past("M"), HasSubstr("M cannot be written past the caches: "));
}

TEST_F(ScheduleRules, WhatLivesAtTheSameTimeLiesApart) {
    ScheduledKernel k = k_;
    k.layouts[variable(k, "Y")].offset = k.layouts[variable(k, "S")].offset;
    EXPECT_THAT(verify(k), Not(IsEmpty()));
    EXPECT_THAT(verify(k).front(), HasSubstr("share memory while both live"));
    k = k_;
    k.layouts[variable(k, "Y")].offset = k.arena_values;
    EXPECT_THAT(verify(k).front(), HasSubstr("Y lies outside of the arena"));
}

TEST_F(ScheduleRules, AFileThatBreaksOneIsRefused) {
    PlanOptions options;
    options.file = std::make_shared<const Source>(
        Source{"a.schedule", "kernel " + attention_.kernels[0].name + "\n  storage S global, inner x\n"});
    const auto plan = choose_plan(attention_, k_.extents, load_machine("generic-cpu").value(), {}, options);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.errors().front().code, "broken-schedule");
    EXPECT_THAT(plan.errors().front().message, HasSubstr("S cannot be read where it lies in memory"));
}

// Beside the text, too, whatever it sets: else the rule is found broken after the plan, and called a fault of napkin.
TEST(ScheduleRulesOfGpus, ALineOfTheTextThatBreaksOneIsRefused) {
    for (const std::string line : {"ping_pong on", "rescaling rescale", "scheduler dynamic"}) {
        const std::string text =
            "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
            "sizes m = n = k = 4096\nschedule\n    " +
            line + "\n";
        const Derived derived = derived_from(text);
        const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(),
                                      {}, {});
        // Blocks with a role that copies are tried for it, though nothing says so.
        if (line == "scheduler dynamic") {
            ASSERT_TRUE(plan.ok()) << render(plan.errors());
            EXPECT_TRUE(plan->kernels.at(0).scheduled.is_dynamic());
            continue;
        }
        ASSERT_FALSE(plan.ok()) << line;
        EXPECT_EQ(plan.errors().front().code, "broken-schedule");
        const SourceRange& range = plan.errors().front().range;
        EXPECT_EQ(range.source->text.substr(range.begin, range.end - range.begin), line);
    }
}

/// A plan's own schedule, in which one line is another.
TEST_F(ScheduleRules, AreShownAtTheLineThatBreaksThem) {
    // Smaller groups leave room for what places by hand take.
    KernelSchedule small = k_.schedule;
    small.group.at(attention_.diagram.find_axis("h").value()).value = 1;
    const std::string whole = to_string(*k_.program, *k_.kernel, small);
    // The line that begins so becomes this one; where none does, it comes last.
    const auto shown = [&](const std::string& begin, const std::string& line) {
        std::istringstream lines(whole);
        std::string text, other;
        bool is_there = false;
        while (std::getline(lines, other)) {
            std::istringstream words(other);
            std::string kind, name;
            words >> kind >> name;
            const bool is_it = kind + " " + name == begin;
            is_there |= is_it;
            text += (is_it ? "  " + line : other) + "\n";
        }
        if (!is_there) text += "  " + line + "\n";
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{"a.schedule", text});
        const auto plan = choose_plan(attention_, k_.extents, load_machine("generic-cpu").value(), {}, options);
        if (plan) return std::string("no error");
        const Diagnostic& error = plan.errors().front();
        EXPECT_EQ(error.code, "broken-schedule") << render(plan.errors());
        if (!error.range.source) return std::string("nowhere");
        return error.range.source->text.substr(error.range.begin, error.range.end - error.range.begin);
    };
    EXPECT_EQ(shown("rows", ""), "no error") << whole;
    for (const auto& [begin, line] :
         std::vector<std::pair<std::string, std::string>>{{"storage S", "storage S global, inner q"},
                                                          {"storage K", "storage K packed_panel, inner k"},
                                                          {"storage Y", "storage Y register_panel, inner q"},
                                                          {"storage K", "storage K buffer, inner k, stages 2"},
                                                          {"atom S", "atom S vectors q 1, rows x 40, points h, over k"},
                                                          {"atom delta", "atom delta scalar, points h"},
                                                          {"slot P", "slot P order 1"},
                                                          {"slot load V", "slot load V order 1"},
                                                          {"role copies", "role copies 4"},
                                                          {"prefetch V", "prefetch V tiles 1, in S"}})
        EXPECT_EQ(shown(begin, line), line) << whole;
    // For a line that is not in the file the first line of the kernel stands, or another one of its name.
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{
        "a.schedule", "kernel " + attention_.kernels[0].name +
                          "\n  storage Q buffer, inner k\n  storage K buffer, inner k\n  storage S global, inner x\n"});
    const auto plan = choose_plan(attention_, k_.extents, load_machine("generic-cpu").value(), {}, options);
    ASSERT_FALSE(plan.ok());
    for (const Diagnostic& error : plan.errors())
        EXPECT_EQ(line_column(*error.range.source, error.range.begin).line, 4U) << render(plan.errors());
}

}  // namespace
}  // namespace napkin::test_schedule_rules
