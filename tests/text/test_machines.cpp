// `napkin machines show` as a user meets it. tests/text/machines/NAME.txt is what is printed for a built-in machine;
// NAPKIN_UPDATE_GOLDEN=1 rewrites it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/json.hpp"
#include "support/paths.hpp"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Said {
    int code = -1;
    std::string out;  ///< with stderr
};

Said napkin(const std::string& arguments) {
    Said outcome;
    FILE* pipe = popen(("NO_COLOR=1 '" + napkin::tool_path() + "' " + arguments + " 2>&1").c_str(), "r");
    if (!pipe) return outcome;
    char buffer[4096];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.out.append(buffer, n);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
}

TEST(Machines, AreShownAsWritten) {
    for (const std::string name : {"h100-sxm5", "generic-cpu"}) {
        const Said shown = napkin("machines show " + name);
        EXPECT_EQ(shown.code, 0);
        const fs::path expected = napkin::source_dir() / "tests" / "text" / "machines" / (name + ".txt");
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) std::ofstream(expected, std::ios::binary) << shown.out;
        std::ifstream file(expected, std::ios::binary);
        EXPECT_EQ(shown.out, std::string(std::istreambuf_iterator<char>(file), {}));
    }
}

TEST(Machines, JsonHasEveryFigureWithItsSource) {
    const auto machine = nlohmann::json::parse(napkin("machines show h800 --json").out);
    EXPECT_EQ(machine["schema"], "napkin.machine/1");
    EXPECT_EQ(machine["levels"][2]["instances"], 114);
    EXPECT_NE(machine["levels"][2]["sources"]["bandwidth_bytes_per_s"], "");
    EXPECT_EQ(machine["threads"]["warps_a_core"], 64);
    bool found = false;
    for (const auto& ridge : machine["ridges"])
        if (ridge["unit"] == "tensor" && ridge["type"] == "f16" && ridge["from"] == "GMEM") {
            found = true;
            EXPECT_NEAR(ridge["flop_per_byte"].get<double>(), 756.4e12 / 2.04e12, 1);
        }
    EXPECT_TRUE(found);
    for (const auto& unit : machine["units"]) EXPECT_NE(unit["source"], "");
    EXPECT_GE(nlohmann::json::parse(napkin("machines --json").out)["machines"].size(), 11U);
}

TEST(Machines, OccupancyOfABlock) {
    const Said shown = napkin("machines show h100-sxm5 --block threads=256,registers=64,memory=48KiB");
    EXPECT_EQ(shown.code, 0);
    EXPECT_THAT(shown.out,
                HasSubstr("4 blocks of 256 threads a core: 32 of 64 warps, occupancy 50%, limited by registers"));
    EXPECT_EQ(napkin("machines show h100-sxm5 --block threads=2000").code, 1);
    EXPECT_EQ(napkin("machines show generic-cpu --block threads=32").code, 1);
    EXPECT_EQ(napkin("machines show h100-sxm5 --block thread=32").code, 2);
    EXPECT_EQ(napkin("machines show h100-sxm5 --block memory=48").code, 2);
    EXPECT_EQ(napkin("machines show h100-sxm5 --block threads=").code, 2);
}

TEST(Machines, NamesAndPaths) {
    const Said near = napkin("machines show h100-sxm");
    EXPECT_EQ(near.code, 1);
    EXPECT_THAT(near.out, HasSubstr("did you mean h100-sxm5?"));
    EXPECT_EQ(napkin("machines show").code, 2);
    EXPECT_EQ(napkin("machines h100-sxm5 h200").code, 2);
    EXPECT_EQ(napkin("machines show '" + napkin::in_sources("machines/b200.toml") + "'").code, 0);
    EXPECT_EQ(napkin("machines show mi300x --toml").out, napkin("machines mi300x").out);
}

}  // namespace
