#include "syntax/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/limits.hpp"

namespace napkin {
namespace {

/// The value of an expression in numbers only.
std::optional<double> constant_value(const AstNode& node) {
    if (const auto* n = std::get_if<AstNumber>(&node.v)) return n->value;
    if (const auto* n = std::get_if<AstUnary>(&node.v)) {
        const auto a = constant_value(n->operand[0]);
        return a && n->op == UnaryOp::neg ? std::optional(-*a) : std::nullopt;
    }
    if (const auto* n = std::get_if<AstBinary>(&node.v)) {
        const auto a = constant_value(n->operands[0]), b = constant_value(n->operands[1]);
        return a && b ? std::optional(apply(n->op, *a, *b)) : std::nullopt;
    }
    return std::nullopt;
}

std::string type_names() {
    std::string out;
    for (const DType type : all_dtypes) out += (out.empty() ? "" : ", ") + std::string(name(type));
    return out;
}

std::string nearest_type(const std::string& word) {
    static const std::map<std::string, std::string> aliases{
        {"half", "f16"},         {"float16", "f16"},  {"fp16", "f16"},   {"float", "f32"},   {"float32", "f32"},
        {"fp32", "f32"},         {"single", "f32"},   {"double", "f64"}, {"float64", "f64"}, {"fp64", "f64"},
        {"bfloat16", "bf16"},    {"bfloat", "bf16"},  {"fp8", "e4m3"},   {"f8", "e4m3"},     {"float8_e4m3", "e4m3"},
        {"float8_e5m2", "e5m2"}, {"int", "i32"},      {"int32", "i32"},  {"long", "i64"},    {"int64", "i64"},
        {"int8", "i8"},          {"s8", "i8"},        {"uint8", "u8"},   {"byte", "u8"},     {"int16", "i16"},
        {"short", "i16"},        {"boolean", "bool"}, {"mask", "bool"},  {"i1", "bool"}};
    if (const auto at = aliases.find(word); at != aliases.end()) return "did you mean " + at->second + "?";
    std::vector<std::string> names;
    for (const DType type : all_dtypes) names.emplace_back(name(type));
    return did_you_mean(word, names);
}

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
            d.arguments.push_back(array(parser, "an argument", true));
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
            d.results.push_back(array(parser, "a result", false));
        } while (!parser.failed() && parser.accept(","));
        if (parentheses) parser.expect(")");
    }

    AstArray array(LineParser& parser, const std::string& what, bool may_have_default) {
        AstArray a;
        const std::uint32_t begin = parser.peek().begin;
        a.name = parser.name(what);
        if (parser.failed()) {
            a.broken = true;
            return a;
        }
        if (parser.accept("[")) {
            a.indexed = true;
            while (!parser.failed() && !parser.is("]")) {
                a.axes.push_back(axis(parser));
                if (!parser.accept(",")) break;
            }
            if (!parser.failed() && !parser.is("]")) {
                parser.fail(Code::bad_target, parser.range(parser.peek()),
                            fmt::format("'{}' among the axes of {}", parser.peek().text, a.name.text),
                            "the names of axes",
                            "computed indices are for reading; shift the axis on the right-hand side");
            }
            parser.accept("]");
        }
        if (!parser.failed() && parser.accept(":")) type(parser, a);
        if (!parser.failed() && may_have_default && parser.accept("=")) {
            a.default_value = parser.expression();
            default_value(parser, a);
        }
        a.broken = parser.failed();
        a.range = parser.range_from(begin);
        return a;
    }

    static AstWord axis(LineParser& parser) {
        const Token& t = parser.peek();
        if (t.kind == TokenKind::number || parser.is("..") || parser.is("-")) {
            parser.fail(Code::bad_target, parser.range(t),
                        fmt::format("'{}' where the name of an axis should stand", t.text), "the name of an axis",
                        t.kind == TokenKind::number ? "sizes are given by name: sizes q = 4096" : "");
            return {"", parser.range(t)};
        }
        return parser.name("the name of an axis");
    }

    void type(LineParser& parser, AstArray& a) {
        const Token& t = parser.peek();
        a.type_range = parser.range(t);
        if (t.kind != TokenKind::name) {
            parser.fail(Code::expected_type, parser.range(t), fmt::format("the type of {} is missing", a.name.text),
                        "one of " + type_names(), parser.at_end() ? "a signature ends without a colon" : "");
            return;
        }
        parser.next();
        a.type = dtype_from_name(t.text);
        if (a.type) return;
        diagnostics_.error(Code::unknown_type, parser.range(t), fmt::format("there is no type {}", t.text),
                           "one of " + type_names(), nearest_type(std::string(t.text)));
        a.type = DType::f32;
    }

    void default_value(LineParser& parser, AstArray& a) {
        if (parser.failed()) return;
        const SourceRange where = a.default_value->range;
        if (!a.axes.empty()) {
            diagnostics_.error(Code::bad_default, where,
                               fmt::format("{} has axes; only a scalar can have a default value", a.name.text),
                               "no default value");
            a.default_value.reset();
            return;
        }
        const auto value = constant_value(*a.default_value);
        if (!value) {
            diagnostics_.error(Code::bad_default, where,
                               fmt::format("the default value of {} is not a number", a.name.text),
                               "a number such as 1e-5");
        }
        a.default_value->v = AstNumber{value.value_or(0), false};
    }

    void equation(LineParser& parser) {
        AstDefinition& d = module_.definitions.back();
        AstEquation e;
        const std::uint32_t begin = parser.peek().begin;
        const Token first = parser.peek();
        do {
            e.targets.push_back(array(parser, "the array that the equation defines", false));
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
                } else {
                    entry.value = parser.expression();
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
