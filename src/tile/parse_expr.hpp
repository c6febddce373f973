#pragma once
// Reads the expressions that algebra prints (to_string in expr.hpp) over a given set of names, from a cursor in a text. The first
// error is kept; after it everything read is a placeholder, so that callers check once at the end of a line.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algebra/expr.hpp"
#include "support/source.hpp"

namespace napkin {

/// A place in one line of a text.
class Cursor {
public:
    Cursor(std::shared_ptr<const Source> source, std::size_t begin, std::size_t end)
        : source_(std::move(source)), position_(begin), end_(end) {}

    [[nodiscard]] bool at_end();
    [[nodiscard]] bool peek(std::string_view symbol);
    bool take(std::string_view symbol);  ///< a symbol, or a whole word
    void expect(std::string_view symbol);
    std::string identifier(const char* what);  ///< error: a `what` was expected
    std::int64_t integer();
    std::optional<double> number();  ///< digits, point, exponent; no sign

    [[nodiscard]] std::size_t position();
    void move_to(std::size_t position) { position_ = position; }
    [[nodiscard]] std::string_view rest();
    [[nodiscard]] const std::shared_ptr<const Source>& source() const { return source_; }

    void fail(const std::string& code, std::size_t begin, const std::string& message, const std::string& expected = {},
              const std::string& hint = {});
    [[nodiscard]] const std::optional<Diagnostic>& error() const { return error_; }

private:
    [[nodiscard]] std::string_view word_at_position();

    std::shared_ptr<const Source> source_;
    std::size_t position_, end_;
    std::optional<Diagnostic> error_;
};

/// What names mean: an id, or -1.
struct NameTable {
    std::function<int(const std::string&)> axis, array;
    std::vector<std::string> axes, arrays;  ///< all of them, for hints
};

AxisId parse_axis(Cursor& cursor, const NameTable& names);
Affine parse_affine(Cursor& cursor, const NameTable& names);
/// "[i, j + 1]"; nothing at all for a scalar.
std::vector<Index> parse_indices(Cursor& cursor, const NameTable& names);
Expr parse_expr(Cursor& cursor, const NameTable& names);

}  // namespace napkin
