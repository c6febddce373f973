// The command line as a user meets it: help, mistakes, where output goes, exit codes, and `check`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/json.hpp"
#include "text/cli.hpp"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(Cli, without_a_command_shows_the_help_as_a_mistake) {
    const Outcome outcome = napkin("");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("Subcommands:"));
}

TEST_F(Cli, help_and_version_are_data) {
    EXPECT_THAT(napkin("--help").out, AllOf(HasSubstr("derive"), HasSubstr("napkin run examples/attention.nk")));
    EXPECT_EQ(napkin("--help").code, 0);
    EXPECT_THAT(napkin("--version").out, StartsWith("napkin 0."));
}

TEST_F(Cli, every_command_has_help_with_one_example) {
    for (const std::string command : {"check", "derive", "grad", "cost", "plan", "emit", "run", "bench", "machines",
                                      "doctor", "cache", "cache list", "cache size", "cache clear"}) {
        const Outcome outcome = napkin(command + " --help");
        EXPECT_EQ(outcome.code, 0) << command;
        const std::size_t example = outcome.out.find("Example:\n  napkin " + command);
        ASSERT_NE(example, std::string::npos) << command << outcome.out;
        EXPECT_EQ(outcome.out.find("Example:", example + 1), std::string::npos) << command;
        EXPECT_EQ(outcome.err, "") << command;
    }
}

TEST_F(Cli, a_mistyped_command_names_the_nearest) {
    const Outcome outcome = napkin("drive a.nk");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "napkin: there is no command `drive`; did you mean `derive`?\nsee `napkin --help`\n");
}

TEST_F(Cli, mistakes_on_the_command_line_are_usage) {
    write("a.nk", matmul);
    for (const std::string arguments :
         {"run", "run --bogus a.nk", "plan a.nk --set a", "plan a.nk --set a=-1", "plan a.nk --set a=1.5",
          "plan a.nk --set a=3,a=4", "plan a.nk --threads 0", "derive a.nk --form sideways", "run a.nk --input A",
          "run a.nk --print-after lunch", "cache", "check a.nk --color sometimes"}) {
        const Outcome outcome = napkin(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
        EXPECT_THAT(outcome.err, AllOf(StartsWith("napkin: "), HasSubstr("--help`\n"))) << arguments;
    }
}

TEST_F(Cli, a_missing_file_names_its_nearest_neighbour) {
    write("attention.nk", attention);
    const Outcome outcome = napkin("check attnetion.nk");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "error: there is no file attnetion.nk [no-such-file]\n      = hint: did you mean attention.nk?\n");
    EXPECT_THAT(napkin("check attention").err, HasSubstr("did you mean attention.nk?"));
    EXPECT_EQ(napkin("check .").code, 1);
}

TEST_F(Cli, errors_show_place_line_and_caret) {
    write("wrong.nk", "f(A[i]) -> B[i]\n    B[i] = C[i] + 1\n");
    const Outcome outcome = napkin("check wrong.nk");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                AllOf(StartsWith("wrong.nk:2:12: error: "),
                      HasSubstr("    2 |     B[i] = C[i] + 1\n      |            ^\n"), Not(HasSubstr("\033"))));
}

TEST_F(Cli, color_only_where_asked_for) {
    write("wrong.nk", "f(A[i]) -> B[i]\n    B[i] = C[i] + 1\n");
    EXPECT_THAT(napkin("check wrong.nk --color always").err, HasSubstr("\033["));
    EXPECT_THAT(napkin("check wrong.nk --color never").err, Not(HasSubstr("\033[")));
    EXPECT_THAT(napkin("check wrong.nk").err, Not(HasSubstr("\033[")));
}

TEST_F(Cli, check_lists_the_diagrams) {
    write("two.nk", std::string("twice(X[i]: f16) -> Y[i]: f16\n    Y[i] = 2 * X[i]\n") + matmul);
    const Outcome outcome = napkin("check two.nk");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out,
              "twice(X[i]: f16) -> Y[i]: f16   1 equation\n"
              "matmul(A[a, b]: f32, B[b, c]: f32) -> C[a, c]: f32   1 equation\n"
              "well formed\n");
    const nlohmann::json document = parsed(napkin("check two.nk --json"));
    EXPECT_EQ(document["schema"], "napkin.check/1");
    EXPECT_EQ(document["diagrams"][1]["equations"][0], "C[a, c] = sum(b) A[a, b] * B[b, c]");
    EXPECT_EQ(napkin("check two.nk --diagram thrice").code, 1);
}

TEST_F(Cli, check_binds_the_sizes_that_the_text_gives) {
    const std::string shifted = "f(X[n]) -> Y[i]\n    Y[i] = X[i + 2]\n";
    write("open.nk", shifted);
    EXPECT_EQ(napkin("check open.nk").code, 0) << "sizes that are left open are no error";
    write("half.nk", shifted + "sizes n = 6\n");
    EXPECT_EQ(napkin("check half.nk").code, 0);
    write("good.nk", shifted + "sizes n = 6, i = 4\n");
    EXPECT_EQ(napkin("check good.nk").code, 0);
    write("wrong.nk", shifted + "sizes n = 6, i = 5\n");
    // Each diagram of a file is looked at, with its own sizes.
    write("first.nk", "g(X[n]) -> Y[i]\n    Y[i] = X[i + 2]\n    sizes n = 6, i = 5\n\n" + shifted);
    for (const std::string file : {"wrong.nk", "first.nk"}) {
        const Outcome outcome = napkin("check " + file);
        EXPECT_EQ(outcome.code, 1) << file;
        EXPECT_EQ(outcome.out, "") << file;
        EXPECT_THAT(outcome.err, HasSubstr("[index-out-of-range]")) << file;
    }
    write("below.nk", shifted + "sizes n = i - i - 1\n");
    EXPECT_THAT(napkin("check below.nk").err, HasSubstr("[bad-size]"));
}

TEST_F(Cli, a_dash_reads_stdin) {
    write("a.nk", matmul);
    EXPECT_EQ(napkin("check - <a.nk").code, 0);
    write("wrong.nk", "f(");
    EXPECT_THAT(napkin("check - <wrong.nk").err, StartsWith("<stdin>:1:"));
}

}  // namespace
