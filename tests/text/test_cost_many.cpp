// `napkin cost` on several things, as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/json.hpp"
#include "support/paths.hpp"
#include "text/tool.hpp"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class CostMany : public ToolTest {
protected:
    /// `napkin cost examples/FILE …`
    [[nodiscard]] Outcome cost(const std::string& arguments) const {
        return tool("cost " + arguments, "", "", napkin::in_sources("examples"));
    }
    [[nodiscard]] nlohmann::json json(const std::string& arguments) const {
        return parsed(cost(arguments + " --json"));
    }
};

TEST_F(CostMany, AgainstPutsBothSidesBesideEachOther) {
    const Outcome outcome = cost("softmax.nk --machine h100-sxm5 --against no-fuse");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, StartsWith("fused against no fusion at r = 4096, c = 4096\n"));
    for (const char* row :
         {"\ntime ", "\nbound by ", "\nkernels ", "\ntransfers ", "\nFLOPs ", "\nFLOP a byte ", "\narrays in memory ",
          "\nenergy ", "\na million runs ", "\nfaster, as one size changes\n  r from 256 fused to 65,536\n"})
        EXPECT_THAT(outcome.out, HasSubstr(row));
}

TEST_F(CostMany, AgainstAsJson) {
    const nlohmann::json document = json("matmul.nk --machine h100-sxm5 --against machine=mi300x");
    EXPECT_EQ(document["winner"]["time"], "left") << "no kernel runs on the other one";
    EXPECT_EQ(document["schema"], "napkin.compare/1");
    EXPECT_EQ(document["left"]["label"], "h100-sxm5");
    EXPECT_EQ(document["right"]["label"], "mi300x");
    EXPECT_EQ(document["sizes"]["a"], 1024);
    EXPECT_GT(document["time_ratio"], 0);
    ASSERT_EQ(document["changes"].size(), 1U);
    EXPECT_EQ(document["changes"][0]["axes"], nlohmann::json({"a", "b", "c"}));
    EXPECT_EQ(document["changes"][0]["winner_from"], "left");
    const nlohmann::json small = json("matmul.nk --set a=64,b=64,c=64 --machine generic-cpu --against machine=h200");
    const auto& flips = small["changes"][0]["flips"];
    ASSERT_EQ(flips.size(), 1U);
    EXPECT_EQ(flips[0]["before"], "left");
    EXPECT_EQ(flips[0]["after"], "right");
    EXPECT_LT(flips[0]["not_at"], flips[0]["at"]);
}

TEST_F(CostMany, AllMachinesByTime) {
    const Outcome outcome = cost("attention.nk --machine all");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("h100-sxm5"), HasSubstr("generic-cpu"), HasSubstr("\nleast time: "),
                      HasSubstr("\nleast energy: "), HasSubstr("\nleast price: "), testing::Not(HasSubstr("\nhost"))));
    const nlohmann::json document = json("attention.nk --machine all");
    EXPECT_EQ(document["schema"], "napkin.ranking/1");
    EXPECT_GE(document["results"].size(), 9U);
    for (std::size_t i = 1; i < document["results"].size(); ++i) {
        const auto &before = document["results"][i - 1], &one = document["results"][i];
        EXPECT_GE(before["is_planned"].get<bool>(), one["is_planned"].get<bool>()) << "estimates are behind plans";
        EXPECT_TRUE(before["is_planned"] != one["is_planned"] || before["seconds"] <= one["seconds"]);
    }
    EXPECT_EQ(document["results"].back()["label"], "mi300x");
}

TEST_F(CostMany, AMachineThatCannotRunItSaysWhy) {
    const Outcome outcome = cost("attention.nk --machine rtx-4090,h200 --no-fuse --set q=65536,x=65536");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nh200 "), HasSubstr("\nrtx-4090 does not run it: the arrays take ")));
}

TEST_F(CostMany, HostIsCostedWhereItIsNamed) {
    const std::string both = "--machine host,h200";  // no energy on any processor
    const nlohmann::json document = json("matmul.nk " + both + " --set a=64,b=64,c=64");
    EXPECT_EQ(document["results"].size(), 2U);
    EXPECT_TRUE(document["results"][0]["energy_j"].is_number() || document["results"][1]["energy_j"].is_number());
    EXPECT_THAT(cost("matmul.nk --machine host,h200").out, HasSubstr("–"));  // none on any processor
}

TEST_F(CostMany, SweepsAsTextCsvAndJson) {
    const std::string arguments = "matmul.nk --machine h200,rtx-4090 --sweep a=b=256..1024";
    EXPECT_THAT(cost(arguments).out, AllOf(HasSubstr("a = b"), HasSubstr("least time"), HasSubstr("1,024")));
    const Outcome csv = cost(arguments + " --csv");
    EXPECT_EQ(csv.code, 0) << csv.err;
    EXPECT_THAT(csv.out, StartsWith("a,b,h200 machine,h200 seconds,"));
    EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 4);
    const nlohmann::json document = json(arguments);
    EXPECT_EQ(document["schema"], "napkin.sweep/1");
    EXPECT_EQ(document["points"].size(), 3U);
    EXPECT_EQ(document["points"][0]["results"].size(), 2U);
    EXPECT_THAT(cost("matmul.nk --machine h200 --sweep a=64..4096").out, HasSubstr("\nbound by "));
    EXPECT_THAT(cost("attention.nk --machine h200 --against no-fuse --sweep q=x=64..256").out,
                HasSubstr("least time: fused"));
}

TEST_F(CostMany, MistakesAreUsage) {
    for (const std::string arguments :
         {"matmul.nk --against nofuse", "matmul.nk --against ''", "matmul.nk --sweep a", "matmul.nk --csv",
          "matmul.nk --against no-fuse --csv", "matmul.nk --machine h200,h800 --csv --json",
          "matmul.nk --machine h200,,h800", "matmul.nk --machine h200,h800 --against no-fuse",
          "matmul.nk --machine all --explain", "matmul.nk --sweep a=2 --memory 100", "matmul.nk --sweep a=2 --sweep a=3",
          "matmul.nk --machine h200,h800 --special-overhead 1", "matmul.nk --machine h200,h800 --count"}) {
        const Outcome outcome = cost(arguments);
        EXPECT_EQ(outcome.code, 2) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
        EXPECT_NE(outcome.err, "") << arguments;
    }
}

TEST_F(CostMany, WrongInputNamesWhatIsNear) {
    const std::pair<const char*, const char*> cases[] = {
        {"matmul.nk --machine h200,h801", "did you mean h800?"},
        {"matmul.nk --against machine=h20", "did you mean h200?"},
        {"matmul.nk --against matmull.nk", "did you mean matmul.nk?"},
        {"kv_cache.nk --against diagram=cachd", "did you mean cached?"},
        {"attention.nk --machine h200 --sweep dd=2", "did you mean d?"},
        {"attention.nk --machine h200,h800 --set qq=2", "did you mean q?"},
        {"attention.nk --machine h200 --against set:qq=2", "[unknown-axis]"}};
    for (const auto& [arguments, near] : cases) {
        const Outcome outcome = cost(arguments);
        EXPECT_EQ(outcome.code, 1) << arguments;
        EXPECT_EQ(outcome.out, "") << arguments;
        EXPECT_THAT(outcome.err, HasSubstr(near)) << arguments;
    }
}

}  // namespace
