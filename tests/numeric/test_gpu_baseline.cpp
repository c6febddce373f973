// Equation by equation on a GPU: as right as the kernels that it is held against, with multiplies by the library where
// it takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/verdict.hpp"
#include "diagram/array_sizes.hpp"
#include "run/gpu/baseline.hpp"
#include "run/gpu/multiply.hpp"
#include "run/report.hpp"

namespace napkin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Peer {
    Compilation unfused;
    gpu::GpuBaseline baseline;
};

Peer peer_of(const std::string& text) {
    PipelineOptions options;
    options.fuse = false;
    options.machine = "gpu";
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<test>", text}), options);
    if (!made) throw std::runtime_error(render(made.errors()));
    auto baseline = gpu::gpu_baseline(made->diagram, made->extents, made->machine);
    if (!baseline) throw std::runtime_error(render(baseline.errors()));
    return {std::move(made).value(), std::move(baseline).value()};
}

void expect_good(const Peer& peer) {
    const Compilation& c = peer.unfused;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<Tensor> inputs = all_inputs(c.diagram, c.extents, {}, seed).value();
        std::vector<KernelInput> in;
        for (const Tensor& tensor : inputs) in.push_back({tensor.data(), tensor.type(), tensor.sizes(), {}});
        std::vector<Tensor> outputs;
        for (const ArrayId id : c.diagram.outputs)
            outputs.push_back(Tensor::make(c.diagram.array(id).type, array_sizes(c.diagram, id, c.extents)).value());
        std::vector<KernelOutput> out;
        for (Tensor& tensor : outputs) out.push_back({tensor.data(), tensor.type(), tensor.sizes(), {}});
        const Status ran = peer.baseline.kernel->run(in, out);
        ASSERT_TRUE(ran.ok()) << render(ran.errors());
        for (const ArrayVerdict& v : check_outputs(c, inputs, outputs, {.seed = seed}).arrays)
            EXPECT_EQ(v.judgement, Judgement::good) << "seed " << seed << ": " << describe(v);
    }
}

class GpuBaseline : public testing::Test {
protected:
    void SetUp() override {
        if (!gpu::device()) GTEST_SKIP() << "there is no GPU";
        if (!gpu::multiply_library()) GTEST_SKIP() << "cuBLASLt is not found";
    }
};

TEST_F(GpuBaseline, MultipliesByTheLibraryInEveryTypeOfIts) {
    for (const std::string type : {"f32", "f64", "f16", "bf16"})
        for (const char* operands :
             {"A[i, k]: {0}, B[k, j]: {0}", "A[i, k]: {0}, B[j, k]: {0}", "A[k, i]: {0}, B[j, k]: {0}"}) {
            std::string header = operands;
            for (std::size_t at = header.find("{0}"); at != std::string::npos; at = header.find("{0}"))
                header.replace(at, 3, type);
            const std::string a = header.substr(0, header.find("]") + 1),
                              b = header.substr(header.find("B["), header.rfind("]") - header.find("B[") + 1);
            const Peer peer = peer_of("f(" + header + ") -> C[i, j]: " + type + "\n    C[i, j] = sum(k) " + a + " * " +
                                      b + "\nsizes i = 130, j = 200, k = 96\n");
            EXPECT_EQ(peer.baseline.multiplies, 1) << header;
            EXPECT_THAT(peer.baseline.own, IsEmpty()) << header;
            EXPECT_THAT(peer.baseline.library, StartsWith("cuBLASLt ")) << header;
            expect_good(peer);
        }
}

TEST_F(GpuBaseline, MultipliesBytesWhoseRowsLieAlongTheSum) {
    const Peer peer = peer_of(
        "f(A[i, k]: e4m3, B[j, k]: e4m3) -> C[i, j]: bf16\n    C[i, j] = sum(k) A[i, k] * B[j, k]\n"
        "sizes i = 128, j = 192, k = 256\n");
    EXPECT_THAT(peer.baseline.own, IsEmpty());
    expect_good(peer);
}

TEST_F(GpuBaseline, LeavesToOwnKernelsWhatTheLibraryDoesNotTake) {
    const Peer peer = peer_of(
        "f(A[i, k]: e5m2, B[j, k]: e5m2) -> C[i, j]: f32\n    C[i, j] = sum(k) A[i, k] * B[j, k]\n"
        "sizes i = 128, j = 192, k = 256\n");
    EXPECT_EQ(peer.baseline.multiplies, 1);
    EXPECT_EQ(peer.baseline.library, "");
    EXPECT_THAT(
        peer.baseline.own,
        ElementsAre(HasSubstr("C by a kernel of napkin's own: cuBLASLt takes no product of e5m2 and e5m2 in f32")));
    expect_good(peer);
}

TEST_F(GpuBaseline, RunsEquationAfterEquation) {
    for (const std::string type : {"f32", "bf16"}) {
        const Peer peer = peer_of("f(Q[h, q, k]: " + type + ", K[h, x, k]: " + type + ", V[h, x, d]: " + type +
                                  ") -> O[h, q, d]: " + type +
                                  "\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
                                  "    P[h, q, x] = softmax(x) where(x <= q + 40, S[h, q, x] * k^-0.5, -inf)\n"
                                  "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
                                  "sizes h = 3, q = 67, x = 1100, k = 24, d = 16\n");
        EXPECT_EQ(peer.baseline.multiplies, 2);
        EXPECT_THAT(peer.baseline.own, IsEmpty());
        EXPECT_GE(peer.baseline.extra_bytes, 3 * 67 * 1100 * 2 + gpu::multiply_workspace_bytes);
        expect_good(peer);
    }
}

TEST_F(GpuBaseline, IsMeasuredBesideTheKernels) {
    PipelineOptions options;
    options.machine = "gpu";
    const auto c = run_pipeline(
        std::make_shared<const Source>(Source{"<test>",
                                              "f(A[i, k]: bf16, B[j, k]: bf16) -> C[i, j]: bf16\n"
                                              "    C[i, j] = sum(k) A[i, k] * B[j, k]\n"
                                              "sizes i = j = k = 512\n"}),
        options);
    ASSERT_TRUE(c.ok()) << render(c.errors());
    const auto inputs = all_inputs(c->diagram, c->extents, {}, 1);
    std::vector<Tensor> outputs;
    RunOptions run;
    run.seconds = 0.05;
    const auto report = run_and_report(*c, *inputs, run, outputs);
    ASSERT_TRUE(report.ok()) << render(report.errors());
    EXPECT_EQ(report->baseline_left_out, "");
    ASSERT_TRUE(report->baseline_seconds);
    EXPECT_GT(*report->baseline_seconds, 0);
    ASSERT_TRUE(report->speedup());
    EXPECT_THAT(report->blas, StartsWith("cuBLASLt "));
}

}  // namespace
}  // namespace napkin
