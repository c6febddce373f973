// Orders of a loop's turn: recurrences and stages on bodies that a reader can time by hand, and what is read of planned
// kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/block_machine.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/modulo.hpp"
#include "support/ids.hpp"
#include "unit/proven.hpp"

namespace napkin::test_modulo {
namespace {

using proven::attention;
using proven::planned;
using testing::ElementsAre;
using testing::HasSubstr;

ModuloOperation threads(const std::string& name, double own) {
    ModuloOperation out{.name = name, .own = own};
    out.gives_registers = true;
    return out;
}
ModuloOperation product(const std::string& name, double unit) {
    ModuloOperation out{.name = name, .unit = unit};
    out.is_product = true;
    return out;
}

/// Scores, weights, and what the weights are multiplied by, as of an attention.
ModuloBody chain(double scores, double weights, double output) {
    ModuloBody out;
    out.operations = {product("S", scores), threads("P", weights), product("O", output)};
    out.dependences = {{0, 1, 0, true, true, "it reads S"},
                       {1, 0, 1, false, false, "S has one place"},
                       {1, 2, 0, false, true, "it reads P"},
                       {2, 1, 1, false, false, "P has one place"},
                       {2, 2, 1, true, false, "O is one product after the other"}};
    return out;
}

TEST(ModuloBounds, TheLongestCycleOfDependencesForEachTurnIsTheRecurrence) {
    ModuloBody body;
    body.operations = {threads("a", 10), threads("b", 20), threads("c", 30)};
    body.dependences = {{0, 1, 0, false, true, ""}, {1, 0, 1, false, false, ""}};
    EXPECT_DOUBLE_EQ(bounds_of(body).recurrence, 30);
    EXPECT_THAT(bounds_of(body).cycle, testing::UnorderedElementsAre(0, 1));
    // Over three turns c has 60 clocks with a, which is less for each of them; over one it has more.
    body.dependences.push_back({0, 2, 0, false, true, ""});
    body.dependences.push_back({2, 0, 3, false, false, ""});
    EXPECT_DOUBLE_EQ(bounds_of(body).recurrence, 30);
    body.dependences.back().distance = 1;
    EXPECT_DOUBLE_EQ(bounds_of(body).recurrence, 40);
    EXPECT_DOUBLE_EQ(bounds_of(body).issue, 60);
    EXPECT_DOUBLE_EQ(bounds_of(body).pace(), 60);
}

TEST(ModuloBounds, StagesComeRoundAsOftenAsThereAreOfThem) {
    ModuloBody body = chain(100, 150, 80);
    body.copies = {{"K", 700, 1, {0}}, {"V", 700, 1, {2}}};
    for (const int stages : {1, 2, 4}) {
        body.copies[0].stages = body.copies[1].stages = stages;
        EXPECT_DOUBLE_EQ(bounds_of(body).stages, 800.0 / stages) << "K, whose product takes longer";
        EXPECT_EQ(bounds_of(body).copy, 0);
        EXPECT_DOUBLE_EQ(search_order(body).best.pace, std::max(800.0 / stages, 250.0));
    }
    body.copies[1].clocks = 900;
    EXPECT_EQ(bounds_of(body).copy, 1);
}

TEST(ModuloSearch, ScoresOfTheNextTurnRunBesideWhatThreadsMakeOfThem) {
    const ModuloBody body = chain(100, 150, 80);
    const ModuloSearch found = search_order(body);
    EXPECT_THAT(found.best.order.sequence, ElementsAre(0, 2, 1));
    EXPECT_THAT(found.best.order.ahead, ElementsAre(1, 1, 0));
    EXPECT_DOUBLE_EQ(found.best.pace, 250) << "S and P, with O beside P";
    EXPECT_DOUBLE_EQ(found.bounds.recurrence, 250);
    EXPECT_TRUE(found.is_proven());
    EXPECT_DOUBLE_EQ(pace_of(body, in_turn(body)), 330);
    // Where threads have little to do, the products alone make the pace.
    EXPECT_DOUBLE_EQ(search_order(chain(100, 10, 80)).best.pace, 180);
    EXPECT_DOUBLE_EQ(search_order(chain(100, 10, 80)).bounds.unit, 180);
}

TEST(ModuloSearch, RegistersDecideAmongOrdersOfOnePaceAndRuleOutOthers) {
    ModuloBody body = chain(100, 150, 80);
    body.values = {{"S", 64, false, false, {0}, {1}}, {"P", 64, false, true, {1}, {2}}, {"O", 32, true, false, {2}, {2}}};
    EXPECT_EQ(search_order(body).best.registers, 128) << "S, half of P that waits, and O";
    EXPECT_EQ(registers_of(body, in_turn(body)), 96);
    body.registers = 127;
    const ModuloSearch less = search_order(body, modulo_limit, true);
    EXPECT_GT(less.over_registers, 0);
    EXPECT_LE(less.best.registers, 127);
    EXPECT_DOUBLE_EQ(less.best.pace, 330) << "O before S leaves nothing beside P";
    body.registers = 95;
    EXPECT_TRUE(search_order(body).best.order.sequence.empty()) << "no order has the registers";
}

TEST(ModuloSearch, WhatIsBoundTogetherRunsInOneTurn) {
    ModuloBody body = chain(100, 150, 80);
    body.operations[2].bound_to = 0;
    EXPECT_FALSE(search_order(body).best.order.runs_ahead());
    EXPECT_FALSE(may_be(body, {{0, 2, 1}, {1, 1, 0}}));
}

/// A warpgroup alone through the nodes of a scheduled loop, which wait where wait_groups.cpp says so.
double clocks_of_nodes(const ScheduledLoop& loop, const LoopBody& body) {
    std::vector<double> done;  // of products under way
    double now = 0, unit = 0, before = 0;
    for (int turn = 0; turn < 6; ++turn) {
        before = now;
        for (const Node& node : loop.body) {
            if (const auto* settle = std::get_if<WaitGroup>(&node); settle && settle->pending >= 0)
                while (done.size() > at(settle->pending)) now = std::max(now, done.front()), done.erase(done.begin());
            const StepId* s = std::get_if<StepId>(&node);
            const auto o = s ? std::find(body.steps.begin(), body.steps.end(), *s) : body.steps.end();
            if (o == body.steps.end()) continue;
            const ModuloOperation& op = body.body.operations[at(static_cast<int>(o - body.steps.begin()))];
            const double latency = done.empty() ? op.latency : op.latency_beside;
            now += op.own + (op.is_product ? 0 : latency);
            if (!op.is_product) continue;
            unit = std::max(unit, now) + op.unit;
            done.push_back(unit + latency);
        }
    }
    return now - before;
}

TEST(ModuloBody, OfPlannedKernelsWaitsAsTheirProductsAreSettledAndHasNoMoreRegisters) {
    const std::string sums =
        "two(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, W[h, x, e]: bf16) -> O[h, q, d]: bf16, R[h, q, e]: "
        "bf16\n"
        "    S[h, q, x] = k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x]\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n    R[h, q, e] = sum(x) P[h, q, x] * W[h, x, e]\n"
        "sizes h = 16, q = x = 4096, k = d = e = 64\n";
    const std::string weighted =
        "weighted(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = where(x <= q, S[h, q, x] * 0.5^((q - x) / "
        "128), 0)\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 16, q = x = 4096, k = d = 128\n";
    const std::string difference =
        "difference(Q[h, q, k]: bf16, R[h, q, k]: bf16, K[h, x, k]: bf16, L[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, "
        "q, d]: bf16\n"
        "    S[h, q, x] = sigmoid(k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k])\n    T[h, q, x] = sigmoid(k^-0.5 * sum(k) "
        "R[h, q, k] * L[h, x, k])\n"
        "    O[h, q, d] = sum(x) (S[h, q, x] - 0.5 * T[h, q, x]) * V[h, x, d]\nsizes h = 16, q = x = 4096, k = d = "
        "64\n";
    for (const std::string& text :
         {attention(64), attention(128), attention(256), attention(128, "where(x <= q, S[h, q, x] * k^-0.5, -inf)"),
          sums, weighted, difference}) {
        SCOPED_TRACE(text);
        auto p = planned(text);
        // Groups that are cut need registers for the states of two parts, which not every order leaves.
        if (p.plan.kernels.at(0).scheduled.uses_stream_k()) p = planned(text, "scheduler static\n");
        const auto proofs = p.proofs();
        ASSERT_TRUE(proofs.ok()) << render(proofs.errors());
        const ScheduledKernel& kernel = p.plan.kernels.at(0).scheduled;
        for (const LoopProof& proof : *proofs) {
            if (!proof.refusal.empty()) continue;
            const ModuloBody& body = proof.loop.body;
            EXPECT_TRUE(may_be(body, proof.scheduled.order));
            EXPECT_TRUE(proof.is_scheduled_best()) << proof_text(proof);
            EXPECT_TRUE(proof.search.is_proven() && proof.search.is_exhaustive);
            EXPECT_LE(proof.scheduled.registers, proof.kernel_registers);
            EXPECT_NEAR(clocks_of_nodes(kernel.loops.at(0), proof.loop), clocks_alone(body, proof.scheduled.order), 1e-6);
            EXPECT_LE(proof.least_interval, proof.scheduled.interval * (1 + 1e-9));
            for (const UnitBound& u : proof.units) EXPECT_LE(u.clocks, proof.scheduled.interval);
            // All turns of a core take no longer than the kernel.
            const double rounds = static_cast<double>(kernel.num_groups()) / p.machine.cores.value,
                         chunks = static_cast<double>(kernel.extent(kernel.loops[0].loop->axis)) /
                                  static_cast<double>(proof.chunk);
            const double seconds = rounds * chunks * proof.scheduled.interval / p.machine.clock_hz.value;
            EXPECT_TRUE(kernel.has_uneven_groups() || seconds <= p.plan.kernels[0].time.seconds * 1.05);
        }
    }
}

TEST(ModuloBody, SlotsByHandStandAndAreComparedWithTheBestOrder) {
    const auto p = planned(attention(128), "mma_m q\nwarps 12\nrole copies 4\nstream x = 64\nslot S order 0\n");
    const auto proofs = p.proofs();
    ASSERT_TRUE(proofs.ok()) << render(proofs.errors());
    const LoopProof& proof = proofs->at(0);
    EXPECT_FALSE(proof.scheduled.order.runs_ahead());
    EXPECT_FALSE(proof.is_scheduled_best());
    EXPECT_TRUE(proof.best.order.runs_ahead());
    EXPECT_GT(proof.scheduled.interval, proof.best.interval);
    EXPECT_THAT(proof_text(proof), HasSubstr("the scheduled one takes"));
    // The best one's slots, taken as they are, make the best one the schedule's.
    ScheduledKernel k = p.plan.kernels[0].scheduled;
    for (const auto& [step, slot] : slots_of(proof.loop, proof.best.order)) k.schedule.slots[step] = slot;
    std::erase_if(k.loops[0].body, [](const Node& node) { return std::holds_alternative<WaitGroup>(node); });
    apply_slots(k);
    EXPECT_TRUE(slot_faults(k).empty());
    EXPECT_EQ(order_of(k, k.loops[0], proof.loop), proof.best.order);
}

}  // namespace
}  // namespace napkin::test_modulo
