// What statements on fragments leave out where masks take nothing away, and how their results are stored by bulk
// copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "diagram/guards.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::test_fragment_stores {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Plan> planned(const std::string& text, const std::string& schedule) {
    const Derived derived = derived_from(text);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    return choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {}, options);
}

// ---- masks

std::string masked(const std::string& mask) {
    return "masked(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16, B[q, x]) -> O[q, d]: bf16\n"
           "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    M[q, x] = " +
           mask +
           "\n    P[q, x] = softmax(x) M[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
           "sizes q = x = 1024, k = d = 64" +
           (mask.find("window") == std::string::npos ? "" : ", window = 100") + "\n";
}

/// The forms without which a mask takes something away, as they are printed; "none" where no statement has such masks.
std::string forms_of(const std::string& mask) {
    const Plan plan = planned(masked(mask), "mma_m q\nwarps 4\ngroup q = 64\nstream x = 64\n").value();
    const ScheduledKernel& k = plan.kernels.at(0).scheduled;
    for (const Step& step : k.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        const auto within = compute ? unmasked(k, step) : std::nullopt;
        if (!within || !compute->reduce) continue;
        std::string out;
        for (const Affine& form : within->forms)
            out += (out.empty() ? "" : ", ") + to_string(Index(form), k.program->diagram.names());
        bool chooses = false;
        visit(within->body, [&](const Expr& e) { chooses |= as<Select>(e) != nullptr; });
        return chooses ? out + ", and a choice" : out;
    }
    return "none";
}

TEST(Unmasked, IsWhereAllFormsOfTheMasksHold) {
    EXPECT_EQ(forms_of("where(x <= q, S[q, x], -inf)"), "q - x");
    EXPECT_EQ(forms_of("where(x > q, -inf, S[q, x])"), "q - x") << "it takes away where the condition holds";
    EXPECT_EQ(forms_of("where(x <= q and x > q - window, S[q, x], -inf)"), "q - x, -q + x + 99");
    EXPECT_EQ(forms_of("where(not (x > q), S[q, x], -inf)"), "q - x");
    EXPECT_EQ(forms_of("where(x <= q, where(x >= 10, S[q, x], -inf), -inf)"), "x - 10, q - x");
}

TEST(Unmasked, IsNothingThatNoTileCanSay) {
    EXPECT_EQ(forms_of("where(x <= q or x < 10, S[q, x], -inf)"), "none") << "one of the two may hold at each point";
    EXPECT_EQ(forms_of("where(B[q, x] > 0, S[q, x], -inf)"), "none") << "an array decides";
    EXPECT_EQ(forms_of("where(x <= q, where(B[q, x] > 0, S[q, x], -inf), -inf)"), "q - x, and a choice");
}

TEST(Unmasked, FormsAreEquivalentToTheCondition) {
    const Diagram d = parsed(
        "f(A[i, j]) -> B[i, j]\n    B[i, j] = where(i + 2 * j < 7 and i != j, A[i, j], 0)\nsizes i = 6, j = 6\n");
    const auto* choice = as<Select>(d.equations.at(0).body);
    ASSERT_NE(choice, nullptr);
    EXPECT_FALSE(equivalent_mask_forms(choice->condition, true)) << "i != j is no form";
    const auto* both = as<Binary>(choice->condition);
    ASSERT_NE(both, nullptr);
    EXPECT_FALSE(equivalent_mask_forms(both->b, true));
    const auto forms = equivalent_mask_forms(both->a, true), otherwise = equivalent_mask_forms(both->a, false);
    ASSERT_TRUE(forms && otherwise);
    ASSERT_EQ(forms->size(), 1U);
    ASSERT_EQ(otherwise->size(), 1U);
    for (std::int64_t i = 0; i < 6; ++i)
        for (std::int64_t j = 0; j < 6; ++j) {
            EXPECT_EQ(value_at(Index(forms->front().affine), {i, j}, {}) >= 0, i + 2 * j < 7);
            EXPECT_EQ(value_at(Index(otherwise->front().affine), {i, j}, {}) >= 0, i + 2 * j >= 7);
        }
}

// ---- boxes

std::string product(const std::string& result, const std::string& type, const std::string& sizes) {
    return "product(A[m, k]: bf16, B[n, k]: bf16) -> C[" + result + "]: " + type + "\n    C[" + result +
           "] = sum(k) A[m, k] * B[n, k]\nsizes " + sizes + "\n";
}
int boxes_of(const std::string& text, const std::string& more = "") {
    const auto plan = planned(text, "mma_m m\nwarps 4\ngroup m = 64\n" + more);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    const ScheduledKernel& k = plan->kernels.at(0).scheduled;
    for (const VariableId v : k.layouts.ids())
        if (k.kernel->variables[v].name == "C") return k.place(v).staging_tiles;
    throw std::out_of_range("C");
}

TEST(StagingTiles, AreForContiguousColumnsOfWholeBoxes) {
    EXPECT_EQ(boxes_of(product("m, n", "bf16", "m = 512, n = 512, k = 256"), "group n = 128\n"), 2);
    EXPECT_EQ(boxes_of(product("m, n", "bf16", "m = 512, n = 512, k = 256"), "group n = 64\n"), 1);
    EXPECT_EQ(boxes_of(product("m, n", "f32", "m = 512, n = 512, k = 256"), "group n = 64\n"), 2);
    EXPECT_EQ(boxes_of(product("m, n", "bf16", "m = 512, n = 40, k = 256"), "group n = 40\n"), 1)
        << "what lies outside is not written";
    EXPECT_EQ(boxes_of(product("m, n", "bf16", "m = 512, n = 512, k = 256"), "group n = 32\n"), 0)
        << "the next tile begins inside of a box";
    EXPECT_EQ(boxes_of(product("n, m", "bf16", "m = 512, n = 512, k = 256"), "group n = 128\n"), 0)
        << "columns are not contiguous";
    EXPECT_EQ(boxes_of(product("m, n", "bf16", "m = 512, n = 132, k = 256")), 0)
        << "rows begin at multiples of 8 bytes";
    EXPECT_EQ(boxes_of(product("m, n", "e4m3", "m = 512, n = 512, k = 256"), "group n = 128\n"), 0) << "8 bits";
}

TEST(StagingTiles, AreRefusedByHandWhereTheyAreNone) {
    const auto refusal = [&](const std::string& result, const std::string& boxes) {
        const auto plan = planned(
            product(result, "bf16", "m = 512, n = 512, k = 256"),
            "mma_m m\nwarps 4\ngroup m = 64\ngroup n = 192\nplace C registers, inner n" + boxes + "\n");
        return plan ? "" : plan.errors().front().message;
    };
    EXPECT_EQ(refusal("m, n", ""), "");
    EXPECT_EQ(refusal("m, n", ", boxes 1"), "");
    EXPECT_EQ(refusal("m, n", ", boxes 3"), "");
    EXPECT_THAT(refusal("m, n", ", boxes 2"),
                HasSubstr("3 boxes of 128 bytes beside each other, of which 2 at a time"));
    EXPECT_THAT(refusal("n, m", ", boxes 1"), HasSubstr("C cannot be stored in boxes"));
}

}  // namespace
}  // namespace napkin::test_fragment_stores
