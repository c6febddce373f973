#pragma once
// Emitted code as a tree, and its text.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace napkin::writers {

/// A line of code, or a block: its first line, what stands in it, and the line that closes it.
struct CodePart {
    std::string line;
    std::string declares = {};  ///< the name that the line declares, if it may go where nothing uses the name
    bool is_block = false;
    std::vector<CodePart> inside = {};
    std::string end = {};
};

/// Code as a tree of lines and blocks. Writers declare an axis's index, or where a tile begins, wherever a statement
/// may need it, and put every statement in a block of its own. The text leaves out what says nothing to its reader.
class Lines {
public:
    /// A line that goes on in others has their indentation in it.
    void operator()(std::string line);
    /// "TYPE NAME = VALUE;". The text leaves it out where nothing after it in its block mentions the name.
    void declare(std::string_view type, const std::string& name, std::string_view value);
    void open(std::string_view line);         ///< line and " {"
    void close(std::string_view after = "");  ///< what stands behind the bracket
    void append(Lines lines);
    [[nodiscard]] bool is_empty() const { return parts_.empty(); }
    /// Where a block is all of another one, or one loop or condition, its braces go. A loop over one
    /// statement is one line where that is not long. Pre: what was opened is closed.
    [[nodiscard]] std::string text() const;

private:
    std::vector<CodePart>& here() { return open_.empty() ? parts_ : open_.back().inside; }

    std::vector<CodePart> parts_;
    std::vector<CodePart> open_;  ///< from outside in
};

}  // namespace napkin::writers
