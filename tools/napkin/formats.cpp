// `napkin formats`: what the number formats of the language can hold, found by rounding.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "napkin/command.hpp"
#include "support/dtype.hpp"
#include "support/numbers.hpp"

namespace napkin::cli {

namespace {

Json format_json(DType type, const FormatRange& range) {
    return {{"bits", 8 * bytes(type)},
            {"exponent_bits", range.exponent_bits},
            {"mantissa_bits", range.mantissa_bits},
            {"bias", range.bias},
            {"epsilon", range.epsilon},
            {"values_a_binade", range.values_a_binade},
            {"largest", range.largest},
            {"smallest_normal", range.smallest_normal},
            {"smallest_subnormal", range.smallest_subnormal},
            {"decades_up", range.decades_up},
            {"decades_down", range.decades_down}};
}

/// 2^-10 where it is a power of two, else the number.
std::string power_text(double value) {
    const int exponent = std::ilogb(value);
    return std::ldexp(1.0, exponent) == value ? fmt::format("2^{}", exponent) : fmt::format("{:.6g}", value);
}

struct FormatsCommand {
    Options common;
    double number = std::numeric_limits<double>::quiet_NaN();  ///< what is rounded to every format, if it is given
};

ExitCode formats(const FormatsCommand& c) {
    Json document = json_document("formats");
    const bool rounds = !std::isnan(c.number);
    std::vector<std::vector<std::string>> rows{{"type", "bits", "exponent", "mantissa", "bias", "ε", "values in [1, 2)",
                                                "largest", "smallest normal", "subnormal", "10^"}};
    if (rounds) rows[0].push_back(fmt::format("{:.10g}", c.number));
    for (const DType type : all_dtypes) {
        const FormatRange range = format_range(type);
        const std::string text(name(type));
        document["formats"][text] = format_json(type, range);
        const auto bits = [&](int count) { return is_float(type) ? std::to_string(count) : "-"; };
        rows.push_back({text, std::to_string(8 * bytes(type)), bits(range.exponent_bits), bits(range.mantissa_bits),
                        bits(range.bias), power_text(range.epsilon), count_text(range.values_a_binade),
                        fmt::format("{:.10g}", range.largest), power_text(range.smallest_normal),
                        power_text(range.smallest_subnormal),
                        fmt::format("{:.1f} … {:.1f}", range.decades_down, range.decades_up)});
        if (!rounds) continue;
        // JSON has no number for infinity and NaN.
        rows.back().push_back(fmt::format("{:.10g}", round_to(type, c.number)));
        document["formats"][text]["rounded"] = rows.back().back();
    }
    c.common.json ? print(document) : print(table(rows, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
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
