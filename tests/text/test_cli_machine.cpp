// `bench`, `machines`, `doctor` and `cache`: what a machine has, lacks and keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "run/gpu/driver.hpp"
#include "text/cli.hpp"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
    EXPECT_THAT(napkin("plan a.nk --schedule w.txt" + sizes).out, HasSubstr("[override] "));
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
