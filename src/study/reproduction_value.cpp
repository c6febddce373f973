#include "study/reproduction_value.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "algebra/parse_size.hpp"
#include "support/limits.hpp"
#include "support/result.hpp"
#include "support/source.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using nlohmann::json;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void bad(std::size_t at, std::size_t length, std::string message, std::string expected = "") {
    throw ValueError{at, length, "bad-expression", std::move(message), std::move(expected), ""};
}

// ---- paths -----------------------------------------------------------------------------------------------------------------

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

// ---- what is computed with: numbers, or formulas ----------------------------------------------------------------------------

double number_literal(std::string_view text, std::size_t at) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        bad(at, text.size(), fmt::format("'{}' is no number", text));
    return value;
}

struct Numbers {
    using Value = double;
    static Value literal(std::string_view text, std::size_t at) { return number_literal(text, at); }
    static Value of(const json& value, std::string_view path, std::size_t at) {
        if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
        if (!value.is_number())
            bad(at, path.size(),
                fmt::format("{} is {}", path, value.is_string() ? "the text " + value.dump() : "no number"), "a number");
        return value.get<double>();
    }
    static Value quotient(Value a, Value b, std::size_t at) {
        if (b == 0) bad(at, 1, "division by zero");
        return a / b;
    }
    static Value power(Value a, Value b, std::size_t) { return std::pow(a, b); }
    static Value negative(Value a) { return -a; }
};

struct Formulas {
    using Value = Size;
    SymbolTable& symbols;

    static Value literal(std::string_view text, std::size_t at) {
        const double value = number_literal(text, at);
        if (value != std::floor(value) || value > 0x1p53) bad(at, text.size(), "a formula's numbers are whole");
        return {static_cast<std::int64_t>(value)};
    }
    [[nodiscard]] Value of(const json& value, std::string_view path, std::size_t at) const {
        if (value.is_number()) return literal(fmt::format("{:.17g}", value.get<double>()), at);
        const auto parsed = parse_size(value.is_string() ? value.get<std::string>() : "", symbols);
        if (const auto* size = std::get_if<Size>(&parsed)) return *size;
        bad(at, path.size(), fmt::format("{} is no formula: {}", path, value.dump()), "a size expression");
    }
    [[nodiscard]] Value quotient(const Value& a, const Value& b, std::size_t at) const {
        if (b.terms().size() != 1) bad(at, 1, "division by " + to_string(b, symbols.names()), "one term to divide by");
        return a / b;
    }
    static Value power(const Value& a, const Value& b, std::size_t at) {
        const auto exponent = b.as_constant();
        const auto raised = exponent ? a.pow(*exponent) : std::nullopt;
        if (!raised) bad(at, 1, "a power that is no size expression");
        return *raised;
    }
    static Value negative(const Value& a) { return Size(-1) * a; }
};

// ---- expressions -----------------------------------------------------------------------------------------------------------

/// Recursive descent; with `names` it only collects the results that are named.
template <class Domain>
class Evaluation {
public:
    using Value = typename Domain::Value;
    Evaluation(std::string_view text, const Results* results, std::vector<ResultName>* names, Domain domain)
        : text_(text), results_(results), names_(names), domain_(domain) {}

    Value run() {
        Value value = sum();
        blanks();
        if (at_ < text_.size())
            bad(at_, 1, fmt::format("'{}' is left over", text_.substr(at_)), "an operator or the end");
        return value;
    }

private:
    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    bool take(char c) {
        blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    Value sum() {
        if (++depth_ > limits::max_nesting) bad(at_, 1, "too many parentheses inside each other");
        Value value = product();
        while (true) {
            if (take('+'))
                value = value + product();
            else if (take('-'))
                value = value - product();
            else
                break;
        }
        --depth_;
        return value;
    }

    Value product() {
        Value value = signed_power();
        while (true) {
            const std::size_t at = at_;
            if (take('*'))
                value = value * signed_power();
            else if (take('/'))
                value = quotient(value, signed_power(), at);
            else
                return value;
        }
    }

    Value signed_power() {
        if (take('-')) return domain_.negative(signed_power());
        Value base = atom();
        const std::size_t at = at_;
        if (!take('^')) return base;
        if (++depth_ > limits::max_nesting) bad(at_, 1, "too many powers inside each other");
        const Value exponent = signed_power();
        --depth_;
        return names_ ? base : domain_.power(base, exponent, at);
    }

    Value quotient(const Value& a, const Value& b, std::size_t at) { return names_ ? a : domain_.quotient(a, b, at); }

    Value atom() {
        blanks();
        const std::size_t at = at_;
        if (take('(')) {
            Value value = sum();
            if (!take(')')) bad(at, 1, "this parenthesis is not closed", ")");
            return value;
        }
        if (at < text_.size() && (is_digit(text_[at]) || text_[at] == '.')) {
            while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.' || text_[at_] == 'e' ||
                                          ((text_[at_] == '-' || text_[at_] == '+') && text_[at_ - 1] == 'e')))
                ++at_;
            return domain_.literal(text_.substr(at, at_ - at), at);
        }
        if (at >= text_.size() || !is_letter(text_[at])) bad(at, 1, "a value is missing", "a number, a path or (");
        const std::string_view path = path_here();
        if (path == "count") return counted(at);
        const auto found = find(path, at);
        Value value = domain_.literal("0", at);
        for (const json* part : found) value = value + domain_.of(*part, path, at);
        return value;
    }

    std::string_view path_here() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\n' && text_[at_] != '(' && text_[at_] != ')')
            ++at_;
        return text_.substr(begin, at_ - begin);
    }

    Value counted(std::size_t at) {
        if (!take('(')) bad(at, 5, "count has no argument", "count(PATH)");
        blanks();
        const std::size_t path_at = at_;
        const auto found = find(path_here(), path_at);
        if (!take(')')) bad(at, 5, "count takes one path", "count(PATH)");
        std::size_t number = found.size();
        if (number == 1 && found[0]->is_structured()) number = found[0]->size();
        return domain_.literal(std::to_string(number), at);
    }

    std::vector<const json*> find(std::string_view path, std::size_t at) {
        const std::string name(path.substr(0, path.find('/')));
        if (name.size() == path.size())
            bad(at, std::max<std::size_t>(1, path.size()), fmt::format("'{}' is no path", path),
                "a result's name, /, and keys");
        if (names_) {
            names_->push_back({name, at});
            return {};
        }
        const auto result = results_->find(name);
        if (result == results_->end()) bad(at, name.size(), fmt::format("there is no result '{}'", name));
        return Finder(path, at).run(result->second);
    }

    std::string_view text_;
    const Results* results_;
    std::vector<ResultName>* names_;
    Domain domain_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

std::variant<double, ValueError> number_of(std::string_view expression, const Results& results) {
    try {
        const double value = Evaluation<Numbers>(expression, &results, nullptr, {}).run();
        if (!std::isfinite(value)) bad(0, expression.size(), "the value is not finite");
        return value;
    } catch (const ValueError& error) {
        return error;
    }
}

std::variant<Size, ValueError> formula_of(std::string_view expression, const Results& results, SymbolTable& symbols) {
    try {
        return Evaluation<Formulas>(expression, &results, nullptr, {symbols}).run();
    } catch (const ValueError& error) {
        return error;
    } catch (const InternalError&) {
        // The algebra says that coefficients pass 64 bits; here they are the file's.
        return ValueError{0, expression.size(), "bad-expression", "numbers past 64 bits", "", ""};
    }
}

std::variant<std::vector<ResultName>, ValueError> names_in(std::string_view expression) {
    try {
        std::vector<ResultName> names;
        (void)Evaluation<Numbers>(expression, nullptr, &names, {}).run();
        return names;
    } catch (const ValueError& error) {
        return error;
    }
}

}  // namespace napkin
