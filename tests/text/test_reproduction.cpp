// The tool around src/study/reproduction.hpp: docs/reproduction.md is what `napkin reproduce` prints today. A row that
// does not agree has a reason, and one that agrees has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "support/dtype.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

int run(const std::string& arguments) {
    const int status = std::system(
        ("cd '" + napkin::source_dir().string() + "' && '" + napkin::tool_path() + "' " + arguments).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Reproduction, ThePageIsWhatTheToolPrints) {
    EXPECT_EQ(run("reproduce --check"), 0) << "napkin reproduce --output docs/reproduction.md writes the table anew";
}

TEST(Reproduction, AFileThatIsNotThereIsRefused) { EXPECT_EQ(run("reproduce docs/none.toml 2>/dev/null"), 1); }

class Rows : public testing::Test {
protected:
    void SetUp() override { fs::create_directories(folder_ / "docs"); }
    void TearDown() override { fs::remove_all(folder_); }

    /// Exit code and what the tool says of a file with one row that asks one query.
    [[nodiscard]] std::pair<int, std::string> of(const std::string& query, const std::string& comparison,
                                                 const std::string& options = "") const {
        std::ofstream(folder_ / "a.nk") << "double(X[i]) -> Y[i]\n    Y[i] = 2 * X[i]\nsizes i = 64\n";
        std::ofstream(folder_ / "docs" / "rows.toml") << "[documents]\nD = \"A document\"\n[queries]\na = \"" << query
                                                      << "\"\n[[row]]\ndocument = \"D\"\nfigure = \"1\"\n"
                                                      << comparison << "\n";
        const std::string file = (folder_ / "docs" / "rows.toml").string(), said = (folder_ / "said.txt").string();
        const int code = run("reproduce '" + file + "' " + options + " >'" + said + "' 2>&1");
        std::ostringstream text;
        text << std::ifstream(said).rdbuf();
        return {code, text.str()};
    }

    fs::path folder_ = fs::temp_directory_path() / ("napkin_rows_" + std::to_string(getpid()));
};

TEST_F(Rows, AreComputedFromTheFolderAboveTheirs) {
    const auto [code, said] = of("cost a.nk --machine generic-cpu", "value = \"a/total/transfers\"\nformula = \"2·i\"",
                                 "--json");
    ASSERT_EQ(code, 0) << said;
    EXPECT_EQ(nlohmann::json::parse(said)["rows"][0]["computed"], "2·i");
}

TEST_F(Rows, AnotherTableIsRefused) {
    const std::string comparison = "value = \"a/total/transfers\"\nformula = \"2·i\"",
                      table = (folder_ / "table.md").string(), check = "--check --output '" + table + "'";
    ASSERT_EQ(of("cost a.nk --machine generic-cpu", comparison, "--output '" + table + "'").first, 0);
    EXPECT_EQ(of("cost a.nk --machine generic-cpu", comparison, check).first, 0);
    std::ofstream(table, std::ios::app) << "more\n";
    const auto [code, said] = of("cost a.nk --machine generic-cpu", comparison, check);
    EXPECT_EQ(code, 1);
    EXPECT_THAT(said, HasSubstr("table.md"));
}

TEST_F(Rows, ARowAndItsReasonThatContradictFailTheCheck) {
    const std::string query = "cost a.nk --machine generic-cpu", value = "value = \"a/total/transfers\"\n";
    const auto [code, said] = of(query, value + "formula = \"3·i\"", "--check");
    EXPECT_EQ(code, 1);
    EXPECT_THAT(said, AllOf(HasSubstr("rows.toml:8:10: error: D, 1: the source has 3·i, napkin 2·i"),
                            HasSubstr("'why' with the reason")));
    const auto [other, says] = of(query, value + "formula = \"2·i\"\nwhy = \"it was so\"", "--check");
    EXPECT_EQ(other, 1);
    EXPECT_THAT(says, HasSubstr("no 'why', as they agree"));
}

TEST_F(Rows, RecordsAreRead) {
    fs::create_directories(folder_ / "bench" / "results");
    std::ofstream(folder_ / "bench" / "results" / "r.json") << R"({"seconds": 3})";
    const std::string row = "value = \"a/seconds\"\nis = \"3\"";
    EXPECT_EQ(of("bench/results/r.json", row).first, 0);
    EXPECT_THAT(of("bench/results/s.json", row).second, HasSubstr("there is no record bench/results/s.json"));
}

TEST_F(Rows, QueriesThatFailArePointedAt) {
    const std::string comparison = "value = \"a/total/transfers_values\"\nis = \"128\"";
    EXPECT_THAT(of("cost a.nk", comparison).second, HasSubstr("rows.toml:4:6: error: a cost without --machine"));
    EXPECT_THAT(of("run a.nk", comparison).second, HasSubstr("'run' is no query"));
    const auto [code, said] = of("cost b.nk --machine generic-cpu", comparison);
    EXPECT_EQ(code, 1);
    EXPECT_THAT(said,
                AllOf(HasSubstr("rows.toml:4:6"), HasSubstr("there is no file b.nk"), HasSubstr("did you mean a.nk?")));
    EXPECT_THAT(of("cost a.nk --machine generic-cpu --nonsense", comparison).second, HasSubstr("--nonsense"));
    EXPECT_THAT(of("cost a.nk --machine generic-cpu", "value = \"a/totl/transfers\"\nis = \"1\"").second,
                HasSubstr("did you mean total?"));
}

TEST(Formats, AreFoundByRounding) {
    const fs::path file = fs::temp_directory_path() / ("napkin_formats_" + std::to_string(getpid()));
    ASSERT_EQ(run("formats --json >'" + file.string() + "'"), 0);
    std::ifstream in(file);
    const auto formats = nlohmann::json::parse(in)["formats"];
    fs::remove(file);
    EXPECT_EQ(formats["e4m3"]["largest"], 448);
    EXPECT_EQ(formats["bf16"]["epsilon"], 0x1p-7);
    EXPECT_EQ(formats.size(), std::size(napkin::all_dtypes));
    EXPECT_EQ(run("formats >/dev/null"), 0);
    ASSERT_EQ(run("formats --round 500 --json >'" + file.string() + "'"), 0);
    std::ifstream rounded(file);
    EXPECT_EQ(nlohmann::json::parse(rounded)["formats"]["e4m3"]["rounded"], "nan");
    fs::remove(file);
}

}  // namespace
