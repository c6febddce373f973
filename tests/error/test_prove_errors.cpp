// What `napkin plan --prove` says where there is no order to prove.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tool.hpp"
#include "unit/proven.hpp"

namespace napkin::test_prove_errors {
namespace {

using proven::planned;
using testing::HasSubstr;

const std::string rows = "rows(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\nsizes r = c = 1024\n";

std::string said(const std::string& text, const std::string& machine, const std::string& schedule = "") {
    const auto proofs = planned(text, schedule, machine).proofs();
    EXPECT_FALSE(proofs.ok());
    return render(proofs.errors());
}

TEST(ProveErrors, AProcessorHasNoMatrixUnit) {
    const std::string text = said(proven::attention(64), "generic-cpu");
    EXPECT_THAT(text, HasSubstr("generic-cpu has no tensor cores"));
    EXPECT_THAT(text, HasSubstr("[no-orders]"));
    EXPECT_THAT(text, HasSubstr("--machine h200"));
}

TEST(ProveErrors, AKernelWithoutSuchALoopSaysWhatItLacks) {
    EXPECT_THAT(said(rows, "h200"), HasSubstr("kernel Y has no product on the tensor cores"));
    EXPECT_THAT(said(proven::attention(64), "h200", "mma_m q\nwarps 8\nstream x = 64\n"),
                HasSubstr("the loop over x of kernel O: no role copies for those that compute"));
}

class ProveCommand : public ToolTest {};

TEST_F(ProveCommand, IsOfAPlanAndSaysWhatTheMachineLacks) {
    write("a.nk", rows);
    EXPECT_EQ(tool("plan a.nk --prove --steps --machine h200").code, 2);
    const Outcome cpu = tool("plan a.nk --prove --machine generic-cpu"), gpu = tool("plan a.nk --prove --machine h200");
    EXPECT_EQ(cpu.code, 3);
    EXPECT_TRUE(cpu.out.empty());
    EXPECT_THAT(cpu.err, HasSubstr("error: generic-cpu has no tensor cores"));
    EXPECT_EQ(gpu.code, 1);
    EXPECT_THAT(gpu.err, HasSubstr("no loop has statements whose order is open"));
}

}  // namespace
}  // namespace napkin::test_prove_errors
