#include "emit/emit_code.hpp"

#include <gtest/gtest.h>

namespace napkin::writers {
namespace {

/// The text of what the function writes.
std::string written(const auto& write) {
    Lines out;
    write(out);
    return out.text();
}

TEST(EmitCode, LeavesOutWhatNothingMentions) {
    EXPECT_EQ(written([](Lines& out) {
                  out.open("");
                  out.declare("const Index", "x", "f()"), out.declare("const Index", "q", "x");
                  out.declare("unsigned", "d", "0"), out("use(d);");
                  out.close();
              }),
              "{\n    unsigned d = 0;\n    use(d);\n}\n");
}

TEST(EmitCode, KeepsWhatABlockInsideMentionsAndNotWhatACommentDoes) {
    const auto with = [](const std::string& line) {
        return written([&](Lines& out) {
            out.declare("const Index", "x", "f()");
            out.open("if (a)"), out("b();"), out(line), out.close();
        });
    };
    EXPECT_EQ(with("use(x);"), "const Index x = f();\nif (a) {\n    b();\n    use(x);\n}\n");
    EXPECT_EQ(with("c();  // of x"), "if (a) {\n    b();\n    c();  // of x\n}\n");
    EXPECT_EQ(with("use(xx, x_, x0);"), "if (a) {\n    b();\n    use(xx, x_, x0);\n}\n");
}

TEST(EmitCode, KeepsNoNameThatOnlyABlockBeforeMentions) {
    EXPECT_EQ(written([](Lines& out) {
                  out.open("if (a)"), out.declare("const Index", "x", "f()"), out("b();"), out("c();"), out.close();
                  out("use(x);");
              }),
              "if (a) {\n    b();\n    c();\n}\nuse(x);\n");
}

TEST(EmitCode, TakesAwayBracesThatHoldOneThing) {
    EXPECT_EQ(written([](Lines& out) { out.open(""), out.open(""), out("a();"), out("b();"), out.close(), out.close(); }),
              "{\n    a();\n    b();\n}\n");
    EXPECT_EQ(written([](Lines& out) {
                  out.open("if (x)"), out.open(""), out("// why");
                  out.open("EACH(i, 2)"), out("a(i);"), out("b(i);"), out.close();
                  out.close(), out.close();
              }),
              "if (x) {\n    // why\n    EACH(i, 2) {\n        a(i);\n        b(i);\n    }\n}\n");
    EXPECT_EQ(written([](Lines& out) {
                  out.open(""), out("const int a = 1;"), out.open("EACH(i, 2)"), out("use(a);"), out.close(), out.close();
              }),
              "{\n    const int a = 1;\n    EACH(i, 2) use(a);\n}\n");
}

TEST(EmitCode, WritesALoopOverOneStatementAsOneLine) {
    const auto loops = [](const std::string& line) {
        return written([&](Lines& out) {
            out.open("EACH(r, 2)"), out.open("EACH(j, 8) EACH(c, 2)"), out(line), out.close(), out.close();
        });
    };
    EXPECT_EQ(loops("a[r] = b[j];"), "EACH(r, 2) EACH(j, 8) EACH(c, 2) a[r] = b[j];\n");
    const std::string call = "call(" + std::string(140, 'x') + ");";
    EXPECT_EQ(loops(call), "EACH(r, 2) {\n    EACH(j, 8) EACH(c, 2) {\n        " + call + "\n    }\n}\n");
    // A condition keeps its braces: what follows it may be an else.
    EXPECT_EQ(written([](Lines& out) {
                  out.open("if (x)"), out("a();"), out.close();
                  out.open("else"), out.open("EACH(i, 2)"), out("b();"), out.close(), out.close();
              }),
              "if (x) {\n    a();\n} else {\n    EACH(i, 2) b();\n}\n");
}

TEST(EmitCode, AppendsBlocksAndKeepsTheIndentationOfLinesThatGoOn) {
    Lines inside;
    inside("g(\"x\"\n      \"y\");"), inside("h();");
    EXPECT_EQ(written([&](Lines& out) {
                  out.open("void f(int a,\n        int b)"), out.append(inside), out("#pragma once"), out.close();
              }),
              "void f(int a,\n        int b) {\n    g(\"x\"\n      \"y\");\n    h();\n#pragma once\n}\n");
}

}  // namespace
}  // namespace napkin::writers
