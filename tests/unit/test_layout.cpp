// Layouts: what each operation gives on small values, and what it refuses.
#include "algebra/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algebra/layout_tile.hpp"
#include "algebra/swizzle.hpp"

namespace napkin::layouts::test_layout {
namespace {

using testing::HasSubstr;

Layout of(std::string_view text) { return parse_layout(text).value(); }
std::string text(const Result<Layout>& r) { return r ? to_string(*r) : render(r.errors()); }
std::string text(const Result<Swizzled>& r) { return r ? to_string(*r) : render(r.errors()); }

std::vector<std::int64_t> values(const Layout& l) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < l.size(); ++i) out.push_back(l(i));
    return out;
}

TEST(Layout, SaysItsFigures) {
    const Layout l = of("((2,2),8):((1,16),2)");
    EXPECT_EQ(l.size(), 32);
    EXPECT_EQ(l.cosize(), 1 + 1 + 16 + 14);
    EXPECT_EQ(l.rank(), 2U);
    EXPECT_EQ(l.depth(), 2U);
    EXPECT_EQ(l.mode(0), of("(2,2):(1,16)"));
    EXPECT_EQ(of("8:3").rank(), 1U);
    EXPECT_EQ(of("8:3").depth(), 0U);
    EXPECT_EQ(of("8:3").mode(0), of("8:3"));
    EXPECT_NE(of("(8):(3)"), of("8:3"));
    EXPECT_EQ(of("(3,1):(0,7)").cosize(), 1);
}

// Seed 001, §3.1: the functions of the column-major and of the row-major layout of 4×4.
TEST(Layout, RunsThroughItsFirstModeFastest) {
    EXPECT_THAT(values(of("(4,4):(1,4)")), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    EXPECT_THAT(values(of("(4,4):(4,1)")), testing::ElementsAre(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}

TEST(Layout, TakesCoordinatesOfAnyDepth) {
    const Layout l = of("((2,2),8):((1,16),2)");
    EXPECT_EQ(l({3, 5}), 1 + 16 + 10);
    EXPECT_EQ(l({{1, 1}, 5}), 1 + 16 + 10);
    EXPECT_EQ(l(3 + 4 * 5), 1 + 16 + 10);
    EXPECT_EQ(l.coordinate(23), (Coordinate{{1, 1}, 5}));
    EXPECT_THROW((void)l(32), InternalError);
    EXPECT_THROW((void)l(-1), InternalError);
    EXPECT_THROW((void)l({4, 0}), InternalError);
    EXPECT_THROW((void)l({1, 2, 3}), InternalError);
}

TEST(Layout, ReadsWhatItPrints) {
    for (const std::string_view t : {"8:1", "(8):(1)", "((2,2),8):((1,16),2)", "(((3,1),5),7):(((0,9),2),1)"})
        EXPECT_EQ(to_string(of(t)), t);
    EXPECT_EQ(of(" ( 4 , 8 ) : ( 8 , 1 ) "), of("(4,8):(8,1)"));
    EXPECT_EQ(text(parse_swizzled("Sw<3,4,3> o (8,64):(64,1)")), "Sw<3,4,3> o (8,64):(64,1)");
    EXPECT_EQ(text(parse_swizzled("(8,64):(64,1)")), "(8,64):(64,1)");
    EXPECT_EQ(*parse_swizzled("Sw<0,4,3> o (8,64):(64,1)"), *parse_swizzled("(8,64):(64,1)"));
}

TEST(Layout, SaysWhatIsWrongInItsText) {
    const auto error = [](std::string_view t) { return text(parse_layout(t)); };
    EXPECT_THAT(error("(4,8):(1,2,3)"), HasSubstr("the stride has a tuple of 3 where the shape has a tuple of 2"));
    EXPECT_THAT(error("(4,(2,2)):(1,2)"), HasSubstr("the stride has a number where the shape has a tuple of 2"));
    EXPECT_THAT(error("(4,8):(1,2,3)"), HasSubstr("<layout>:1:7"));
    EXPECT_THAT(error("(4,0):(1,2)"), HasSubstr("a mode of 0 elements"));
    EXPECT_THAT(error("4:-1"), HasSubstr("a stride of -1"));
    EXPECT_THAT(error("(4,8)"), HasSubstr("the layout ends early"));
    EXPECT_THAT(error("(4,8):(1,2) 3"), HasSubstr("unexpected '3'"));
    EXPECT_THAT(error("(4,:(1,2)"), HasSubstr("a number or '('"));
    EXPECT_THAT(error("()"), HasSubstr("a number or '('"));
    EXPECT_THAT(error("99999999999999999999:1"), HasSubstr("past 64 bits"));
    EXPECT_THAT(error("(4000000000,4000000000):(1,1)"), HasSubstr("past 2^62"));
    EXPECT_THAT(error("4000000000:4000000000"), HasSubstr("past 2^62"));
    EXPECT_THAT(error(std::string(300, '(') + "1"), HasSubstr("nested too deep"));
    EXPECT_THAT(text(parse_swizzled("Sw<4,4,3> o 8:1")), HasSubstr("begins with no swizzle"));
    EXPECT_THAT(text(parse_swizzled("Sw<3,4> o 8:1")), HasSubstr("begins with no swizzle"));
}

TEST(Layout, Coalesces) {
    EXPECT_EQ(coalesce(of("(2,(1,6)):(1,(6,2))")), of("12:1"));
    EXPECT_EQ(coalesce(of("((2,2),(3,1)):((4,8),(1,0))")), of("(4,3):(4,1)"));
    EXPECT_EQ(coalesce(of("(1,1):(5,7)")), of("1:0"));
    EXPECT_EQ(coalesce(of("(3,4):(0,0)")), of("12:0"));
    EXPECT_EQ(coalesce_modes(of("((2,2),(2,2)):((1,2),(4,8))")), of("(4,4):(1,4)"));
}

TEST(Layout, Composes) {
    EXPECT_EQ(text(composition(of("(6,2):(8,2)"), of("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
    EXPECT_EQ(text(composition(of("20:2"), of("(5,4):(4,1)"))), "(5,4):(8,2)");
    EXPECT_EQ(text(composition(of("(10,2):(16,4)"), of("(5,4):(1,5)"))), "(5,(2,2)):(16,(80,4))");
    EXPECT_EQ(text(composition(of("(4,3):(1,100)"), of("(2,1):(0,5)"))), "(2,1):(0,0)");
}

TEST(Layout, SaysWhyItDoesNotCompose) {
    const auto error = [](std::string_view a, std::string_view b) { return text(composition(of(a), of(b))); };
    EXPECT_THAT(error("(4,3):(1,100)", "(2,2):(1,3)"), HasSubstr("together reach 4 in mode 4:1 of the outer layout"));
    EXPECT_THAT(error("(4,3):(1,100)", "4:3"),
                HasSubstr("stride 3 of the inner layout, 4:3, neither divides the size of mode 4:1"));
    EXPECT_THAT(error("(4,3):(1,100)", "(1,2):(0,6)"),
                HasSubstr("stride 6 of mode 1 of the inner layout, 2:6, neither divides"));
    EXPECT_THAT(error("(4,3):(1,100)", "(3,(3,1)):(0,(2,9))"),
                HasSubstr("size 3 of mode 1.0 of the inner layout, 3:2, is not a multiple of the 2 steps after which "
                          "it leaves mode 4:1"));
    EXPECT_THAT(error("(4,3):(1,100)", "13:1"), HasSubstr("reaches 12, where the outer one has 12 elements"));
    // Each leaf by itself stays within the first mode; their sum does not.
    EXPECT_EQ(text(composition(of("(6,2):(1,100)"), of("2:4"))), "2:4");
    EXPECT_THAT(error("(6,2):(1,100)", "(2,2):(4,2)"), HasSubstr("together reach 6 in mode 6:1"));
}

TEST(Layout, Complements) {
    EXPECT_EQ(text(complement(of("4:1"), 24)), "6:4");
    EXPECT_EQ(text(complement(of("6:4"), 24)), "4:1");
    EXPECT_EQ(text(complement(of("(4,6):(1,4)"), 24)), "1:0");
    EXPECT_EQ(text(complement(of("4:2"), 24)), "(2,3):(1,8)");
    EXPECT_EQ(text(complement(of("(2,4):(1,6)"), 24)), "3:2");
    EXPECT_EQ(text(complement(of("(2,2):(1,6)"), 24)), "(3,2):(2,12)");
    EXPECT_THAT(text(complement(of("4:2"), 20)), HasSubstr("20 elements are not a multiple of the 8"));
    EXPECT_THAT(text(complement(of("(4,2):(1,2)"), 24)),
                HasSubstr("stride 2 of the mode 2:2 of (4,2):(1,2) is not a multiple of 4"));
    EXPECT_THAT(text(complement(of("(4,2):(1,0)"), 24)), HasSubstr("its mode 2:0 does not move"));
}

TEST(Layout, Inverts) {
    EXPECT_EQ(right_inverse(of("(4,4):(4,1)")), of("(4,4):(4,1)"));
    EXPECT_EQ(right_inverse(of("(4,2,8):(16,1,2)")), of("(16,4):(4,1)"));
    EXPECT_EQ(right_inverse(of("(4,8):(2,100)")), of("1:0"));
    EXPECT_EQ(right_inverse(of("(4,8):(1,100)")), of("4:1"));
    EXPECT_EQ(right_inverse(of("(3,3):(1,1)")), of("3:1"));
    // Values that repeat do not end it.
    EXPECT_EQ(right_inverse(of("(3,3,2):(1,1,3)")), of("(3,2):(1,9)"));
    EXPECT_EQ(right_inverse(of("(2,4):(0,1)")), of("4:2"));
    EXPECT_EQ(text(left_inverse(of("4:2"))), "(2,4):(4,1)");
    EXPECT_THAT(text(left_inverse(of("(4,3):(1,0)"))), HasSubstr("takes its values several times"));
}

TEST(Layout, DividesAndMultiplies) {
    EXPECT_EQ(text(logical_divide(of("(4,2,3):(2,1,8)"), of("4:2"))), "((2,2),(2,3)):((4,1),(2,8))");
    EXPECT_THAT(text(logical_divide(of("10:1"), of("4:1"))), HasSubstr("10 elements are not a multiple of the 4"));

    EXPECT_EQ(text(logical_product(of("(2,2):(4,1)"), of("6:1"))), "((2,2),(2,3)):((4,1),(2,8))");
    EXPECT_EQ(text(logical_product(of("(2,2):(4,1)"), of("(4,2):(2,1)"))), "((2,2),(4,2)):((4,1),(8,2))");
    // A copy in the gap, and half of another behind it.
    EXPECT_EQ(text(logical_product(of("2:2"), of("2:2"))), "(2,2):(2,4)");
    EXPECT_EQ(text(blocked_product(of("(2,5):(5,1)"), of("(3,4):(1,3)"))), "((2,3),(5,4)):((5,10),(1,30))");

    EXPECT_EQ(text(tile_to_shape(of("(8,64):(64,1)"), {128, 128})), "(128,(64,2)):(64,(1,8192))");
    EXPECT_EQ(text(tile_to_shape(of("(8,64):(64,1)"), {128, 128}, {1, 0})), "((8,16),(64,2)):((64,1024),(1,512))");
    EXPECT_THAT(text(tile_to_shape(of("(8,64):(64,1)"), {128, 100})),
                HasSubstr("extent 100 of mode 1 is not a multiple of the atom's 64"));
}

TEST(Layout, IsArithmeticOnTheIndex) {
    EXPECT_EQ(expression(of("((4,8),4):((2,16),128)"), "t"), "t % 4 * 2 + t / 4 * 16");
    EXPECT_EQ(expression(of("((4,8),3):((2,16),1)"), "t"), "t % 4 * 2 + t / 4 % 8 * 16 + t / 32");
    EXPECT_EQ(expression(of("(4,8):(0,1)"), "t"), "t / 4");
    EXPECT_EQ(expression(of("(4,8):(1,0)"), "t"), "t % 4");
    EXPECT_EQ(expression(of("4:0"), "t"), "0");
    EXPECT_EQ(expression(of("4:1"), "t"), "t");
}

TEST(Layout, SwizzlesAfterIt) {
    const Swizzled s = parse_swizzled("Sw<3,3,3> o (8,64):(64,1)").value();
    EXPECT_EQ(s({0, 0}), 0);
    EXPECT_EQ(s({1, 0}), 64 + 8);
    EXPECT_EQ(s({5, 17}), 5 * 64 + ((17 / 8) ^ 5) * 8 + 1);
    EXPECT_EQ(text(composition(s, of("(64,8):(8,1)"))), "Sw<3,3,3> o (64,8):(1,64)");
    EXPECT_EQ(of_elements({3, 4, 3}, 2), (Swizzle{3, 3, 3}));
    EXPECT_EQ(of_elements({3, 4, 3}, 1), (Swizzle{3, 4, 3}));
    EXPECT_THROW((void)of_elements({3, 4, 3}, 3), InternalError);
    EXPECT_THROW((void)of_elements({3, 4, 3}, 32), InternalError);
}

}  // namespace
}  // namespace napkin::layouts::test_layout
