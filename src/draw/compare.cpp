#include "draw/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace napkin::draw {
namespace {

/// A number at the start of the text, or no length. Digits within a word, as in level-1, are no number.
std::size_t number_length(std::string_view text, std::size_t begin) {
    const auto is_digit = [&](std::size_t i) {
        return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    };
    if (begin > 0 && (std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0 &&
                      std::string_view("MLC").find(text[begin - 1]) == std::string_view::npos))
        return 0;
    if (begin > 0 && (text[begin - 1] == '-' || text[begin - 1] == '_')) return 0;
    std::size_t end = begin;
    if (end < text.size() && text[end] == '-') ++end;
    if (!is_digit(end)) return 0;
    while (is_digit(end)) ++end;
    if (end < text.size() && text[end] == '.' && is_digit(end + 1))
        for (++end; is_digit(end);) ++end;
    return end - begin;
}

std::string line_with(std::string_view text, std::size_t at) {
    const std::size_t before = text.rfind('\n', at == 0 ? 0 : at - 1),
                      begin = before == std::string_view::npos ? 0 : before + 1;
    return std::string(text.substr(begin, std::min(text.find('\n', at), text.size()) - begin)).substr(0, 160);
}

}  // namespace

std::string first_difference(std::string_view made, std::string_view kept, double tolerance) {
    std::size_t i = 0, j = 0;
    const auto difference = [&] {
        const auto line = 1 + std::count(made.begin(),
                                         made.begin() + static_cast<std::ptrdiff_t>(std::min(i, made.size())), '\n');
        return fmt::format("line {}: {}\nwhere there was: {}", line, line_with(made, std::min(i, made.size())),
                           line_with(kept, std::min(j, kept.size())));
    };
    while (i < made.size() && j < kept.size()) {
        const std::size_t a = number_length(made, i), b = number_length(kept, j);
        if (a > 0 && b > 0) {
            double x = 0, y = 0;
            std::from_chars(made.data() + i, made.data() + i + a, x);
            std::from_chars(kept.data() + j, kept.data() + j + b, y);
            if (std::fabs(x - y) > tolerance) return difference();
            i += a, j += b;
        } else if (made[i] == kept[j]) {
            ++i, ++j;
        } else {
            return difference();
        }
    }
    return i == made.size() && j == kept.size() ? "" : difference();
}

}  // namespace napkin::draw
