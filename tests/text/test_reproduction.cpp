// docs/reproduction.md is what `napkin reproduce` makes today, and no row has changed its mind.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

namespace {

int run(const std::string& arguments) {
    const int status = std::system(("cd '" NAPKIN_SOURCE_DIR "' && '" NAPKIN_CLI "' " + arguments).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Reproduction, TheDocumentsFiguresAreTheComputedOnes) {
    EXPECT_EQ(run("reproduce --check"), 0) << "napkin reproduce --output docs/reproduction.md writes the table anew";
}

TEST(Reproduction, AnotherTableIsRefused) {
    EXPECT_EQ(run("reproduce --check --output README.md 2>/dev/null"), 1);
    EXPECT_EQ(run("reproduce docs/none.toml 2>/dev/null"), 1);
}

}  // namespace
