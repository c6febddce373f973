// What documents show behind a line "$ napkin …" is what the tool prints today. NAPKIN_UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/paths.hpp"

namespace {

namespace fs = std::filesystem;

std::string printed_by(const std::string& arguments) {
    const std::string command = "cd '" + napkin::source_dir().string() + "' && { '" + napkin::tool_path() + "' " +
                                arguments + "; } 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    if (pipe != nullptr) ::pclose(pipe);
    return text;
}

/// A document as it is, and as it should be. In the latter, the output of each command in a code block stands behind
/// it, up to the next command or to the block's end.
struct Document {
    std::string is, should_be;
    int commands = 0;
};

Document read(const fs::path& path) {
    constexpr std::string_view prompt = "$ napkin ";
    Document out;
    std::ifstream in(path);
    bool is_output = false;
    for (std::string line; std::getline(in, line);) {
        out.is += line + "\n";
        const bool is_command = line.starts_with(prompt);
        if (is_command || line.starts_with("```")) is_output = false;
        if (!is_output) out.should_be += line + "\n";
        if (!is_command) continue;
        out.should_be += printed_by(line.substr(prompt.size()));
        ++out.commands;
        is_output = true;
    }
    return out;
}

TEST(Documents, ShowWhatIsPrinted) {
    int commands = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(napkin::source_dir() / "docs")) {
        if (entry.path().extension() != ".md") continue;
        const Document document = read(entry.path());
        commands += document.commands;
        if (document.commands > 0 && std::getenv("NAPKIN_UPDATE_GOLDEN"))
            std::ofstream(entry.path(), std::ios::binary) << document.should_be;
        else
            EXPECT_EQ(document.is, document.should_be) << entry.path().filename();
    }
    EXPECT_GE(commands, 8);
}

}  // namespace
