#pragma once
// Numbers as people read them: three digits and a unit.
#include <string>
#include <string_view>
#include <vector>

namespace napkin {

std::string seconds_text(double seconds);  ///< "161 ms", "12.3 µs"
std::string bytes_text(double bytes);      ///< "1.5 MiB"
std::string count_text(double count);      ///< "8,388,608", "1.07e+13" past 10^12
std::string error_text(double error);      ///< "1.2e-06", "0"

/// Columns on a terminal: characters, not bytes.
std::size_t width(std::string_view text);
std::string left(const std::string& text, std::size_t columns);
std::string right(const std::string& text, std::size_t columns);

/// Rows under each other, each column as wide as its widest cell of at most 72, two spaces between; those in `to_right`
/// (by position) are aligned to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& to_right = {},
                  const std::string& indent = "");

}  // namespace napkin
