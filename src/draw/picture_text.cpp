// A picture in characters: wires as box drawing, labels on them. Heights become line_signs in order, x becomes columns
// by scale.
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "draw/diagram_picture.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

constexpr double column_width = 6.6;
enum : unsigned { up = 1, down = 2, left = 4, right = 8 };
constexpr std::array<std::string_view, 16> line_signs = {" ", "╵", "╷", "│", "╴", "╯", "╮", "┤",
                                                         "╶", "╰", "╭", "├", "─", "┴", "┬", "┼"};

struct CanvasCell {
    std::string text;   ///< over the line_signs; empty: none
    unsigned mask = 0;  ///< line_signs to the neighbours
    bool is_dashed = false;
    int level = 0;
};

class Canvas {
public:
    explicit Canvas(const Picture& picture) {
        // Everything that has a height of its own; those that are nearly equal share a line.
        std::set<double> heights;
        for (const PlacedWire& w : picture.wires) heights.insert(w.y0), heights.insert(w.y1);
        for (const PlacedText& t : picture.texts) heights.insert(t.y - 4);
        for (const PlacedSeparator& s : picture.separators) heights.insert(s.y);
        int row = 0;
        double last = 0;
        for (const double y : heights) {
            if (!rows_.empty() && y - last > 5) row += y - last > 45 ? 2 : 1, last = y;
            if (rows_.empty()) last = y;
            rows_[y] = row;
        }
        // Lines of text are longer in characters than in the picture.
        int num_columns = column(std::max(0.0, picture.width));
        for (const PlacedText& t : picture.texts)
            if (!t.is_centred)
                num_columns = std::max(num_columns,
                                       column(t.x) + static_cast<int>(svg::characters(plain_text(t.label)).size()));
        cells_.assign(static_cast<std::size_t>(row) + 1, std::vector<CanvasCell>(at(num_columns) + 4));
    }

    [[nodiscard]] int row(double y) const {
        auto next = rows_.lower_bound(y);
        if (next == rows_.end()) return rows_.empty() ? 0 : rows_.rbegin()->second;
        if (next != rows_.begin() && y - std::prev(next)->first < next->first - y) --next;
        return next->second;
    }
    [[nodiscard]] static int column(double x) { return static_cast<int>(std::lround(x / column_width)); }

    CanvasCell* cell(int row, int column) {
        if (row < 0 || column < 0 || row >= static_cast<int>(cells_.size()) || column >= static_cast<int>(cells_[0].size()))
            return nullptr;
        return &cells_[at(row)][at(column)];
    }

    void add(int row, int column, unsigned mask, int level) {
        if (CanvasCell* c = cell(row, column)) c->mask |= mask, c->level = level;
    }

    void horizontal(int row, int from, int to, int level, bool dashed = false) {
        for (int c = from; c <= to; ++c) {
            if (from == to) break;
            add(row, c, (c > from ? left : 0U) | (c < to ? right : 0U), level);
            if (CanvasCell* here = cell(row, c); here && dashed) here->is_dashed = true;
        }
    }

    void vertical(int column, int from, int to, int level) {
        if (from > to) std::swap(from, to);
        for (int r = from; r <= to && from != to; ++r)
            add(r, column, (r > from ? up : 0U) | (r < to ? down : 0U), level);
    }

    void put(int row, int column, const std::string& text, int level) {
        for (const std::string& character : svg::characters(text)) {
            if (CanvasCell* c = cell(row, column)) c->text = character, c->level = level;
            ++column;
        }
    }

    [[nodiscard]] std::string text(bool color) const {
        std::string out;
        for (const auto& row : cells_) {
            std::string line;
            int current = 0;
            std::size_t seen = 0;  // up to the last that is no blank
            for (const CanvasCell& c : row) {
                const std::string shown = !c.text.empty()                           ? c.text
                                          : c.mask == (left | right) && c.is_dashed ? "╌"
                                                                                    : std::string(line_signs[c.mask]);
                if (shown != " " && color && c.level != current) line += code(c.level), current = c.level;
                line += shown;
                if (shown != " ") seen = line.size();
            }
            line.resize(seen);
            out += line + (color && current != 0 ? code(0) : "") + "\n";
        }
        return out;
    }

private:
    static std::string code(int level) {
        constexpr std::array<std::string_view, 5> codes = {"\033[0m", "\033[33m", "\033[32m", "\033[34m", "\033[35m"};
        return std::string(codes[at(std::clamp(level, 0, 4))]);
    }

    std::map<double, int> rows_;
    std::vector<std::vector<CanvasCell>> cells_;
};

void put_wire(const PlacedWire& w, Canvas& canvas) {
    const int from = Canvas::column(w.x0), to = Canvas::column(w.x1), upper = canvas.row(w.y0), lower = canvas.row(w.y1);
    if (upper == lower) {
        canvas.horizontal(upper, from, to, w.level, w.is_scalar);
        return;
    }
    const int bend = (from + to + 1) / 2;
    canvas.horizontal(upper, from, bend, w.level);
    canvas.vertical(bend, upper, lower, w.level);
    canvas.horizontal(lower, bend, to, w.level);
}

}  // namespace

std::string to_terminal(const Picture& picture, bool color) {
    Canvas canvas(picture);
    for (const PlacedSeparator& s : picture.separators) {
        const int row = canvas.row(s.y);
        for (int c = Canvas::column(s.x0); c < Canvas::column(s.x1); c += 1)
            if (CanvasCell* cell = canvas.cell(row, c); cell && cell->mask == 0 && c % 2 == 0) cell->text = "·";
    }
    for (const PlacedWire& w : picture.wires) put_wire(w, canvas);
    for (const PlacedCup& c : picture.cups) {
        const int column = Canvas::column(c.x + c.depth), start = Canvas::column(c.x);
        canvas.horizontal(canvas.row(c.y0), start, column, c.level);
        canvas.horizontal(canvas.row(c.y1), start, column, c.level);
        canvas.vertical(column, canvas.row(c.y0), canvas.row(c.y1), c.level);
    }
    for (const PlacedMark& m : picture.marks) {
        const std::string sign = m.mark == Mark::dot        ? "•"
                                 : m.mark == Mark::end      ? "┃"
                                 : m.mark == Mark::scalar   ? "○"
                                 : m.mark == Mark::place    ? "◇"
                                 : m.mark == Mark::transfer ? "▸"
                                                            : "▷";
        canvas.put(canvas.row(m.y), Canvas::column(m.x), sign, m.level);
    }
    for (const PlacedParenthesis& p : picture.parentheses) {
        const int column = Canvas::column(p.x), from = canvas.row(p.y0), to = canvas.row(p.y1);
        if (!p.is_loop) {
            for (int r = canvas.row(p.y0 + 10); r <= canvas.row(p.y1 - 10); ++r)
                canvas.put(r, column, p.opens ? "(" : ")", 0);
            continue;
        }
        for (int r = from; r <= to; ++r) {
            const bool first = r == from, last = r == to;
            canvas.put(r, column, p.opens ? (first ? "⎛" : last ? "⎝" : "⎜") : (first ? "⎞" : last ? "⎠" : "⎟"), 0);
        }
    }
    for (const PlacedSample& s : picture.samples)
        canvas.horizontal(canvas.row(s.y), Canvas::column(s.x), Canvas::column(s.x + s.width), s.level);
    const auto is_in_box = [&](const PlacedText& t) {
        return t.role == TextRole::operation && any_of(picture.boxes, [&](const PlacedBox& b) {
                   return b.is_outlined && b.x <= t.x && t.x <= b.x + b.width && b.y <= t.y && t.y <= b.y + b.height;
               });
    };
    for (const PlacedText& t : picture.texts) {
        std::string text = svg::cleaned(plain_text(t.label));
        if (is_in_box(t)) text = "[" + text + "]";
        const int width = static_cast<int>(svg::characters(text).size());
        const int column = Canvas::column(t.x) - (t.is_centred ? width / 2 : 0);
        canvas.put(canvas.row(t.y - 4), std::max(0, column), text, t.level);
    }
    return canvas.text(color);
}

}  // namespace napkin::draw
