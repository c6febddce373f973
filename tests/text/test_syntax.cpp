// Texts and the diagrams they become, printed: tests/text/syntax/<name>.nk and <name>.txt. NAPKIN_UPDATE_GOLDEN=1
// rewrites the latter. And what must hold of all of them, the examples and the standard library: parse(print(d)) == d,
// verified.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "diagram/sizes.hpp"
#include "diagram/verifier.hpp"
#include "support/paths.hpp"
#include "syntax/codes.hpp"
#include "syntax/elaborate.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

namespace fs = std::filesystem;

const fs::path root = source_dir();

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> texts(const fs::path& where) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(where)) {
        if (entry.path().extension() == ".nk") out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
}

Result<Diagram> parse(const std::string& text, const ParseOptions& options = {}) {
    return parse_diagram(std::make_shared<const Source>(Source{"<text>", text}), options);
}

Diagram parsed(const std::string& text, const ParseOptions& options = {}) {
    auto result = parse(text, options);
    if (!result.ok()) {
        ADD_FAILURE() << text << "\n" << render(result.errors());
        return {};
    }
    return *result;
}

void expect_round_trip(const Diagram& d) {
    EXPECT_TRUE(verify(d).empty()) << verify(d)[0] << "\n" << print(d);
    const std::string text = print(d);
    const auto again = parse(text);
    ASSERT_TRUE(again.ok()) << text << render(again.errors());
    EXPECT_EQ(*again, d) << text << "\nbecomes\n" << print(*again);
}

/// The body of f's only equation, as it prints.
std::string body(const std::string& expression, const std::string& arguments = "X[i, j], Z[j], s") {
    const Diagram d = parsed("f(" + arguments + ") -> Y[i, j]\n    Y[i, j] = " + expression + "\n");
    return d.equations.empty() ? "" : to_string(d.equations.back().body, d.names());
}

TEST(Syntax, TextsBecomeTheseDiagrams) {
    for (const fs::path& path : texts(root / "tests" / "text" / "syntax")) {
        SCOPED_TRACE(path.string());
        const Diagram d = parsed(read_file(path));
        fs::path expected = path;
        expected.replace_extension(".txt");
        const std::string text = print(d);
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) std::ofstream(expected, std::ios::binary) << text;
        EXPECT_EQ(text, read_file(expected));
        expect_round_trip(d);
    }
}

TEST(Syntax, ExamplesParseHaveSizesAndPrint) {
    const std::vector<fs::path> examples = texts(root / "examples");
    EXPECT_GE(examples.size(), 20U);
    for (const fs::path& path : examples) {
        SCOPED_TRACE(path.string());
        const Diagram d = parsed(read_file(path));
        expect_round_trip(d);
        const auto extents = bind_sizes(d);
        EXPECT_TRUE(extents.ok()) << render(extents.errors());
    }
}

TEST(Syntax, EveryDefinitionOfTheStandardLibraryStandsByItself) {
    const auto source = std::make_shared<const Source>(Source{"std.nk", read_file(root / "lib" / "std.nk")});
    const auto names = list_diagrams(source);
    ASSERT_TRUE(names.ok()) << render(names.errors());
    EXPECT_GE(names->size(), 40U);
    for (const std::string& name : *names) {
        SCOPED_TRACE(name);
        const auto d = parse_diagram(source, {name, {}});
        ASSERT_TRUE(d.ok()) << render(d.errors());
        expect_round_trip(*d);
    }
}

TEST(Syntax, OperatorsBindAsInMathematics) {
    EXPECT_EQ(body("-X[i, j]^2"), "-X[i, j]^2");
    EXPECT_EQ(body("-2^2 + X[i, j]"), "-2^2 + X[i, j]");
    EXPECT_EQ(body("X[i, j]^2^3"), "X[i, j]^2^3");
    EXPECT_EQ(body("(X[i, j]^2)^3"), "(X[i, j]^2)^3");
    EXPECT_EQ(body("X[i, j] - (s - 1)"), "X[i, j] - (s - 1)");
    EXPECT_EQ(body("(X[i, j] - s) - 1"), "X[i, j] - s - 1");
    EXPECT_EQ(body("X[i, j]^-s * 2"), "X[i, j]^-s * 2");
    EXPECT_EQ(body("where(not i < j and j <= 3 or s > 0, X[i, j], -inf)"),
              "where(not i < j and j <= 3 or s > 0, X[i, j], -inf)");
    EXPECT_EQ(body("where(not (i < j and j <= 3), X[i, j], nan)"), "where(not (i < j and j <= 3), X[i, j], nan)");
    EXPECT_EQ(body("X[i, j] * j - size(j)"), "X[i, j] * j - size(j)");
}

TEST(Syntax, ExpressionsGoOnOverLines) {
    const Diagram d = parsed(
        "f(X[i],\n  Z[i]) -> Y[i]  # the signature too\n"
        "    Y[i] = X[i]\n"
        "        + exp(\n"
        "    Z[i]\n"
        "        ) *\n"
        "        2\n"
        "sizes\n    i = 4\n");
    ASSERT_EQ(d.equations.size(), 1U);
    EXPECT_EQ(to_string(d, d.equations[0]), "Y[i] = X[i] + exp(Z[i]) * 2");
}

TEST(Syntax, IndentedTextsOfCodeAreRead) {
    const Diagram d = parsed("\r\n  f(X[i]) -> Y[i]\r\n      Y[i] = X[i]\r\n  sizes i = 4\r\n");
    EXPECT_EQ(d.axes[0].size, Size(4));
}

TEST(Syntax, ConstantsAreExact) {
    for (const double value :
         {0.1, 1e-5, 1.0 / 3, 4.9406564584124654e-324, 1.7976931348623157e308, 2.5, 123456789012345678.0}) {
        const Diagram d = parsed("f(X[i]) -> Y[i]\n    Y[i] = X[i] + " + fmt::format("{}", value) + "\n");
        ASSERT_FALSE(d.equations.empty());
        EXPECT_EQ(as<Constant>(as<Binary>(d.equations[0].body)->b)->value, value);
        expect_round_trip(d);
    }
    expect_round_trip(parsed("f(X[i]) -> Y[i]\n    Y[i] = -nan * -inf * -0 * (-0.0 - X[i]) - -(2)\n"));
}

TEST(Syntax, TheMainDiagramIsTheLastUnlessNamed) {
    const std::string text = "f(X[i]) -> Y[i]\n    Y[i] = X[i]\ng(X[j]) -> Y[j]\n    Y[j] = f(X)\nsizes i = 3, j = 4\n";
    EXPECT_EQ(parsed(text).name, "g");
    EXPECT_EQ(parsed(text).axes[0].size, Size(4));
    EXPECT_EQ(parsed(text, {"f", {}}).name, "f");
    EXPECT_EQ(parsed(text, {"f", {}}).axes[0].size, Size(3));
}

TEST(Syntax, SizesAndScheduleBesideTheDefinitionsAreTheMainDiagrams) {
    // In f, i runs over all of n; the sizes are g's, where it does not.
    const std::string text =
        "f(X[n]) -> Y[i]\n    Y[i] = X[i]\n"
        "g(X[b, n], W[w]) -> Z[b, i]\n    Y[b, m] = f(X[b, ..])\n    Z[b, i] = sum(w) Y[b, i + w] * W[w]\n"
        "sizes b = 2, n = 16, w = 3, i = n - w + 1\nschedule\n    group b = 1\n";
    EXPECT_EQ(parsed(text).schedule.size(), 1U);
    EXPECT_TRUE(bind_sizes(parsed(text)).ok());
    const Diagram f = parsed(text, {"f", {}});
    EXPECT_TRUE(f.schedule.empty());
    EXPECT_FALSE(parse("f(X[n]) -> Y[i]\n    Y[i] = X[i]\nsizes n = 16, i = 14\n").ok());
    EXPECT_TRUE(
        parse("f(X[n]) -> Y[i]\n    Y[i] = X[i]\ng(X[n]) -> Z[i]\n    Z[i] = X[i + 2]\nsizes n = 16, i = 14\n").ok());
}

TEST(Syntax, TheCommandLinesScheduleStandsBeforeTheTexts) {
    const std::string text =
        "f(X[i]) -> Y[i]\n    Y[i] = X[i]\nschedule\n    group i = 8\n    form = auxiliary\n    threads = 2\n";
    const Diagram d = parsed(text, {"", {"group i=16", "stream i"}});
    ASSERT_EQ(d.schedule.size(), 4U);
    EXPECT_EQ(d.schedule[0], (ScheduleItem{ChoiceKind::form, "", std::nullopt, "auxiliary", {}}));
    EXPECT_EQ(d.schedule[1], (ScheduleItem{ChoiceKind::threads, "", 2, "", {}}));
    EXPECT_EQ(d.schedule[2], (ScheduleItem{ChoiceKind::group, "i", 16, "", {}}));
    EXPECT_EQ(d.schedule[3], (ScheduleItem{ChoiceKind::stream, "i", std::nullopt, "", {}}));
    expect_round_trip(d);
    // What it says of all kernels also goes before what the text says of one.
    const Diagram of_one = parsed(text + "    kernel Y\n    group i = 4\n    rows = 3\n", {"", {"group i=16"}});
    ASSERT_EQ(of_one.schedule.size(), 4U);
    EXPECT_EQ(of_one.schedule[2], (ScheduleItem{ChoiceKind::rows, "", 3, "", {}, {}, "Y"}));
    EXPECT_EQ(of_one.schedule[3], (ScheduleItem{ChoiceKind::group, "i", 16, "", {}}));
    EXPECT_TRUE(parse(print(of_one)).ok());
}

TEST(Syntax, DefaultsOfTheMainDiagramAreConstants) {
    const Diagram d = parsed("f(X[i], s: f32 = 0.5, Z[i]) -> Y[i]\n    Y[i] = X[i] * s + Z[i]\n");
    EXPECT_EQ(d.inputs.size(), 2U);
    EXPECT_EQ(to_string(d, d.equations[0]), "Y[i] = X[i] * 0.5 + Z[i]");
}

TEST(Syntax, AUsersDefinitionShadowsTheStandardLibrarys) {
    const Diagram d = parsed("relu(x) -> y\n    y = x^2\nf(X[i]) -> Y[i]\n    Y[i] = relu(X[i])\n");
    EXPECT_EQ(to_string(d, d.equations[0]), "Y[i] = X[i]^2");
}

TEST(Syntax, EquationsPointIntoTheUsersText) {
    const std::string text = "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c] * 2\n";
    const Diagram d = parsed(text);
    ASSERT_EQ(d.equations.size(), 5U);
    for (const Equation& e : d.equations) {
        ASSERT_NE(e.range.source, nullptr);
        EXPECT_EQ(e.range.source->text.substr(e.range.begin, e.range.end - e.range.begin),
                  "Y[r, c] = softmax(c) X[r, c] * 2");
    }
    EXPECT_TRUE(d.equations[0].inlined.empty());
    EXPECT_EQ(d.equations[1].inlined, (std::vector<std::string>{"softmax"}));
}

TEST(Syntax, CanonicalOrderIsReachedFromAnyOther) {
    Diagram d = parsed(
        "f(Q[q, k], K[x, k]) -> S[q]\n    T[q, x] = sum(k) Q[q, k] * K[x, k]\n    S[q] = max(x) T[q, x]\nsizes x = "
        "q\n");
    Diagram shuffled = d;
    // Array 0 and the last change places, and so do two axes.
    const auto last = ArrayId::of(d.arrays.size() - 1);
    const auto array = [&](ArrayId id) { return id == 0 ? last : id == last ? ArrayId(0) : id; };
    const auto axis = [&](AxisId id) { return id == 0 ? AxisId(2) : id == 2 ? AxisId(0) : id; };
    for (const ArrayId i : d.arrays.ids()) shuffled.arrays[array(i)] = d.arrays[i];
    for (const AxisId i : d.axes.ids()) shuffled.axes[axis(i)] = d.axes[i];
    for (Axis& a : shuffled.axes)
        if (a.size) a.size = a.size->renamed([&](Symbol s) { return axis_symbol(axis(s.axis())); });
    for (Array& a : shuffled.arrays) std::transform(a.axes.begin(), a.axes.end(), a.axes.begin(), axis);
    std::transform(shuffled.inputs.begin(), shuffled.inputs.end(), shuffled.inputs.begin(), array);
    std::transform(shuffled.outputs.begin(), shuffled.outputs.end(), shuffled.outputs.begin(), array);
    for (Equation& e : shuffled.equations) {
        e.target = array(e.target);
        std::transform(e.reduce_axes.begin(), e.reduce_axes.end(), e.reduce_axes.begin(), axis);
        e.body = transform(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;
            for (const Index& index : r->indices)
                indices.push_back(substitute(index, [&](AxisId a) { return std::optional<Index>(Affine::axis(axis(a))); }));
            return read(array(r->array), std::move(indices));
        });
    }
    EXPECT_NE(shuffled, d);
    EXPECT_EQ(canonical(shuffled), d);
    EXPECT_EQ(print(shuffled).substr(0, 30), print(d).substr(0, 30));
}

}  // namespace
}  // namespace napkin
