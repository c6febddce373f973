// Schedules: what a `schedule` block says, an option such as --group, and a file as `napkin plan` prints it. One grammar for all:
//   KIND [NAME] [=] [NUMBER | WORD]       group q = 192, stream x, threads 4, vector = none, form = auxiliary
//   atom STATEMENT CLAUSE, CLAUSE, …      atom S vectors q 3 inner, rows x 4, over k
//   place VARIABLE CLAUSE, CLAUSE, …      place K view, inner k
//   slot STATEMENT CLAUSE, CLAUSE, …      slot load K position 0, role producer, ahead 1
//   prefetch VARIABLE CLAUSE, CLAUSE      prefetch X groups 1, in Y_E
//   defer STATEMENT CLAUSE, CLAUSE        defer Y groups 1, in Y_E
//   piece VARIABLE AXIS SIZE, …           piece O_acc_delta_thread d 8
//   precision VARIABLE TYPE               precision weight f16
//   issue VARIABLE [NUMBER], …            issue S 1, O_acc; likewise turns VARIABLE, … and units UNIT, …
// A clause is a word, and after it names and a number: NAME … [NUMBER]; of `inner` it is an index.
// A line `kernel NAME` says of which kernel the lines after it are. Choices without clauses may stand on one line with commas between them. In a file
// a reason may follow the last number or word, and a line
// `machine NAME` says which machine it is for: that of `--machine` where there is none.
#include <fmt/format.h>

#include <array>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "syntax/parser.hpp"

namespace napkin {
namespace {

/// What follows the kind of a choice: an axis or another name with a number, and the like.
enum class Operand { size, optional_size, named_number, named_word, number, word, clauses, list };
struct ScheduleKind {
    std::string_view name;
    Operand operand;
};
constexpr std::array kinds{
    ScheduleKind{"group", Operand::size},     ScheduleKind{"stream", Operand::optional_size},
    ScheduleKind{"split", Operand::size},     ScheduleKind{"subloop", Operand::size},
    ScheduleKind{"threads", Operand::number}, ScheduleKind{"grid", Operand::number},
    ScheduleKind{"groups", Operand::word},    ScheduleKind{"warps", Operand::number},
    ScheduleKind{"blocks", Operand::number},  ScheduleKind{"role", Operand::named_number},
    ScheduleKind{"vector", Operand::word},    ScheduleKind{"vectors", Operand::number},
    ScheduleKind{"rows", Operand::number},    ScheduleKind{"form", Operand::word},
    ScheduleKind{"atom", Operand::clauses},   ScheduleKind{"place", Operand::clauses},
    ScheduleKind{"slot", Operand::clauses},   ScheduleKind{"prefetch", Operand::clauses},
    ScheduleKind{"defer", Operand::clauses},  ScheduleKind{"tensor", Operand::word},
    ScheduleKind{"maximum", Operand::word},   ScheduleKind{"matrix", Operand::word},
    ScheduleKind{"warpgroup", Operand::size}, ScheduleKind{"precision", Operand::named_word},
    ScheduleKind{"piece", Operand::clauses},  ScheduleKind{"overhead", Operand::named_number},
    ScheduleKind{"issue", Operand::list},     ScheduleKind{"turns", Operand::list},
    ScheduleKind{"units", Operand::list},     ScheduleKind{"cluster", Operand::size},
};
/// Lines of a printed plan that fix nothing.
constexpr std::array<std::string_view, 7> figures{"plan",      "transfers", "memory", "arena",
                                                  "predicted", "busiest",   "faster"};

/// The printed names of two fields have two words.
void skip_printed_word(LineParser& parser) {
    if (parser.is_word("panel") && parser.is_word("vectors", 1)) parser.next();
}

void number(LineParser& parser, ScheduleItem& item, bool optional, Diagnostics& diagnostics) {
    const bool given = parser.accept("=");
    const bool negative = parser.accept("-");
    const Token& t = parser.peek();
    if (t.kind != TokenKind::number) {
        if (optional && !given && !negative) return;
        return parser.fail(Code::bad_schedule, parser.range(t),
                           t.kind == TokenKind::name ? fmt::format("'{}' is no number", t.text) : "the value is missing",
                           "a whole number");
    }
    parser.next();
    if (t.integer && (t.whole < 0 || t.whole > limits::max_size_product)) {
        diagnostics.error(Code::bad_schedule_value, parser.range(t), fmt::format("{} is too large", t.text),
                          fmt::format("at most {}", limits::max_size_product));
    } else if (!t.integer) {
        diagnostics.error(Code::bad_schedule_value, parser.range(t), fmt::format("{} is not a whole number", t.text),
                          "a whole number");
    } else {
        item.value = negative ? -t.whole : t.whole;
    }
}

void word(LineParser& parser, ScheduleItem& item) {
    const bool is_axis = item.kind == "vector" || item.kind == "tensor";
    if (is_axis && parser.is_word("axis") && (parser.is("-", 1) || parser.peek(1).kind == TokenKind::name))
        parser.next();
    parser.accept("=");
    if (is_axis && parser.accept("-"))
        item.word = "none";
    else
        item.word = parser.name("a word").text;
}

/// The index of a dimension, which is read by who knows the variable.
void skip_index(LineParser& parser) {
    for (int depth = 0; !parser.at_end() && (depth > 0 || !parser.is(",")); parser.next()) {
        depth += parser.is("(") || parser.is("[");
        depth -= parser.is(")") || parser.is("]");
    }
}

void names_and_number(LineParser& parser, ScheduleClause& clause) {
    while (!parser.failed() && !parser.at_end() && !parser.is(",")) {
        const Token& t = parser.peek();
        if (t.kind == TokenKind::name)
            clause.names.push_back({std::string(t.text), parser.range(t)});
        else if (t.kind == TokenKind::number && t.integer && !clause.number)
            clause.number = t.whole;
        else
            return parser.fail(Code::bad_schedule, parser.range(t), fmt::format("'{}' after {}", t.text, clause.word),
                               "names, a whole number, or a comma");
        parser.next();
    }
}

void clauses(LineParser& parser, ScheduleItem& item) {
    do {
        ScheduleClause clause;
        const std::uint32_t begin = parser.peek().begin;
        clause.word = parser.name("a clause such as vectors or inner").text;
        const std::uint32_t operand = parser.peek().begin;
        item.kind == "place" && clause.word == "inner" ? skip_index(parser) : names_and_number(parser, clause);
        clause.range = parser.range_from(begin);
        clause.operand = {clause.range.source, std::min(operand, clause.range.end), clause.range.end};
        item.clauses.push_back(std::move(clause));
    } while (!parser.failed() && parser.accept(","));
}

/// What is meant: an axis, a variable, or a statement, which may be called `load K`.
void name_of(LineParser& parser, ScheduleItem& item) {
    constexpr std::array<std::string_view, 3> verbs{"load", "store", "init"};
    item.axis = parser.name("a name").text;
    const bool two_words = item.kind == "slot" && contains(verbs, item.axis) && parser.peek().kind == TokenKind::name &&
                           parser.peek(1).kind == TokenKind::name;
    if (two_words) item.axis += " " + parser.name("a variable").text;
}

ScheduleItem schedule_item(LineParser& parser, const std::string& kernel, Diagnostics& diagnostics) {
    ScheduleItem item;
    item.kernel = kernel;
    const std::uint32_t begin = parser.peek().begin;
    skip_printed_word(parser);
    const AstWord kind = parser.name("a kind of choice such as group or stream");
    if (parser.failed()) return item;
    item.kind = kind.text;
    const auto found = find_if(kinds, [&](const ScheduleKind& k) { return k.name == kind.text; });
    if (found == kinds.end()) {
        std::vector<std::string> names;
        for (const ScheduleKind& k : kinds) names.emplace_back(k.name);
        parser.fail(Code::unknown_choice, kind.range, fmt::format("there is no choice '{}'", kind.text),
                    "one of " + join(names, ", "), did_you_mean(kind.text, names));
        return item;
    }
    const bool sized = found->operand == Operand::size || found->operand == Operand::optional_size;
    const bool named = sized || found->operand == Operand::named_number || found->operand == Operand::named_word;
    if ((named || found->operand == Operand::clauses) && parser.peek().kind == TokenKind::name) name_of(parser, item);
    item.range = parser.range_from(begin);
    if (named && item.axis.empty() && !parser.failed()) {
        parser.fail(Code::bad_schedule, item.range, fmt::format("{} of which {}?", item.kind, sized ? "axis" : "name"),
                    fmt::format("{} and {}: {} {}", item.kind, sized ? "an axis" : "a name", item.kind,
                                sized ? "q = 128" : "producer = 1"));
        return item;
    }
    switch (found->operand) {
        case Operand::size:
        case Operand::optional_size:
        case Operand::named_number:
        case Operand::number: number(parser, item, found->operand == Operand::optional_size, diagnostics); break;
        case Operand::word:
        case Operand::named_word: word(parser, item); break;
        case Operand::list:
        case Operand::clauses: clauses(parser, item); break;
    }
    item.range = parser.range_from(begin);
    if (!parser.failed() && item.value && *item.value < 1)
        diagnostics.error(Code::bad_schedule_value, item.range, fmt::format("{} cannot be {}", item.kind, *item.value),
                          "at least 1");
    return item;
}

void add(ScheduleItem item, LineParser& parser, std::vector<ScheduleItem>& out, Diagnostics& diagnostics) {
    const bool again = any_of(out, [&](const ScheduleItem& o) { return fixes_the_same(o, item); });
    std::erase_if(out, [&](const ScheduleItem& o) { return o.kind == named_kernel_kind && o.kernel == item.kernel; });
    if (out.size() >= limits::max_equations)
        parser.fail(Code::bad_schedule, item.range, "too many choices", fmt::format("at most {}", limits::max_equations));
    else if (again)
        diagnostics.error(Code::duplicate_schedule, item.range,
                          fmt::format("{}{}{} is fixed twice", item.kind, item.axis.empty() ? "" : " ", item.axis),
                          "one choice of a kind");
    else
        out.push_back(std::move(item));
}

/// `kernel NAME`: an item of its own while nothing stands below it.
std::string kernel_line(LineParser& parser, std::vector<ScheduleItem>& out) {
    const std::uint32_t begin = parser.peek().begin;
    parser.next();
    const std::string name = parser.name("the name of a kernel").text;
    const SourceRange range = parser.range_from(begin);
    parser.finish();
    if (parser.good() && none_of(out, [&](const ScheduleItem& item) { return item.kernel == name; }))
        out.push_back({.kind = std::string(named_kernel_kind), .axis = "", .value = {}, .range = range, .kernel = name});
    return name;
}

}  // namespace

void parse_schedule_line(LineParser& parser, std::string& kernel, std::vector<ScheduleItem>& out, Diagnostics& diagnostics) {
    if (parser.is_word(named_kernel_kind)) {
        kernel = kernel_line(parser, out);
        return;
    }
    do {
        if (parser.at_end()) break;
        ScheduleItem item = schedule_item(parser, kernel, diagnostics);
        if (!parser.good()) return;
        add(std::move(item), parser, out, diagnostics);
    } while (parser.accept(","));
    if (!parser.failed() && !parser.at_end()) {
        parser.fail(Code::bad_schedule, parser.range(parser.peek()),
                    fmt::format("'{}' after a choice", parser.peek().text), "kind axis = value, as in group q = 192");
    }
}

std::vector<ScheduleItem> parse_schedule(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics) {
    std::vector<ScheduleItem> items;
    std::string kernel;
    for (const LogicalLine& line : lex(source, diagnostics)) {
        LineParser parser(source, line, diagnostics);
        parse_schedule_line(parser, kernel, items, diagnostics);
    }
    return items;
}

namespace {
/// The rest of a line, as text: a comment's mark and spaces around it are no part of it.
std::string reason_behind(const std::string& line, std::size_t begin) {
    begin = line.find_first_not_of(" \t#", std::min(begin, line.size()));
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}
}  // namespace

namespace {
/// A reason may begin with a number of something: `1 panel of 3×16 lanes`, `14 groups`. A number of nothing is one too many.
void refuse_number_alone(LineParser& parser, const ScheduleItem& item) {
    const std::size_t word = item.range.source->text.find_first_not_of(" \t", item.range.end);
    if (word != parser.peek().begin) return;  // what stands there is no text of the language
    const bool is_of_nothing = parser.peek(1).kind == TokenKind::end || parser.is(",", 1) ||
                               parser.peek(1).kind == TokenKind::number;
    if (item.clauses.empty() && parser.peek().kind == TokenKind::number && is_of_nothing)
        parser.fail(Code::bad_schedule, parser.range(parser.peek()),
                    fmt::format("'{}' after a choice", parser.peek().text), "kind axis = value, and a reason in words");
}

constexpr std::string_view machine_kind = "machine";

/// The name or path behind `machine`, up to a blank: it is no text of the language.
ScheduleItem machine_item(LineParser& parser, const std::shared_ptr<const Source>& source, std::size_t end,
                          Diagnostics& diagnostics) {
    ScheduleItem item;
    item.kind = machine_kind;
    const std::uint32_t first = parser.peek().begin;
    std::size_t begin = source->text.find_first_not_of(" \t=", first + machine_kind.size());
    begin = std::min(begin, end);
    const std::size_t last = std::min(source->text.find_first_of(" \t\r#", begin), end);
    item.word = source->text.substr(begin, last - begin);
    item.range = {source, first, static_cast<std::uint32_t>(std::max<std::size_t>(last, first + machine_kind.size()))};
    if (item.word.empty())
        diagnostics.error(Code::bad_schedule, item.range, "machine of which name?",
                          "a machine's name or file: machine h100-sxm5");
    return item;
}
}  // namespace

Result<std::vector<ScheduleItem>> parse_schedule_file(const std::shared_ptr<const Source>& source) {
    std::vector<ScheduleItem> items;
    std::vector<Diagnostic> errors;
    std::string kernel;
    for (std::size_t begin = 0, end = 0; begin < source->text.size(); begin = end + 1) {
        end = std::min(source->text.find('\n', begin), source->text.size());
        Diagnostics lexical, diagnostics;
        const LogicalLine line = lex_line(source, begin, end, lexical);
        if (line.tokens.empty() || errors.size() >= limits::max_errors) continue;
        LineParser parser(source, line, diagnostics);
        if (contains(figures, parser.peek().text)) continue;
        if (parser.is_word(machine_kind)) {
            ScheduleItem item = machine_item(parser, source, end, diagnostics);
            // Schedules of several kernels, each with its line, may be put together.
            const auto is_same = [&](const ScheduleItem& o) { return o.kind == machine_kind && o.word == item.word; };
            if (diagnostics.empty() && none_of(items, is_same)) add(std::move(item), parser, items, diagnostics);
            std::vector<Diagnostic> of_line = diagnostics.take();
            append(errors, of_line);
            continue;
        }
        std::size_t read = begin;
        if (parser.is_word(named_kernel_kind)) {
            kernel = kernel_line(parser, items);
            read = parser.peek().begin;
        } else {
            // Choices with commas between them, and a reason behind the last one, which is no text of the language.
            do {
                ScheduleItem item = schedule_item(parser, kernel, diagnostics);
                read = item.clauses.empty() ? item.range.end : end;
                if (item.kind == "overhead") item.reason = reason_behind(source->text.substr(0, end), item.range.end);
                if (item.kind == "form")
                    parser.fail(Code::bad_schedule, item.range, "a form is chosen before there are kernels to schedule",
                                "--form, or a line of the text's own schedule");
                if (!parser.failed()) refuse_number_alone(parser, item);
                if (diagnostics.empty()) add(std::move(item), parser, items, diagnostics);
            } while (diagnostics.empty() && parser.accept(",") && !parser.at_end());
        }
        std::vector<Diagnostic> of_line = diagnostics.take();
        // What cannot be read as tokens counts as far as the line was read: a reason is no text of the language.
        if (!of_line.empty()) read = of_line[0].range.end;
        std::vector<Diagnostic> of_tokens = lexical.take();
        std::erase_if(of_tokens, [&](const Diagnostic& d) { return d.range.begin >= read; });
        if (!of_tokens.empty()) of_line = std::move(of_tokens);
        append(errors, of_line);
    }
    if (!errors.empty()) return errors;
    return items;
}

}  // namespace napkin
