// What a plan says of products off the tensor cores, and of accesses that bring more than their bytes.
#include "plan/misses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"

namespace napkin::test_misses {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> told(const std::string& text, const std::string& machine = "h200") {
    const Derived derived = derived_from(text);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine(machine).value(), {});
    std::vector<std::string> out;
    for (const KernelPlan& kernel : plan.value().kernels)
        for (const Miss& miss : misses(kernel)) out.push_back(to_string(miss));
    return out;
}

std::string product(const std::string& types_of_a, const std::string& types_of_b, const std::string& body,
                    const std::string& sizes = "m = n = k = 512") {
    return "f(A[m, k]: " + types_of_a + ", B[k, n]: " + types_of_b + ") -> C[m, n]\n    C[m, n] = sum(k) " + body +
           "\nsizes " + sizes + "\n";
}

TEST(Misses, SayWhyAProductIsOffTheTensorCores) {
    const std::string off = "C runs off the tensor cores: ";
    EXPECT_THAT(told(product("bf16", "bf16", "A[m, k] * B[k, n]")), IsEmpty());
    EXPECT_THAT(told(product("f32", "f32", "A[m, k] * B[k, n]")),
                Contains(HasSubstr(off + "A is f32, B is f32, and instructions multiply f16, bf16")));
    EXPECT_THAT(told(product("f16", "bf16", "A[m, k] * B[k, n]")),
                Contains(HasSubstr(off + "A is f16 and B is bf16, and no instruction multiplies the two; it "
                                         "takes one type for both in the text, as A in bf16 or B in f16")));
    EXPECT_THAT(told(product("bf16", "bf16", "where(m <= n, A[m, k] * B[k, n], 0)")),
                Contains(HasSubstr("it takes the condition on one of the factors")));
    EXPECT_THAT(told(product("bf16", "bf16", "A[m, k] * B[k, n]", "m = n = 512, k = 4")),
                Contains(HasSubstr(off + "it sums 4 values, and an instruction takes ")));
    EXPECT_THAT(told("f(A[m, k]: bf16, v[k]: bf16) -> C[m]\n    C[m] = sum(k) A[m, k] * v[k]\nsizes m = k = 512\n"),
                Contains(HasSubstr("it is a product with a vector; it takes several vectors in one array")));
    EXPECT_THAT(told("f(A[j]: bf16, B[k, n]: bf16) -> C[m, n]\n    C[m, n] = sum(k) A[m + k] * B[k, n]\n"
                     "sizes m = n = 512, k = 32, j = 600\n"),
                Contains(HasSubstr("C runs off the tensor cores: A is read at a shifted index")));
}

/// A factor that the kernel computes has a type, too: that of an operand in registers.
TEST(Misses, NameTheTypesOfAFactorThatIsComputed) {
    const std::string text =
        "f(Q[q, k]: f16, K[x, k]: f16, V[x, d]: tf32) -> O[q, d]: f16\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
        "    M[q] = max(x) S[q, x]\n    E[q, x] = exp(S[q, x] - M[q])\n    Z[q] = sum(x) E[q, x]\n"
        "    O[q, d] = sum(x) E[q, x] / Z[q] * V[x, d]\nsizes q = x = 4096, k = d = 128\n";
    EXPECT_THAT(told(text), Contains(testing::AllOf(HasSubstr("V is tf32, and "), HasSubstr("f16 or bf16: two types"),
                                                    HasSubstr("it takes V in f16 or bf16 in the text"))));
}

/// An override that asks for tensor cores, beside one that cuts what they read.
TEST(Misses, ASubloopThatKeepsTensorCoresAwaySaysSo) {
    const Derived derived = derived_from(
        "f(Q[q, k]: f16, K[x, k]: f16, V[x, d]: f16) -> O[q, d]: f16\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
        "    P[q, x] = softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
        "sizes q = x = 4096, k = d = 128\nschedule\n    mma_m q\n    subloop d 32\n");
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {});
    ASSERT_FALSE(plan.ok());
    EXPECT_THAT(plan.errors()[0].message, HasSubstr("subloop d loads V in parts, and tensor cores read whole"));
    EXPECT_EQ(plan.errors()[0].hint, "leave 'mma_m' out, or the subloop");
}

// A column of an array with long rows: a line of memory has one of its values.
TEST(Misses, SayWhatAnAccessBringsForNothing) {
    const std::string text = "f(A[r, c]) -> B[r]\n    B[r] = sum(h) A[r, 256 * h]\nsizes r = 4096, c = 4096, h = 16\n";
    for (const char* machine : {"h200", "generic-cpu"})
        EXPECT_THAT(told(text, machine), Contains(HasSubstr("load A brings "))) << machine;
    EXPECT_THAT(told("f(A[r, c]) -> B[r]\n    B[r] = sum(c) A[r, c]\nsizes r = c = 4096\n"), IsEmpty());
    EXPECT_THAT(told(product("f32", "f32", "A[m, k] * B[k, n]"), "generic-cpu"), IsEmpty()) << "it has no tensor cores";
}

}  // namespace
}  // namespace napkin::test_misses
