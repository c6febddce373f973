// tests/error/machines/*.toml: machine files with mistakes, and what is printed for each, beside it as .txt. All
// mistakes of a file come at once. NAPKIN_UPDATE_GOLDEN=1 rewrites the expected texts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "machine/machine.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"

namespace napkin {
namespace {

namespace fs = std::filesystem;

TEST(MachineErrorTexts, AreAsWritten) {
    int cases = 0;
    for (const auto& entry : fs::directory_iterator(source_dir() / "tests" / "error" / "machines")) {
        if (entry.path().extension() != ".toml") continue;
        SCOPED_TRACE(entry.path().string());
        ++cases;
        const auto result = read_machine(std::make_shared<const Source>(
            Source{entry.path().filename().string(), read_file(entry.path()).value_or("")}));
        ASSERT_FALSE(result.ok());
        const std::string rendered = render(result.errors());
        fs::path expected = entry.path();
        expected.replace_extension(".txt");
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) std::ofstream(expected, std::ios::binary) << rendered;
        EXPECT_EQ(rendered, read_file(expected).value_or(""));
        for (const Diagnostic& error : result.errors()) EXPECT_NE(error.range.source, nullptr) << error.message;
    }
    EXPECT_GE(cases, 2);
}

}  // namespace
}  // namespace napkin
