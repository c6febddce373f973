// Arrays as arguments, results and targets have them: X[q, k]: f16 = 0.
#include <fmt/format.h>

#include <map>

#include "syntax/parser.hpp"

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
        {"half", "f16"},           {"float16", "f16"},      {"fp16", "f16"},     {"float", "f32"},   {"float32", "f32"},
        {"fp32", "f32"},           {"single", "f32"},       {"double", "f64"},   {"float64", "f64"}, {"fp64", "f64"},
        {"tensorfloat32", "tf32"}, {"bfloat16", "bf16"},    {"bfloat", "bf16"},  {"fp8", "e4m3"},    {"f8", "e4m3"},
        {"float8_e4m3", "e4m3"},   {"float8_e5m2", "e5m2"}, {"int", "i32"},      {"int32", "i32"},   {"long", "i64"},
        {"int64", "i64"},          {"int8", "i8"},          {"s8", "i8"},        {"uint8", "u8"},    {"byte", "u8"},
        {"int16", "i16"},          {"short", "i16"},        {"boolean", "bool"}, {"mask", "bool"},   {"i1", "bool"}};
    if (const auto at = aliases.find(word); at != aliases.end()) return "did you mean " + at->second + "?";
    std::vector<std::string> names;
    for (const DType type : all_dtypes) names.emplace_back(name(type));
    return did_you_mean(word, names);
}

AstWord parse_axis(LineParser& parser) {
    const Token& t = parser.peek();
    if (t.kind == TokenKind::number || parser.is("..") || parser.is("-")) {
        parser.fail(Code::bad_target, parser.range(t), fmt::format("'{}' where the name of an axis should stand", t.text),
                    "the name of an axis", t.kind == TokenKind::number ? "sizes are given by name: sizes q = 4096" : "");
        return {"", parser.range(t)};
    }
    return parser.name("the name of an axis");
}

void parse_type(LineParser& parser, AstArray& a, Diagnostics& diagnostics) {
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
    diagnostics.error(Code::unknown_type, parser.range(t), fmt::format("there is no type {}", t.text),
                      "one of " + type_names(), nearest_type(std::string(t.text)));
    a.type = DType::f32;
}

/// What an array of whole numbers counts: "offsets rows" or "lengths rows".
void parse_rows(LineParser& parser, AstArray& a) {
    a.ascend = parser.is_word("offsets");
    if (parser.accept_word("offsets") || parser.accept_word("lengths"))
        a.rows = parser.name("the axis that they count");
}

/// F[b + 1]: the last axis of the argument is longer than another, and has a name of its own.
void lengthen(LineParser& parser, AstArray& a) {
    AstWord& word = a.axes.back();
    const std::int64_t more = parser.whole_number("by how much the axis is longer");
    const AstNode shorter{AstName{word.text}, word.range},
        number{AstNumber{static_cast<double>(more), true, more}, word.range};
    word.text += fmt::format("_{}", more);
    AstSize size;
    size.names.push_back(word);
    size.value = AstNode{AstBinary{BinaryOp::add, {shorter, number}}, word.range, 2};
    a.sizes.push_back(std::move(size));
}

/// A default is a number, and a scalar's.
void check_default(AstArray& a, Diagnostics& diagnostics) {
    const SourceRange where = a.default_value->range;
    if (!a.axes.empty()) {
        diagnostics.error(Code::bad_default, where,
                          fmt::format("{} has axes; only a scalar can have a default value", a.name.text),
                          "no default value");
        a.default_value.reset();
        return;
    }
    const auto value = constant_value(*a.default_value);
    if (!value) {
        diagnostics.error(Code::bad_default, where, fmt::format("the default value of {} is not a number", a.name.text),
                          "a number such as 1e-5");
    }
    a.default_value->v = AstNumber{value.value_or(0), false};
}

}  // namespace

AstArray parse_array(LineParser& parser, const std::string& what, bool may_have_default, Diagnostics& diagnostics) {
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
            a.axes.push_back(parse_axis(parser));
            if (may_have_default && !parser.failed() && parser.accept("+")) lengthen(parser, a);
            if (!parser.accept(",")) break;
        }
        if (!parser.failed() && !parser.is("]")) {
            parser.fail(Code::bad_target, parser.range(parser.peek()),
                        fmt::format("'{}' among the axes of {}", parser.peek().text, a.name.text), "the names of axes",
                        "computed indices are for reading; shift the axis on the right-hand side");
        }
        parser.accept("]");
    }
    if (!parser.failed() && parser.accept(":")) parse_type(parser, a, diagnostics);
    if (!parser.failed() && a.type && may_have_default) parse_rows(parser, a);
    if (!parser.failed() && may_have_default && parser.accept("=")) {
        a.default_value = parser.expression();
        if (!parser.failed()) check_default(a, diagnostics);
    }
    a.broken = parser.failed();
    a.range = parser.range_from(begin);
    return a;
}

}  // namespace napkin
