#pragma once
// Small helpers on text.
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/ranges.hpp"

namespace napkin {

// Names and letters are ASCII. A name of the language is of letters, _ and digits, and does not begin with one.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_name_character(char c) { return is_letter(c) || is_digit(c); }

/// The number that the whole text is.
template <class T>
std::optional<T> parse_number(std::string_view text) {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "a, b, c". (fmt::join does the same, and has GCC 12 warn about fmt's own code.)
inline std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out += separator;
        out += parts[i];
    }
    return out;
}

/// The names of all things of a list.
std::vector<std::string> names_of(const auto& things) {
    return mapped<std::string>(things, [](const auto& thing) { return thing.name; });
}

/// The names of those with the ids.
std::vector<std::string> names_of(const auto& things, const auto& ids) {
    return mapped<std::string>(ids, [&](const auto& id) { return things[id].name; });
}

}  // namespace napkin
