// What documents show behind a line "$ COMMAND" is what it prints today. NAPKIN_UPDATE_GOLDEN=1 rewrites it.
// What they link to exists, and so do the paths that they name.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.hpp"

namespace {

namespace fs = std::filesystem;

/// What a shell prints of the command in the sources, where napkin and ./napkin are the tool.
std::string printed_by(const std::string& command) {
    static const std::regex tool(R"((^|\s)(\./)?napkin )");
    const std::string with_tool = std::regex_replace(command, tool, "$1'" + napkin::tool_path() + "' ");
    const std::string in_sources = "cd '" + napkin::source_dir().string() + "' && { " + with_tool + "; } 2>&1";
    std::FILE* const pipe = ::popen(in_sources.c_str(), "r");
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
    constexpr std::string_view prompt = "$ ";
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

/// Whether the folder of the document, or one that paths are relative to, has the path.
bool is_there(const fs::path& folder, const std::string& path) {
    for (const fs::path& root : {folder, napkin::source_dir(), napkin::source_dir() / "src", napkin::source_dir() / "tests"})
        if (fs::exists(root / path)) return true;
    return false;
}

/// What a text links to, and the paths that stand between backticks, where the document's folder has none such. A path
/// of a build, of an installed copy or with a NAME to fill in is no claim about the sources.
std::vector<std::string> missing_paths(const fs::path& folder, const std::string& text) {
    static const std::regex link(R"(\]\(([^)#\s]+)[^)\s]*\))"), path(R"(`(\.?[a-z_]\w*(?:/[\w.-]+)+/?)`)"),
        no_claim("^(?:build|share)/|[A-Z]{4,}\\b(?!\\.md)|^https?:");
    std::vector<std::string> missing;
    bool is_code = false;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("```")) is_code = !is_code;
        if (is_code) continue;
        for (const std::regex& named : {link, path})
            for (std::sregex_iterator found(line.begin(), line.end(), named), end; found != end; ++found) {
                const std::string target = (*found)[1];
                const bool exists = &named == &link ? fs::exists(folder / target) : is_there(folder, target);
                if (!std::regex_search(target, no_claim) && !exists) missing.push_back(target);
            }
    }
    return missing;
}

TEST(Documents, NamePathsThatExist) {
    const fs::path root = napkin::source_dir();
    const std::string bad = "[a](no/such.md) `src/no_such.hpp` `docs/no/such` [b](src/no.hpp#part)";
    EXPECT_EQ(missing_paths(root, bad).size(), 4);
    const std::string good =
        "[a](docs/cost.md#time) [b](https://a.example/b) [c](#part) `plan/plan.hpp` `machines/NAME.toml` `a / b` "
        "`build/x`\n"
        "```\n`no/such`\n```\n";
    EXPECT_EQ(missing_paths(root, good), std::vector<std::string>{});
    std::vector<fs::path> documents = {root / "README.md", root / "CONTRIBUTING.md", root / "bench/README.md",
                                       root / "bench/results/README.md"};
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "docs"))
        if (entry.path().extension() == ".md") documents.push_back(entry.path());
    EXPECT_GE(documents.size(), 15);
    for (const fs::path& document : documents) {
        std::stringstream text;
        text << std::ifstream(document).rdbuf();
        EXPECT_EQ(missing_paths(document.parent_path(), text.str()), std::vector<std::string>{}) << document;
    }
}

}  // namespace
