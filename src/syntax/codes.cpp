#include "syntax/codes.hpp"

#include <array>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::string name(Code code) {
    static constexpr std::array names{
#define NAPKIN_CODE(name) #name,
        NAPKIN_SYNTAX_CODES(NAPKIN_CODE)
#undef NAPKIN_CODE
    };
    std::string text = names[at(code)];
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

Diagnostic& Diagnostics::error(std::string code, SourceRange range, std::string message, std::string expected,
                               std::string hint) {
    ++count_;
    // What starts where an error stands already is most often its consequence.
    const bool again = any_of(errors_, [&](const Diagnostic& d) {
        return d.range.source == range.source && d.range.begin == range.begin && d.range.end == range.end;
    });
    if (again || errors_.size() >= limits::max_errors) return dummy_ = Diagnostic{};
    errors_.push_back(
        {std::move(code), std::move(range), std::move(message), std::move(expected), std::move(hint), {}, ExitCode::bad_input});
    return errors_.back();
}

bool Diagnostics::full() const { return errors_.size() >= limits::max_errors; }

std::vector<Diagnostic> Diagnostics::take() {
    std::vector<const Source*> order;
    const auto place = [&](const Diagnostic& d) {
        const auto at = find(order, d.range.source.get());
        if (at != order.end()) return static_cast<std::size_t>(at - order.begin());
        order.push_back(d.range.source.get());
        return order.size() - 1;
    };
    std::vector<std::array<std::size_t, 3>> keys;
    for (std::size_t i = 0; i < errors_.size(); ++i) keys.push_back({place(errors_[i]), errors_[i].range.begin, i});
    sort(keys);
    auto sorted = mapped<Diagnostic>(keys, [&](const auto& key) { return std::move(errors_[key[2]]); });
    errors_.clear();
    count_ = 0;
    return sorted;
}

std::string counted(std::size_t n, const std::string& what) {
    if (n == 1) return "1 " + what;
    if (what == "axis") return std::to_string(n) + " axes";
    return std::to_string(n) + " " + (what == "index" ? "indices" : what + "s");
}

}  // namespace napkin
