// Slots that would run a statement before what it needs, or over what is still needed: each is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "plan/blocks.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::test_slots {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SlotFaults : public testing::Test {
protected:
    Result<Plan> planned(const std::string& lines = "") const {
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{
            "by_hand.schedule", "mma_m q\nwarps 8\nrole copies 4\ngroup h = 1\ngroup q = 128\nstream x = 64\n" + lines});
        return choose_blocks(derived_, bind_sizes(derived_.diagram, {}).value(), load_machine("h200").value(), {}, options);
    }
    static StepId statement(const ScheduledKernel& k, const std::string& name) {
        const std::vector<std::string> names = statement_names(*k.kernel);
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) throw std::out_of_range(name);
        return StepId::of(found - names.begin());
    }
    /// What is said where these statements have slots, and all others run as they stand.
    std::vector<std::string> faults(const std::map<std::string, Slot>& slots) const {
        const ScheduledKernel& k = plan_.kernels.at(0).scheduled;
        KernelSchedule s = k.schedule;
        for (auto& [number, slot] : s.slots) slot.order = slot.stage_offset = 0;
        for (const auto& [name, slot] : slots) s.slots[statement(k, name)] = slot;
        ScheduledKernel changed = with_sizes(unscheduled(k.program, 0, k.extents, k.unit), s);
        apply_atoms(changed);
        apply_slots(changed);
        return slot_faults(changed);
    }
    static Slot slot(int position, int ahead = 0) {
        Slot out;
        out.order = position, out.stage_offset = ahead;
        return out;
    }

    const Derived derived_ = derived_from(
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 16, q = x = 2048, k = d = 64\n");
    const Plan plan_ = planned().value();
};

TEST_F(SlotFaults, AreNoneWhereStatementsKeepTheirOrder) {
    ASSERT_TRUE(plan_.kernels.at(0).scheduled.on_tensor_cores());
    EXPECT_THAT(faults({}), IsEmpty());
    EXPECT_THAT(faults({{"weight", slot(1)}, {"P_Z_acc", slot(2)}, {"O_acc", slot(2)}}), IsEmpty());
    // All that makes the weights is a turn ahead of the product that takes them.
    EXPECT_THAT(faults({{"S", slot(0, 1)},
                        {"O_acc", slot(1)},
                        {"P_M_old", slot(2, 1)},
                        {"P_M", slot(2, 1)},
                        {"guarded", slot(2, 1)},
                        {"delta", slot(2, 1)},
                        {"weight", slot(2, 1)},
                        {"P_Z_acc", slot(2, 1)}}),
                IsEmpty());
}

TEST_F(SlotFaults, AStatementRunsBehindWhatItNeeds) {
    EXPECT_THAT(faults({{"weight", slot(1)}, {"O_acc", slot(2)}}),
                ElementsAre("P_Z_acc runs before weight, which it comes after"));
    // Nor over what one before it still reads.
    EXPECT_THAT(
        faults({{"P_M_old", slot(1)}, {"delta", slot(2)}, {"weight", slot(2)}, {"P_Z_acc", slot(2)}, {"O_acc", slot(2)}}),
        ElementsAre("P_M runs before P_M_old, which it comes after"));
}

TEST_F(SlotFaults, NoStatementOfTheNextTurnRunsOverWhatThisOneStillReads) {
    EXPECT_THAT(faults({{"S", slot(0, 1)},
                        {"P_M_old", slot(1)},
                        {"P_M", slot(1)},
                        {"guarded", slot(1)},
                        {"delta", slot(1)},
                        {"weight", slot(1)},
                        {"P_Z_acc", slot(1)},
                        {"O_acc", slot(1)}}),
                ElementsAre("S runs for the next turn before P_M runs for this one",
                            "S runs for the next turn before weight runs for this one"));
}

TEST_F(SlotFaults, AValueWaitsForOneTurn) {
    EXPECT_THAT(faults({{"S", slot(0, 2)}}), Contains("S runs 2 turns ahead, and a value waits for one turn at most"));
}

TEST_F(SlotFaults, OnlyStatementsOfALoopHavePositions) {
    for (const Slot& wrong : {slot(1), slot(0, 1)})
        EXPECT_THAT(
            faults({{"O", wrong}}),
            ElementsAre("a slot with a position is of a statement in a loop, and there is none around this one"));
}

TEST_F(SlotFaults, AreShownAtTheLineThatIsWrong) {
    const auto refused = planned("slot S order 0\nslot O_acc order 2\nslot weight order 1\n");
    ASSERT_FALSE(refused.ok());
    const Diagnostic& error = refused.errors().front();
    EXPECT_EQ(error.code, "broken-schedule");
    EXPECT_THAT(error.message, HasSubstr("P_Z_acc runs before weight, which it comes after"));
    ASSERT_TRUE(error.range.source);
    EXPECT_EQ(error.range.source->text.substr(error.range.begin, error.range.end - error.range.begin),
              "slot weight order 1");
}

}  // namespace
}  // namespace napkin::test_slots
