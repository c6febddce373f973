// The command line as a user meets it: what each command prints, where, and with which exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "machine/processor.hpp"
#include "run/gpu/driver.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "text/tool.hpp"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Cli : public ToolTest {
protected:
    [[nodiscard]] Outcome napkin(const std::string& arguments, const std::string& before = "") const {
        return tool(arguments, before);
    }
};

constexpr const char* attention = R"(
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
sizes q = 33, x = 50, k = d = 16
)";

constexpr const char* matmul = "matmul(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n";

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
    for (const std::string command : {"check", "derive", "cost", "plan", "emit", "run", "bench", "machines", "doctor",
                                      "cache", "cache list", "cache size", "cache clear"}) {
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

TEST_F(Cli, derive_prints_the_loop) {
    write("a.nk", attention);
    const Outcome outcome = napkin("derive a.nk");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, AllOf(StartsWith("attention: 7 equations → 1 kernel, streamed over x\nrules: "),
                                   HasSubstr("  state P_M[q]       = -inf\n"),
                                   HasSubstr("        P_M          = max(P_M′, max(x) S[q, x] * size(k)^-0.5)\n"),
                                   HasSubstr("  tail  O[q, d]      = O_acc / P_Z_acc\n")));
}

TEST_F(Cli, derive_explains_and_validates_every_step) {
    write("a.nk", attention);
    const Outcome outcome = napkin("derive a.nk --explain --validate --trials 3");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(StartsWith("  1. "), HasSubstr("     because  "), HasSubstr("   a.nk:5\n"),
                                   HasSubstr("validated against the definition, 3 random sizes and kinds of inputs"),
                                   HasSubstr("split and merge"), Not(HasSubstr("WRONG"))));
    const nlohmann::json document = parsed(napkin("derive a.nk --validate --trials 3 --json"));
    EXPECT_EQ(document["schema"], "napkin.derive/1");
    EXPECT_GE(document["steps"].size(), 4U);
    for (const auto& entry : document["validation"]) EXPECT_LE(entry["largest_relative_error"].get<double>(), 1e-9);
}

TEST_F(Cli, derive_needs_no_sizes_and_refuses_what_cannot_be_streamed) {
    write("a.nk", matmul);
    EXPECT_EQ(napkin("derive a.nk").code, 0);
    const Outcome outcome = napkin("derive a.nk --stream c");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("not-streamable"));
    EXPECT_EQ(napkin("derive a.nk --set z=4").code, 1);
}

TEST_F(Cli, cost_is_symbolic_without_sizes_and_numeric_with_them) {
    write("a.nk", matmul);
    const Outcome letters = napkin("cost a.nk");
    EXPECT_EQ(letters.code, 0) << letters.err;
    EXPECT_THAT(letters.out, HasSubstr("H*"));
    const nlohmann::json document = parsed(napkin("cost a.nk --set a=64,b=64,c=64 --machine generic-cpu --json"));
    EXPECT_EQ(document["schema"], "napkin.cost/1");
    EXPECT_EQ(document["diagram"], "matmul");
}

TEST_F(Cli, cost_says_what_its_letters_take_for_granted) {
    write("shift.nk", "f(X[t]) -> Y[t]\n    Y[t] = X[t] + where(t > 0, X[t - 1], 0)\n");
    EXPECT_THAT(napkin("cost shift.nk").out, AllOf(HasSubstr("H ≤ "), HasSubstr("counts padding of X[t - 1] as read")));
    write("scales.nk", "f(X[k], s[b]) -> Y[k]\n    Y[k] = X[k] * s[k // 128]\nsizes k = 128 * b\n");
    EXPECT_THAT(napkin("cost scales.nk").out, HasSubstr("where tiles of k are aligned with 128"));
    // A window that stays inside takes nothing for granted, whatever else masks it.
    write("window.nk",
          "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) where(w <= i, X[i + w], 0) * W[w]\nsizes n = i + w - 1\n");
    EXPECT_THAT(napkin("cost window.nk").out, Not(HasSubstr("padding")));
}

TEST_F(Cli, plan_says_why_and_takes_choices_by_hand) {
    write("a.nk", attention);
    const Outcome outcome = napkin(
        "plan a.nk --machine generic-cpu --set q=512 --group q=16 --stream x=10 --threads 3");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("generic-cpu"), HasSubstr("by hand")));
    const nlohmann::json document = parsed(
        napkin("plan a.nk --machine generic-cpu --set q=512 --group q=16 --stream x=10 --threads 3 --json"));
    EXPECT_EQ(document["schema"], "napkin.plan/1");
    const auto& kernel = document["kernels"][0];
    EXPECT_EQ(kernel["group"]["q"]["value"], 16);
    EXPECT_EQ(kernel["group"]["q"]["by_hand"], true);
    EXPECT_EQ(kernel["stream"]["x"]["value"], 10);
    EXPECT_EQ(kernel["threads"]["value"], 3);
    EXPECT_GT(kernel["predicted"]["transfers_values"].get<double>(), 0);
}

TEST_F(Cli, plan_says_how_many_bytes_cross_each_level) {
    write("copy.nk", "f(X[i]) -> Y[i]\n    Y[i] = X[i] + 1\nsizes i = 65536\n");
    const nlohmann::json document = parsed(napkin("plan copy.nk --machine h200 --json"));
    const auto& traffic = document["kernels"][0]["predicted"]["traffic"];
    ASSERT_EQ(traffic.size(), 2u);
    EXPECT_EQ(traffic[0]["path"], "GMEM to L2");
    EXPECT_EQ(traffic[1]["path"], "L2 to SMEM");
    for (const auto& level : traffic) {
        EXPECT_EQ(level["loaded_bytes"], 4 * 65536);
        EXPECT_EQ(level["stored_bytes"], 4 * 65536);
    }
}

// On tiles of ordinary size the shape without a vector axis is rated as the slower one there; the small tiles that serve short runs make it the faster.
TEST_F(Cli, plan_searches_the_two_best_shapes) {
    const std::string decode = "plan '" + napkin::in_sources("examples/decode.nk") + "' --json --machine '" +
                               napkin::in_sources("tests/text/machines/short_runs.toml") + "'";
    const auto seconds_of = [](const nlohmann::json& plan) {
        double seconds = 0;
        for (const nlohmann::json& kernel : plan["kernels"]) seconds += kernel["predicted"]["seconds"].get<double>();
        return seconds;
    };
    const double chosen = seconds_of(parsed(napkin(decode)));
    EXPECT_GT(chosen, 0);
    for (const std::string axis : {"-", "d", "h", "k", "x"}) {
        write("by_hand", "kernel O\n  vector axis " + axis + "\n");
        EXPECT_LT(chosen, 1.03 * seconds_of(parsed(napkin(decode + " --schedule by_hand")))) << axis;
    }
}

TEST_F(Cli, plan_refuses_what_breaks_a_rule) {
    write("a.nk", attention);
    const Outcome outcome = napkin("plan a.nk --group k=4");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(StartsWith("<command line>:1:1: error: "), HasSubstr("not-groupable")));
    EXPECT_EQ(napkin("plan a.nk --machine nowhere").code, 1);
    write("b.nk", matmul);
    EXPECT_THAT(napkin("plan b.nk").err, HasSubstr("missing-size"));
}

TEST_F(Cli, cost_reads_the_schedule_that_plan_and_run_read) {
    write("a.nk", attention);
    const std::string on_cpu = " a.nk --machine generic-cpu --json", missing = on_cpu + " --schedule b.schedule";
    EXPECT_EQ(napkin("cost" + missing).code, 1);
    EXPECT_THAT(napkin("cost" + missing).err, HasSubstr("there is no file b.schedule"));
    write("a.schedule", "kernel O\n  group q 3\n  stream x 5\n  threads 1\n");
    const auto cost = parsed(napkin("cost" + on_cpu + " --schedule a.schedule")),
               plan = parsed(napkin("plan" + on_cpu + " --schedule a.schedule")),
               without = parsed(napkin("cost" + on_cpu));
    EXPECT_EQ(cost["kernels"][0]["name"], "O");
    EXPECT_NE(cost.dump(), without.dump());
    EXPECT_DOUBLE_EQ(cost["time"]["seconds"].get<double>(), plan["kernels"][0]["predicted"]["seconds"].get<double>());
    write("d.schedule", "group d 8\n");
    const std::string on_gpu = "cost a.nk --machine h200 --schedule ";
    EXPECT_THAT(napkin(on_gpu + "d.schedule").out, HasSubstr("grouped q, d"));
    EXPECT_THAT(napkin("cost a.nk --machine h200 --group d=8").out, HasSubstr("grouped q, d"));
    const Outcome overhead = napkin("cost a.nk --machine generic-cpu --special-overhead 5");
    EXPECT_EQ(overhead.code, 1);
    EXPECT_THAT(overhead.err, HasSubstr("generic-cpu has no unit for special functions"));
}

TEST_F(Cli, plan_reads_a_schedule_and_refuses_one_that_breaks_a_rule) {
    write("a.nk", attention);
    const std::string plan = "plan a.nk --machine generic-cpu --set q=512";
    write("a.schedule", napkin(plan).out);
    const Outcome again = napkin(plan + " --schedule a.schedule");
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.out, HasSubstr("[by hand]"));
    write("b.schedule", "kernel O\n  atom S vectors q 2, rows x 40, over k\n");
    const Outcome broken = napkin(plan + " --schedule b.schedule");
    EXPECT_EQ(broken.code, 1);
    EXPECT_THAT(broken.err, AllOf(HasSubstr("b.schedule"), HasSubstr("registers"), HasSubstr("rows fit")));
    write("c.schedule", "kernel O\n  group qq 4\n");
    EXPECT_THAT(napkin(plan + " --schedule c.schedule").err, HasSubstr("c.schedule:2:"));
}

TEST_F(Cli, sizes_by_hand_that_change_the_form_are_said_to) {
    write("a.nk", attention);
    const std::string sizes = " --machine generic-cpu --set q=4096,x=4096,k=16,d=512";
    for (const char* command : {"plan a.nk", "cost a.nk"}) {
        EXPECT_THAT(napkin(command + sizes + " --group d=16").err, HasSubstr("note: with group d = 16"));
        EXPECT_EQ(napkin(command + sizes + " --group q=64").err, "");
    }
}

TEST_F(Cli, subloops_are_planned_and_costed) {
    write("a.nk", std::string(attention) + "schedule\n    subloop k = 7\n");
    const Outcome plan = napkin("plan a.nk --machine generic-cpu");
    EXPECT_EQ(plan.code, 0) << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("subloop k"));
    for (const char* machine : {"generic-cpu", "h200"}) {
        const Outcome cost = napkin(std::string("cost a.nk --machine ") + machine);
        EXPECT_EQ(cost.err, "");
        EXPECT_THAT(cost.out, AllOf(HasSubstr("·u_k"), HasSubstr("u_k = 7"))) << machine;
    }
}

TEST_F(Cli, plan_and_cost_say_one_time) {
    for (const auto& [name, text] : {std::pair{"a.nk", attention}, std::pair{"b.nk", matmul}}) {
        write(name, text);
        const std::string arguments = name + std::string(" --machine generic-cpu --json --set ") +
                                      (name[0] == 'a' ? "q=512" : "a=300,b=200,c=100");
        const auto plan = parsed(napkin("plan " + arguments)), cost = parsed(napkin("cost " + arguments));
        ASSERT_EQ(plan["kernels"].size(), cost["kernels"].size());
        for (std::size_t k = 0; k < plan["kernels"].size(); ++k)
            EXPECT_EQ(plan["kernels"][k]["predicted"]["seconds"], cost["kernels"][k]["time"]["seconds"]) << name;
    }
}

TEST_F(Cli, emit_prints_code_or_tiles) {
    write("a.nk", attention);
    const Outcome code = napkin("emit a.nk");
    EXPECT_EQ(code.code, 0) << code.err;
    EXPECT_THAT(code.out, AllOf(HasSubstr("//     S[q, x] = sum(k) Q[q, k] * K[x, k]"),
                                HasSubstr("extern \"C\" void napkin_kernel_0(")));
    EXPECT_THAT(napkin("emit a.nk --tile").out, AllOf(HasSubstr("for each chunk of x"), HasSubstr("load K")));
    EXPECT_EQ(parsed(napkin("emit a.nk --tile --json"))["schema"], "napkin.emit/1");
}

TEST_F(Cli, passes_are_timed_and_printed_on_stderr) {
    write("a.nk", attention);
    const Outcome outcome = napkin("plan a.nk --time-passes --print-after parse,derive");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("attention(Q[q, k]: f32"), HasSubstr("parse "), HasSubstr("plan "), HasSubstr(" ms\n")));
    EXPECT_THAT(outcome.out, Not(HasSubstr(" ms\n")));
}

TEST_F(Cli, run_measures_and_checks) {
    write("a.nk", attention);
    const Outcome outcome = napkin("run a.nk --seconds 0.05");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, AllOf(StartsWith("attention   q=33 k=16 x=50 d=16\n"), HasSubstr("equation by equation"),
                                   HasSubstr("  equal  "), HasSubstr("  good  "), Not(HasSubstr("DIFFERENT"))));
}

TEST_F(Cli, run_claims_no_speedup_over_multiplies_by_plain_loops) {
    write("a.nk", attention);
    write("s.nk", "rows(X[q, x]) -> Y[q, x]\n    Y[q, x] = softmax(x) X[q, x]\nsizes q = 33, x = 50\n");
    const std::string lacking = "NAPKIN_BLAS=/nowhere/libopenblas.so";
    const Outcome outcome = napkin("run a.nk --seconds 0.05", lacking);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("no fair peer"), HasSubstr("napkin doctor"), Not(HasSubstr("× faster")),
                                   Not(HasSubstr("× slower"))));
    EXPECT_FALSE(parsed(napkin("run a.nk --seconds 0.05 --json", lacking)).contains("speedup"));
    EXPECT_FALSE(parsed(napkin("bench a.nk --seconds 0.05 --json", lacking))["results"][0].contains("speedup"));
    // Where nothing is multiplied, loops are the fair peer.
    EXPECT_THAT(napkin("run s.nk --seconds 0.05", lacking).out, AllOf(HasSubstr("× "), Not(HasSubstr("OpenBLAS"))));
}

TEST_F(Cli, run_takes_the_kernels_of_openblas_that_the_environment_names) {
    const bool has_choice = napkin::native_vector_bytes() > 16;  // skipped or passed on any processor
    if (!has_choice) GTEST_SKIP() << "every kernel has vectors of 16 bytes";
    write("a.nk", attention);
    const nlohmann::json run = parsed(napkin("run a.nk --seconds 0.05 --json", "OPENBLAS_CORETYPE=Nehalem"));
    if (!run["equation_by_equation"].contains("blas")) GTEST_SKIP() << "OpenBLAS is not installed";
    EXPECT_THAT(run["equation_by_equation"]["blas"], HasSubstr("Nehalem"));
}

TEST_F(Cli, says_how_long_vectors_can_be) {
    write("a.nk", attention);
    for (const char* command : {"plan a.nk", "machines measure"}) {
        const Outcome outcome = napkin(std::string(command) + " --vector-bytes 48");
        EXPECT_EQ(outcome.code, 2) << command;
        EXPECT_THAT(outcome.err, AllOf(HasSubstr("--vector-bytes"), HasSubstr("48"), HasSubstr("{16,32,64}"))) << command;
    }
}

TEST_F(Cli, run_empties_the_caches_before_each_run_where_it_is_asked_to) {
    write("c.nk", "copies(X[q, x]) -> Y[q, x]\n    Y[q, x] = X[q, x] + 1\nsizes q = 16, x = 4096\n");
    const std::string measure = "run c.nk --seconds 0.2 --no-baseline --json";
    const nlohmann::json warm = parsed(napkin(measure)), cold = parsed(napkin(measure + " --cold"));
    EXPECT_TRUE(cold["good"]);
    // What empties the caches is not timed, and takes far longer than the kernel.
    EXPECT_LT(cold["repetitions"], warm["repetitions"]);
    EXPECT_GE(cold["repetitions"], 1);
}

TEST_F(Cli, run_reports_as_json) {
    write("a.nk", attention);
    const nlohmann::json document = parsed(napkin("run a.nk --seconds 0.05 --json --set q=1"));
    EXPECT_EQ(document["schema"], "napkin.run/1");
    EXPECT_EQ(document["sizes"]["q"], 1);
    EXPECT_EQ(document["good"], true);
    const auto& kernel = document["kernels"][0];
    EXPECT_EQ(kernel["predicted"]["transfers_values"].get<double>(), kernel["counted"]["transfers_values"].get<double>());
    EXPECT_EQ(kernel["predicted"]["memory_values"].get<double>(), kernel["counted"]["memory_values"].get<double>());
    EXPECT_GT(document["equation_by_equation"]["seconds"].get<double>(), 0);
}

/// A .npy file of f32 zeros and ones, or of their bits as what else has four bytes.
std::string npy(const std::string& shape, std::size_t count, const std::string& type = "f4") {
    std::string header = "{'descr': '<" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(64 - (10 + header.size() + 1) % 64, ' ');
    header += '\n';
    std::string bytes = "\x93NUMPY";
    bytes += '\1';
    bytes += '\0';
    bytes += static_cast<char>(header.size() & 255);
    bytes += static_cast<char>(header.size() >> 8);
    bytes += header;
    for (std::size_t i = 0; i < count; ++i) {
        const float value = i % 3 == 0 ? 1.0F : 0.0F;
        bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
    return bytes;
}

TEST_F(Cli, run_takes_sizes_from_its_inputs_and_writes_outputs) {
    write("a.nk", matmul);
    write("a.npy", npy("2, 3", 6));
    write("b.npy", npy("3, 4", 12));
    const nlohmann::json document = parsed(
        napkin("run a.nk --input A=a.npy --input B=b.npy --output C=c.npy --seconds 0.01 --no-baseline --json"));
    EXPECT_EQ(document["sizes"]["c"], 4);
    const std::string result = read("c.npy");
    ASSERT_GE(result.size(), 32U);
    EXPECT_THAT(result, HasSubstr("(2, 4)"));
    float first_row[4];
    std::memcpy(first_row, result.data() + result.size() - 32, sizeof first_row);
    // A = [[1 0 0] [1 0 0]], the first row of B is [1 0 0 1].
    EXPECT_EQ(first_row[0], 1.0F);
    EXPECT_EQ(first_row[1], 0.0F);
    EXPECT_EQ(first_row[3], 1.0F);
}

TEST_F(Cli, run_keeps_wrong_numbers_under_a_name_that_says_so) {
    write(
        "a.nk",
        "f(X[a, b]) -> Y[a], Z[a]\n    Y[a] = sum(b) exp(X[a, b])\n    Z[a] = max(b) X[a, b]\nsizes a = 40, b = 50\n");
    // A compiler that gets one running maximum wrong: it begins at 1000.
    write("compiler",
          "#!/bin/sh\nfor file; do case $file in\n"
          "*kernel.cpp) sed -i 's/fill(Z, \\([0-9]*\\), -infinity<real>)/fill(Z, \\1, 1000.0f)/' \"$file\";;\n"
          "esac; done\nexec c++ \"$@\"\n");
    fs::permissions(path("compiler"), fs::perms::owner_all);
    const std::string run = "run a.nk --seconds 0.01 --no-baseline --output Y=y.npy --output Z=z.npy";
    const std::string wrong = "CXX='" + path("compiler").string() + "' NAPKIN_CACHE_DIR='" + path("cache").string() +
                              "'";
    const Outcome outcome = napkin(run, wrong);
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("40 outside of their bounds"), HasSubstr("BAD")));
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("] is 1000, where"), HasSubstr("kept in z.bad.npy"), HasSubstr("a fault of napkin")));
    EXPECT_TRUE(fs::exists(path("y.npy")));
    EXPECT_TRUE(fs::exists(path("z.bad.npy")));
    EXPECT_FALSE(fs::exists(path("z.npy")));
    EXPECT_EQ(napkin(run + " --no-check", wrong).code, 0);
    EXPECT_TRUE(fs::exists(path("z.npy")));
}

TEST_F(Cli, run_finds_attention_at_ragged_sizes_good) {
    std::ifstream example(napkin::in_sources("examples/attention.nk"));
    write("a.nk", {std::istreambuf_iterator<char>(example), std::istreambuf_iterator<char>()});
    for (const char* seed : {"1", "4", "5", "7"}) {
        const nlohmann::json document = parsed(napkin(
            std::string(
                "run a.nk --set q=113,x=203,k=16,d=24 --seconds 0.01 --no-baseline --no-validate --json --seed ") +
            seed));
        EXPECT_EQ(document["checks"][0]["judgement"], "good") << seed;
    }
}

TEST_F(Cli, run_refuses_inputs_that_do_not_fit) {
    write("a.nk", matmul);
    write("a.npy", npy("2, 3", 6));
    write("b.npy", npy("4, 4", 16));
    const Outcome outcome = napkin("run a.nk --input A=a.npy --input B=b.npy");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("axis b is 4 in input B but 3 in A"), HasSubstr("[input-sizes]")));
    EXPECT_THAT(napkin("run a.nk --input A=a.npy --set b=9").err, HasSubstr("axis b is 3 in input A but 9 in --set"));
    EXPECT_THAT(napkin("run a.nk --input D=a.npy").err, AllOf(HasSubstr("[unknown-input]"), HasSubstr("one of A, B")));
    EXPECT_THAT(napkin("run a.nk --input A=none.npy").err, HasSubstr("none.npy"));
    EXPECT_THAT(napkin("run a.nk --input A=a.nk").err, HasSubstr("[bad-npy]"));
    EXPECT_EQ(napkin("run a.nk --output D=d.npy --set a=2,b=2,c=2").code, 1);
    write("v.npy", npy("6,", 6));
    EXPECT_THAT(napkin("run a.nk --input A=v.npy").err, HasSubstr("[input-rank]"));
}

/// Real numbers are not made integers, unless the text asks for it.
TEST_F(Cli, run_refuses_real_numbers_for_integers) {
    write("f.nk", "f(X[c]: i32) -> Y[c]: i32\n    Y[c] = X[c]\n");
    const auto file = [](const std::vector<float>& values) {
        std::string bytes = npy(std::to_string(values.size()) + ",", values.size());
        std::memcpy(bytes.data() + bytes.size() - 4 * values.size(), values.data(), 4 * values.size());
        return bytes;
    };
    write("x.npy", file({1, 2.5, 3e9}));
    const Outcome outcome = napkin("run f.nk --input X=x.npy");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("x.npy for X[1]: 2.5 is no i32"), HasSubstr("[npy-range]"),
                                   HasSubstr("integers from -2147483648 to 2147483647"), HasSubstr("write i32(…)")));
    write("g.nk", "f(X[c]) -> Y[c]: i32\n    Y[c] = i32(X[c])\n");
    EXPECT_EQ(napkin("run g.nk --input X=x.npy --seconds 0 --no-baseline").code, 0);
    write("x.npy", file({1, 2, -3}));
    EXPECT_EQ(napkin("run f.nk --input X=x.npy --seconds 0 --no-baseline").code, 0);
}

/// Every command takes sizes of 0.
TEST_F(Cli, sizes_of_0_are_sizes) {
    write("a.nk",
          "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n    P[q, x] = softmax(x) sum(k) Q[q, k] * K[x, k]\n"
          "    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = 4, x = 5, k = 3, d = 2\n");
    for (const char* axis : {"q", "x", "k", "d"})
        for (const char* command : {"check a.nk", "derive a.nk", "derive a.nk --validate", "derive a.nk --explain",
                                    "cost a.nk", "cost a.nk --machine h200", "plan a.nk", "plan a.nk --machine h200",
                                    "emit a.nk", "emit a.nk --machine h200", "draw a.nk", "run a.nk --seconds 0",
                                    "run a.nk --seconds 0 --json", "run a.nk --seconds 0 --cold"}) {
            const std::string set = std::string(command) == "check a.nk" ? "" : " --set " + std::string(axis) + "=0";
            const Outcome outcome = napkin(command + set);
            EXPECT_EQ(outcome.code, 0) << command << set << "\n" << outcome.err;
        }
    EXPECT_THAT(napkin("derive a.nk --set x=0").out, HasSubstr("O[q, d] = 0"));
    EXPECT_EQ(napkin("run a.nk --set q=0,d=0 --seconds 0 --output O=o.npy").code, 0);
    EXPECT_THAT(read("o.npy"), HasSubstr("(0, 0)"));
}

TEST_F(Cli, run_refuses_indices_outside_of_their_array) {
    write("e.nk", "f(X[v], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t]]\nsizes v = 3\n");
    write("i.npy", npy("4,", 4, "i4"));
    const Outcome outcome = napkin("run e.nk --input i=i.npy --output Y=y.npy");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("i[t] is 1065353216 at t = 0, but v of X has 3 values"),
                                   HasSubstr("[index-out-of-range]"), HasSubstr("where(i[t] < size(v), X[i[t]], 0)")));
    EXPECT_FALSE(std::filesystem::exists(path("y.npy")));
}

TEST_F(Cli, run_refuses_computed_indices_outside_of_their_array) {
    write("e.nk",
          "f(X[a, t], V[v]) -> Y[a]\n    I[a] = argmax(t) X[a, t] * 0 + t\n    Y[a] = V[I[a]]\nsizes a = 2, t = 7, v = "
          "3\n");
    const Outcome outcome = napkin("run e.nk --seconds 0 --output Y=y.npy");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("e.nk:3:5: error: I[a] is 6 at a = 0, but v of V has 3 values"),
                                   HasSubstr("[index-out-of-range]"), HasSubstr("where(I[a] < size(v), V[I[a]], 0)")));
    EXPECT_FALSE(std::filesystem::exists(path("y.npy")));
    EXPECT_EQ(napkin("run e.nk --seconds 0 --set v=7").code, 0);
}

TEST_F(Cli, bench_prints_a_line_for_each_file) {
    write("a.nk", attention);
    const Outcome outcome = napkin("bench a.nk --seconds 0.05");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("GFLOP/s"), HasSubstr("a.nk  ")));
    EXPECT_EQ(parsed(napkin("bench a.nk --seconds 0.05 --json"))["schema"], "napkin.bench/1");
}

TEST_F(Cli, machines_are_listed_and_printed) {
    const Outcome list = napkin("machines");
    EXPECT_EQ(list.code, 0);
    EXPECT_THAT(list.out, AllOf(StartsWith("host "), HasSubstr("generic-cpu")));  // first on any processor
    const Outcome one = napkin("machines generic-cpu");
    EXPECT_THAT(one.out, HasSubstr("[[level]]"));
    // What is printed is a machine file.
    write("my.toml", one.out);
    write("a.nk", attention);
    EXPECT_EQ(napkin("plan a.nk --machine my.toml").code, 0);
    EXPECT_EQ(napkin("machines nowhere").code, 1);
    EXPECT_EQ(parsed(napkin("machines --json"))["schema"], "napkin.machines/1");
}

TEST_F(Cli, doctor_finds_what_is_missing) {
    const Outcome healthy = napkin("doctor");
    EXPECT_EQ(healthy.code, 0) << healthy.out;
    EXPECT_THAT(healthy.out,
                AllOf(HasSubstr("compiler"), HasSubstr("cache"), HasSubstr("processor"), HasSubstr("cuBLASLt")));
    const Outcome sick = napkin("doctor", "PATH=/nowhere CXX=");
    EXPECT_EQ(sick.code, 3);
    EXPECT_THAT(sick.out, AllOf(HasSubstr("MISSING"), HasSubstr("→")));
}

TEST_F(Cli, a_gpu_is_planned_and_emitted_for_without_one) {
    write("a.nk", matmul);
    const std::string sizes = " --set a=64,b=48,c=80 --machine h200";
    EXPECT_THAT(napkin("plan a.nk" + sizes).out, HasSubstr("  warps "));
    const Outcome source = napkin("emit a.nk" + sizes);
    EXPECT_EQ(source.code, 0) << source.err;
    EXPECT_THAT(source.out, AllOf(HasSubstr("__global__"), HasSubstr("sync();")));
    // A CPU has no warps, and CUDA does not program every GPU.
    write("w.txt", "warps 2\n");
    EXPECT_THAT(napkin("plan a.nk --schedule w.txt" + sizes).out, HasSubstr("[by hand] "));
    // A tile that fits one block an SM is planned so.
    EXPECT_EQ(napkin("plan a.nk --set a=256,b=256,c=256 --group a=128 --group c=128 --machine h200").code, 0);
    const Outcome on_cpu = napkin("plan a.nk --schedule w.txt --set a=64,b=48,c=80 --machine generic-cpu");
    EXPECT_EQ(on_cpu.code, 1);
    EXPECT_THAT(on_cpu.err, AllOf(HasSubstr("no-warps"), HasSubstr("w.txt:1:1")));
    const Outcome other = napkin("plan a.nk --set a=64,b=48,c=80 --machine mi300x");
    EXPECT_EQ(other.code, 3);
    EXPECT_THAT(other.err, HasSubstr("no-emitter"));
    if (!::napkin::gpu::device()) {
        const Outcome none = napkin("run a.nk" + sizes);
        EXPECT_EQ(none.code, 3);
        EXPECT_THAT(none.err, AllOf(HasSubstr("there is no GPU"), HasSubstr("napkin emit")));
        EXPECT_EQ(napkin("run a.nk --set a=64,b=48,c=80 --machine gpu").code, 3);
    }
}

TEST_F(Cli, no_compiler_is_the_machine_s_lack) {
    write("a.nk", matmul);
    const Outcome outcome = napkin("run a.nk --set a=2,b=3,c=5",
                                   "PATH=/nowhere CXX= NAPKIN_CACHE_DIR='" + path("cache").string() + "'");
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("no-compiler"));
}

TEST_F(Cli, the_cache_is_listed_and_cleared) {
    const std::string own = "NAPKIN_CACHE_DIR='" + path("cache").string() + "'";
    write("a.nk", matmul);
    EXPECT_EQ(parsed(napkin("cache size --json", own))["entries"], 0);
    EXPECT_EQ(napkin("run a.nk --set a=2,b=3,c=5 --seconds 0.01 --no-baseline --no-validate", own).code, 0);
    EXPECT_EQ(parsed(napkin("cache size --json", own))["entries"], 2) << "a kernel and its plan";
    EXPECT_EQ(parsed(napkin("cache list --json", own))["list"].size(), 2U);
    EXPECT_THAT(napkin("cache list", own).out, HasSubstr("plan of matmul on cpu-"));
    // What was validated is an entry beside them, and is said once.
    const std::string run = "run a.nk --set a=2,b=3,c=5 --seconds 0.01 --no-baseline";
    const Outcome first = napkin(run + " --time-passes", own);
    EXPECT_THAT(first.out, HasSubstr("new here"));
    EXPECT_THAT(first.err, AllOf(HasSubstr("\nvalidate "), HasSubstr("\ncheck ")));
    EXPECT_EQ(parsed(napkin("cache size --json", own))["entries"], 3);
    EXPECT_THAT(napkin(run + " --time-passes", own).err, HasSubstr("ms  from the cache\n"));
    EXPECT_THAT(napkin(run, own).out, Not(HasSubstr("new here")));
    EXPECT_EQ(napkin("cache clear", own).code, 0);
    EXPECT_EQ(parsed(napkin("cache size --json", own))["entries"], 0);
}

}  // namespace
