// Which sums a product may have as a further column, and what the model says of it.
#include "schedule/ones_column.hpp"

#include <gmock/gmock.h>

#include "plan/blocks.hpp"
#include "support/parsed.hpp"

namespace napkin::test_ones_column {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

const std::string attention =
    "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n";
const std::string column = "atom P_Z_acc column, points h q, over x\n",
                  threads = "atom P_Z_acc fragment, points h q, over x\n";

/// Where its file says that loops with such a column keep to the model.
Machine hopper(bool knows_columns = true) {
    Machine out = load_machine("h200").value();
    if (knows_columns) out.ones_pace = {1, "assumed for this test"};
    return out;
}

/// The derivation of scores S, with this body.
Derived derived_of(const std::string& body, const std::string& sizes, const std::string& outputs, const std::string& type) {
    return derived_from("f(Q[h, q, k]: " + type + ", K[h, x, k]: " + type + ", V[h, x, d]: " + type + ") -> " +
                        outputs + "\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n" + body +
                        "sizes h = 64, q = x = 2048, " + sizes + "\n");
}
Derived derived_attention() { return derived_of(attention, "k = d = 64", "O[h, q, d]: bf16", "bf16"); }

Result<Plan> planned(const std::string& body, const std::string& lines = "", const std::string& sizes = "k = d = 64",
                     const std::string& outputs = "O[h, q, d]: bf16", const std::string& type = "bf16",
                     const Machine& machine = hopper()) {
    const Derived derived = derived_of(body, sizes, outputs, type);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{
        "by_hand.schedule", "tensor q\nwarps 8\nrole copies 4\ngroup h = 1\ngroup q = 128\nstream x = 64\n" + lines});
    return choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options);
}
const ScheduledKernel& kernel_of(const Result<Plan>& plan) {
    if (!plan) throw std::runtime_error(render(plan.errors()));
    return plan->kernels.at(0).scheduled;
}
std::string text_of(const ScheduledKernel& k) { return to_string(*k.program, *k.kernel, k.schedule); }
/// What is said where the sum is to be a column by hand; "" where it may.
std::string refusal(const std::string& body, const std::string& lines = column, const std::string& sizes = "k = d = 64",
                    const std::string& outputs = "O[h, q, d]: bf16") {
    const auto plan = planned(body, lines, sizes, outputs);
    return plan ? "" : render(plan.errors());
}

TEST(OnesColumn, IsChosenWhereTheModelFindsItFaster) {
    const auto by_rule = planned(attention), by_threads = planned(attention, threads);
    const ScheduledKernel& k = kernel_of(by_rule);
    EXPECT_THAT(
        text_of(k),
        ContainsRegex("atom P_Z_acc +column, points h q, over x  # beside O_acc; added up by threads .* slower"));
    EXPECT_THAT(text_of(kernel_of(by_threads)), ContainsRegex("atom P_Z_acc +fragment"));
    EXPECT_LT(by_rule->kernels.at(0).time.seconds, by_threads->kernels.at(0).time.seconds);
    EXPECT_EQ(types_of_ones(k), std::vector<DType>{DType::bf16});
    EXPECT_EQ(k.ones_offset * k.value_bytes() % operand_alignment, 0);
}

TEST(OnesColumn, IsByHandAloneWhereNoFileSaysWhatItTakes) {
    const Machine silent = hopper(false);
    const auto of = [&](const std::string& lines) {
        return planned(attention, lines, "k = d = 64", "O[h, q, d]: bf16", "bf16", silent);
    };
    EXPECT_THAT(text_of(kernel_of(of(""))), ContainsRegex("atom P_Z_acc +fragment"));
    EXPECT_THAT(text_of(kernel_of(of(column))), ContainsRegex("atom P_Z_acc +column"));
}

TEST(OnesColumn, IsReadBackAsPrinted) {
    const auto first = planned(attention);
    const ScheduledKernel& k = kernel_of(first);
    const Derived derived = derived_attention();
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"printed.schedule", text_of(k)});
    const auto again = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), hopper(), {}, options);
    const ScheduledKernel& read = kernel_of(again);
    for (const AtomId a : k.schedule.atoms.ids()) EXPECT_EQ(read.schedule.atoms[a].kind, k.schedule.atoms[a].kind) << a;
    EXPECT_EQ(read.schedule.slots, k.schedule.slots);
    EXPECT_EQ(again->kernels.at(0).time.seconds, first->kernels.at(0).time.seconds);
}

// Weights of a lazy maximum, which no thread adds up then, may grow into what lies between them and 2: more in bf16, which has smaller numbers, and whose
// weights are divided by their number here.
TEST(OnesColumn, LeavesALazyMaximumRoomBelowTwo) {
    const LazyMaximum bf16 = kernel_of(planned(attention, column)).lazy.value();
    EXPECT_LT(bf16.sum, 0);
    EXPECT_EQ(bf16.limit, 2);
    EXPECT_NEAR(std::exp(bf16.above), 4096. / 2048, 1e-9);
    EXPECT_EQ(bf16.far, 8192);
    const LazyMaximum f16 = kernel_of(planned(attention, column, "k = d = 64", "O[h, q, d]: f16", "f16")).lazy.value();
    EXPECT_NEAR(std::exp(f16.above), 8, 1e-9);
    EXPECT_EQ(f16.far, 16);
}

TEST(OnesColumn, IsRefusedWithWhatKeepsItFromTheProduct) {
    EXPECT_THAT(refusal(attention, column, "k = 64, d = 128"),
                AllOf(HasSubstr("P_Z_acc"), HasSubstr("V has 128 columns"), HasSubstr("64")));
    EXPECT_THAT(refusal(attention, column, "k = 64, d = 40"), HasSubstr("48 columns"));
    // What is made of the sum alone would be as coarse as the weights.
    EXPECT_THAT(refusal(attention + "    L[h, q] = logsumexp(x) S[h, q, x] * k^-0.5\n", column, "k = d = 64",
                        "O[h, q, d]: bf16, L[h, q]"),
                HasSubstr("without the product"));
    // A sum of something else than what is multiplied.
    EXPECT_THAT(refusal("    W[h, q, x] = exp(-abs(S[h, q, x]))\n    Z[h, q] = sum(x) W[h, q, x] * W[h, q, x]\n"
                        "    N[h, q, d] = sum(x) W[h, q, x] * V[h, x, d]\n    O[h, q, d] = N[h, q, d] / Z[h, q]\n",
                        "atom Z column, points h q, over x\n"),
                HasSubstr("not the left factor"));
    EXPECT_THAT(refusal(attention, "atom P_M column, points h q, over x\n"), HasSubstr("no sum"));
}

TEST(OnesColumn, IsRefusedWhereNoUnitMultipliesSeveralWarpsRows) {
    const Derived derived = derived_attention();
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", "tensor q\nwarps 8\n" + column});
    const auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(),
                                    load_machine("a100-sxm-80gb").value(), {}, options);
    ASSERT_FALSE(plan);
    EXPECT_THAT(render(plan.errors()), HasSubstr("every warp runs it by itself"));
}

TEST(OnesColumn, RunsWithItsProduct) {
    const std::string early =
        "slot S position 0, ahead 1\nslot P_M_old position 2, ahead 1\nslot P_M position 2, ahead 1\n"
        "slot guarded position 2, ahead 1\nslot delta position 2, ahead 1\nslot weight position 2, ahead 1\n"
        "slot O_acc position 1\n";
    EXPECT_EQ(refusal(attention, column + early + "slot P_Z_acc position 1\n"), "");
    EXPECT_THAT(refusal(attention, column + early + "slot P_Z_acc position 2, ahead 1\n"),
                HasSubstr("runs 1 turns ahead where that runs 0"));
}

}  // namespace
}  // namespace napkin::test_ones_column
