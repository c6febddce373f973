// Groups of rows whose tiles are fetched ahead into the first cache, and whose results go out beside what the next
// group computes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "emit/cpu/emit.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/ids.hpp"
#include "syntax/parse.hpp"
#include "tile/verify.hpp"

namespace napkin::test_tiles_ahead {
namespace {

using testing::AllOf, testing::HasSubstr;

/// Rows of 4 KiB.
constexpr const char* norm =
    "f(X[r, c]) -> Y[r, c]\n    M[r] = mean(c) X[r, c]\n    V[r] = mean(c) (X[r, c] - M[r])^2\n"
    "    Y[r, c] = (X[r, c] - M[r]) * (V[r] + 1e-5)^-0.5\nsizes r = 65536, c = 1024\n";

/// Rows of 8 KiB.
constexpr const char* softmax =
    "f(X[r, c], G[c]) -> Y[r, c]\n    M[r] = max(c) X[r, c]\n    E[r, c] = exp(X[r, c] - M[r])\n    Z[r] = sum(c) E[r, "
    "c]\n"
    "    Y[r, c] = E[r, c] / Z[r] * G[c]\nsizes r = 4096, c = 2048\n";

/// Two cores whose memory copies 36 GB/s past the caches.
Machine machine(double first_cache) {
    Machine m = load_machine("generic-cpu").value();
    const auto all = [](double value) { return Figure{value, "test"}; };
    m.cores = all(2);
    for (std::size_t l = 1; l < m.levels.size(); ++l) m.levels[l].instances = all(l == 1 ? 1 : 2);
    m.levels[1].bandwidth_bytes_per_s = all(30e9), m.levels[1].core_bandwidth_bytes_per_s = all(15e9);
    m.levels[1].copy_bandwidth_bytes_per_s = all(24e9), m.levels[1].core_copy_bandwidth_bytes_per_s = all(12e9);
    m.nontemporal_copy_bytes_per_s = all(36e9), m.core_nontemporal_copy_bytes_per_s = all(18e9);
    m.nontemporal_from_bytes = all(1e6);
    m.levels.back().capacity_bytes = all(first_cache);
    return m;
}

Result<Plan> whole_plan(const Machine& on, const std::string& schedule, const char* text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto derived = derive(*diagram);
    const auto sizes = bind_sizes(*diagram);
    PlanOptions options;
    if (!schedule.empty())
        options.file = std::make_shared<const Source>(Source{"a.schedule", "kernel Y\n  " + schedule + "\n"});
    return choose_plan(choose_form(*derived, *sizes, on), *sizes, on, {}, options);
}
std::optional<KernelPlan> plan_for(const Machine& on, const std::string& schedule = "", const char* text = norm) {
    auto plan = whole_plan(on, schedule, text);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    if (!plan.ok() || plan->kernels.size() != 1) return std::nullopt;
    return std::move(plan->kernels[0]);
}

const Choice& rows(const KernelPlan& plan) { return plan.schedule().group.begin()->second; }

TEST(TilesAhead, AreAsLargeAsTheFirstCacheHoldsBesideThoseAtHand) {
    for (const double first_cache : {32.0 * 1024, 64.0 * 1024, 128.0 * 1024}) {
        SCOPED_TRACE(first_cache);
        const auto plan = plan_for(machine(first_cache));
        ASSERT_TRUE(plan);
        ASSERT_EQ(plan->schedule().prefetches.size(), 1U);
        const std::int64_t ahead = plan->schedule().prefetches[0].ahead.value;
        EXPECT_LE(static_cast<double>((1 + ahead) * rows(*plan).value * 4096), first_cache);
        // The search alone finds larger tiles where the cache is small.
        if (first_cache < 64 * 1024) {
            EXPECT_THAT(rows(*plan).reason,
                        AllOf(HasSubstr("fetched ahead, it fits L1 with the group at hand"), HasSubstr("slower")));
        }
        EXPECT_THAT(verify(plan->scheduled), testing::IsEmpty());
    }
    // A row alone does not fit.
    const auto none = plan_for(machine(4.0 * 1024));
    ASSERT_TRUE(none);
    EXPECT_THAT(rows(*none).reason, testing::Not(HasSubstr("fetched ahead")));
}

// Then a kernel takes about as long as a copy of its bytes; where it waits in one statement after the other it takes
// longer, and never less.
TEST(TilesAhead, LetWhatComesAndGoesRunBesideAllThatIsComputed) {
    const Machine m = machine(64.0 * 1024);
    const double copy = 2 * 65536.0 * 1024 * 4 / m.nontemporal_copy_bytes_per_s.value / m.sustained_share.value;
    const auto fits = plan_for(m, "group r 4"), exceeds = plan_for(m, "group r 32\n  prefetch X tiles 1, in Y"),
               none = plan_for(m, "group r 4\n  prefetch X tiles 0, in Y"),
               cached = plan_for(m, "group r 4\n  storage Y global, inner c");
    ASSERT_TRUE(fits && exceeds && none && cached);
    EXPECT_GE(fits->time.seconds, copy);
    EXPECT_LT(fits->time.seconds, 1.1 * copy);
    EXPECT_GT(exceeds->time.seconds, 1.1 * fits->time.seconds);
    EXPECT_GT(none->time.seconds, fits->time.seconds);
    EXPECT_GT(cached->time.seconds, 1.2 * fits->time.seconds)
        << "a line that is stored through the caches is read first";
    EXPECT_EQ(rows(*exceeds).value, 32) << "what is by hand stays";
}

// Where the first cache does not hold what is fetched ahead beside what it is at hand, they would displace each other
// there.
TEST(TilesAhead, ComeIntoTheSecondCacheWhereTheFirstDoesNotHoldThem) {
    const auto cache = [](double first_cache, const std::string& schedule) {
        const auto plan = plan_for(machine(first_cache), "group r 1" + schedule, softmax);
        EXPECT_TRUE(plan);
        return plan && plan->schedule().prefetches.size() == 1 ? plan->schedule().prefetches[0].cache : 0;
    };
    // Rows of X at hand and ahead, E and G are of 8 KiB each.
    EXPECT_EQ(cache(36.0 * 1024, ""), 1);
    EXPECT_EQ(cache(30.0 * 1024, ""), 2);
    EXPECT_EQ(cache(30.0 * 1024, "\n  prefetch X tiles 1, in E"), 1) << "what is by hand stays";
    EXPECT_EQ(cache(36.0 * 1024, "\n  prefetch X tiles 1, in E, cache 2"), 2);
    // Beside its rows a variance has a few numbers: a row to come takes the place of what has been read.
    const auto alone = plan_for(
        machine(6.0 * 1024), "group r 1",
        "f(X[r, c]) -> Y[r]\n    M[r] = mean(c) X[r, c]\n    Y[r] = mean(c) (X[r, c] - M[r])^2\n"
        "sizes r = 65536, c = 1024\n");
    ASSERT_TRUE(alone);
    ASSERT_EQ(alone->schedule().prefetches.size(), 1U);
    EXPECT_EQ(alone->schedule().prefetches[0].cache, 1);
    const auto plan = plan_for(machine(30.0 * 1024), "group r 1", softmax);
    ASSERT_TRUE(plan);
    EXPECT_THAT(to_string(*plan->scheduled.program, *plan->scheduled.kernel, plan->schedule()),
                testing::ContainsRegex("prefetch X +tiles 1, in E, cache 2  # "));
    const auto whole = whole_plan(machine(30.0 * 1024), "group r 1", softmax);
    EXPECT_THAT(cpu::emit(whole.value().program()).text, HasSubstr("prefetch<64, 64, 2>(&X_ahead["));
}

// The rows of a block to come go where the schedule says, too.
TEST(TilesAhead, OfBlocksComeIntoTheCacheOfTheSchedule) {
    constexpr const char* product =
        "f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\nsizes a = 512, b = 512, c = 512\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", product}));
    const auto derived = derive(*diagram);
    const auto code = [&](const std::string& cache) {
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{"a.schedule",
                                                             "kernel C\n  atom C vectors c 3, rows a 4, over b\n  "
                                                             "storage A global, inner b\n  prefetch A blocks 1, in C" +
                                                                 cache + "\n"});
        const auto plan = choose_plan(*derived, bind_sizes(*diagram).value(), machine(36.0 * 1024), {}, options);
        return plan.ok() ? cpu::emit(plan->program()).text : render(plan.errors());
    };
    EXPECT_THAT(code(""), HasSubstr("prefetch<64, 64>(&A["));
    EXPECT_THAT(code(", cache 2"), HasSubstr("prefetch<64, 64, 2>(&A["));
}

// A reduction across lanes takes its operands one after the other.
TEST(Chains, AreRefusedWhereRegistersDoNotHoldThem) {
    const auto refused = [&](int vectors) {
        const auto plan = whole_plan(machine(36.0 * 1024), fmt::format("atom Z vectors c {} across, points r", vectors),
                                     softmax);
        return plan.ok() ? std::string() : render(plan.errors());
    };
    EXPECT_EQ(refused(14), "");
    EXPECT_THAT(refused(15), AllOf(HasSubstr("takes 17 registers of 16: 1 row × 15 vectors, 1 operand and a broadcast"),
                                   HasSubstr("hint: 14 vectors fit")));
}

// A vector of 32 bytes is half a line; of a vector each, a line would be asked for twice.
TEST(TilesAhead, AreAskedForOnceALine) {
    const auto plan = plan_for(machine(36.0 * 1024), "group r 1", softmax);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->schedule().panel_vectors, 2);
}

// One maximum of a row waits for the other: as many beside each other as the latency takes keep the unit busy.
TEST(Chains, AreAsManyAsHideTheLatencyOfEach) {
    const auto vectors = [](double latency, const char* text) {
        Machine m = machine(36.0 * 1024);
        m.fma_latency_clocks = {latency, "test"};
        const auto plan = plan_for(m, "group r 1", text);
        EXPECT_TRUE(plan);
        std::vector<int> out;
        for (const Atom& atom : plan->schedule().atoms)
            if (atom.across) out.push_back(atom.vectors);
        return out;
    };
    EXPECT_EQ(vectors(4, softmax), (std::vector<int>{8, 8}));
    EXPECT_EQ(vectors(2, softmax), (std::vector<int>{4, 4}));
    EXPECT_EQ(vectors(40, softmax), (std::vector<int>{8, 8})) << "half of the registers";
}

// The exponentials take as long as reading and writing do; what is stored beside none of them takes time of its own.
TEST(TilePipelining, LetsResultsGoOutBesideWhatTheNextGroupComputes) {
    const Machine m = machine(64.0 * 1024);
    const auto plan = plan_for(m, "group r 1", softmax),
               none = plan_for(m, "group r 1\n  pipelined Y tiles 0, in E", softmax);
    ASSERT_TRUE(plan && none);
    const KernelSchedule& s = plan->schedule();
    const std::vector<std::string> names = atom_names(*plan->scheduled.kernel);
    ASSERT_EQ(s.tile_pipelining.size(), 1U);
    EXPECT_EQ(names.at(at(s.tile_pipelining[0].atom)), "Y");
    EXPECT_EQ(names.at(at(s.tile_pipelining[0].in)), "E");
    EXPECT_THAT(s.tile_pipelining[0].groups.reason, HasSubstr("stores beside what E computes; "));
    EXPECT_LT(plan->time.seconds, 0.99 * none->time.seconds);
    ASSERT_EQ(none->schedule().tile_pipelining.size(), 1U) << "what is by hand stays";
    EXPECT_TRUE(none->schedule().tile_pipelining[0].groups.by_user);
    EXPECT_THAT(to_string(*plan->scheduled.program, *plan->scheduled.kernel, s),
                testing::ContainsRegex("pipelined Y +tiles 1, in E  # "));
    for (const auto& p : {plan, none}) EXPECT_THAT(verify(p->scheduled), testing::IsEmpty());
    // What Y reads of a group stays until the next one has passed, and nothing else takes its place.
    const auto lives = [&](const char* name) {
        const auto& variables = plan->scheduled.kernel->variables;
        const auto v = std::find_if(variables.begin(), variables.end(), [&](const Variable& x) { return x.name == name; });
        return plan->scheduled.layouts[VariableId::of(v - variables.begin())].lives;
    };
    for (const char* name : {"E", "Z"}) {
        ASSERT_EQ(lives(name).size(), 1U);
        EXPECT_EQ(lives(name)[0].first, 0);
        EXPECT_GE(lives(name)[0].last, plan->scheduled.steps.back().position);
    }
    EXPECT_GT(lives("M")[0].first, 0);
    EXPECT_EQ(plan->time.transfers, none->time.transfers);
    // Where memory takes longest the model says nothing of it, and the plan defers none the less.
    Machine slow = m;
    slow.nontemporal_copy_bytes_per_s.value = 9e9, slow.core_nontemporal_copy_bytes_per_s.value = 4.5e9;
    slow.levels[1].bandwidth_bytes_per_s.value = slow.levels[1].copy_bandwidth_bytes_per_s.value = 8e9;
    slow.levels[1].core_bandwidth_bytes_per_s.value = slow.levels[1].core_copy_bandwidth_bytes_per_s.value = 4e9;
    const auto waiting = plan_for(slow, "group r 1", softmax);
    ASSERT_TRUE(waiting);
    ASSERT_EQ(waiting->schedule().tile_pipelining.size(), 1U);
    EXPECT_THAT(waiting->schedule().tile_pipelining[0].groups.reason, HasSubstr("as fast without by the model"));
    // Stores through the caches wait for nothing that could be beside them.
    const auto cached = plan_for(m, "group r 1\n  storage Y global, inner c", softmax);
    ASSERT_TRUE(cached);
    EXPECT_THAT(cached->schedule().tile_pipelining, testing::IsEmpty());
}

TEST(TilePipelining, IsRefusedWhereItWouldReadOrWriteAnotherGroup) {
    const auto plan = plan_for(machine(64.0 * 1024), "group r 1", softmax);
    ASSERT_TRUE(plan);
    const ScheduledKernel& k = plan->scheduled;
    const std::vector<std::string> names = atom_names(*k.kernel);
    const auto atom = [&](const char* name) {
        return AtomId::of(std::find(names.begin(), names.end(), name) - names.begin());
    };
    const auto refused = [&](
                             const ScheduledKernel& of, const char* what, const char* in, std::int64_t groups = 1,
                             const std::function<void(KernelSchedule&)>& change = [](KernelSchedule&) {}) {
        KernelSchedule s = of.schedule;
        s.tile_pipelining = {{atom(what), atom(in), {groups, "", true}}};
        change(s);
        const auto messages = verify(scheduled(of.program, 0, of.extents, s, of.unit));
        return messages.empty() ? std::string("nothing") : messages.front();
    };
    EXPECT_EQ(refused(k, "Y", "E"), "nothing");
    EXPECT_EQ(refused(k, "Y", "M", 0), "nothing");
    EXPECT_THAT(refused(k, "Y", "M"),
                HasSubstr("Y cannot run for the group before in the loops of M: only maps share loops so"));
    EXPECT_THAT(refused(k, "E", "Y"), HasSubstr("the other one does not compute before it"));
    EXPECT_THAT(refused(k, "Y", "Y"), HasSubstr("the other one does not compute before it"));
    EXPECT_THAT(refused(k, "E", "M"), HasSubstr("its result is not written in place"));
    EXPECT_THAT(refused(k, "Y", "E", 2),
                HasSubstr("Y is deferred by 2 of 4096 groups, and tiles are held for one group more"));
    EXPECT_THAT(refused(k, "Y", "E", 1, [&](KernelSchedule& s) { s.group.begin()->second.value = 4096; }),
                HasSubstr("Y is deferred by 1 of 1 groups"));
    EXPECT_THAT(refused(k, "Y", "E", 1, [&](KernelSchedule& s) { s.group.begin()->second.value = 3; }),
                HasSubstr("some groups have fewer points than others"));
    EXPECT_THAT(refused(k, "Y", "E", 1, [&](KernelSchedule& s) { s.atoms[atom("Y")].vectors = 4; }),
                HasSubstr("the two do not run the same blocks in the same loops"));
    EXPECT_THAT(refused(k, "Y", "E", 1, [&](KernelSchedule& s) { s.prefetches.at(0).atom = atom("Y"); }),
                HasSubstr("tiles are fetched ahead in its own loops"));
    EXPECT_THAT(refused(k, "Y", "E", 1, [&](KernelSchedule& s) { s.tile_pipelining.push_back(s.tile_pipelining[0]); }),
                HasSubstr("another statement is deferred to the loops of E, too"));
    // What the statement reads is another group's by then.
    const auto body = [&](const std::string& last) {
        std::string text(softmax);
        text.replace(text.find("E[r, c] / Z[r] * G[c]"), std::string("E[r, c] / Z[r] * G[c]").size(), last);
        const auto other = plan_for(machine(64.0 * 1024), "group r 1", text.c_str());
        return other ? refused(other->scheduled, "Y", "E") : "no plan";
    };
    EXPECT_EQ(body("E[r, c] / Z[r] + X[r, c]"), "nothing") << "the input lies in memory still";
    EXPECT_EQ(body("E[r, c] / Z[r] + c"), "nothing") << "all groups have all columns";
    EXPECT_THAT(body("E[r, c] / Z[r] + M[r]"), HasSubstr("it reads M, which is overwritten before"));
    EXPECT_THAT(body("E[r, c] / Z[r] + r"), HasSubstr("it computes with where its group stands"));
}

}  // namespace
}  // namespace napkin::test_tiles_ahead
