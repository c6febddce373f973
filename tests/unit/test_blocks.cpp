// How many warps a GPU's block has, and what is said of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

using testing::EndsWith;

/// What is said of the warps of a plan in which a file fixes them.
std::string reason(std::int64_t warps, double warps_a_core) {
    const Diagram diagram = parse_diagram(std::make_shared<Source>(Source{"sum.nk",
                                                                          "f(X[i, j]) -> Y[i]\n"
                                                                          "    Y[i] = sum(j) X[i, j]\n"
                                                                          "sizes i = 4096, j = 512\n"}))
                                .value();
    Machine machine = load_machine("h200").value();
    machine.threads->warps_a_core.value = warps_a_core;
    std::vector<ScheduleItem> by_hand;
    if (warps > 0) {
        ScheduleItem item;
        item.kind = "warps", item.value = warps;
        by_hand.push_back(item);
    }
    const auto plan = choose_plan(derive(diagram).value(), bind_sizes(diagram).value(), machine, by_hand);
    if (!plan) return render(plan.errors());
    const Choice& chosen = plan->kernels[0].schedule().warps;
    EXPECT_EQ(chosen.by_hand, warps > 0);
    EXPECT_TRUE(warps == 0 || chosen.value == warps);
    return chosen.reason;
}

TEST(Blocks, EachShapeIsTriedOnceAndCounted) {
    EXPECT_THAT(reason(0, 64), EndsWith(" an SM; fastest of 7 shapes"));
    EXPECT_THAT(reason(0, 32), EndsWith(" an SM; fastest of 6 shapes")) << "no room for 12 blocks of 4 warps";
    EXPECT_THAT(reason(8, 64), EndsWith(" an SM; fastest of 5 shapes")) << "1, 2, 3, 4 or 8 blocks";
    EXPECT_THAT(reason(16, 64), EndsWith(" an SM; fastest of 4 shapes")) << "an SM has room for four";
    EXPECT_THAT(reason(32, 64), EndsWith(" an SM; fastest of 2 shapes")) << "an SM has room for two";
    EXPECT_EQ(reason(32, 48), "1 block an SM; no more of 32 warps fit");
}

}  // namespace
}  // namespace napkin
