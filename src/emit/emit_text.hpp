#pragma once
// Small helpers for writing source text: unique identifiers and number literals.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace napkin::writers {

/// Hands out C++ identifiers that clash neither with each other nor with keywords nor with the prelude. None ends in an
/// underscore: such names are for what a statement declares for itself.
class Names {
public:
    /// The prelude's text, some of whose names are taken.
    explicit Names(std::string_view prelude);
    /// `wanted` made an identifier, with a suffix when it is taken.
    std::string add(std::string_view wanted);

private:
    std::set<std::string, std::less<>> taken_;
};

/// The value as a literal of float or double that reads back exactly (infinities and NaN by the prelude's names).
std::string literal(double value, bool is_double);
/// A whole number less one: of a literal or of a name.
std::string one_less(const std::string& number);
/// A 64-bit integer.
std::string integer_literal(std::int64_t value);

/// Whether the text contains the name as a whole word.
bool mentions_name(std::string_view text, std::string_view name);

}  // namespace napkin::writers
