// `napkin plan --steps`: tests/text/steps/<name>.txt. NAPKIN_UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "tool.hpp"

namespace {

class StepsCommand : public ToolTest {
protected:
    void expect_golden(const std::string& name, const std::string& text) const {
        const std::filesystem::path golden = napkin::source_dir() / "tests/text/steps" / (name + ".txt");
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
            std::filesystem::create_directories(golden.parent_path());
            std::ofstream(golden, std::ios::binary) << text;
        }
        std::ifstream file(golden, std::ios::binary);
        EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {})) << name;
    }
    [[nodiscard]] Outcome steps(const std::string& arguments) const {
        return tool("plan --steps " + arguments, "", "", napkin::in_sources("examples"));
    }
};

TEST_F(StepsCommand, TheTablesOfThePaper) {
    const Outcome o = steps("schedules/napkin.nk --machine h100-sxm5 --schedule schedules/napkin-table-1.schedule");
    EXPECT_EQ(o.code, 0) << o.err;
    expect_golden("napkin_table_1", o.out);
}

TEST_F(StepsCommand, SizesByHandAndByTheModel) {
    const Outcome by_user = steps("attention_bf16.nk --machine h100-sxm5 --diagram attention --group q=64");
    EXPECT_EQ(by_user.code, 0) << by_user.err;
    expect_golden("attention_bf16", by_user.out);
    const Outcome open = steps("layernorm.nk --machine a100-sxm-80gb --stream c");
    EXPECT_EQ(open.code, 0) << open.err;
    expect_golden("layernorm", open.out);
}

/// The steps are those of the plan: both commands print one schedule and one time.
TEST_F(StepsCommand, AreAViewOfThePlan) {
    for (const std::string arguments : {"decode.nk --machine h200", "matmul.nk --machine a100-sxm-80gb",
                                        "attention_bf16.nk --diagram attention --machine b200 --group q=64"}) {
        const Outcome plan = tool("plan " + arguments, "", "", napkin::in_sources("examples"));
        ASSERT_EQ(plan.code, 0) << plan.err;
        const auto view = parsed(steps(arguments + " --json"));
        std::string from = plan.out;
        for (const auto& kernel : view["kernels"]) {
            std::string schedule = kernel["schedule"];
            schedule.erase(0, schedule.find("kernel "));
            EXPECT_NE(from.find(schedule), std::string::npos) << arguments << plan.out << schedule;
        }
    }
    const auto warpgroup = parsed(
        steps("schedules/napkin-section-5.nk --schedule schedules/napkin-section-5.schedule --json"));
    EXPECT_EQ(warpgroup["kernels"][0]["sizes"]["w_q"], 64);
    EXPECT_EQ(warpgroup["kernels"][0]["warpgroups"], 3);
}

TEST_F(StepsCommand, OverlapCharts) {
    const std::string fa3 = "schedules/flash-attention-3.nk --machine h100-sxm5 --diagram ";
    for (const std::string name : {"intra", "inter"}) {
        const Outcome o = steps(fa3 + "fp16 --schedule schedules/flash-attention-3-" + name + ".schedule");
        EXPECT_EQ(o.code, 0) << o.err;
        expect_golden("flash_attention_3_" + name, o.out.substr(o.out.find("  overlap over")));
    }
    const auto json = parsed(steps(fa3 + "fp8 --json --schedule schedules/flash-attention-3-inter.schedule"));
    const auto& chart = json["kernels"][0]["charts"][0];
    EXPECT_EQ(chart["bound_by"], "exp");
    EXPECT_EQ(chart["warpgroups"], 2);
    EXPECT_EQ(chart["barriers"].size(), 4u);
    for (const auto& row : chart["rows"]) EXPECT_LT(row["begin"], row["end"]);
    const auto own = parsed(steps(fa3 + "fp16 --json --schedule schedules/napkin-own.schedule"));
    EXPECT_EQ(own["kernels"][0]["charts"][0]["iterations_in_flight"], 2);
}

/// A row for each GPU, with what its rates rest on; what has no steps is said.
TEST_F(StepsCommand, OnAllMachines) {
    const Outcome all = steps("attention_bf16.nk --diagram attention --machine all");
    EXPECT_EQ(all.code, 0) << all.err;
    for (const char* machine : {"a100-sxm-80gb", "h100-pcie", "h800", "b200", "mi300x", "rtx-4090"})
        EXPECT_NE(all.out.find(machine), std::string::npos) << all.out;
    EXPECT_NE(all.out.find("1 of 5 measured"), std::string::npos) << all.out;
    EXPECT_EQ(all.out.find("generic-cpu"), std::string::npos) << all.out;
    const auto json = parsed(steps("attention_bf16.nk --diagram attention --machine h100-sxm5,mi300x --json"));
    EXPECT_EQ(json["machines"].size(), 2u);
    EXPECT_EQ(json["machines"][0]["rates"], "measured");
    for (const auto& machine : json["machines"]) {
        EXPECT_GT(machine["kernels"][0]["steady_state"]["seconds"], 0);
        EXPECT_NE(machine["kernels"][0]["steady_state"]["bound_by"], "");
        EXPECT_FALSE(machine["kernels"][0]["instructions"].empty());
    }
    write("deep.schedule",
          "kernel O\nmma_m q\nwarps 4\ngroup q 64\nstream x 256\nstorage K operand, stages 1\n"
          "storage V operand, stages 1\n");
    const Outcome some = steps("attention_bf16.nk --diagram attention --machine h100-sxm5,rtx-4090 --schedule " +
                               path("deep.schedule").string());
    EXPECT_EQ(some.code, 0) << some.err;
    EXPECT_NE(some.out.find(" has no steps: "), std::string::npos) << some.out;
    EXPECT_EQ(steps("attention_bf16.nk --diagram attention --machine h100-sxm5,h20").code, 1);
}

TEST_F(StepsCommand, JsonHasTheSameFigures) {
    const auto document = parsed(
        steps("schedules/napkin.nk --machine h100-sxm5 --schedule schedules/napkin-table-1.schedule --json"));
    EXPECT_EQ(document["schema"], "napkin.steps/1");
    const auto& kernel = document["kernels"][0];
    EXPECT_EQ(kernel["steps"].size(), 6u);
    EXPECT_EQ(kernel["warpgroups"], 3);
    EXPECT_EQ(kernel["budgets"][1]["warpgroup_bytes"], 76544);
    EXPECT_EQ(kernel["throughput"]["lower_bound_clocks"], 6);
    EXPECT_EQ(kernel["registers"]["spills"], false);
}

TEST_F(StepsCommand, ErrorsPointIntoTheSchedule) {
    write("wide.schedule", "group q 384\nwarpgroup q 128\nstream x 60\n");
    const Outcome o = steps("schedules/napkin.nk --machine h100-sxm5 --schedule " + path("wide.schedule").string());
    EXPECT_EQ(o.code, 1);
    EXPECT_NE(
        o.err.find("wide.schedule:3:1: error: s_x = 60 is no multiple of 16: wgmma n 8 of S, wgmma k 16 of O_acc"),
        std::string::npos)
        << o.err;
    EXPECT_NE(o.err.find("the nearest legal sizes are 48 and 64"), std::string::npos) << o.err;
    const Outcome plan = tool("plan '" + napkin::in_sources("examples/schedules/napkin.nk") +
                              "' --machine generic-cpu --schedule wide.schedule");
    EXPECT_EQ(plan.code, 1);
    EXPECT_NE(plan.err.find("have 64 rows of the tensor cores [no-warpgroup]"), std::string::npos) << plan.err;
}

}  // namespace
