#include "syntax/parser.hpp"

#include <fmt/format.h>

#include "support/limits.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_definitions = limits::max_equations;

class ModuleParser {
public:
    ModuleParser(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
        module_.source = source;
    }

    Module run() {
        const std::vector<LogicalLine> lines = lex(module_.source, diagnostics_);
        if (!lines.empty()) margin_ = lines[0].indent;
        for (const LogicalLine& line : lines) {
            if (module_.definitions.size() > max_definitions) break;
            statement(line);
        }
        if (module_.definitions.empty() && diagnostics_.empty()) {
            diagnostics_.error(Code::empty_file, {module_.source, 0, 0}, "the text defines no diagram",
                               "a definition such as f(X[i]) -> Y[i]");
        }
        return std::move(module_);
    }

private:
    enum class Block { none, sizes, schedule };

    void statement(const LogicalLine& line) {
        LineParser parser(module_.source, line, diagnostics_);
        const bool top = line.indent <= margin_;
        if (block_ != Block::none && line.indent > block_indent_) {
            block_ == Block::sizes ? sizes(parser) : schedule(parser);
            return;
        }
        block_ = Block::none;
        const bool keyword = parser.is_word("sizes") || parser.is_word("schedule");
        if (keyword) {
            in_definition_ = !top && !module_.definitions.empty();
            block_ = parser.is_word("sizes") ? Block::sizes : Block::schedule;
            block_indent_ = line.indent;
            kernel_.clear();
            const SourceRange word = parser.range(parser.next());
            if (parser.at_end()) return;
            if (parser.is("=") || parser.is("[") || parser.is("(")) {
                parser.fail(Code::reserved_name, word, "this word begins a block and cannot name anything", "a name");
                return;
            }
            block_ == Block::sizes ? sizes(parser) : schedule(parser);
            return;
        }
        if (has_arrow(line)) {
            if (!top) {
                diagnostics_.error(Code::bad_indentation, parser.range(parser.peek()),
                                   "a definition begins at the left margin", "no indentation; definitions do not nest");
            }
            definition(parser);
            return;
        }
        if (parser.peek().kind == TokenKind::name && parser.is("(", 1) && !has_symbol(line, "=")) {
            if (top) {
                missing_results(parser, line);
                return;
            }
        }
        equation_line(parser, line, top);
    }

    void equation_line(LineParser& parser, const LogicalLine& line, bool top) {
        const Token& first = parser.peek();
        if (module_.definitions.empty()) {
            if (!stray_reported_) {
                diagnostics_.error(Code::expected_definition, parser.range(first),
                                   "a statement outside of a definition", "a definition first: name(X[i, j], …) -> Y[i]",
                                   "its equations stand below it, indented");
            }
            stray_reported_ = true;
            return;
        }
        if (top) {
            diagnostics_.error(Code::bad_indentation, parser.range(first), "an equation at the left margin",
                               fmt::format("indentation below {}", module_.definitions.back().name.text));
        } else if (body_indent_ < 0) {
            body_indent_ = static_cast<std::int64_t>(line.indent);
        } else if (body_indent_ != static_cast<std::int64_t>(line.indent)) {
            diagnostics_.error(
                Code::bad_indentation, parser.range(first), "indented unlike the equation before it",
                fmt::format("{} spaces", body_indent_),
                "an expression that goes on over lines stands in parentheses, or its lines end in an operator");
        }
        equation(parser);
    }

    static bool has_symbol(const LogicalLine& line, std::string_view symbol) {
        int depth = 0;
        for (const Token& t : line.tokens) {
            if (t.kind != TokenKind::symbol) continue;
            if (t.text == "(" || t.text == "[") ++depth;
            if (t.text == ")" || t.text == "]") --depth;
            if (depth == 0 && t.text == symbol) return true;
        }
        return false;
    }
    static bool has_arrow(const LogicalLine& line) { return has_symbol(line, "->"); }

    /// At the left margin, name(…) without an arrow: a signature that lacks its results.
    void missing_results(LineParser& parser, const LogicalLine& line) {
        const Token& end = line.tokens.back();
        AstDefinition d;
        d.name = {std::string(parser.peek().text), parser.range(parser.peek())};
        d.range = d.name.range;
        d.broken = true;
        parser.fail(Code::missing_results, parser.range(end),
                    fmt::format("the signature of {} does not say what it gives", d.name.text),
                    "-> and the results: f(X[i]) -> Y[i]");
        begin(std::move(d));
    }

    void begin(AstDefinition d) {
        if (module_.definitions.size() == max_definitions) {
            diagnostics_.error(Code::too_many_definitions, d.name.range, "the text has too many definitions",
                               fmt::format("at most {}", max_definitions));
        }
        module_.definitions.push_back(std::move(d));
        body_indent_ = -1;
    }

    void definition(LineParser& parser) {
        AstDefinition d;
        const std::uint32_t start = parser.peek().begin;
        d.name = parser.name("the name of a diagram");
        if (!parser.failed()) signature(parser, d);
        d.range = parser.failed() ? d.name.range : parser.range_from(start);
        parser.finish();
        d.broken = !parser.good();
        begin(std::move(d));
    }

    void signature(LineParser& parser, AstDefinition& d) {
        parser.expect("(");
        while (!parser.failed() && !parser.is(")")) {
            d.arguments.push_back(parse_array(parser, "an argument", true, diagnostics_));
            for (AstSize& size : d.arguments.back().sizes)
                if (none_of(d.sizes, [&](const AstSize& s) { return s.names[0].text == size.names[0].text; }))
                    d.sizes.push_back(std::move(size));
            if (!parser.accept(",")) break;
        }
        parser.expect(")");
        parser.expect("->");
        if (parser.failed()) return;
        if (parser.at_end()) {
            parser.fail(Code::no_results, parser.range(parser.peek()), fmt::format("{} gives nothing", d.name.text),
                        "a result such as Y[i]");
            return;
        }
        const bool parentheses = parser.accept("(");
        do {
            if (parser.at_end()) break;
            d.results.push_back(parse_array(parser, "a result", false, diagnostics_));
        } while (!parser.failed() && parser.accept(","));
        if (parentheses) parser.expect(")");
    }

    void equation(LineParser& parser) {
        AstDefinition& d = module_.definitions.back();
        AstEquation e;
        const std::uint32_t begin = parser.peek().begin;
        const Token first = parser.peek();
        do {
            e.targets.push_back(parse_array(parser, "the array that the equation defines", false, diagnostics_));
        } while (!parser.failed() && parser.accept(","));
        if (!parser.failed() && !parser.is("=") && parser.is("(") && e.targets.size() == 1 && !e.targets[0].indexed) {
            parser.fail(Code::bad_target, parser.range(first), "a call on the left-hand side",
                        "the array that the equation defines: Y[i] = …", "indices stand in brackets");
        }
        parser.expect("=");
        if (!parser.failed()) {
            AstNode body = parser.expression();
            parser.finish();
            if (parser.good()) e.body = std::move(body);
        }
        e.range = parser.failed() ? parser.range(first) : parser.range_from(begin);
        // A target whose name could be read stays known, so that its uses are no errors.
        std::erase_if(e.targets, [](const AstArray& a) { return a.name.text.empty(); });
        if (e.targets.empty()) {
            d.broken = true;
            return;
        }
        d.equations.push_back(std::move(e));
    }

    void sizes(LineParser& parser) {
        std::vector<AstSize>& out = in_definition_ ? module_.definitions.back().sizes : module_.sizes;
        do {
            if (parser.at_end()) break;
            AstSize entry;
            entry.names.push_back(parser.name("the name of an axis"));
            while (!parser.failed() && parser.accept("=")) {
                const bool chained = parser.peek().kind == TokenKind::name && parser.is("=", 1);
                if (chained) {
                    entry.names.push_back(parser.name("the name of an axis"));
                } else if (parser.accept_word("any")) {
                    entry.is_any = true;
                    if (!parser.accept("(")) break;
                    entry.value = parser.expression();
                    parser.expect(")");
                    break;
                } else {
                    entry.value = parser.expression();
                    if (parser.accept("..")) entry.last = parser.expression();
                    break;
                }
            }
            if (!parser.good()) return;
            num_sizes_ += entry.names.size();
            if (num_sizes_ > limits::max_equations) {
                parser.fail(Code::too_many_axes, entry.names[0].range, "the text gives too many sizes",
                            fmt::format("at most {}", limits::max_equations));
                return;
            }
            out.push_back(std::move(entry));
        } while (parser.accept(","));
        parser.finish();
    }

    void schedule(LineParser& parser) {
        parse_schedule_line(parser, kernel_, in_definition_ ? module_.definitions.back().schedule : module_.schedule,
                            diagnostics_);
    }

    Diagnostics& diagnostics_;
    Module module_;
    std::uint32_t margin_ = 0;
    std::int64_t body_indent_ = -1;
    Block block_ = Block::none;
    std::uint32_t block_indent_ = 0;
    bool in_definition_ = false;
    bool stray_reported_ = false;
    std::size_t num_sizes_ = 0;
    std::string kernel_;  ///< of which the lines of a schedule are
};

}  // namespace

Module parse_module(const std::shared_ptr<const Source>& source, Diagnostics& diagnostics) {
    return ModuleParser(source, diagnostics).run();
}

}  // namespace napkin
