#include "syntax/string_pattern.hpp"

#include <algorithm>

#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

struct Span {
    std::size_t begin, end;
};

/// The part of the file's text that a span of the string is, for the carets.
SourceRange place_in(const AstNode& string, Span span) {
    const std::uint32_t first = string.range.begin + 1;
    return {string.range.source, first + static_cast<std::uint32_t>(span.begin),
            first + static_cast<std::uint32_t>(span.end)};
}

/// The terms without the spaces around them; the last stands behind the arrow.
std::vector<Span> spans_of_terms(const std::string& text, std::size_t arrow) {
    std::vector<Span> spans;
    for (std::size_t at = 0; at <= arrow;) {
        const std::size_t comma = std::min(text.find(',', at), arrow);
        spans.push_back({at, comma});
        at = comma + 1;
    }
    spans.push_back({arrow + 2, text.size()});
    for (Span& span : spans) {
        while (span.begin < span.end && text[span.begin] == ' ') ++span.begin;
        while (span.begin < span.end && text[span.end - 1] == ' ') --span.end;
    }
    return spans;
}

std::optional<StringPattern::Term> read_term(const AstNode& string, Span span, bool words, Diagnostics& diagnostics) {
    const std::string& text = std::get<AstString>(string.v).text;
    StringPattern::Term term{{}, place_in(string, span)};
    for (std::size_t at = span.begin; at < span.end;) {
        if (text[at] == ' ') {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < span.end && is_name_character(text[end]) && (words || end == at)) ++end;
        if (end == at || is_digit(text[at])) {
            diagnostics.error(Code::bad_einsum, place_in(string, {at, std::max(end, at + 1)}),
                              "this is no name of an axis", "letters, and words between spaces",
                              text[at] == '.' ? "write the axes out; a string has no '...' here" : "");
            return std::nullopt;
        }
        term.names.push_back({text.substr(at, end - at), place_in(string, {at, end})});
        at = end;
    }
    return term;
}

}  // namespace

bool StringPattern::Term::has(const std::string& name) const {
    return any_of(names, [&](const AstWord& word) { return word.text == name; });
}

std::optional<StringPattern> read_string_pattern(const AstNode& node, bool words, const std::string& usage,
                                                 Diagnostics& diagnostics) {
    const std::string& text = std::get<AstString>(node.v).text;
    const std::size_t arrow = text.find("->");
    if (arrow == std::string::npos) {
        diagnostics.error(Code::bad_einsum, node.range, "the string does not say what stays",
                          "-> and the names of the result's axes", usage);
        return std::nullopt;
    }
    if (const std::size_t parenthesis = text.find_first_of("()"); parenthesis != std::string::npos) {
        diagnostics.error(Code::einops_grouping, place_in(node, {parenthesis, parenthesis + 1}),
                          "axes cannot be split or joined in a string", "the names of axes, in some order",
                          "keep the axes apart; a joined one is split by its index: X[b, 64*h + d]");
        return std::nullopt;
    }
    const std::vector<Span> spans = spans_of_terms(text, arrow);
    StringPattern pattern;
    pattern.words = words || any_of(spans, [&](Span span) {
                        return text.substr(span.begin, span.end - span.begin).find(' ') != std::string::npos;
                    });
    for (const Span span : spans) {
        auto term = read_term(node, span, pattern.words, diagnostics);
        if (!term) return std::nullopt;
        pattern.operands.push_back(std::move(*term));
    }
    pattern.output = std::move(pattern.operands.back());
    pattern.operands.pop_back();
    return pattern;
}

}  // namespace napkin
