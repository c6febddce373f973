#include "draw/layout_chart.hpp"
#include "support/ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace napkin::draw {
namespace {

constexpr std::int64_t most_cells = 16384, most_side = 256;

struct Cell {
    std::string text, title;
    double hue = 0;  ///< 0 to 1: of the bank, or of the thread
};

/// Around the circle of hues; light enough for dark text upon it.
std::string cell_fill(double hue) { return fmt::format("hsl({:.0f} 72% 82%)", 360 * hue); }

}  // namespace

Result<svg::Document> layout_chart(const layouts::HeldLayout& layout, const std::string& text,
                                   const LayoutChartOptions& options) {
    const bool held = layout.fragment.has_value();
    const layouts::Layout& l = layout.layout.layout;
    const bool is_grid = !held && l.rank() == 2 && l.mode(1).size() > 1;
    const std::int64_t rows = held ? layout.fragment->rows : is_grid ? l.mode(0).size() : 1;
    const std::int64_t columns = held ? layout.fragment->columns : l.size() / rows;
    if (rows > most_side || columns > most_side || rows * columns > most_cells)
        return Diagnostic{.code = "too-large",
                          .range = {},
                          .message = fmt::format("a grid of {} by {} cells is too large to be read", rows, columns),
                          .expected = fmt::format("at most {} cells a side and {} in all", most_side, most_cells),
                          .hint = "draw one tile of it",
                          .notes = {}};
    std::vector<Cell> cells(static_cast<std::size_t>(rows * columns));
    const auto cell = [&](std::int64_t r, std::int64_t c) -> Cell& { return cells[at(r * columns + c)]; };
    std::size_t longest = 1;
    if (held) {
        const layouts::Fragment& f = *layout.fragment;
        for (std::int64_t t = 0; t < f.threads(); ++t)
            for (std::int64_t v = 0; v < f.values(); ++v) {
                const std::int64_t place = f.map(t + f.threads() * v), r = place % f.rows, c = place / f.rows;
                cell(r, c) = {fmt::format("T{} V{}", t, v),
                              fmt::format("row {}, column {}: value {} of thread {}", r, c, v, t),
                              // Neighbouring threads are far apart in colour.
                              std::fmod(static_cast<double>(t) * 0.382, 1.0)};
            }
    } else {
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) {
                const std::int64_t value = layout.layout(r + rows * c);
                const std::int64_t bank = value * options.value_bytes / options.bank_bytes % options.banks;
                cell(r, c) = {std::to_string(value), fmt::format("({}, {}) → {}, bank {}", r, c, value, bank),
                              static_cast<double>(bank) / static_cast<double>(options.banks)};
            }
    }
    for (const Cell& c : cells) longest = std::max(longest, c.text.size());
    constexpr double left = 52, top = 84, height = 22;
    const double width = std::max(26.0, 5.9 * static_cast<double>(longest) + 8);
    svg::Document out = chart_document(fmt::format("Layout {}", text));
    out.width = std::max(left + width * static_cast<double>(columns) + 20, 420.0);
    out.height = top + height * static_cast<double>(rows) + 20;
    out.add(titled(label(16, 26, fitted(out.title, out.width - 32, 14), "big"), text));
    const std::string legend = held ? fmt::format("T: thread, V: its value; {} threads with {} values",
                                                  layout.fragment->threads(), layout.fragment->values())
                                    : fmt::format("colour: the bank of values of {} bytes, of {} banks of {} bytes",
                                                  options.value_bytes, options.banks, options.bank_bytes);
    out.add(label(16, 46, fitted(legend, out.width - 32), "text-muted"));
    out.description = fmt::format("{} rows by {} columns; {}.", rows, columns, legend);
    for (std::int64_t c = 0; c < columns; ++c)
        out.add(label(left + width * (static_cast<double>(c) + 0.5), top - 8, std::to_string(c), "small text-muted",
                      Anchor::middle));
    for (std::int64_t r = 0; r < rows; ++r) {
        const double y = top + height * static_cast<double>(r);
        out.add(label(left - 8, y + 15, std::to_string(r), "small text-muted", Anchor::end));
        for (std::int64_t c = 0; c < columns; ++c) {
            const double x = left + width * static_cast<double>(c);
            const Cell& of = cell(r, c);
            Element group = svg::group();
            group.add(Element{"title", {}, of.title});
            group.add(rect(x, y, width, height, "cell").set("fill", cell_fill(of.hue)));
            group.add(label(x + width / 2, y + 15, of.text, "small on-cell", Anchor::middle));
            out.add(std::move(group));
        }
    }
    return out;
}

}  // namespace napkin::draw
