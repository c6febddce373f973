// What `derive`, `cost`, `plan` and `emit` print, and with which exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <regex>
#include <sstream>
#include <string>

#include "support/json.hpp"
#include "support/paths.hpp"
#include "text/cli.hpp"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(Cli, derive_prints_the_loop) {
    write("a.nk", attention);
    const Outcome outcome = napkin("derive a.nk --stream x");
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
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("generic-cpu"), HasSubstr("[override]")));
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

// On tiles of ordinary size the shape without a vector axis is rated as the slower one there; the small tiles that
// serve short runs make it the faster.
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

// The digits that are printed, and the seconds of the JSON.
TEST_F(Cli, plan_explains_a_time_by_terms_that_sum_to_it) {
    write("a.nk", attention);
    for (const std::string machine : {"generic-cpu", "h200"}) {
        const std::string plan = "plan a.nk --set q=512 --explain-time --machine " + machine;
        std::istringstream lines(napkin(plan).out);
        std::string line;
        while (std::getline(lines, line) && line != "time of kernel O") continue;
        std::getline(lines, line);
        EXPECT_THAT(line, testing::MatchesRegex("  term +(ms|µs) +share  made of"));
        std::int64_t sum = 0, predicted = 0;
        while (std::getline(lines, line)) {
            std::smatch found;
            if (!std::regex_search(line, found, std::regex(R"(^  (\S.*?) +(\d+)\.(\d+) +\d+\.\d%)"))) continue;
            (found[1] == "predicted" ? predicted : sum) += std::stoll(found[2].str() + found[3].str());
        }
        EXPECT_GT(predicted, 0);
        EXPECT_EQ(sum, predicted) << machine;

        const nlohmann::json time = parsed(napkin(plan + " --json"))["kernels"][0]["predicted"];
        double seconds = 0;
        for (const nlohmann::json& term : time["terms"]) seconds += term["seconds"].get<double>();
        EXPECT_NEAR(seconds, time["seconds"].get<double>(), 1e-12 * seconds);
    }
    EXPECT_EQ(napkin("plan a.nk --steps --explain-time --machine h200").code, 2);
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
    double planned = 0;
    for (const auto& kernel : plan["kernels"]) planned += kernel["predicted"]["seconds"].get<double>();
    EXPECT_EQ(cost["kernels"].back()["name"], "O");
    EXPECT_NE(cost.dump(), without.dump());
    EXPECT_DOUBLE_EQ(cost["time"]["seconds"].get<double>(), planned);
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
    EXPECT_THAT(again.out, HasSubstr("[override]"));
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
    EXPECT_THAT(napkin("emit a.nk --tile --stream x").out,
                AllOf(HasSubstr("for each chunk of x"), HasSubstr("load K")));
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

TEST_F(Cli, a_stage_behind_the_plan_runs_where_it_is_printed) {
    write("a.nk", attention);
    const Outcome outcome = napkin("plan a.nk --machine h200 --print-after lower");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("for tiles"));
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("plan for h200"), Not(HasSubstr("for tiles"))));
}

}  // namespace
