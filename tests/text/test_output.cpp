// What the tool does with streams, files and names that are not as they should be: nothing is lost silently, nothing
// steers a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/json.hpp"
#include "support/sanitized.hpp"
#include "text/tool.hpp"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* sized_matmul =
    "matmul(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\nsizes a = b = c = 3\n";

class Output : public ToolTest {
protected:
    void SetUp() override {
        ToolTest::SetUp();
        write("a.nk", sized_matmul);
    }
    [[nodiscard]] Outcome napkin(const std::string& arguments, const std::string& after = "",
                                 const std::string& before = "") const {
        return tool(arguments, before, after);
    }
};

TEST_F(Output, what_stdout_does_not_take_is_an_error) {
    for (const std::string arguments :
         {"--help", "--version", "run --help", "check a.nk", "check a.nk --json", "derive a.nk --explain", "cost a.nk",
          "cost a.nk --machine all --csv", "cost a.nk --sweep a=1..4096 --machine generic-cpu --csv", "plan a.nk",
          "emit a.nk", "machines", "machines show h100-sxm5 --json", "formats", "cache size", "layout 8:1",
          "run a.nk --seconds 0.01 --no-baseline", "run a.nk --seconds 0.01 --no-baseline --json"}) {
        const Outcome full = napkin(arguments, ">/dev/full");
        EXPECT_EQ(full.code, 3) << arguments;
        EXPECT_THAT(full.err, AllOf(HasSubstr("stdout cannot be written to"), HasSubstr("No space left"))) << arguments;
        const Outcome closed = napkin(arguments, ">&-");
        EXPECT_EQ(closed.code, 3) << arguments;
        EXPECT_THAT(closed.err, HasSubstr("stdout cannot be written to")) << arguments;
    }
}

TEST_F(Output, names_that_are_no_utf8_do_not_break_json) {
    write("a\xFF.nk", sized_matmul);
    for (const std::string command : {"check", "derive", "cost", "plan"}) {
        const Outcome outcome = napkin(command + " a\xFF.nk --json");
        EXPECT_EQ(outcome.code, 0) << command << outcome.err;
        EXPECT_FALSE(nlohmann::json::parse(outcome.out, nullptr, false).is_discarded()) << command;
    }
    EXPECT_EQ(napkin("cost a\xFF.nk --against a.nk --machine generic-cpu --json").code, 0);
    EXPECT_EQ(napkin("bench a\xFF.nk --seconds 0.01 --json").code, 0);
}

TEST_F(Output, what_is_no_array_is_not_read_to_its_end) {
    if (napkin::has_address_sanitizer) GTEST_SKIP() << "it takes more addresses than the limit leaves";
    const Outcome zero = napkin("run a.nk --input A=/dev/zero", ">out.txt", "ulimit -v 4000000;");
    EXPECT_EQ(zero.code, 1);
    EXPECT_THAT(zero.err, HasSubstr("it is a device"));
    // A pipe that never ends, and one that is no array.
    const Outcome endless = napkin("run a.nk --input A=/dev/stdin", ">out.txt", "ulimit -v 4000000; yes |");
    EXPECT_EQ(endless.code, 1);
    EXPECT_THAT(endless.err, HasSubstr("it is not a NumPy array"));
    EXPECT_THAT(napkin("check - </dev/zero").err, HasSubstr("[file-too-large]"));
}

TEST_F(Output, nan_is_in_no_range) {
    for (const std::string arguments :
         {"cost a.nk --memory nan", "cost a.nk --machine h100-sxm5 --special-overhead nan", "run a.nk --seconds nan",
          "bench a.nk --seconds NaN", "cost a.nk --memory inf", "run a.nk --seconds -- -inf", "run a.nk --threads nan",
          "machines show h100-sxm5 --block memory=nan"}) {
        const Outcome outcome = napkin(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
    }
}

TEST_F(Output, nothing_from_outside_steers_the_terminal) {
    const std::string steer = "$(printf '\\033]0;title\\007\\033[2J\\033[31m')";
    for (const std::string& arguments :
         {"\"" + steer + "\"", "check \"" + steer + "\"", "check a.nk \"--" + steer + "\"",
          "machines show h100-sxm5 --block \"" + steer + "=1\"", "machines show \"" + steer + "\"",
          "plan a.nk --group \"" + steer + "=1\"", "plan a.nk --machine \"" + steer + "\"",
          "run a.nk --input \"A=" + steer + "\"", "derive a.nk --diagram \"" + steer + "\""}) {
        const Outcome outcome = napkin(arguments);
        EXPECT_NE(outcome.code, 0) << arguments;
        EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\033"))) << arguments;
        EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\007"))) << arguments;
        EXPECT_THAT(outcome.out + outcome.err, HasSubstr("\xEF\xBF\xBD")) << arguments;
    }
    for (const std::string command : {"cache size", "cache clear", "doctor"}) {
        const Outcome outcome = napkin(command, ">out.txt", "NAPKIN_CACHE_DIR=\"$PWD/" + steer + "\"");
        EXPECT_EQ(outcome.code, 0) << command << outcome.err;
        EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\033"))) << command;
    }
    std::string machine = napkin("machines generic-cpu").out;
    machine.replace(machine.find("name = \""), 8, "name = \"\\u001B[2J");
    write("steering.toml", machine);
    const Outcome shown = napkin("machines show steering.toml");
    EXPECT_EQ(shown.code, 1);
    EXPECT_THAT(shown.err, AllOf(HasSubstr("control characters"), Not(HasSubstr("\033"))));
}

TEST_F(Output, two_outputs_do_not_go_to_one_file) {
    write("two.nk", "two(X[a]) -> Y[a], Z[a]\n    Y[a] = X[a] + 1\n    Z[a] = X[a] * 2\nsizes a = 4\n");
    fs::create_directory(folder_ / "sub");
    std::ofstream(folder_ / "there.npy") << "an older output";
    fs::create_hard_link(folder_ / "there.npy", folder_ / "linked.npy");
    fs::create_symlink("y.npy", folder_ / "points.npy");
    EXPECT_EQ(napkin("run two.nk --seconds 0.01 --no-baseline --output Y=there.npy --output Z=linked.npy").code, 2);
    for (const std::string other : {"y.npy", "./y.npy", "sub/../y.npy", "points.npy"}) {
        const Outcome outcome = napkin("run two.nk --seconds 0.01 --no-baseline --output Y=y.npy --output Z=" + other);
        EXPECT_EQ(outcome.code, 2) << other;
        EXPECT_THAT(outcome.err, HasSubstr("Y goes to that file already")) << other;
    }
    EXPECT_EQ(napkin("run two.nk --seconds 0.01 --no-baseline --output Y=/dev/null --output Z=/dev/null").code, 0);
}

TEST_F(Output, exit_codes_stand_in_the_help) {
    EXPECT_THAT(napkin("--help").out, AllOf(HasSubstr("Exit codes: 0 success"), HasSubstr("70 a fault of napkin")));
}

TEST_F(Output, a_link_slower_than_what_it_relieves_gets_a_word) {
    EXPECT_THAT(
        napkin("machines show h100-sxm5").out,
        HasSubstr("note: 'cluster' gives one of 4 joined 'SMEM' 31.06 GB/s, less than the 90.91 GB/s from 'L2'"));
    EXPECT_THAT(napkin("machines show b200").out, Not(HasSubstr("note:")));
}

TEST_F(Output, the_cache_leaves_the_folders_of_others) {
    const std::string own = "NAPKIN_CACHE_DIR='" + folder_.string() + "/cache'";
    EXPECT_EQ(napkin("run a.nk --seconds 0.01 --no-baseline", ">out.txt", own).code, 0);
    for (const std::string folder : {"photos", "tmp-mine"}) {
        fs::create_directories(folder_ / "cache" / folder);
        write("cache/" + folder + "/one", "precious");
    }
    const Outcome cleared = napkin("cache clear", ">out.txt", own);
    EXPECT_EQ(cleared.code, 0);
    EXPECT_THAT(cleared.out, HasSubstr("2 others there are not napkin's and stay"));
    EXPECT_EQ(read("cache/photos/one") + read("cache/tmp-mine/one"), "preciousprecious");
    EXPECT_EQ(nlohmann::json::parse(napkin("cache size --json", ">out.txt", own).out)["entries"], 0);
}

/// What a reader of a GPU's kernel has before him, without the device prelude.
TEST_F(Output, kernels_on_the_matrix_unit_are_short) {
    const auto lines = [&](const std::string& arguments) {
        const Outcome outcome = napkin("emit " + arguments + " --machine h200");
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return std::count(outcome.out.begin(), outcome.out.end(), '\n');
    };
    write("product.nk",
          "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n");
    EXPECT_LT(lines("product.nk --set m=4096 --set n=4096 --set k=4096"), 300);
    write("masked.nk",
          "masked(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n    S[h, q, x] = sum(k) Q[h, "
          "q, k] * K[h, x, k]\n"
          "    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, -inf)\n    P[h, q, x] = softmax(x) M[h, q, x]\n"
          "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n");
    for (const std::string d : {"64", "128", "256"})
        EXPECT_LT(lines("masked.nk --set h=16 --set q=4096 --set x=4096 --set k=" + d + " --set d=" + d), 440) << d;
}

}  // namespace
