// Layouts as text, and back; layouts as arithmetic.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "algebra/layout.hpp"
#include "support/limits.hpp"

namespace napkin::layouts {
namespace {

std::string tuple_text(const Layout& layout, std::int64_t Leaf::* field) {
    if (layout.is_leaf()) return std::to_string(layout.leaf().*field);
    std::string out;
    for (const Layout& mode : layout.modes()) out += (out.empty() ? "(" : ",") + tuple_text(mode, field);
    return out + ")";
}

/// A number, or a tuple of such, with where it stands.
struct NumberTree {
    std::int64_t number = 0;
    std::vector<NumberTree> parts;
    std::uint32_t begin = 0, end = 0;
};

class LayoutParser {
public:
    explicit LayoutParser(std::string_view text)
        : source_(std::make_shared<const Source>(Source{"<layout>", std::string(text)})) {}

    Result<Layout> run() {
        auto shape = tree(0);
        if (!shape) return *error_;
        if (!token(':')) return expected("':' between shape and stride");
        auto stride = tree(0);
        if (!stride) return *error_;
        skip_blanks();
        if (at_ < source_->text.size()) return expected("the end of the layout");
        auto layout = zipped(*shape, *stride);
        if (!layout) return layout;
        // A bound on both keeps every later sum and product within 64 bits.
        if (layout->size() >= limits::max_size_product || layout->cosize() >= limits::max_size_product)
            return error(0, at_, "the layout is past 2^62 elements", "smaller sizes or strides");
        return layout;
    }

private:
    void skip_blanks() {
        while (at_ < source_->text.size() && source_->text[at_] == ' ') ++at_;
    }

    bool token(char wanted) {
        skip_blanks();
        if (at_ >= source_->text.size() || source_->text[at_] != wanted) return false;
        ++at_;
        return true;
    }

    std::optional<NumberTree> tree(int depth) {
        skip_blanks();
        NumberTree out;
        out.begin = at_;
        if (depth > limits::max_nesting) return fail(error(at_, at_ + 1, "the layout is nested too deep", ""));
        if (token('(')) {
            do {
                auto part = tree(depth + 1);
                if (!part) return std::nullopt;
                out.parts.push_back(std::move(*part));
            } while (token(','));
            if (!token(')')) return fail(expected("',' or ')'"));
        } else {
            const std::string& text = source_->text;
            const auto [end, code] = std::from_chars(text.data() + at_, text.data() + text.size(), out.number);
            if (code == std::errc::invalid_argument) return fail(expected("a number or '('"));
            at_ = static_cast<std::uint32_t>(end - text.data());
            if (code != std::errc{}) return fail(error(out.begin, at_, "the number is past 64 bits", "at most 2^62"));
        }
        out.end = at_;
        return out;
    }

    Result<Layout> zipped(const NumberTree& shape, const NumberTree& stride) {
        if (shape.parts.size() != stride.parts.size())
            return error(stride.begin, stride.end,
                         fmt::format("the stride has {} where the shape has {}", parts_text(stride), parts_text(shape)),
                         "shape and stride nested alike");
        if (!shape.parts.empty()) {
            std::vector<Layout> modes;
            for (std::size_t i = 0; i < shape.parts.size(); ++i) {
                auto mode = zipped(shape.parts[i], stride.parts[i]);
                if (!mode) return mode;
                modes.push_back(std::move(*mode));
            }
            return Layout(std::move(modes));
        }
        if (shape.number < 1 || shape.number >= limits::max_size_product)
            return error(shape.begin, shape.end, fmt::format("a mode of {} elements", shape.number),
                         "a size from 1 to 2^62");
        if (stride.number < 0 || stride.number >= limits::max_size_product)
            return error(stride.begin, stride.end, fmt::format("a stride of {}", stride.number),
                         "a stride from 0 to 2^62");
        return Layout(shape.number, stride.number);
    }

    static std::string parts_text(const NumberTree& t) {
        return t.parts.empty() ? "a number" : fmt::format("a tuple of {}", t.parts.size());
    }

    [[nodiscard]] Diagnostic error(std::uint32_t begin, std::uint32_t end, std::string message, std::string wanted) const {
        Diagnostic out = layout_error("layout-syntax", std::move(message), std::move(wanted));
        out.range = {source_, begin, end};
        return out;
    }

    [[nodiscard]] Diagnostic expected(const std::string& wanted) const {
        const bool at_end = at_ >= source_->text.size();
        return error(at_, at_ + (at_end ? 0 : 1),
                     at_end ? "the layout ends early" : fmt::format("unexpected '{}'", source_->text[at_]), wanted);
    }

    std::nullopt_t fail(Diagnostic error) {
        error_ = std::move(error);
        return std::nullopt;
    }

    std::shared_ptr<const Source> source_;
    std::uint32_t at_ = 0;
    std::optional<Diagnostic> error_;
};

}  // namespace

std::string to_string(const Layout& layout) {
    return tuple_text(layout, &Leaf::size) + ":" + tuple_text(layout, &Leaf::stride);
}

Result<Layout> parse_layout(std::string_view text) { return LayoutParser(text).run(); }

std::string expression(const Layout& layout, std::string_view index) {
    std::string out;
    for (const Term& t : terms(layout)) {
        std::string digit(index);
        if (t.divisor > 1) digit += fmt::format(" / {}", t.divisor);
        if (!t.last) digit += fmt::format(" % {}", t.size);
        if (t.stride > 1) digit += fmt::format(" * {}", t.stride);
        out += (out.empty() ? "" : " + ") + digit;
    }
    return out.empty() ? "0" : out;
}

}  // namespace napkin::layouts
