// Diagrams: look-up and printing, every invariant of the verifier, every error of binding sizes.
#include "diagram/diagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagram/sizes.hpp"
#include "diagram/verifier.hpp"
#include "diagram_builder.hpp"

namespace napkin::test_diagram {
namespace {

/// scores -> weights with their maximum: enough to name everything.
struct Scores : Builder {
    AxisId q = axis("q", Size(4)), x = axis("x", Size(6)), k = axis("k", Size(8));
    ArrayId Q = input("Q", {q, k}), K = input("K", {x, k});
    ArrayId S = reduce("S", {q, x}, ReduceOp::sum, {k}, self(Q) * self(K));
    ArrayId m = reduce("m", {}, ReduceOp::max, {q, x}, self(S));
};

bool mentions(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

// ---- structure
// ------------------------------------------------------------

TEST(Diagram, FindsByName) {
    const Scores s;
    EXPECT_EQ(s.d.find_axis("x"), s.x);
    EXPECT_EQ(s.d.find_axis("S"), std::nullopt);
    EXPECT_EQ(s.d.find_array("S"), s.S);
    EXPECT_EQ(s.d.find_array("q"), std::nullopt);
    EXPECT_EQ(s.d.definition(s.S), &s.d.equations[0]);
    EXPECT_EQ(s.d.definition(s.Q), nullptr);
    EXPECT_EQ(s.d.names().axis(s.k), "k");
    EXPECT_EQ(s.d.names().array(99), "#99");
}

TEST(Diagram, NewArraysGetNamesOfTheirOwn) {
    Scores s;
    EXPECT_EQ(s.d.array(add_array(s.d, "S", {s.q}, DType::f32, ArrayRole::temporary)).name, "S_2");
    EXPECT_EQ(s.d.array(add_array(s.d, "S", {s.q}, DType::f32, ArrayRole::temporary)).name, "S_3");
    EXPECT_EQ(s.d.array(add_array(s.d, "q", {s.q}, DType::f32, ArrayRole::temporary)).name, "q_2");
    EXPECT_EQ(s.d.array(add_array(s.d, "new", {s.q}, DType::f32, ArrayRole::temporary)).name, "new");
}

TEST(Diagram, EquationsPrintInTheLanguage) {
    Scores s;
    const auto print = [&](ArrayId id) { return to_string(s.d, *s.d.definition(id)); };
    EXPECT_EQ(print(s.S), "S[q, x] = sum(k) Q[q, k] * K[x, k]");
    EXPECT_EQ(print(s.m), "m = max(q, x) S[q, x]");
    EXPECT_EQ(print(s.reduce("v", {s.q}, ReduceOp::sum, {s.x}, s.self(s.S) - s.self(s.m))),
              "v[q] = sum(x) (S[q, x] - m)");
    EXPECT_EQ(print(s.map("P", {s.q, s.x}, unary(UnaryOp::exp, s.self(s.S) - s.self(s.m)))),
              "P[q, x] = exp(S[q, x] - m)");
    EXPECT_EQ(print(s.map("t", {}, s.self(s.m) + constant(1))), "t = m + 1");
    EXPECT_EQ(print(s.reduce("n", {s.q}, ReduceOp::max, {s.x}, unary(UnaryOp::neg, s.self(s.S)))),
              "n[q] = max(x) -S[q, x]");
    EXPECT_EQ(print(s.reduce("o", {}, ReduceOp::max, {s.q, s.x}, unary(UnaryOp::neg, s.self(s.S)))),
              "o = max(q, x) (-S[q, x])");
}

TEST(Diagram, EqualityDoesNotLookAtPositions) {
    Scores a, b;
    b.d.axes[0].range.begin = 7;
    EXPECT_EQ(a.d, b.d);
    b.d.equations[0].body = b.self(b.Q);
    EXPECT_FALSE(a.d == b.d);
}

// ---- the verifier
// ------------------------------------------------------------

TEST(Verifier, AcceptsWhatIsWellFormed) { EXPECT_EQ(verify(Scores().d), std::vector<std::string>{}); }

/// Breaks a good diagram and expects the complaint.
void breaks(const std::function<void(Scores&)>& how, const std::string& complaint) {
    Scores s;
    how(s);
    const auto lines = verify(s.d);
    EXPECT_TRUE(mentions(lines, complaint)) << "expected: " << complaint << "\nfound: " << ::testing::PrintToString(lines);
}

TEST(Verifier, RefusesEveryBrokenInvariant) {
    breaks([](Scores& s) { s.d.axes[0].name = "S"; }, "the name S is given twice");
    breaks([](Scores& s) { s.d.axes[0].name = "2q"; }, "no identifier");
    breaks([](Scores& s) { s.d.arrays[0].name = ""; }, "no identifier");
    breaks([](Scores& s) { s.d.arrays[0].axes = {0, 0}; }, "Q has the axis q twice");
    breaks([](Scores& s) { s.d.arrays[0].axes = {0, 17}; }, "Q has the unknown axis #17");
    breaks([](Scores& s) { s.d.inputs.push_back(0); }, "Q is listed twice as input");
    breaks([](Scores& s) { s.d.inputs.pop_back(); }, "K is an input and not listed as one");
    breaks([](Scores& s) { s.d.outputs.pop_back(); }, "m is an output and not listed as one");
    breaks([](Scores& s) { s.d.outputs[0] = 0; }, "Q is listed as output and has another role");
    breaks([](Scores& s) { s.d.outputs[0] = 90; }, "unknown output #90");
    breaks([](Scores& s) { s.d.equations.erase(s.d.equations.begin()); }, "reads S before its definition");
    breaks([](Scores& s) { s.d.equations.pop_back(); }, "m is the target of no equation");
    breaks([](Scores& s) { s.d.equations.push_back(s.d.equations[0]); }, "S is the target of two equations");
    breaks([](Scores& s) { std::swap(s.d.equations[0], s.d.equations[1]); }, "reads S before its definition");
    breaks([](Scores& s) { s.d.equations[0].target = s.Q; }, "the input Q is the target of an equation");
    breaks([](Scores& s) { s.d.equations[0].target = -1; }, "unknown array #-1");
    breaks([](Scores& s) { s.d.equations[0].body = nullptr; }, "has no body");
    breaks([](Scores& s) { s.d.equations[0].reduce_axes = {}; }, "a reduction over no axis");
    breaks([](Scores& s) { s.d.equations[0].reduce = std::nullopt; }, "reduced axes and no reduction");
    breaks([](Scores& s) { s.d.equations[1].reduce_axes = {1, 0}; }, "are not ascending");
    breaks([](Scores& s) { s.d.equations[1].reduce_axes = {0, 0}; }, "are not ascending");
    breaks([](Scores& s) { s.d.equations[0].reduce_axes = {1}; }, "reduces x, which stays in the result");
    breaks([](Scores& s) { s.d.equations[0].reduce_axes = {9}; }, "reduces the unknown axis #9");
    breaks([](Scores& s) { s.d.equations[0].reduce_axes = {s.axis("w", Size(2))}; },
           "reads Q at the axis k, over which it does not run");
    breaks([](Scores& s) { s.d.equations[1].body = axis_index(s.k); }, "uses the axis k, over which it does not run");
    breaks([](Scores& s) { s.d.equations[1].body = axis_size(40); }, "the size of the unknown axis #40");
    breaks([](Scores& s) { s.d.equations[1].body = read(ArrayId(77), {}); }, "reads the unknown array #77");
    breaks([](Scores& s) { s.d.equations[1].body = read(s.Q, {Affine::axis(s.q)}); },
           "reads Q with 1 indices, which has 2 axes");
    breaks([](Scores& s) { s.d.equations[1].body = read(s.S, {Affine{{{s.q, 0}}, 0}, Affine{}}); },
           "not in normal form");
    breaks([](Scores& s) { s.d.equations[1].body = read(s.S, {Affine{{{s.x, 1}, {s.q, 1}}, 0}, Affine{}}); },
           "not in normal form");
}

// ---- sizes
// ------------------------------------------------------------

/// The size of the i-th axis.
Size size_of(int i) { return axis_symbol(AxisId::of(i)); }

/// A convolution: X[i + w], where i has n - w + 1 positions unless told otherwise.
struct Windows : Builder {
    AxisId n = axis("n", Size(10)), w = axis("w", Size(3)), i;
    ArrayId X = input("X", {n}), Y;
    explicit Windows(std::optional<Size> size_of_i = size_of(0) - size_of(1) + 1,
                     const Affine& index = Affine::axis(2) + Affine::axis(1))
        : i(axis("i", std::move(size_of_i))), Y(reduce("Y", {i}, ReduceOp::sum, {w}, read(X, {index}))) {}
};

std::vector<Diagnostic> errors(const Diagram& d, const std::map<std::string, std::int64_t>& overrides = {}) {
    EXPECT_EQ(verify(d), std::vector<std::string>{});
    const auto bound = bind_sizes(d, overrides);
    if (bound.ok()) {
        ADD_FAILURE() << "no error";
        return {};
    }
    return bound.errors();
}

TEST(BindSizes, DefaultsOverridesAndDerivedSizes) {
    const Windows d;
    EXPECT_EQ(bind_sizes(d.d).value(), (Extents{10, 3, 8}));
    EXPECT_EQ(bind_sizes(d.d, {{"n", 20}}).value(), (Extents{20, 3, 18}));
    EXPECT_EQ(bind_sizes(d.d, {{"w", 1}, {"i", 4}}).value(), (Extents{10, 1, 4}));
}

TEST(BindSizes, DerivedSizesInAnyOrder) {
    Builder b;
    b.axis("a", size_of(1) + size_of(2));
    b.axis("b", Size(2) * size_of(2));
    b.axis("c", Size(5));
    b.axis("r", *size_of(4).pow(Rational(1, 2)));
    b.axis("e", Size(49));
    EXPECT_EQ(bind_sizes(b.d).value(), (Extents{15, 10, 5, 7, 49}));
}

TEST(BindSizes, MissingSizesAreListedTogether) {
    Builder b;
    const AxisId q = b.axis("q"), x = b.axis("x"), k = b.axis("k", Size(4)), y = b.axis("y", size_of(1) + 1);
    const ArrayId X = b.input("X", {q, x, k, y});
    b.reduce("s", {}, ReduceOp::sum, {q, x, k, y}, b.self(X));
    const auto e = errors(b.d);
    ASSERT_EQ(e.size(), 1U);
    EXPECT_EQ(e[0].code, "missing-size");
    EXPECT_NE(e[0].message.find("q, x"), std::string::npos);
    EXPECT_EQ(e[0].message.find("y"), std::string::npos) << "y is known once x is";
    EXPECT_EQ(e[0].hint, "--set q=… --set x=…");
    EXPECT_EQ(e[0].notes.size(), 1U);
    EXPECT_EQ(bind_sizes(b.d, {{"q", 2}, {"x", 3}}).value(), (Extents{2, 3, 4, 4}));
}

TEST(BindSizes, AnAxisThatNothingRunsOverNeedsNoSize) {
    Scores s;
    s.axis("unused");
    EXPECT_EQ(bind_sizes(s.d).value().back(), 1);
}

TEST(BindSizes, UnknownAxes) {
    const Windows d;
    const auto e = errors(d.d, {{"nn", 4}});
    ASSERT_EQ(e.size(), 1U);
    EXPECT_EQ(e[0].code, "unknown-axis");
    EXPECT_EQ(e[0].hint, "did you mean n?");
    EXPECT_NE(e[0].expected.find("n, w, i"), std::string::npos);
    EXPECT_EQ(verify(Windows(size_of(3) + 1).d), std::vector<std::string>{"the size of i is made of what is no axis"});
    EXPECT_EQ(verify(Windows(Size(group_symbol(0))).d),
              std::vector<std::string>{"the size of i is made of what is no axis"});
}

TEST(BindSizes, BadSizes) {
    EXPECT_EQ(errors(Windows().d, {{"n", -1}})[0].code, "bad-size");
    EXPECT_EQ(errors(Windows().d, {{"n", -3}})[0].code, "bad-size");
    EXPECT_EQ(errors(Windows(Size(-1)).d)[0].code, "bad-size");
    const auto negative = errors(Windows().d, {{"w", 12}});
    EXPECT_EQ(negative[0].code, "bad-size");
    EXPECT_NE(negative[0].message.find("with n = 10, w = 12"), std::string::npos) << negative[0].message;
    const auto fraction = errors(Windows(size_of(0) / Size(4)).d);
    EXPECT_EQ(fraction[0].code, "bad-size");
    EXPECT_NE(fraction[0].message.find("2.5"), std::string::npos) << fraction[0].message;
}

TEST(BindSizes, SizesThatDependOnThemselves) {
    Builder b;
    b.axis("a", size_of(1) + 1);
    b.axis("b", size_of(2) + 1);
    b.axis("c", size_of(0) + 1);
    b.axis("own", size_of(3));
    b.axis("after", size_of(0));
    const auto e = errors(b.d);
    ASSERT_EQ(e.size(), 2U);
    EXPECT_EQ(e[0].code, "size-cycle");
    EXPECT_NE(e[0].message.find("a → b → c → a"), std::string::npos) << e[0].message;
    EXPECT_NE(e[1].message.find("own → own"), std::string::npos) << e[1].message;
    EXPECT_TRUE(bind_sizes(b.d, {{"b", 4}, {"own", 1}}).ok());
}

TEST(BindSizes, ProductsPastTwoToThe62) {
    Scores s;
    EXPECT_TRUE(bind_sizes(s.d, {{"q", std::int64_t{1} << 30}, {"x", std::int64_t{1} << 20}}).ok());
    const std::map<std::string, std::int64_t> big{{"q", std::int64_t{1} << 31}, {"x", std::int64_t{1} << 30}};
    const auto e = errors(s.d, big);
    ASSERT_EQ(e.size(), 1U);  // S and m have 2^61 values, but the sum runs over 2^64 points
    EXPECT_EQ(e[0].code, "size-overflow");
    EXPECT_NE(e[0].message.find("the equation of S"), std::string::npos);
    EXPECT_EQ(errors(s.d, {{"q", std::int64_t{1} << 40}, {"k", std::int64_t{1} << 40}}).size(), 2U);  // Q too
    EXPECT_EQ(errors(Windows(*size_of(0).pow(3)).d, {{"n", std::int64_t{1} << 40}})[0].code, "size-overflow");
}

TEST(BindSizes, LongProductsAreTakenApart) {
    Builder b;
    std::vector<AxisId> axes;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) axes.push_back(b.axis(name, Size(4096)));
    Expr product;
    for (std::size_t k = 0; k + 1 < axes.size(); ++k) {
        const Expr next = b.self(b.input(std::string("M") + char('0' + k), {axes[k], axes[k + 1]}));
        product = product ? product * next : next;
    }
    const std::vector<AxisId> inner(axes.begin() + 1, axes.end() - 1);
    b.reduce("Y", {axes.front(), axes.back()}, ReduceOp::sum, inner, product);
    EXPECT_TRUE(bind_sizes(b.d, {}).ok());
    // What cannot be taken apart runs over all of its 2^72 points.
    b.reduce("Z", {axes.front(), axes.back()}, ReduceOp::max, inner, product);
    EXPECT_EQ(errors(b.d)[0].code, "size-overflow");
}

TEST(BindSizes, ReadsOutOfRangeBothWays) {
    const auto high = errors(Windows(size_of(0)).d);
    ASSERT_EQ(high.size(), 1U);
    EXPECT_EQ(high[0].code, "index-out-of-range");
    EXPECT_EQ(high[0].message, "the index w + i of X runs from 0 to 11, but n has 10 values");
    EXPECT_EQ(high[0].expected, "indices from 0 to 9");
    EXPECT_NE(high[0].hint.find("--set n=12"), std::string::npos);
    Affine shifted = Affine::axis(2);
    shifted.constant = -1;
    const auto low = errors(Windows(Size(4), shifted).d);
    ASSERT_EQ(low.size(), 1U);
    EXPECT_NE(low[0].message.find("runs from -1 to 2"), std::string::npos) << low[0].message;
    EXPECT_TRUE(bind_sizes(Windows(Size(10), Affine{{{AxisId(2), -1}}, 9}).d).ok());
    EXPECT_FALSE(bind_sizes(Windows(Size(11), Affine{{{AxisId(2), -1}}, 9}).d).ok());
    // a derived size given by hand is checked
    EXPECT_EQ(errors(Windows().d, {{"i", 9}})[0].code, "index-out-of-range");
}

TEST(BindSizes, AnotherAxisAsIndexMustFit) {
    EXPECT_TRUE(bind_sizes(Windows(Size(10), Affine::axis(2)).d).ok());
    EXPECT_EQ(errors(Windows(Size(11), Affine::axis(2)).d)[0].code, "index-out-of-range");
}

TEST(BindSizes, AGuardMakesAReadLegalWhereItKeepsItInside) {
    Windows d(Size(10));
    Equation& y = d.d.equations[0];
    const Expr body = y.body;
    y.body = select(binary(BinaryOp::lt, axis_index(d.i), constant(3)), body, constant(0));
    EXPECT_TRUE(bind_sizes(d.d).ok());
    y.body = select(binary(BinaryOp::gt, axis_index(d.i), constant(3)), body, constant(0));
    EXPECT_EQ(errors(d.d)[0].code, "index-out-of-range");
}

TEST(BindSizes, TheCaretStandsUnderTheIndex) {
    const auto text = std::make_shared<const Source>(Source{"a.nk", "    Y[i] = sum(w) XX[i] + X[ i+w ]\n"});
    Windows d(size_of(0));
    d.d.equations[0].range = {text, 4, static_cast<std::uint32_t>(text->text.size() - 1)};
    const auto e = errors(d.d);
    ASSERT_EQ(e.size(), 1U);
    EXPECT_EQ(text->text.substr(e[0].range.begin, e[0].range.end - e[0].range.begin), "i+w ");
}

TEST(RangeOf, CornersOfTheBox) {
    const Affine index = Affine::axis(0) * 2 - Affine::axis(1) * 3;
    const Interval range = range_of(index, {1, 10}, {4, 5});
    EXPECT_EQ(range.low, 2 * 1 - 3 * 14);
    EXPECT_EQ(range.high, 2 * 4 - 3 * 10);
    const Interval mad = range_of(Affine::axis(0) * (std::int64_t{1} << 62), {0}, {std::int64_t{1} << 62});
    EXPECT_EQ(mad.high, std::int64_t{1} << 62);
}

}  // namespace
}  // namespace napkin::test_diagram
