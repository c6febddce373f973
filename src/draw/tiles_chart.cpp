#include "draw/tiles_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "support/ids.hpp"
#include "support/text.hpp"
#include "tile/work.hpp"

namespace napkin::draw {
namespace {

/// An axis as the drawing has it: its length, the part that the one group has, and of that the chunk at hand.
struct DrawnAxis {
    AxisId axis = -1;
    std::string name;
    double length = 0, tile = 0, chunk = 0;  ///< of the drawing
    double tile_from = 0, chunk_from = 0;    ///< of the drawing
    std::int64_t size = 1, tile_size = 1, k_block_size = 1;
    std::string letter;
};

struct Tiler {
    const Derived& derived;
    const Extents& extents;
    const TileSizes& sizes;
    const TilesOf& of;
    std::set<AxisId> streamed = {};
    double scale = 1;  ///< of the square root of a size: so that narrow arrays can be seen beside long ones

    [[nodiscard]] DrawnAxis axis(AxisId id) const {
        DrawnAxis out;
        if (id < 0) return {-1, "", 26, 26, 26, 0, 0, 1, 1, 1, ""};
        out.axis = id;
        const std::string& name = derived.diagram.axis(id).name;
        out.name = value_or(of.sides, id, name);
        out.size = extents[id];
        out.length = std::max(26.0, scale * std::sqrt(static_cast<double>(out.size)));
        const auto cut = [&](const std::vector<std::int64_t>& by, std::int64_t whole) {
            return at(id) < by.size() && by[at(id)] > 0 ? std::min(by[at(id)], whole) : whole;
        };
        out.tile_size = streamed.contains(id) ? out.size : cut(sizes.group, out.size);
        out.k_block_size = streamed.contains(id) ? cut(sizes.stream, out.size) : out.tile_size;
        const auto part = [&](std::int64_t n) {
            return out.length * static_cast<double>(n) / static_cast<double>(out.size);
        };
        out.tile = part(out.tile_size), out.chunk = part(out.k_block_size);
        // The second tile and chunk, where there are two: what has been and what is to come can be seen on both sides.
        out.tile_from = 2 * out.tile_size <= out.size ? out.tile : 0;
        out.chunk_from = streamed.contains(id) ? (2 * out.k_block_size <= out.size ? out.chunk : 0) : out.tile_from;
        out.letter = out.k_block_size == out.size ? "" : (streamed.contains(id) ? of.stream : of.group) + "_" + name;
        return out;
    }
};

constexpr double gap = 74;  ///< between arrays

std::string axis_text(const DrawnAxis& a) {
    if (a.axis < 0) return "";
    return a.letter.empty() ? fmt::format("{} = {}", a.name, a.size)
                            : fmt::format("{} = {}, {} = {}", a.name, a.size, a.letter, a.k_block_size);
}
/// As much of it as there is room for beside an axis of this length: columns have a gap on both sides, rows the labels
/// of columns above them.
std::string axis_label(const DrawnAxis& a, bool is_rows = false) {
    const double room = is_rows ? std::max(a.length + 12, 84.0) : std::max(a.length, 60.0) + gap - 20;
    return svg::shortened_name(axis_text(a), room, chart_small_text);
}

/// Lines where tiles or chunks end, unless they would be a grey surface.
void draw_cuts(svg::Document& out, double x, double y, const DrawnAxis& rows, const DrawnAxis& columns) {
    const auto cuts = [](const DrawnAxis& a) {
        std::vector<double> at;
        if (a.chunk < a.length && a.chunk >= 3)
            for (double p = a.chunk; p < a.length - 0.5; p += a.chunk) at.push_back(p);
        return at;
    };
    for (const double p : cuts(columns)) out.add(line(x + p, y, x + p, y + rows.length, "faint thin no-fill"));
    for (const double p : cuts(rows)) out.add(line(x, y + p, x + columns.length, y + p, "faint thin no-fill"));
}

std::string array_label(const std::string& name, const DrawnAxis& columns) {
    return svg::shortened_name(name, std::max(columns.length - 8, 90.0) / 1.12, chart_text);
}

void draw_array(svg::Document& out, double x, double y, const std::string& name, const DrawnAxis& rows,
                const DrawnAxis& columns, bool is_output, bool says_rows, bool says_columns) {
    const std::string color = is_output ? "accent-2" : "accent-0";
    out.add(titled(rect(x, y, columns.length, rows.length, "panel").data("array", name),
                   fmt::format("{}: {}{}{}", name, axis_text(rows), rows.axis < 0 ? "" : " by ", axis_text(columns))));
    draw_cuts(out, x, y, rows, columns);
    out.add(rect(x + columns.tile_from, y + rows.tile_from, columns.tile, rows.tile, wash(color)));
    out.add(titled(rect(x + columns.chunk_from, y + rows.chunk_from, columns.chunk, rows.chunk, tint(color)),
                   fmt::format("{} at a time: {} × {}", name, rows.k_block_size, columns.k_block_size)));
    out.add(label(x + columns.length / 2, y + rows.length / 2 + 5, array_label(name, columns), "strong", Anchor::middle));
    if (says_columns) out.add(label(x + columns.length / 2, y - 8, axis_label(columns), "small", Anchor::middle));
    if (says_rows) out.add(upward_label(x - 8, y + rows.length / 2, axis_label(rows, true), "small"));
}

struct Product {
    ArrayId first = -1, second = -1, result = -1;
    AxisId m = -1, n = -1, k = -1;
};

/// The kernel's one contraction, where its operands and its result lie in memory.
std::optional<Product> product_of(const Derived& derived, const Kernel& kernel) {
    std::optional<Product> out;
    for (const StatementWork& w : statement_work(derived, kernel)) {
        if (!w.contraction) continue;
        const Contraction& c = *w.contraction;
        if (out || c.m.size() != 1 || c.n.size() != 1 || c.k.size() != 1 || kernel.outputs.size() != 1)
            return std::nullopt;
        out = Product{-1, -1, kernel.outputs[0], c.m[0], c.n[0], c.k[0]};
        for (const OperandRead& o : w.operands) {
            if (!contains(kernel.inputs, o.array) || !contains(o.axes, out->k)) continue;
            if (contains(o.axes, out->m)) out->first = o.array;
            if (contains(o.axes, out->n)) out->second = o.array;
        }
    }
    if (!out || out->first < 0 || out->second < 0 || kernel.inputs.size() != 2) return std::nullopt;
    return out;
}

}  // namespace

svg::Document tiles_chart(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes,
                          const std::string& subject, const TilesOf& of) {
    Tiler tiler{derived, extents, sizes, of};
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) tiler.streamed.insert(loop->axis);
    double longest = 1;
    const auto measure = [&](const std::vector<ArrayId>& arrays) {
        for (const ArrayId id : arrays)
            for (const AxisId axis : derived.diagram.array(id).axes)
                longest = std::max(longest, static_cast<double>(extents[axis]));
    };
    measure(kernel.inputs), measure(kernel.outputs);
    tiler.scale = 210 / std::sqrt(longest);
    svg::Document out = chart_document(fmt::format("{} of {}, kernel {}", of.title, subject, kernel.name));
    constexpr double left = 46, top = 84;
    std::vector<std::string> said;
    if (const auto product = product_of(derived, kernel)) {
        const DrawnAxis m = tiler.axis(product->m), n = tiler.axis(product->n), k = tiler.axis(product->k);
        const auto called = [&](ArrayId id) { return derived.diagram.array(id).name; };
        draw_array(out, left + k.length + gap, top, called(product->second), k, n, false, true, true);
        draw_array(out, left, top + k.length + gap, called(product->first), m, k, false, true, true);
        draw_array(out, left + k.length + gap, top + k.length + gap, called(product->result), m, n, true, false, false);
        out.width = std::max(left + k.length + gap + n.length + 30, std::min(text_width(out.title, 14) * 1.12 + 32, 900.0));
        out.height = top + k.length + gap + m.length + 52;
        said = {axis_text(m), axis_text(n), axis_text(k)};
    } else {
        double x = left, tallest = 0;
        const auto add = [&](ArrayId id, bool is_output) {
            const std::vector<AxisId>& axes = derived.diagram.array(id).axes;
            const DrawnAxis columns = tiler.axis(axes.empty() ? AxisId() : axes.back());
            const DrawnAxis rows = tiler.axis(axes.size() < 2 ? AxisId() : axes[axes.size() - 2]);
            std::string name = derived.diagram.array(id).name;
            std::vector<std::string> outer;
            for (std::size_t a = 0; a + 2 < axes.size(); ++a) outer.push_back(axis_label(tiler.axis(axes[a])));
            const std::string each = outer.empty() ? "" : "for each of " + join(outer, "; ");
            const double room = std::max({columns.length, text_width(axis_label(columns), chart_small_text),
                                          text_width(array_label(name, columns), chart_text) * 1.12,
                                          text_width(each, chart_small_text)}) +
                                6;
            draw_array(out, x + (room - columns.length) / 2, top, name, rows, columns, is_output, true, true);
            if (!each.empty())
                out.add(label(x + room / 2, top + rows.length + 16, each, "small text-muted", Anchor::middle));
            said.push_back(fmt::format("{}: {} by {}", name, axis_text(rows), axis_text(columns)));
            tallest = std::max(tallest, rows.length);
            x += room + 44;
        };
        for (const ArrayId id : kernel.inputs) add(id, false);
        for (const ArrayId id : kernel.outputs) add(id, true);
        out.width = std::max({x, std::min(text_width(out.title, 14) * 1.12 + 32, 900.0), 470.0});
        out.height = top + tallest + 64;
    }
    add_title(out);
    const double y = out.height - 16;
    double x = 16;
    const auto sample = [&](const char* classes, const std::string& text) {
        out.add(rect(x, y - 10, 14, 11, classes, 1));
        out.add(label(x + 20, y, text, "small"));
        x += 20 + std::max(60.0, text_width(text, chart_small_text)) + 24;
    };
    sample("tint fill-accent-0 accent-0", fmt::format("what {} {} at a time", of.owner, of.takes));
    sample("wash fill-accent-0", fmt::format("all that it {}", of.takes));
    sample("tint fill-accent-2 accent-2", fmt::format("what it {}", of.leaves));
    out.width = std::max(out.width, x - 8);
    out.description = join(said, "; ") + ". Lengths are as the square roots of sizes.";
    return out;
}

}  // namespace napkin::draw
