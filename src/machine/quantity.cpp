#include "machine/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

struct UnitName {
    std::string_view name;
    double factor;
    double divisor = 1;  ///< 10 / 1e6 is the double nearest to 1e-5, 10 · 1e-6 is not
};

struct Quantity {
    std::string_view kind, example;
    std::vector<UnitName> units;
};

const Quantity& quantity(Dimension dimension) {
    // In the order of Dimension.
    static const Quantity all[] = {
        {"a size",
         "32 KiB",
         {{"TiB", 1099511627776.0},
          {"GiB", 1073741824.0},
          {"MiB", 1048576.0},
          {"KiB", 1024.0},
          {"TB", 1e12},
          {"GB", 1e9},
          {"MB", 1e6},
          {"kB", 1e3},
          {"B", 1.0}}},
        {"a rate",
         "40 GB/s",
         {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1.0}, {"GiB/s", 1073741824.0}, {"MiB/s", 1048576.0}}},
        {"a frequency", "3.7 GHz", {{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1.0}}},
        {"a time", "90 ns", {{"s", 1.0}, {"ms", 1.0, 1e3}, {"us", 1.0, 1e6}, {"ns", 1.0, 1e9}}},
        {"a power", "700 W", {{"W", 1.0}, {"kW", 1e3}}},
        {"a price", "2.99 USD/h", {{"USD/h", 1.0}}},
        {"a number", "", {{"", 1.0}}}};
    return all[static_cast<std::size_t>(dimension)];
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    for (const UnitName& unit : quantity(dimension).units)
        if (text == unit.name) return value * unit.factor / unit.divisor;
    return std::nullopt;
}

std::string quantity_text(double value, Dimension dimension) {
    std::string best;
    for (const UnitName& unit : quantity(dimension).units) {
        // The division may round, which twelve digits mend: 6.1e-8 s is 61 ns. Only a text that reads back exactly will
        // do.
        const double in_unit = value * unit.divisor / unit.factor;
        for (const std::string& number : {fmt::format("{:.12g}", in_unit), fmt::format("{}", in_unit)}) {
            const std::string text = number + (unit.name.empty() ? "" : " ") + std::string(unit.name);
            if (parse_quantity(text, dimension) != value) continue;
            // Between two as short ones, 512 KiB is better than 0.5 MiB.
            const bool shorter = text.size() < best.size() || (text.size() == best.size() && best.starts_with("0."));
            if (best.empty() || shorter) best = text;
        }
    }
    return best.empty() ? fmt::format("{}", value) : best;
}

std::string_view quantity_kind(Dimension dimension) { return quantity(dimension).kind; }

std::string quantity_help(Dimension dimension) {
    const auto& [kind, example, units] = quantity(dimension);
    if (example.empty()) return std::string(kind);
    const auto names = mapped<std::string>(units, [](const UnitName& unit) { return std::string(unit.name); });
    return fmt::format("{} such as \"{}\"{}", kind, example, names.size() > 1 ? " (" + join(names, ", ") + ")" : "");
}

}  // namespace napkin
