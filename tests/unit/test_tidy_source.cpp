#include "emit/tidy_source.hpp"

#include <gtest/gtest.h>

namespace napkin::writers {
namespace {

TEST(TidySource, LeavesOutWhatNothingMentions) {
    EXPECT_EQ(tidied("{\n    [[maybe_unused]] const Index x = f();\n    [[maybe_unused]] const Index q = x;\n    "
                     "[[maybe_unused]] unsigned d = 0;\n    use(d);\n}\n"),
              "{\n    unsigned d = 0;\n    use(d);\n}\n");
    EXPECT_EQ(tidied("const f16* const Q_in = static_cast<const f16*>(inputs[0]);\nconst f16* const K_in = "
                     "static_cast<const f16*>(inputs[1]);\nuse(K_in);\n"),
              "const f16* const K_in = static_cast<const f16*>(inputs[1]);\nuse(K_in);\n");
}

TEST(TidySource, KeepsWhatABlockInsideMentionsAndNotWhatACommentDoes) {
    EXPECT_EQ(tidied("[[maybe_unused]] const Index x = f();\nif (a) {\n    b();\n    use(x);\n}\n"),
              "const Index x = f();\nif (a) {\n    b();\n    use(x);\n}\n");
    EXPECT_EQ(tidied("[[maybe_unused]] const Index x = f();\nb();  // of x\n"), "b();  // of x\n");
    EXPECT_EQ(tidied("[[maybe_unused]] const Index x = f();\nuse(xx, x_, x0);\n"), "use(xx, x_, x0);\n");
}

TEST(TidySource, KeepsWhatMayActAndWhatIsDeclaredTogether) {
    const char* const several = "[[maybe_unused]] const Index a = f(), b = g();\nuse(b);\n";
    EXPECT_EQ(tidied(several), several);
    const char* const acts =
        "const unsigned large = those_of_warp(x);\n[[maybe_unused]] const FlushToZero flush_to_zero;\n";
    EXPECT_EQ(tidied(acts), acts);
}

TEST(TidySource, TakesAwayBracesThatHoldOneThing) {
    EXPECT_EQ(tidied("{\n    {\n        a();\n        b();\n    }\n}\n"), "{\n    a();\n    b();\n}\n");
    EXPECT_EQ(tidied("if (x) {\n    {\n        // why\n        EACH(i, 2) {\n            a(i);\n            b(i);\n    "
                     "    }\n    }\n}\n"),
              "if (x) {\n    // why\n    EACH(i, 2) {\n        a(i);\n        b(i);\n    }\n}\n");
    const char* const declares = "{\n    const int a = 1;\n    EACH(i, 2) use(a);\n}\n";
    EXPECT_EQ(tidied(declares), declares);
}

TEST(TidySource, WritesALoopOverOneStatementAsOneLine) {
    EXPECT_EQ(tidied("EACH(r, 2) {\n    EACH(j, 8) EACH(c, 2) {\n        a[r] = b[j];\n    }\n}\n"),
              "EACH(r, 2) EACH(j, 8) EACH(c, 2) a[r] = b[j];\n");
    const std::string long_one = "EACH(r, 2) {\n    call(" + std::string(140, 'x') + ");\n}\n";
    EXPECT_EQ(tidied(long_one), long_one);
    // A condition keeps its braces: what follows it may be an else.
    const char* const condition = "if (x) {\n    a();\n} else {\n    EACH(i, 2) b();\n}\n";
    EXPECT_EQ(tidied("if (x) {\n    a();\n}\nelse {\n    EACH(i, 2) {\n        b();\n    }\n}\n"), condition);
}

TEST(TidySource, KeepsTheIndentationOfLinesThatGoOn) {
    const char* const text =
        "namespace a {\n\nvoid f(int a,\n        int b) {\n    g(\"x\"\n      \"y\");\n#pragma once\n}\n\n}  // "
        "namespace a\n";
    EXPECT_EQ(tidied(text), text);
}

}  // namespace
}  // namespace napkin::writers
