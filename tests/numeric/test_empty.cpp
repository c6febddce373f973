// Sizes of 0 through the public interface: empty arrays take no memory, and what is reduced over nothing is what its
// definition says.
#include <gtest/gtest.h>
#include <napkin/napkin.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace napkin {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

CompileOptions nothing_of(const std::string& axis) {
    CompileOptions options;
    options.sizes[axis] = 0;
    return options;
}

constexpr const char* attention_of_sizes =
    "attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d], L[q]\n"
    "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) S[q, x] * d^-0.5\n"
    "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
    "    L[q] = logsumexp(x) S[q, x]\n"
    "sizes q = 3, x = 4, k = 2, d = 5\n";

TEST(Empty, ASumOverNoKeysIsNothing) {
    const auto program = compile(attention_of_sizes, nothing_of("x"));
    ASSERT_TRUE(program) << program.error_text();
    const std::vector<float> Q(6, 1);
    std::vector<float> O(15, 7), L(3, 7);
    const std::vector<ConstView> in{{Q.data(), ElementType::f32, {3, 2}, {}},
                                    {nullptr, ElementType::f32, {0, 2}, {}},
                                    {nullptr, ElementType::f32, {0, 5}, {}}};
    const std::vector<View> out{{O.data(), ElementType::f32, {3, 5}, {}}, {L.data(), ElementType::f32, {3}, {}}};
    const auto errors = program->run(in, out);
    ASSERT_TRUE(errors.empty()) << errors[0].rendered;
    EXPECT_EQ(O, std::vector<float>(15, 0));
    EXPECT_EQ(L, std::vector<float>(3, -inf));
    const auto checks = program->run_and_check(in, out);
    ASSERT_TRUE(checks) << checks.error_text();
    for (const OutputCheck& check : *checks) EXPECT_EQ(check.beyond, 0) << check.array;
}

TEST(Empty, NothingIsComputedOfEmptyOutputs) {
    const auto program = compile(attention_of_sizes, nothing_of("q"));
    ASSERT_TRUE(program) << program.error_text();
    const std::vector<float> K(8, 1), V(20, 1);
    const std::vector<ConstView> in{{nullptr, ElementType::f32, {0, 2}, {}},
                                    {K.data(), ElementType::f32, {4, 2}, {}},
                                    {V.data(), ElementType::f32, {4, 5}, {}}};
    const std::vector<View> out{{nullptr, ElementType::f32, {0, 5}, {}}, {nullptr, ElementType::f32, {0}, {}}};
    const auto errors = program->run(in, out);
    EXPECT_TRUE(errors.empty()) << errors[0].rendered;
    // One output may be empty beside one that is not.
    const auto narrow = compile(attention_of_sizes, nothing_of("d"));
    ASSERT_TRUE(narrow) << narrow.error_text();
    const std::vector<float> Q(6, 0);
    std::vector<float> L(3, 7);
    EXPECT_TRUE(narrow
                    ->run(std::vector<ConstView>{{Q.data(), ElementType::f32, {3, 2}, {}},
                                                 {K.data(), ElementType::f32, {4, 2}, {}},
                                                 {nullptr, ElementType::f32, {4, 0}, {}}},
                          std::vector<View>{{nullptr, ElementType::f32, {3, 0}, {}}, {L.data(), ElementType::f32, {3}, {}}})
                    .empty());
    for (const float l : L) EXPECT_NEAR(l, std::log(4), 1e-6);
}

TEST(Empty, ReductionsOfNothing) {
    const auto program = compile(
        "f(X[i, j], I[i, j]: i32, J[i, j]: i8) -> A[i], B[i], C[i], D[i], E[i]: i32, F[i]: i32, G[i]: i8, H[i]: i8\n"
        "    A[i] = sum(j) X[i, j]\n    B[i] = prod(j) X[i, j]\n    C[i] = max(j) X[i, j]\n    D[i] = min(j) X[i, j]\n"
        "    E[i] = max(j) I[i, j]\n    F[i] = min(j) I[i, j]\n    G[i] = max(j) J[i, j]\n    H[i] = min(j) J[i, j]\n"
        "sizes i = 2, j = 0\n");
    ASSERT_TRUE(program) << program.error_text();
    std::vector<float> real(8, 7);
    std::vector<std::int32_t> whole(4, 7);
    std::vector<std::int8_t> narrow(4, 7);
    const std::vector<ConstView> in{{nullptr, ElementType::f32, {2, 0}, {}},
                                    {nullptr, ElementType::i32, {2, 0}, {}},
                                    {nullptr, ElementType::i8, {2, 0}, {}}};
    std::vector<View> out;
    for (std::size_t k = 0; k < 4; ++k) out.push_back({&real[2 * k], ElementType::f32, {2}, {}});
    for (std::size_t k = 0; k < 2; ++k) out.push_back({&whole[2 * k], ElementType::i32, {2}, {}});
    for (std::size_t k = 0; k < 2; ++k) out.push_back({&narrow[2 * k], ElementType::i8, {2}, {}});
    const auto errors = program->run(in, out);
    ASSERT_TRUE(errors.empty()) << errors[0].rendered;
    EXPECT_EQ(real, (std::vector<float>{0, 0, 1, 1, -inf, -inf, inf, inf}));
    EXPECT_EQ(whole, (std::vector<std::int32_t>{-2147483647 - 1, -2147483647 - 1, 2147483647, 2147483647}));
    EXPECT_EQ(narrow, (std::vector<std::int8_t>{-128, -128, 127, 127}));

    const auto truths = compile(
        "f(M[i, j]: bool) -> A[i]: bool, B[i]: bool\n    A[i] = max(j) M[i, j]\n    B[i] = min(j) M[i, j]\n"
        "sizes i = 2, j = 0\n");
    ASSERT_TRUE(truths) << truths.error_text();
    std::vector<std::uint8_t> some(2, 7), all(2, 7);
    EXPECT_TRUE(truths
                    ->run(std::vector<ConstView>{{nullptr, ElementType::boolean, {2, 0}, {}}},
                          std::vector<View>{{some.data(), ElementType::boolean, {2}, {}},
                                            {all.data(), ElementType::boolean, {2}, {}}})
                    .empty());
    EXPECT_EQ(some, (std::vector<std::uint8_t>{0, 0}));
    EXPECT_EQ(all, (std::vector<std::uint8_t>{1, 1}));
}

TEST(Empty, ReadsOfNothingAreRefusedOrGuarded) {
    const char* text = "f(T[v], I[n]: i32) -> Y[n]\n    Y[n] = T[I[n]]\nsizes v = 0, n = 3\n";
    const auto refused = compile(text);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.errors()[0].code, "index-out-of-range");
    EXPECT_NE(refused.errors()[0].message.find("v has no values"), std::string::npos) << refused.errors()[0].message;
    EXPECT_TRUE(compile(text, nothing_of("n"))) << "nothing is read where there is nothing to compute";
    const auto guarded = compile(
        "f(T[v], I[n]: i32) -> Y[n]\n    Y[n] = where(I[n] < size(v), T[I[n]], -1)\nsizes v = 0, n = 3\n");
    ASSERT_TRUE(guarded) << guarded.error_text();
    const std::vector<std::int32_t> I{0, 1, 2};
    std::vector<float> Y(3, 7);
    EXPECT_TRUE(
        guarded
            ->run(std::vector<ConstView>{{nullptr, ElementType::f32, {0}, {}}, {I.data(), ElementType::i32, {3}, {}}},
                  std::vector<View>{{Y.data(), ElementType::f32, {3}, {}}})
            .empty());
    EXPECT_EQ(Y, std::vector<float>(3, -1));
}

}  // namespace
}  // namespace napkin
