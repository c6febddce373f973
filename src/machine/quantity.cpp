#include "machine/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

namespace napkin {
namespace {

struct UnitName {
    std::string_view name;
    double factor;
    double divisor = 1;  ///< 10 / 1e6 is the double nearest to 1e-5, 10 · 1e-6 is not
};

const std::vector<UnitName>& units(Dimension dimension) {
    static const std::vector<UnitName> bytes{{"TiB", 1099511627776.0},
                                             {"GiB", 1073741824.0},
                                             {"MiB", 1048576.0},
                                             {"KiB", 1024.0},
                                             {"TB", 1e12},
                                             {"GB", 1e9},
                                             {"MB", 1e6},
                                             {"kB", 1e3},
                                             {"B", 1.0}};
    static const std::vector<UnitName> bandwidth{{"TB/s", 1e12},      {"GB/s", 1e9}, {"MB/s", 1e6},
                                                 {"kB/s", 1e3},       {"B/s", 1.0},  {"GiB/s", 1073741824.0},
                                                 {"MiB/s", 1048576.0}};
    static const std::vector<UnitName> hertz{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1.0}};
    static const std::vector<UnitName> seconds{{"s", 1.0}, {"ms", 1.0, 1e3}, {"us", 1.0, 1e6}, {"ns", 1.0, 1e9}};
    static const std::vector<UnitName> watts{{"W", 1.0}, {"kW", 1e3}};
    static const std::vector<UnitName> usd_per_hour{{"USD/h", 1.0}};
    static const std::vector<UnitName> number{{"", 1.0}};
    switch (dimension) {
        case Dimension::bytes: return bytes;
        case Dimension::bytes_per_s: return bandwidth;
        case Dimension::hertz: return hertz;
        case Dimension::seconds: return seconds;
        case Dimension::watts: return watts;
        case Dimension::usd_per_hour: return usd_per_hour;
        case Dimension::number: return number;
    }
    return number;
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    for (const UnitName& unit : units(dimension))
        if (text == unit.name) return value * unit.factor / unit.divisor;
    return std::nullopt;
}

std::string quantity_text(double value, Dimension dimension) {
    std::string best;
    for (const UnitName& unit : units(dimension)) {
        // The division may round, which twelve digits mend: 6.1e-8 s is 61 ns. Only a text that reads back exactly will do.
        const double in_unit = value * unit.divisor / unit.factor;
        for (const std::string& number : {fmt::format("{:.12g}", in_unit), fmt::format("{}", in_unit)}) {
            const std::string text = number + (unit.name.empty() ? "" : " ") + std::string(unit.name);
            if (parse_quantity(text, dimension) != value) continue;
            // Of two as short ones, 512 KiB rather than 0.5 MiB.
            const bool shorter = text.size() < best.size() || (text.size() == best.size() && best.starts_with("0."));
            if (best.empty() || shorter) best = text;
        }
    }
    return best.empty() ? fmt::format("{}", value) : best;
}

std::string quantity_help(Dimension dimension) {
    std::string names;
    for (const UnitName& unit : units(dimension)) names += (names.empty() ? "" : ", ") + std::string(unit.name);
    switch (dimension) {
        case Dimension::bytes: return "a size such as \"32 KiB\" (" + names + ")";
        case Dimension::bytes_per_s: return "a rate such as \"40 GB/s\" (" + names + ")";
        case Dimension::hertz: return "a frequency such as \"3.7 GHz\" (" + names + ")";
        case Dimension::seconds: return "a time such as \"90 ns\" (" + names + ")";
        case Dimension::watts: return "a power such as \"700 W\" (" + names + ")";
        case Dimension::usd_per_hour: return "a price such as \"2.99 USD/h\"";
        case Dimension::number: return "a number";
    }
    return "a number";
}

}  // namespace napkin
