// Sizes of 0: what is left of a diagram, and that its meaning is the same.
#include "diagram/empty_axes.hpp"

#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "derive/verify.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin::test_empty_axes {
namespace {

Diagram parsed(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    return *diagram;
}

/// The equation of the array, as it prints.
std::string equation_of(const Diagram& d, const std::string& array) {
    return to_string(d, *d.definition(d.find_array(array).value()));
}

TEST(EmptyAxes, ReductionsOfNothingAreTheirIdentity) {
    const Diagram d = without_empty_axes(
        parsed("f(X[i, j], I[i, j]: i32, N[i, j]: u8) -> A[i], B[i], C[i], D[i]: i32, E[i]: u8, F[i, j]\n"
               "    A[i] = sum(j) X[i, j] + 1\n    B[i] = prod(j) X[i, j]\n    C[i] = max(j) X[i, j]\n"
               "    D[i] = min(j) I[i, j]\n    E[i] = max(j) N[i, j]\n    F[i, j] = X[i, j]\nsizes i = 3, j = 0\n"));
    EXPECT_EQ(verify(d), std::vector<std::string>{});
    EXPECT_EQ(equation_of(d, "A"), "A[i] = 0");
    EXPECT_EQ(equation_of(d, "B"), "B[i] = 1");
    EXPECT_EQ(equation_of(d, "C"), "C[i] = -inf");
    EXPECT_EQ(equation_of(d, "D"), "D[i] = 2147483647");
    EXPECT_EQ(equation_of(d, "E"), "E[i] = 0");
    EXPECT_EQ(equation_of(d, "F"), "F[i, j] = 0");
    EXPECT_EQ(parsed(print(d)), d);
}

TEST(EmptyAxes, NoKernelComputesAnEmptyArray) {
    const Diagram d = without_empty_axes(
        parsed("f(X[i, j], Y[k]) -> A[i, j], B[k]\n    A[i, j] = exp(X[i, j])\n"
               "    B[k] = Y[k] * 2\nsizes i = 0\n"));
    const auto derived = derive(d);
    ASSERT_TRUE(derived.ok());
    EXPECT_EQ(verify(*derived), std::vector<std::string>{});
    ASSERT_EQ(derived->kernels.size(), 1U);
    EXPECT_EQ(derived->kernels[0].name, "B");
}

TEST(EmptyAxes, SizesThatAreMadeOfThemAreEmptyToo) {
    const Diagram d = without_empty_axes(
        parsed("f(X[n]) -> Y[m], Z[k]\n    Y[m] = X[m + 0]\n    Z[k] = sum(n) X[n] + k\n"
               "sizes n = 0, m = 2 * n, k = n + 3\n"));
    EXPECT_TRUE(is_empty(d, *d.find_array("Y")));
    EXPECT_FALSE(is_empty(d, *d.find_array("Z")));
    EXPECT_EQ(bind_sizes(d).value(), (Extents{0, 0, 3}));
}

TEST(EmptyAxes, WithoutThemNothingChanges) {
    const Diagram d = parsed("f(X[i, j]) -> A[i]\n    A[i] = sum(j) X[i, j]\nsizes j = 4\n");
    EXPECT_EQ(without_empty_axes(d), d);
}

TEST(EmptyAxes, ChoicesOfOtherKernelsAreLeftOut) {
    const Diagram d = without_empty_axes(
        parsed("f(X[i, j]) -> A[i]\n    A[i] = sum(j) X[i, j]\nsizes i = 3, j = 0\n"
               "schedule\n    stream j = 2\n    threads 1\n"));
    ASSERT_EQ(d.schedule.size(), 1U);
    EXPECT_TRUE(derive(d).ok());
}

/// The evaluation of a diagram as it is written, and that of what is left of it.
TEST(EmptyAxes, TheMeaningStays) {
    const char* texts[] = {
        "f(X[i, j], I[i, j]: i32) -> A[i], B[i]: i32, C[i]\n    T[i, j] = X[i, j] * 2\n    A[i] = sum(j) T[i, j]\n"
        "    B[i] = max(j) I[i, j]\n    C[i] = A[i] + size(j)\n",
        "f(X[i, j], V[j, i]) -> O[i]\n    P[i, j] = softmax(j) X[i, j]\n    O[i] = sum(j) P[i, j] * V[j, i]\n",
        "f(X[i], Y[j, k]) -> A[i]\n    A[i] = X[i] + where(i < size(j), sum(j, k) Y[j, k], 3)\nsizes k = 2\n",
        "f(X[i, j]) -> A[i]: i64, B: f64\n    A[i] = argmax(j) X[i, j]\n    B = min(i, j) X[i, j]\n",
    };
    for (const char* text : texts)
        for (const std::int64_t i : {0, 3})
            for (const std::int64_t j : {0, 2}) {
                Diagram d = parsed(text);
                d.axes[*d.find_axis("i")].size = Size(i), d.axes[*d.find_axis("j")].size = Size(j);
                const Extents extents = bind_sizes(d).value();
                Values as_written = random_inputs(d, extents, 1), left = as_written;
                evaluate(d, extents, as_written);
                const Diagram rest = without_empty_axes(d);
                EXPECT_EQ(verify(rest), std::vector<std::string>{});
                evaluate(rest, bind_sizes(rest).value(), left);
                for (const ArrayId id : d.outputs)
                    EXPECT_EQ(left[id], as_written[id]) << d.array(id).name << ", i = " << i << ", j = " << j << "\n"
                                                        << text;
            }
}

TEST(EmptyAxes, AReadOfAnEmptyArrayIsRefusedWhereItIsTaken) {
    const Diagram d = parsed("f(T[v], I[n]: i32) -> Y[n]\n    Y[n] = T[I[n]]\nsizes n = 3\n");
    const auto errors = bind_sizes(d, {{"v", 0}}).errors();
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].code, "index-out-of-range");
    EXPECT_EQ(errors[0].message, "T is read at I[n], but v has no values: its size is 0");
    EXPECT_TRUE(bind_sizes(d, {{"v", 0}, {"n", 0}}).ok());
}

}  // namespace
}  // namespace napkin::test_empty_axes
