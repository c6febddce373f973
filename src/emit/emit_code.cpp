#include "emit/emit_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "emit/emit_text.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::writers {
namespace {

/// Most characters, without indentation, with which a loop and its one statement share a line.
constexpr std::size_t longest_line = 140;

bool is_comment(const CodePart& part) { return part.line.starts_with("//"); }
bool is_plain_block(const CodePart& part) { return part.is_block && part.line == "{" && part.end == "}"; }
bool is_loop(const CodePart& part) { return part.line.starts_with("EACH(") || part.line.starts_with("for ("); }
bool is_one_statement(const CodePart& part) {
    return is_loop(part) || (part.is_block && (part.line.starts_with("if (") || part.line == "{"));
}

/// Whether code in the part mentions the name. Comments do not count.
bool mentions(const CodePart& part, std::string_view name) {
    if (mentions_name(std::string_view(part.line).substr(0, part.line.find("//")), name)) return true;
    return any_of(part.inside, [&](const CodePart& p) { return mentions(p, name); });
}

void drop_unused(std::vector<CodePart>& parts) {
    for (std::size_t i = parts.size(); i-- > 0;) {
        drop_unused(parts[i].inside);
        const auto after = parts.begin() + static_cast<std::ptrdiff_t>(i) + 1;
        const std::string& name = parts[i].declares;
        if (!name.empty() && std::none_of(after, parts.end(), [&](const CodePart& p) { return mentions(p, name); }))
            parts.erase(after - 1);
    }
}

/// The one part of a block that is no comment, where there is only one.
const CodePart* only_part(const std::vector<CodePart>& parts) {
    const CodePart* out = nullptr;
    for (const CodePart& part : parts) {
        if (is_comment(part)) continue;
        if (out) return nullptr;
        out = &part;
    }
    return out;
}

/// Whether the part is a loop over one line, which is no comment.
bool fits_one_line(const CodePart& part) {
    if (!part.is_block || !is_loop(part) || part.inside.size() != 1) return false;
    const CodePart& only = part.inside.front();
    return !only.is_block && !is_comment(only) && only.line.find("//") == std::string::npos &&
           only.line.ends_with(';') && part.line.size() + only.line.size() <= longest_line;
}

void drop_braces(std::vector<CodePart>& parts) {
    std::vector<CodePart> out;
    for (CodePart& part : parts) {
        drop_braces(part.inside);
        const CodePart* only = only_part(part.inside);
        if (is_plain_block(part) && only && is_one_statement(*only)) {
            std::move(part.inside.begin(), part.inside.end(), std::back_inserter(out));
            continue;
        }
        if (part.is_block && only && is_plain_block(*only)) {
            std::vector<CodePart> inside;
            for (CodePart& p : part.inside)
                if (is_comment(p))
                    inside.push_back(std::move(p));
                else
                    std::move(p.inside.begin(), p.inside.end(), std::back_inserter(inside));
            part.inside = std::move(inside);
        }
        if (fits_one_line(part)) part = CodePart{part.line.substr(0, part.line.size() - 1) + part.inside.front().line};
        out.push_back(std::move(part));
    }
    parts = std::move(out);
}

void print(const std::vector<CodePart>& parts, std::size_t depth, std::string& out) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const CodePart& part = parts[i];
        const bool goes_on = i > 0 && parts[i - 1].end == "}" && part.line.starts_with("else");
        if (!goes_on && !part.line.empty() && part.line[0] != '#') out.append(4 * depth, ' ');
        out += part.line + '\n';
        if (!part.is_block) continue;
        print(part.inside, depth + 1, out);
        out.append(4 * depth, ' ');
        out += part.end;
        out += i + 1 < parts.size() && part.end == "}" && parts[i + 1].line.starts_with("else") ? ' ' : '\n';
    }
}

}  // namespace

void Lines::operator()(std::string line) { here().push_back({std::move(line)}); }

void Lines::declare(std::string_view type, const std::string& name, std::string_view value) {
    here().push_back({fmt::format("{} {} = {};", type, name, value), name});
}

void Lines::open(std::string_view line) {
    open_.push_back({line.empty() ? std::string("{") : fmt::format("{} {{", line), "", true});
}

void Lines::close(std::string_view after) {
    internal_check(!open_.empty(), "emit: a block is closed that was not opened");
    CodePart block = std::move(open_.back());
    open_.pop_back();
    block.end = "}" + std::string(after);
    here().push_back(std::move(block));
}

void Lines::append(Lines lines) { std::move(lines.parts_.begin(), lines.parts_.end(), std::back_inserter(here())); }

std::string Lines::text() const {
    internal_check(open_.empty(), "emit: a block is not closed");
    std::vector<CodePart> parts = parts_;
    drop_unused(parts);
    drop_braces(parts);
    std::string out;
    print(parts, 0, out);
    return out;
}

}  // namespace napkin::writers
