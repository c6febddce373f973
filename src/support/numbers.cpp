#include "support/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/ids.hpp"

namespace napkin {

namespace {
/// Three significant digits, without an exponent from 1 to 9999.
std::string three_digits(double value) {
    if (value >= 99.95) return fmt::format("{:.0f}", value);
    if (value >= 9.995) return fmt::format("{:.1f}", value);
    return fmt::format("{:.2f}", value);
}

}  // namespace

std::string seconds_text(double seconds) {
    if (seconds <= 0) return "0 s";
    if (seconds >= 1) return three_digits(seconds) + " s";
    if (seconds >= 1e-3) return three_digits(seconds * 1e3) + " ms";
    if (seconds >= 1e-6) return three_digits(seconds * 1e6) + " µs";
    return three_digits(seconds * 1e9) + " ns";
}

std::string bytes_text(double bytes) {
    constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{:.0f} B", bytes) : three_digits(bytes) + " " + std::string(units[unit]);
}

std::string count_text(double count) {
    if (count >= 1e12 || count != std::floor(count)) return fmt::format("{:.3g}", count);
    std::string digits = fmt::format("{:.0f}", count);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

std::string error_text(double error) { return error == 0 ? "0" : fmt::format("{:.1e}", error); }

std::size_t width(std::string_view text) {
    std::size_t columns = 0;
    bool escape = false;
    for (const char c : text) {
        if (c == '\033') escape = true;
        if (!escape && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
        if (escape && c == 'm') escape = false;
    }
    return columns;
}

std::string left(const std::string& text, std::size_t columns) {
    return text + std::string(columns > width(text) ? columns - width(text) : 0, ' ');
}
std::string right(const std::string& text, std::size_t columns) {
    return std::string(columns > width(text) ? columns - width(text) : 0, ' ') + text;
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& to_right,
                  const std::string& indent) {
    constexpr std::size_t usual = 72;
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i)
            if (width(row[i]) <= usual) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line = indent;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool to_the_right = contains(to_right, i);
            line += (i > 0 ? "  " : "") + (to_the_right ? right(row[i], widths[i]) : left(row[i], widths[i]));
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace napkin
