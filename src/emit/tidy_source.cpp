#include "emit/tidy_source.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "emit/emit_text.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::writers {
namespace {

constexpr std::string_view unused_mark = "[[maybe_unused]] ";
/// Most characters, without indentation, with which a loop and its one statement share a line.
constexpr std::size_t longest_line = 140;

/// A line. Where it opens a block, also what stands in that block, and the line that closes it.
struct Part {
    std::string line = {};
    /// spaces before it besides those of its block, of a line that goes on with the one before it
    std::size_t extra = 0;
    bool is_block = false;
    std::vector<Part> inside = {};
    std::string end = {};
};

bool is_comment(const Part& part) { return part.line.starts_with("//"); }
bool is_plain_block(const Part& part) { return part.is_block && part.line == "{" && part.end == "}"; }
bool is_loop(const Part& part) { return part.line.starts_with("EACH(") || part.line.starts_with("for ("); }
bool is_one_statement(const Part& part) {
    return is_loop(part) || (part.is_block && (part.line.starts_with("if (") || part.line == "{"));
}

class Reader {
public:
    explicit Reader(std::string_view source) : rest_(source) {}

    std::vector<Part> run() {
        std::vector<Part> out = parts();
        internal_check(!closing_, "tidied: a block is closed that was not opened");
        return out;
    }

private:
    /// The next line, with its indentation as `extra`.
    std::optional<Part> next() {
        if (rest_.empty()) return std::nullopt;
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        const std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
        return Part{std::string(line.substr(begin)), begin};
    }

    /// Reads up to the line that closes the block, which is left in closing_.
    std::vector<Part> parts() {
        std::vector<Part> out;
        std::optional<std::size_t> indentation;
        while (auto line = next()) {
            Part& part = *line;
            if (part.line.starts_with('}')) {
                closing_ = std::move(part.line);
                return out;
            }
            if (!indentation && !part.line.empty()) indentation = part.extra;
            part.extra -= std::min(part.extra, indentation.value_or(0));
            if (part.line.ends_with('{') && !is_comment(part)) {
                part.is_block = true;
                part.inside = parts();
                internal_check(closing_.has_value(), "tidied: a block is not closed");
                part.end = *std::exchange(closing_, std::nullopt);
            }
            out.push_back(std::move(part));
        }
        return out;
    }

    std::string_view rest_;
    std::optional<std::string> closing_;
};

/// Whether code in the part mentions the name. Comments do not count.
bool mentions(const Part& part, std::string_view name) {
    if (mentions_name(std::string_view(part.line).substr(0, part.line.find("//")), name)) return true;
    return any_of(part.inside, [&](const Part& p) { return mentions(p, name); });
}

/// The one name that a line declares and initialises, if the line may go where nothing mentions the name. One case is
/// `[[maybe_unused]] const Index x = fragment_column(j_, c_);`, the other a constant that renames an argument of the
/// function.
std::optional<std::string> declared(const Part& part) {
    const std::size_t end = part.line.find(" = ");
    if (part.is_block || end == std::string::npos || part.line.find(" = ", end + 1) != std::string::npos)
        return std::nullopt;
    const std::string_view value = std::string_view(part.line).substr(end + 3);
    const bool is_argument = part.line.starts_with("const ") &&
                             (value.starts_with("static_cast<") || value.starts_with("arguments."));
    if (!part.line.starts_with(unused_mark) && !is_argument) return std::nullopt;
    const std::size_t begin = part.line.rfind(' ', end - 1) + 1;
    return part.line.substr(begin, end - begin);
}

void drop_unused(std::vector<Part>& parts) {
    for (std::size_t i = parts.size(); i-- > 0;) {
        drop_unused(parts[i].inside);
        const auto name = declared(parts[i]);
        if (!name) continue;
        const bool is_used = std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(),
                                         [&](const Part& later) { return mentions(later, *name); });
        if (is_used && parts[i].line.starts_with(unused_mark))
            parts[i].line.erase(0, unused_mark.size());
        else if (!is_used)
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

/// The one part of a block that is no comment, where there is only one.
const Part* only_part(const std::vector<Part>& parts) {
    const Part* out = nullptr;
    for (const Part& part : parts) {
        if (is_comment(part)) continue;
        if (out) return nullptr;
        out = &part;
    }
    return out;
}

/// Whether the part is a loop over one line, which is no comment.
bool fits_one_line(const Part& part) {
    if (!part.is_block || !is_loop(part) || part.inside.size() != 1) return false;
    const Part& only = part.inside.front();
    return !only.is_block && !is_comment(only) && only.line.find("//") == std::string::npos &&
           only.line.ends_with(';') && part.line.size() + only.line.size() <= longest_line;
}

void drop_braces(std::vector<Part>& parts) {
    std::vector<Part> out;
    for (Part& part : parts) {
        drop_braces(part.inside);
        const Part* only = only_part(part.inside);
        if (is_plain_block(part) && only && is_one_statement(*only)) {
            std::move(part.inside.begin(), part.inside.end(), std::back_inserter(out));
            continue;
        }
        if (part.is_block && only && is_plain_block(*only)) {
            std::vector<Part> inside;
            for (Part& p : part.inside)
                if (is_comment(p))
                    inside.push_back(std::move(p));
                else
                    std::move(p.inside.begin(), p.inside.end(), std::back_inserter(inside));
            part.inside = std::move(inside);
        }
        if (fits_one_line(part))
            part = Part{part.line.substr(0, part.line.size() - 1) + part.inside.front().line, part.extra};
        out.push_back(std::move(part));
    }
    parts = std::move(out);
}

void write(const std::vector<Part>& parts, std::size_t depth, std::string& out) {
    const auto indent = [&](const Part& part) {
        if (!part.line.empty() && part.line[0] != '#') out.append(4 * depth + part.extra, ' ');
    };
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        const bool goes_on = i > 0 && parts[i - 1].end == "}" && part.line.starts_with("else");
        if (!goes_on) indent(part);
        out += part.line;
        out += '\n';
        if (!part.is_block) continue;
        write(part.inside, part.line.starts_with("namespace ") ? depth : depth + 1, out);
        out.append(4 * depth, ' ');
        out += part.end;
        out += i + 1 < parts.size() && part.end == "}" && parts[i + 1].line.starts_with("else") ? ' ' : '\n';
    }
}

}  // namespace

std::string tidied(std::string_view source) {
    std::vector<Part> parts = Reader(source).run();
    drop_unused(parts);
    drop_braces(parts);
    std::string out;
    out.reserve(source.size());
    write(parts, 0, out);
    return out;
}

}  // namespace napkin::writers
