#include "diagram/box.hpp"

#include <algorithm>
#include <optional>

#include "support/ranges.hpp"

namespace napkin {
namespace {

class BoxBuilder {
public:
    explicit BoxBuilder(const std::function<const std::vector<AxisId>&(ArrayId)>& axes_of) : axes_of_(axes_of) {}

    Box run(const Read& r, bool walks) {
        const std::vector<AxisId>& axes = axes_of_(r.array);
        std::vector<Index> source;
        if (walks) {
            // The contiguous dimension's axes come last, as in an array.
            const std::vector<AxisId> last = r.indices.back().axes();
            for (const Index& index : r.indices)
                for (const AxisId axis : index.axes())
                    if (!contains(last, axis)) shared(Affine::axis(axis), axis);
            for (const Index& index : r.indices) source.push_back(made_of_axes(index.value()));
            out_.source = std::move(source);
            return std::move(out_);
        }
        for (std::size_t d = 0; d < r.indices.size(); ++d) {
            if (r.indices[d].is_gathered())
                source.push_back(gathered(r.indices[d]));
            else
                source.push_back(Affine::axis(add(r.indices[d], axes[d])));
        }
        const bool decided = any_of(source, [](const Index& i) { return i.is_gathered(); });
        if (decided) out_.source = std::move(source);
        return std::move(out_);
    }

private:
    AxisId add(const Index& index, AxisId limit) {
        out_.dims.push_back(index);
        out_.limits.push_back(limit);
        return AxisId::of(out_.dims.size() - 1);
    }

    /// A coordinate of what data are read by; gathered indices that run over the same one share it.
    AxisId shared(const Index& index, AxisId limit) {
        for (const AxisId p : made_of_)
            if (out_.dims[at(p)] == index) return p;
        made_of_.push_back(add(index, limit));
        return made_of_.back();
    }

    Index gathered(const Index& index) {
        const Expr& e = *index.expression();
        if (const auto* element = as<Read>(e)) {
            const Box box = box_of(*element, axes_of_, false);
            std::vector<Index> places;
            for (std::size_t d = 0; d < box.dims.size(); ++d)
                places.push_back(Affine::axis(shared(box.dims[d], box.limits[d])));
            return Index::of(read(element->array, std::move(places)));
        }
        // Elements lie in tiles of their own, and are found there at the coordinates of those.
        const Expr in_tiles = transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            return r ? read(r->array, box_of(*r, axes_of_, false).dims) : node;
        });
        const std::vector<Coordinate> coordinates = coordinates_of(in_tiles);
        // In the order of the axes: numbers in place of the sizes may turn around in which order an expression has
        // them.
        std::vector<Expr> places;
        for (const Coordinate& c : coordinates) places.push_back(axis_index(shared(Index::of(c.value), c.axis)));
        return Index::of(with_places(in_tiles, coordinates, places));
    }

    Index made_of_axes(const Expr& e) {
        for (const AxisId axis : free_axes(e)) shared(Affine::axis(axis), axis);
        return substitute(Index::of(e), [&](AxisId axis) {
            return std::optional<Index>(Affine::axis(shared(Affine::axis(axis), axis)));
        });
    }

    /// What an index is made of: an axis, or its quotient or rest by a number.
    struct Coordinate {
        AxisId axis;
        Expr value, by;  ///< `by` is null where the value is the axis itself
        BinaryOp op = BinaryOp::floor_div;
    };
    static std::optional<Coordinate> as_coordinate(const Expr& e) {
        if (const auto* axis = as<AxisIndex>(e)) return Coordinate{axis->axis, e, nullptr};
        const auto* b = as<Binary>(e);
        const auto* of = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? as<AxisIndex>(b->a) : nullptr;
        if (!of || !free_axes(b->b).empty() || !read_arrays(b->b).empty()) return std::nullopt;
        return Coordinate{of->axis, e, b->b, b->op};
    }

    /// The coordinates of an expression, by axis, a quotient before its rest. An axis has one coordinate, or a quotient
    /// and the rest of it: the values of both together are those of the axis. Others are made of axes alone.
    static std::vector<Coordinate> coordinates_of(const Expr& e) {
        std::vector<Coordinate> out;
        bool are_apart = true;
        const auto add = [&](const auto& self, const Expr& node) -> void {
            if (free_axes(node).empty()) return;
            if (const auto c = as_coordinate(node)) {
                if (none_of(out, [&](const Coordinate& o) { return equal(o.value, c->value); })) out.push_back(*c);
                return;
            }
            if (const auto* r = as<Read>(node))
                for (const Index& index : r->indices) self(self, index.value());
            else
                for (const Expr& child : children(node)) self(self, child);
        };
        add(add, e);
        for (const Coordinate& a : out)
            for (const Coordinate& b : out)
                if (a.axis == b.axis && !equal(a.value, b.value))
                    are_apart = are_apart && a.by && b.by && equal(a.by, b.by);
        if (!are_apart) {
            out.clear();
            for (const AxisId axis : free_axes(e)) out.push_back({axis, axis_index(axis), nullptr});
        }
        std::stable_sort(out.begin(), out.end(), [](const Coordinate& a, const Coordinate& b) {
            return a.axis != b.axis ? a.axis < b.axis : a.op == BinaryOp::floor_div && b.op == BinaryOp::mod;
        });
        return out;
    }

    /// The expression at places in the box, one for each coordinate.
    static Expr with_places(const Expr& e, const std::vector<Coordinate>& coordinates, const std::vector<Expr>& places) {
        for (std::size_t i = 0; i < coordinates.size(); ++i)
            if (equal(coordinates[i].value, e)) return places[i];
        const auto within = [&](const Expr& part) { return with_places(part, coordinates, places); };
        if (const auto* r = as<Read>(e))
            return read(r->array, mapped<Index>(r->indices, [&](const Index& i) { return Index::of(within(i.value())); }));
        std::vector<Expr> parts = mapped<Expr>(children(e), within);
        return parts.empty() ? e : with_children(e, std::move(parts));
    }

    const std::function<const std::vector<AxisId>&(ArrayId)>& axes_of_;
    Box out_;
    std::vector<AxisId> made_of_;
};

}  // namespace

Box box_of(const Read& r, const std::function<const std::vector<AxisId>&(ArrayId)>& axes_of, bool walks) {
    return BoxBuilder(axes_of).run(r, walks);
}

Box box_of(const Diagram& diagram, const Read& r) {
    const auto does_walk = [&](const Index& index) {
        return any_of(index.axes(), [&](AxisId axis) { return diagram.axis(axis).walks; });
    };
    return box_of(
        r, [&](ArrayId id) -> const std::vector<AxisId>& { return diagram.array(id).axes; },
        count_if(r.indices, does_walk) > 1);
}

bool are_walks(const std::vector<Index>& source) {
    return !source.empty() && none_of(source, [](const Index& index) { return index.is_gathered(); });
}

Interval inside(const Interval& range, std::int64_t extent) {
    return {std::max<std::int64_t>(range.low, 0), std::min(range.high, extent - 1)};
}

std::int64_t values_inside(const std::vector<Index>& dims, const std::vector<AxisId>& limits, const Extents& extents,
                           const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& count) {
    std::int64_t values = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        const std::int64_t here = inside(range_of(dims[d], begin, count), extents[limits[d]]).size();
        if (here <= 0) return 0;
        values *= here;
    }
    return values;
}

}  // namespace napkin
