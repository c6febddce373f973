// `napkin layout`: what docs/layouts.md shows.
#include <gmock/gmock.h>

#include "text/tool.hpp"

namespace napkin {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LayoutTool : public ToolTest {};

TEST_F(LayoutTool, ShowsALayout) {
    EXPECT_THAT(tool("layout '((4,8),2):((16,1),8)' --inverse --complement 128 --divide 4:1").out,
                StartsWith("layout         ((4,8),2):((16,1),8)\n"
                           "coalesced      (4,16):(16,1)\n"
                           "value          i % 4 * 16 + i / 4\n"
                           "divided        (4,16):(16,1)\n"
                           "complement     2:64\n"
                           "right inverse  (16,4):(4,1)\n"
                           "left inverse   (16,4):(4,1)\n"
                           "size           64, values before 64\n\n 0   8\n16  24\n"));
    EXPECT_THAT(tool("layout '(2,3):(3,1)'").out, HasSubstr("\n\n0  1  2\n3  4  5\n"));
    const auto json = parsed(tool("layout 'Sw<3,3,3> o (8,64):(64,1)' --compose '(2,4):(8,1)' --json"));
    EXPECT_EQ(json["schema"], "napkin.layout/1");
    EXPECT_EQ(json["composed"], "Sw<3,3,3> o (2,4):(1,64)");
    EXPECT_EQ(json["cosize"], 194);
}

TEST_F(LayoutTool, ShowsWhoHoldsATileOfAMatrixInstruction) {
    EXPECT_THAT(tool("layout 'accumulators(64,64)'").out,
                StartsWith("layout     ((4,8,4),(2,2,8)):((128,1,16),(64,8,512))\n"
                           "row        ((4,8,4),(2,2,8)):((0,1,16),(0,8,0))\n"
                           "column     ((4,8,4),(2,2,8)):((2,0,0),(1,0,8))\n"));
    EXPECT_THAT(tool("layout 'accumulators(64,64)'").out,
                HasSubstr("2 a thread, each of 4 threads: exchanged with lane xor 2, 1\n"));
    const auto json = parsed(tool("layout 'accumulators(128,128)' --read-as 'operand(128,128,2)' --json"));
    EXPECT_EQ(json["registers"], "((2,2,2),2,8):((1,2,4),64,8)");
    EXPECT_EQ(json["shared_rows"]["rows_a_thread"], 4);
    EXPECT_EQ(parsed(tool("layout 'shared(128,64,2,128)' --json"))["layout"], "Sw<3,3,3> o (128,64):(64,1)");
    // A quarter of the threads to a row where elements have one byte as where they have two: 16 bytes are dealt out to
    // four.
    EXPECT_EQ(parsed(tool("layout 'operand(64,32,1)' --json"))["shared_rows"]["threads_a_row"], 4);
}

TEST_F(LayoutTool, CountsBankConflicts) {
    EXPECT_THAT(tool("layout '(32,1):(128,0)' --access 16").out, HasSubstr("32, 4 without bank conflicts"));
    EXPECT_THAT(tool("layout 'Sw<3,4,3> o (32,1):(128,0)' --access 16").out, HasSubstr("4, 4 without bank conflicts"));
    EXPECT_THAT(tool("layout 32:4 --access 4 --banks 16").out, HasSubstr("2, 2 without bank conflicts"));
}

TEST_F(LayoutTool, SaysWhatIsWrong) {
    const Outcome text = tool("layout '(4,8):(1,2,3)'");
    EXPECT_EQ(text.code, 1);
    EXPECT_THAT(text.err, HasSubstr("<layout>:1:7: error"));
    const Outcome carry = tool("layout '(6,2):(1,100)' --compose '(2,2):(4,2)'");
    EXPECT_EQ(carry.code, 1);
    EXPECT_THAT(carry.err, HasSubstr("together reach 6 in mode 6:1 of the outer layout"));
    EXPECT_EQ(tool("layout '(4,3):(1,0)' --inverse").code, 1);
    EXPECT_EQ(tool("layout 2048:4 --access 4").code, 2);
    EXPECT_EQ(tool("layout 32:4 --access 256").code, 2);
    EXPECT_EQ(tool("layout").code, 2);
    for (const char* name :
         {"fragment(1)", "accumulators(64)", "accumulators(64,)", "accumulators(64,8", "operand(64,-16,2)", "a"})
        EXPECT_THAT(
            tool(std::string("layout '") + name + "'").err,
            HasSubstr(
                "is no tile of a matrix instruction [layout-syntax]\n      = expected: accumulators(rows,columns), "))
            << name;
    EXPECT_THAT(tool("layout 'operand(64,16,3)'").err, HasSubstr("has elements of 3 bytes"));
    EXPECT_THAT(tool("layout 'accumulators(60,64)'").err, HasSubstr("a tile of 60 × 64 from fragments of 64 × 64"));
    EXPECT_EQ(tool("layout 4:1 --read-as 4:1").code, 2);
    EXPECT_THAT(tool("layout 'accumulators(64,128)' --read-as 'operand(64,128,1)'").err, HasSubstr("which thread"));
}

}  // namespace
}  // namespace napkin
