// SVG documents: what a user named stays text, numbers are the same everywhere, widths are no less than they are drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "draw/svg.hpp"
#include "support/result.hpp"

namespace napkin::svg {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Svg, EscapesWhatAUserNamed) {
    EXPECT_EQ(escaped("<script>alert(\"1\" & '2')</script>"),
              "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
    EXPECT_EQ(escaped("q\u0304 \u03b4 \U0001F9FB"), "q\u0304 \u03b4 \U0001F9FB");
}

TEST(Svg, ReplacesWhatIsNoText) {
    EXPECT_EQ(cleaned(std::string_view("a\0b\x01\x7f", 5)), "a\uFFFDb\uFFFD\uFFFD");
    EXPECT_EQ(cleaned("a\tb\nc"), "a b c");
    EXPECT_EQ(cleaned("\xff\xc0\x80"), "\uFFFD\uFFFD\uFFFD");            // no first byte, too long a form
    EXPECT_EQ(cleaned("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
    EXPECT_EQ(cleaned("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // past the last character
    EXPECT_EQ(cleaned("\xe2\x82"), "\uFFFD\uFFFD");                      // cut off
    EXPECT_EQ(cleaned("abc\u202Edef\uFFFF"), "abc\uFFFDdef\uFFFD");      // turned round; no character
}

TEST(Svg, PrintsNumbersWithTwoDecimals) {
    EXPECT_EQ(number_text(1), "1");
    EXPECT_EQ(number_text(1.005), "1");
    EXPECT_EQ(number_text(-0.001), "0");
    EXPECT_EQ(number_text(12.5), "12.5");
    EXPECT_EQ(number_text(1e7 / 3), "3333333.33");
    EXPECT_THROW(number_text(std::nan("")), InternalError);
    EXPECT_THROW(number_text(std::numeric_limits<double>::infinity()), InternalError);
}

TEST(Svg, PrintsADocument) {
    Document picture{20, 10, "a < b", "two \"axes\""};
    picture.add(line(0, 0, 20, 10, "wire level-1").data("axis", "\"><script>").titled("q & k"));
    picture.add(text(1, 2, Label{{"g"}, {"q", Span::Shift::sub, true}, {" + 1"}}, Anchor::middle));
    const std::string inlined = to_inline_text(picture);
    EXPECT_EQ(inlined, R"(<svg xmlns="http://www.w3.org/2000/svg" class="napkin" viewBox="0 0 20 10" width="20" height="10" role="img" )"
                       R"(aria-labelledby="napkin-title napkin-desc">
  <title id="napkin-title">a &lt; b</title>
  <desc id="napkin-desc">two &quot;axes&quot;</desc>
  <line class="wire level-1" x1="0" y1="0" x2="20" y2="10" data-axis="&quot;&gt;&lt;script&gt;">
    <title>q &amp; k</title>
  </line>
  <text x="1" y="2" text-anchor="middle" xml:space="preserve"><tspan>g</tspan><tspan dy="0.35em" font-size="72%" font-style="italic">q</tspan>)"
                       R"(<tspan dy="-0.25em"> + 1</tspan></text>
</svg>
)");
    EXPECT_THAT(to_text(picture), HasSubstr("<style>"));
    EXPECT_THAT(to_text(picture), HasSubstr("svg.napkin .level-1 {"));
    EXPECT_THAT(to_text(picture), Not(HasSubstr("svg.napkin .level-2 {")));
    EXPECT_THAT(to_text(picture), Not(HasSubstr("<script")));
}

TEST(Svg, AStyleSheetIsNoMarkup) {
    EXPECT_THAT(style_sheet(), Not(HasSubstr("<")));
    EXPECT_THAT(style_sheet(), Not(HasSubstr("&")));
    EXPECT_THAT(style_sheet(), HasSubstr("prefers-color-scheme: dark"));
}

/// A colour of the style sheet after `from`, as its relative luminance (WCAG 2).
double luminance(const std::string& name, std::size_t from) {
    const std::string& sheet = style_sheet();
    const std::size_t at = sheet.find(" --" + name + ": #", from) + name.size() + 6;
    double out = 0;
    for (const auto& [place, weight] : {std::pair{0, 0.2126}, {2, 0.7152}, {4, 0.0722}}) {
        const double c = std::stoi(sheet.substr(at + static_cast<std::size_t>(place), 2), nullptr, 16) / 255.0;
        out += weight * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
    }
    return out;
}

TEST(Svg, ColoursHaveContrastInLightAndDark) {
    for (const std::size_t from : {style_sheet().find("svg.napkin.light"), style_sheet().find("svg.napkin.dark")}) {
        for (const std::string text : {"ink", "muted", "level-0", "level-1", "level-2", "level-3", "level-4",
                                       "accent-0", "accent-1", "accent-2", "accent-3", "accent-4", "accent-5"})
            for (const std::string ground : {"paper", "panel"}) {
                const double a = luminance(text, from), b = luminance(ground, from);
                EXPECT_GE((std::max(a, b) + 0.05) / (std::min(a, b) + 0.05), 4.5)
                    << text << " on " << ground << ", from " << from;
            }
    }
}

TEST(Svg, WidthsFollowTheText) {
    EXPECT_DOUBLE_EQ(text_width(""), 0);
    EXPECT_GT(text_width("mmm"), text_width("iii"));
    EXPECT_DOUBLE_EQ(text_width("q\u0304"), text_width("q"));
    EXPECT_LT(text_width(Label{{"q", Span::Shift::sub}}), text_width("q"));
    EXPECT_EQ(shortened("abc", 100), "abc");
    EXPECT_LE(text_width(shortened("a_very_long_name_of_an_array", 60)), 60);
    EXPECT_EQ(plain_text({{"g"}, {"q", Span::Shift::sub}}), "g_q");
}

}  // namespace
}  // namespace napkin::svg
