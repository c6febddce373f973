// `napkin reproduce`: the documents' figures beside the computed ones, as docs/reproduction.toml lists them.
#include "study/reproduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "napkin/command.hpp"

namespace napkin::cli {

namespace {
namespace fs = std::filesystem;

struct ReproduceCommand {
    Options common;
    std::string output;
    bool check = false;
};

/// Another working folder while it lives.
class WorkingFolder {
public:
    explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) { fs::current_path(folder); }
    ~WorkingFolder() {
        std::error_code ignored;
        fs::current_path(before_, ignored);
    }
    WorkingFolder(const WorkingFolder&) = delete;
    WorkingFolder& operator=(const WorkingFolder&) = delete;

private:
    fs::path before_;
};

Diagnostic query_error(const PlacedText& query, std::string message, std::string expected = "") {
    return Diagnostic{
        .code = "bad-query", .range = query.range, .message = std::move(message), .expected = std::move(expected)};
}

std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// A record of bench/results, or the JSON of the command line that a query is. What depends on the computer at hand
/// would not be the same everywhere.
Result<nlohmann::json> answer(const PlacedText& query) {
    if (query.text.ends_with(".json")) {
        auto record = nlohmann::json::parse(contents(query.text), nullptr, false);
        if (record.is_discarded()) return query_error(query, fmt::format("there is no record {}", query.text));
        return record;
    }
    std::istringstream text(query.text);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.empty() ||
        !contains(std::vector<std::string>{"derive", "cost", "plan", "layout", "machines", "formats"}, words[0]))
        return query_error(query, fmt::format("'{}' is no query", words.empty() ? "" : words[0]),
                           "derive, cost, plan, layout, machines or formats");
    if ((words[0] == "cost" || words[0] == "plan") && !contains(words, "--machine"))
        return query_error(query, fmt::format("a {} without --machine is that of the computer at hand", words[0]),
                           "--machine NAME");
    words.emplace_back("--json");
    const Captured captured = run_captured(words);
    if (captured.code == internal_fault) throw InternalError(captured.err);
    if (captured.code != 0) {
        Diagnostic error = query_error(query, fmt::format("napkin {} fails", query.text));
        error.code = "query-failed";
        error.notes.push_back({{}, captured.err});
        return error;
    }
    return nlohmann::json::parse(captured.out);
}

Json rows_json(const Reproduction& reproduction, const std::vector<RowOutcome>& outcomes) {
    Json document = json_document("reproduce");
    document["schema"] = "napkin.reproduce/2";
    document["rows"] = Json::array();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const ReproductionRow& row = reproduction.rows[i];
        document["rows"].push_back({{"document", row.document},
                                    {"figure", row.figure},
                                    {"source", source_figure(row)},
                                    {"computed", outcomes[i].computed},
                                    {"verdict", verdict(outcomes[i])},
                                    {"input", row.input},
                                    {"why", row.why}});
    }
    return document;
}

/// Says on stderr which line of the file is the first that is not what it should be.
void report_stale(const fs::path& file, const std::string& expected) {
    std::istringstream is(contents(file)), should_be(expected);
    std::string line, other;
    for (std::size_t number = 1;; ++number) {
        const bool more = static_cast<bool>(std::getline(is, line)),
                   wanted = static_cast<bool>(std::getline(should_be, other));
        if (more && wanted && line == other) continue;
        say(fmt::format(
            "{}:{}: not what napkin computes; napkin reproduce --output {} writes it\n  is        {}\n  should be {}\n",
            file.string(), number, file.string(), more ? line : "(the end)", wanted ? other : "(the end)"));
        return;
    }
}

ExitCode reproduce(const ReproduceCommand& c) {
    const auto source = read_source(c.common.file);
    if (!source) return fail(source.errors(), c.common);
    const auto reproduction = read_reproduction(*source);
    if (!reproduction) return fail(reproduction.errors(), c.common);
    const fs::path file = fs::absolute(c.common.file);
    const auto outcomes = [&] {
        // The file lies in the repository's docs/; examples/ and machines/ lie beside that.
        const WorkingFolder root(file.parent_path().parent_path());
        return napkin::reproduce(*reproduction, answer);
    }();
    if (!outcomes) return fail(outcomes.errors(), c.common);
    const std::string markdown = to_markdown(*reproduction, *outcomes);
    ExitCode code = ExitCode::success;
    const fs::path table = c.output.empty() ? fs::path(c.common.file).replace_extension(".md") : fs::path(c.output);
    if (c.check) {
        for (const std::size_t i : surprises(*reproduction, *outcomes)) {
            const ReproductionRow& row = reproduction->rows[i];
            Diagnostic error{
                .code = "disagreement",
                .range = row.values.front().range,
                .message = fmt::format("{}, {}: the source has {}, napkin {}", row.document, row.figure,
                                       source_figure(row), (*outcomes)[i].computed),
                .expected = row.why.empty() ? "agreement, or 'why' with the reason" : "no 'why', as they agree"};
            code = fail({error}, c.common);
        }
        if (contents(table) != markdown) {
            report_stale(table, markdown);
            code = ExitCode::bad_input;
        }
    } else if (!c.output.empty()) {
        std::ofstream(table, std::ios::binary) << markdown;
        if (contents(table) != markdown) {
            Diagnostic error{.code = "unwritable-file", .message = fmt::format("{} cannot be written", table.string())};
            return fail({error}, c.common);
        }
    }
    if (c.common.json)
        print(rows_json(*reproduction, *outcomes));
    else if (!c.check && c.output.empty())
        print(markdown);
    return code;
}

}  // namespace

void add_reproduce(CLI::App& app, Main& main) {
    const auto c = std::make_shared<ReproduceCommand>();
    c->common.file = "docs/reproduction.toml";
    Command command(app, main, "reproduce", "Compute the figures of the sources that the model is from, and compare",
                    "napkin reproduce --check", [c] { return reproduce(*c); });
    command.argument("FILE", c->common.file, "Rows and queries (default: docs/reproduction.toml)", false);
    command.flag("--check", c->check, "Fail where a row's agreement or the written table is not as it was");
    command.text("--output", "FILE", c->output,
                 "Write the table there (--check: compare with it; default: FILE's name with .md)");
    command.output(c->common);
}

}  // namespace napkin::cli
