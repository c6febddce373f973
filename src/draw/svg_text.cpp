// What is shown of a text, and how wide it is.
#include <array>
#include <cstdint>

#include "draw/svg.hpp"
#include "support/ranges.hpp"

namespace napkin::svg {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Character {
    std::uint32_t code = 0;
    std::size_t length = 1;
    bool is_valid = false;
};

/// The character at a place; of what is no UTF-8 (also what is longer than need be, surrogates, what is past U+10FFFF)
/// one byte.
Character character_at(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    if (first < 0x80) return {first, 1, true};
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return {};
    std::uint32_t code = first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80U) return {};
        code = code << 6U | (byte(at + i) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[length] || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {};
    return {code, length, true};
}

bool is_blank(std::uint32_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x3000;
}

/// Controls, what turns the direction of writing, and what is no character: nothing of it is shown, and XML has no room
/// for most.
bool is_unseen(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || (c >= 0xFDD0 && c <= 0xFDEF) || c == 0xFEFF || (c & 0xFFFEU) == 0xFFFE;
}

bool is_mark(std::uint32_t c) {
    return (c >= 0x300 && c <= 0x36F) || (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x20D0 && c <= 0x20FF);
}

bool is_wide(std::uint32_t c) {
    return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xD7FF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) || c >= 0x1F000;
}

// Widths of Helvetica's characters 0x20 to 0x7E in thousandths of the size, as Adobe's font metrics give them.
constexpr std::array<int, 95> helvetica = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

double character_width(std::uint32_t c) {
    // DejaVu Sans, which systems without Helvetica or Arial have, is about a tenth wider.
    if (c >= 0x20 && c <= 0x7E) return helvetica[c - 0x20] * 1.1e-3;
    if (is_mark(c)) return 0;
    return is_wide(c) ? 1.0 : 0.68;
}

}  // namespace

std::string cleaned(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text, at);
        if (c.is_valid && is_blank(c.code))
            out += ' ';
        else if (!c.is_valid || is_unseen(c.code))
            out += replacement;
        else
            out += text.substr(at, c.length);
        at += c.length;
    }
    return out;
}

std::vector<std::string> characters(std::string_view text) {
    const std::string shown = cleaned(text);
    std::vector<std::string> out;
    for (std::size_t at = 0; at < shown.size();) {
        const Character c = character_at(shown, at);
        if (is_mark(c.code) && !out.empty())
            out.back() += shown.substr(at, c.length);
        else
            out.push_back(shown.substr(at, c.length));
        at += c.length;
    }
    return out;
}

double text_width(std::string_view text, double size) {
    double width = 0;
    const std::string shown = cleaned(text);
    for (std::size_t at = 0; at < shown.size();) {
        const Character c = character_at(shown, at);
        width += character_width(c.code);
        at += c.length;
    }
    return width * size;
}

double text_width(const Label& label, double size) {
    return sum<double>(label, [&](const Span& span) {
        return text_width(span.text, span.shift == Span::Shift::base ? size : size * shifted_scale);
    });
}

std::string plain_text(const Label& label) {
    std::string out;
    for (const Span& span : label) {
        if (span.shift != Span::Shift::base) out += span.shift == Span::Shift::sub ? "_" : "^";
        // A power of several parts needs its parentheses in a line.
        const bool is_fraction = span.shift == Span::Shift::super && span.text.find('/') != std::string::npos;
        out += is_fraction ? "(" + span.text + ")" : span.text;
    }
    return out;
}

std::string shortened(std::string_view text, double width, double size) {
    if (text_width(text, size) <= width) return cleaned(text);
    std::string out;
    double used = text_width("…", size);
    for (const std::string& character : characters(text)) {
        used += text_width(character, size);
        if (used > width) break;
        out += character;
    }
    return out + "…";
}

std::string shortened_name(std::string_view name, double width, double size) {
    if (text_width(name, size) <= width) return cleaned(name);
    const std::vector<std::string> all = characters(name);
    // A character of the beginning, one of the end, and so on, while there is room.
    std::size_t from_front = 0, from_back = 0;
    double used = text_width("…", size);
    while (from_front + from_back < all.size()) {
        const bool is_front = from_front <= from_back;
        used += text_width(is_front ? all[from_front] : all[all.size() - 1 - from_back], size);
        if (used > width) break;
        ++(is_front ? from_front : from_back);
    }
    std::string out;
    for (std::size_t i = 0; i < from_front; ++i) out += all[i];
    out += "…";
    for (std::size_t i = all.size() - from_back; i < all.size(); ++i) out += all[i];
    return out;
}

}  // namespace napkin::svg
