// The sources' figures as rows: expressions over results, what agrees, and what is wrong with a file of rows.
#include "study/reproduction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/reproduction_value.hpp"

namespace napkin::test_reproduction {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Results results = {
    {"m", json::parse(R"({"kernels": [{"name": "S", "flops": 8, "H": "2·q·d"}, {"name": "O", "flops": 4, "H": "q·d"}],
                                              "total": {"bytes": 24, "fits": true}, "levels": [{"unit": "tensor", "type": "f16", "clocks": 2},
                                              {"unit": "tensor", "type": "e4m3", "clocks": 4}, {"unit": "exp"}]})")}};

double number(const std::string& text) {
    const auto value = number_of(text, results);
    if (const auto* error = std::get_if<ValueError>(&value)) {
        ADD_FAILURE() << text << ": " << error->message;
        return 0;
    }
    return std::get<double>(value);
}

ValueError error(const std::string& text) {
    const auto value = number_of(text, results);
    EXPECT_TRUE(std::holds_alternative<ValueError>(value)) << text;
    return std::holds_alternative<ValueError>(value) ? std::get<ValueError>(value) : ValueError{};
}

TEST(ReproductionValue, Arithmetic) {
    EXPECT_EQ(number("1 + 2*3 - 4/2"), 5);
    EXPECT_EQ(number("2^-2 * (3 + 5)"), 2);
    EXPECT_EQ(number("-2^2"), -4);
    EXPECT_EQ(number("2^3^2"), 512);
    EXPECT_EQ(number("1.5e3 + 1e-3*1000"), 1501);
}

TEST(ReproductionValue, PathsFindSumAndCount) {
    EXPECT_EQ(number("m/total/bytes / 2^3"), 3);
    EXPECT_EQ(number("m/kernels/1/flops"), 4);
    EXPECT_EQ(number("m/kernels/*/flops"), 12);
    EXPECT_EQ(number("m/kernels/name=S/flops"), 8);
    EXPECT_EQ(number("m/levels/unit=tensor/clocks + m/levels/unit=tensor&type=f16/clocks"), 8);
    EXPECT_EQ(number("m/levels/*/clocks"), 6);
    EXPECT_EQ(number("count(m/kernels) + count(m/levels/unit=tensor)"), 4);
    EXPECT_EQ(number("m/total/fits"), 1);
}

TEST(ReproductionValue, FormulasAddUp) {
    SymbolTable symbols;
    const auto value = formula_of("2 * m/kernels/0/H + m/kernels/1/H ^ 2 / m/kernels/0/H", results, symbols);
    ASSERT_TRUE(std::holds_alternative<Size>(value));
    EXPECT_EQ(to_string(std::get<Size>(value), symbols.names()), "9/2·q·d");
}

TEST(ReproductionValue, TextsAreFoundByAPathAlone) {
    const auto found = [](const std::string& path) { return text_of(path, results); };
    EXPECT_EQ(std::get<std::string>(found("m/kernels/0/H")), "2·q·d");
    EXPECT_EQ(std::get<std::string>(found("m/total/bytes")), "24");
    EXPECT_EQ(std::get<ValueError>(found("m/kernels/0/H + 1")).message, "'m/kernels/0/H + 1' is no path alone");
    EXPECT_EQ(std::get<ValueError>(found("m/kernels/*/H")).message, "m/kernels/*/H finds 2 values");
    EXPECT_EQ(std::get<ValueError>(found("m/totl")).code, "no-such-value");
}

TEST(ReproductionValue, MistakesArePointedAt) {
    EXPECT_EQ(error("1 +").at, 3U);
    EXPECT_EQ(error("(1").message, "'(' is never closed");
    EXPECT_EQ(error("1 / (2 - 2)").message, "division by zero");
    EXPECT_EQ(error("total").code, "bad-expression");
    EXPECT_EQ(error("2 * m/totl/bytes").at, 4U);
    EXPECT_EQ(error("m/totl/bytes").hint, "did you mean total?");
    EXPECT_EQ(error("m/kernels/2/flops").expected, "one of its 2 elements");
    EXPECT_EQ(error("m/kernels/name=P/flops").code, "no-such-value");
    EXPECT_THAT(error("m/kernels/0/H").message, HasSubstr("the text"));
    EXPECT_EQ(error("m/kernels/0/H").expected, "a number");
    EXPECT_EQ(error("10^400").message, "the value is not finite");
    EXPECT_FALSE(error(std::string(100000, '(')).message.empty());
    EXPECT_FALSE(error("count(1)").message.empty());
    SymbolTable symbols;
    EXPECT_TRUE(std::holds_alternative<ValueError>(formula_of("1 / (m/kernels/0/H + m/kernels/1/H ^ 2)", results, symbols)));
    EXPECT_TRUE(std::holds_alternative<ValueError>(formula_of("9007199254740992^64", results, symbols)));
}

TEST(PrintedFigure, IsAsWideAsItsLastDigit) {
    const auto figure = [](const std::string& text) {
        const auto found = printed_figure(text);
        EXPECT_TRUE(found) << text;
        return found ? std::pair{found->least, found->most} : std::pair{0.0, 0.0};
    };
    EXPECT_EQ(figure("295"), (std::pair{294.5, 295.5}));
    EXPECT_EQ(figure("200"), (std::pair{199.5, 200.5}));
    EXPECT_EQ(figure("1,024"), (std::pair{1023.5, 1024.5}));
    EXPECT_EQ(figure("0.5"), (std::pair{0.45, 0.55}));
    EXPECT_EQ(figure("1.7e12"), (std::pair{1.65e12, 1.75e12}));
    EXPECT_EQ(figure("~200"), (std::pair{150.0, 250.0}));
    EXPECT_EQ(figure("~10"), (std::pair{5.0, 15.0}));
    EXPECT_EQ(figure("~2.0"), (std::pair{1.95, 2.05}));
    EXPECT_EQ(figure("20–50"), (std::pair{19.5, 50.5}));
    EXPECT_EQ(figure("~400–600"), (std::pair{350.0, 650.0}));
    EXPECT_EQ(figure("0"), (std::pair{-0.5, 0.5}));
    for (const std::string text : {"", "~", "4/3", "2 * 3", "20–", "–50", "a/n", "-3", "1e400", "3e", "1.2.3", "3 "})
        EXPECT_FALSE(printed_figure(text)) << text;
}

Result<Reproduction> read(const std::string& rows, const std::string& queries = "a = \"cost a.nk\"") {
    auto source = std::make_shared<Source>();
    source->name = "rows.toml";
    source->text = "[documents]\nPaper = \"A Paper\"\n[queries]\n" + queries + "\n" + rows;
    return read_reproduction(source);
}

std::string row(const std::string& rest) { return "[[row]]\ndocument = \"Paper\"\nfigure = \"§1\"\n" + rest + "\n"; }

RowOutcome outcome(const std::string& rest) {
    const auto reproduction = read(row(rest));
    if (!reproduction) {
        ADD_FAILURE() << render(reproduction.errors());
        return {};
    }
    const auto outcomes = reproduce(
        *reproduction, [](const PlacedText&) -> Result<json> { return json{{"x", 2.828}, {"n", 3}, {"H", "a·b + g"}}; });
    if (!outcomes) {
        ADD_FAILURE() << render(outcomes.errors());
        return {};
    }
    EXPECT_EQ(surprises(*reproduction, *outcomes).empty(),
              (*outcomes)[0].agrees.value_or(false) == reproduction->rows[0].why.empty());
    return (*outcomes)[0];
}

std::string verdict_of(const std::string& rest) { return verdict(outcome(rest)); }

TEST(Reproduction, ComparesAsTheRowSays) {
    EXPECT_EQ(verdict_of("value = \"a/n\"\nis = \"3\""), "yes");
    EXPECT_EQ(verdict_of("value = \"a/x\"\nis = \"2.83\""), "yes");
    EXPECT_EQ(verdict_of("value = \"a/x\"\nis = \"2.84\""), "no");
    EXPECT_EQ(verdict_of("value = \"a/x\"\nis = \"~3\""), "yes");
    EXPECT_EQ(verdict_of("value = \"a/x\"\nis = \"283/100\""), "no") << "a fraction is exact";
    EXPECT_EQ(verdict_of("value = \"a/x\"\nis = \"1–2\""), "no");
    EXPECT_EQ(outcome("value = \"a/x\"\nis = \"2.83\"\nunit = \"times\"").computed, "2.828 times");
    EXPECT_EQ(verdict_of("value = [\"a/n\", \"a/x\"]\nis = [\"3\", \"2 + 0.828\"]"), "yes");
    EXPECT_EQ(verdict_of("value = [\"a/n\", \"a/x\"]\nis = [\"3\", \"2\"]"), "no");
    EXPECT_EQ(verdict_of("value = \"a/H\"\nformula = \"b·a + g\""), "yes");
    EXPECT_EQ(verdict_of("value = \"2 * a/H\"\nformula = \"2·b² + 2\"\nat = { a = \"b\", g = \"1\" }"), "yes");
    EXPECT_EQ(verdict_of("value = [\"a/H\", \"a/n\"]\ntext = [\"a·b + g\", \"3\"]"), "yes");
    EXPECT_EQ(verdict_of("value = \"a/H\"\ntext = \"g + a·b\""), "no");
    EXPECT_EQ(outcome("value = \"a/H\"\ntext = \"μ + h\"\nat = { a = \"x\", \"a·b\" = \"μ\", g = \"h\" }").computed,
              "μ + h");
    EXPECT_EQ(verdict_of("is = \"20–50\"\nwhy = \"another's\"\n" + row("value = \"a/n\"\nis = \"3\"")), "not computed");
}

TEST(Reproduction, ARowAndItsReasonThatContradictAreASurprise) {
    EXPECT_EQ(verdict_of("value = \"a/n\"\nis = \"4\""), "no");
    EXPECT_EQ(verdict_of("value = \"a/n\"\nis = \"4\"\nwhy = \"it counts one more\""), "no");
    EXPECT_EQ(verdict_of("value = \"a/n\"\nis = \"3\"\nwhy = \"it counts one more\""), "yes");
}

TEST(Reproduction, ThePrintedTableHasARowItsReasonAndTheQueries) {
    const auto reproduction = read(row("value = \"a/n\"\nis = \"3\"\nunit = \"B\"\ninput = \"a file\"") +
                                   row("value = \"a/n\"\nis = \"~4\"\nwhy = \"a|b\"") +
                                   row("is = \"5\"\nwhy = \"no kernel\""));
    ASSERT_TRUE(reproduction.ok());
    const std::string text = to_markdown(*reproduction, {{"3 B", true}, {"3", false}, {"", std::nullopt}});
    EXPECT_THAT(text, HasSubstr("## Paper\n\nA Paper\n"));
    EXPECT_THAT(text, HasSubstr("| §1 | 3 B | 3 B | yes, given a file | a |\n| §1 | ~4 | 3 | no (1) | a |\n"
                                "| §1 | 5 |  | not computed (2) |  |\n\n1. a\\|b\n2. no kernel\n"));
    EXPECT_THAT(text, HasSubstr("3 rows: 1 agree, 1 of them given an input; 1 do not agree; 1 are not computed."));
    EXPECT_THAT(text, HasSubstr("- a: `cost a.nk`\n"));
}

std::string error_of(const std::string& rows, const std::string& queries = "a = \"cost a.nk\"") {
    const auto reproduction = read(rows, queries);
    EXPECT_FALSE(reproduction.ok()) << rows;
    return reproduction.ok() ? "" : render(reproduction.errors());
}

TEST(Reproduction, AWrongFileIsPointedAt) {
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = \"3\"\nunti = \"x\"")),
                HasSubstr("rows.toml:10:1: error: unknown key 'unti'"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = \"3\"\nunti = \"x\"")), HasSubstr("did you mean unit?"));
    EXPECT_THAT(error_of(row("value = \"b/n\"\nis = \"3\"")),
                HasSubstr("rows.toml:8:10: error: there is no query 'b'"));
    EXPECT_THAT(error_of(row("value = \"2 + a/n +\"\nis = \"3\"")), HasSubstr("rows.toml:8:19"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nformula = \"a b\"")),
                HasSubstr("rows.toml:9:14: error: this is no size expression"));
    EXPECT_THAT(error_of(row("value = \"a/n\"")), HasSubstr("has no 'is', 'formula' or 'text'"));
    EXPECT_THAT(error_of(row("is = \"3\"")), HasSubstr("has no 'value' or 'why'"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = \"2 * a/n\"")),
                HasSubstr("rows.toml:9:11: error: the source's figure names napkin's query 'a'"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = \"3\"\nat = { g = \"1\" }")), HasSubstr("'at'"));
    EXPECT_THAT(error_of(row("value = [\"a/n\", \"a/n\"]\nis = \"3\"")), HasSubstr("2 values and 1 figures"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = 3")), HasSubstr("is not a text"));
    EXPECT_THAT(error_of(row("value = \"a/n\"\nis = \"3\""), "a = \"cost a.nk\"\nspare = \"formats\""),
                HasSubstr("[unused-query]"));
    EXPECT_THAT(error_of("[[row]]\ndocument = \"Papr\"\nfigure = \"x\"\nvalue = \"a/n\"\nis = \"3\"\n"),
                HasSubstr("did you mean Paper?"));
    EXPECT_THAT(error_of(""), HasSubstr("no rows"));
    EXPECT_THAT(error_of("[[row"), HasSubstr("[bad-toml]"));
}

TEST(Reproduction, MissingResultsAreErrorsAndQueriesRunOnce) {
    const auto reproduction = read(row("value = \"a/x\"\nis = \"3\"") + row("value = \"a/n + a/n\"\nis = \"6\""));
    ASSERT_TRUE(reproduction.ok());
    int asked = 0;
    const auto outcomes = reproduce(*reproduction, [&](const PlacedText& query) -> Result<json> {
        ++asked;
        EXPECT_EQ(query.text, "cost a.nk");
        return json{{"n", 3}};
    });
    EXPECT_EQ(asked, 1);
    ASSERT_FALSE(outcomes.ok());
    EXPECT_THAT(render(outcomes.errors()), HasSubstr("rows.toml:8:10: error: there is no 'x' in a [no-such-value]"));
}

}  // namespace
}  // namespace napkin::test_reproduction
