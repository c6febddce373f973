// `napkin formats`: what the number formats of the language can hold, found by rounding.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "napkin/command.hpp"
#include "support/dtype.hpp"

namespace napkin::cli {

namespace {

using report::Value;

/// 2^-10 where it is a power of two, else the number.
Value power(double value) {
    const int exponent = std::ilogb(value);
    return {value, std::ldexp(1.0, exponent) == value ? fmt::format("2^{}", exponent) : fmt::format("{:.6g}", value)};
}

struct FormatsCommand {
    Options common;
    double number = std::numeric_limits<double>::quiet_NaN();  ///< what is rounded to every format, if it is given
};

ExitCode formats(const FormatsCommand& c) {
    report::Section out;
    report::Table table;
    for (const DType type : all_dtypes) {
        const FormatRange range = format_range(type);
        const std::string text(name(type));
        const auto bits = [&](int count) { return Value{count, is_float(type) ? std::to_string(count) : "-"}; };
        std::vector<report::Figure> row{
            {"", "type", report::words(text)},
            {"bits", "bits", report::whole(8 * bytes(type))},
            {"exponent_bits", "exponent", bits(range.exponent_bits)},
            {"mantissa_bits", "mantissa", bits(range.mantissa_bits)},
            {"bias", "bias", bits(range.bias)},
            {"epsilon", "ε", power(range.epsilon)},
            {"values_a_binade", "values in [1, 2)", report::count(range.values_a_binade)},
            {"largest", "largest", report::number(range.largest, 10)},
            {"smallest_normal", "smallest normal", power(range.smallest_normal)},
            {"smallest_subnormal", "subnormal", power(range.smallest_subnormal)},
            {"decades_up", "", report::data(range.decades_up)},
            {"decades_down", "", report::data(range.decades_down)},
            {"", "10^", report::shown(fmt::format("{:.1f} … {:.1f}", range.decades_down, range.decades_up))}};
        // JSON has no number for infinity and NaN.
        if (!std::isnan(c.number))
            row.push_back({"rounded", fmt::format("{:.10g}", c.number),
                           report::words(fmt::format("{:.10g}", round_to(type, c.number)))});
        table.columns.clear(), table.rows.emplace_back();
        for (const auto& [path, head, value, remark] : row) {
            table.columns.push_back({"", head});
            table.rows.back().push_back(value);
            if (!path.empty()) out.data(fmt::format("formats/{}/{}", text, path), value.data);
        }
    }
    out.table(std::move(table));
    print(out, "formats", c.common);
    return ExitCode::success;
}

}  // namespace

void add_formats(CLI::App& app, Main& main) {
    const auto c = std::make_shared<FormatsCommand>();
    Command command(app, main, "formats", "List the number formats: spacing, range, values a binade", "napkin formats",
                    [c] { return formats(*c); });
    command.real("--round", "NUMBER", c->number, -1e300, 1e300, "What a number is in every format");
    command.output(c->common);
}

}  // namespace napkin::cli
