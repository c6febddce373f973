#include "support/source.hpp"
#include "support/ranges.hpp"

#include <fmt/format.h>

#include <array>

namespace napkin {
namespace {

constexpr std::size_t max_columns = 100;  ///< of a source line that is shown; a longer one is clipped around the range
constexpr std::size_t tab_columns = 4;

/// One character as it is shown: printable UTF-8 text and the terminal columns it takes.
struct Glyph {
    std::string text;
    std::size_t columns;
    std::size_t bytes;  ///< taken from the source
};

/// Length of the well-formed UTF-8 sequence at `at`, with its code point; 0 when there is none.
std::size_t decode(std::string_view text, std::size_t at, char32_t& code) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    if (first < 0x80) {
        code = first;
        return 1;
    }
    const std::size_t length = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
    if (length == 0 || first >= 0xF5 || at + length > text.size()) return 0;
    code = first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return 0;
        code = (code << 6) | (byte(at + i) & 0x3FU);
    }
    constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return code >= least[length] && code <= 0x10FFFF && !surrogate ? length : 0;
}

std::size_t columns_of(char32_t code) {
    const auto in = [code](char32_t low, char32_t high) { return code >= low && code <= high; };
    if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0x20D0, 0x20FF) || in(0xFE00, 0xFE0F)) return 0;  // combining
    if (in(0x1100, 0x115F) || in(0x2E80, 0xA4CF) || in(0xAC00, 0xD7A3) || in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) ||
        in(0xFF00, 0xFF60) || in(0x1F300, 0x1F64F) || in(0x1F900, 0x1F9FF) || in(0x20000, 0x3FFFD)) {
        return 2;
    }
    return 1;
}

/// What a terminal may be sent for the text at `at`: control characters, which could move its cursor, and broken UTF-8
/// show as �.
Glyph glyph_at(std::string_view text, std::size_t at) {
    char32_t code = 0;
    const std::size_t length = decode(text, at, code);
    if (length == 0) return {"\xEF\xBF\xBD", 1, 1};
    if (code == '\t') return {std::string(tab_columns, ' '), tab_columns, 1};
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069) || code == 0x2028 || code == 0x2029;
    if (control) return {"\xEF\xBF\xBD", 1, length};
    return {std::string(text.substr(at, length)), columns_of(code), length};
}

/// Offset of the first byte of the line that `offset` stands in.
std::size_t line_begin(const Source& source, std::size_t offset) {
    if (offset == 0) return 0;
    const std::size_t newline = source.text.rfind('\n', offset - 1);
    return newline == std::string::npos ? 0 : newline + 1;
}

/// The line, and under it a caret for the first column of the range and ~ for the others.
struct Excerpt {
    std::string line, carets;
};

Excerpt excerpt(const SourceRange& range) {
    const std::string& text = range.source->text;
    const std::size_t begin = std::min<std::size_t>(range.begin, text.size());
    const std::size_t first = line_begin(*range.source, begin);
    std::size_t last = std::min(text.find('\n', first), text.size());
    // A line of a mad length is cut before it is looked at.
    const std::size_t from = begin - first > 16 * max_columns ? begin - 8 * max_columns : first;
    const bool cut = last > begin && last - begin > 16 * max_columns;
    if (cut) last = begin + 16 * max_columns;
    if (!cut && last > first && text[last - 1] == '\r') --last;
    const std::size_t end = std::clamp<std::size_t>(range.end, begin, std::max(begin, last));

    const std::string_view line = std::string_view(text).substr(0, std::max(last, begin));
    std::vector<Glyph> glyphs;
    std::size_t left = 0, width = 0;  // columns before the range, and of it
    for (std::size_t at = from; at < last;) {
        Glyph glyph = glyph_at(line, at);
        if (at < begin) {
            left += glyph.columns;
        } else if (at < end) {
            width += glyph.columns;
        }
        at += glyph.bytes;
        glyphs.push_back(std::move(glyph));
    }

    // Clip: the range's first columns stay in sight, with some of what stands before it.
    const std::size_t total = sum<std::size_t>(glyphs, &Glyph::columns);
    std::size_t skip = 0;
    if (total > max_columns) {
        const std::size_t wanted_end = left + std::min(width, max_columns / 2) + 10;
        if (wanted_end > max_columns) skip = std::min(left, wanted_end - max_columns);
    }
    const bool clipped_left = skip > 0 || from > first;
    Excerpt result;
    std::size_t column = 0, shown = 0, dropped = 0;
    bool clipped_right = cut;
    for (const Glyph& glyph : glyphs) {
        if (column < skip) {
            dropped = column + glyph.columns;
        } else if (shown + glyph.columns > max_columns) {
            clipped_right = true;
            break;
        } else {
            result.line += glyph.text;
            shown += glyph.columns;
        }
        column += glyph.columns;
    }
    const std::size_t indent = left - std::min(left, dropped);
    width = std::max<std::size_t>(1, std::min(width, shown > indent ? shown - indent : 1));
    result.carets = std::string(indent, ' ') + "^" + std::string(width - 1, '~');
    if (clipped_left) {
        result.line = "…" + result.line;
        result.carets = " " + result.carets;
    }
    if (clipped_right) result.line += "…";
    return result;
}

struct Style {
    std::string_view bold, error, caret, note, off;
};
constexpr Style plain{};
constexpr Style ansi{"\033[1m", "\033[1;31m", "\033[1;32m", "\033[1;36m", "\033[0m"};

std::string position(const SourceRange& range) {
    if (!range.source) return "";
    const LineColumn at = line_column(*range.source, range.begin);
    return fmt::format("{}:{}:{}: ", printable(range.source->name), at.line, at.column);
}

/// Appends the source line and its carets behind a gutter with the line number.
void append_excerpt(std::string& out, const SourceRange& range, const Style& style) {
    if (!range.source) return;
    const Excerpt shown = excerpt(range);
    const std::string number = std::to_string(line_column(*range.source, range.begin).line);
    out += fmt::format("{:>5} | {}\n", number, shown.line);
    out += fmt::format("{:>5} | {}{}{}\n", "", style.caret, shown.carets, style.off);
}

std::string folded(std::string_view name) {
    std::string out(name);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

/// Edit distance with transpositions of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row[b.size()];
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if ((byte >= 0x20 && byte < 0x7F) || byte == '\n') {
            out += text[at++];
            continue;
        }
        const Glyph glyph = glyph_at(text, at);
        out += glyph.text;
        at += glyph.bytes;
    }
    return out;
}

std::string printable_in_color(std::string_view text) {
    constexpr std::array<std::string_view, 11> colors{"\033[0m",    "\033[1m",    "\033[2m",   "\033[31m",
                                                      "\033[32m",   "\033[33m",   "\033[34m",  "\033[35m",
                                                      "\033[1;31m", "\033[1;32m", "\033[1;36m"};
    std::string out;
    while (!text.empty()) {
        const std::size_t escape = text.find('\033');
        out += printable(text.substr(0, escape));
        if (escape == std::string_view::npos) break;
        text.remove_prefix(escape);
        const auto color = find_if(colors, [&](std::string_view c) { return text.starts_with(c); });
        out += color == colors.end() ? "\xEF\xBF\xBD" : std::string(*color);
        text.remove_prefix(color == colors.end() ? 1 : color->size());
    }
    return out;
}

LineColumn line_column(const Source& source, std::uint32_t offset) {
    const std::size_t at = std::min<std::size_t>(offset, source.text.size());
    const auto line = std::count(source.text.begin(), source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    return {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(at - line_begin(source, at) + 1)};
}

std::string render(const Diagnostic& diagnostic, bool color) {
    const Style& style = color ? ansi : plain;
    std::string out = fmt::format("{}{}{}error:{} {}{}{}", style.bold, position(diagnostic.range), style.error,
                                  style.off, style.bold, printable(diagnostic.message), style.off);
    if (!diagnostic.code.empty()) out += fmt::format(" [{}]", diagnostic.code);
    out += '\n';
    append_excerpt(out, diagnostic.range, style);
    if (!diagnostic.expected.empty()) out += fmt::format("      = expected: {}\n", printable(diagnostic.expected));
    if (!diagnostic.hint.empty()) out += fmt::format("      = hint: {}\n", printable(diagnostic.hint));
    for (const Note& note : diagnostic.notes) {
        out += fmt::format("{}{}note:{} {}\n", position(note.range), style.note, style.off, printable(note.message));
        append_excerpt(out, note.range, style);
    }
    return out;
}

std::string render(const std::vector<Diagnostic>& diagnostics, bool color) {
    std::string out;
    for (const Diagnostic& diagnostic : diagnostics) {
        if (!out.empty()) out += '\n';
        out += render(diagnostic, color);
    }
    return out;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
    const std::string wanted = folded(name.substr(0, 64));
    std::string best;
    std::size_t best_distance = 0;
    for (const std::string& candidate : candidates) {
        if (candidate == name || candidate.size() > 64) continue;
        const std::string other = folded(candidate);
        std::size_t distance = edit_distance(wanted, other);
        // What was begun or abbreviated is near, however much is left out.
        const bool begun = wanted.size() >= 3 && other.starts_with(wanted);
        if (begun) distance = std::min<std::size_t>(distance, 1);
        // A third of the letters may differ; of a single letter, none.
        if (distance > (std::max(wanted.size(), other.size()) + 1) / 3 && !begun) continue;
        if (best.empty() || distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates, std::string otherwise) {
    const std::string near = nearest_name(name, candidates);
    return near.empty() ? std::move(otherwise) : "did you mean " + near + "?";
}

}  // namespace napkin
