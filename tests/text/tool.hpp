#pragma once
// The tool as a user runs it: in a folder of the test's own, by a shell.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/json.hpp"
#include "support/paths.hpp"

struct Outcome {
    int code = -1;
    std::string out, err;
};

class ToolTest : public testing::Test {
protected:
    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    /// `before` goes before the tool in the shell, for stdin and variables; `after` may redirect stdout. Without
    /// `where`, in the test's folder.
    [[nodiscard]] Outcome tool(const std::string& arguments, const std::string& before = "",
                               const std::string& after = "", const std::string& where = "") const {
        std::filesystem::remove(path("out.txt"));
        const std::string command = "cd '" + (where.empty() ? folder_.string() : where) + "' && " + before + " '" +
                                    napkin::tool_path() + "' " + arguments + " >'" + path("out.txt").string() +
                                    "' 2>'" + path("err.txt").string() + "' " + after;
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out.txt"), read("err.txt")};
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ifstream file(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
    [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }

    static nlohmann::json parsed(const Outcome& outcome) {
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        return nlohmann::json::parse(outcome.out, nullptr, false);
    }

    std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("napkin_text_" + std::to_string(getpid()));
};
