// What a picture must not have. Tests ask it of every picture that they draw.
#include <fmt/format.h>

#include <cmath>

#include "draw/diagram_picture.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

struct Rectangle {
    double x0, y0, x1, y1;
    std::string what;
};

bool overlap(const Rectangle& a, const Rectangle& b) {
    constexpr double touching = 0.5;
    return a.x0 < b.x1 - touching && b.x0 < a.x1 - touching && a.y0 < b.y1 - touching && b.y0 < a.y1 - touching;
}

/// Every pair that overlaps, found by sweeping from left to right.
void find_overlaps(std::vector<Rectangle> things, std::string_view sentence, std::vector<std::string>& faults) {
    sort(things, [](const Rectangle& a, const Rectangle& b) { return a.x0 < b.x0; });
    for (std::size_t i = 0; i < things.size(); ++i)
        for (std::size_t j = i + 1; j < things.size() && things[j].x0 < things[i].x1; ++j)
            if (overlap(things[i], things[j]))
                faults.push_back(fmt::format("{} {} {} at {:.0f}, {:.0f}", things[i].what, sentence, things[j].what,
                                             things[j].x0, things[j].y0));
}

/// Half of the room that a wire has for itself.
constexpr double half_wire = 5;

/// A wire begins at the left edge of a column of the page, behind another wire, in an operation, or, of what is only
/// maintained, in a parenthesis.
bool begins_somewhere(const PlacedWire& wire, const Picture& picture) {
    const auto near = [](double a, double b, double by) { return std::fabs(a - b) <= by; };
    if (any_of(picture.columns, [&](const PageColumn& c) { return near(wire.x0, c.left, 1); })) return true;
    for (const PlacedWire& w : picture.wires)
        if (&w != &wire && near(w.y1, wire.y0, 0.5) && w.x0 <= wire.x0 && w.x1 >= wire.x0 - 1) return true;
    for (const PlacedBox& b : picture.boxes)
        if (wire.x0 >= b.x - 1 && wire.x0 <= b.x + b.width + 1 && wire.y0 >= b.y && wire.y0 <= b.y + b.height)
            return true;
    for (const PlacedParenthesis& p : picture.parentheses)
        if (!p.is_loop && p.opens && near(p.x, wire.x0, 8) && wire.y0 >= p.y0 && wire.y0 <= p.y1) return true;
    return false;
}

}  // namespace

std::vector<std::string> faults_of(const Picture& picture) {
    std::vector<std::string> faults;
    std::vector<Rectangle> texts, boxes, wires, all;
    for (const PlacedText& t : picture.texts) {
        const double width = t.width(), x = t.is_centred ? t.x - width / 2 : t.x;
        texts.push_back({x, t.y - 0.75 * t.size(), x + width, t.y + 0.2 * t.size(), "text '" + plain_text(t.label) + "'"});
    }
    for (const PlacedBox& b : picture.boxes)
        boxes.push_back({b.x, b.y, b.x + b.width, b.y + b.height, "box of " + b.statement});
    for (const PlacedWire& w : picture.wires)
        if (w.y0 == w.y1 && w.x1 - w.x0 > 1)
            wires.push_back({w.x0, w.y0 - half_wire, w.x1, w.y1 + half_wire, "wire " + w.axis + " of " + w.array});
    find_overlaps(texts, "stands on", faults);
    find_overlaps(boxes, "stands on", faults);
    find_overlaps(wires, "runs on", faults);
    for (const PlacedWire& w : picture.wires)
        if (!begins_somewhere(w, picture))
            faults.push_back(fmt::format("wire {} of {} begins at nothing at {:.0f}, {:.0f}", w.axis, w.array, w.x0, w.y0));
    for (const auto* list : {&texts, &boxes, &wires}) append(all, *list);
    for (const PlacedCup& c : picture.cups) all.push_back({c.x, c.y0, c.x + c.depth, c.y1, "cup of " + c.axis});
    for (const PlacedParenthesis& p : picture.parentheses) all.push_back({p.x, p.y0, p.x, p.y1, "a parenthesis"});
    for (const Rectangle& r : all)
        if (r.x0 < 0 || r.y0 < 0 || r.x1 > picture.width || r.y1 > picture.height)
            faults.push_back(r.what + " leaves the picture");
    return faults;
}

}  // namespace napkin::draw
