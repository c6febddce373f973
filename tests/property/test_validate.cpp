// Faults planted in a right derived form, one a kind: validation must see each, and nothing else.
#include <gtest/gtest.h>

#include <functional>

#include "check/validate.hpp"
#include "support/parsed.hpp"

namespace napkin {
namespace {

const char* const attention =
    "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n"
    "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) where(x <= q, S[q, x] * k^-0.5, -inf)\n"
    "    O[q, d] = sum(x) P[q, x] * V[x, d]\n";

/// Without a running reference: nothing corrects what the sum begins with.
const char* const product =
    "f(A[a, x], B[x, d]) -> O[a, d]\n"
    "    O[a, d] = sum(x) A[a, x] * B[x, d]\n";

Loop& first_loop(Derived& derived) {
    for (Kernel& kernel : derived.kernels)
        for (Stage& stage : kernel.stages)
            if (auto* loop = std::get_if<Loop>(&stage); loop && !loop->init.empty()) return *loop;
    throw std::runtime_error("no loop");
}

Statement& carried(Derived& derived, ReduceOp op) {
    for (Statement& statement : first_loop(derived).body)
        if (statement.reduce == op && statement.carry) return statement;
    throw std::runtime_error("no state");
}

/// What validation says of the whole: whether the derived form is wrong, and whether its merged halves are.
struct Said {
    bool form = false, merge = false;
};
Said said_of(const Derived& derived) {
    const auto validations = validate(derived);
    return {!validations[validations.size() - 2].good(), !validations.back().good()};
}

struct Fault {
    const char *name, *program;
    std::function<void(Derived&)> plant;
    bool form;  ///< else the merge alone is wrong
};

const Fault faults[] = {
    {"a state begins at 1", product,
     [](Derived& d) {
         for (auto& [state, value] : first_loop(d).init)
             if (value == 0) value = 1;
     },
     true},
    {"a sum forgets the chunks before", attention, [](Derived& d) { carried(d, ReduceOp::sum).carry = constant(0); }, true},
    {"a sum is not corrected", attention,
     [](Derived& d) {
         Statement& s = carried(d, ReduceOp::sum);
         s.carry = read_self(d.diagram, s.target);
     },
     true},
    {"a maximum forgets the chunks before", attention,
     [](Derived& d) { carried(d, ReduceOp::max).carry = constant(-1e30); }, true},
    {"chunks are skipped that count", attention,
     [](Derived& d) {
         Affine late = Affine::axis(first_loop(d).axis);
         late.constant = -1;
         first_loop(d).support.push_back(late);
     },
     true},
    {"a merge does not correct", attention,
     [](Derived& d) {
         for (Kernel& kernel : d.kernels)
             for (Fold& fold : kernel.folds)
                 for (FoldState& state : fold.states)
                     if (state.op == ReduceOp::sum) state.carry = read_self(d.diagram, state.old);
     },
     false},
};

TEST(Validate, finds_nothing_in_a_right_form) {
    for (const StepValidation& v : validate(derived_from(attention), {.trials = 48})) {
        EXPECT_TRUE(v.good()) << v.what << ": " << to_string(*v.wrong);
        EXPECT_GT(v.trials, 40) << v.what;
    }
}

TEST(Validate, finds_every_planted_fault) {
    for (const Fault& fault : faults) {
        Derived derived = derived_from(fault.program);
        fault.plant(derived);
        const Said said = said_of(derived);
        EXPECT_TRUE(said.form || said.merge) << fault.name;
        if (fault.form) {
            EXPECT_TRUE(said.form) << fault.name;
        }
    }
}

TEST(Validate, reaches_past_a_number_in_a_mask) {
    const Derived derived = derived_from(
        "f(X[a, t]) -> M[a], Y[a]\n    M[a] = max(t) where(t == 50, X[a, t], -1e9)\n    Y[a] = sum(t) where(t == 50, "
        "X[a, t], 0)\n");
    bool reached = false;
    std::mt19937_64 random(1);
    for (int i = 0; i < 20; ++i) reached = reached || small_sizes(derived.source, random, 1e6)->at("t") > 50;
    EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace napkin
