#include "syntax/match_brackets.hpp"

#include <fmt/format.h>

#include <utility>

#include "support/limits.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class BracketMatcher {
public:
    BracketMatcher(LogicalLine& line, const std::shared_ptr<const Source>& source, Diagnostics& diagnostics)
        : line_(line), source_(source), diagnostics_(diagnostics) {}

    void run() {
        const std::size_t before = diagnostics_.count();
        for (const Token& t : line_.tokens) {
            if (is_opening(t)) {
                if (open_.size() >= 4 * limits::max_nesting) {
                    diagnostics_.error(Code::nesting_too_deep, range(t), "brackets are nested too deep",
                                       fmt::format("at most {} levels", limits::max_nesting));
                    break;
                }
                open_.push_back(kept_.size());
            } else if (is_closing(t)) {
                if (!match(t)) continue;
            } else if (is_symbol(t, ",") && !open_.empty()) {
                kept_[open_.back()].comma_inside = true;
            }
            kept_.push_back(t);
        }
        const std::uint32_t end = kept_.empty() ? line_.tokens.back().end : kept_.back().end;
        while (!open_.empty()) close(end);
        if (!kept_.empty()) kept_.push_back({TokenKind::end, {}, end, end});
        line_.tokens = std::move(kept_);
        line_.broken |= diagnostics_.count() > before;
    }

private:
    SourceRange range(const Token& t) const { return {source_, t.begin, t.end}; }

    /// False where it closes nothing.
    bool match(const Token& closing) {
        const std::string_view wanted = closing.text == ")" ? "(" : "[";
        // With the matching one further out, the inner ones were forgotten; else this one is too many.
        if (none_of(open_, [&](std::size_t i) { return kept_[i].text == wanted; })) {
            diagnostics_.error(Code::unmatched_bracket, range(closing), fmt::format("'{}' closes nothing", closing.text));
            return false;
        }
        while (kept_[open_.back()].text != wanted) close(closing.begin);
        open_.pop_back();
        return true;
    }

    /// Reports the innermost open bracket and closes it where it should have been.
    void close(std::uint32_t where) {
        const Token& t = kept_[open_.back()];
        const std::string_view closing = t.text == "(" ? ")" : "]";
        if (!line_.broken && !std::exchange(unclosed_reported_, true))
            diagnostics_.error(Code::unclosed_bracket, range(t), fmt::format("'{}' is never closed", t.text),
                               fmt::format("'{}'", closing));
        kept_.push_back({TokenKind::symbol, closing, where, where});
        open_.pop_back();
    }

    LogicalLine& line_;
    const std::shared_ptr<const Source>& source_;
    Diagnostics& diagnostics_;
    std::vector<std::size_t> open_;  ///< places of what is open in `kept`
    std::vector<Token> kept_;
    bool unclosed_reported_ = false;  ///< one forgotten bracket leaves those around it open
};

}  // namespace

void match_brackets(LogicalLine& line, const std::shared_ptr<const Source>& source, Diagnostics& diagnostics) {
    BracketMatcher(line, source, diagnostics).run();
}

}  // namespace napkin
