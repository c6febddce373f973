#include "diagram/box.hpp"
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
        if (const auto* element = as<Read>(*index.expression())) {
            const Box box = box_of(*element, axes_of_, false);
            std::vector<Index> places;
            for (std::size_t d = 0; d < box.dims.size(); ++d)
                places.push_back(Affine::axis(shared(box.dims[d], box.limits[d])));
            return Index::of(read(element->array, std::move(places)));
        }
        // Elements lie in tiles of their own, and are found there at the coordinates of those.
        const Expr in_tiles = transform(*index.expression(), [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            return r ? read(r->array, box_of(*r, axes_of_, false).dims) : node;
        });
        return made_of_axes(in_tiles);
    }

    Index made_of_axes(const Expr& e) {
        // In the order of the axes: numbers in place of the sizes may turn around in which order an expression has
        // them.
        for (const AxisId axis : free_axes(e)) shared(Affine::axis(axis), axis);
        return substitute(Index::of(e), [&](AxisId axis) {
            return std::optional<Index>(Affine::axis(shared(Affine::axis(axis), axis)));
        });
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
