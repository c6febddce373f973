// Diagnostics as text: the caret stands under what is meant, whatever the line holds.
#include "support/source.hpp"

#include <gtest/gtest.h>

namespace napkin::test_source {
namespace {

SourceRange range_of(const std::string& text, const std::string& part, const std::string& file = "a.nk") {
    const auto source = std::make_shared<const Source>(Source{file, text});
    const auto at = text.find(part);
    EXPECT_NE(at, std::string::npos);
    return {source, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + part.size())};
}

std::string rendered(const std::string& text, const std::string& part) {
    return render(Diagnostic{"code", range_of(text, part), "message", "", "", {}});
}

TEST(Source, LineAndColumnCountBytesFromOne) {
    const Source source{"a.nk", "ab\n\ncdé f\n"};
    const auto at = [&](std::uint32_t offset) {
        const LineColumn p = line_column(source, offset);
        return std::pair(p.line, p.column);
    };
    EXPECT_EQ(at(0), std::pair(1U, 1U));
    EXPECT_EQ(at(2), std::pair(1U, 3U));
    EXPECT_EQ(at(3), std::pair(2U, 1U));
    EXPECT_EQ(at(4), std::pair(3U, 1U));
    EXPECT_EQ(at(9), std::pair(3U, 6U));
    EXPECT_EQ(at(11), std::pair(4U, 1U));
    EXPECT_EQ(at(1000), std::pair(4U, 1U));
}

TEST(Source, RendersPositionLineCaretExpectedHintAndNotes) {
    const std::string text = "f(X[i]) -> Y[i]\n    Y[i] = Z[i]\n";
    Diagnostic d{"unknown-array", range_of(text, "Z"), "no array is called Z", "an array of f", "did you mean X?", {}};
    d.notes.push_back({range_of(text, "X[i]"), "X stands here"});
    EXPECT_EQ(render(d),
              "a.nk:2:12: error: no array is called Z [unknown-array]\n"
              "    2 |     Y[i] = Z[i]\n"
              "      |            ^\n"
              "      = expected: an array of f\n"
              "      = hint: did you mean X?\n"
              "a.nk:1:3: note: X stands here\n"
              "    1 | f(X[i]) -> Y[i]\n"
              "      |   ^~~~\n");
    EXPECT_EQ(render({d, d}), render(d) + "\n" + render(d));
}

TEST(Source, WithoutAPlaceOnlyTheMessageStands) {
    EXPECT_EQ(render(Diagnostic{"bad-size", {}, "q is 0", "at least 1", "", {}}),
              "error: q is 0 [bad-size]\n      = expected: at least 1\n");
}

TEST(Source, ColoursOnlyWhenAsked) {
    const Diagnostic d{"c", range_of("abc", "b"), "m", "", "", {}};
    EXPECT_EQ(render(d).find('\033'), std::string::npos);
    EXPECT_NE(render(d, true).find("\033[1;31m"), std::string::npos);
}

TEST(Source, CaretsStandUnderMultiByteTextTabsAndWideLetters) {
    EXPECT_EQ(rendered("α = βγ + x", "βγ"), "a.nk:1:6: error: message [code]\n    1 | α = βγ + x\n      |     ^~\n");
    EXPECT_EQ(rendered("α = βγ + x", "x"),
              "a.nk:1:13: error: message [code]\n    1 | α = βγ + x\n      |          ^\n");
    EXPECT_EQ(rendered("\t\tx", "x"), "a.nk:1:3: error: message [code]\n    1 |         x\n      |         ^\n");
    EXPECT_EQ(rendered("漢字 x", "x"), "a.nk:1:8: error: message [code]\n    1 | 漢字 x\n      |      ^\n");
    EXPECT_EQ(rendered("a 漢字", "漢字"), "a.nk:1:3: error: message [code]\n    1 | a 漢字\n      |   ^~~~\n");
}

TEST(Source, LineEndsOfEverySystem) {
    EXPECT_EQ(rendered("ab\r\ncd\r\n", "cd"), "a.nk:2:1: error: message [code]\n    2 | cd\n      | ^~\n");
    EXPECT_EQ(rendered("ab\r\ncd\r\n", "d\r\n"), "a.nk:2:2: error: message [code]\n    2 | cd\n      |  ^\n");
}

TEST(Source, RangesOverSeveralLinesEndWithTheFirst) {
    EXPECT_EQ(rendered("a (b\nc) d", "(b\nc)"), "a.nk:1:3: error: message [code]\n    1 | a (b\n      |   ^~\n");
}

TEST(Source, EmptyRangesAndTheEndOfTheFile) {
    EXPECT_EQ(rendered("abc", ""), "a.nk:1:1: error: message [code]\n    1 | abc\n      | ^\n");
    SourceRange end = range_of("abc\n", "abc");
    end.begin = 4;
    end.end = 9;
    EXPECT_EQ(render(Diagnostic{"code", end, "message", "", "", {}}),
              "a.nk:2:1: error: message [code]\n    2 | \n      | ^\n");
    end.begin = 70;
    end.end = 3;
    EXPECT_EQ(render(Diagnostic{"code", end, "message", "", "", {}}),
              "a.nk:2:1: error: message [code]\n    2 | \n      | ^\n");
}

TEST(Source, ControlCharactersAndBrokenTextAreNotPassedToTheTerminal) {
    const std::string text = rendered("a\033[2Jb\x80\xFF x", "x");
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_NE(text.find("a�[2Jb�� x\n"), std::string::npos);
    Diagnostic d{"code", range_of("a", "a", "evil\033.nk"), "message\033[31m", "\a", "", {}};
    EXPECT_EQ(render(d).find('\033'), std::string::npos);
    EXPECT_EQ(render(d).find('\a'), std::string::npos);
}

TEST(Source, LongLinesAreClippedAroundTheRange) {
    const std::string text = std::string(5000, 'a') + " bad " + std::string(5000, 'b');
    const std::string out = rendered(text, "bad");
    EXPECT_LT(out.size(), 400U);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < out.size();) {
        const std::size_t end = out.find('\n', at);
        lines.push_back(out.substr(at, end - at));
        at = end + 1;
    }
    ASSERT_EQ(lines.size(), 3U);
    const std::string ellipsis = "…";
    const auto shown = lines[1].find("bad");
    ASSERT_NE(shown, std::string::npos);
    EXPECT_EQ(lines[2].find("^~~"), shown - (ellipsis.size() - 1));  // the … is one column of three bytes
    EXPECT_TRUE(lines[1].ends_with(ellipsis));
}

TEST(Source, AMillionLettersInOneLineAreNoTrouble) {
    const auto source = std::make_shared<const Source>(Source{"m", std::string(1 << 20, 'x')});
    for (std::uint32_t begin : {0U, 100U, 500000U, 1048575U, 1048576U}) {
        EXPECT_LT(render(Diagnostic{"c", {source, begin, 1 << 20}, "m", "", "", {}}).size(), 500U);
    }
}

TEST(NearestName, FindsSlipsOfTheHand) {
    const std::vector<std::string> names{"softplus", "sigmoid", "query", "keys", "values", "q", "Temperature"};
    EXPECT_EQ(nearest_name("sofptlus", names), "softplus");
    EXPECT_EQ(nearest_name("sigmod", names), "sigmoid");
    EXPECT_EQ(nearest_name("key", names), "keys");
    EXPECT_EQ(nearest_name("qeury", names), "query");
    EXPECT_EQ(nearest_name("Q", names), "q");
    EXPECT_EQ(nearest_name("temperature", names), "Temperature");
    EXPECT_EQ(nearest_name("sig", names), "sigmoid");
}

TEST(NearestName, SaysNothingWhenNothingIsNear) {
    EXPECT_EQ(nearest_name("x", {"q", "k", "d"}), "");
    EXPECT_EQ(nearest_name("rotary", {"keys", "values"}), "");
    EXPECT_EQ(nearest_name("", {"a"}), "");
    EXPECT_EQ(nearest_name("abc", {}), "");
    EXPECT_EQ(nearest_name(std::string(100000, 'a'), {"aa", "b"}), "");
}

}  // namespace
}  // namespace napkin::test_source
