// What is read in the log of CUDA's assembler: in texts as it writes them, and in those that it writes of code with
// just these faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/gpu/compiler.hpp"

namespace napkin::test_assembler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(AssemblerLog, HasAReportForEachKernel) {
    const auto reports = gpu::reports_in(
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
        "ptxas info    : Function properties for first\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 540 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
        "ptxas info    : Function properties for second\n"
        "ptxas         .     4096 bytes stack frame, 128 bytes spill stores, 256 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 0 barriers, 4096 bytes cumulative stack size\n");
    ASSERT_THAT(reports, SizeIs(2));
    EXPECT_EQ(reports[0].kernel, "first");
    EXPECT_EQ(reports[0].registers, 40);
    EXPECT_EQ(reports[0].barriers, 1);
    EXPECT_EQ(reports[0].shared_bytes, 2048);
    EXPECT_EQ(reports[0].stack_bytes, 0);
    EXPECT_THAT(gpu::refusals(reports[0]), IsEmpty());
    EXPECT_EQ(reports[1].kernel, "second");
    EXPECT_EQ(reports[1].registers, 255);
    EXPECT_EQ(reports[1].stack_bytes, 4096);
    EXPECT_EQ(reports[1].spill_store_bytes, 128);
    EXPECT_EQ(reports[1].spill_load_bytes, 256);
    EXPECT_THAT(gpu::refusals(reports[1]),
                ElementsAre("it spills registers: 128 bytes a thread are stored and 256 loaded"));
    EXPECT_THAT(gpu::reports_in(""), IsEmpty());
}

TEST(AssemblerLog, HasWhatAKernelCallsInItsReport) {
    const auto reports = gpu::reports_in(
        "ptxas info    : Compiling entry function 'caller' for 'sm_90a'\n"
        "ptxas info    : Function properties for caller\n"
        "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 0 barriers\n"
        "ptxas info    : Function properties for called\n"
        "ptxas         .     0 bytes stack frame, 2 bytes spill stores, 1 bytes spill loads\n");
    ASSERT_THAT(reports, SizeIs(1));
    EXPECT_EQ(reports[0].stack_bytes, 16);
    EXPECT_EQ(reports[0].spill_store_bytes, 10);
    EXPECT_EQ(reports[0].spill_load_bytes, 5);
}

TEST(AssemblerLog, RefusesTheKernelThatARemarkNames) {
    const auto reports = gpu::reports_in(
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        "insufficient register resources for the wgmma pipeline in the function 'first'\n"
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 468 by compiler to allow use of registers "
        "defined by GMMA in function 'second'\n"
        "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n");
    ASSERT_THAT(reports, SizeIs(2));
    EXPECT_THAT(gpu::refusals(reports[0]),
                ElementsAre("its wgmma instructions run one after the other: insufficient register "
                            "resources for the wgmma pipeline"));
    EXPECT_THAT(reports[1].remarks, ElementsAre(HasSubstr("C7517")));
    EXPECT_THAT(gpu::refusals(reports[1]), IsEmpty());
}

TEST(AssemblerLog, RefusesEveryKernelWhereARemarkNamesNone) {
    const auto reports = gpu::reports_in(
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count "
        "at "
        "entry.\n"
        "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n");
    ASSERT_THAT(reports, SizeIs(2));
    for (const gpu::AssemblerReport& report : reports)
        EXPECT_THAT(gpu::refusals(report),
                    ElementsAre("its setmaxnreg is ignored: unable to determine register count at entry"));
}

TEST(AssemblerLog, HasRemarksOnSlowCode) {
    EXPECT_THAT(gpu::remarks_in("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to "
                                "determine register count at entry.\n"
                                "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
                                "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
                                "serialized due to function calls in 'first'\n"
                                "ptxas info    : Used 40 registers\n"),
                ElementsAre(HasSubstr("C7508"), HasSubstr("C7510")));
    EXPECT_THAT(gpu::remarks_in("ptxas info    : Used 75 registers\n"), IsEmpty());
}

TEST(AssemblerLog, OfAStackFrameAndSpillsIsReported) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    // An array with an index that only runs know lies on the stack; more values at the same time than a thread of 1024
    // has registers spill.
    const auto cubin = gpu::compile_cuda(
        R"(extern "C" __global__ void on_stack(float* x, const int* at) {
    float values[64] = {};
    for (int i = 0; i < 64; ++i) values[at[i]] = x[i];
    for (int i = 0; i < 64; ++i) x[i] = values[at[64 + i]];
}
extern "C" __global__ void __launch_bounds__(1024) spilling(volatile float* x) {
    float values[128];
    #pragma unroll
    for (int i = 0; i < 128; ++i) values[i] = x[i];
    #pragma unroll
    for (int i = 0; i < 128; ++i) x[i] = values[127 - i];
}
)",
        "sm_90a", false);
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    ASSERT_THAT(cubin->kernels, SizeIs(2));
    for (const gpu::AssemblerReport& report : cubin->kernels) {
        EXPECT_GT(report.registers, 0) << report.kernel;
        EXPECT_GT(report.stack_bytes, 0) << report.kernel;
        if (report.kernel == "on_stack") {
            EXPECT_GE(report.stack_bytes, 256);
            EXPECT_THAT(gpu::refusals(report), ElementsAre(HasSubstr("bytes a thread in local memory")));
            EXPECT_TRUE(gpu::keeps_memory_alone(report));
            EXPECT_EQ(report.spill_store_bytes, 0);
        } else {
            EXPECT_EQ(report.kernel, "spilling");
            EXPECT_GT(report.spill_store_bytes, 0);
            EXPECT_GT(report.spill_load_bytes, 0);
            EXPECT_THAT(gpu::refusals(report), ElementsAre(HasSubstr("spills registers")));
            EXPECT_FALSE(gpu::keeps_memory_alone(report));
        }
    }
    EXPECT_THAT(cubin->remarks, IsEmpty());
}

TEST(AssemblerLog, OfAnIgnoredSetmaxnregIsARemark) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const auto cubin = gpu::compile_cuda(R"(extern "C" __global__ void unbound(float* x) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    x[threadIdx.x] += 1;
}
)",
                                         "sm_90a", false);
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    EXPECT_THAT(cubin->remarks, ElementsAre(HasSubstr("C7508")));
    ASSERT_THAT(cubin->kernels, SizeIs(1));
    EXPECT_THAT(gpu::refusals(cubin->kernels[0]), ElementsAre(HasSubstr("its setmaxnreg is ignored")));
}

TEST(AssemblerLog, OfSerialisedProductsRefusesTheirKernel) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    // The accumulator is read between products that are in flight.
    const auto cubin = gpu::compile_cuda(
        R"(extern "C" __global__ void __launch_bounds__(128) serial(float* x, unsigned long long tile) {
    float a = x[0], b = x[1], c = x[2], d = x[3];
    asm volatile("wgmma.fence.sync.aligned;");
    for (int i = 0; i < 4; ++i) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                     : "+f"(a), "+f"(b), "+f"(c), "+f"(d) : "l"(tile + i));
        a += x[i];
    }
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    x[threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void plain(float* x) { x[threadIdx.x] += 1; }
)",
        "sm_90a", false);
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    ASSERT_THAT(cubin->kernels, SizeIs(2));
    for (const gpu::AssemblerReport& report : cubin->kernels) {
        if (report.kernel == "serial")
            EXPECT_THAT(gpu::refusals(report),
                        ElementsAre(HasSubstr("its wgmma instructions run one after the other: ")));
        else
            EXPECT_THAT(gpu::refusals(report), IsEmpty());
    }
}

TEST(AssemblerLog, ComesWithWhatTheCacheKeeps) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const std::string source = R"(extern "C" __global__ void on_stack(float* x, const int* at) {
    float values[64] = {};
    for (int i = 0; i < 64; ++i) values[at[i]] = x[i];
    for (int i = 0; i < 64; ++i) x[i] = values[at[64 + i]];
}
)";
    const auto first = gpu::compile_cuda(source, "sm_90a"), second = gpu::compile_cuda(source, "sm_90a");
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_TRUE(second->from_cache);
    ASSERT_THAT(second->kernels, SizeIs(1));
    EXPECT_EQ(second->kernels, first->kernels);
    EXPECT_THAT(gpu::refusals(second->kernels[0]), SizeIs(1));
}

TEST(Nvrtc, DoesNotCompileForAnArchitectureThatItDoesNotKnow) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const auto cubin = gpu::compile_cuda("extern \"C\" __global__ void f() {}\n", "sm_11", false);
    ASSERT_FALSE(cubin.ok());
    EXPECT_EQ(cubin.errors().front().code, "no-such-architecture");
}

}  // namespace
}  // namespace napkin::test_assembler
