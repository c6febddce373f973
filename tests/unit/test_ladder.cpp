// The schedules of one matmul in examples/schedules, from a thread for each value to warps that copy for those that
// multiply.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "schedule/fragments.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_ladder {
namespace {

const std::filesystem::path folder = in_sources("examples/schedules");

std::shared_ptr<const Source> source_of(const std::filesystem::path& file) {
    const auto text = read_file(file.string());
    EXPECT_TRUE(text) << file;
    return std::make_shared<const Source>(Source{file.filename(), text.value_or("")});
}

Derived matmul() { return derive(parse_diagram(source_of(folder / "matmul.nk")).value()).value(); }

KernelPlan planned(const std::filesystem::path& schedule) {
    const Derived derived = matmul();
    PlanOptions options;
    options.file = source_of(schedule);
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram, {}).value(), load_machine("h200").value(), {},
                                  options);
    EXPECT_TRUE(plan.ok()) << schedule << "\n" << render(plan.errors());
    EXPECT_EQ(plan->kernels.size(), 1);
    return plan->kernels.at(0);
}

TEST(Ladder, EveryStepIsPredictedFasterThanTheOneBefore) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (const auto name = entry.path().filename().string(); entry.path().extension() == ".schedule" && name[0] <= '9')
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_EQ(files.size(), 9);
    double before = 1;
    for (const auto& file : files) {
        const KernelPlan plan = planned(file);
        // Clusters take load off the way from the cache, which does not bind here, and blocks that copy for each other
        // wait for each other.
        if (plan.scheduled.in_cluster())
            EXPECT_LT(plan.time.seconds, 1.02 * before) << file;
        else
            EXPECT_LT(plan.time.seconds, before) << file;
        before = plan.time.seconds;
    }
}

// B of a tile of 128 × 256 is two thirds of what its block loads, of which a cluster of two asks for half.
TEST(Ladder, ClustersLoadLessFromTheCache) {
    const auto loaded = [](const char* file) { return planned(folder / file).time.traffic.back().loaded_bytes; };
    EXPECT_DOUBLE_EQ(loaded("9-clustered.schedule"), loaded("8-specialised.schedule") * 2 / 3);
}

TEST(Ladder, StepsHaveWhatTheirNamesSay) {
    const auto instruction = [](const KernelPlan& plan) -> std::string {
        for (const Step& step : plan.scheduled.steps)
            if (const auto product = mma_product(plan.scheduled, step)) return product->instruction->name;
        return "";
    };
    EXPECT_EQ(instruction(planned(folder / "4-coarsened.schedule")), "");
    EXPECT_EQ(instruction(planned(folder / "5-tensor-core.schedule")), "mma");
    const KernelPlan wgmma = planned(folder / "6-wgmma.schedule"),
                     specialised = planned(folder / "8-specialised.schedule");
    EXPECT_EQ(instruction(wgmma), "wgmma");
    EXPECT_EQ(wgmma.scheduled.producer_role(), nullptr);
    EXPECT_NE(specialised.scheduled.producer_role(), nullptr);
}

}  // namespace
}  // namespace napkin::test_ladder
