// Which exponentials may be polynomials, what the model says of them, and what it chooses.
#include "schedule/exponentials.hpp"

#include <gmock/gmock.h>

#include "plan/blocks.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/parsed.hpp"
#include "unit/proven.hpp"

namespace napkin::test_exponentials {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

const std::string product = "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n",
                  attention = "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n" + product;

Derived derived_of(const std::string& body, const std::string& type, const std::string& outputs) {
    return derived_from("f(Q[h, q, k]: " + type + ", K[h, x, k]: " + type + ", V[h, x, d]: " + type + ") -> " +
                        outputs + "\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n" + body +
                        "sizes h = 64, q = x = 2048, k = d = 64\n");
}
Result<Plan> planned(const std::string& lines, const std::string& body = attention, const std::string& type = "bf16",
                     const std::string& outputs = "O[h, q, d]: bf16",
                     const Machine& machine = load_machine("h200").value()) {
    const Derived derived = derived_of(body, type, outputs);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{
        "by_hand.schedule", "tensor q\nwarps 8\nrole copies 4\ngroup h = 1\ngroup q = 128\nstream x = 64\n" + lines});
    return choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options);
}
std::string with_part(const std::string& part, const std::string& statement = "weight") {
    return "atom " + statement + " fragment, points h q x, polynomials " + part + "\n";
}
const ScheduledKernel& kernel_of(const Result<Plan>& plan) {
    if (!plan) throw std::runtime_error(render(plan.errors()));
    return plan->kernels.at(0).scheduled;
}
std::string text_of(const ScheduledKernel& k) { return to_string(*k.program, *k.kernel, k.schedule); }
const Step& step_of(const ScheduledKernel& k, const std::string& name) {
    for (const Step& step : k.steps)
        if (step.atom >= 0 && k.variable(variable_of(step)).name == name) return step;
    throw std::runtime_error("there is no statement " + name);
}
std::string refusal(const std::string& lines) {
    const auto plan = planned(lines);
    return plan ? "" : render(plan.errors());
}

TEST(Exponentials, AreReadBackAsPrinted) {
    const auto first = planned(with_part("2, of 16"));
    const std::string text = text_of(kernel_of(first));
    EXPECT_THAT(text, ContainsRegex("atom weight +fragment, points h q x, polynomials 2, of 16  # .by hand.\n"));
    const Derived derived = derived_of(attention, "bf16", "O[h, q, d]: bf16");
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"printed.schedule", text});
    const auto again = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {},
                                     options);
    const Atom& atom = kernel_of(again).atom(step_of(kernel_of(again), "weight"));
    EXPECT_EQ(atom.polynomials, 2);
    EXPECT_EQ(atom.polynomials_of, 16);
    EXPECT_EQ(again->kernels.at(0).time.seconds, first->kernels.at(0).time.seconds);
}

TEST(Exponentials, AreRefusedWithTheRuleAndTheNearestPart) {
    EXPECT_EQ(refusal(with_part("1, of 16")), "");
    EXPECT_EQ(refusal(with_part("16, of 16")), "");
    // A thread has two of every eight columns of a row: 16 of 64.
    EXPECT_THAT(refusal(with_part("1, of 6")), AllOf(HasSubstr("16 exponentials of each row of weight"),
                                                     HasSubstr("every 6 are no whole part; 4 are")));
    EXPECT_THAT(refusal(with_part("1, of 20")), HasSubstr("every 20 are no whole part; 16 are"));
    EXPECT_THAT(refusal(with_part("9, of 8")),
                HasSubstr("of every 8 exponentials of weight no 9 can be polynomials; 8 can"));
    EXPECT_THAT(refusal("atom delta fragment, points h q, polynomials 1, of 2\n"),
                HasSubstr("delta has no exponential that differs from column to column"));
    EXPECT_THAT(refusal("atom S matrix, points h q x, over k, polynomials 1, of 2\n"),
                HasSubstr("S is no fragment atom"));
    EXPECT_THAT(refusal("atom weight fragment, points h q x, polynomials 2\n"), HasSubstr("one number alone"));
    EXPECT_THAT(refusal("atom weight fragment, points h q x, of 2\n"), HasSubstr("one number alone"));
}

// Two for 16-bit factors, all digits where somebody takes the values as they are.
TEST(Exponentials, HaveTheDegreeThatTheirReadersTellApart) {
    const auto part_of = [](const Result<Plan>& plan, const std::string& name) {
        const ScheduledKernel& k = kernel_of(plan);
        return polynomial_part(k, step_of(k, name)).value();
    };
    EXPECT_EQ(part_of(planned(with_part("1, of 4")), "weight").polynomial.degree, 3);
    EXPECT_EQ(part_of(planned(with_part("1, of 4"), attention, "f16", "O[h, q, d]: f16"), "weight").polynomial.degree, 3);
    EXPECT_EQ(part_of(planned(with_part("1, of 4"), attention + "    L[h, q] = logsumexp(x) S[h, q, x] * k^-0.5\n",
                              "bf16", "O[h, q, d]: bf16, L[h, q]"),
                      "weight")
                  .polynomial.degree,
              5);
    // Of 1 - exp(x) little may be left, so that its error is no part of its value.
    const auto of_map = [&](const std::string& map) {
        return part_of(planned(with_part("1, of 4", "P"), "    P[h, q, x] = " + map + "\n" + product), "P").polynomial.degree;
    };
    EXPECT_EQ(of_map("1 / (1 + exp(-S[h, q, x]))"), 3);
    EXPECT_EQ(of_map("1 - exp(-abs(S[h, q, x]))"), 5);
    EXPECT_EQ(of_map("exp(-exp(S[h, q, x]))"), 5);
}

// The product's factors and the sum of them have the error beside their rounding.
TEST(Exponentials, AreInTheBoundsOfWhatIsSummedUpOfThem) {
    const auto without = planned(""), with = planned(with_part("1, of 4"));
    const auto units = [&](const Result<Plan>& plan, const std::string& name) {
        const ScheduledKernel& k = kernel_of(plan);
        return reduction_trees(k).at(static_cast<std::size_t>(step_of(k, name).atom)).factor_unit;
    };
    for (const std::string sum : {"P_Z_acc", "O_acc"})
        EXPECT_NEAR(units(with, sum) - units(without, sum), power_polynomials[1].error, 1e-12) << sum;
    EXPECT_EQ(units(with, "S"), units(without, "S"));
    EXPECT_EQ(units(planned(with_part("1, of 4"), attention + "    L[h, q] = logsumexp(x) S[h, q, x] * k^-0.5\n",
                            "bf16", "O[h, q, d]: bf16, L[h, q]"),
                    "P_Z_acc"),
              0)
        << "as good as the unit";
}

// As hand-written kernels had it on one H200: no part of attention's exponentials pays.
TEST(Exponentials, TakeLongerByPolynomialsSaysTheModel) {
    double last = planned("")->kernels.at(0).time.seconds;
    for (const std::string part : {"1, of 16", "2, of 16", "4, of 16", "16, of 16"}) {
        const double seconds = planned(with_part(part))->kernels.at(0).time.seconds;
        EXPECT_GT(seconds, last) << part;
        last = seconds;
    }
    for (const int d : {64, 128, 256}) {
        const proven::Planned p = proven::planned(proven::attention(d));
        for (const KernelPlan& kernel : p.plan.kernels)
            for (const Atom& atom : kernel.schedule().atoms) EXPECT_EQ(atom.polynomials, 0) << d;
        const auto proofs = p.proofs();
        ASSERT_TRUE(proofs) << d;
        const LoopProof& proof = proofs->at(0);
        ASSERT_EQ(proof.polynomials.size(), 3U) << d;
        for (const PolynomialAccount& a : proof.polynomials) {
            EXPECT_EQ(a.statement, "weight");
            EXPECT_GT(a.interval, proof.scheduled.interval) << d << ", " << a.some;
        }
        EXPECT_THAT(to_string(*proofs),
                    ContainsRegex("weight .*1 of 16, by degree 3, 10 instructions in 40 slots each: .*% longer"));
    }
}

// Where a unit for exponentials is slow, and polynomials take no more than their instructions.
TEST(Exponentials, ArePolynomialsWhereTheModelFindsThemFaster) {
    Machine slow = load_machine("h200").value();
    for (Unit& unit : slow.units)
        if (unit.name == "exp")
            for (auto& [type, rate] : unit.per_clock) rate.value = 4;
    const auto text = [&](const std::string& lines) {
        return text_of(kernel_of(planned(lines, attention, "bf16", "O[h, q, d]: bf16", slow)));
    };
    slow.polynomial_slots = {1, "assumed for this test"};
    EXPECT_THAT(text(""), ContainsRegex("atom weight +fragment, points h q x, polynomials [0-9]+, of 16  # no "
                                        "polynomials .* slower"));
    EXPECT_THAT(text("atom weight fragment, points h q x\n"),
                ContainsRegex("atom weight +fragment, points h q x  # .by hand.\n"));
    slow.polynomial_slots = {};
    EXPECT_THAT(text(""), ContainsRegex("atom weight +fragment, points h q x\n")) << "by hand alone";
}

TEST(Exponentials, HaveTheNearestDivisor) {
    EXPECT_EQ(nearest_divisor(16, 6), 4);
    EXPECT_EQ(nearest_divisor(16, 12), 8);
    EXPECT_EQ(nearest_divisor(16, 100), 16);
    EXPECT_EQ(nearest_divisor(20, 16), 20);
    EXPECT_EQ(nearest_divisor(7, 3), 1);
}

}  // namespace
}  // namespace napkin::test_exponentials
