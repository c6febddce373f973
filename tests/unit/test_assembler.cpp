// What is read in the log of CUDA's assembler: in texts as it writes them, and in those that it writes of code with just these faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/gpu/compiler.hpp"

namespace napkin {
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
        "ptxas info    : Used 40 registers, used 1 barriers\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
        "ptxas info    : Function properties for second\n"
        "ptxas         .     4096 bytes stack frame, 128 bytes spill stores, 256 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 0 barriers, 4096 bytes cumulative stack size\n");
    ASSERT_THAT(reports, SizeIs(2));
    EXPECT_EQ(reports[0].kernel, "first");
    EXPECT_EQ(reports[0].registers, 40);
    EXPECT_EQ(reports[0].stack_bytes, 0);
    EXPECT_EQ(reports[1].kernel, "second");
    EXPECT_EQ(reports[1].registers, 255);
    EXPECT_EQ(reports[1].stack_bytes, 4096);
    EXPECT_EQ(reports[1].spill_store_bytes, 128);
    EXPECT_EQ(reports[1].spill_load_bytes, 256);
    EXPECT_THAT(gpu::reports_in(""), IsEmpty());
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
    // An array with an index that only runs know lies on the stack; more values at the same time than a thread of 1024 has registers spill.
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
            EXPECT_EQ(report.spill_store_bytes, 0);
        } else {
            EXPECT_EQ(report.kernel, "spilling");
            EXPECT_GT(report.spill_store_bytes, 0);
            EXPECT_GT(report.spill_load_bytes, 0);
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
}

}  // namespace
}  // namespace napkin
