#pragma once
// Numbers with units as people write them in machine files: "32 KiB", "3.35 TB/s", "3.7 GHz", "90 ns", "700 W", "2.99
// USD/h".
#include <optional>
#include <string>
#include <string_view>

namespace napkin {

enum class Dimension { bytes, bytes_per_s, hertz, seconds, watts, usd_per_hour, number };

/// The value in bytes, bytes/s, Hz, s, W or USD/h; for `number`, of a plain number. nullopt when the text is no such
/// quantity.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

/// The value with the unit in which it is shortest, such that parse_quantity gives it back bit for bit.
std::string quantity_text(double value, Dimension dimension);

/// "a size", "a rate", …
std::string_view quantity_kind(Dimension dimension);

/// What to write, for messages: "a size such as \"32 KiB\" (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)".
std::string quantity_help(Dimension dimension);

}  // namespace napkin
