#pragma once
// A program that a test holds as text.
#include <string>

#include "derive/derived.hpp"

namespace napkin {

/// Throws std::runtime_error with the message where the text does not parse.
Diagram parsed(const std::string& text);
Derived derived_from(const std::string& text);

}  // namespace napkin
