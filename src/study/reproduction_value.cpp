#include "study/reproduction_value.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "study/arithmetic.hpp"
#include "study/parse_size.hpp"
#include "support/result.hpp"
#include "support/source.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using nlohmann::json;

[[noreturn]] void bad(std::size_t at, std::size_t length, std::string message, std::string expected = "") {
    throw ValueError{at, length, "bad-expression", std::move(message), std::move(expected), ""};
}

// ---- paths
// ------------------------------------------------------------

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// The text of a JSON scalar, as KEY=VALUE compares it.
std::string scalar_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

bool chosen(const json& element, const std::string& selector) {
    for (const std::string& condition : split(selector, '&')) {
        const std::size_t sign = condition.find('=');
        const auto value = element.find(condition.substr(0, sign));
        if (value == element.end() || scalar_text(*value) != condition.substr(sign + 1)) return false;
    }
    return true;
}

/// Finds what a path means in a result; tells where it stops being one.
class Finder {
public:
    Finder(std::string_view path, std::size_t at) : path_(path), at_(at), segments_(split(path, '/')) {}

    std::vector<const json*> run(const json& result) {
        walk(result, 1);
        if (found_.empty()) throw missing_;
        return found_;
    }

private:
    void walk(const json& value, std::size_t depth) {
        if (depth == segments_.size()) {
            found_.push_back(&value);
            return;
        }
        const std::string& segment = segments_[depth];
        const bool selects = segment.find('=') != std::string::npos;
        if (segment == "*" || selects) {
            bool any = false;
            if (value.is_structured())
                for (const json& element : value) {
                    if (selects && !(element.is_object() && chosen(element, segment))) continue;
                    any = true;
                    walk(element, depth + 1);
                }
            if (!any) miss(depth, value);
        } else if (value.is_object() && value.contains(segment)) {
            walk(value.at(segment), depth + 1);
        } else if (value.is_array() && !segment.empty() && segment.find_first_not_of("0123456789") == std::string::npos &&
                   segment.size() < 10 && std::stoul(segment) < value.size()) {
            walk(value.at(std::stoul(segment)), depth + 1);
        } else {
            miss(depth, value);
        }
    }

    void miss(std::size_t depth, const json& value) {
        std::string above = segments_[0];
        for (std::size_t i = 1; i < depth; ++i) above += "/" + segments_[i];
        std::vector<std::string> keys;
        if (value.is_object())
            for (const auto& entry : value.items()) keys.push_back(entry.key());
        missing_ = {
            at_, path_.size(), "no-such-value", fmt::format("there is no '{}' in {}", segments_[depth], above), "", ""};
        if (!keys.empty()) missing_.expected = "one of " + join(keys, ", ");
        if (value.is_array()) missing_.expected = fmt::format("one of its {} elements", value.size());
        missing_.hint = did_you_mean(segments_[depth], keys);
    }

    std::string_view path_;
    std::size_t at_;
    std::vector<std::string> segments_;
    std::vector<const json*> found_;
    ValueError missing_;
};

/// Paths become names p0, p1, …
struct Paths {
    struct Path {
        std::string_view text;
        std::size_t at = 0;
    };
    Reworded words;
    std::vector<Path> paths;

    explicit Paths(std::string_view text) {
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end = at + 1;
            std::string piece(1, text[at] == '\n' ? ' ' : text[at]);
            if (text[at] == '#') throw ArithmeticError{at, 1, "'#' has no meaning here", "", ""};
            const bool begins = is_letter(text[at]) && (at == 0 || !is_name_character(text[at - 1]));
            if (const std::size_t stop = std::min(text.find_first_of(" \n()", at), text.size());
                begins && text.substr(at, stop - at).find('/') != std::string_view::npos) {
                piece = fmt::format("p{}", paths.size());
                paths.push_back({text.substr(at, stop - at), at});
                end = stop;
            }
            words.add(piece, at, end);
            at = end;
        }
    }

    /// The path that the name stands for.
    [[nodiscard]] const Path& of(const AstName& name, const SourceRange& range) const {
        for (std::size_t i = 0; i < paths.size(); ++i)
            if (name.name == fmt::format("p{}", i) && paths[i].at == words.begin(range)) return paths[i];
        bad_arithmetic(words, range, fmt::format("'{}' is no path", name.name), "a result's name, /, and keys");
    }

    [[nodiscard]] std::vector<const json*> find(const Path& path, const Results& results) const {
        const std::string name(path.text.substr(0, path.text.find('/')));
        const auto result = results.find(name);
        if (result == results.end()) bad(path.at, name.size(), fmt::format("there is no result '{}'", name));
        return Finder(path.text, path.at).run(result->second);
    }

    [[nodiscard]] const AstNode& argument_of_count(const AstCall& n, const SourceRange& range) const {
        if (n.name.text == "count" && n.arguments.size() == 1 && std::holds_alternative<AstName>(n.arguments[0].v))
            return n.arguments[0];
        bad_arithmetic(words, range, fmt::format("{} is no function of a path", n.name.text), "count(PATH)");
    }
    [[nodiscard]] std::int64_t count(const AstCall& n, const SourceRange& range, const Results& results) const {
        const AstNode& argument = argument_of_count(n, range);
        const auto found = find(of(std::get<AstName>(argument.v), argument.range), results);
        const bool is_list = found.size() == 1 && found[0]->is_structured();
        return static_cast<std::int64_t>(is_list ? found[0]->size() : found.size());
    }
};

// ---- what is computed with: numbers, or formulas
// ------------------------------------------------------------

struct Numbers {
    using Value = double;
    const Paths& paths;
    const Results& results;

    static double number(const AstNumber& n, const SourceRange&) { return n.value; }
    [[nodiscard]] double name(const AstName& n, const SourceRange& range) const {
        const Paths::Path& path = paths.of(n, range);
        double sum = 0;
        for (const json* value : paths.find(path, results)) {
            if (!value->is_boolean() && !value->is_number())
                bad(path.at, path.text.size(),
                    fmt::format("{} is {}", path.text, value->is_string() ? "the text " + value->dump() : "no number"),
                    "a number");
            sum += value->is_boolean() ? (value->get<bool>() ? 1 : 0) : value->get<double>();
        }
        return sum;
    }
    [[nodiscard]] double call(const AstCall& n, const SourceRange& range) const {
        return static_cast<double>(paths.count(n, range, results));
    }
    [[nodiscard]] double quotient(double a, double b, const AstNode& divisor) const {
        if (b == 0) bad_arithmetic(paths.words, divisor.range, "division by zero");
        return a / b;
    }
    static double power(double a, double b, const AstNode&) { return std::pow(a, b); }
};

struct Formulas : SizeArithmetic {
    const Paths& paths;
    const Results& results;

    [[nodiscard]] Size name(const AstName& n, const SourceRange& range) const {
        const Paths::Path& path = paths.of(n, range);
        Size sum;
        for (const json* value : paths.find(path, results)) {
            if (value->is_number()) {
                sum += number({value->get<double>(), false}, range);
                continue;
            }
            const auto parsed = parse_size(value->is_string() ? value->get<std::string>() : "", symbols);
            const auto* size = std::get_if<Size>(&parsed);
            if (!size)
                bad(path.at, path.text.size(), fmt::format("{} is no formula: {}", path.text, value->dump()),
                    "a size expression");
            sum += *size;
        }
        return sum;
    }
    [[nodiscard]] Size call(const AstCall& n, const SourceRange& range) const { return paths.count(n, range, results); }
};

/// Nothing is computed: names and calls are looked at.
struct Looks {
    using Value = double;
    const Paths& paths;
    static double number(const AstNumber& n, const SourceRange&) { return n.value; }
    [[nodiscard]] double name(const AstName& n, const SourceRange& range) const {
        static_cast<void>(paths.of(n, range));
        return 0;
    }
    [[nodiscard]] double call(const AstCall& n, const SourceRange& range) const {
        const AstNode& argument = paths.argument_of_count(n, range);
        return name(std::get<AstName>(argument.v), argument.range);
    }
    static double quotient(double, double, const AstNode&) { return 0; }
    static double power(double, double, const AstNode&) { return 0; }
};

ValueError as_value_error(const ArithmeticError& e) {
    return {e.at, e.length, "bad-expression", e.message, e.expected, e.hint};
}

/// One number: digits with commas between them, a point, an exponent.
std::optional<PrintedFigure> printed_number(std::string text, bool about) {
    std::erase(text, ',');
    const std::size_t exponent_at = std::min(text.find('e'), text.size());
    const std::string digits = text.substr(0, exponent_at);
    const std::size_t point = std::min(digits.find('.'), digits.size());
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (digits.empty() || !is_digit(digits[0]) || digits.find_first_not_of("0123456789.") != std::string::npos ||
        *end != '\0' || !std::isfinite(value))
        return std::nullopt;
    PrintedFigure out;
    out.decimals = point == digits.size() ? 0 : static_cast<int>(digits.size() - point - 1);
    int last = -out.decimals;
    if (about && point == digits.size())
        for (std::size_t i = digits.size(); i > 1 && digits[i - 1] == '0'; --i) ++last;
    if (exponent_at < text.size()) last += static_cast<int>(std::strtol(text.c_str() + exponent_at + 1, nullptr, 10));
    const double half = 0.5 * std::pow(10.0, last);
    out.least = value - half, out.most = value + half;
    return out;
}

}  // namespace

std::optional<PrintedFigure> printed_figure(std::string_view text) {
    constexpr std::string_view dash = "–";
    const bool about = text.starts_with('~');
    if (about) text.remove_prefix(1);
    const std::size_t at = text.find(dash);
    auto figure = printed_number(std::string(text.substr(0, at)), about);
    if (!figure || at == std::string_view::npos) return figure;
    const auto most = printed_number(std::string(text.substr(at + dash.size())), about);
    if (!most) return std::nullopt;
    figure->most = most->most;
    return figure;
}

std::variant<double, ValueError> number_of(std::string_view expression, const Results& results) {
    try {
        const Paths paths(expression);
        Numbers numbers{paths, results};
        const double value = evaluate_arithmetic(paths.words, paths.words.parse(), numbers);
        if (!std::isfinite(value)) bad(0, expression.size(), "the value is not finite");
        return value;
    } catch (const ValueError& error) {
        return error;
    } catch (const ArithmeticError& error) {
        return as_value_error(error);
    }
}

std::variant<Size, ValueError> formula_of(std::string_view expression, const Results& results, SymbolTable& symbols) {
    try {
        const Paths paths(expression);
        Formulas formulas{{paths.words, symbols}, paths, results};
        return evaluate_arithmetic(paths.words, paths.words.parse(), formulas);
    } catch (const ValueError& error) {
        return error;
    } catch (const ArithmeticError& error) {
        return as_value_error(error);
    } catch (const InternalError&) {
        // The algebra says that coefficients pass 64 bits; here they are the file's.
        return ValueError{0, expression.size(), "bad-expression", "numbers past 64 bits", "", ""};
    }
}

std::variant<std::string, ValueError> text_of(std::string_view path, const Results& results) {
    try {
        const Paths paths(path);
        if (paths.paths.size() != 1 || paths.paths[0].text != path)
            bad(0, path.size(), fmt::format("'{}' is no path alone", path), "a result's name, /, and keys");
        const auto found = paths.find(paths.paths[0], results);
        if (found.size() != 1) bad(0, path.size(), fmt::format("{} finds {} values", path, found.size()), "one");
        return scalar_text(*found[0]);
    } catch (const ValueError& error) {
        return error;
    } catch (const ArithmeticError& error) {
        return as_value_error(error);
    }
}

std::variant<std::vector<ResultName>, ValueError> names_in(std::string_view expression) {
    try {
        const Paths paths(expression);
        Looks looks{paths};
        (void)evaluate_arithmetic(paths.words, paths.words.parse(), looks);
        std::vector<ResultName> names;
        for (const Paths::Path& path : paths.paths)
            names.push_back({std::string(path.text.substr(0, path.text.find('/'))), path.at});
        return names;
    } catch (const ArithmeticError& error) {
        return as_value_error(error);
    }
}

}  // namespace napkin
