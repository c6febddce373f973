// The machine files that come with napkin, machines/*.toml, as they were when napkin was built.
#pragma once

#include <string_view>
#include <vector>

namespace napkin {

/// A text file built into the program. Both views are valid for the life of the program.
struct EmbeddedText {
    std::string_view name;  ///< the file's name without folder and ending: `h100` for machines/h100.toml
    std::string_view text;

    bool operator==(const EmbeddedText&) const = default;
};

/// Every machines/*.toml, in order of name.
const std::vector<EmbeddedText>& builtin_machine_texts();

}  // namespace napkin
