// Faults planted in a right derived form, one a kind: validation must see each, and nothing else.
#include <gtest/gtest.h>

#include <functional>

#include "check/validate.hpp"
#include "support/many_axes.hpp"
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

template <class F>
void change_bodies(Derived& derived, const F& f) {
    for (Kernel& kernel : derived.kernels)
        for (Stage& stage : kernel.stages)
            for (Statement& s : statements_of(stage)) s.body = transform(s.body, f);
}

/// Where a coordinate is a sum of two axes and more, one less than it is.
void shift_reads(Derived& derived) {
    change_bodies(derived, [](const Expr& node) {
        const auto* r = as<Read>(node);
        if (!r) return node;
        std::vector<Index> indices;
        for (const Index& index : r->indices) {
            const Affine* form = index.affine();
            indices.push_back(form && form->terms.size() > 1 ? Index(*form - Affine{{}, 1}) : index);
        }
        return read(r->array, std::move(indices));
    });
}

void change_numbers_in_indices(Derived& derived, double from, double to) {
    change_bodies(derived, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        if (!r) return node;
        std::vector<Index> indices;
        for (const Index& index : r->indices)
            indices.push_back(Index::of(transform(index.value(), [&](const Expr& part) {
                const auto* c = as<Constant>(part);
                return c && c->value == from ? constant(to) : part;
            })));
        return read(r->array, std::move(indices));
    });
}

void change_numbers_in_masks(Derived& derived, double from, double to) {
    change_bodies(derived, [&](const Expr& node) {
        const auto* c = as<Constant>(node);
        return c && c->value == from ? constant(to) : node;
    });
}

/// What validation says of the whole: whether the derived form is wrong, and whether its merged halves are.
struct Said {
    bool form = false, merge = false;
};
Said said_of(const Derived& derived) {
    const auto validations = validate(derived, {.operations = 5e7, .steps = false});
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
    {"a state of rolled windows begins at 1", many_axes::shifted_windows,
     [](Derived& d) {
         for (auto& [state, value] : first_loop(d).init)
             if (value == 0) value = 1;
     },
     true},
    {"rolled windows are rolled by one less", many_axes::shifted_windows,
     [](Derived& d) { change_numbers_in_indices(d, 2, 1); }, true},
    {"a padded window is read one place off", many_axes::padded_convolution, [](Derived& d) { shift_reads(d); }, true},
    {"a strided window is read one place off", many_axes::strided_convolution, [](Derived& d) { shift_reads(d); }, true},
    {"a patch is read one place off", many_axes::patches, [](Derived& d) { shift_reads(d); }, true},
    {"blocks of a mask are of 65", many_axes::masked_blocks, [](Derived& d) { change_numbers_in_masks(d, 64, 65); }, true},
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
