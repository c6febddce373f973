// Schedules: what a `schedule` block says, an option such as --group, and a file as `napkin plan` prints it. One
// grammar for all:
//   KIND [NAME] [=] [NUMBER | WORD]       group q = 192, stream x, threads 4, vector = none, form = auxiliary
//   atom STATEMENT CLAUSE, CLAUSE, …      atom S vectors q 3 inner, rows x 4, over k
//   storage VARIABLE CLAUSE, CLAUSE, …    storage K global, inner k
//   slot STATEMENT CLAUSE, CLAUSE, …      slot load K order 0, role producer, stage_offset 1
//   prefetch VARIABLE CLAUSE, CLAUSE      prefetch X tiles 1, in Y_E
//   pipelined STATEMENT CLAUSE, CLAUSE    pipelined Y tiles 1, in Y_E
//   piece VARIABLE AXIS SIZE, …           piece O_acc_delta_thread d 8
//   precision VARIABLE TYPE               precision weight f16
//   issue VARIABLE [NUMBER], …            issue S 1, O_acc; likewise turns VARIABLE, … and units UNIT, …
// A clause is a word, and after it names and a number: NAME … [NUMBER]; of `inner` it is an index. A line `kernel NAME`
// says of which kernel the lines after it are. Choices without clauses may stand on one line with commas between them.
// In a file a reason may follow the last number or word, and a line `machine NAME` says which machine it is for: that
// of `--machine` where there is none.
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

/// Lines of a printed plan that fix nothing.
constexpr std::string_view figures[] = {"plan",      "transfers", "memory", "arena", "registers",
                                        "predicted", "busiest",   "faster", "misses"};

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

/// `begin`: of the line.
void word(LineParser& parser, ScheduleItem& item, std::uint32_t begin) {
    const bool is_axis = item.kind == ChoiceKind::vector || item.kind == ChoiceKind::mma_m;
    if (is_axis && parser.is_word("axis") && (parser.is("-", 1) || parser.peek(1).kind == TokenKind::name))
        parser.next();
    parser.accept("=");
    if (is_axis && parser.accept("-"))
        item.word = "none";
    else
        item.word = without_alias(name(item.kind), parser.name("a word").text);
    const auto words = choice_fields[at(item.kind)].words;
    if (words.empty() || parser.failed()) return;
    item.value = find(words, item.word) - words.begin();
    if (*item.value < std::ssize(words)) return;
    const auto lines = mapped<std::string>(
        words, [&](std::string_view w) { return fmt::format("{} {}", name(item.kind), w); });
    parser.fail(Code::unknown_choice, parser.range_from(begin),
                fmt::format("{} cannot be '{}'", name(item.kind), item.word), join(lines, " or "),
                did_you_mean(item.word, {words.begin(), words.end()}));
}

/// Joined as a sentence has them: "order, role or stage_offset".
std::string any_of_words(std::vector<std::string> words) {
    const std::string last = std::move(words.back());
    words.pop_back();
    return words.empty() ? last : join(words, ", ") + " or " + last;
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

std::string text_of(const ScheduleClause& clause) {
    return clause.range.source->text.substr(clause.range.begin, clause.range.end - clause.range.begin);
}

/// The clause with the word among those of the kind, or none.
const ClauseField* field_of(ChoiceKind kind, std::string_view word) {
    const auto found = find_if(clause_fields, [&](const ClauseField& f) { return f.of == kind && f.word == word; });
    return found == std::end(clause_fields) ? nullptr : &*found;
}
std::vector<std::string> words_of(ChoiceKind kind, bool only_alone) {
    std::vector<std::string> words;
    for (const ClauseField& f : clause_fields)
        if (f.of == kind && (f.alone || !only_alone)) words.emplace_back(f.word);
    return words;
}

/// Behind its word a clause has just what its field says.
void check(LineParser& parser, const ScheduleItem& item, const ScheduleClause& c) {
    const auto wrong = [&](const SourceRange& where, std::string message, std::string expected) {
        parser.fail(Code::bad_schedule, where, std::move(message), std::move(expected));
    };
    const ClauseField* field = field_of(item.kind, c.word);
    if (item.kind == ChoiceKind::storage && item.clauses.empty() && !(field && field->alone))
        return wrong(c.range, fmt::format("'{}' is no way to hold a variable", c.word),
                     "one of " + join(words_of(item.kind, true), ", "));
    if (!field)
        return wrong(c.range, fmt::format("'{}' cannot be read in a line '{}'", c.word, name(item.kind)),
                     any_of_words(words_of(item.kind, false)));
    for (const ScheduleClause& first : item.clauses)
        if (first.word == c.word || (field->alone && field_of(item.kind, first.word)->alone))
            return wrong(
                c.range,
                fmt::format("{} {} is said to be '{}' and '{}'", name(item.kind), item.axis, text_of(first), text_of(c)),
                "one of the two");
    const bool has_axis = field->operand == ClauseOperand::axis_number, has_name = field->operand == ClauseOperand::name;
    const bool has_number = has_axis || field->operand == ClauseOperand::number;
    if ((has_axis || has_name) && c.names.empty())
        return wrong(c.range, fmt::format("{} of which {}?", c.word, has_axis ? "axis" : "name"),
                     has_axis ? "the name of an axis" : "a name");
    constexpr std::array<std::string_view, 3> of_vectors{"across", "shared", "inner"};
    for (std::size_t i = has_axis || has_name ? 1 : 0; i < c.names.size(); ++i)
        if (field->operand != ClauseOperand::axes && !(c.word == "vectors" && contains(of_vectors, c.names[i].text)))
            return wrong(c.names[i].range, fmt::format("'{}' after {}", c.names[i].text, c.word), "a comma");
    if (!has_number && c.number)
        wrong(c.range, fmt::format("'{}' after {}", *c.number, c.word), "a comma");
    else if (has_number && c.number.value_or(-1) < field->least)
        wrong(c.range, fmt::format("{} takes a number", c.word), fmt::format("a whole number of at least {}", field->least));
    else if (has_number && *c.number > field->most)
        wrong(c.range, fmt::format("{} is too large", *c.number), fmt::format("at most {}", field->most));
}

/// Checks a list: names, each once but in an order of issue; those of axes with sizes, and others with no more than a
/// small number.
void check_listed(LineParser& parser, const ScheduleItem& item, const ScheduleClause& c) {
    const std::int64_t most = choice_fields[at(item.kind)].most;
    if (item.kind == ChoiceKind::piece && (!c.names.empty() || c.number.value_or(0) < 1))
        return parser.fail(Code::bad_schedule, c.range, fmt::format("{} of what size?", c.word),
                           "an axis and a size: piece A d 8");
    if (!c.names.empty() || (c.number && *c.number > most))
        return parser.fail(
            Code::bad_schedule, c.range,
            fmt::format("{} takes names, and not '{}'", name(item.kind),
                        c.names.empty() ? std::to_string(*c.number) : c.names[0].text),
            most < 0
                ? "names with commas between them"
                : fmt::format("names, each with the iterations by which it is ahead, at most {}: issue S 1, O_acc", most));
    if (item.kind != ChoiceKind::issue && item.kind != ChoiceKind::turns &&
        any_of(item.clauses, [&](const ScheduleClause& other) { return other.word == c.word; }))
        parser.fail(Code::bad_schedule, c.range, fmt::format("{} names {} twice", name(item.kind), c.word),
                    "each name once");
}

void clauses(LineParser& parser, ScheduleItem& item) {
    do {
        ScheduleClause clause;
        const std::uint32_t begin = parser.peek().begin;
        clause.word = without_alias(name(item.kind), parser.name("a clause such as vectors or inner").text);
        const std::uint32_t operand = parser.peek().begin;
        const ClauseField* field = field_of(item.kind, clause.word);
        field && field->operand == ClauseOperand::index ? skip_index(parser) : names_and_number(parser, clause);
        clause.range = parser.range_from(begin);
        clause.operand = {clause.range.source, std::min(operand, clause.range.end), clause.range.end};
        if (parser.failed()) return;
        const bool is_listed = choice_fields[at(item.kind)].operand == ChoiceOperand::list || item.kind == ChoiceKind::piece;
        is_listed ? check_listed(parser, item, clause) : check(parser, item, clause);
        item.clauses.push_back(std::move(clause));
    } while (!parser.failed() && parser.accept(","));
    const auto says = [&](std::string_view word) {
        return any_of(item.clauses, [&](const ScheduleClause& c) { return c.word == word; });
    };
    const bool in_loops = item.kind == ChoiceKind::prefetch || item.kind == ChoiceKind::pipelined;
    if (in_loops && !(says("in") && (says("tiles") || says("blocks"))))
        parser.fail(Code::bad_schedule, item.range,
                    fmt::format("a line '{}' says by how many {}, and in which statement's loops", name(item.kind),
                                item.kind == ChoiceKind::prefetch ? "tiles or blocks" : "tiles"),
                    fmt::format("{} {} tiles 1, in S", name(item.kind), item.axis));
}

/// What is meant: an axis, a variable, or a statement, which may be called `load K`.
void name_of(LineParser& parser, ScheduleItem& item) {
    constexpr std::array<std::string_view, 3> verbs{"load", "store", "init"};
    item.axis = parser.name("a name").text;
    const bool two_words = item.kind == ChoiceKind::slot && contains(verbs, item.axis) &&
                           parser.peek().kind == TokenKind::name && parser.peek(1).kind == TokenKind::name;
    if (two_words) item.axis += " " + parser.name("a variable").text;
}

ScheduleItem schedule_item(LineParser& parser, const std::string& kernel, Diagnostics& diagnostics) {
    ScheduleItem item{};
    item.kernel = kernel;
    const std::uint32_t begin = parser.peek().begin;
    skip_printed_word(parser);
    const AstWord kind = parser.name("a kind of choice such as group or stream");
    if (parser.failed()) return item;
    const std::string_view said = without_alias("", kind.text);
    const auto found = find_if(choice_fields, [&](const ChoiceField& field) { return field.name == said; });
    if (found == std::end(choice_fields)) {
        const auto names = mapped<std::string>(choice_fields,
                                               [](const ChoiceField& field) { return std::string(field.name); });
        parser.fail(Code::unknown_choice, kind.range, fmt::format("there is no choice '{}'", kind.text),
                    "one of " + join(names, ", "), did_you_mean(kind.text, names));
        return item;
    }
    item.kind = static_cast<ChoiceKind>(found - std::begin(choice_fields));
    const bool sized = found->operand == ChoiceOperand::size || found->operand == ChoiceOperand::optional_size;
    const bool named = sized || found->operand == ChoiceOperand::named_number || found->operand == ChoiceOperand::named_word;
    if ((named || found->operand == ChoiceOperand::clauses) && parser.peek().kind == TokenKind::name)
        name_of(parser, item);
    item.range = parser.range_from(begin);
    if (named && item.axis.empty() && !parser.failed()) {
        parser.fail(Code::bad_schedule, item.range, fmt::format("{} of which {}?", kind.text, sized ? "axis" : "name"),
                    fmt::format("{} and {}: {} {}", kind.text, sized ? "an axis" : "a name", kind.text,
                                sized ? "q = 128" : "producer = 1"));
        return item;
    }
    switch (found->operand) {
        case ChoiceOperand::size:
        case ChoiceOperand::optional_size:
        case ChoiceOperand::named_number:
        case ChoiceOperand::number:
            number(parser, item, found->operand == ChoiceOperand::optional_size, diagnostics);
            break;
        case ChoiceOperand::word:
        case ChoiceOperand::named_word: word(parser, item, begin); break;
        case ChoiceOperand::list:
        case ChoiceOperand::clauses: clauses(parser, item); break;
    }
    item.range = parser.range_from(begin);
    if (parser.failed() || !item.value || !item.word.empty()) return item;
    const std::string wrong = fmt::format("{} cannot be {}", kind.text, *item.value);
    if (*item.value < 1)
        diagnostics.error(Code::bad_schedule_value, item.range, wrong, "at least 1");
    else if (*item.value > found->most)
        diagnostics.error("size-out-of-range", item.range, wrong, fmt::format("1 … {}", found->most),
                          fmt::format("the nearest legal number is {}", found->most));
    return item;
}

void add(ScheduleItem item, LineParser& parser, std::vector<ScheduleItem>& out, Diagnostics& diagnostics) {
    const bool again = any_of(out, [&](const ScheduleItem& o) { return fixes_the_same(o, item); });
    std::erase_if(out, [&](const ScheduleItem& o) { return o.kind == ChoiceKind::kernel && o.kernel == item.kernel; });
    if (out.size() >= limits::max_equations)
        parser.fail(Code::bad_schedule, item.range, "too many choices", fmt::format("at most {}", limits::max_equations));
    else if (again)
        diagnostics.error(Code::duplicate_schedule, item.range,
                          fmt::format("{}{}{} is fixed twice", name(item.kind), item.axis.empty() ? "" : " ", item.axis),
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
        out.push_back({.kind = ChoiceKind::kernel, .axis = "", .value = {}, .range = range, .kernel = name});
    return name;
}

}  // namespace

void parse_schedule_line(LineParser& parser, std::string& kernel, std::vector<ScheduleItem>& out, Diagnostics& diagnostics) {
    if (parser.is_word(name(ChoiceKind::kernel))) {
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

std::string reason_behind(const ScheduleItem& item) {
    const std::string& text = item.range.source->text;
    const std::string line = text.substr(item.range.end,
                                         std::min(text.find('\n', item.range.end), text.size()) - item.range.end);
    const std::size_t begin = line.find_first_not_of(" \t#");
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

namespace {
/// A reason may begin with a number of something: `1 panel of 3×16 lanes`, `14 groups`. A number of nothing is one too
/// many.
void refuse_number_alone(LineParser& parser, const ScheduleItem& item) {
    const std::size_t word = item.range.source->text.find_first_not_of(" \t", item.range.end);
    if (word != parser.peek().begin) return;  // what stands there is no text of the language
    const bool is_of_nothing = parser.peek(1).kind == TokenKind::end || parser.is(",", 1) ||
                               parser.peek(1).kind == TokenKind::number;
    if (item.clauses.empty() && parser.peek().kind == TokenKind::number && is_of_nothing)
        parser.fail(Code::bad_schedule, parser.range(parser.peek()),
                    fmt::format("'{}' after a choice", parser.peek().text), "kind axis = value, and a reason in words");
}

/// The name or path behind `machine`, up to a blank: it is no text of the language.
ScheduleItem machine_item(LineParser& parser, const std::shared_ptr<const Source>& source, std::size_t end,
                          Diagnostics& diagnostics) {
    ScheduleItem item{};
    item.kind = ChoiceKind::machine;
    const std::uint32_t first = parser.peek().begin;
    std::size_t begin = source->text.find_first_not_of(" \t=", first + name(item.kind).size());
    begin = std::min(begin, end);
    const std::size_t last = std::min(source->text.find_first_of(" \t\r#", begin), end);
    item.word = source->text.substr(begin, last - begin);
    item.range = {source, first, static_cast<std::uint32_t>(std::max<std::size_t>(last, first + name(item.kind).size()))};
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
        if (parser.is_word(name(ChoiceKind::machine))) {
            ScheduleItem item = machine_item(parser, source, end, diagnostics);
            // Schedules of several kernels, each with its line, may be put together.
            const auto is_same = [&](const ScheduleItem& o) {
                return o.kind == ChoiceKind::machine && o.word == item.word;
            };
            if (diagnostics.empty() && none_of(items, is_same)) add(std::move(item), parser, items, diagnostics);
            std::vector<Diagnostic> of_line = diagnostics.take();
            append(errors, of_line);
            continue;
        }
        std::size_t read = begin;
        if (parser.is_word(name(ChoiceKind::kernel))) {
            kernel = kernel_line(parser, items);
            read = parser.peek().begin;
        } else {
            // Choices with commas between them, and a reason behind the last one, which is no text of the language.
            do {
                ScheduleItem item = schedule_item(parser, kernel, diagnostics);
                read = item.clauses.empty() ? item.range.end : end;
                if (item.kind == ChoiceKind::overhead) item.reason = reason_behind(item);
                if (item.kind == ChoiceKind::form)
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
