// What `run` prints and writes, which inputs it takes, and which it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "machine/processor.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "text/cli.hpp"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
    const std::string run = "run a.nk --stream b=10 --seconds 0.01 --no-baseline --output Y=y.npy --output Z=z.npy";
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

/// A finite number does not become infinite without a word.
TEST_F(Cli, run_refuses_real_numbers_beyond_the_type) {
    write("f.nk", "f(X[c]: f16) -> Y[c]\n    Y[c] = X[c]\n");
    std::string bytes = npy("2,", 2);
    const float values[] = {1, 70000};
    std::memcpy(bytes.data() + bytes.size() - sizeof values, values, sizeof values);
    write("x.npy", bytes);
    const Outcome outcome = napkin("run f.nk --input X=x.npy --seconds 0 --no-baseline");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("x.npy for X[1]: 70000 is beyond f16"), HasSubstr("[npy-range]"),
                                   HasSubstr("from -65504 to 65504"), HasSubstr("write f16(…)")));
    write("g.nk", "f(X[c]) -> Y[c]\n    Y[c] = f16(X[c])\n");
    EXPECT_EQ(napkin("run g.nk --input X=x.npy --seconds 0 --no-baseline").code, 0);
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

}  // namespace
