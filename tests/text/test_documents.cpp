// What documents show behind a line "$ napkin …" is what the tool prints today.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Shown {
    std::string place, command, output;
};

/// The commands of a document's code blocks, each with the lines up to the next one or to the block's end.
std::vector<Shown> shown_in(const fs::path& document) {
    std::vector<Shown> out;
    std::ifstream in(document);
    bool is_output = false;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.starts_with("```")) {
            is_output = false;
        } else if (line.starts_with("$ napkin ")) {
            out.push_back({document.filename().string() + ":" + std::to_string(number), line.substr(9), ""});
            is_output = true;
        } else if (is_output) {
            out.back().output += line + "\n";
        }
    }
    return out;
}

std::string printed_by(const std::string& arguments) {
    const std::string command = "cd '" NAPKIN_SOURCE_DIR "' && { '" NAPKIN_CLI "' " + arguments + "; } 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    if (pipe != nullptr) ::pclose(pipe);
    return text;
}

TEST(Documents, ShowWhatIsPrinted) {
    std::size_t shown = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(NAPKIN_SOURCE_DIR) / "docs")) {
        if (entry.path().extension() != ".md") continue;
        for (const Shown& s : shown_in(entry.path())) {
            EXPECT_EQ(printed_by(s.command), s.output) << s.place;
            ++shown;
        }
    }
    EXPECT_GE(shown, 8U);
}

}  // namespace
