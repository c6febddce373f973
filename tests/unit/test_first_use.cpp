// Validation before the first run: what is good is remembered, what is wrong is refused every time, with a
// counterexample.
#include "check/first_use.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_test_support.hpp"
#include "support/parsed.hpp"

namespace napkin::test_first_use {
namespace {

const char* const softmax = "f(X[q, x]) -> P[q, x]\n    P[q, x] = softmax(x) where(x <= q, X[q, x], -inf)\n";

/// The first running maximum begins anew in each chunk.
Derived broken(Derived derived) {
    for (Kernel& kernel : derived.kernels)
        for (Stage& stage : kernel.stages)
            if (auto* loop = std::get_if<Loop>(&stage))
                for (Statement& statement : loop->body)
                    if (statement.reduce == ReduceOp::max && statement.carry) {
                        statement.carry = constant(-1e30);
                        return derived;
                    }
    throw std::runtime_error("nothing to break");
}

TEST(FirstUse, remembers_what_it_found_good) {
    const test::TemporaryDirectory folder;
    const test::SetVariable cache("NAPKIN_CACHE_DIR", folder.file("cache"));
    const Derived derived = derived_from(softmax);
    const FirstUse first = validate_first_use(derived);
    EXPECT_FALSE(first.known);
    EXPECT_GT(first.trials, 3);
    EXPECT_TRUE(validate_first_use(derived).known);
    EXPECT_FALSE(validate_first_use(derived_from("f(X[q, x]) -> Y[q]\n    Y[q] = sum(x) X[q, x]\n")).known);
}

TEST(FirstUse, refuses_a_wrong_derivation_every_time) {
    const test::TemporaryDirectory folder;
    const test::SetVariable cache("NAPKIN_CACHE_DIR", folder.file("cache"));
    const Derived wrong = broken(derived_from(softmax));
    for (int i = 0; i < 2; ++i) {
        try {
            validate_first_use(wrong);
            FAIL() << "not refused";
        } catch (const InternalError& error) {
            EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("P at "), testing::HasSubstr("inputs, seed ")));
        }
    }
}

TEST(FirstUse, does_without_a_cache) {
    const test::TemporaryDirectory folder;
    test::write(folder.file("file"), "");
    const test::SetVariable cache("NAPKIN_CACHE_DIR", folder.file("file"));
    EXPECT_FALSE(validate_first_use(derived_from(softmax)).known);
}

}  // namespace
}  // namespace napkin::test_first_use
