// mean(c, n) X[b, c, n]: a callee of one axis applied over several. Its axis is replaced by as many axes before the
// call is bound.
#include <fmt/format.h>

#include "support/ranges.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {
/// Whether the axis is only ever run over as a whole: no coordinate of it, no other index in its place.
bool is_whole(const Diagram& d, AxisId axis) {
    bool whole = true;
    for (const Equation& e : d.equations) {
        visit(e.body, [&](const Expr& node) {
            if (const auto* n = as<AxisIndex>(node)) whole = whole && n->axis != axis;
            const auto* r = as<Read>(node);
            for (std::size_t i = 0; r && i < r->indices.size(); ++i) {
                const bool dimension = d.array(r->array).axes[i] == axis;
                whole = whole && dimension == r->indices[i].is_axis(axis) && (dimension || !r->indices[i].depends_on(axis));
            }
        });
    }
    for (const Axis& other : d.axes) {
        const auto symbols = other.size ? other.size->symbols() : std::vector<Symbol>{};
        whole = whole && !contains(symbols, axis_symbol(axis));
    }
    return whole;
}

}  // namespace

std::optional<Template> spread(const Template& t, AxisId axis, std::size_t count) {
    if (!is_whole(t.diagram, axis)) return std::nullopt;
    Template out = t;
    Diagram& d = out.diagram;
    std::vector<AxisId> parts{axis};
    d.axes[axis].size.reset();
    for (std::size_t i = 1; i < count; ++i) {
        std::string name = fmt::format("{}_{}", d.axis(axis).name, i + 1);
        while (d.find_axis(name) || d.find_array(name)) name += "_";
        parts.push_back(AxisId::of(d.axes.size()));
        d.axes.push_back({std::move(name), std::nullopt, d.axis(axis).range});
    }
    const auto spread_axes = [&](std::vector<AxisId>& axes) {
        const auto at = find(axes, axis);
        if (at != axes.end()) axes.insert(at + 1, parts.begin() + 1, parts.end());
    };
    for (Array& array : d.arrays) spread_axes(array.axes);
    for (Equation& e : d.equations) {
        spread_axes(e.reduce_axes);
        sort(e.reduce_axes);
        e.body = transform(e.body, [&](const Expr& node) {
            if (const auto* n = as<AxisSize>(node); n && n->axis == axis) {
                Expr size = node;
                for (std::size_t i = 1; i < parts.size(); ++i) size = binary(BinaryOp::mul, size, axis_size(parts[i]));
                return size;
            }
            const auto* r = as<Read>(node);
            if (!r) return node;
            std::vector<Index> indices;
            for (const Index& index : r->indices) {
                indices.push_back(index);
                if (!index.is_axis(axis)) continue;
                for (std::size_t i = 1; i < parts.size(); ++i) indices.push_back(Affine::axis(parts[i]));
            }
            return read(r->array, std::move(indices));
        });
    }
    return out;
}

}  // namespace napkin
