#pragma once
// Where something stands in a text, and what is wrong with it. A user error is a value (Diagnostic), collected and
// rendered with file:line:column, the line and a caret; it is never thrown.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace napkin {

/// One text that was read: a file, the standard library, or a string given through the API.
struct Source {
    std::string name;  ///< file name as the user gave it, or "<text>", "<std>"
    std::string text;
};

/// A half-open byte range of a source. Positions do not take part in equality: two diagrams are equal when they say
/// the same thing, wherever they stand.
struct SourceRange {
    std::shared_ptr<const Source> source;  ///< null when the thing was made by a pass
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    friend bool operator==(const SourceRange&, const SourceRange&) { return true; }
};

enum class ExitCode : int { success = 0, bad_input = 1, usage = 2, machine_lacks = 3 };

struct Note {
    SourceRange range;
    std::string message;
};

/// One user error: what is wrong and where, what was expected, what is near.
struct Diagnostic {
    std::string code;  ///< stable name of the error, e.g. "unknown-array"
    SourceRange range = {};
    std::string message = {};
    std::string expected = {};  ///< what was expected, with both sizes or types where there are two; may be empty
    std::string hint = {};      ///< the nearest name or legal choice; may be empty
    std::vector<Note> notes = {};
    ExitCode exit_code = ExitCode::bad_input;
};

/// 1-based line and column (in bytes) of an offset.
struct LineColumn {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
};
LineColumn line_column(const Source& source, std::uint32_t offset);

/// Text that is safe to send to a terminal, whoever chose the names in it. Control characters, which could move the
/// cursor or set a title, and broken UTF-8 become �. Newlines stay.
std::string printable(std::string_view text);
/// The same, but our own colours (bold, dim, red, green and their end) stay.
std::string printable_in_color(std::string_view text);

/// Renders one diagnostic as text with the source line and a caret; with ANSI colours when asked.
std::string render(const Diagnostic& diagnostic, bool color = false);
std::string render(const std::vector<Diagnostic>& diagnostics, bool color = false);

/// The candidate nearest to `name` in edit distance, or "" when none is near enough to help.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "did you mean S?" for that candidate, else the given text.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates, std::string otherwise = {});

}  // namespace napkin
