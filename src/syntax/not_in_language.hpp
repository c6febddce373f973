#pragma once
// What people look for in a language of arrays and this one does not have: names, what is meant, and what is near.
#include <string_view>

namespace napkin {

struct NotInLanguage {
    std::string_view what;  ///< "sorting"
    std::string_view near;  ///< what may serve instead; empty: nothing
};

/// The entry of a name such as topk, or null.
const NotInLanguage* find_not_in_language(std::string_view name);

}  // namespace napkin
