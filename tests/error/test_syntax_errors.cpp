// Every user error of the front end has a case: tests/error/cases/<code>.nk and what is printed for it, <code>.txt. A
// case's first error has the code of its name. tests/error/files/ holds texts with several errors, for recovery.
// NAPKIN_UPDATE_GOLDEN=1 rewrites the expected texts.
//
// A first line "#! word=value …" sets what a text cannot: diagram=NAME, schedule=ITEM (with _ for a space), pad=BYTES.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "support/files.hpp"
#include "support/paths.hpp"
#include "syntax/codes.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

namespace fs = std::filesystem;

const fs::path folder = source_dir() / "tests" / "error";

std::vector<fs::path> texts(const fs::path& where) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(where)) {
        if (entry.path().extension() == ".nk") out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
}

Result<Diagram> parse_case(const fs::path& path) {
    std::string text = read_file(path).value_or("");
    ParseOptions options;
    if (text.starts_with("#!")) {
        std::istringstream line(text.substr(2, text.find('\n') - 2));
        for (std::string word; line >> word;) {
            const std::size_t equals = word.find('=');
            const std::string key = word.substr(0, equals);
            std::string value = word.substr(equals + 1);
            if (key == "diagram") options.diagram = value;
            if (key == "pad") text += std::string(std::stoul(value), '\n');
            if (key == "schedule") {
                std::replace(value.begin(), value.end(), '_', ' ');
                options.schedule.push_back(value);
            }
        }
    }
    return parse_diagram(std::make_shared<const Source>(Source{path.filename().string(), std::move(text)}), options);
}

void check(const fs::path& path) {
    SCOPED_TRACE(path.string());
    const auto result = parse_case(path);
    ASSERT_FALSE(result.ok()) << "no error";
    const std::string rendered = render(result.errors());
    fs::path expected = path;
    expected.replace_extension(".txt");
    if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
        std::ofstream(expected, std::ios::binary) << rendered;
    }
    EXPECT_EQ(rendered, read_file(expected).value_or(""));
    for (const Diagnostic& error : result.errors()) {
        EXPECT_NE(error.range.source, nullptr) << error.message;
        EXPECT_EQ(error.exit_code, ExitCode::bad_input);
        EXPECT_EQ(error.message.find("internal"), std::string::npos);
    }
}

TEST(SyntaxErrors, EveryCaseIsReportedAsWritten) {
    for (const fs::path& path : texts(folder / "cases")) {
        check(path);
        const auto result = parse_case(path);
        if (result.ok()) continue;
        // case.nk and case.2.nk show the same error.
        const std::string stem = path.stem().string();
        EXPECT_EQ(result.errors()[0].code, stem.substr(0, stem.find('.'))) << path;
    }
}

TEST(SyntaxErrors, AllErrorsOfATextComeAtOnce) {
    for (const fs::path& path : texts(folder / "files")) check(path);
}

TEST(SyntaxErrors, NamesOfWhatIsNotInTheLanguageSayWhatIsMissing) {
    const std::map<std::string, std::vector<std::string>> missing{
        {"selecting the k largest", {"topk", "top_k", "kthvalue"}},
        {"sorting", {"sort", "argsort", "median", "quantile", "percentile", "unique"}},
        {"a scan, of which every element depends on the one before,",
         {"cumsum", "cumprod", "cummax", "scan", "associative_scan"}},
        {"a random number", {"rand", "randn", "random", "dropout", "bernoulli", "multinomial"}},
        {"control flow", {"if", "for", "while", "cond"}},
        {"a decomposition or an inverse of a matrix",
         {"inverse", "inv", "svd", "eig", "eigh", "qr", "cholesky", "solve", "det"}}};
    for (const auto& [what, names] : missing)
        for (const std::string& name : names) {
            const auto errors = parse_diagram(std::make_shared<const Source>(
                Source{"a.nk", "f(X[i]) -> Y[i]\n    Y[i] = 1 + " + name + "(X[i], 2)\n"}));
            ASSERT_FALSE(errors.ok()) << name;
            EXPECT_EQ(errors.errors()[0].code, "unknown-function") << name;
            EXPECT_EQ(errors.errors()[0].message, name + ": " + what + " is not in the language");
            EXPECT_NE(errors.errors()[0].hint, "") << name;
        }
    // One's own definition of the name is a function like any other.
    EXPECT_TRUE(parse_diagram(std::make_shared<const Source>(Source{
                                  "a.nk", "sort(x) -> y\n    y = x + 1\n\nf(X[i]) -> Y[i]\n    Y[i] = sort(X[i])\n"}))
                    .ok());
}

TEST(SyntaxErrors, EveryCodeHasACase) {
    const std::set<std::string> codes{
#define NAPKIN_CODE(code) name(Code::code),
        NAPKIN_SYNTAX_CODES(NAPKIN_CODE)
#undef NAPKIN_CODE
    };
    EXPECT_GE(codes.size(), 45U);
    for (const std::string& code : codes) EXPECT_TRUE(fs::exists(folder / "cases" / (code + ".nk"))) << code;
    for (const fs::path& path : texts(folder / "cases")) {
        const std::string stem = path.stem().string();
        EXPECT_TRUE(codes.contains(stem.substr(0, stem.find('.')))) << path << " is the case of no error";
    }
}

}  // namespace
}  // namespace napkin
