#pragma once
// Small helpers on text.
#include <string>
#include <string_view>
#include <vector>

namespace napkin {

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
    std::vector<std::string> names;
    for (const auto& thing : things) names.push_back(thing.name);
    return names;
}

/// The names of those with the ids.
std::vector<std::string> names_of(const auto& things, const auto& ids) {
    std::vector<std::string> names;
    for (const auto id : ids) names.push_back(things[static_cast<std::size_t>(id)].name);
    return names;
}

}  // namespace napkin
