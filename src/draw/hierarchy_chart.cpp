#include "draw/hierarchy_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "draw/plot.hpp"
#include "machine/peaks.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

/// The paper's colours: memory black, the core's memory orange, what threads have green; what only caches lies between
/// and is pale.
std::string level_color(const Machine& machine, std::size_t level) {
    const std::size_t core = core_memory_level(machine);
    return level < core ? "level-0" : level == core ? "level-1" : "level-2";
}

std::string count_of(const Level& level) {
    const auto n = static_cast<std::int64_t>(level.instances.value);
    return n == 1 ? "1" : fmt::format("{}", n);
}

}  // namespace

svg::Document hierarchy_chart(const Machine& machine) {
    constexpr double box_height = 52, gap = 62, middle = 300, top = 70;
    svg::Document out = chart_document(fmt::format("Hierarchy of {}", machine.name));
    out.width = 720;
    add_title(out);
    out.add(label(16, 44, fitted(machine.description, out.width - 32), "text-muted"));
    std::vector<std::string> said;
    double y = top;
    for (std::size_t l = 0; l < machine.levels.size(); ++l) {
        const Level& level = machine.levels[l];
        const std::string color = level_color(machine, l);
        const double n = level.instances.value;
        // A family of instances is drawn as three and dots: what they are to each other matters, not how many there
        // are.
        const int boxes = n > 1 ? 3 : 1;
        const double width = boxes == 1 ? 340 : 124, step = width + 16, left = middle - (boxes * step - 16) / 2;
        if (l > 0) {
            const double rate = total_bandwidth(level);
            for (int b = 0; b < boxes; ++b) {
                const double x = left + b * step + width / 2;
                out.add(line(middle + (x - middle) * (machine.levels[l - 1].instances.value > 1 ? 1 : 0.6), y - gap, x,
                             y, "thick " + stroked(color)));
            }
            const std::string text = rate > 0 ? fmt::format("{}{}", quantity_text(rate, "B/s"), n > 1 ? " together" : "")
                                              : "rate unknown";
            out.add(label(middle + 226, y - gap / 2 + 4, text, inked(color)));
            said.push_back(fmt::format("{} to {}: {}", machine.levels[l - 1].name, level.name, text));
        }
        for (int b = 0; b < boxes; ++b) {
            const double x = left + b * step;
            Element box = rect(x, y, width, box_height, (level.caches ? "dashed " : "") + tint(color), 6);
            out.add(titled(std::move(box),
                           fmt::format("{}: {} each, {} of them{}", level.name, bytes_text(level.capacity_bytes.value),
                                       count_of(level), level.caches ? ", a cache" : "")));
            out.add(label(x + width / 2, y + 22, fitted(level.name, width - 8, 12), "strong", Anchor::middle));
            out.add(label(x + width / 2, y + 40, bytes_text(level.capacity_bytes.value), "small", Anchor::middle));
        }
        if (boxes > 1) {
            out.add(label(left + 3 * step, y + 31, fmt::format("… {} of them", count_of(level)), "text-muted"));
        } else if (level.caches) {
            out.add(label(middle + 182, y + 31, "cache", "text-muted"));
        }
        double link = y + 14;
        for (const CrossTransfer& cross : machine.cross_transfers) {
            if (cross.level != level.name || cross.bandwidth_bytes_per_s.empty()) continue;
            // Among instances of the level: an arc beside them.
            out.add(path(fmt::format("M{} {}C{} {} {} {} {} {}", svg::number_text(left), svg::number_text(y + 10),
                                     svg::number_text(left - 24), svg::number_text(y + 8), svg::number_text(left - 24),
                                     svg::number_text(y + box_height - 8), svg::number_text(left),
                                     svg::number_text(y + box_height - 10)),
                         "thick dashed " + stroked(color)));
            std::vector<std::string> rates;
            for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s)
                rates.push_back(fmt::format("{}: {}", joined, quantity_text(rate.value, "B/s")));
            out.add(titled(label(12, link, fitted(cross.name, 92, 10), "small " + inked(color)), join(rates, ", ")));
            out.add(label(12, link + 13, fitted(rates.front(), 92, 10), "small text-muted"));
            link += 30;
            said.push_back(fmt::format("{} joins {}: {}", cross.name, level.name, join(rates, ", ")));
        }
        y += box_height + gap;
    }
    y += 4 - gap + 34;
    out.add(line(middle, y - 34, middle, y - 6, "thick no-fill level-3"));
    std::vector<std::string> units;
    for (const Unit& unit : machine.units)
        for (const auto& [type, rate] : unit.per_clock)
            if (const double peak = peak_per_s(machine, unit.name, type);
                (unit.name == "tensor" || unit.name == "fma") && peak > 0)
                units.push_back(fmt::format("{} {} {}", unit.name, name(type), quantity_text(peak, "FLOP/s")));
    constexpr std::size_t columns = 3;
    const double rows = static_cast<double>((units.size() + columns - 1) / columns), height = 34 + 17 * rows;
    out.add(rect(40, y - 6, out.width - 80, height, "tint fill-level-3 level-3", 6));
    out.add(
        label(52, y + 13,
              fmt::format("units of {} cores at {}", machine.num_cores(), quantity_text(machine.clock_hz.value, "Hz")),
              "strong"));
    for (std::size_t u = 0; u < units.size(); ++u)
        out.add(label(52 + 212 * static_cast<double>(u % columns), y + 33 + 17 * static_cast<double>(u / columns),
                      units[u], "small"));
    out.height = y + height + 12;
    for (const Level& level : machine.levels)
        said.push_back(fmt::format("{}: {} of {}", level.name, count_of(level), bytes_text(level.capacity_bytes.value)));
    out.description = join(said, "; ") + ".";
    return out;
}

}  // namespace napkin::draw
