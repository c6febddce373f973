#include "report/report.hpp"

#include <fmt/format.h>

#include "support/numbers.hpp"

namespace napkin::report {

Value seconds(double value) { return {value, value < 0 ? "-" + seconds_text(-value) : seconds_text(value)}; }
Value bytes(double value) { return {value, bytes_text(value)}; }
Value count(std::int64_t value) { return {value, count_text(static_cast<double>(value))}; }
Value count(double value) { return {value, count_text(value)}; }
Value number(double value, int digits) { return {value, fmt::format("{:.{}g}", value, digits)}; }
Value percent(double share) { return {share, fmt::format("{:.0f}%", 100 * share)}; }
Value operations(double value) {
    for (const auto& [factor, unit] : {std::pair{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
        if (value >= factor) return {value, fmt::format("{:.3g}{}", value / factor, unit)};
    return number(value);
}
Value whole(std::int64_t value) { return {value, std::to_string(value)}; }
Value words(std::string_view text) { return {text, std::string(text)}; }
Value formula(const Size& size, const SymbolNames& names) {
    const std::string text = to_string(size, names);
    return {text, text, "", std::make_shared<const std::pair<Size, SymbolNames>>(size, names)};
}
Value data(Json value) { return {std::move(value), ""}; }
Value shown(std::string text) { return {Json(Json::value_t::discarded), std::move(text)}; }

Table for_programs(Table table) {
    for (std::vector<Value>& row : table.rows)
        for (Value& value : row) value.text.clear();
    return table;
}

}  // namespace napkin::report
